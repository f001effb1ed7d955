"""A pattern for files may not lead out of the folder that is searched (S-18).

A leading slash anchors the pattern at that folder. A pattern that begins with the folder's own absolute path means the
same. One that begins with a folder of the system which the searched folder does not have was meant for outside.
"""

from collections.abc import Callable

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_SYSTEM = {"bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin",
           "srv", "sys", "tmp", "usr", "var",
           "Applications", "Library", "System", "Users", "Volumes", "private"}  # fmt: skip


def confine_pattern(
    pattern: str, parameter: str, *, root: str, path: tuple[str, ...], has: Callable[[str], bool]
) -> str:
    """``pattern`` for a search at ``path`` below ``root``; ``has`` tells whether that folder has an entry."""
    sign, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    here = "/".join((root.rstrip("/"), *path))
    if body.startswith(f"{here}/"):
        body = body[len(here) :]
    elif body.startswith(f"{root.rstrip('/')}/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "glob.outside_searched_folder",
                "The {parameter} '{pattern}' does not lead into '{names}', which is searched.",
                parameter=parameter,
                pattern=pattern,
                names="/".join(path),
            ),
            hint=Message(
                "hint.folder_in_path_pattern", "Name the folder in path, and write the pattern relative to it."
            ),
        )
    first = body.lstrip("/").partition("/")[0]
    depth = len(path)
    for step in body.split("/"):
        depth += (step not in ("", ".", "**", "..")) - (step == "..")
        if depth < 0:
            break
    if depth < 0 or (body.startswith("/") and first in _SYSTEM and not has(first)):
        raise Failure(
            ErrorCode.ACCESS_DENIED,
            Message(
                "file.pattern_outside_project",
                "The {parameter} '{pattern}' leads outside the project.",
                parameter=parameter,
                pattern=pattern,
            ),
            hint=Message("hint.pattern_relative", "Write it relative to path, such as **/*.py."),
        )
    if ".." in body.split("/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "glob.parent_reference",
                "The {parameter} '{pattern}' contains '..', which patterns may not.",
                parameter=parameter,
                pattern=pattern,
            ),
            hint=Message("hint.folder_in_path", "Name the folder in path instead."),
        )
    return sign + body
