"""Schedule times: parsing of local times, ISO times and cron expressions, and of what people type.

A local time stands in the zone of the settings. One that the clocks skip in spring means the next minute that exists;
one that happens twice in autumn means the first. A time with an offset means exactly that moment.

``normalize_time`` is for people alone: ``in 2 hours``, ``+90m``, ``14:30``, ``tomorrow 9:00``, ``sat 2pm``,
``11-20 8:00``, ``明天 9点半``, ``3 小时后``. A time of day without a day is the next one; a weekday is the next of its
name whose time has not passed. What is none of these stays as it was typed, and whoever reads it says what is wrong
with it. For models, who are told the one form, nothing is guessed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from toolyard.message import Message, add_hint
from toolyard.protocol.envelope import ErrorCode, Failure

PREVIEWED: Final = 5  # moments of a cron expression, or all of so many days, but no more than
MAX_PREVIEWED: Final = 200
_LOCAL = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[-T ](\d{1,2}):(\d{1,2})(?::(\d{1,2}))?")
_HINT = Message("Write it as YYYY-MM-DD-HH:mm, such as 2027-03-05-14:00, or as ISO 8601 with an offset.")
_UNITS: Final = {
    "s": 1, "sec": 1, "second": 1, "秒": 1, "秒钟": 1,
    "m": 60, "min": 60, "minute": 60, "分": 60, "分钟": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "小时": 3600, "个小时": 3600,
    "d": 86_400, "day": 86_400, "天": 86_400,
    "w": 604_800, "week": 604_800, "周": 604_800, "星期": 604_800,
}  # fmt: skip
_DAYS: Final = {
    "today": 0, "今天": 0, "今晚": 0, "tonight": 0,
    "tomorrow": 1, "tmr": 1, "明天": 1, "明早": 1, "明晚": 1,
    "后天": 2, "day after tomorrow": 2,
}  # fmt: skip
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CHINESE_WEEKDAYS: Final = "一二三四五六日"
_SPAN = re.compile(r"(?:in |\+)?(\d{1,6}|an?|half an|半) ?(?:个)?([a-z]+?|[\u4e00-\u9fff]+?)s?(后|之后|以后)?")
_CLOCK = re.compile(
    r"(?P<early>上午|早上|凌晨|中午|下午|晚上)? ?(?P<hour>\d{1,2})"
    r"(?:(?::|点)(?P<minute>\d{2}|半)?分?)? ?(?P<half>am|pm)?"
)
_MONTH_DAY = re.compile(r"(\d{1,2})(?:[-/.]|月)(\d{1,2})日?")
_LATER = ("下午", "晚上", "pm")


def parse_time(text: str, zone: ZoneInfo, now: datetime) -> datetime:
    """Parse a future time in ``zone``; raise Failure(INVALID_PARAM) when it is malformed or past."""
    time = _parse_local(text.strip(), zone) or _parse_absolute(text.strip(), zone)
    if time is None:
        raise Failure(ErrorCode.INVALID_PARAM, Message("'{text}' is not a time.", text=text[:100]), hint=_HINT)
    if time <= now:
        current = now.astimezone(zone).isoformat(timespec="minutes")
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{text}' is not in the future: it is {current} now.", text=text[:100], current=current),
            hint=Message("Name a later time."),
        )
    return time


def find_first_time(at: str, cron: str, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the first time of a schedule, which has a time or a cron expression; else Failure(INVALID_PARAM)."""
    if bool(at) == bool(cron):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("A schedule needs either a time or a cron expression."),
            hint=Message("Give one."),
        )
    due = parse_time(at, zone, now) if at else next(iterate_cron(cron, zone, now), None)
    if due is None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{cron}' never comes.", cron=cron),
            hint=Message("Write a date that exists."),
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
        return Message("The clocks skip this time: it means {time}.", time=shown)
    if due.replace(fold=0).utcoffset() == due.replace(fold=1).utcoffset():
        return ""
    return Message("The clocks show this time twice: it means the first, {time}.", time=shown)


def iterate_cron(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Return the times of a cron expression after ``after``; raise Failure(INVALID_PARAM) when it is malformed."""
    try:
        return iter(CronSim(expression, after.astimezone(zone)))
    except CronSimError as error:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{expression}' is not a cron expression: {error}.", expression=expression[:100], error=error),
            hint=Message("Write minute, hour, day, month and weekday, such as '30 8 * * 1-5'."),
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


def normalize_time(text: str, zone: ZoneInfo, now: datetime) -> str:
    """Return the time that ``text`` means in ``zone``, else the text itself.

    It is written as ``YYYY-MM-DD-HH:mm``; one that was counted from now as ISO 8601 with an offset.
    """
    words = " ".join(text.replace("：", ":").replace("，", " ").lower().split())
    here = now.astimezone(zone)
    span = _parse_duration(words)
    if span is not None:
        return (now + span).astimezone(zone).isoformat(timespec="seconds")
    time = _parse_clock_time(words, here)
    return text if time is None else time.strftime("%Y-%m-%d-%H:%M")


def _parse_duration(words: str) -> timedelta | None:
    match = _SPAN.fullmatch(words)
    if match is None or not (words.startswith(("in ", "+")) or match[3]):
        return None
    count, unit = match[1], _UNITS.get(match[2])
    if unit is None:
        return None
    number = 0.5 if count in ("half an", "半") else 1 if count in ("a", "an") else int(count)
    return timedelta(seconds=min(number * unit, 100 * 366 * 86_400))


def _parse_clock_time(words: str, here: datetime) -> datetime | None:
    """Parse a time of day with an optional day before it; ``here`` is now in its zone."""
    for end in range(len(words) + 1):
        clock = _CLOCK.fullmatch(words, end)
        if clock is None or (end and words[end - 1].isdigit()):
            continue
        day = words[:end].strip().removesuffix(" at").strip()
        time = _read_clock(clock, evening=day in ("今晚", "明晚", "tonight"))
        if time is None or (not day and clock["minute"] is None and not clock["half"] and "点" not in words):
            return None
        return _find_next(day, time, here)
    return None


def _read_clock(clock: re.Match[str], *, evening: bool) -> tuple[int, int] | None:
    hour = int(clock["hour"])
    minute = 30 if clock["minute"] == "半" else int(clock["minute"] or 0)
    half = clock["half"] or clock["early"] or ""
    if (half in _LATER or (evening and not half)) and hour < 12:
        hour += 12
    elif half in ("am", "凌晨") and hour == 12:
        hour = 0
    return (hour, minute) if hour < 24 and minute < 60 else None


def _find_next(day: str, time: tuple[int, int], here: datetime) -> datetime | None:
    def at(when: date) -> datetime:
        return datetime(when.year, when.month, when.day, *time)

    today, now = here.date(), here.replace(tzinfo=None)
    if day in _DAYS:
        return at(today + timedelta(days=_DAYS[day]))
    if not day:
        return at(today) if at(today) > now else at(today + timedelta(days=1))
    weekday = _parse_weekday(day)
    if weekday is not None:
        coming = at(today + timedelta(days=(weekday - today.weekday()) % 7))
        return coming if coming > now else coming + timedelta(days=7)
    match = _MONTH_DAY.fullmatch(day)
    try:
        named = at(date(today.year, int(match[1]), int(match[2]))) if match else None
        return named if named is None or named > now else named.replace(year=today.year + 1)
    except ValueError:
        return None


def _parse_weekday(day: str) -> int | None:
    chinese = re.fullmatch(r"(?:周|星期|礼拜)([一二三四五六日天])", day)
    if chinese:
        return 6 if chinese[1] == "天" else _CHINESE_WEEKDAYS.index(chinese[1])
    name = day.removeprefix("next ").removeprefix("on ")
    full = re.fullmatch(r"(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|r|rs|rsday|urday)?", name)
    return _WEEKDAYS.index(full[1]) if full else None
