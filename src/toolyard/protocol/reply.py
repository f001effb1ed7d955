"""The structured reply of a model: think, content, attachments.

``parse_reply`` takes what a model really writes. It never raises, and takes time in proportion to the text. A text that
is JSON is read as JSON; any other is searched for the object with the content, which is read with tolerance, and all
that was forgiven is listed in ``repairs``. A reply that can be read but is not right, such as one with a placeholder
without its attachment, lists that in ``problems``. At most 2 MiB, 200 levels, 64 attachments of 1 MiB each.
"""

from toolyard.protocol.replies.escapes import Repairs, without_surrogates
from toolyard.protocol.replies.fields import reply_of
from toolyard.protocol.replies.find import Found, find, strictly, unescaped
from toolyard.protocol.replies.lenient_json import TooDeep
from toolyard.protocol.replies.stream import View
from toolyard.protocol.replies.values import (
    MAX_BYTES,
    Attachment,
    AttachmentType,
    Problem,
    ProblemCode,
    Repair,
    Reply,
    ReplyError,
)

__all__ = [
    "Attachment",
    "AttachmentType",
    "Problem",
    "ProblemCode",
    "Repair",
    "Reply",
    "ReplyError",
    "ReplyStream",
    "parse_reply",
]

_MAX_ENCODINGS = 3  # JSON in a string in a string is the most that has been seen


def parse_reply(text: str) -> Reply | ReplyError:
    """The reply in ``text``, or why there is none."""
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        return ReplyError.at(text, 0, f"The reply is larger than {MAX_BYTES} bytes.")
    repairs: Repairs = {}
    clean = without_surrogates(text, repairs)
    try:
        found = _search(clean, repairs)
    except TooDeep as error:
        return ReplyError.at(text, error.position, str(error))
    if found is None:
        brace = max(0, clean.find("{"))
        return ReplyError.at(text, brace, "There is no JSON object in the text.")
    reply = reply_of(found.value, found.think, tuple(dict.fromkeys((*repairs, *found.repairs))))
    return ReplyError.at(text, found.start, reply) if isinstance(reply, str) else reply


def _search(text: str, repairs: Repairs) -> Found | None:
    """The object of the reply; one that is written in a string, or with its quotes escaped, is decoded first."""
    for _ in range(_MAX_ENCODINGS):
        odd: Repairs = {}
        try:
            value = strictly(text, odd)
        except ValueError:
            value = None
        if isinstance(value, dict) and "content" in map(str.lower, value):
            return Found(value, len(text) - len(text.lstrip("\ufeff \t\r\n")), tuple(odd))
        found = None if isinstance(value, str) else find(text)
        inner = value if isinstance(value, str) else unescaped(text) if found is None else None
        if inner is None:
            return found
        repairs[Repair.DOUBLE_ENCODED] = None
        text = inner
    return None


class ReplyStream:
    """A reply while it is being written: however it is cut, ``result`` is ``parse_reply`` of the whole."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0
        self._view = View()

    def feed(self, chunk: str) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size <= MAX_BYTES:
            self._view.feed(chunk)

    @property
    def so_far(self) -> Reply:
        """What can be shown by now: the content may be empty still, and what comes last may be cut off."""
        return self._view.reply()

    def result(self) -> Reply | ReplyError:
        return parse_reply("".join(self._chunks))
