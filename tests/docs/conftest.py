"""The Chromium of the console's tests, for the pages and pictures of the documentation."""

from tests.console.conftest import browser

__all__ = ["browser"]
