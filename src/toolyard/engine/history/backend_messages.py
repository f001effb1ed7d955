"""Back-end messages: one ``backend_only`` message for every finished call, failures included (seed 004).

A message is built when the call ends, because it holds more than the journal: complete texts before and after.
It is stored together with the ``call.finished`` event, so a reader of that event finds the message. A call that
was cut off with its host has none and gets one that says so. Known secrets are masked. A message over ``MAX_BYTES``
loses its largest fields and names them in ``data.cut``. Kept as long as calls are.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_URL, uuid4, uuid5

from toolyard.dialects.backend_message import encode
from toolyard.engine.clock import Clock
from toolyard.engine.history.stored_events import GAP, read_feed
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Event, Record, Store
from toolyard.protocol.tool import Outcome, ToolCall

KIND: Final = "backend"
KEPT: Final = "kept"
MAX_BYTES: Final = 2**20
_FINISHED = "call.finished"


@dataclass(frozen=True, slots=True)
class BackendMessage:
    """A message of the stream; ``seq`` is the cursor to resume from. Without a ``body`` it is a gap."""

    seq: int
    body: JsonObject | None


def build_record(call: ToolCall, outcome: Outcome, at: float, mask: Mask) -> Record:
    """Return the record of the message of a call that has ended."""
    masked = mask.json(_to_storable(encode(call, outcome, uuid=str(uuid4())), call, outcome))
    body = masked if isinstance(masked, dict) else {}
    return Record(kind=KIND, id=call.id, state=KEPT, created=at, updated=at, tool=call.tool, body=body)


class BackendStream:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def newest_cursor(self) -> int:
        """Return the cursor from which only future messages follow."""
        return (await self._store.event_span())[1]

    async def messages(
        self, after: int, *, caller: str | None = None, follow: bool = True
    ) -> AsyncGenerator[BackendMessage, None]:
        """Yield the messages after a cursor, of one caller or of all; without ``follow`` only existing ones."""
        async for event in read_feed(self._store, self._clock, after, follow=follow):
            if event.type == GAP:
                yield BackendMessage(event.seq, None)
            elif event.type == _FINISHED and caller in (None, event.data.get("caller")):
                yield BackendMessage(event.seq, await self._read_body(event))

    async def _read_body(self, event: Event) -> JsonObject:
        id_ = str(event.data.get("id"))
        record = await self._store.get(KIND, id_)
        return record.body if record is not None else _lost_message(id_, event)


def _to_storable(message: JsonObject, call: ToolCall, outcome: Outcome) -> JsonObject:
    """Return the message if it is valid JSON and fits; else an error message: a failed call may hold any input."""
    problem = json_problem(message, "the message") if outcome.envelope.error else None
    if problem is None:
        try:
            return limit_size(message)
        except (TypeError, ValueError) as error:  # a path of the system that is no text
            problem = json_problem(message, "the message") or f"the message cannot be written: {error}"
    return message | {"tool_name": _replace_surrogates(call.tool), "data": f"Error: INVALID_PARAM: {problem}"}


def limit_size(message: JsonObject) -> JsonObject:
    """Drop the largest fields until the message fits; their names go to ``data.cut``."""
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


def _replace_surrogates(text: str) -> str:
    return text.encode(errors="replace").decode()


def _lost_message(id_: str, event: Event) -> JsonObject:
    """Build the message of a call that has none, such as one whose host died."""
    error = event.data.get("error")
    fault = error if isinstance(error, dict) else {"code": "EXECUTION_ERROR", "message": "its result is not kept"}
    return {
        "type": "backend_only",
        "tool_name": str(event.data.get("tool", "")),
        "tool_use_id": id_,
        "uuid": str(uuid5(NAMESPACE_URL, f"toolyard:{id_}")),
        "data": f"Error: {fault.get('code')}: {fault.get('message')}",
    }
