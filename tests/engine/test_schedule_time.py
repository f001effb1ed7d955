"""Schedule times: the moment that a written time means."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from toolyard.engine.background.schedule_time import iterate_cron, normalize_time, parse_time
from toolyard.protocol.envelope import ErrorCode, Failure

SHANGHAI, BERLIN, KOLKATA = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


@pytest.mark.requirement("schedule:run", "r:R42")
@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2027-07-05-14:00", SHANGHAI, "2027-07-05T14:00:00+08:00"),
        ("2027/7/5-9:05", SHANGHAI, "2027-07-05T09:05:00+08:00"),
        ("2027.07.05 14:00:30", KOLKATA, "2027-07-05T14:00:30+05:30"),
        ("2027-07-05T14:00:00+02:00", SHANGHAI, "2027-07-05T20:00:00+08:00"),
        ("2027-07-05T14:00:00Z", BERLIN, "2027-07-05T16:00:00+02:00"),
        ("2027-03-28-02:30", BERLIN, "2027-03-28T03:00:00+02:00"),  # skipped in spring: the next minute that exists
        ("2027-10-31-02:30", BERLIN, "2027-10-31T02:30:00+02:00"),  # twice in autumn: the first
        ("2028-02-29-12:00", SHANGHAI, "2028-02-29T12:00:00+08:00"),
        ("2038-01-20-00:00", SHANGHAI, "2038-01-20T00:00:00+08:00"),
    ],
)
def test_a_time_means_one_moment_with_its_offset(text: str, zone: ZoneInfo, expected: str) -> None:
    assert parse_time(text, zone, NOW).isoformat() == expected


@pytest.mark.requirement("schedule:invalid", "r:R42")
@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2027-02-29-10:00", "2027-13-01-10:00", "2027-07-05-24:00", "2027-07-05", "2027-07-05T14:00:00",
     "2026-11-15-09:30", "1999-01-01-00:00", "2026-11-15T09:30:00Z", "9999999999", "2027-07-05-14:00 ; rm"],
)  # fmt: skip
def test_a_past_or_malformed_time_is_refused_with_how_to_write_it(text: str) -> None:
    if text == "2027-07-05T14:00:00":  # without an offset it is a local time, and one in the future
        assert parse_time(text, SHANGHAI, NOW).isoformat() == "2027-07-05T14:00:00+08:00"
        return
    with pytest.raises(Failure) as refused:
        parse_time(text, ZoneInfo("UTC"), NOW)
    assert refused.value.code is ErrorCode.INVALID_PARAM
    assert refused.value.hint


@pytest.mark.requirement("schedule:run", "r:R42")
def test_a_cron_expression_keeps_its_local_hour_across_daylight_saving() -> None:
    before = datetime(2027, 3, 26, 12, 0, tzinfo=UTC)
    days = [day.isoformat() for day in islice(iterate_cron("30 8 * * *", BERLIN, before), 3)]
    assert days == ["2027-03-27T08:30:00+01:00", "2027-03-28T08:30:00+02:00", "2027-03-29T08:30:00+02:00"]


@pytest.mark.requirement("schedule:invalid")
def test_a_malformed_cron_expression_is_refused_with_an_example() -> None:
    with pytest.raises(Failure) as refused:
        iterate_cron("61 * * * *", BERLIN, NOW)
    assert refused.value.code is ErrorCode.INVALID_PARAM
    assert "30 8 * * 1-5" in refused.value.hint


@pytest.mark.requirement("console:schedule")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("in 1 minute", "2026-11-15T17:31:00+08:00"), ("+90m", "2026-11-15T19:00:00+08:00"),
        ("1 小时后", "2026-11-15T18:30:00+08:00"), ("半小时后", "2026-11-15T18:00:00+08:00"),
        ("18:00", "2026-11-15-18:00"), ("17:30", "2026-11-16-17:30"), ("9am", "2026-11-16-09:00"),
        ("tomorrow 9:00", "2026-11-16-09:00"), ("Tomorrow at 9", "2026-11-16-09:00"), ("tonight 8", "2026-11-15-20:00"),
        ("明天 9：00", "2026-11-16-09:00"), ("明天下午3点半", "2026-11-16-15:30"), ("后天12点", "2026-11-17-12:00"),
        ("sunday 17:00", "2026-11-22-17:00"), ("Sat 2pm", "2026-11-21-14:00"), ("周日 18:00", "2026-11-15-18:00"),
        ("11-20 8:00", "2026-11-20-08:00"), ("1月5日 8点", "2027-01-05-08:00"), ("2-29 8:00", "2-29 8:00"),
        ("2027-03-05-14:00", "2027-03-05-14:00"), ("tomorrow", "tomorrow"), ("9", "9"), ("25:00", "25:00"), ("", ""),
    ],
)  # fmt: skip
def test_what_people_type_becomes_the_time_that_a_schedule_takes(text: str, meant: str) -> None:
    assert normalize_time(text, SHANGHAI, NOW) == meant


@pytest.mark.requirement("console:schedule", "r:R42")
def test_an_hour_from_now_is_an_hour_from_now_also_when_the_clocks_go_back() -> None:
    now = datetime(2027, 10, 31, 0, 30, tzinfo=UTC)  # 02:30 in Berlin, for the first time
    assert parse_time(normalize_time("in 1 hour", BERLIN, now), BERLIN, now).astimezone(UTC).hour == 1
