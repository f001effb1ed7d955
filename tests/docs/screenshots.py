"""Every picture of the documentation: the console as it is now, with a server that has data, in a real browser.

``test_screenshots.py`` takes them in the soak and compares them with ``docs/images``; with ``TOOLYARD_NEW_PICTURES=1``
it keeps them.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, expect

from tests.console.hosting import Host, fill, hosting
from tests.console.talking import Talking, ended, say, talking
from tests.console.visit import DESKTOP, PHONE, Visit, visiting
from tests.docs.animation import Frame, encode_animation
from tests.gateway.upstream import Script
from toolyard.protocol.requests.scanner import format_request

Steps = Callable[[Visit], Awaitable[None]]
ANIMATION: Final = "toolyard.webp"
ANIMATION_SIZE: Final = (1200, 750)
ANIMATION_BYTES: Final = 500_000
_QUALITY: Final = 0.8
# A canvas of the browser encodes WebP; without transparency it is one chunk of lossy pixels.
_TO_WEBP: Final = """async ([data, quality]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d', { alpha: false }).drawImage(image, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/webp', quality })).arrayBuffer());
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""
QUESTION: Final = "report.py prints a total that is too low. Find the bug and fix it."
_OLD: Final = 'float(row["price"])'
_NEW: Final = 'float(row["price"]) * int(row["quantity"])'
_REPORT: Final = f"""import csv

with open("sales.csv") as file:
    rows = list(csv.DictReader(file))

total = sum({_OLD} for row in rows)
print(f"Total: {{total:.2f}}")
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page of the console after some steps."""

    steps: Steps
    size: tuple[int, int] = DESKTOP
    theme: str = "light"


async def _ask(visit: Visit, text: str) -> None:
    await visit.page.get_by_role("textbox", name="Message").fill(text)
    await visit.page.get_by_role("button", name="Send").click()  # Enter makes a new line on a phone


async def _show_chat(visit: Visit) -> None:
    await visit.go("/chat")
    await _ask(visit, "Show me a structured reply with a diagram and a formula.")
    await visit.page.get_by_text("tokens").first.wait_for()
    await visit.page.locator(".rendered .pending").first.wait_for(state="detached")
    drawing = visit.page.locator(".rendered svg[viewBox]:not(.icon)").first
    await drawing.scroll_into_view_if_needed()
    await visit.page.locator(".katex").first.wait_for()
    await visit.page.mouse.move(900, 400)
    await visit.page.mouse.wheel(0, 160)


async def _show_tool(visit: Visit) -> None:
    await visit.go("/tools/Plotter")
    await visit.page.get_by_role("textbox", name="functions").fill("sin(x); x^2/10")
    await visit.page.get_by_role("button", name="Run").first.click()
    await expect(visit.page.locator(".tools-result img")).to_have_js_property("complete", value=True)


async def _show_activity(visit: Visit) -> None:
    calls = await visit.host.api("GET", "/v1/calls?tool=Edit")
    await visit.go(f"/activity?call={calls['data'][0]['id']}&tab=patch")


async def _show_approval(visit: Visit) -> None:
    await visit.go("/chat")
    await _ask(visit, "Write a file, please.")
    await visit.page.locator(".badge:visible").first.wait_for()
    await visit.go("/approvals")
    await expect(visit.page.get_by_role("button", name="Allow once", disabled=False)).to_have_count(1)


PICTURES: Final = {
    "console-chat.png": Picture(_show_chat),
    "console-tool.png": Picture(_show_tool),
    "console-activity.png": Picture(_show_activity, theme="dark"),
    "console-approval.png": Picture(_show_approval, size=PHONE),
}


async def take_pictures(browser: Browser, folder: Path) -> dict[str, bytes]:
    """Return every picture by its name; ``folder`` is for the servers."""
    async with hosting(folder / "console") as host:
        await fill(host)
        taken = {name: await _take(browser, host, picture) for name, picture in PICTURES.items()}
    return taken | {ANIMATION: await _take_animation(browser, folder / "animation")}


async def _take(browser: Browser, host: Host, picture: Picture) -> bytes:
    async with visiting(browser, host, size=picture.size, theme=picture.theme) as visit:
        await picture.steps(visit)
        await visit.settle()
        return await visit.page.screenshot(animations="disabled", caret="hide")


async def _take_animation(browser: Browser, folder: Path) -> bytes:
    """A question, a tool that reads, an approval of a change, the answer, and the change with its undo."""
    shots: list[tuple[bytes, int]] = []
    async with talking(folder) as chat, visiting(browser, chat.host, size=ANIMATION_SIZE) as visit:
        _write_script(chat)

        async def shoot(milliseconds: int) -> None:
            await visit.settle()
            shots.append((await visit.page.screenshot(animations="disabled", caret="hide"), milliseconds))

        page = visit.page
        await visit.go("/chat")
        await page.get_by_label("Message", exact=True).fill(QUESTION)
        await shoot(1800)
        await page.get_by_label("Message", exact=True).fill("")
        reply = await say(visit, QUESTION)
        await expect(page.get_by_role("button", name="Allow once", disabled=False)).to_have_count(1)
        await shoot(3000)
        await page.get_by_role("button", name="Allow once").click()
        await ended(reply)
        await shoot(3000)
        calls = await visit.host.api("GET", "/v1/calls?tool=Edit")
        await visit.go(f"/activity?call={calls['data'][0]['id']}&tab=patch")
        await shoot(3000)
    page = await browser.new_page()
    try:
        frames = [Frame(await _to_webp(page, shot), milliseconds) for shot, milliseconds in shots]
    finally:
        await page.close()
    return encode_animation(frames, *ANIMATION_SIZE)


def _write_script(chat: Talking) -> None:
    (chat.host.project / "report.py").write_text(_REPORT)
    models = b'{"object": "list", "data": [{"id": "your-model", "object": "model"}]}'
    chat.provider.models = Script([models], kind="application/json")
    edit = {"path": "report.py", "old_string": _OLD, "new_string": _NEW}
    chat.answers(
        QUESTION,
        f"Let me read it.\n{format_request('Read', {'path': 'report.py'})}",
        f"It adds up the prices and forgets the quantities.\n{format_request('Edit', edit)}",
        "Fixed: each price is now multiplied by its quantity.",
    )


async def _to_webp(page: Page, png: bytes) -> bytes:
    return base64.b64decode(await page.evaluate(_TO_WEBP, [base64.b64encode(png).decode(), _QUALITY]))
