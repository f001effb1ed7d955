"""One tool-request block: fed whole lines, it ends by itself and is then a Call or Malformed.

Nothing that was meant as a field is dropped in silence: a name without a value, a value without a name, a name given
twice or a value that does not end refuses the whole block, and the problem says how to write it right. Marks that were
mistyped but leave no doubt are taken and listed in ``repaired``.
"""

import re
from enum import Enum, auto

from toolyard.protocol.requests.events import Call, Malformed, Span
from toolyard.protocol.requests.marks import (
    AFTER_VALUE,
    CLOSE,
    END,
    ESCAPE_CLOSE,
    ESCAPE_OPEN,
    FIELD,
    FIELD_IN_VALUE,
    OPEN,
    Marks,
    escape_close,
    unescape,
)

SPECIAL = ("tool_name", "archery", "ink", "river", "timely_contact", "tool_password")  # never reach the tool
_RARE = frozenset(SPECIAL) - {"tool_name"}
MAX_PROBLEMS = 3  # told of one block; more would not help
_USE_ESCAPE = f"Text that holds the marks belongs between {ESCAPE_OPEN} and {ESCAPE_CLOSE}."


def is_reserved(name: str) -> bool:
    """Names that only hosts use among themselves, such as ``__proto__`` and ``__vcp_timed_call``."""
    return name.startswith("__")


def parse_plain_call(inside: str, span: Span) -> Call | None:
    """The call of a block that is made of ``FIELD`` only, as most are; None when it needs a closer look."""
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


class Block:
    def __init__(self, marks: Marks, marker: str) -> None:
        self.end: End | None = None
        self._marks = marks
        self._name: str | None = None  # of the field whose value is expected or open
        self._expected = False  # the name stands where a field begins: without a value it is a mistake
        self._opened = ""  # the mark that opened the value, while one is open
        self._value: list[str] = []
        self._fields: dict[str, str] = {}
        self._problems: dict[str, None] = {}
        self._repaired: dict[str, None] = {}
        self._check(marker)

    def read(self, text: str, at: int) -> int:
        """Read on from ``at`` until the block or the text ends; give where that is."""
        while self.end is None and at < len(text):
            if not self._opened:
                at = self._read_between(text, at)
            elif len(self._opened) == len(OPEN):
                at = self._read_plain(text, at)
            else:
                at = self._read_escaped(text, at)
        return at

    def cut(self) -> None:
        """The reply ends here."""
        if self._opened:
            self._describe_unclosed()
            if len(self._opened) > len(OPEN):
                self._problem("Everything after it was taken as its text, so no later block was run.")
        else:
            self._forget_name()
            self._problem(f"The block has no end marker: close it with {END} on its own line.")
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
            return Malformed(problem=" ".join(self._problems), span=span, tool=tool or None, repaired=repaired)
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
        field = FIELD.match(text, at) if self._name is None else None
        if field:
            self._name = field[1]
            self._store(field[2].strip())
            return field.end()
        found = self._marks.fields.search(text, at)
        gap = text[at : found.start() if found else len(text)]
        kind = found.lastgroup if found else None
        if gap.strip() or (kind is not None and kind != "open"):
            self._forget_name()
        if found is None:
            return len(text)
        match kind:
            case "end":
                self._check(found[0])
                self.end = End.MARKER
            case "start":
                self._problem(f"The block has no end marker before the next one: close it with {END} on its own line.")
                self.end = End.NEXT_BLOCK
                return found.start()
            case "colon":
                self._name = found["name"]
                self._expected = not gap.rpartition("\n")[2].strip(" \t\r,，")
                if found["colon"] != ":":
                    self._repaired["full-width colon"] = None
            case "open":
                self._open_value(found[0])
            case "close":
                self._repaired[f"stray {found[0]}"] = None
        return found.end()

    def _open_value(self, mark: str) -> None:
        if self._name is None:
            self._problem(f"A value has no name before it: write name:{OPEN}value{CLOSE}.")
        if mark not in {OPEN, ESCAPE_OPEN}:
            self._repaired[f"{mark} for {OPEN if len(mark) == len(OPEN) else ESCAPE_OPEN}"] = None
        self._opened = mark

    def _forget_name(self) -> None:
        """A name and a colon, but no value: a slip where a field begins, mere words elsewhere."""
        if self._name is not None and self._expected:
            self._problem(f"The value of '{self._name}' has no marks: write {self._name}:{OPEN}value{CLOSE}.")
        self._name = None

    # --- values

    def _read_plain(self, text: str, at: int) -> int:
        found = self._marks.plain.search(text, at)
        if found is None:
            self._value.append(text[at:])
            return len(text)
        if found["close"]:
            return self._check_mistyped_close(text, at, found)
        self._describe_unclosed()
        if found["start"]:
            self.end = End.NEXT_BLOCK_IN_VALUE
            return found.start()
        self.end = End.MARKER
        return found.end()

    def _check_mistyped_close(self, text: str, at: int, found: re.Match[str]) -> int:
        """A mistyped mark ends a value that was opened by one, or where a field can end; elsewhere it is text."""
        mark = found["close"]
        if mark != CLOSE and self._opened == OPEN and not AFTER_VALUE.match(text, found.end()):
            self._value.append(text[at : found.end()])
            return found.end()
        if mark != CLOSE:
            self._repaired[f"{mark} for {CLOSE}"] = None
        self._value.append(text[at : found.start()])
        value = self._take_value()
        swallowed = FIELD_IN_VALUE.search(value)
        if swallowed:
            self._problem(f"The value of '{self._name}' is not closed before '{swallowed[1]}': end it with {CLOSE}.")
        self._store(value.strip())
        return found.end()

    def _read_escaped(self, text: str, at: int) -> int:
        found = escape_close(self._opened).search(text, at)
        self._value.append(text[at : found.start() if found else len(text)])
        if found is None:
            return len(text)
        if found[0] != ESCAPE_CLOSE:
            self._repaired[f"{found[0]} for {ESCAPE_CLOSE}"] = None
        value = self._take_value()
        value = value.removeprefix("\r\n" if value.startswith("\r\n") else "\n")
        value = value.removesuffix("\r\n" if value.endswith("\r\n") else "\n")
        self._store(unescape(value))
        return found.end()

    def _take_value(self) -> str:
        value = "".join(self._value)
        self._value.clear()
        return value

    def _store(self, value: str) -> None:
        name, self._name, self._opened = self._name, None, ""
        if name is None:
            return
        if name in self._fields:
            self._problem(f"'{name}' is given twice: give each name once. {_USE_ESCAPE}")
        self._fields.setdefault(name, value)

    # --- what is wrong

    def _describe_unclosed(self) -> None:
        close = CLOSE if len(self._opened) == len(OPEN) else f"「末{self._opened[2:-1]}」"
        hint = f" {_USE_ESCAPE}" if close == CLOSE else ""
        self._problem(f"The value of '{self._name or ''}' is not closed: end it with {close}.{hint}")

    def _describe_nameless(self, fields: dict[str, str]) -> str:
        near = next((name for name in fields if name.lower().replace("-", "_") in {"tool_name", "toolname"}), None)
        write = f"write tool_name:{OPEN}the tool's name{CLOSE}"
        return f"'{near}' is not tool_name: {write}." if near else f"The block has no tool_name: {write}."

    def _problem(self, text: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems[text] = None

    def _check(self, marker: str) -> None:
        exact = f"<<<{marker.strip('<>')}>>>"
        if marker != exact:
            self._repaired[f"{marker} for {exact}"] = None
