"""Parts that Glob, Grep and LS share: fitting results into an answer, and reporting what was left out."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_BYTES
from toolyard.workspace.names import to_text
from toolyard.workspace.os_failures import to_failure

if TYPE_CHECKING:
    from toolyard.workspace.search.file_walk import SkippedEntries

TIME_CAP_S = 10.0
_NAMED = 20  # faults that are listed one by one
_IN_TEXT = 3

T = TypeVar("T", bound=Json)


def split_path(path: str) -> tuple[str, ...]:
    return () if path == "." else tuple(path.split("/"))


def path_text(path: str) -> str:
    """A path whose names are as the system gives them, as text."""
    return path if path.isascii() else to_text(os.fsencode(path))


def cut_to_page(items: Sequence[T]) -> Sequence[T]:
    """Keep as many items as an answer can hold, at least one."""
    size = 0
    for count, item in enumerate(items):
        size += len(json.dumps(item, ensure_ascii=False).encode()) + 2
        if size > MAX_BYTES and count:
            return items[:count]
    return items


def build_failed_items(faults: Sequence[tuple[str, str, int]]) -> list[Json]:
    """The first faults: the path, what happened and the system's number for it, which may be 0."""
    return [{"item": path, **_describe_fault(path, what, number)} for path, what, number in faults[:_NAMED]]


def _describe_fault(path: str, what: str, number: int) -> dict[str, Json]:
    if number:
        failure = to_failure(OSError(number, os.strerror(number)), path)
        return {"code": failure.code.value, "message": failure.message}
    return {"code": ErrorCode.EXECUTION_ERROR.value, "message": f"'{path}': {what}."}


def build_skip_stats(
    skipped: "SkippedEntries", *, links: int, faults: int, binary: int = 0
) -> dict[str, int | float | str]:
    """Build the stats of skipped entries: hidden and ignored ones always, the others when there are any."""
    others = {
        "skipped_binary": binary,
        "skipped_links": links,
        "skipped_special": skipped.special,
        "skipped_unreadable": faults,
    }
    return {
        "hidden": skipped.hidden,
        "ignored": skipped.ignored,
        **{name: count for name, count in others.items() if count},
    }


def describe_left_out(
    skipped: "SkippedEntries", arguments: Mapping[str, Any], faults: Sequence[tuple[str, str, int]]
) -> Iterator[str]:
    """Sentences about it, and what to do."""
    kinds = {kind: count for kind in ("hidden", "ignored") if (count := getattr(skipped, kind))}
    if kinds:
        switches = ", ".join(f"include_{kind}" for kind in kinds if not arguments[f"include_{kind}"])
        counts = " and ".join(f"{count} {kind}" for kind, count in kinds.items())
        yield f"Not looked at: {counts} {'entry' if sum(kinds.values()) == 1 else 'entries'}" + (
            f" ({switches})." if switches else "."
        )
    if faults:
        named = "; ".join(
            f"'{path}' ({os.strerror(number) if number else what})" for path, what, number in faults[:_IN_TEXT]
        )
        more = f" and {len(faults) - _IN_TEXT} more" if len(faults) > _IN_TEXT else ""
        refused = any(number in (errno.EACCES, errno.EPERM) for *_, number in faults)
        yield f"Not readable: {named}{more}." + (" Check their permissions." if refused else "")
    if skipped.stopped:
        yield "Stopped, since there is too much to look at: search a subfolder instead."


def timeout_failure(tool: str, seconds: float) -> Failure:
    return Failure(
        ErrorCode.TIMEOUT,
        Message(
            "grep.timed_out",
            "{tool} found nothing within {seconds:g} s and was stopped.",
            tool=tool,
            seconds=seconds,
        ),
        hint="Search a subfolder with path, or write a more exact pattern.",
    )


def list_unreadable(skipped: "SkippedEntries", base: str) -> list[tuple[str, str, int]]:
    """The folders that could not be entered, as faults."""
    return [
        (path_text(base + below), os.strerror(number or errno.EIO), number or errno.EIO)
        for below, number in skipped.unreadable
    ]
