"""The schedule: when things run in which zone, what was missed, and all that can be done with a schedule."""

import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import GO, stored, untranslated
from tests.console.visit import PHONE, visiting
from toolyard.protocol.records.schedule_record import SCHEDULE, ScheduleState

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:schedule")]
# The browser of these tests is in Shanghai, the server is not. Its days are those of the year after next: they are yet
# to come, and in no zone is it that year.
ZONE = "America/New_York"
YEAR = datetime.now(UTC).year + 2
NOON = datetime(YEAR, 7, 1, 12, tzinfo=ZoneInfo(ZONE))


def sunday(month: int, number: int) -> str:
    """The clocks change there on the second Sunday of March and the first of November."""
    days = [date(YEAR, month, day) for day in range(1, 15)]
    return str([day for day in days if day.isoweekday() == 7][number - 1])


SPRING, AUTUMN = sunday(3, 2), sunday(11, 1)
TIMES = (
    (
        f"{SPRING}-02:30",
        f"This time is skipped when the clocks change; it means Sun, Mar {int(SPRING[8:])}, {YEAR}, 03:00 -04:00.",
        True,
    ),
    (
        f"{AUTUMN}-01:30",
        (
            "This time occurs twice when the clocks change; the first one is used: "
            f"Sun, Nov {int(AUTUMN[8:])}, {YEAR}, 01:30 -04:00."
        ),
        True,
    ),
    (f"{YEAR}-01-15-09:00", f", Jan 15, {YEAR}, 09:00 -05:00", True),
    ("明天 9点半", ", 09:30 -0", True),
    ("2020-01-01-00:00", "This time is in the past.", False),
    ("tomorrow", "Not a valid time. Write for example tomorrow 9:00, in 2 hours or 2027-03-05-14:00.", False),
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def abroad(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    async with hosting(tmp_path_factory.mktemp("abroad"), settings={"TOOLYARD_TIME_ZONE": ZONE}) as host:
        await planned(host, at=f"{YEAR}-07-01-12:00")
        yield host


async def planned(host: Host, tool: str = "LS", **when: Any) -> dict[str, Any]:
    body = {"tool": tool, "arguments": {"path": "."}, **when}
    made: dict[str, Any] = await host.api("POST", "/v1/schedules", body)
    return made


async def test_a_time_is_that_of_the_server_with_its_offset_and_counts_down(browser: Browser, abroad: Host) -> None:
    async with visiting(browser, abroad) as visit:
        clock, row = visit.page.clock, visit.page.locator("main .sch-row").first
        await clock.install(time=NOON - timedelta(hours=1, minutes=35))
        await visit.go("/schedule")
        await expect(row).to_contain_text(f"{NOON:%a}, Jul 1, 12:00 -04:00")
        await expect(row.locator("[title]").first).to_have_attribute(
            "title", re.compile(rf"Jul 2, {YEAR}.*00:00:00 GMT\+08:00")
        )
        await clock.pause_at(NOON - timedelta(hours=1, minutes=30))
        await expect(row).to_contain_text("in 1 h 30 min")
        await clock.fast_forward("30:00")
        await expect(row).to_contain_text("in 1 h")
        await clock.fast_forward("01:00:30")
        await expect(row).to_contain_text("due now")
        await clock.fast_forward("01:00")
        await expect(row).to_contain_text(re.compile(r"1 min (29|30) s late"))
        await expect(row).to_contain_text("It is overdue and has not started.")
        await clock.resume()
        await visit.page.get_by_role("button", name=re.compile(f"{YEAR}-07-01, 1 run")).click()
        await expect(visit.page).to_have_url(re.compile(f"day={YEAR}-07-01"))
        await expect(row).to_be_visible()
        assert visit.wrong() == []


async def test_a_time_says_what_it_means_while_it_is_written(browser: Browser, abroad: Host) -> None:
    async with visiting(browser, abroad) as visit:
        await visit.go("/schedule?form=new")
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_label("Tool").select_option("LS")
        await expect(dialog.locator(".sch-zone")).to_have_text(re.compile(rf"^{ZONE} -0[45]:00$"))
        await dialog.get_by_role("button", name="in 1 hour").click()
        await expect(dialog.get_by_role("textbox", name="Time", exact=True)).to_have_value("in 1 hour")
        await expect(dialog.get_by_role("status").first).to_contain_text(re.compile(r"in (5\d min|1 h).*-0[45]:00"))
        for written, told, fits in TIMES:
            await dialog.get_by_role("textbox", name="Time", exact=True).fill(written)
            await expect(dialog).to_contain_text(told)
            await expect(dialog.get_by_role("button", name="Save")).to_be_enabled(enabled=fits)
        assert visit.wrong() == []


async def test_a_schedule_is_made_changed_paused_run_copied_and_cancelled(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        page, rows = visit.page, visit.page.locator("main .sch-row")
        panel = page.get_by_role("dialog").first
        await visit.go("/schedule")
        await page.locator("main .empty").get_by_role("button", name="New schedule").click()
        await expect(page).to_have_url(re.compile("form=new"))
        await panel.get_by_label("Repeats").check()
        await panel.get_by_role("button", name="Every day at 8:00").click()
        await expect(panel.get_by_role("status").first).to_contain_text(re.compile(r"in .*08:00 \+08:00"))
        await expect(panel.locator(".sch-zone")).to_have_text("Asia/Shanghai +08:00")
        await panel.get_by_label("Tool").select_option("SciCalculator")
        await panel.get_by_role("tab", name="JSON").click()
        await panel.get_by_label("Arguments", exact=True).fill('{"expression": "6*7"}')
        await panel.get_by_role("button", name="Save").click()
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("every day at 8:00")

        await rows.get_by_role("button", name="Run now").click()
        await expect(rows).to_contain_text("last run done")
        await rows.get_by_role("button", name="Pause").click()
        await expect(rows).to_contain_text("paused")
        await rows.get_by_role("button", name="Resume").click()
        await expect(rows).to_contain_text("scheduled")

        await rows.locator("[data-row]").click()
        await expect(panel.get_by_role("region", name="Runs")).to_contain_text("42")
        await panel.get_by_role("button", name="Edit").click()
        await expect(page).to_have_url(re.compile("form=edit"))
        await panel.get_by_label("Cron expression").fill("30 9 * * 1-5")
        await panel.get_by_role("button", name="Save").click()
        await expect(rows).to_contain_text("Monday to Friday at 9:30")

        await rows.locator("[data-row]").click()
        await panel.get_by_role("button", name="Duplicate").click()
        await panel.get_by_label("Once").check()
        await panel.get_by_role("textbox", name="Time", exact=True).fill("2031-05-06-07:08")
        await panel.get_by_role("button", name="Save").click()
        await expect(rows).to_have_count(2)
        await expect(rows.nth(1)).to_contain_text("Tue, May 6, 2031, 07:08 +08:00")
        await expect(rows.nth(1)).to_contain_text("expression: 6*7")

        await rows.nth(1).locator("[data-row]").click()
        await panel.get_by_role("button", name="Cancel schedule").click()
        sure = page.get_by_role("dialog", name="Cancel this schedule?")
        await sure.get_by_role("button", name="Cancel schedule").click()
        await expect(sure).to_have_count(0)
        await expect(panel).to_contain_text("cancelled")
        await panel.get_by_role("button", name="Close").click()
        await expect(rows).to_have_count(1)
        await page.get_by_role("tab", name="Past").click()
        await expect(rows).to_contain_text("2031")
        await page.reload()
        await expect(page.get_by_role("tab", name="Past")).to_have_attribute("aria-selected", "true")
        assert visit.wrong() == []


async def test_what_was_missed_blocked_or_late_is_told_with_its_reason(browser: Browser, fresh: Host) -> None:
    old = await planned(fresh, at="2031-01-01-09:00")
    cut = await planned(fresh, at="2031-01-02-09:00")
    wrong = await planned(fresh, tool="Read", at="2031-01-03-09:00", arguments={"path": "nowhere.txt"})
    late = await planned(fresh, at="2031-01-04-09:00")
    asking = await planned(fresh, tool="Write", at="2031-01-05-09:00", arguments={"path": "a.txt", "content": "x"})
    await fresh.stop()
    async with stored(fresh.home) as store:
        ids = (one["id"] for one in (old, cut, wrong, late, asking))
        expired, running, due, overdue, unapproved = [one for id_ in ids if (one := await store.get(SCHEDULE, id_))]
        now = time.time()
        changed = [
            replace(expired, due=now - 7200),
            replace(running, state=ScheduleState.RUNNING, owner=""),
            replace(due, due=now - 5),
            replace(overdue, due=now - 600),
            replace(unapproved, due=now - 5, body={**unapproved.body, "approved": ""}),
        ]
        assert await store.commit(changed)
    await fresh.start()
    async with visiting(browser, fresh) as visit:
        rows, panel = visit.page.locator("main .sch-row"), visit.page.get_by_role("dialog")
        await visit.go("/schedule?tab=missed")
        await expect(rows).to_have_count(3)
        for text in ("The server was off at the scheduled time.", "nowhere.txt", "interrupted"):
            await expect(visit.page.locator("main .sch-list")).to_contain_text(text)
        late_row = rows.filter(has_text="The server was off")
        await late_row.get_by_role("button", name="Run now").click()
        await expect(late_row).to_have_count(0)
        await visit.page.get_by_role("tab", name="Past").click()
        await expect(rows.filter(has_text="done")).to_have_count(2)

        await visit.page.evaluate(GO, f"/schedule?schedule={late['id']}")
        await expect(panel.get_by_role("region", name="Runs")).to_contain_text(re.compile(r"1\d min"))
        await expect(panel.get_by_role("region", name="Runs")).to_contain_text(
            "No server was running at the scheduled time."
        )
        await visit.page.evaluate(GO, f"/schedule?schedule={asking['id']}")
        await expect(panel).to_contain_text("waiting for approval")
        await expect(rows.filter(has_text="Waiting for approval.")).to_have_count(1)
        await panel.get_by_role("link", name="Go to approval").click()
        await expect(visit.page).to_have_url(re.compile("/approvals/approval_"))
        await expect(visit.page.get_by_role("button", name="Allow once")).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("import:vcp-timed", "console:languages")
async def test_a_proposed_call_is_shown_whole_then_allowed_or_deleted(browser: Browser, fresh: Host) -> None:
    content = "line one\n" + "x" * 3000 + "\u202e the end"
    await propose(fresh, at="2031-05-06-07:08", path="a.txt", content=content)
    await propose(fresh, at="2031-05-07-07:08", path="b.txt", content="unwanted")
    async with visiting(browser, fresh) as visit:
        rows, panel = visit.page.locator("main .sch-row"), visit.page.get_by_role("dialog").first
        await visit.go("/schedule")
        await expect(rows.filter(has_text="proposed")).to_have_count(2)
        await expect(rows.get_by_role("button")).to_have_count(0)  # nobody runs what they have not seen whole
        await rows.first.locator("[data-row]").click()
        for text in (
            "Write",
            "asks for approval when it is due",
            "Tue, May 6, 2031, 07:08 +08:00",
            "a.txt",
            "x" * 3000,
        ):
            await expect(panel).to_contain_text(text)
        await expect(panel).to_contain_text("⟦U+202E⟧ the end")
        await panel.get_by_role("button", name="Allow").click()
        await expect(panel.get_by_role("button", name="Run now")).to_be_visible()
        await expect(panel.get_by_role("button", name="Allow")).to_have_count(0)
        await panel.get_by_role("button", name="Close").click()
        await expect(rows.first).to_contain_text("scheduled")
        assert visit.wrong() == []
    async with visiting(browser, fresh, lang="zh") as visit:
        rows, panel = visit.page.locator("main .sch-row"), visit.page.get_by_role("dialog").first
        await visit.go("/schedule")
        await rows.filter(has_text="待允许").locator("[data-row]").click()
        await expect(panel).to_contain_text("到时间会请求审批")
        await panel.get_by_role("button", name="删除").click()
        await visit.page.get_by_role("dialog", name="删除这个提议？").get_by_role("button", name="删除").click()
        await expect(panel.get_by_role("button", name="允许")).to_have_count(0)
        await expect(rows).to_have_count(1)
        assert visit.wrong() == []
    (left,) = (await fresh.api("GET", "/v1/schedules?state=scheduled"))["data"]
    assert (left["arguments"]["path"], left["proposed"]) == ("a.txt", False)


async def propose(host: Host, *, at: str, **arguments: str) -> None:
    """Make a schedule that nobody has approved, as an import does."""
    made = await planned(host, tool="Write", at=at, arguments=arguments)
    async with stored(host.home) as store:
        record = await store.get(SCHEDULE, made["id"])
        assert record
        assert await store.commit([replace(record, body={**record.body, "approved": ""})])


@pytest.mark.requirement("console:layout", "console:accessible", "console:languages")
async def test_a_schedule_and_its_form_fit_a_phone_in_any_language(browser: Browser, abroad: Host) -> None:
    made = (await abroad.api("GET", "/v1/schedules"))["data"][0]
    await propose(abroad, at=f"{YEAR}-08-01-12:00", path="a.txt", content="token")
    proposed = (await abroad.api("GET", "/v1/schedules"))["data"][0]
    async with visiting(browser, abroad, size=PHONE, lang="pseudo", theme="dark") as visit:
        for query in (
            "",
            f"?schedule={made['id']}",
            f"?schedule={proposed['id']}",
            "?form=new",
            f"?form=copy:{made['id']}",
            "?tab=missed",
        ):
            await visit.go(f"/schedule{query}")
            assert await layout_faults(visit.page, phone=True) == [], query
            assert await access_faults(visit.page) == [], query
            assert await untranslated(visit.page) == [], query
        assert visit.wrong() == []
