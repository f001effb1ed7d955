"""The answer to a Responses client: events in the order that the protocol documents, or the object of them.

``ResponseWriter`` takes the events of a log in their order and writes items one after the other:

    event of the log                what it does
    any, the first of all           ``response.created``, ``response.in_progress``
    Delta with reasoning            goes on with the open reasoning item, or closes what is open and adds one
    Delta with text, refusal        the same with a message; another kind of part ends the part before
    Delta with a client's call      the same with its call: the calls of a reply come one after the other
    Delta with a native item        closes what is open; the item is added and done
    CallBegun                       closes what is open; adds an ``mcp_call``, which runs beside what follows
    CallEnded                       the ``mcp_call`` is done
    ApprovalAsked                   a line of text, in a stream; see below
    Note                            text in a message
    Ended                           closes what is open, and the response: completed, incomplete or cancelled
    Failed, Gap                     closes what is open as incomplete; an error, ``response.failed``

Every item is added at the next index, gets its parts, and is done. Only calls of ours may be open beside another item.

A client that wants to be asked (``asks_approval``) gets no ``mcp_call`` before it has ended: once every call that runs
waits for a person, each of them is an ``mcp_approval_request``, and the response is completed while the turn waits. Its
next request reads on from there (``start``).

Ids are made from that of the response, so that all who read a log get the same ones.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.faults import OVERFLOW, ChatFault
from toolyard.gateway.protocols.chat_body import as_object, objects
from toolyard.gateway.protocols.responses.input_items import LABEL, approval_of, request_id, seal_summary
from toolyard.gateway.protocols.responses.output_items import Emit, OutputWriter
from toolyard.gateway.reply.chunks import add_usage
from toolyard.gateway.turns.display import write_approvals
from toolyard.gateway.turns.turn_events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBegun,
    CallEnded,
    Delta,
    Ended,
    Ending,
    Failed,
    Gap,
    Note,
    TurnEvent,
    Usage,
)
from toolyard.gateway.turns.turn_log import TurnLog
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponseWriter:
    def __init__(
        self,
        response: JsonObject,
        *,
        emit: Emit | None = None,
        emit_text: Callable[[int, bytes, str], None] | None = None,
        now: Callable[[], float],
        on_end: Callable[[JsonObject], None] | None = None,
        namespaces: Mapping[str, tuple[str, str]],
        asks_approval: bool = False,
        compacts: bool = False,
        start: int = 0,
    ) -> None:
        """``response``: its object without output; ``on_end`` gets it whole. ``emit`` gets each event, but for most
        deltas of text: ``emit_text`` gets their numbers, fields and texts.

        ``compacts``: what the model writes is a summary, for the item ``compaction``. ``start``: the events of the log
        that earlier responses have.
        """
        self.response = response
        self.is_over = False  # nothing more comes, though the turn may go on
        self.fault: ChatFault | None = None
        self._emit_event, self._emit_delta, self._on_end, self._now = emit, emit_text, on_end, now
        self._asks_approval, self._skipped = asks_approval, start
        self._output = OutputWriter(str(response["id"]).removeprefix("resp_"), self._emit, self._emit_text, namespaces)
        self._summary = OutputWriter("", _ignore, _ignore, {}) if compacts else None
        self._sequence = 0
        self._has_begun = False
        self._running: dict[str, JsonObject] = {}  # calls of ours: what is known of them, by their ids
        self._placed: dict[str, tuple[int, str]] = {}  # the places and ids of their items
        self._asked: dict[str, str] = {}  # their approvals,
        self._unanswered: set[str] = set()  # and those of them that wait
        self._usage: JsonObject = {}

    @property
    def text(self) -> str:
        """The text of its messages so far."""
        return self._output.text

    # --- events of the log

    def take(self, event: TurnEvent) -> None:  # noqa: C901, PLR0912 one branch for each event
        if self.is_over:
            return
        if self._skipped > 0:
            self._skipped -= 1
            self._skip(event)
            if not self._skipped:
                self._begin()
            return
        self._begin()
        match event:
            case Delta(chunks):
                for chunk in chunks:
                    (self._summary or self._output).take_chunk(chunk)
            case Usage(usage):
                self._usage = add_usage(self._usage, usage)
            case CallBegun(data):
                self._begin_call(data)
            case CallEnded(data, output):
                self._end_call(data, output)
            case ApprovalAsked(approval):
                self._note_question(approval)
                if self._asks_approval:
                    self._ask_when_all_wait()
                elif self._emit_event is not None:
                    self._output.add_text(write_approvals([approval], ""))
                    self._output.close()
            case ApprovalAnswered(call_id):
                self._unanswered.discard(call_id)
            case Note(text):
                self._add_note(text)
            case Ended(ending):
                self._end(ending)
            case Failed(fault):
                self.fail(fault)
            case Gap():
                self._on_end = None  # only this reader has missed something
                self.fail(beginning_gone())
            case _:
                pass

    def add_early_note(self, text: str) -> None:
        """End the response for a client that cannot wait."""
        self._begin()
        self._add_note(text)
        self._on_end = None  # it is stored once the turn has ended
        self._complete("completed")

    def fail(self, fault: ChatFault) -> None:
        self._begin()
        self._output.close("incomplete")
        self._cut_calls()
        self.fault = fault
        error = as_object(fault.to_json()["error"])
        message, code = str(error.get("message") or fault.message), str(error.get("code") or fault.code)
        described: JsonObject = {"type": error.get("type") or fault.type, "code": code, "message": message}
        described["param"] = error.get("param")
        # The message at the top is as OpenAI documents it, the object is what its SDKs and Open Responses read.
        self._emit("error", {"code": code, "message": message, "param": error.get("param"), "error": described})
        self.response["error"] = {"code": _find_code(fault), "message": message}
        self._complete("failed")

    def _skip(self, event: TurnEvent) -> None:
        """Note which calls run when this response begins."""
        match event:
            case CallBegun(data):
                self._running[str(data["id"])] = data
            case CallEnded(data):
                self._running.pop(str(data["id"]), None)
            case ApprovalAsked(approval):
                self._note_question(approval)
            case ApprovalAnswered(call_id):
                self._unanswered.discard(call_id)
            case _:
                pass

    def _note_question(self, approval: PendingApproval) -> None:
        self._asked[approval.call_id] = approval.approval
        self._unanswered.add(approval.call_id)

    # --- the response as a whole

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.response |= {"status": "in_progress", "output": self._output.items}
            self._emit("response.created", {"response": self.response})
            self._emit("response.in_progress", {"response": self.response})

    def _end(self, ending: Ending) -> None:
        reason = _INCOMPLETE.get((self._summary or self._output).finish) if ending is Ending.DONE else None
        is_whole = ending is not Ending.INTERRUPTED and reason is None
        self._output.close("completed" if is_whole else "incomplete")
        self._cut_calls()
        if self._summary is not None and is_whole and not self._add_summary(self._summary.text):
            return
        if reason is not None:
            self.response["incomplete_details"] = {"reason": reason}
        self._complete("completed" if is_whole else "incomplete" if reason else "cancelled")

    def _add_summary(self, text: str) -> bool:
        """Add the summary that the model wrote; fail when there is none."""
        if not text.strip():
            self.fail(_no_summary())
            return False
        item: JsonObject = {"id": self._output.make_id("cmp"), "type": "compaction"}
        item["encrypted_content"] = seal_summary(text)
        self._output.finish_item(self._output.add_item(item), item)
        return True

    def _complete(self, status: str) -> None:
        self._output.close()
        self.is_over = True
        usage = to_usage(self._usage) if self._usage else None
        self.response |= {"status": status, "usage": usage}
        if status == "completed":
            self.response["completed_at"] = int(self._now())
        if self._on_end is not None:
            self._on_end(self.response)
        kind = status if status in ("completed", "failed") else "incomplete"
        self._emit(f"response.{kind}", {"response": self.response})

    def _emit(self, kind: str, data: JsonObject) -> None:
        if self._emit_event is not None:
            self._emit_event(kind, {"type": kind, "sequence_number": self._sequence, **data})
            self._sequence += 1

    def _emit_text(self, head: bytes, text: str) -> None:
        if self._emit_delta is not None:
            self._emit_delta(self._sequence, head, text)
            self._sequence += 1

    def _add_note(self, text: str) -> None:
        """Add a text of ours; what only separates two texts of an answer does not separate two items."""
        text = text if self._output.is_in_message else text.lstrip("\n")
        if text.strip():
            self._output.add_text(text)

    # --- calls of our tools

    def _begin_call(self, data: JsonObject) -> None:
        self._output.close()
        id_ = str(data["id"])
        self._running[id_] = data
        if not self._asks_approval:
            self._show_call(id_)

    def _show_call(self, id_: str) -> None:
        item = {"id": self._output.make_id("mcp"), **self._to_item(id_)}
        at = self._output.add_item({**item, "arguments": ""})
        self._placed[id_] = (at, str(item["id"]))
        where: JsonObject = {"item_id": item["id"], "output_index": at}
        self._emit("response.mcp_call.in_progress", where)
        self._emit("response.mcp_call_arguments.delta", {**where, "delta": item["arguments"]})
        self._emit("response.mcp_call_arguments.done", {**where, "arguments": item["arguments"]})

    def _to_item(self, id_: str) -> JsonObject:
        data = self._running[id_]
        asked: JsonObject = {"approval_request_id": request_id(self._asked[id_])} if id_ in self._asked else {}
        return {
            "type": "mcp_call", "status": "in_progress", "server_label": LABEL,
            "name": data["tool"], "arguments": _arguments(data), "output": None, **asked,
        }  # fmt: skip

    def _end_call(self, data: JsonObject, output: str) -> None:
        id_ = str(data["id"])
        self._running.setdefault(id_, data)
        if id_ not in self._placed:
            self._output.close()
            self._show_call(id_)
        at, item_id = self._placed.pop(id_)
        item = {"id": item_id, **self._to_item(id_)}
        is_failure = data.get("state") == "error"
        if is_failure:
            content: list[Json] = [{"type": "text", "text": output}]
            item |= {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}
        else:
            item |= {"status": "completed", "output": output}
        name = "failed" if is_failure else "completed"
        self._emit(f"response.mcp_call.{name}", {"item_id": item["id"], "output_index": at})
        self._output.finish_item(at, item)
        del self._running[id_]
        self._asked.pop(id_, None)
        if self._asks_approval:
            self._ask_when_all_wait()

    def _ask_when_all_wait(self) -> None:
        """Ask the client, once nothing runs any more that does not wait for a person."""
        if not self._running or not self._running.keys() <= self._unanswered:
            return
        self._output.close()
        for id_, data in self._running.items():
            item: JsonObject = {"id": request_id(self._asked[id_]), "type": "mcp_approval_request"}
            item |= {"server_label": LABEL, "name": data["tool"], "arguments": _arguments(data)}
            self._output.finish_item(self._output.add_item(item), item)
        self._complete("completed")

    def _cut_calls(self) -> None:
        """End the items of calls whose results did not come."""
        for id_, (at, item_id) in self._placed.items():
            self._output.finish_item(at, {"id": item_id, **self._to_item(id_), "status": "incomplete"})
        self._placed.clear()


def find_start(log: TurnLog, approval: str) -> tuple[int, int] | None:
    """Return how many events of a turn the responses have that come before the answer to a question, and how many
    responses; None when none of them has asked it."""
    entries, start, number = log.entries(), 0, 0
    while log.is_whole:
        writer = ResponseWriter({"id": ""}, now=lambda: 0.0, namespaces={}, asks_approval=True, start=start)
        start = next((taken for taken, entry in enumerate(entries, 1) if _ends_with(writer, entry.event)), len(entries))
        asked = [item for item in objects(writer.response.get("output")) if item["type"] == "mcp_approval_request"]
        if not asked:
            return None
        number += 1
        if any(approval_of(str(item["id"])) == approval for item in asked):
            return start, number
    return None


def _ends_with(writer: ResponseWriter, event: TurnEvent) -> bool:
    writer.take(event)
    return writer.is_over


def to_usage(usage: JsonObject) -> JsonObject:
    sent, written = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    prompt, completion = (
        as_object(usage.get("prompt_tokens_details")),
        as_object(usage.get("completion_tokens_details")),
    )
    return {
        "input_tokens": sent,
        "input_tokens_details": {
            "cached_tokens": _number(prompt.get("cached_tokens")),
            "cache_write_tokens": _number(prompt.get("cache_write_tokens")),
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": _number(completion.get("reasoning_tokens"))},
        "total_tokens": _number(usage.get("total_tokens")) or sent + written,
    }


def beginning_gone() -> ChatFault:
    message = Message("The beginning of this answer is no longer kept: send a new request.")
    return ChatFault(
        status=HTTPStatus.BAD_REQUEST,
        message=message,
        code="response_not_kept",
        type="invalid_request_error",
        is_final=True,
    )


def _no_summary() -> ChatFault:
    message = Message("The model wrote no summary: ask again, or another model.")
    return ChatFault(status=HTTPStatus.BAD_GATEWAY, message=message, code="no_summary", type="server_error")


def _ignore(*_: object) -> None:
    """Take events that nobody gets."""


def _find_code(fault: ChatFault) -> str:
    """Return the code of a response that failed: one of the few that clients of the protocol know."""
    if fault.is_overflow:
        return OVERFLOW
    return "rate_limit_exceeded" if fault.status == HTTPStatus.TOO_MANY_REQUESTS else "server_error"


def _number(value: Json) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _arguments(data: JsonObject) -> str:
    return json_bytes(as_object(data.get("arguments"))).decode()
