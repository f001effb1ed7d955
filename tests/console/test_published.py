"""Files that plugins publish, in a real browser: shown on pages of other servers, and nothing in them runs."""

import json

import pytest
from playwright.async_api import Browser

from tests.console.hosting import Host
from tests.shipped.children import Reply, serving
from tests.shipped.test_image import PNG

SCRIPT = "fetch('/v1/session').catch(() => 0); document.title = 'ran'; (window.opener || window).ran = true"
DRAWING = (
    f"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><title>still</title><script>{SCRIPT}</script></svg>"
)
PAGE = f"<!doctype html><title>still</title><script>{SCRIPT}</script><p>A page"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.requirement("http:published")
async def test_a_browser_shows_published_files_and_runs_nothing_in_them(browser: Browser, fresh: Host) -> None:
    for name, content in (("image/a.png", PNG), ("image/a.svg", DRAWING.encode()), ("file/a.html", PAGE.encode())):
        (fresh.project / name).parent.mkdir(exist_ok=True)
        (fresh.project / name).write_bytes(content)
    keys = json.loads((fresh.home / "publish-keys.json").read_text("utf-8"))
    images = f"{fresh.url}/pw={keys['IMAGESERVER_IMAGE_KEY']}/images"
    files = f"{fresh.url}/pw={keys['IMAGESERVER_FILE_KEY']}/files"
    elsewhere = f"<!doctype html><img src='{images}/a.png'><img src='{images}/a.svg'>".encode()
    page = await browser.new_page()
    try:
        with serving(lambda _: Reply(elsewhere, headers={"Content-Type": "text/html"})) as other:
            await page.goto(other.url)
            widths = await page.evaluate("[...document.images].map((one) => one.naturalWidth)")
        assert widths == [1, 9]
        for address, text in ((f"{images}/a.svg", ""), (f"{files}/a.html", "A page")):
            await page.goto(address)
            assert await page.title() == "still"
            assert await page.evaluate("self.origin") == "null"
            assert text in await page.evaluate("document.documentElement.textContent")
    finally:
        await page.close()
