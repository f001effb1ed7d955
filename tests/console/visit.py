"""A person's visit to the console in a real browser: what they see, and whatever went wrong meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, Response, expect

from tests.console.hosting import ZONE, Host

DESKTOP: Final = (1440, 900)
TABLET: Final = (1024, 768)
PHONE: Final = (390, 844)
PATIENCE_MS: Final = 60_000
# A diagram has three seconds, and what draws it twenty to load: bounds for people, which a busy machine may break.
_UNHURRIED: Final = """if (self === top) {
  const real = window.setTimeout, longer = { 3000: 60000, 20000: 120000 };
  window.setTimeout = (run, after, ...given) => real(run, longer[after] ?? after, ...given);
}"""
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Visit:
    page: Page
    context: BrowserContext
    host: Host
    faults: list[str] = field(default_factory=list)  # errors on the console, exceptions, dialogs, foreign requests
    allowed: list[str] = field(default_factory=list)  # parts of faults that a test expects

    async def go(self, path: str) -> None:
        await self.page.goto(self.host.url + path)
        await self.settle()

    async def settle(self) -> None:
        """Until nothing loads any more: no skeleton on the page."""
        await self.page.wait_for_selector("main", timeout=PATIENCE_MS)
        await expect(self.page.locator(".skeleton")).to_have_count(0, timeout=PATIENCE_MS)
        await self.page.evaluate("document.fonts.ready")

    def wrong(self) -> list[str]:
        return [fault for fault in self.faults if not any(part in fault for part in self.allowed)]

    def watch(self, page: Page) -> None:
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("response", self._response)

    def _note_console(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.faults.append(f"console: {said.text}")

    async def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _request(self, request: Request) -> None:
        own = (self.host.url, self.host.url.replace("http", "ws"), "data:", "blob:", "about:")
        if not request.url.startswith(own):
            self.faults.append(f"foreign request: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.faults.append(f"response {response.status}: {response.url}")


@asynccontextmanager
async def visiting(
    browser: Browser,
    host: Host,
    *,
    size: tuple[int, int] = DESKTOP,
    theme: str = "light",
    lang: str = "en",
    signed_in: bool = True,
    hurried: bool = False,
) -> AsyncIterator[Visit]:
    context = await browser.new_context(
        base_url=host.url,
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        locale="zh-CN" if lang == "zh" else "en-US",
        timezone_id=ZONE,
        reduced_motion="reduce",
        has_touch=size == PHONE,
        permissions=["clipboard-read", "clipboard-write"],
    )
    try:
        context.set_default_timeout(PATIENCE_MS)
        await context.add_init_script(
            f"if (self === top) {{ localStorage.setItem('toolyard.theme', '{theme}');"
            f" localStorage.setItem('toolyard.lang', '{lang}'); }}"
        )
        if not hurried:
            await context.add_init_script(_UNHURRIED)
        if signed_in:
            await context.request.post(f"{host.url}/login", form={"key": host.key})
        page = await context.new_page()
        visit = Visit(page, context, host)
        visit.watch(page)
        yield visit
    finally:
        await context.close()
