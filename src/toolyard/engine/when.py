"""Times that people and models write: what moment they mean.

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

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

FORESEEN: Final = 5  # moments of a cron expression, or all of so many days, but no more than
MOST_FORESEEN: Final = 200
_LOCAL = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[-T ](\d{1,2}):(\d{1,2})(?::(\d{1,2}))?")
_HINT = "Write it as YYYY-MM-DD-HH:mm, such as 2027-03-05-14:00, or as ISO 8601 with an offset."


def moment(text: str, zone: ZoneInfo, now: datetime) -> datetime:
    """The future moment that ``text`` means, in ``zone``; Failure(INVALID_PARAM) when it is malformed or past."""
    found = _local(text.strip(), zone) or _absolute(text.strip(), zone)
    if found is None:
        raise Failure(ErrorCode.INVALID_PARAM, f"'{text[:100]}' is not a time.", hint=_HINT)
    if found <= now:
        said = now.astimezone(zone).isoformat(timespec="minutes")
        raise Failure(
            ErrorCode.INVALID_PARAM,
            f"'{text[:100]}' is not in the future: it is {said} now.",
            hint="Name a later time.",
        )
    return found


def first_of(at: str, cron: str, zone: ZoneInfo, now: datetime) -> datetime:
    """The first moment of a schedule, which has either a time or a cron expression; else Failure(INVALID_PARAM)."""
    if bool(at) == bool(cron):
        raise Failure(ErrorCode.INVALID_PARAM, "A schedule needs either a time or a cron expression.", hint="Give one.")
    due = moment(at, zone, now) if at else next(repeats(cron, zone, now), None)
    if due is None:
        raise Failure(ErrorCode.INVALID_PARAM, f"'{cron}' never comes.", hint="Write a date that exists.")
    return due


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The next moments of a schedule, or the ``problem`` for which there are none."""

    times: tuple[datetime, ...] = ()
    note: str = ""
    problem: str = ""


def foresee(at: str, cron: str, zone: ZoneInfo, now: datetime, *, days: int = 0) -> Foreseen:
    try:
        first = first_of(at, cron, zone, now)
    except Failure as failure:
        return Foreseen(problem=f"{failure.message} {failure.hint}".strip())
    if at:
        return Foreseen((first,), _clock_note(at, first))
    moments = repeats(cron, zone, now)
    if days:
        last = now + timedelta(days=days)
        return Foreseen(tuple(islice(takewhile(lambda moment: moment <= last, moments), MOST_FORESEEN)))
    return Foreseen(tuple(islice(moments, FORESEEN)))


def _clock_note(at: str, due: datetime) -> str:
    """What the clocks do to a local time: empty, or that it is skipped or comes twice."""
    match = _LOCAL.fullmatch(at.strip())
    if match is None:
        return ""
    written = [int(part or 0) for part in match.groups()]
    said = due.isoformat(timespec="minutes")
    if [due.hour, due.minute] != written[3:5]:
        return f"The clocks skip this time: it means {said}."
    twice = due.replace(fold=0).utcoffset() != due.replace(fold=1).utcoffset()
    return f"The clocks show this time twice: it means the first, {said}." if twice else ""


def repeats(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The moments of a cron expression that follow ``after``; Failure(INVALID_PARAM) when it is malformed."""
    try:
        return iter(CronSim(expression, after.astimezone(zone)))
    except CronSimError as error:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            f"'{expression[:100]}' is not a cron expression: {error}.",
            hint="Write minute, hour, day, month and weekday, such as '30 8 * * 1-5'.",
        ) from error


def _local(text: str, zone: ZoneInfo) -> datetime | None:
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
    return _after_gap(written, zone)


def _after_gap(written: datetime, zone: ZoneInfo) -> datetime:
    """The first minute after ``written`` that the clocks show."""
    moved = written.replace(second=0)
    while True:
        moved = (moved.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=zone)
        if moved.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moved.replace(tzinfo=None):
            return moved


def _absolute(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(zone) if found.tzinfo else None
