"""Fixtures of the MCP tests."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is a process of its own, which may start slowly on a busy machine."""
    monkeypatch.setattr("toolyard.plugins.mcp.server_connection.START_S", 120.0)
