"""A model's text on its way to the client: tool requests are taken out of it as they are found.

Prose is passed on at once, however it is cut; only what may begin a request waits until that is known. With
``hides`` the requests themselves are not passed on.
"""

from toolyard.protocol.markers import WORD, Call, Malformed, Scanner, Text

_MOST = 4  # a start marker has two to four of them
_LOOKED_AT = 32  # characters that tell whether a line may begin a request


class View:
    def __init__(self, *, hides: bool, nonce: str | None = None) -> None:
        self._nonce = nonce
        self._made: Scanner | None = None
        self._hides = hides
        self._pending = ""  # neither passed on nor known to be a request
        self._later: list[str] = []  # what follows it, while no more text can decide that
        self._ahead = 0  # characters passed on before the scanner has given them
        self._prose = False  # the line at hand cannot begin a request,
        self._behind_tag = False  # but what follows may: it stands behind what may be the end of reasoning
        self._behind_block = False
        self._at = 0  # how far the scanner is, in characters
        self.requests: list[Call | Malformed] = []

    @property
    def expects(self) -> bool:
        """Whether a request was found, or may have begun."""
        return bool(self.requests) or (self._made is not None and self._made.is_open)

    def feed(self, text: str) -> str:
        """What the client may see by now."""
        events = self._scanner().feed(text)
        if not self._hides:
            self._collect(events)
            return text
        plain = self._prose and not self._behind_tag and not self._pending
        if not events and plain and "\n" not in text and ">" not in text:
            self._ahead += len(text)  # as nearly always
            return text
        self._later.append(text)
        if not events and len(self._pending) >= _LOOKED_AT and self._held:
            return ""  # a long block takes time in proportion to its length
        return self._settle(events) + self._prose_ahead()

    def whole(self, text: str) -> str:
        """The same for a text that comes in one piece: most hold no request at all."""
        return self.feed(text) + self.finish() if WORD in text else text

    def finish(self) -> str:
        """The reply has ended: the rest of what the client may see."""
        events = self._scanner().finish()
        if not self._hides:
            self._collect(events)
            return ""
        return self._settle(events)

    def _scanner(self) -> Scanner:
        self._made = self._made or Scanner(nonce=self._nonce)
        return self._made

    def _collect(self, events: list[Text | Call | Malformed]) -> None:
        self.requests += [event for event in events if not isinstance(event, Text)]

    @property
    def _held(self) -> bool:
        """Whether what is pending may be a request, or stands behind what may be one."""
        if self._prose:
            return self._behind_tag and may_begin_request(self._pending)
        return self._ahead > 0 or may_begin_request(self._pending)

    def _settle(self, events: list[Text | Call | Malformed]) -> str:
        self._pending = "".join([self._pending, *self._later])
        self._later.clear()
        shown = []
        for event in events:
            if isinstance(event, Text):
                size = len(event.text)
                self._at += size
                passed = min(size, self._ahead)
                self._ahead -= passed
                shown.append(self._unblocked(self._take(size - passed)))
            else:
                self.requests.append(event)
                if event.span[1] > self._at:
                    self._take(event.span[1] - self._at)
                    self._at = event.span[1]
                    self._behind_block = True  # what stands before it has ended its line
            self._prose = self._ahead > 0
            self._behind_tag = self._behind_tag and self._prose
        return "".join(shown)

    def _prose_ahead(self) -> str:
        """What is certain to be prose although its line has not ended."""
        if not self._pending or self._held:
            return ""
        end = self._pending.find("\n") + 1
        ahead = self._take(_certain(self._pending[: end or len(self._pending)]))
        self._ahead += len(ahead)
        self._prose = not ahead.endswith("\n")  # what follows is another line
        self._behind_tag = ahead.endswith(">")
        return self._unblocked(ahead)

    def _take(self, size: int) -> str:
        taken, self._pending = self._pending[:size], self._pending[size:]
        return taken

    def _unblocked(self, text: str) -> str:
        """Without the empty lines that a hidden request leaves behind."""
        if not self._behind_block:
            return text
        rest = text.lstrip("\n")
        self._behind_block = not rest
        return rest


def _certain(line: str) -> int:
    """How much of a line of prose can be no request: one may stand behind the tag that ends reasoning."""
    at = line.find(">") + 1
    while 0 < at < len(line) and not may_begin_request(line[at : at + _LOOKED_AT]):
        at = line.find(">", at) + 1
    return at or len(line)


def may_begin_request(line: str) -> bool:
    """Whether a line that begins so may turn out to begin a request; or is too short to tell."""
    begun = line[:_LOOKED_AT].lstrip(" \t\ufeff")
    word = begun.lstrip("<")
    marks = len(begun) - len(word)
    if not word:
        return marks <= _MOST
    return 1 < marks <= _MOST and (WORD.startswith(word) or word.startswith(WORD))
