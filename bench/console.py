"""The console in a real Chromium: how heavy it is, how soon it can be used on a slow machine, and under load.

The limits are those of its design; each is printed with how much of it is used. The server and the browser share the
machine with the measurement.
"""

import asyncio
import gzip
import json
import statistics
import tempfile
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, CDPSession, async_playwright

from tests.console.browsers import QUIET, chromium
from tests.console.hosting import Host, fill, hosting
from tests.console.visit import visiting

BUILT = Path(__file__).parent.parent / "src" / "toolyard" / "web" / "console"
SLOWER = 4  # times
ROUNDS = 5
BURST_S = 10
AT_ONCE = 16


def main() -> None:
    page = (BUILT / "index.html").read_text()
    names = [name for name in json.loads((BUILT / "build.json").read_text())["files"] if name in page]
    size = sum(len(gzip.compress((BUILT / name).read_bytes())) for name in names if name.endswith(".js")) / 1024
    _row("script of the first load, kB packed", size, 300)
    asyncio.run(_measure())


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with hosting(Path(folder)) as host, async_playwright() as driver:
            await fill(host)
            browser = await driver.chromium.launch(executable_path=chromium(), args=list(QUIET))
            _row(f"usable after, s, processor {SLOWER} times slower", await _usable_s(browser, host), 2)
            calls, longest, grown = await _burst(browser, host)
            _row(f"longest answer to a key with {calls / BURST_S:.0f} calls/s shown, ms", longest, 100)
            _row("memory grown by it, MB", grown, 20)
            await browser.close()


async def _usable_s(browser: Browser, host: Host) -> float:
    """From the request for the page until a message can be typed."""
    took = []
    for _ in range(ROUNDS):
        async with visiting(browser, host) as visit:
            slow = await visit.context.new_cdp_session(visit.page)
            await slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            began = asyncio.get_running_loop().time()
            await visit.page.goto(f"{host.url}/chat")
            await visit.page.get_by_role("textbox", name="Message").fill("x")
            took.append(asyncio.get_running_loop().time() - began)
    return statistics.median(took)


async def _burst(browser: Browser, host: Host) -> tuple[int, float, float]:
    """Calls as fast as the server takes them, while a person types into a field of the page that shows them."""
    async with visiting(browser, host) as visit:
        await visit.go("/activity")
        inside = await visit.context.new_cdp_session(visit.page)
        before = await _heap(inside)
        field = visit.page.locator("[data-search]").first
        await field.focus()
        await visit.page.evaluate(
            """() => { window.latencies = []; document.activeElement.addEventListener('keydown', (event) => {
            const at = event.timeStamp; requestAnimationFrame(() => latencies.push(performance.now() - at)); }); }"""
        )
        loop = asyncio.get_running_loop()
        until, made = loop.time() + BURST_S, 0

        async def call(client: aiohttp.ClientSession) -> None:
            nonlocal made
            while loop.time() < until:
                async with client.post(f"{host.url}/v1/tools/LS", json={"path": "."}) as answer:
                    await answer.read()
                made += 1

        async def press() -> None:
            while loop.time() < until:
                await visit.page.keyboard.press("Shift")
                await asyncio.sleep(0.1)

        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {host.key}"}) as client:
            await asyncio.gather(press(), *(call(client) for _ in range(AT_ONCE)))
        latencies: list[float] = await visit.page.evaluate("window.latencies")
        return made, max(latencies), (await _heap(inside) - before) / 2**20


async def _heap(inside: CDPSession) -> float:
    await inside.send("HeapProfiler.collectGarbage")
    used = await inside.send("Runtime.getHeapUsage")
    return float(used["usedSize"])


def _row(what: str, value: float, limit: float) -> None:
    print(f"{what}: {value:.1f}  (limit: {limit:g}, used: {value / limit:.0%})")
