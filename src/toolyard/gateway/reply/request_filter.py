"""A filter for a model's text on its way to the client: removes tool requests as they arrive.

Prose is passed on at once, however it is cut; only text that may begin a request is held until that is decided. With
``hides`` the requests themselves are not passed on.
"""

from enum import Enum, auto

from toolyard.protocol.requests.marks import Call, Malformed, Text, add_piece
from toolyard.protocol.requests.scanner import WORD, Scanner

_MOST = 4  # a start marker has two to four of them
_LOOKED_AT = 32  # characters that decide whether a line may begin a request


class _Line(Enum):
    """States of the current line.

    | state     | what the client has of the line            | the text that follows                               |
    |-----------|--------------------------------------------|-----------------------------------------------------|
    | UNDECIDED | nothing                                    | held while it may begin a request                   |
    | PROSE     | its beginning, which begins no request     | passed on                                           |
    | AFTER_TAG | its beginning, up to a ">"                 | held while it may begin a request: the tag may have |
    |           |                                            | ended the model's reasoning                         |
    | ENDED     | all of it, before the scanner has emitted it | held until the scanner has emitted the line           |

    Text that cannot begin a request is passed on and leads to PROSE, AFTER_TAG (it ends with ">") or ENDED (with a line
    break). When the scanner has emitted all that was passed on, the line is UNDECIDED again.
    """

    UNDECIDED = auto()
    PROSE = auto()
    AFTER_TAG = auto()
    ENDED = auto()


class RequestFilter:
    """Text without its tool requests, which are in ``requests``; with ``hides`` false, only the latter."""

    def __init__(self, *, hides: bool, nonce: str | None = None) -> None:
        self._nonce = nonce
        self._made: Scanner | None = None
        self._hides = hides
        self._line = _Line.UNDECIDED
        self._pending = ""  # neither passed on nor known to be a request
        self._later: list[str] = []  # the text after it, while no more text can decide that
        self._ahead = 0  # characters passed on before the scanner has emitted them
        self._at = 0  # the scanner's position, in characters
        self._trims = False  # a request was removed; the empty lines after it go too
        self.requests: list[Call | Malformed] = []

    @property
    def has_request(self) -> bool:
        """Return whether a request was found, or may have begun."""
        return bool(self.requests) or (self._made is not None and self._made.is_open)

    def feed(self, text: str) -> str:
        """Return the text that the client may see by now."""
        events = self._scanner().feed(text)
        if not self._hides:
            self._collect(events)
            return text
        plain = self._line is _Line.PROSE and not self._pending
        if not events and plain and "\n" not in text and ">" not in text:
            self._ahead += len(text)  # as nearly always
            return text
        add_piece(self._later, text)
        if not events and len(self._pending) >= _LOOKED_AT and self._is_held():
            return ""  # a long block takes time in proportion to its length
        return self._take_events(events) + self._take_prose()

    def filter_text(self, text: str) -> str:
        """Return the text that the client may see of a complete text: most hold no request at all."""
        return self.feed(text) + self.finish() if WORD in text else text

    def finish(self) -> str:
        """End the reply; return the rest of the text that the client may see."""
        events = self._scanner().finish()
        if not self._hides:
            self._collect(events)
            return ""
        return self._take_events(events)

    def _scanner(self) -> Scanner:
        self._made = self._made or Scanner(nonce=self._nonce)
        return self._made

    def _collect(self, events: list[Text | Call | Malformed]) -> None:
        self.requests += [event for event in events if not isinstance(event, Text)]

    def _is_held(self) -> bool:
        match self._line:
            case _Line.PROSE:
                return False
            case _Line.ENDED:
                return True
            case _Line.UNDECIDED | _Line.AFTER_TAG:
                return may_begin_request(self._pending)

    def _take_events(self, events: list[Text | Call | Malformed]) -> str:
        """Return the prose that the scanner has emitted and the client does not have; requests are collected."""
        pending, at = "".join([self._pending, *self._later]), 0
        self._later.clear()
        visible = []
        for event in events:
            if isinstance(event, Text):
                size = len(event.text)
                self._at += size
                passed = min(size, self._ahead)
                self._ahead -= passed
                visible.append(self._trim(pending[at : at + size - passed]))
                at += size - passed
            else:
                self.requests.append(event)
                if event.span[1] > self._at:
                    at += event.span[1] - self._at
                    self._at = event.span[1]
                    self._trims = True  # the text before it has ended its line
            if not self._ahead:
                self._line = _Line.UNDECIDED
            elif self._line is not _Line.AFTER_TAG:
                self._line = _Line.PROSE
        self._pending = pending[at:]
        return "".join(visible)

    def _take_prose(self) -> str:
        """Return the text that is certain to be prose although its line has not ended."""
        if not self._pending or self._is_held():
            return ""
        end = self._pending.find("\n") + 1
        ahead = self._take(_count_certain(self._pending[: end or len(self._pending)]))
        self._ahead += len(ahead)
        self._line = {"\n": _Line.ENDED, ">": _Line.AFTER_TAG}.get(ahead[-1], _Line.PROSE)
        return self._trim(ahead)

    def _take(self, size: int) -> str:
        text, self._pending = self._pending[:size], self._pending[size:]
        return text

    def _trim(self, text: str) -> str:
        """Return the text without the empty lines that a hidden request leaves behind."""
        if not self._trims:
            return text
        rest = text.lstrip("\n")
        self._trims = not rest
        return rest


def _count_certain(line: str) -> int:
    """Return the length of the part of a line that holds no request: one may follow the tag that ends reasoning."""
    at = line.find(">") + 1
    while 0 < at < len(line) and not may_begin_request(line[at : at + _LOOKED_AT]):
        at = line.find(">", at) + 1
    return at or len(line)


def may_begin_request(line: str) -> bool:
    """Return whether a line that begins with ``line`` may begin a request, or is too short to tell."""
    begun = line[:_LOOKED_AT].lstrip(" \t\ufeff")
    word = begun.lstrip("<")
    marks = len(begun) - len(word)
    if not word:
        return marks <= _MOST
    return 1 < marks <= _MOST and (WORD.startswith(word) or word.startswith(WORD))
