"""Every page is wholly in one language."""

import re

import pytest
from playwright.async_api import Browser

from tests.console.hosting import Host
from tests.console.looks import own_texts
from tests.console.test_shell import PAGES
from tests.console.visit import PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Names of the console's own language switch, and of things that have one name everywhere.
SIZE = re.compile(r"[·\s]*[\d.,]+ (B|KiB|MiB|GiB)")
SAME = frozenset(("中文", "English", "切换到中文", "Switch to English", "Toolyard", "owner", "tour"))


@pytest.mark.requirement("console:languages")
@pytest.mark.parametrize("path", PAGES)
async def test_an_english_page_has_no_chinese(browser: Browser, filled: Host, path: str) -> None:
    async with visiting(browser, filled, lang="en") as visit:
        await visit.go(path)
        assert [text for text in await own_texts(visit.page) if CHINESE.search(text) and text not in SAME] == []


@pytest.mark.requirement("console:languages")
@pytest.mark.parametrize("path", PAGES)
async def test_every_word_of_a_page_comes_from_a_dictionary(browser: Browser, filled: Host, path: str) -> None:
    """The stretched language marks each text of a dictionary; what has letters and no mark would be the same on a
    Chinese page."""
    async with visiting(browser, filled, lang="pseudo", size=PHONE) as visit:
        await visit.go(path)
        plain = [text for text in await own_texts(visit.page) if re.search(r"[A-Za-z]{3,}", text) and "xx" not in text]
        assert [text for text in plain if text not in SAME and not SIZE.fullmatch(text)] == []


@pytest.mark.requirement("console:languages", "console:settings")
async def test_every_setting_is_explained_in_chinese(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, lang="zh") as visit:
        await visit.go("/settings")
        names = [one["name"] for one in (await filled.api("GET", "/v1/settings"))["settings"]]
        told = await visit.page.locator(".settings-one").all_inner_texts()
        assert len(told) == len(names)
        assert [
            text for text in told if not CHINESE.search(text.replace("立即生效", "").replace("重启后生效", ""))
        ] == []
        assert visit.wrong() == []
