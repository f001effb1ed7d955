"""Schedule times: parsing of local times, ISO times and cron expressions.

A local time stands in the zone of the settings. One that the clocks skip in spring means the next minute that exists;
one that happens twice in autumn means the first. A time with an offset means exactly that moment.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from toolyard.message import Message, add_hint
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

PREVIEWED: Final = 5  # moments of a cron expression, or all of so many days, but no more than
MAX_PREVIEWED: Final = 200
_LOCAL = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[-T ](\d{1,2}):(\d{1,2})(?::(\d{1,2}))?")
_HINT = Message(
    "hint.write_time", "Write it as YYYY-MM-DD-HH:mm, such as 2027-03-05-14:00, or as ISO 8601 with an offset."
)


def parse_time(text: str, zone: ZoneInfo, now: datetime) -> datetime:
    """Parse a future time in ``zone``; raise Failure(INVALID_PARAM) when it is malformed or past."""
    time = _parse_local(text.strip(), zone) or _parse_absolute(text.strip(), zone)
    if time is None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("schedule.invalid_time", "'{text}' is not a time.", text=text[:100]),
            hint=_HINT,
        )
    if time <= now:
        current = now.astimezone(zone).isoformat(timespec="minutes")
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "schedule.not_future_now",
                "'{text}' is not in the future: it is {current} now.",
                text=text[:100],
                current=current,
            ),
            hint=Message("hint.name_later_time", "Name a later time."),
        )
    return time


def find_first_time(at: str, cron: str, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the first time of a schedule, which has a time or a cron expression; else Failure(INVALID_PARAM)."""
    if bool(at) == bool(cron):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("schedule.time_or_cron_required", "A schedule needs either a time or a cron expression."),
            hint=Message("hint.give_one", "Give one."),
        )
    due = parse_time(at, zone, now) if at else next(iterate_cron(cron, zone, now), None)
    if due is None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("schedule.never_comes", "'{cron}' never comes.", cron=cron),
            hint=Message("hint.write_existing_date", "Write a date that exists."),
        )
    return due


@dataclass(frozen=True, slots=True)
class TimePreview:
    """The next times of a schedule, or the ``problem`` for which there are none."""

    times: tuple[datetime, ...] = ()
    note: str = ""
    problem: str = ""


def preview_times(at: str, cron: str, zone: ZoneInfo, now: datetime, *, days: int = 0) -> TimePreview:
    try:
        first = find_first_time(at, cron, zone, now)
    except Failure as failure:
        return TimePreview(problem=add_hint(failure.message, failure.hint))
    if at:
        return TimePreview((first,), _describe_clock_change(at, first))
    moments = iterate_cron(cron, zone, now)
    if days:
        last = now + timedelta(days=days)
        return TimePreview(tuple(islice(takewhile(lambda moment: moment <= last, moments), MAX_PREVIEWED)))
    return TimePreview(tuple(islice(moments, PREVIEWED)))


def _describe_clock_change(at: str, due: datetime) -> str:
    """Return a note when a clock change skips or repeats a local time; else an empty text."""
    match = _LOCAL.fullmatch(at.strip())
    if match is None:
        return ""
    written = [int(part or 0) for part in match.groups()]
    shown = due.isoformat(timespec="minutes")
    if [due.hour, due.minute] != written[3:5]:
        return Message("schedule.clocks_skip", "The clocks skip this time: it means {time}.", time=shown)
    if due.replace(fold=0).utcoffset() == due.replace(fold=1).utcoffset():
        return ""
    return Message("schedule.clocks_repeat", "The clocks show this time twice: it means the first, {time}.", time=shown)


def iterate_cron(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Return the times of a cron expression after ``after``; raise Failure(INVALID_PARAM) when it is malformed."""
    try:
        return iter(CronSim(expression, after.astimezone(zone)))
    except CronSimError as error:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "schedule.not_cron_expression",
                "'{expression}' is not a cron expression: {error}.",
                expression=expression[:100],
                error=error,
            ),
            hint=Message("hint.write_cron", "Write minute, hour, day, month and weekday, such as '30 8 * * 1-5'."),
        ) from error


def _parse_local(text: str, zone: ZoneInfo) -> datetime | None:
    match = _LOCAL.fullmatch(text)
    if match is None:
        return None
    try:
        written = datetime(*(int(part or 0) for part in match.groups()), tzinfo=zone)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    real = written.astimezone(UTC).astimezone(zone)
    if real.replace(tzinfo=None) == written.replace(tzinfo=None):
        return written
    return _skip_gap(written, zone)


def _skip_gap(written: datetime, zone: ZoneInfo) -> datetime:
    """Return the first minute after ``written`` that exists in its zone."""
    moved = written.replace(second=0)
    while True:
        moved = (moved.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=zone)
        if moved.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moved.replace(tzinfo=None):
            return moved


def _parse_absolute(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(zone) if time.tzinfo else None
