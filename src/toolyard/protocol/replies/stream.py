"""The displayable part of a reply while it is being written.

Knows prose, fences, think tags, comments, single quotes, raw newlines and odd escapes, but takes the first quote for
the end of a string: the complete reply is read with more care. Feeding takes time in proportion to the text fed, and
``reply`` in proportion to the text shown.
"""

import re
from collections.abc import Callable

from toolyard.protocol.replies.escapes import decode_string
from toolyard.protocol.replies.reply_values import Attachment, Repair, Reply

_TAG_OR_BRACE = re.compile(r"\{|<\s{0,9}+(/?)\s{0,9}+think(?:ing)?(?=[\s/>])[^<>]{0,200}+>", re.IGNORECASE)
_TAG_END = re.compile(r"<\s{0,9}+/\s{0,9}+think(?:ing)?\s{0,9}+>", re.IGNORECASE)
_LONGEST_TAG = 240
_CUT_TAG = re.compile(r"<[\s/]{0,19}(?:t|th|thi|thin|think(?:i|in|ing)?(?:[\s/][^<>]*)?)?\Z", re.IGNORECASE)
_FILLER = re.compile(r"[^{}\[\]\"'“:：,，/]+")
_COMMENTS = {"//": "\n", "/*": "*/"}
_DEEPEST = 3  # attachments, an id, a field
_RUNS = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+"), "“": re.compile(r"[^”\\]+")}
_CLOSING = {'"': '"', "'": "'", "“": "”"}
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB]..\\u....|u(?![dD][89abAB])....|(?!u)[A-Za-z]{1,24}(?=[^A-Za-z])|[^A-Za-z])", re.DOTALL
)
_LONGEST_ESCAPE = 26


class PartialReply:
    """A small state machine: ``_state`` reads from a position and returns the next, or the same when it needs more."""

    def __init__(self) -> None:
        self._rest = ""
        self._state: Callable[[str, int], int] = self._seek
        self._path: list[str | None] = []  # the key in each open container; None in a list, or before a key
        self._kinds: list[str] = []
        self._in_value = False
        self._quote = '"'
        self._comment_end = "\n"
        self._sink: list[str] = []
        self._fields: set[str] = set()  # of the current object
        self._settled: set[str] = set()  # of earlier objects, which later ones do not change
        self._was_thinking = False  # everything so far, as a lone closing tag shows
        self._texts: dict[tuple[str, ...], list[str]] = {}
        self._thought: list[str] = []

    def feed(self, chunk: str) -> None:
        text, at = self._rest + chunk, 0
        while at < len(text):
            state, before = self._state, at
            at = state(text, at)
            if at == before and self._state == state:
                break
        self._rest = text[at:]

    def reply(self) -> Reply:
        for pieces in self._texts.values():
            pieces[:] = ["".join(pieces)]  # joined once, not piece by piece again
        texts = {path: pieces[0] for path, pieces in self._texts.items()}
        attachments = {
            path[1]: Attachment(
                path[1],
                texts[path].strip().lower(),
                texts.get(("attachments", path[1], "content"), ""),
                texts.get(("attachments", path[1], "language")),
                texts.get(("attachments", path[1], "title")),
            )
            for path in texts
            if len(path) == 3 and path[0] == "attachments" and path[2] == "type"
        }
        think = texts.get(("think",), "".join(self._thought).strip() or None)
        return Reply(texts.get(("content",), ""), think, attachments, repairs=(Repair.TRUNCATED,))

    def _seek(self, text: str, at: int) -> int:
        match = _TAG_OR_BRACE.search(text, at)
        if match is None:
            return _find_cut_tag(text, at)
        if match[1]:  # the tag that opened it was part of the prompt
            self._was_thinking = True
        else:
            self._state = self._begin if match[0] == "{" else self._think
        return match.end()

    def _think(self, text: str, at: int) -> int:
        match = _TAG_END.search(text, at)
        end = match.start() if match else _find_cut_tag(text, at)
        self._thought.append(text[at:end])
        if match is None:
            return end
        self._state = self._seek
        return match.end()

    def _begin(self, text: str, at: int) -> int:
        """Read after a brace: an object, when a key or a comment follows."""
        if text[at].isspace():
            return at + len(text[at:]) - len(text[at:].lstrip())
        if text[at] not in _RUNS and text[at] != "/":
            self._state = self._seek
            return at
        self._path, self._kinds, self._in_value = [None], ["{"], False
        if self._was_thinking:
            self._texts, self._fields, self._settled, self._was_thinking = {}, set(), set(), False
        if any(self._texts.get(("content",), ())):  # the first object with content is the reply
            self._settled |= self._fields
            self._fields = set()
        self._state = self._structure
        return at

    def _structure(self, text: str, at: int) -> int:
        char = text[at]
        if char in _RUNS:
            self._open_string(char)
        elif char in "{[":
            self._path.append(None)
            self._kinds.append(char)
            self._in_value = char == "["
        elif char in "}]":
            self._path.pop()
            self._kinds.pop()
            self._in_value = False
            if not self._path:
                self._state = self._seek
        elif char in ":：":
            self._in_value = True
        elif char in ",，":
            self._in_value = self._kinds[-1] == "["
        elif char == "/":
            return self._open_comment(text, at)
        else:
            match = _FILLER.match(text, at)
            return match.end() if match else at + 1
        return at + 1

    def _open_comment(self, text: str, at: int) -> int:
        if at + 1 == len(text):
            return at
        mark = text[at : at + 2]
        if mark not in _COMMENTS:
            return at + 1
        self._comment_end, self._state = _COMMENTS[mark], self._comment
        return at + 2

    def _comment(self, text: str, at: int) -> int:
        end = text.find(self._comment_end, at)
        if end < 0:
            return len(text) - (text[-1] == "*" and len(text) > at)
        self._state = self._structure
        return end + len(self._comment_end)

    def _open_string(self, quote: str) -> None:
        self._quote, self._state, self._sink = quote, self._string, []
        if len(self._path) > _DEEPEST:
            return
        path = tuple(key.lower() if number != 1 else key for number, key in enumerate(self._path) if key is not None)
        if self._in_value and len(path) == len(self._path) and path[0] not in self._settled:
            self._texts[path] = self._sink
            self._fields.add(path[0])

    def _string(self, text: str, at: int) -> int:
        run = _RUNS[self._quote].match(text, at)
        if run is not None:
            self._sink.append(run[0])
            return run.end()
        if text[at] == _CLOSING[self._quote]:
            if not self._in_value:
                self._path[-1] = "".join(self._sink)
            self._state = self._structure
            return at + 1
        escape = _ESCAPE.match(text, at)
        if escape is None and len(text) - at < _LONGEST_ESCAPE:
            return at
        piece = escape[0] if escape else text[at : at + _LONGEST_ESCAPE]
        self._sink.append(decode_string(piece, {}))
        return at + len(piece)


def _find_cut_tag(text: str, at: int) -> int:
    """Return the end of ``text``, or the start of a tag that has not arrived completely."""
    cut = _CUT_TAG.search(text, max(at, len(text) - _LONGEST_TAG))
    return cut.start() if cut else len(text)
