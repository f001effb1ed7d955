"""A turn whose client wants the answer in one piece.

With one round and nothing to hide the client gets the provider's own bytes. Else the texts of all rounds stand
together in the message, and the usage is that of all rounds.
"""

import orjson

from toolyard.gateway.chunks import added, text_of
from toolyard.gateway.faults import ChatFailed, ChatFault, unreadable
from toolyard.gateway.interruption import Interrupted
from toolyard.gateway.shown import limit_note, work_text
from toolyard.gateway.turn import MAX_ROUNDS, Turn
from toolyard.gateway.view import View
from toolyard.protocol.json import JsonObject


async def whole_answer(turn: Turn) -> bytes:
    """The answer as JSON. Raises ChatFailed."""
    told = _Told(turn)
    try:
        while (answer := await told.round()) is None:
            pass
        return answer
    except ChatFailed as failed:
        turn.failed(failed)
        raise
    except Interrupted:
        await turn.stop_work()
        turn.record.failed("interrupted")
        return told.interrupted()
    finally:
        turn.close()


class _Told:
    """The answer so far."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._name = turn, turn.upstream_name
        self._first: JsonObject = {}
        self._usage: JsonObject = {}
        self._text: list[str] = []

    async def round(self) -> bytes | None:
        """One round; the whole answer when it was the last."""
        turn = self._turn
        turn.round += 1
        with turn.interruption.stops():
            data = await turn.answer.whole()
        body = _body(self._name, data)
        self._first = self._first or body
        usage = body.get("usage")
        self._usage = added(self._usage, usage if isinstance(usage, dict) else {})
        choice, message = _choice(body)
        if not turn.ask.looks or message is None:
            return data if turn.round == 1 else self._together(body, choice, {}, None)
        text = text_of(message.get("content"))
        view = View(hides=turn.ask.show.hides_requests, nonce=turn.ask.nonce)
        shown = view.whole(text)
        calls = message.get("tool_calls")
        listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        jobs = turn.jobs(view, listed, choice.get("finish_reason"), text)
        if not jobs:
            same = turn.round == 1 and shown == text
            self._text.append(shown)
            return data if same else self._together(body, choice, message, None)
        self._text.append(shown)
        if turn.round > MAX_ROUNDS:
            self._text.append(limit_note(MAX_ROUNDS))
            return self._together(body, choice, {"role": "assistant"}, "length")
        results = await turn.work(jobs)
        self._text.append(work_text(turn.ask.show, results, "".join(self._text[-2:])))
        if all(job.forgets for job in jobs):
            return self._together(body, choice, message, None)  # with calls of the client's own tools, if it has any
        await turn.again(message | {"content": text}, listed, results)
        return None

    def interrupted(self) -> bytes:
        first = self._first or (self._turn.head.stamp({}) | {"object": "chat.completion"})
        made = self._together(first, {"index": 0}, {"role": "assistant", "content": ""}, "stop")
        return orjson.dumps(orjson.loads(made) | {"toolyard": {"type": "interrupted"}})

    def _together(self, last: JsonObject, choice: JsonObject, message: JsonObject, finish: str | None) -> bytes:
        identity = {key: self._first[key] for key in ("id", "created", "model") if key in self._first}
        text = "".join(self._text)
        message = message | {"content": text if text or message.get("content") is not None else None}
        made = choice | {"message": message, "finish_reason": finish or choice.get("finish_reason")}
        usage: JsonObject = {"usage": self._usage} if self._usage else {}
        return orjson.dumps(last | identity | {"choices": [made]} | usage)


def _body(name: str, data: bytes) -> JsonObject:
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise unreadable(name, "sent something that is no chat completion", data) from error
    if not isinstance(body, dict):
        raise unreadable(name, "sent something that is no chat completion", data)
    if fault := body.get("error"):
        own = fault if isinstance(fault, dict) else {}
        raise ChatFailed(
            ChatFault(status=502, message=str(own.get("message") or fault)[:2000], code="upstream_error", own=own)
        )
    if "choices" not in body:
        raise unreadable(name, "sent something that is no chat completion", data)
    return body


def _choice(body: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    return (choice if isinstance(choice, dict) else {}), (message if isinstance(message, dict) else None)
