"""An answer of a provider that speaks Messages, as chat chunks.

Thinking keeps its signature byte for byte. Blocks are told apart by their index, even where a server has two open at
once. A citation of a page stands for the text of its block. ``message_stop`` ends the answer. What else the provider
says of a call, of its answer or of the tokens goes along for a client that speaks Messages.
"""

from typing import Final

from toolyard.gateway.protocols.chat_body import NATIVE, NativeRequest, as_object, objects
from toolyard.gateway.protocols.chat_chunks import AnswerReader
from toolyard.gateway.protocols.messages.provider_request import FORMAT, PROTOCOL
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.tool import parse_arguments

_FINISHES: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}  # any other is a stop
_CALL: Final = ("type", "id", "name", "input")  # what chat has a word for, of a call
_MESSAGE: Final = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "delta")
_USAGE: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_PLAIN: Final = ("end_turn", "tool_use", "max_tokens", None)  # stop reasons of which chat says all


class _Block:
    def __init__(self, block: JsonObject) -> None:
        self.block = block
        self.kind = str(block.get("type"))
        self.number = 0  # of its reasoning
        self.call: int | None = None  # the index of the call that it is
        self.is_custom = False
        self.has_written = False
        self.written: list[str] = []  # JSON that is kept until its block ends
        self.start = 0  # of its text
        self.citations: list[JsonObject] = []


class MessagesReader(AnswerReader):
    protocol = PROTOCOL

    def __init__(self, provider: str, request: NativeRequest, created: int = 0) -> None:
        super().__init__(provider, request, created)
        self._blocks: dict[Json, _Block] = {}
        self._usage: JsonObject = {}
        self._empty: list[int] = []  # calls without arguments
        self._delta: JsonObject = {}  # the stop reason, and what else is said of the answer

    def take_event(self, event: JsonObject) -> None:
        place = event.get("index")
        match event.get("type"):
            case "message_start":
                message = as_object(event.get("message"))
                self._note_usage(message)
                self.begin(message.get("id"), None, message.get("model"))
            case "content_block_start":
                self.begin(None, None, None)
                self._blocks[place] = _Block(as_object(event.get("content_block")))
                self._start(self._blocks[place])
            case "content_block_delta" if block := self._blocks.get(place):
                self._add_delta(block, as_object(event.get("delta")))
            case "content_block_stop" if block := self._blocks.pop(place, None):
                self._stop(block)
            case "message_delta":
                self._note_usage(event)
                self._delta |= event | as_object(event.get("delta"))
            case "message_stop":
                self._end()
            case "error":
                self.fail(event.get("error") or {"message": "an error without words"})

    def take_answer(self, answer: JsonObject) -> bool:
        if answer.get("type") != "message" or not isinstance(answer.get("content"), list):
            return False
        self._note_usage(answer)
        self.begin(answer.get("id"), None, answer.get("model"))
        for one in objects(answer.get("content")):
            block = _Block(one)
            self._start(block)
            self._stop(block)
        self._delta = answer
        self._end()
        return True

    # --- blocks

    def _start(self, block: _Block) -> None:
        """Begin a block; an answer in one piece has all of it here."""
        whole = block.block
        match block.kind:
            case "text":
                block.start = self._length
                self.add_text(str(whole.get("text") or ""))
                for citation in objects(whole.get("citations")):
                    self._cite(block, citation)
            case "thinking":
                block.number = self.number()
                self._think(block, str(whole.get("thinking") or ""))
                self._sign(block, whole.get("signature"))
            case "redacted_thinking":
                detail: JsonObject = {"type": "reasoning.encrypted", "data": whole.get("data")}
                self.add_detail({**detail, "format": FORMAT, "index": self.number()})
            case "tool_use":
                block.is_custom = whole.get("name") in self._request.custom
                block.call = self.begin_call(
                    whole.get("id"), whole.get("name"), custom=block.is_custom, origin=self._unsaid(whole, _CALL)
                )

    def _add_delta(self, block: _Block, delta: JsonObject) -> None:
        match delta.get("type"):
            case "text_delta":
                self.add_text(str(delta.get("text") or ""))
            case "thinking_delta":
                self._think(block, str(delta.get("thinking") or ""))
            case "signature_delta":
                self._sign(block, delta.get("signature"))
            case "citations_delta":
                self._cite(block, as_object(delta.get("citation")))
            case "input_json_delta":
                piece = str(delta.get("partial_json") or "")
                if block.call is not None and not block.is_custom:
                    block.has_written = block.has_written or bool(piece)
                    self.add_written(block.call, piece)
                else:
                    block.written.append(piece)

    def _stop(self, block: _Block) -> None:
        whole = block.block
        if block.call is not None:
            given = as_object(whole.get("input"))
            if block.is_custom:
                given = parse_arguments("".join(block.written))[0] or given
                self.add_written(block.call, str(given.get("input") or ""), custom=True)
            elif not block.has_written and given:
                self.add_written(block.call, json_bytes(given).decode())
            elif not block.has_written:
                self._empty.append(block.call)
        elif block.kind == "text":
            self._add_citations(block)
        elif block.kind not in ("thinking", "redacted_thinking"):
            written = "".join(block.written)
            self.add_native({**whole, "input": parse_arguments(written)[0]} if written else whole)

    # --- their content

    def _think(self, block: _Block, text: str) -> None:
        if text:
            detail: JsonObject = {"type": "reasoning.text", "text": text, "format": FORMAT, "index": block.number}
            self.add_detail(detail, text, begins=not block.has_written)
            block.has_written = True

    def _sign(self, block: _Block, signature: Json) -> None:
        if signature:
            detail: JsonObject = {"type": "reasoning.text", "signature": signature, "format": FORMAT}
            self.add_detail({**detail, "index": block.number})

    def _cite(self, block: _Block, citation: JsonObject) -> None:
        """Take a citation: at once for clients that speak Messages, else at the end of the text that it is about."""
        if self._request.is_client_native:
            self.add({"annotations": [{"type": NATIVE, "protocol": PROTOCOL, "item": citation}]})
        elif citation.get("url"):
            block.citations.append(citation)

    def _add_citations(self, block: _Block) -> None:
        for citation in block.citations:
            named: JsonObject = {"url": citation.get("url"), "title": citation.get("title") or citation.get("url")}
            place: JsonObject = {"start_index": block.start, "end_index": self._length}
            self.add({"annotations": [{"type": "url_citation", "url_citation": {**named, **place}}]})

    # --- the end

    def _note_usage(self, event: JsonObject) -> None:
        """Note the usage so far: each later one counts from the beginning, and may leave out what has not changed."""
        self._usage |= {key: value for key, value in as_object(event.get("usage")).items() if value is not None}

    def _end(self) -> None:
        for block in self._blocks.values():
            self._stop(block)
        reason, sequence = self._delta.get("stop_reason"), self._delta.get("stop_sequence")
        more: JsonObject = {} if reason in _PLAIN else {"native_finish_reason": reason}
        if reason == "stop_sequence" and sequence is not None:
            more["stop_sequence"] = sequence
        if unsaid := self._unsaid(self._delta, _MESSAGE):
            more[NATIVE] = {"protocol": PROTOCOL, "item": unsaid}
        finish = _FINISHES.get(str(reason), "tool_calls" if self._calls and reason is None else "stop")
        for call in self._empty if finish != "length" else ():  # a call that was cut stays without
            self.add_written(call, "{}")
        usage = _to_usage(self._usage)
        if unsaid := self._unsaid(self._usage, _USAGE):
            usage[NATIVE] = unsaid
        self.end(finish, usage, **more)

    def _unsaid(self, value: JsonObject, known: tuple[str, ...]) -> JsonObject:
        """Return what chat has no word for, for a client that speaks this protocol."""
        if not self._request.is_client_native:
            return {}
        return {key: inner for key, inner in value.items() if key not in known and inner is not None}


def _to_usage(usage: JsonObject) -> JsonObject:
    """Return the usage as chat has it: its prompt includes what was read from the cache or written to it."""
    if not usage:
        return {}
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    sent, answered = _count(usage, "input_tokens") + read + written, _count(usage, "output_tokens")
    made: JsonObject = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        made["prompt_tokens_details"] = {"cached_tokens": read, "cache_write_tokens": written}
    details = as_object(usage.get("output_tokens_details"))
    if "thinking_tokens" in details:
        made["completion_tokens_details"] = {"reasoning_tokens": _count(details, "thinking_tokens")}
    return made


def _count(usage: JsonObject, key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) else 0
