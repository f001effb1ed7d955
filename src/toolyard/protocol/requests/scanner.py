"""The scanner of tool requests: feed it a model's text as it comes, get Text, Call and Malformed. And the way back.

Promises: any chunking gives the same calls and the same text; the time is linear and the memory bounded by the limit,
whatever the text; nothing is raised. At most ``MAX_CALLS`` calls of a reply are emitted, the others are Malformed;
text after ``MAX_REQUESTS`` requests, readable or not, and text beyond ``MAX_CHARS`` is passed on unread, with one
Malformed if a request seems to begin in it. A block is emitted when its end has come: the caller decides whether the
reply ended well and may be acted on.

Some blocks are held back until the following text decides about them: see ``_Doubt``.

Most blocks are unambiguous and are matched by one pattern each. That is only faster: mark by mark they give the same.

``format_request`` and the scanner are inverses for every value. ``neutralise`` is for text from elsewhere, such as a
tool's output: a model that repeats it word for word makes no call and fills no placeholder.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto

from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.protocol.requests.block import SPECIAL, Block, End, is_reserved, parse_plain_call
from toolyard.protocol.requests.marks import (
    CLOSE,
    END,
    ESCAPE_CLOSE,
    ESCAPE_OPEN,
    NAME,
    OPEN,
    START,
    Call,
    Event,
    Malformed,
    Text,
    add_piece,
    escape,
    make_marks,
)
from toolyard.protocol.requests.prose import OPEN_TAG, Prose, Verdict

MAX_CALLS = 32
MAX_REQUESTS = 2 * MAX_CALLS
MAX_CHARS = 2 * 1024 * 1024
WORD = "[TOOL_REQUEST"  # every request contains it


class _Stage(Enum):
    """States of the scanner.

    | stage   | text is                               | leads to                                                |
    |---------|---------------------------------------|---------------------------------------------------------|
    | READING | scanned                               | ENDED by ``finish``, or where a limit is reached        |
    | ENDED   | passed on, and searched for a request | REFUSED when one seems to begin, with one Malformed     |
    | REFUSED | passed on                             |                                                         |
    """

    READING = auto()
    ENDED = auto()
    REFUSED = auto()


_READING, _ENDED, _REFUSED = _Stage  # globals are faster than class attributes


class _Doubt(Enum):
    """Reasons to hold back blocks, and all that follows them, until the text decides.

    | doubt | arises when                                        | the blocks are                                      |
    |-------|----------------------------------------------------|-----------------------------------------------------|
    | CODE  | a block begins after backticks that are still open | text if the same paragraph closes them, else blocks |
    | VALUE | a block begins inside an unclosed value            | refused if loose ends follow, else calls            |

    Loose ends are closing marks in prose: the block was part of the value. Both doubts may be open at a time; what is
    held is emitted when none is, or at the end of the reply.
    """

    CODE = auto()
    VALUE = auto()


class Scanner:
    def __init__(self, *, nonce: str | None = None, max_chars: int = MAX_CHARS, max_calls: int = MAX_CALLS) -> None:
        """With a ``nonce`` only ``<<<[TOOL_REQUEST:nonce]>>>`` begins a block."""
        self._marks = make_marks(nonce)
        self._prose = Prose(self._marks)
        self._room, self._max_chars = max_chars, max_chars
        self._calls, self._max_calls = 0, max_calls
        self._requests = 0  # that were found, calls or not
        self._partial: list[str] = []  # the line that has not ended yet, and those that ended in a tag
        self._scanned = 0  # characters before the current text
        self._block: Block | None = None
        self._began = 0
        self._raw: list[str] | None = None  # the block as written, when it may turn out to be code
        self._events: list[Event] = []
        self._held: list[tuple[Event, str]] = []  # each with its raw text if it may be code
        self._code_from = 0  # the first of them about which ``_Doubt.CODE`` is
        self._doubts: set[_Doubt] = set()
        self._stage = _READING
        self._unread = ""  # the end of the text that was passed on after the end
        self._ended_at = max_chars

    def feed(self, text: str) -> list[Event]:
        if self._stage is not _READING:
            return self._pass_unread(text)
        accepted, rest = text[: self._room], text[self._room :]
        self._room -= len(accepted)
        lines = accepted.rfind("\n") + 1
        if lines and self._ends_in_tag(accepted, lines - 1):
            lines = 0
        if lines:
            complete = accepted if lines == len(accepted) else accepted[:lines]  # a long text is not copied
            self._scan("".join([*self._partial, complete]) if self._partial else complete)
            self._partial = []
        if lines < len(accepted):
            self._add_partial(accepted[lines:])
        return [*self._take_events(), *self.finish(), *self._pass_unread(rest)] if rest else self._take_events()

    def _add_partial(self, text: str) -> None:
        if self._stage is not _READING:
            self._events += self._pass_unread(text)
        else:
            add_piece(self._partial, text)

    @property
    def is_open(self) -> bool:
        """Return whether a request may have begun that was not emitted yet."""
        return bool(self._block or self._held) or WORD in "".join(self._partial)

    def finish(self) -> list[Event]:
        """End the reply: settle everything that is still open, and return its events."""
        if self._stage is not _READING:
            return []
        self._stage = _ENDED
        self._scan("".join(self._partial))
        if self._block:
            self._block.cut()
            self._complete(self._block, self._scanned)
        self._release()
        return self._take_events()

    def _ends_in_tag(self, text: str, end: int) -> bool:
        """Return whether the line that ends at ``end`` breaks off in a tag: then it is read together with the next."""
        begin = text.rfind("\n", 0, end) + 1
        pieces = [text[begin:end]]
        for piece in reversed(self._partial if begin == 0 else ()):
            pieces.append(piece[piece.rfind("\n") + 1 :])
            if "\n" in piece:
                break
        line = "".join(reversed(pieces))
        tag = line.rfind("<")
        return tag >= 0 and OPEN_TAG.fullmatch(line, tag) is not None

    def _pass_unread(self, text: str) -> list[Event]:
        """Pass on text beyond the limit; emit one Malformed if a request seems to begin in it."""
        passed: list[Event] = [Text(text)] if text else []
        if self._stage is _REFUSED:
            return passed
        unread = self._unread + text
        if WORD not in unread:
            self._unread = unread[-len(WORD) + 1 :]
            return passed
        self._stage = _REFUSED
        problem = (
            Message(
                "Only the first {most} requests of a reply are read: what follows was not. "
                "Send further requests in another reply.",
                most=self._requests,
            )
            if self._is_full
            else Message(
                "The reply is longer than {most} characters: what follows was not read. "
                "Send further requests in a shorter reply.",
                most=self._max_chars,
            )
        )
        return [Malformed(problem=problem, span=(self._ended_at, self._ended_at)), *passed]

    @property
    def _is_full(self) -> bool:
        return self._requests >= 2 * self._max_calls

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _scan(self, text: str) -> None:
        """Scan complete lines, or the rest at the end."""
        at = 0
        while at < len(text) and not self._is_full:
            if self._block:
                at = self._read_on(self._block, text, at)
                continue
            end, marker = self._prose.read(text, at)
            self._pass(text[at:end])
            at = self._take_plain(text, end) if marker else end
            if marker and at == end:
                self._begin(marker[1], self._scanned + end)
                at = marker.end()
        if self._is_full and self._stage is not _REFUSED:
            self._stage, self._ended_at = _ENDED, self._scanned + at
            self._release()
            self._events += self._pass_unread(text[at:])
        self._scanned += len(text)

    def _take_plain(self, text: str, at: int) -> int:
        """Emit unambiguous blocks, as most are, with only blanks between them; return the position after them."""
        if self._doubts or not self._prose.is_idle:
            return at
        match, events, scanned = self._marks.block.match, self._events, self._scanned
        while not self._is_full and (block := match(text, at)):
            blanks, inside = block.group(1, 2)
            end = block.end()
            call = parse_plain_call(inside, (scanned + at + len(blanks), scanned + end))
            if call is None:
                break
            if blanks:
                events.append(Text(blanks))
            self._calls += 1
            self._requests += 1
            events.append(call if self._calls <= self._max_calls else self._refuse_beyond_limit(call))
            at = end
        return at

    def _read_on(self, block: Block, text: str, at: int) -> int:
        end = block.read(text, at)
        if self._raw is not None:
            add_piece(self._raw, text[at:end])
        if block.end:
            self._complete(block, self._scanned + end)
        return end

    def _pass(self, prose: str) -> None:
        if prose:
            self._put(Text(prose))
        if self._doubts and _Doubt.VALUE in self._doubts and self._marks.loose_end.search(prose):
            self._refuse_held()
        self._settle_code()

    def _begin(self, marker: str, at: int) -> None:
        self._block, self._began = Block(self._marks, marker), at
        if self._prose.is_perhaps_code:
            self._raw = [marker]
            self._prose.hold()
            if _Doubt.CODE not in self._doubts:
                self._doubts.add(_Doubt.CODE)
                self._code_from = len(self._held)

    def _complete(self, block: Block, at: int) -> None:
        event = block.to_event((self._began, at))
        self._block = None
        self._requests += 1
        if isinstance(event, Call):
            self._calls += 1
            event = event if self._calls <= self._max_calls else self._refuse_beyond_limit(event)
        raw, self._raw = "".join(self._raw) if self._raw else "", None
        self._put(event, raw)
        if raw:
            self._prose.pass_over(raw)
            self._settle_code()
        if block.end is End.NEXT_BLOCK_IN_VALUE:
            self._doubts.add(_Doubt.VALUE)

    def _refuse_beyond_limit(self, call: Call) -> Malformed:
        problem = Message("Only the first {most} requests of a reply are run: send it again.", most=self._max_calls)
        return _refuse_call(call, problem)

    # --- events that are held back

    def _put(self, event: Event, raw: str = "") -> None:
        if not self._doubts:
            self._events.append(event)
        elif isinstance(event, Text) and self._held and isinstance(last := self._held[-1][0], Text):
            self._held.pop()
            pieces = [last.text]
            add_piece(pieces, event.text)
            self._held += [(Text(piece), "") for piece in pieces]
        else:
            self._held.append((event, raw))

    def _settle_code(self) -> None:
        if not self._doubts or _Doubt.CODE not in self._doubts or self._prose.verdict is None:
            return
        if self._prose.verdict is Verdict.CODE:
            code = self._held[self._code_from :]
            self._calls -= sum(isinstance(event, Call) for event, raw in code if raw)
            self._requests -= sum(bool(raw) for _, raw in code)
            self._held[self._code_from :] = [(Text(raw) if raw else event, "") for event, raw in code]
        self._settle(_Doubt.CODE)

    def _refuse_held(self) -> None:
        self._held = [
            (_refuse_call(event, _IN_VALUE) if isinstance(event, Call) else event, raw) for event, raw in self._held
        ]
        self._settle(_Doubt.VALUE)

    def _settle(self, doubt: _Doubt) -> None:
        self._doubts.discard(doubt)
        if not self._doubts:
            self._release()

    def _release(self) -> None:
        self._events += [event for event, _ in self._held]
        self._held = []


_IN_VALUE = Message(
    "This block stands inside the value of the block before it, which is not closed: nothing of it was run. "
    "Put text that holds the marks between {open} and {close}.",
    open=ESCAPE_OPEN,
    close=ESCAPE_CLOSE,
)


def _refuse_call(call: Call, problem: str) -> Malformed:
    return Malformed(problem=problem, span=call.span, tool=call.tool, repaired=call.repaired)


def parse_requests(text: str, *, nonce: str | None = None) -> list[JsonObject]:
    """Return every request of a complete reply in order, those that cannot be run included."""
    scanner = Scanner(nonce=nonce)
    events = [*scanner.feed(text), *scanner.finish()]
    return [event.to_dict() for event in events if not isinstance(event, Text)]


_NOT_PLAIN = re.compile(r"[「{][始末]|TOOL_REQUEST")
_LIVE = re.compile(
    r"(?=[\[始末{])(?:"  # rejects most positions at once
    r"(?<=<)(?=\[(?:END_)?TOOL_REQUEST)"  # a block marker
    r"|(?<=[「{])(?=[始末](?i:ESCAPE)*[」}])"  # a value mark; an ordinary 「末日」 stays
    r"|(?<=\{)(?=\{))"  # a placeholder
)
_INVISIBLE = "\u200b"


def format_request(tool: str, args: Mapping[str, str], maid: str | None = None, *, nonce: str | None = None) -> str:
    """Return the block that calls ``tool``; ValueError when a name cannot be written in one. Every value can."""
    if not tool.strip():
        raise ValueError("a request needs the name of a tool")
    fields = {"tool_name": tool} if maid is None else {"maid": maid, "tool_name": tool}
    for name in args:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name that a request can carry: use letters, digits, '_', '-' and '.'")
        if name in SPECIAL or is_reserved(name):
            raise ValueError(f"{name!r} means something else in a request")
    fields |= args
    lines = ",\n".join(f"{name}:{_value(text)}" for name, text in fields.items())
    start = START if nonce is None else START.replace("]", f":{nonce}]")
    return f"{start}\n{lines}\n{END}"


def neutralise(text: str) -> str:
    """Return text that looks the same, with no live marker, value mark or placeholder. Idempotent."""
    return _LIVE.sub(_INVISIBLE, text)


def _value(text: str) -> str:
    if text == text.strip() and not _NOT_PLAIN.search(text):
        return f"{OPEN}{text}{CLOSE}"
    last = "" if text.endswith("\r") else "\n"  # together they would be one line ending, which is removed
    return f"{ESCAPE_OPEN}\n{escape(text)}{last}{ESCAPE_CLOSE}"
