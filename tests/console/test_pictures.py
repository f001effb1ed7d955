"""Pages look as they looked when somebody last agreed: pictures of an empty server, without what changes by itself.

Fonts and browsers differ a little from machine to machine, so this is for the soak; what must hold everywhere is in
``test_shell``, which looks at every page in each theme, language and size. Each page has two pictures: on a desktop
and on a phone, in English and in Chinese; every second page is dark. ``TOOLYARD_NEW_PICTURES=1`` keeps what is seen
now where it differs visibly: look at it before you commit it.
"""

import base64
import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.console.hosting import ZONE, hosting
from tests.console.looks import access_faults
from tests.console.packages import ROOT, SOURCES, run_npm
from tests.console.visit import DESKTOP, PHONE, TABLET, visiting
from toolyard.message import read_catalogue

KEPT = Path(__file__).parent / "pictures"
NEW = "TOOLYARD_NEW_PICTURES" in os.environ
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
PAGES = (
    *("/chat", "/tools", "/tools/Edit", "/tools/SciCalculator?tab=config", "/activity", "/tasks", "/schedule"),
    *(
        "/approvals",
        "/approvals?tab=rules",
        "/settings",
        "/settings?tab=keys",
        "/settings?tab=backup",
        "/settings?tab=looks",
        "/status",
        "/welcome",
        "/providers",
    ),
)
LOOKS = {"desktop-light-en": DESKTOP, "desktop-dark-zh": DESKTOP, "phone-light-zh": PHONE, "phone-dark-en": PHONE}
# Of the page of all components: both themes, both languages and three widths between them.
STYLES = ("style-light-en-1440", "style-dark-zh-1024", "style-dark-zh-390")
DIFFERENT = 0.002
# Numbers and dates of this very moment.
VOLATILE = "time, .tabular, .status-value, .sch-strip, .dot"
# By the object model: the policy of the page lets no foreign style in.
HIDE = f"() => {{ for (const one of document.querySelectorAll('{VOLATILE}')) one.style.visibility = 'hidden'; }}"
pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not SOAK and not NEW, reason="pictures depend on fonts and browser: compared in the soak"),
]


@pytest.mark.requirement("console:layout")
@pytest.mark.parametrize("look", LOOKS)
async def test_pages_look_as_they_did(browser: Browser, tmp_path: Path, look: str) -> None:
    _, theme, lang = look.split("-")
    different: dict[str, object] = {}
    async with hosting(tmp_path) as host, visiting(browser, host, size=LOOKS[look], theme=theme, lang=lang) as visit:
        await visit.page.route("**/v1/plugins", _hide_checkout)
        for path in PAGES[theme == "dark" :: 2]:
            await visit.go(path)
            await visit.page.evaluate(HIDE)
            seen = await visit.page.screenshot(animations="disabled", caret="hide")
            name = path.strip("/").translate(str.maketrans("/?=", "___"))
            different |= await compare_picture(visit.page, seen, f"{name}-{look}")
    assert different == {}


async def _hide_checkout(route: Route) -> None:
    """Cards say which file to write, by its whole path: make it the same in every checkout."""
    response = await route.fetch()
    body = re.sub(rf"{ROOT}(/plugins/\w+/config\.env)", r"/opt/toolyard\1", await response.text())
    await route.fulfill(response=response, body=body)


@pytest.mark.requirement("craft:style-page")
@pytest.mark.skipif(not shutil.which("npm"), reason="the page of all components is built for this: with Node")
async def test_every_component_looks_as_it_did_in_both_themes_both_languages_and_three_widths(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    has_packages = (SOURCES / "node_modules").is_dir()
    folder: Path = SOURCES if has_packages else request.getfixturevalue("installed")
    run_npm(folder, "run", "style", "--", "--outDir", str(tmp_path), "--emptyOutDir")
    different: dict[str, object] = {}
    for theme, lang in (("light", "en"), ("dark", "zh")):
        for width, height in (DESKTOP, TABLET, PHONE):
            context = await browser.new_context(
                viewport={"width": width, "height": height}, reduced_motion="reduce", timezone_id=ZONE
            )
            page = await context.new_page()
            await page.clock.set_fixed_time("2026-05-04T10:00:00Z")
            await page.route("http://style.test/**", lambda route: _serve_built(route, tmp_path))
            await page.goto(f"http://style.test/style.html?theme={theme}&lang={lang}")
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert await access_faults(page) == []
            if (name := f"style-{theme}-{lang}-{width}") in STYLES:
                seen = await page.screenshot(animations="disabled", caret="hide", full_page=True)
                different |= await compare_picture(page, seen, name)
            await context.close()
    assert different == {}


async def _serve_built(route: Route, folder: Path) -> None:
    if route.request.url.endswith("/console/messages.zh.json"):
        await route.fulfill(json={row.get("code", text): row.get("zh", text) for text, row in read_catalogue().items()})
        return
    file = folder / route.request.url.removeprefix("http://style.test/").split("?")[0]
    await (route.fulfill(path=file) if file.is_file() else route.fulfill(status=404))


async def compare_picture(page: Page, seen: bytes, name: str) -> dict[str, object]:
    """Return by how much what is seen differs from what was kept, if that is too much; or keep it then."""
    kept = KEPT / f"{name}.png"
    if NEW and not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(seen)
        return {}
    pair = [base64.b64encode(one).decode() for one in (kept.read_bytes(), seen)]
    share = await page.evaluate((Path(__file__).parent / "pictures.js").read_text(), pair)
    if isinstance(share, float | int) and share <= DIFFERENT:
        return {}
    if NEW:
        kept.write_bytes(seen)
        return {}
    return {kept.name: share}
