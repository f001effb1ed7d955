"""The machine's own Chromium, quiet: it asks no other server for anything."""

import shutil
from typing import Final

_NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--font-render-hinting=none"),
)


def chromium() -> str:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    assert found, "there is no Chromium here: 'make test' installs Debian's as root, else 'apt install chromium'"
    return found
