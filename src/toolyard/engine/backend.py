"""What a back end hears: one ``backend_only`` message for every call that has ended, failures included (seed 004).

A message is made when the call ends, because it has more than the journal keeps: texts before and after, whole.
It is stored together with the event that tells of the end, so whoever sees that event finds the message. A call that
was cut off with its host has none and gets one that says so. Known secrets are masked. A message over ``MAX_BYTES``
loses its largest fields and names them in ``data.cut``. Kept as long as calls are.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_URL, uuid4, uuid5

from toolyard.dialects.backend import encode
from toolyard.engine.clock import Clock
from toolyard.engine.feed import GAP, feed
from toolyard.engine.journal import Journal
from toolyard.engine.masking import Mask
from toolyard.protocol.call import ToolCall
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.store import Event, Record, Store

KIND: Final = "backend"
KEPT: Final = "kept"
MAX_BYTES: Final = 2**20
_FINISHED = "call.finished"


@dataclass(frozen=True, slots=True)
class Message:
    """``seq`` is the cursor to go on from; without a ``body`` it is a gap: what was before it is forgotten."""

    seq: int
    body: JsonObject | None


class BackendRecorder:
    """Lets ``journal`` keep the message of a call with the call itself."""

    def __init__(self, journal: Journal, clock: Clock, *, mask: Mask) -> None:
        self._journal, self._clock, self._mask = journal, clock, mask

    @property
    def straight(self) -> bool:
        return self._journal.straight

    async def started(self, call: ToolCall) -> None:
        await self._journal.started(call)

    async def confirm(self, call: ToolCall) -> None:
        await self._journal.confirm(call)

    async def finished(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        now = self._clock.now().timestamp()
        masked = self._mask.json(_storable(encode(call, outcome, uuid=str(uuid4())), call, outcome))
        body = masked if isinstance(masked, dict) else {}
        record = Record(kind=KIND, id=call.id, state=KEPT, created=now, updated=now, tool=call.tool, body=body)
        return await self._journal.finished(call, outcome, also=[record])


class BackendStream:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def newest(self) -> int:
        """The cursor of whoever wants only what comes."""
        return (await self._store.event_span())[1]

    async def messages(
        self, after: int, *, caller: str | None = None, follow: bool = True
    ) -> AsyncGenerator[Message, None]:
        """What follows the cursor, each once and in order, of one caller or of all; without ``follow`` until now."""
        async for event in feed(self._store, self._clock, after, follow=follow):
            if event.type == GAP:
                yield Message(event.seq, None)
            elif event.type == _FINISHED and caller in (None, event.data.get("caller")):
                yield Message(event.seq, await self._body(event))

    async def _body(self, event: Event) -> JsonObject:
        id_ = str(event.data.get("id"))
        record = await self._store.get(KIND, id_)
        return record.body if record is not None else _lost(id_, event)


def _storable(message: JsonObject, call: ToolCall, outcome: Outcome) -> JsonObject:
    """The message, if it is JSON and fits: a failed call may hold anything that its caller sent."""
    problem = json_problem(message, "the message") if outcome.envelope.error else None
    if problem is None:
        try:
            return bounded(message)
        except (TypeError, ValueError) as error:  # a path of the system that is no text
            problem = json_problem(message, "the message") or f"the message cannot be written: {error}"
    return message | {"tool_name": _plain(call.tool), "data": f"Error: INVALID_PARAM: {problem}"}


def bounded(message: JsonObject) -> JsonObject:
    """A message that fits; what was cut is named."""
    data, cut = message.get("data"), list[Json]()
    while len(json_bytes(message)) > MAX_BYTES:
        if not isinstance(data, dict) or not data:
            return {**message, "data": {"cut": ["data"]}}
        sizes = {key: len(json_bytes(value)) for key, value in data.items()}
        largest = max(sizes, key=lambda key: sizes[key])
        cut.append(largest)
        data = {key: value for key, value in data.items() if key != largest}
        message = {**message, "data": {**data, "cut": cut}}
    return message


def _plain(text: str) -> str:
    return text.encode(errors="replace").decode()


def _lost(id_: str, event: Event) -> JsonObject:
    """The message of a call that nobody could make one for."""
    error = event.data.get("error")
    told = error if isinstance(error, dict) else {"code": "EXECUTION_ERROR", "message": "its result is not kept"}
    return {
        "type": "backend_only",
        "tool_name": str(event.data.get("tool", "")),
        "tool_use_id": id_,
        "uuid": str(uuid5(NAMESPACE_URL, f"toolyard:{id_}")),
        "data": f"Error: {told.get('code')}: {told.get('message')}",
    }
