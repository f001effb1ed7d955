"""The structured reply of a model: think, content, attachments.

``parse_reply`` accepts what models really write. It never raises, and takes linear time. A well-formed reply is read by
a fast path with the same result. Else a text that is JSON is read as JSON; any other is searched for the object with
the content, which is read with tolerance, and every repair is listed in ``repairs``. A reply that can be read but has
faults, such as a placeholder without its attachment, lists them in ``problems``.
At most 2 MiB, 200 levels, 64 attachments of 1 MiB each.

A reply whose quotes are HTML entities, ``{&quot;content&quot;: &quot;Hello&quot;}``, was escaped for a page as a whole,
once. So the characters that are escaped for pages are all restored, once; other entities are the author's own. For a
text that even the tolerant reader cannot read there is the position at which its JSON breaks off. Comments and trailing
commas are forgiven everywhere, so they are no error there either. Positions count from 0, in code points.
"""

import html
import json
import re

from toolyard.message import Message
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import Repairs, remove_surrogates
from toolyard.protocol.replies.find import FoundObject, find_object, unescape_object
from toolyard.protocol.replies.lenient_json import TooDeep
from toolyard.protocol.replies.reply_fields import build_reply, parse_plain_reply
from toolyard.protocol.replies.reply_values import MAX_BYTES, Fault, Repair, Reply, ReplyError
from toolyard.protocol.replies.stream import PartialReply
from toolyard.protocol.replies.strict import NOTHING, parse_strict

__all__ = ["Reply", "ReplyError", "ReplyStream", "parse_reply"]  # for programs that parse replies themselves
_NARROW = str.maketrans("｛｝［］", "{}[]")
_STRING_OR_WIDE = compile_pattern(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|＂[^＂]*+＂?+|“[^”]*+”?+|[｛｝［］]', re.DOTALL)
_OBJECT_AHEAD = re.compile(r"[\s\ufeff]*(?:(?:`{3,}|~{3,})[\w+-]{0,20}\s*)?\{")
_MAX_ENCODINGS = 3  # JSON in a string in a string is the most that has been seen
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_QUOTE = re.compile(r"[{\[,:：]\s*&(?:quot|apos|#0*(?:34|39)|#x0*(?:22|27));", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:quot|apos|lt|gt|amp|#0*(?:34|38|39|60|62)|#x0*(?:22|26|27|3c|3e));", re.IGNORECASE)
GUESSES = frozenset(
    {
        Repair.STRAY_TEXT,
        Repair.MISSING_COLON,
        Repair.MISSING_COMMA,
        Repair.MISSING_QUOTE,
        Repair.INNER_QUOTES,
        Repair.MISMATCHED_BRACKET,
        Repair.MISSING_BRACE,
        Repair.TRUNCATED,
    }
)  # repairs after which a missing field may have been lost to the broken syntax around it
SYNTAX_ERROR = "Invalid JSON"  # the beginning of its message
_FORGIVEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)
_BLANKS = re.compile(r"\s*")
_decode = json.JSONDecoder(strict=False).raw_decode


def parse_reply(text: str) -> Reply | ReplyError:
    """Return the reply in ``text``, or the reason why there is none."""
    if _is_too_large(text):
        message = Message("The reply is larger than {most} bytes.", most=MAX_BYTES)
        return ReplyError.at(text, 0, message, Fault.TOO_LARGE)
    reply = parse_plain_reply(text) or _parse_with_care(text)
    if _may_have_entity_quotes(reply) and has_entity_quotes(text):
        unescaped_reply = _parse_with_care(unescape_entities(text))
        if isinstance(unescaped_reply, Reply):
            return unescaped_reply._replace(repairs=(Repair.HTML_ENTITIES, *unescaped_reply.repairs))
    return reply


def _may_have_entity_quotes(reply: Reply | ReplyError) -> bool:
    """Return whether a text was not read, or its content was read as words that begin with an entity."""
    return isinstance(reply, ReplyError) or (Repair.UNQUOTED in reply.repairs and reply.content.startswith("&"))


def _parse_with_care(text: str) -> Reply | ReplyError:
    repairs: Repairs = {}
    try:
        match = _search_object(text, repairs)
    except TooDeep as error:
        return ReplyError.at(text, error.position, str(error), Fault.TOO_DEEP)
    if match is None:
        start = _OBJECT_AHEAD.match(text)
        if start is not None:
            return _make_syntax_error(text, start.end() - 1)
        message: str = Message("There is no JSON object in the text.")
        return ReplyError.at(text, max(0, text.find("{")), message, Fault.NO_OBJECT)
    made = tuple(dict.fromkeys((*repairs, *match.repairs)))
    reply = build_reply(match.value, match.think, made)
    if isinstance(reply, Reply):
        return reply
    message, fault = reply
    if fault is Fault.NO_CONTENT and not GUESSES.isdisjoint(made) and Repair.DOUBLE_ENCODED not in made:
        return _make_syntax_error(text, match.start)
    return ReplyError.at(text, match.start, message, fault)


def _make_syntax_error(text: str, start: int) -> ReplyError:
    position = find_syntax_error(text, start)
    return ReplyError.at(text, position, describe_syntax_error(text, position), Fault.SYNTAX)


def _is_too_large(text: str) -> bool:
    if len(text) <= MAX_BYTES // 4 or len(text) > MAX_BYTES or text.isascii():  # a character has 4 bytes at most
        return len(text) > MAX_BYTES
    return len(text.encode(errors="surrogatepass")) > MAX_BYTES


def _search_object(text: str, repairs: Repairs) -> FoundObject | None:
    """Return the object of the reply; one that is written in a string, or with escaped quotes, is decoded first."""
    for _ in range(_MAX_ENCODINGS):
        odd: Repairs = {}
        try:
            value = parse_strict(text, odd)
        except ValueError:
            value = None
        if isinstance(value, dict) and (not value or "content" in map(str.lower, value)):
            return FoundObject(value, len(text) - len(text.lstrip(NOTHING)), tuple(odd))
        text = remove_surrogates(text, repairs)
        match = None if isinstance(value, str) else _find_object(text, repairs)
        inner = value if isinstance(value, str) else unescape_object(text) if match is None else None
        if inner is None:
            return match
        repairs[Repair.DOUBLE_ENCODED] = None
        text = inner
    return None


def _narrow_character(part: re.Match[str]) -> str:
    return part[0].translate(_NARROW) if len(part[0]) == 1 else part[0]


def _find_object(text: str, repairs: Repairs) -> FoundObject | None:
    """Return the object of a text, also one with full-width brackets; those in its strings stay."""
    match = find_object(text)
    if ("｛" in text or "｝" in text or "］" in text) and (match is None or Repair.TRUNCATED in match.repairs):
        wide = find_object(_STRING_OR_WIDE.sub(_narrow_character, text))
        if wide is not None and (match is None or Repair.TRUNCATED not in wide.repairs):
            repairs[Repair.FULL_WIDTH] = None
            return wide
    return match


class ReplyStream:
    """A reply while it is being written: however it is cut, ``result`` is ``parse_reply`` of all of it."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0
        self._view = PartialReply()

    def feed(self, chunk: str) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size <= MAX_BYTES:
            self._view.feed(chunk)

    @property
    def so_far(self) -> Reply:
        """The displayable part by now: the content may still be empty, and its end may be cut off."""
        return self._view.reply()

    def result(self) -> Reply | ReplyError:
        return parse_reply("".join(self._chunks))


def has_entity_quotes(text: str) -> bool:
    """Return whether a key or a text begins with an entity where JSON has a quote."""
    return "&" in text and _QUOTE.search(_STRING.sub('""', text)) is not None


def unescape_entities(text: str) -> str:
    return _ESCAPED.sub(lambda entity: html.unescape(entity[0].lower()), text)


def find_syntax_error(text: str, start: int) -> int:
    """Return the position of the first character that is invalid in the JSON object at ``start``."""
    plain = _FORGIVEN.sub(_blank_out, text[start:])
    try:
        _, end = _decode(plain)
    except json.JSONDecodeError as error:
        # For an unterminated string the decoder reports its beginning.
        at = len(plain) if error.msg.startswith("Unterminated") else error.pos
    except RecursionError:
        at = 0
    else:
        blanks = _BLANKS.match(plain, end)
        at = blanks.end() if blanks else end
    return start + at


def describe_syntax_error(text: str, position: int) -> str:
    if position < len(text.rstrip()):
        return Message("Invalid JSON: Unexpected character at position {position}", position=position)
    return Message("Invalid JSON: Unexpected end of text at position {position}", position=position)


def _blank_out(match: re.Match[str]) -> str:
    """Replace tolerated text by blanks, so that every other character keeps its position."""
    return match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0])
