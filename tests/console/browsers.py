"""The machine's own Chromium, quiet: it asks no other server for anything."""

import shutil
from typing import Final

import pytest

_WHOLE = ("chromium", "chromium-browser", "google-chrome")
_HEADLESS = ("chromium-headless-shell", "chrome-headless-shell")
QUIET: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--font-render-hinting=none"),
)


def chromium() -> str:
    """The whole browser, which can install apps and show notifications."""
    return _find(_WHOLE)


def headless_chromium() -> str:
    """Chromium without the parts around the page, where there is one: pages open in a third of the time."""
    return _find((*_HEADLESS, *_WHOLE))


def _find(names: tuple[str, ...]) -> str:
    """Return where it is; without one, the test is skipped."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or pytest.skip("needs Chromium: as root, 'make test' installs Debian's; else 'apt install chromium'")
