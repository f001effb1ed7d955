"""diffContent: one or more pieces of text to search for and what to put in their places.

    <<<<<<< SEARCH
    :start_line:12        optional, with the dashes below it; the number is not needed and not used
    -------
    the old text
    =======
    the new text
    >>>>>>> REPLACE

Markers stand alone on their lines. Without an ``=======``, the last ``-------`` parts the old text from the new. A
block that is not whole is refused, never guessed at.
"""

import re
from collections.abc import Sequence

from toolyard.protocol.edit import Edit
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_START = re.compile(r"<{7} ?SEARCH[ \t]*")
_MIDDLE = re.compile(r"={7}[ \t]*")
_DASHES = re.compile(r"-{7}[ \t]*")
_END = re.compile(r">{7} ?REPLACE[ \t]*")
_HINT = re.compile(r":\w+:.*|[ \t]*")  # a line above the dashes, such as ``:start_line:12``


def parse_blocks(text: str) -> list[Edit]:
    """The edits, in order; raises Failure when there is none or one is not whole."""
    edits: list[Edit] = []
    block: list[str] | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        if _START.fullmatch(line):
            if block is not None:
                raise _broken(len(edits) + 1, "has no '>>>>>>> REPLACE' at its end")
            block = []
        elif block is None:
            if line.strip():
                raise _broken(len(edits) + 1, f"has {line.strip()[:60]!r} before its '<<<<<<< SEARCH'")
        elif _END.fullmatch(line):
            edits.append(_edit(block, len(edits) + 1))
            block = None
        else:
            block.append(line)
    if block is not None:
        raise _broken(len(edits) + 1, "has no '>>>>>>> REPLACE' at its end")
    if not edits:
        raise _broken(1, "is missing: diffContent has no '<<<<<<< SEARCH'")
    return edits


def _edit(block: Sequence[str], number: int) -> Edit:
    middles = [at for at, line in enumerate(block) if _MIDDLE.fullmatch(line)]
    dashes = [at for at, line in enumerate(block) if _DASHES.fullmatch(line)]
    if len(middles) > 1:
        raise _broken(number, "has more than one line '=======', so nobody can say which one parts it")
    if not middles and not dashes:
        raise _broken(number, "has no line '=======' between the old text and the new")
    middle = middles[0] if middles else dashes[-1]
    begin = next((at + 1 for at in dashes if at < middle and all(map(_HINT.fullmatch, block[:at]))), 0)
    old, new = "\n".join(block[begin:middle]), "\n".join(block[middle + 1 :])
    if not old.strip():
        raise _broken(number, "has no old text to search for")
    return Edit(old, new)


def _broken(number: int, why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        f"Block {number} of diffContent {why}: nothing was changed.",
        hint="Write each block as <<<<<<< SEARCH, the old text, =======, the new text, >>>>>>> REPLACE, "
        "each marker on a line of its own.",
    )
