"""diffContent: one or more pieces of text to search for and what to put in their places.

    <<<<<<< SEARCH
    :start_line:12        optional; the number is not needed and not used
    -------               optional
    the old text
    =======
    the new text
    >>>>>>> REPLACE

Markers stand alone on their lines. Without an ``=======``, the last ``-------`` parts the old text from the new. Dashes
without a number above them may be text themselves: if they stand above the old text in the file, the new text must
begin with them as well, and else the block is refused. One that is not whole is refused too, never guessed at.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.edit import Edit
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_START = re.compile(r"<{7} ?SEARCH[ \t]*")
_MIDDLE = re.compile(r"={7}[ \t]*")
_DASHES = re.compile(r"-{7}[ \t]*")
_END = re.compile(r">{7} ?REPLACE[ \t]*")
_HINT = re.compile(r":(?:start|end)_line:[ \t]*\d+[ \t]*")  # a line above the dashes
_DASHED = re.compile(r"-{7}[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class DiffBlock:
    old: str
    new: str
    number: int = 1
    dashes: str = ""  # the line above the old text, which may belong to it

    def to_edit(self, text: str) -> Edit:
        """Build the edit for a file with this text; raises Failure when the block is ambiguous."""
        whole = f"{self.dashes}\n{self.old}"
        if not self.dashes or _strip_lines(whole) not in _strip_lines(text):
            return Edit(self.old, self.new)
        if not _DASHED.match(self.new):
            raise _broken_block(
                self.number,
                Message("edit.block_dashes", "begins with '-------', which also stands above the old text in the file"),
                Message(
                    "hint.dashes_in_block",
                    "If it is no text, write ':start_line:1' above it; if it is, give the line before it as well.",
                ),
            )
        return Edit(whole, self.new)


def parse_blocks(text: str) -> list[DiffBlock]:
    """The blocks, in order; raises Failure when there is none or one is not whole."""
    blocks: list[DiffBlock] = []
    lines: list[str] | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        if _START.fullmatch(line):
            if lines is not None:
                raise _broken_block(
                    len(blocks) + 1, Message("edit.block_no_end", "has no '>>>>>>> REPLACE' at its end")
                )
            lines = []
        elif lines is None:
            if line.strip():
                raise _broken_block(
                    len(blocks) + 1,
                    Message(
                        "edit.block_text_before", "has {text} before its '<<<<<<< SEARCH'", text=repr(line.strip()[:60])
                    ),
                )
        elif _END.fullmatch(line):
            blocks.append(_parse_block(lines, len(blocks) + 1))
            lines = None
        else:
            lines.append(line)
    if lines is not None:
        raise _broken_block(len(blocks) + 1, Message("edit.block_no_end", "has no '>>>>>>> REPLACE' at its end"))
    if not blocks:
        raise _broken_block(1, Message("edit.block_missing", "is missing: diffContent has no '<<<<<<< SEARCH'"))
    return blocks


def _parse_block(lines: Sequence[str], number: int) -> DiffBlock:
    middles = [at for at, line in enumerate(lines) if _MIDDLE.fullmatch(line)]
    dashes = [at for at, line in enumerate(lines) if _DASHES.fullmatch(line)]
    if len(middles) > 1:
        raise _broken_block(
            number,
            Message("edit.block_two_middles", "has more than one line '=======', so nobody can say which one parts it"),
        )
    if not middles and not dashes:
        raise _broken_block(
            number, Message("edit.block_no_middle", "has no line '=======' between the old text and the new")
        )
    middle = middles[0] if middles else dashes[-1]
    begin = next((at + 1 for at in dashes[:1] if at < middle and all(map(_HINT.fullmatch, lines[:at]))), 0)
    old, new = "\n".join(lines[begin:middle]), "\n".join(lines[middle + 1 :])
    if not old.strip():
        raise _broken_block(number, Message("edit.block_no_old_text", "has no old text to search for"))
    return DiffBlock(old, new, number, lines[0] if begin == 1 else "")


def _strip_lines(text: str) -> str:
    """Lines without blanks at their ends: how a text may be found all the same."""
    return "\n".join(map(str.strip, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


_FORM = Message(
    "hint.diff_block_form",
    "Write each block as <<<<<<< SEARCH, the old text, =======, the new text, >>>>>>> REPLACE, "
    "each marker on a line of its own.",
)


def _broken_block(number: int, why: str, hint: str = _FORM) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message(
            "edit.diff_block_failed",
            "Block {number} of diffContent {why}: nothing was changed.",
            number=number,
            why=why,
        ),
        hint=hint,
    )
