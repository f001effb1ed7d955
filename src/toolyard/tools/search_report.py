"""Parts that Glob, Grep and LS share: fitting results into an answer, and reporting what was left out."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Fault
from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_BYTES
from toolyard.tools.counts import count_left_out
from toolyard.workspace.path_walk import to_failure, to_text

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
        return Fault(failure.code, failure.message).to_dict()
    message = Message("'{path}': {problem}.", path=path, problem=what)
    return Fault(ErrorCode.EXECUTION_ERROR, message).to_dict()


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
    if counts := count_left_out(skipped.hidden, skipped.ignored):
        kinds = [kind for kind in ("hidden", "ignored") if getattr(skipped, kind)]
        switches = ", ".join(f"include_{kind}" for kind in kinds if not arguments[f"include_{kind}"])
        entries = (
            Message("{counts} entry", counts=counts)
            if skipped.hidden + skipped.ignored == 1
            else Message("{counts} entries", counts=counts)
        )
        yield (
            Message("Not looked at: {entries} ({switches}).", entries=entries, switches=switches)
            if switches
            else Message("Not looked at: {entries}.", entries=entries)
        )
    if faults:
        named = "; ".join(
            f"'{path}' ({os.strerror(number) if number else what})" for path, what, number in faults[:_IN_TEXT]
        )
        yield (
            Message("Not readable: {names} and {count} more.", names=named, count=len(faults) - _IN_TEXT)
            if len(faults) > _IN_TEXT
            else Message("Not readable: {names}.", names=named)
        )
        if any(number in (errno.EACCES, errno.EPERM) for *_, number in faults):
            yield Message("Check their permissions.")
    if skipped.stopped:
        yield Message("Stopped, since there is too much to look at: search a subfolder instead.")


def timeout_failure(tool: str, seconds: float) -> Failure:
    return Failure(
        ErrorCode.TIMEOUT,
        Message("{tool} found nothing within {seconds:g} s and was stopped.", tool=tool, seconds=seconds),
        hint=Message("Search a subfolder with path, or write a more exact pattern."),
    )


def list_unreadable(skipped: "SkippedEntries", base: str) -> list[tuple[str, str, int]]:
    """The folders that could not be entered, as faults."""
    return [
        (path_text(base + below), os.strerror(number or errno.EIO), number or errno.EIO)
        for below, number in skipped.unreadable
    ]
