"""Mermaid diagrams drawn with characters, each in a child process limited to 2 seconds of CPU time and 1 GiB.

None means that a diagram cannot be drawn: more than 8,000 characters, an unknown kind, too wide for the terminal, too
much work. Of one reply at most 8 are drawn, and after one that took too long no other is tried.
"""

import re
import subprocess
import sys
from dataclasses import dataclass

_MAX_SOURCE = 8_000
_MAX_DRAWN = 8
_MAX_WAIT = 10  # seconds; a slow start of Python is not the diagram's fault
_KIND = re.compile(
    r"\s*(?:%%[^\n]*\n\s*)*(?:flowchart|graph|sequence|state|class|erd|gantt|pie|mindmap|timeline|journey|gitg|quadrant"
    r"|kanban|xychart|block|packet|treemap|architecture)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Drawings:
    """The drawings of one reply."""

    remaining: int = _MAX_DRAWN

    def draw(self, source: str, width: int) -> str | None:
        if self.remaining <= 0 or len(source) > _MAX_SOURCE or not _KIND.match(source) or not sys.executable:
            return None
        self.remaining -= 1
        command = [sys.executable, "-I", "-B", "-X", "utf8", "-m", "toolyard.render.terminal_draw", str(width)]
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
