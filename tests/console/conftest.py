"""One Chromium for all of these tests, and one Toolyard with data for those that only look.

They share one event loop per process, because the browser and its connection live longer than a test.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.console.browsers import QUIET, chromium, headless_chromium
from tests.console.hosting import Host, fill, hosting
from tests.console.packages import install_packages
from tests.console.talking import Talking, chatting


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launching(headless_chromium()) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def whole_browser() -> AsyncIterator[Browser]:
    """For what Chromium does around the page: installing apps, showing notifications."""
    async with launching(chromium()) as browser:
        yield browser


@asynccontextmanager
async def launching(program: str) -> AsyncIterator[Browser]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def filled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """A server with a bit of everything, for tests that change nothing."""
    async with hosting(tmp_path_factory.mktemp("filled")) as host:
        await fill(host)
        yield host


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chat(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talking]:
    """A server whose model says what a test wants; each test has words and conversations of its own."""
    async with chatting(tmp_path_factory.mktemp("chatting")) as one:
        yield one


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the console's sources, with the packages that its lock file names."""
    return install_packages(tmp_path_factory.mktemp("checkout"))


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(tmp_path: Path) -> AsyncIterator[Host]:
    """A server of this test alone."""
    async with hosting(tmp_path) as host:
        yield host
