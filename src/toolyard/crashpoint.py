"""Named moments at which a test may end the process, to see what is left of it.

Nothing happens at a crash point unless something is armed, which only tests do: it costs one look at one name. A point
stands where a crash would be of interest: before and after each transaction, rename and start of a process, and
wherever something becomes known that is not stored yet. Every name is used once, so that it tells its place.
"""

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def crashpoint(name: str) -> None:
    """Mark a named moment: an armed hook is called."""
    if _hook is not None:
        _hook(name)


def arm(hook: Callable[[str], None] | None) -> None:
    """Call ``hook`` at every moment from now on, on its own thread; None disarms it."""
    global _hook  # noqa: PLW0603 one process, one hook
    _hook = hook
