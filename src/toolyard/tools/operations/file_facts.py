"""Facts about a file, under the names and in the forms that VCP's clients know."""

import os
import stat
from contextlib import suppress
from datetime import UTC, datetime

from toolyard.protocol.json import JsonObject


def format_size(size: int) -> str:
    """``12 Bytes``, ``1.2 KB``."""
    number, unit = float(size), "Bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{round(number, 2):g} {unit}"


def format_time(seconds: float | None) -> str | None:
    """A time as ISO 8601 with its offset."""
    if seconds is not None:
        with suppress(ValueError, OverflowError, OSError):  # some file systems keep times that no calendar has
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return None


def file_type(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "special"


def build_facts(path: str, info: os.stat_result) -> JsonObject:
    """Build the facts that every command reports of a file; ``path`` is relative to the root."""
    size = info.st_size if stat.S_ISREG(info.st_mode) else None
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "type": file_type(info.st_mode),
        "size": size,
        "sizeFormatted": None if size is None else format_size(size),
        "lastModified": format_time(info.st_mtime),
    }
