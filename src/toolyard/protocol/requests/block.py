"""One tool-request block: fed complete lines, it ends by itself and is then a Call or Malformed.

No field is dropped silently: a name without a value, a value without a name, a duplicate name or an unterminated value
refuses the block, and the problem says how to write it. Marks that are mistyped but unambiguous are accepted and listed
in ``repaired``.
"""

import re
from enum import Enum, auto

from toolyard.message import Message, join_sentences
from toolyard.protocol.requests.marks import (
    AFTER_VALUE,
    CLOSE,
    END,
    ESCAPE_CLOSE,
    ESCAPE_OPEN,
    FIELD,
    FIELD_IN_VALUE,
    OPEN,
    Call,
    Malformed,
    Marks,
    Span,
    add_piece,
    escape_close,
    unescape,
)

SPECIAL = ("tool_name", "archery", "ink", "river", "timely_contact", "tool_password")  # never reach the tool
_RARE = frozenset(SPECIAL) - {"tool_name"}
MAX_PROBLEMS = 3  # reported for one block; more would not help
_USE_ESCAPE = Message(
    "Text that holds the marks belongs between {open} and {close}.", open=ESCAPE_OPEN, close=ESCAPE_CLOSE
)


def is_reserved(name: str) -> bool:
    """Return whether a name is only for use between hosts, such as ``__proto__`` and ``__vcp_timed_call``."""
    return name.startswith("__")


def parse_plain_call(inside: str, span: Span) -> Call | None:
    """Return the call of a block that consists of ``FIELD`` only, as most do; None when it needs a closer look."""
    fields = FIELD.findall(inside)
    args = {name: value.strip() for name, value in fields}
    tool = args.pop("tool_name", None)
    if not tool or len(args) + 1 < len(fields) or not _RARE.isdisjoint(args):
        return None
    if "__" in inside and any(map(is_reserved, args)):
        return None
    return Call(tool, args, span)


class End(Enum):
    MARKER = auto()  # its own end marker
    NEXT_BLOCK = auto()  # the start marker of another block
    NEXT_BLOCK_IN_VALUE = auto()  # the same, while a value was open: that block may be part of the value
    TEXT = auto()  # the end of the reply


class _State(Enum):
    """States of a block that has not ended.

    | state   | reads                | a name and a colon   | an opening mark | 「末」         | end or start marker |
    |---------|----------------------|----------------------|-----------------|----------------|---------------------|
    | BETWEEN | text between fields  | NAMED or WORD        | fault; a value  | ignored        | ends                |
    | NAMED   | after a field's name | fault; NAMED or WORD | a value         | fault; BETWEEN | fault; ends         |
    | WORD    | after any other name | NAMED or WORD        | a value         | BETWEEN        | ends                |
    | PLAIN   | a value after 「始」 | text                 | text            | BETWEEN        | fault; ends         |
    | ESCAPED | after 「始ESCAPE」   | text                 | text            | text           | text                |

    A value is PLAIN or ESCAPED by its opening mark. Its closing mark stores the field; ESCAPED knows only its own one.
    Any other text leads from NAMED, with a fault, and from WORD to BETWEEN, where a complete field is stored at once. A
    start marker that ends a block is a fault, because the end marker is missing; so is the end of the reply.
    """

    BETWEEN = auto()
    NAMED = auto()
    WORD = auto()
    PLAIN = auto()
    ESCAPED = auto()


_BETWEEN, _NAMED, _WORD, _PLAIN, _ESCAPED = _State  # globals are faster than class attributes


class Block:
    def __init__(self, marks: Marks, marker: str) -> None:
        self.end: End | None = None
        self._marks = marks
        self._state = _BETWEEN
        self._name: str | None = None  # of the field whose value is expected or open
        self._opened = ""  # the mark that opened the value
        self._value: list[str] = []
        self._fields: dict[str, str] = {}
        self._problems: dict[str, None] = {}
        self._repaired: dict[str, None] = {}
        self._check(marker)

    def read(self, text: str, at: int) -> int:
        """Read on from ``at`` until the block or the text ends; return that position."""
        while self.end is None and at < len(text):
            if self._state is _PLAIN:
                at = self._read_plain(text, at)
            elif self._state is _ESCAPED:
                at = self._read_escaped(text, at)
            else:
                at = self._read_between(text, at)
        return at

    def cut(self) -> None:
        """End the block at the end of the reply."""
        if self._state in (_PLAIN, _ESCAPED):
            self._describe_unclosed()
            if self._state is _ESCAPED:
                self._problem(Message("Everything after it was taken as its text, so no later block was run."))
        else:
            self._forget_name()
            self._problem(Message("The block has no end marker: close it with {end} on its own line.", end=END))
        self.end = End.TEXT

    def to_event(self, span: Span) -> Call | Malformed:
        fields = self._fields
        for name in [name for name in fields if is_reserved(name)]:
            del fields[name]
            self._repaired[f"left out the reserved key {name}"] = None
        special = {name: fields.pop(name) for name in SPECIAL if name in fields}
        tool, repaired = special.pop("tool_name", None), tuple(self._repaired)
        if not tool or not tool.strip():
            self._problem(self._describe_nameless(fields))
        if self._problems or not tool:
            return Malformed(problem=join_sentences(*self._problems), span=span, tool=tool or None, repaired=repaired)
        return Call(
            tool=tool,
            args=fields,
            span=span,
            timely_contact=special.get("timely_contact"),
            archery=special.get("archery"),
            ink=special.get("ink"),
            river=special.get("river"),
            password=special.get("tool_password"),
            repaired=repaired,
        )

    # --- between values

    def _read_between(self, text: str, at: int) -> int:
        field = FIELD.match(text, at) if self._state is _BETWEEN else None
        if field:
            self._name = field[1]
            self._store(field[2].strip())
            return field.end()
        mark = self._marks.fields.search(text, at)
        gap = text[at : mark.start() if mark else len(text)]
        kind = mark.lastgroup if mark else None
        if gap.strip() or (kind is not None and kind != "open"):
            self._forget_name()
        if mark is None:
            return len(text)
        match kind:
            case "end":
                self._check(mark[0])
                self.end = End.MARKER
            case "start":
                self._problem(
                    Message(
                        "The block has no end marker before the next one: close it with {end} on its own line.", end=END
                    )
                )
                self.end = End.NEXT_BLOCK
                return mark.start()
            case "colon":
                self._name = mark["name"]
                begins_field = not gap.rpartition("\n")[2].strip(" \t\r,，")
                self._state = _NAMED if begins_field else _WORD
                if mark["colon"] != ":":
                    self._repaired["full-width colon"] = None
            case "open":
                self._open_value(mark[0])
            case "close":
                self._repaired[f"stray {mark[0]}"] = None
        return mark.end()

    def _open_value(self, mark: str) -> None:
        if self._name is None:
            self._problem(
                Message("A value has no name before it: write name:{open}value{close}.", open=OPEN, close=CLOSE)
            )
        if mark not in {OPEN, ESCAPE_OPEN}:
            self._repaired[f"{mark} for {OPEN if len(mark) == len(OPEN) else ESCAPE_OPEN}"] = None
        self._opened = mark
        self._state = _PLAIN if len(mark) == len(OPEN) else _ESCAPED

    def _forget_name(self) -> None:
        """Drop a name and a colon without a value: a mistake at the beginning of a field, mere words elsewhere."""
        if self._state is _NAMED:
            self._problem(
                Message(
                    "The value of '{name}' has no marks: write {name}:{open}value{close}.",
                    name=self._name,
                    open=OPEN,
                    close=CLOSE,
                )
            )
        self._name, self._state = None, _BETWEEN

    # --- values

    def _read_plain(self, text: str, at: int) -> int:
        match = self._marks.plain.search(text, at)
        if match is None:
            add_piece(self._value, text[at:])
            return len(text)
        if match["close"]:
            return self._check_mistyped_close(text, at, match)
        self._describe_unclosed()
        if match["start"]:
            self.end = End.NEXT_BLOCK_IN_VALUE
            return match.start()
        self.end = End.MARKER
        return match.end()

    def _check_mistyped_close(self, text: str, at: int, match: re.Match[str]) -> int:
        """End the value at a mistyped mark if one opened it, or where a field can end; elsewhere it is text."""
        mark = match["close"]
        if mark != CLOSE and self._opened == OPEN and not AFTER_VALUE.match(text, match.end()):
            add_piece(self._value, text[at : match.end()])
            return match.end()
        if mark != CLOSE:
            self._repaired[f"{mark} for {CLOSE}"] = None
        add_piece(self._value, text[at : match.start()])
        value = self._take_value()
        swallowed = FIELD_IN_VALUE.search(value)
        if swallowed:
            self._problem(
                Message(
                    "The value of '{name}' is not closed before '{next}': end it with {close}.",
                    name=self._name,
                    next=swallowed[1],
                    close=CLOSE,
                )
            )
        self._store(value.strip())
        return match.end()

    def _read_escaped(self, text: str, at: int) -> int:
        match = escape_close(self._opened).search(text, at)
        add_piece(self._value, text[at : match.start() if match else len(text)])
        if match is None:
            return len(text)
        if match[0] != ESCAPE_CLOSE:
            self._repaired[f"{match[0]} for {ESCAPE_CLOSE}"] = None
        value = self._take_value()
        value = value.removeprefix("\r\n" if value.startswith("\r\n") else "\n")
        value = value.removesuffix("\r\n" if value.endswith("\r\n") else "\n")
        self._store(unescape(value))
        return match.end()

    def _take_value(self) -> str:
        value = "".join(self._value)
        self._value.clear()
        return value

    def _store(self, value: str) -> None:
        name, self._name, self._state = self._name, None, _BETWEEN
        if name is None:
            return
        if name in self._fields:
            twice = Message("'{name}' is given twice: give each name once.", name=name)
            self._problem(join_sentences(twice, _USE_ESCAPE))
        self._fields.setdefault(name, value)

    # --- problems

    def _describe_unclosed(self) -> None:
        close = CLOSE if self._state is _PLAIN else f"「末{self._opened[2:-1]}」"
        unclosed = Message(
            "The value of '{name}' is not closed: end it with {close}.", name=self._name or "", close=close
        )
        self._problem(join_sentences(unclosed, _USE_ESCAPE if close == CLOSE else ""))

    def _describe_nameless(self, fields: dict[str, str]) -> str:
        near = next((name for name in fields if name.lower().replace("-", "_") in {"tool_name", "toolname"}), None)
        if near:
            return Message(
                "'{name}' is not tool_name: write tool_name:{open}the tool's name{close}.",
                name=near,
                open=OPEN,
                close=CLOSE,
            )
        return Message(
            "The block has no tool_name: write tool_name:{open}the tool's name{close}.", open=OPEN, close=CLOSE
        )

    def _problem(self, text: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems[text] = None

    def _check(self, marker: str) -> None:
        exact = f"<<<{marker.strip('<>')}>>>"
        if marker != exact:
            self._repaired[f"{marker} for {exact}"] = None
