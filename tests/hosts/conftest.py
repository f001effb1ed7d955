"""What tests of several hosts share."""

import pytest

from toolyard.hosts import host, lease


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``worker_main``: where hosts speak more often, a shorter silence means as much."""
    monkeypatch.setattr(lease, "LEASE_S", 3.5)
    for name, value in (("HEARTBEAT_S", 0.5), ("POLL_S", 0.25)):
        monkeypatch.setattr(host, name, value)
