"""Times that people and models write: what moment they mean.

A local time stands in the zone of the settings. One that the clocks skip in spring means the next minute that exists;
one that happens twice in autumn means the first. A time with an offset means exactly that moment.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

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
