"""Statistics of calls: their number, ends, errors and durations, per tool. Of at most ``MAX_CALLS``, and they say so.

A call that was stopped, or that nobody allowed, is no error of its tool: it counts as cancelled.
"""

from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from toolyard.engine.history.journal import STOPPED
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.call_record import CALL, CallRecord, CallState
from toolyard.protocol.store import PageCursor, Query, Store

MAX_CALLS: Final = 10_000
_PAGE = 500
_SLOW = 10


@dataclass(slots=True)
class _Tool:
    times: list[float] = field(default_factory=list)
    calls: int = 0
    errors: int = 0
    cancelled: int = 0


async def compute_statistics(store: Store, *, since: float, caller: str | None) -> JsonObject:
    """Compute statistics of the newest ``MAX_CALLS`` calls since then, of one ``caller`` or of all.

    ``is_capped``: there are more, and ``counted_since`` is later than ``since``.
    """
    states, codes = Counter[str](), Counter[str]()
    tools: dict[str, _Tool] = {}
    slow: list[CallRecord] = []
    after: PageCursor | None = None
    query = Query(since=since, caller=caller)
    while sum(states.values()) < MAX_CALLS:
        records = await store.find(CALL, query, limit=_PAGE, after=after)
        calls = [CallRecord.from_record(record) for record in records]
        for call in calls:
            stopped = call.reason in STOPPED
            states[CallState.CANCELLED.value if stopped else call.state.value] += 1
            code = "" if stopped else call.error_code
            codes.update([code] if code else [])
            tool = tools.setdefault(call.tool, _Tool())
            tool.calls += 1
            tool.errors += bool(code)
            tool.cancelled += stopped
            tool.times += [] if call.time_ms is None else [call.time_ms]
        slow = nlargest(_SLOW, (call for call in (*slow, *calls) if call.time_ms is not None), key=_time_ms)
        if len(calls) < _PAGE:
            after = None
            break
        after = PageCursor(at=calls[-1].started, id=calls[-1].id)
    is_capped = after is not None and bool(await store.find(CALL, query, limit=1, after=after))
    by_tool = sorted(tools.items(), key=lambda item: (-item[1].calls, item[0]))
    errors: list[Json] = [{"code": code, "count": count} for code, count in codes.most_common()]
    return {
        "since": since, "counted_since": after.at if is_capped and after else since, "is_capped": is_capped,
        "total": sum(states.values()), "by_state": dict(states), "errors": errors,
        "by_tool": [_tool_to_json(name, tool) for name, tool in by_tool], "slow": [call.to_json() for call in slow],
    }  # fmt: skip


def _tool_to_json(name: str, tool: _Tool) -> JsonObject:
    times = sorted(tool.times)
    middle, longest = (times[len(times) // 2], times[-1]) if times else (None, None)
    return {
        "tool": name, "calls": tool.calls, "errors": tool.errors, "cancelled": tool.cancelled,
        "p50_ms": middle, "max_ms": longest,
    }  # fmt: skip


def _time_ms(call: CallRecord) -> float:
    return call.time_ms or 0.0
