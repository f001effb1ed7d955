"""Fixtures of the plugin tests."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork server may answer slowly on a busy machine, and is no worse for it."""
    monkeypatch.setattr("toolyard.plugins.process.warm.fork_server._FORK_S", 60.0)
