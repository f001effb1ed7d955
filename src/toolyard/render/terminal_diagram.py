"""Mermaid diagrams drawn with characters, each in a child process limited to 2 seconds of CPU time and 1 GiB.

A few words of source can ask the drawing library for minutes and gigabytes. None means that a diagram cannot be drawn:
more than 8,000 characters, an unknown kind, too wide for the terminal, too much work. Of one reply at most 8 are drawn,
and after one that took too long no other is tried.

The child is this module as a program: it reads the source from stdin and writes the drawing to stdout, with the width
as its argument. It exits with 1 and prints nothing when there is no drawing that fits."""

import re
import resource
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

_MAX_SOURCE = 8_000
_MAX_DRAWN = 8
_MAX_WAIT = 10  # seconds; a slow start of Python is not the diagram's fault
_KIND = re.compile(
    r"\s*(?:%%[^\n]*\n\s*)*(?:flowchart|graph|sequence|state|class|erd|gantt|pie|mindmap|timeline|journey|gitg|quadrant"
    r"|kanban|xychart|block|packet|treemap|architecture)",
    re.IGNORECASE,
)
MAX_SECONDS = 2
_MAX_MEMORY = 1024**3
_MAX_DRAWING = 200_000


@dataclass(slots=True)
class Drawings:
    """The drawings of one reply."""

    remaining: int = _MAX_DRAWN

    def draw(self, source: str, width: int) -> str | None:
        if self.remaining <= 0 or len(source) > _MAX_SOURCE or not _KIND.match(source) or not sys.executable:
            return None
        self.remaining -= 1
        command = [sys.executable, "-I", "-B", "-X", "utf8", "-m", "toolyard.render.terminal_diagram", str(width)]
        try:
            done = subprocess.run(  # noqa: S603 our own module, and the source goes to its stdin
                command,
                input=source.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_MAX_WAIT,
                check=False,
                env={},
            )
        except (subprocess.TimeoutExpired, OSError):
            self.remaining = 0
            return None
        if done.returncode < 0:  # ended by the system
            self.remaining = 0
        return done.stdout.decode() if done.returncode == 0 else None


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    with suppress(ValueError, OSError):  # not every system can limit memory
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    from rich.cells import cell_len
    from termaid import render

    source, width = sys.stdin.read(), int(sys.argv[1])
    for padding, gap in ((2, 4), (1, 2)):
        drawing = render(source, padding_x=padding, padding_y=0, gap=gap).strip("\n")
        fits = all(cell_len(line.rstrip()) <= width for line in drawing.split("\n"))
        if drawing.strip() and fits and len(drawing) <= _MAX_DRAWING:
            sys.stdout.write(drawing)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
