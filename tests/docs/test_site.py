"""The documentation site as ``make docs`` builds it, in a real browser: complete, in two languages, and by itself."""

import fcntl
import http.server
import os
import re
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, expect

from tests.console.visit import PATIENCE_MS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILD_S = 900
PACKAGES = ".venv-docs/.installed-docs"
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed|object)\b[^>]*?\s(?:src|data)="(?:https?:)?//[^"]*"""
    r"""|<link\b(?![^>]*rel="(?:canonical|author|license)")[^>]*\shref="(?:https?:)?//[^"]*"""
    r"""|url\(\s*['"]?(?:https?:)?//[^)]*|@import\s[^;]*//[^;]*"""
)

pytestmark = pytest.mark.requirement("docs:site")
in_browser = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all processes of the suite."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "documentation"
    with (shared / "documentation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            installed = _make(PACKAGES)
            if installed.returncode:
                pytest.skip(f"what builds the site cannot be installed here: {installed.stderr.strip()[-500:]}")
            built = _make("docs", f"SITE={folder}")
            assert (built.returncode, built.stderr) == (0, "")
    return folder


def _make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S, check=False)


@dataclass
class Reader:
    """A browser at the site, and whatever it asked of anybody else or complained about."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    async def go(self, path: str) -> None:
        await self.page.goto(f"{self.url}/{path}")

    async def search(self, words: str) -> list[str]:
        """Type the words into the search box; the titles that are found."""
        await self.page.get_by_role("search").get_by_role("textbox").fill(words)
        await self.page.keyboard.press("Enter")
        await self.page.wait_for_selector("#search-results p.search-summary:not(:empty)")
        return await self.page.locator("#search-results li > a").all_inner_texts()

    def note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.faults.append(f"foreign request: {request.url}")

    def note_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"{message.text} ({message.location.get('url', '')})")


@contextmanager
def _serve(folder: Path) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@asynccontextmanager
async def _reading(browser: Browser, url: str, **options: str) -> AsyncIterator[Reader]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, **options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    try:
        reader = Reader(await context.new_page(), url)
        reader.page.on("request", reader.note_request)
        reader.page.on("console", reader.note_message)
        reader.page.on("pageerror", lambda error: reader.faults.append(str(error)))
        yield reader
    finally:
        await context.close()


def test_every_page_is_on_both_sites_and_in_the_navigation_of_its_index(site: Path) -> None:
    names = [file.relative_to(DOCS).with_suffix("") for file in DOCS.rglob("*.md") if ".zh-CN" not in file.name]
    for folder in (site, site / "zh"):
        navigation = re.findall(r'href="([^"#]+)\.html"', (folder / "index.html").read_text("utf-8"))
        assert [str(name) for name in names if not (folder / f"{name}.html").exists()] == []
        assert [str(name) for name in names if name.name != "README" and str(name) not in navigation] == []


def test_nothing_on_the_site_is_loaded_from_elsewhere(site: Path) -> None:
    texts = [file for file in site.rglob("*") if file.suffix in {".html", ".css", ".svg"}]
    assert len(texts) > 50
    found = {file.relative_to(site).as_posix(): LOADED.findall(file.read_text("utf-8")) for file in texts}
    assert {name: loads for name, loads in found.items() if loads} == {}


@in_browser
async def test_a_reader_gets_around_in_english_and_chinese_and_asks_one_server_alone(
    site: Path, browser: Browser
) -> None:
    with _serve(site) as url:
        async with _reading(browser, url) as reader:
            page = reader.page
            await reader.go("")
            await page.locator(".sidebar-tree").get_by_role("link", name="Tutorial", exact=True).click()
            await expect(page.get_by_role("heading", level=1)).to_contain_text("Tutorial")
            await page.get_by_role("link", name="中文", exact=True).click()
            await expect(page.get_by_role("heading", level=1)).to_contain_text("入门教程")
            assert await page.locator("html").get_attribute("lang") == "zh-CN"
            await expect(page.get_by_role("search").get_by_role("textbox")).to_have_attribute("placeholder", "搜索")
            await page.locator(".sidebar-tree").get_by_role("link", name="故障排查").click()
            await page.get_by_role("link", name="English", exact=True).click()
            await expect(page.get_by_role("heading", level=1)).to_contain_text("Troubleshooting")
            await reader.go("zh/decisions/0002-jsonschema-rs.html")
            await expect(page.get_by_role("main")).to_contain_text("本页还没有中文版")
            assert reader.faults == []


@in_browser
async def test_the_first_page_says_what_it_is_and_examples_can_be_copied(site: Path, browser: Browser) -> None:
    with _serve(site) as url:
        async with _reading(browser, url) as reader:
            page = reader.page
            for folder, label in (("", "Copy"), ("zh/", "复制")):
                await reader.go(f"{folder}index.html")
                first = page.locator("#toolyard")
                await expect(first.get_by_role("heading", level=1)).to_contain_text("Toolyard")
                await expect(first.locator("> p img, > img")).to_be_visible()
                await expect(first.locator("> ul > li")).to_have_count(3)
                await reader.go(f"{folder}tutorial.html")
                await expect(page.locator("button.copybtn").first).to_have_attribute("data-tooltip", label)
            assert reader.faults == []


@in_browser
async def test_search_finds_words_in_both_languages(site: Path, browser: Browser) -> None:
    with _serve(site) as url:
        async with _reading(browser, url) as reader:
            await reader.go("index.html")
            assert any(title.startswith("Upgrading") for title in await reader.search("migrations"))
            assert await reader.search("quetzalcoatl") == []
            await reader.go("zh/index.html")
            assert any(title.startswith("升级") for title in await reader.search("退回旧版本"))
            assert any(title.startswith("术语表") for title in await reader.search("审计记录"))
            assert any(title.startswith("入门教程") for title in await reader.search("手机上审批"))
            assert await reader.search("量子力学") == []
            assert reader.faults == []


@in_browser
async def test_the_site_also_works_from_the_file_system(site: Path, browser: Browser) -> None:
    async with _reading(browser, site.as_uri()) as reader:
        await reader.go("index.html")
        await reader.page.get_by_role("search").get_by_role("textbox").fill("migrations")
        await reader.page.keyboard.press("Enter")
        await expect(reader.page.locator("#search-results li > a").first).to_be_visible()
        assert [fault for fault in reader.faults if fault.startswith("foreign")] == []


@in_browser
async def test_the_site_is_dark_for_who_prefers_that_and_remembers_a_choice(site: Path, browser: Browser) -> None:
    async def brightness(page: Page) -> int:
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    with _serve(site) as url:
        async with _reading(browser, url, color_scheme="dark") as reader:
            await reader.go("index.html")
            assert await brightness(reader.page) < 150
        async with _reading(browser, url, color_scheme="light") as reader:
            await reader.go("index.html")
            assert await brightness(reader.page) > 600
            await reader.page.locator(".theme-toggle:visible").first.click()
            await expect(reader.page.locator("body")).to_have_attribute("data-theme", "dark")
            await reader.go("limits.html")
            assert await brightness(reader.page) < 150
