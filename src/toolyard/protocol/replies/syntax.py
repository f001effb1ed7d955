"""The position at which the JSON of a reply breaks off, for a text that even the tolerant reader cannot read.

Comments and trailing commas are forgiven everywhere, so they are no error here either; the first other character that
JSON does not allow is. Positions count from 0, in code points. Linear.
"""

import json
import re

from toolyard.message import Message
from toolyard.protocol.replies.values import Repair

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
        return Message(
            "reply.unexpected_character",
            "Invalid JSON: Unexpected character at position {position}",
            position=position,
        )
    return Message(
        "reply.unexpected_end", "Invalid JSON: Unexpected end of text at position {position}", position=position
    )


def _blank_out(match: re.Match[str]) -> str:
    """Replace tolerated text by blanks, so that every other character keeps its position."""
    return match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0])
