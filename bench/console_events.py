"""The console under events: written straight to the state that the server follows, as calls that begin and end.

So the figures are those of the page and of what brings events to it, not of how many calls the machine can run: a call
has two events, so 250 calls/s are 500 events/s.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from playwright.async_api import Browser, CDPSession, Page, expect

from tests.console.hosting import Host
from tests.console.seeding import stored
from tests.console.visit import visiting
from toolyard.engine.ownership import identify_process
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import CALL, CallState
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage.sqlite import SqliteStore

FAST: Final = 500  # events/s
STEADY: Final = 20
BURST_S = 10.0
_TICK_S = 0.1
_HERE = identify_process().name  # else the server would take them for calls that somebody left behind
_LISTEN = """() => { window.latencies = []; document.activeElement.addEventListener('keydown', (event) => {
  const at = event.timeStamp; requestAnimationFrame(() => latencies.push(performance.now() - at)); }); }"""


@dataclass(frozen=True, slots=True)
class Load:
    rate: float  # events/s that were really written
    longest_ms: float
    median_ms: float
    behind_s: float  # until the last of them was shown


async def burst(browser: Browser, host: Host) -> Load:
    """While a person types into a field of the page that shows the calls."""
    async with visiting(browser, host) as visit, stored(host.home) as store:
        await visit.go("/activity")
        await visit.page.locator("[data-search]").first.focus()
        await visit.page.evaluate(_LISTEN)
        writing = asyncio.create_task(_written(store, FAST, BURST_S))
        while not writing.done():
            await visit.page.keyboard.press("Shift")
            await asyncio.sleep(0.1)
        rate, last = await writing
        ended = time.monotonic()
        await _wait_for_row(visit.page, last)
        behind = time.monotonic() - ended
        latencies: list[float] = await visit.page.evaluate("window.latencies")
        return Load(rate, max(latencies), statistics.median(latencies), behind)


async def grown_mb(browser: Browser, host: Host, minutes: float) -> float:
    """What the page holds more than after its first seconds, when nothing of it is new any more."""
    async with visiting(browser, host) as visit, stored(host.home) as store:
        await visit.go("/activity")
        inside = await visit.context.new_cdp_session(visit.page)
        await _written(store, STEADY, 5)
        before = await _heap(inside)
        _, last = await _written(store, STEADY, minutes * 60)
        await _wait_for_row(visit.page, last)
        return (await _heap(inside) - before) / 2**20


async def _written(store: SqliteStore, rate: int, seconds: float) -> tuple[float, str]:
    """Calls that begin, and end one tick later; how many events a second that was, and what the last call says."""
    each = max(1, round(rate * _TICK_S / 2))
    began = due = time.monotonic()
    running: list[Record] = []
    events, last = 0, ""
    while due - began < seconds:
        made = [_call(f"burst {uuid4().hex[:12]}") for _ in range(each)]
        ended = [_over(one) for one in running]
        told = [_event("call.finished", one) for one in ended] + [_event("call.started", one) for one in made]
        await store.commit([*ended, *made], told, lasting=False)
        events, running, last = events + len(told), made, made[-1].tool
        due += each * 2 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    ended = [_over(one) for one in running]
    await store.commit(ended, [_event("call.finished", one) for one in ended], lasting=False)
    return (events + len(ended)) / (time.monotonic() - began), last


def _call(tool: str) -> Record:
    now = time.time()
    body: JsonObject = {
        "arguments": {"path": "."},
        "origin": "http",
        "maid": None,
        "chat": None,
        "text": "Listed.",
        "time_ms": 1.5,
    }
    return Record(
        kind=CALL, id=f"call_{uuid4().hex}", state=CallState.RUNNING, created=now, updated=now,
        caller="key:owner", tool=tool, owner=_HERE, text=tool, body={**body, "reason": None, "error": None},
    )  # fmt: skip


def _over(call: Record) -> Record:
    return replace(call, state="success", version=1, updated=time.time(), owner="")


def _event(type_: str, call: Record) -> NewEvent:
    data: JsonObject = {"id": call.id, "tool": call.tool, "caller": call.caller, "state": call.state, "origin": "http"}
    return NewEvent(type=type_, at=call.updated, data=data)


async def _wait_for_row(page: Page, tool: str) -> None:
    row = page.locator("[data-row]", has_text=tool)
    await expect(row.first).to_contain_text("success")


async def _heap(inside: CDPSession) -> float:
    await inside.send("HeapProfiler.collectGarbage")
    used = await inside.send("Runtime.getHeapUsage")
    return float(used["usedSize"])
