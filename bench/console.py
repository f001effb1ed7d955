"""The console in a real Chromium: how heavy it is, how soon it can be used on a slow machine, in a chat, under load.

The limits are those of its design; each is printed with how much of it is used. The server and the browser share the
machine with the measurement. Memory is looked at for half a minute, or for as long as
``python -m bench.console --minutes 10`` says.
"""

import argparse
import asyncio
import gzip
import json
import statistics
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from bench import console_chat, console_events, console_walk
from tests.console.browsers import QUIET, chromium
from tests.console.hosting import Host, fill
from tests.console.talking import talking
from tests.console.visit import visiting

BUILT = Path(__file__).parent.parent / "src" / "toolyard" / "web" / "console"
# What people come for: there, a page can be used.
WANTED = {"/chat": "textarea", "/tools": ".tools-card", "/activity": "main [data-row]", "/approvals": ".apr .empty"}
_TELL = """(wanted) => new MutationObserver((_, watch) => {
  if (!document.querySelector(wanted)) return;
  watch.disconnect();
  requestAnimationFrame(() => setTimeout(tellPainted));
}).observe(document, { childList: true, subtree: true })"""
SLOWER = 4  # times
ROUNDS = 5
MINUTES = 0.5


def main(minutes: float = MINUTES) -> None:
    pages: dict[str, list[str]] = json.loads((BUILT / "build.json").read_text())["pages"]
    sizes = {
        page: sum(len(gzip.compress((BUILT / name).read_bytes(), 6)) for name in names) / 1000
        for page, names in pages.items()
    }
    heaviest = max(sizes, key=lambda page: sizes[page])
    _row(f"script of the first load of the heaviest page, {heaviest}, kB packed", sizes[heaviest], 100)
    asyncio.run(_measure(minutes))


async def _measure(minutes: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with talking(Path(folder)) as chat, async_playwright() as driver:
            host = chat.host
            await fill(host)
            browser = await driver.chromium.launch(executable_path=chromium(), args=list(QUIET))
            for page in WANTED:
                _row(
                    f"{page} usable after, s, processor {SLOWER} times slower", await _usable_s(browser, host, page), 1
                )
            _row("longest task of a walk through the pages, ms", await console_walk.longest_task_ms(browser, host), 100)
            stops = await console_chat.stops_ms(browser, chat, ROUNDS)
            _row(f"from Stop to a stopped reply, ms, longest of {ROUNDS}", max(stops), 300)
            frames, slowest = await console_chat.scrolled(browser, host)
            _row(f"frames/s while scrolling {console_chat.MESSAGES} messages", frames, 50, least=True)
            print(f"  the longest frame of it: {slowest:.0f} ms")
            load = await console_events.burst(browser, host)
            _row(f"longest answer to a key with {load.rate:.0f} events/s shown, ms", load.longest_ms, 100)
            print(
                f"  half of the answers came within {load.median_ms:.0f} ms; all was shown {load.behind_s:.1f} s later"
            )
            grown = await console_events.grown_mb(browser, host, minutes)
            _row(f"memory grown in {minutes:g} minutes of {console_events.STEADY} events/s, MB", grown, 20)
            await browser.close()


async def _usable_s(browser: Browser, host: Host, path: str) -> float:
    """From the request for a page until it has what people want of it; in a chat, until a message is typed.

    The page tells when that is painted: Playwright by itself looks only every half second.
    """
    took = []
    for _ in range(ROUNDS):
        async with visiting(browser, host) as visit:
            painted = asyncio.Event()
            await visit.page.expose_function("tellPainted", painted.set)
            await visit.page.add_init_script(f"({_TELL})({json.dumps(WANTED[path])})")
            slow = await visit.context.new_cdp_session(visit.page)
            await slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            began = asyncio.get_running_loop().time()
            await visit.page.goto(host.url + path, wait_until="commit")  # a page may be usable before it has all
            await painted.wait()
            if path == "/chat":
                await visit.page.get_by_role("textbox", name="Message").fill("x")
            took.append(asyncio.get_running_loop().time() - began)
    return statistics.median(took)


def _row(what: str, value: float, limit: float, *, least: bool = False) -> None:
    used = (
        f"at least: {limit:g}, reached: {value / limit:.0%}"
        if least
        else f"limit: {limit:g}, used: {value / limit:.0%}"
    )
    print(f"{what}: {value:.1f}  ({used})")


if __name__ == "__main__":
    given = argparse.ArgumentParser(description="Measure the console.")
    given.add_argument("--minutes", type=float, default=MINUTES, help="how long memory is looked at")
    main(given.parse_args().minutes)
