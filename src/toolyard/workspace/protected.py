"""Places that no tool writes by itself: what stands there would run, or decide, without anybody looking (S-15)."""

from toolyard.protocol.failure import Failure, Reason


def require_open(path: str, *, force: bool) -> None:
    """Refuse a write below ``.git``, also to a file that does not exist yet, unless a person said so."""
    if ".git" in path.lower().split("/") and not force:
        raise Failure(
            Reason.DENIED,
            f"'{path}' is inside .git, where a file can run at the next commit: nothing was written.",
            hint="A person can do it with --force, or use git itself.",
            context={"path_resolved": path},
        )
