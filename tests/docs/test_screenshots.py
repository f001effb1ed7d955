"""The pictures of the documentation: none is missing, none is left over, and they show the console as it is.

What they show is compared in the soak, because fonts and browsers differ a little from machine to machine.
``TOOLYARD_NEW_PICTURES=1`` keeps what is seen now where it differs visibly: look at it before you commit it.
"""

import base64
import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from tests.docs.screenshots import ANIMATION, ANIMATION_BYTES, PICTURES, take_pictures

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
NEW = "TOOLYARD_NEW_PICTURES" in os.environ
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
DIFFERENT = 0.01  # times, ids and durations differ from run to run: up to half as much
_DECODE = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const decoder = new ImageDecoder({ data: bytes, type: 'image/webp' });
  await decoder.tracks.ready;
  await decoder.completed;
  const frames = [];
  for (let at = 0; at < decoder.tracks.selectedTrack.frameCount; at++) {
    const { image } = await decoder.decode({ frameIndex: at });
    const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const png = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
    let text = '';
    for (const byte of png) text += String.fromCharCode(byte);
    frames.push(btoa(text));
    image.close();
  }
  return frames;
}"""

pytestmark = pytest.mark.requirement("docs:pictures")


async def _open_empty_page(browser: Browser) -> Page:
    """A page of a secure origin, which alone may decode pictures frame by frame. No server is asked for it."""
    page = await browser.new_page()
    await page.route("https://pictures.test/", lambda route: route.fulfill(body="", content_type="text/html"))
    await page.goto("https://pictures.test/")
    return page


def test_every_picture_of_the_pages_is_taken_by_the_suite_and_every_taken_one_is_on_a_page() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r"!\[[^\]]*\]\(([^):]+)\)", page.read_text("utf-8"))
    }
    kept = {file.resolve() for file in IMAGES.iterdir()}
    assert {file.name for file in kept} == {*PICTURES, ANIMATION}
    assert sorted(map(str, shown ^ kept)) == []


def test_the_animation_of_the_readme_is_small() -> None:
    assert (IMAGES / ANIMATION).stat().st_size < ANIMATION_BYTES


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.skipif(not SOAK and not NEW, reason="pictures depend on fonts and browser: compared in the soak")
async def test_the_pictures_show_the_console_as_it_is(browser: Browser, tmp_path: Path) -> None:
    page = await _open_empty_page(browser)
    different: dict[str, object] = {}
    for name, seen in (await take_pictures(browser, tmp_path)).items():
        kept = IMAGES / name
        found = await _find_differences(page, kept.read_bytes(), seen) if kept.exists() else {0: "it is missing"}
        if found and NEW:
            kept.write_bytes(seen)
        elif found:
            different[name] = found
    await page.close()
    assert different == {}


async def _find_differences(page: Page, kept: bytes, seen: bytes) -> dict[int, object]:
    """Return the frames that differ visibly, each with the share of its pixels."""
    compare = (ROOT / "tests/console/pictures.js").read_text()
    pair = [base64.b64encode(one).decode() for one in (kept, seen)]
    is_animation = kept.startswith(b"RIFF")
    left, right = [await page.evaluate(_DECODE, one) for one in pair] if is_animation else [[one] for one in pair]
    if len(left) != len(right):
        return {len(left): f"{len(right)} frames"}
    shares = [await page.evaluate(compare, list(frames)) for frames in zip(left, right, strict=True)]
    return {
        number: share for number, share in enumerate(shares) if not isinstance(share, float | int) or share > DIFFERENT
    }


@pytest.mark.asyncio(loop_scope="session")
async def test_a_browser_plays_the_animation(browser: Browser) -> None:
    page = await _open_empty_page(browser)
    frames = await page.evaluate(_DECODE, base64.b64encode((IMAGES / ANIMATION).read_bytes()).decode())
    await page.close()
    assert len(frames) == len(set(frames)) == 4
