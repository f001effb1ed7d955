"""The shell examples of the documentation: the lines that a reader types, and the exit code that the page promises.

A comment ``<!-- exits 1 -->`` in the line before a block says it for all lines of the block: readers do not see it, and
a shell that knows no comments when it is typed into, such as zsh, does not get one.
"""

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^(?:<!-- exits (\d) -->\n)?```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class TypedLine:
    text: str
    exit_code: int


def list_lines(page: str) -> list[TypedLine]:
    """Return the lines of all shell blocks of a page, in order."""
    return [
        TypedLine(line, int(exit_code or 0)) for exit_code, block in _BLOCK.findall(page) for line in block.splitlines()
    ]
