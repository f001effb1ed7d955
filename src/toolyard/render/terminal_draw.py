"""Draws one Mermaid diagram from stdin with characters on stdout: a program of its own, because a few words of source
can ask the drawing library for minutes and gigabytes. Exits with 1, and prints nothing, when there is no drawing that
fits; is ended by the system when it takes too much. Run with the width as its argument by ``terminal_diagram``.
"""

import resource
import sys
from contextlib import suppress

MAX_SECONDS = 2
_MAX_MEMORY = 1024**3
_MAX_DRAWING = 200_000


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
