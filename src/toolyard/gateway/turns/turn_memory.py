"""Memory of tool rounds: the messages between a model and its tools in a turn, for the next request.

A client sends back the text of our answer and nothing of its rounds, so the model would not know the results of its
tools, and would imitate the lines about calls that it finds in "its own" text. A finished turn is therefore stored
under its caller and the exact text of the answer; when the text comes back, the rounds and the model's own last words
take its place. Blanks and thinking in the text do not count, because clients trim the ones and leave out the other. A
text shorter than ``DISTINCT`` characters, such as "Done.", may occur in any conversation: it counts only after the
same question. So does the id of a call of the client's own tools, by which a turn without text is known that ends with
one.

Rounds come back as they were sent, so that the next request begins as the last one did; without the reasoning where
another model is asked now. What fits that model is decided in ``context_window``.

Kept in this process alone, masked, without media: ``MAX_TURN`` bytes of a turn, ``MAX_TURNS`` and ``MAX_TOTAL`` of
all, ``KEPT_S`` after the last use; those not used for longest go first. A request grows by ``MAX_ADDED`` bytes at
most, the newest turns first.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson

from toolyard.gateway.reply.chunks import DETAILS, read_text
from toolyard.gateway.tool_calls.rounds import CallKeys, Rounds, call_keys, drop_reasoning, fit_rounds
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.marks import START

MAX_TURN: Final = 1024 * 1024
MAX_TURNS: Final = 1000
MAX_TOTAL: Final = 32 * 1024 * 1024
MAX_ADDED: Final = 8 * 1024 * 1024
KEPT_S: Final = 24 * 3600.0
DISTINCT: Final = 200
MAX_TEXTS: Final = 16  # of an answer that comes back in pieces: one for each round
_THOUGHT = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FIRST_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTurn:
    """A turn that has ended as it should."""

    question: str  # the user's last message
    answer: str  # the complete text that the client has seen
    rounds: Rounds
    last_words: str  # the text of the model's last reply, as the model wrote it
    nonce: str | None = None
    model: str = ""  # which has written the replies in it
    call: str = ""  # the id of the first call in it that is the client's to run


@dataclass(frozen=True, slots=True)
class RecalledMessages:
    """The messages of a request with the rounds of its earlier answers, and the native calls in these rounds."""

    messages: list[Json]
    calls: CallKeys = frozenset()


@dataclass(slots=True)
class _StoredTurn:
    content: bytes  # JSON: the messages of all rounds, and the last words
    calls: CallKeys
    model: str
    used: float


class TurnMemory:
    """The stored turns; ``now`` is a monotonic clock, ``mask`` removes the secrets from a text."""

    def __init__(self, now: Callable[[], float], mask: Callable[[str], str]) -> None:
        self._now, self._mask = now, mask
        self._turns: OrderedDict[bytes, _StoredTurn] = OrderedDict()  # the one not used for longest first
        self.size = 0  # bytes

    def __len__(self) -> int:
        return len(self._turns)

    def remember(self, caller: str, turn: FinishedTurn) -> None:
        """Keep the rounds of a turn, unless it has none, or nothing to know it by, or very much text."""
        words = _strip_first_thought(turn.last_words)
        if not turn.rounds or not (_identifying_text(turn.answer) or turn.call) or len(words) > MAX_TURN:
            return
        try:
            messages = [message for one in fit_rounds(turn.rounds, MAX_TURN) for message in one]
            content = orjson.dumps([messages, words]).decode()
        except orjson.JSONEncodeError:  # half a character, or nested too deep: no provider would take it either
            return
        if not messages:
            return
        if turn.nonce is not None:  # the number holds for one request alone
            content = content.replace(_start_with_nonce(turn.nonce), START)
        key = _key(caller, turn.question, turn.answer, turn.call)
        self._drop(key)
        stored = self._turns[key] = _StoredTurn(
            self._mask(content).encode(), call_keys(messages), turn.model, self._now()
        )
        self.size += len(stored.content)
        self._make_room()

    def recall(self, caller: str, messages: list[Json], nonce: str | None = None, model: str = "") -> RecalledMessages:
        """Put the rounds before each answer of ours that a client sends back; the same list when there are none.

        ``model`` is the one that gets them now. A turn whose native calls the client carries itself is left as it came.
        """
        self._make_room()
        rounds_at: dict[int, list[Json]] = {}
        if not self._turns:
            return RecalledMessages(messages)
        carried, questions, room = call_keys(messages), _questions(messages), MAX_ADDED
        used_keys: set[bytes] = set()
        calls: CallKeys = frozenset()
        index = len(messages)
        while index > 0:
            index -= 1
            message = messages[index]
            found = self._find(caller, messages, index, questions[index])
            if not isinstance(message, dict) or found is None:
                continue
            start, key, stored = found
            if key in used_keys or stored.calls & carried:
                continue
            room -= len(stored.content)
            if room < 0:
                break
            stored.used = self._now()
            self._turns.move_to_end(key)
            used_keys.add(key)
            rounds_at |= {at: [] for at in range(start, index)}
            rounds_at[index] = _restore(stored, message, nonce, model)
            calls |= stored.calls
            index = start
        made = [one for index, message in enumerate(messages) for one in rounds_at.get(index, [message])]
        return RecalledMessages(made, calls) if rounds_at else RecalledMessages(messages)

    def _find(
        self, caller: str, messages: list[Json], index: int, question: str
    ) -> tuple[int, bytes, _StoredTurn] | None:
        """Return where the answer begins that ends at ``index``: a client may send its texts one by one."""
        message = messages[index]
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return None
        texts, call = "", _first_call(message)
        found = None
        for start in range(index, max(index - MAX_TEXTS, -1), -1):
            one = messages[start]
            if not isinstance(one, dict) or one.get("role") != "assistant" or (start < index and one.get("tool_calls")):
                break
            texts = read_text(one.get("content")) + texts
            key = _key(caller, question, texts, call)
            if (stored := self._turns.get(key)) is not None:
                found = start, key, stored
        return found

    def _make_room(self) -> None:
        oldest = self._now() - KEPT_S
        while self._turns:
            key, stored = next(iter(self._turns.items()))
            if stored.used > oldest and len(self._turns) <= MAX_TURNS and self.size <= MAX_TOTAL:
                break
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        stored = self._turns.pop(key, None)
        self.size -= len(stored.content) if stored else 0


def last_question(messages: list[Json]) -> str:
    """Return the text of the user's last message."""
    questions = (one for one in reversed(messages) if isinstance(one, dict) and one.get("role") == "user")
    return next((read_text(one.get("content")) for one in questions), "")


def _questions(messages: list[Json]) -> list[str]:
    """Return for each message the text of the last user message before it."""
    question, questions = "", []
    for message in messages:
        questions.append(question)
        if isinstance(message, dict) and message.get("role") == "user":
            question = read_text(message.get("content"))
    return questions


def _first_call(message: JsonObject) -> str:
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    return str(first.get("id") or "") if isinstance(first, dict) else ""


def _key(caller: str, question: str, answer: str, call: str) -> bytes:
    answer = _identifying_text(answer)
    known = sha256()
    joined = answer.replace(" ", "")  # a client may join its texts without a blank in between
    for part in (caller, joined, "" if len(answer) >= DISTINCT else question.strip(), "" if joined else call):
        data = part.encode(errors="surrogatepass")
        known.update(b"%d:%b" % (len(data), data))
    return known.digest()


def _identifying_text(answer: str) -> str:
    """Return the part of an answer that identifies it."""
    return " ".join(_strip_thoughts(answer).split())


def _strip_thoughts(text: str) -> str:
    pieces, at, began = [], 0, -1
    for tag in _THOUGHT.finditer(text):
        if tag[1] and began >= 0:
            pieces.append(text[at:began])
            at, began = tag.end(), -1
        elif not tag[1] and began < 0:
            began = tag.start()
    return "".join([*pieces, text[at:]])


def _strip_first_thought(text: str) -> str:
    thought = _FIRST_THOUGHT.match(text)
    return text[thought.end() :] if thought else text


def _start_with_nonce(nonce: str) -> str:
    return START.replace("]", f":{nonce}]")


def _restore(stored: _StoredTurn, message: JsonObject, nonce: str | None, model: str) -> list[Json]:
    text = stored.content.decode()
    rounds, last_words = orjson.loads(text if nonce is None else text.replace(START, _start_with_nonce(nonce)))
    made: list[Json] = rounds if stored.model == model else [drop_reasoning(message) for message in rounds]
    if last_words or message.get("tool_calls"):
        made.append(_drop_repeated_reasoning({**message, "content": last_words}, made))
    return made


def _drop_repeated_reasoning(message: JsonObject, rounds: list[Json]) -> JsonObject:
    """Return a message without the reasoning of the rounds before it: a client has all of a turn in one message.

    What is left of it led to the words and calls of the last round, so it stands before them.
    """
    said = [_without_index(detail) for one in rounds for detail in _list_details(one)]
    rest: list[JsonObject] = []
    for detail in _list_details(message):
        if (bare := _without_index(detail)) in said:
            said.remove(bare)
        else:
            rest.append(detail)
    first = next((index for detail in rest if isinstance(index := detail.get("index"), int)), 0)
    moved: list[Json] = [
        {**detail, "index": index - first} if isinstance(index := detail.get("index"), int) else detail
        for detail in rest
    ]
    return {**message, DETAILS: moved} if DETAILS in message else message


def _list_details(message: Json) -> list[JsonObject]:
    details = message.get(DETAILS) if isinstance(message, dict) else None
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _without_index(detail: JsonObject) -> JsonObject:
    return {key: value for key, value in detail.items() if key != "index"}
