"""What tests of drawings share."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagram is drawn by a process of its own, which may start slowly on a busy machine."""
    monkeypatch.setattr("toolyard.render.terminal_diagram._MAX_WAIT", 60)
