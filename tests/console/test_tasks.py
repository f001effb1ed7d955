"""Tasks: thousands of them, those that a stopped server cut off, and what a person can do with one."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import GO, active, attacks, seed, stored, task, untranslated
from tests.console.visit import PHONE, visiting
from toolyard.protocol.store import Query
from toolyard.protocol.task import KIND, TaskState, from_record

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:tasks")]
LIST = (Path(__file__).parent / "rows.js").read_text()
MANY = 10_000
SCROLLED = 500
SHARES = {TaskState.FAILED: 25, TaskState.INTERRUPTED: 75, TaskState.CANCELLED: 400, TaskState.TIMED_OUT: 500}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """Ten thousand tasks: first those that failed, each with a hostile message, then the others, most of them done."""
    place = tmp_path_factory.mktemp("crowded")
    states = [state for state, count in SHARES.items() for _ in range(count)]
    texts = attacks()
    failed = [
        task(at, TaskState.FAILED, message=text, result={"message": text, text: text}) for at, text in enumerate(texts)
    ]
    assert len(failed) == SHARES[TaskState.FAILED]
    ended = [task(at, state) for at, state in enumerate(states) if state is not TaskState.FAILED]
    done = [task(at, TaskState.SUCCEEDED, result={"ok": True}) for at in range(len(states), MANY)]
    await seed(place / "home", [*failed, *ended, *done])
    async with hosting(place) as host:
        yield host


async def test_ten_thousand_tasks_are_counted_and_only_those_in_sight_are_in_the_page(
    browser: Browser, crowded: Host
) -> None:
    async with visiting(browser, crowded) as visit:
        page, rows = visit.page, visit.page.locator("main [data-row]")
        await visit.go("/tasks")
        for name, count in (
            ("All", MANY),
            ("done", MANY - 1000),
            ("failed", 25),
            ("cancelled", 400),
            ("timed out", 500),
        ):
            await expect(page.get_by_role("tab", name=re.compile(f"^{name}"))).to_have_text(f"{name}{count}")
        box = page.locator("main .virtual")
        async with asyncio.timeout(30):
            while int(await box.locator("[aria-setsize]").first.get_attribute("aria-setsize") or 0) < SCROLLED:
                await box.evaluate("box => { box.scrollTop = box.scrollHeight }")
                assert await rows.count() < 60
                await page.wait_for_timeout(20)
        ids = await page.evaluate(LIST, SCROLLED)
        assert ids[:SCROLLED] == [f"task_{number:032x}" for number in range(SCROLLED)]
        await page.get_by_role("tab", name=re.compile("^timed out")).click()
        await expect(page).to_have_url(re.compile(r"\?state=timed_out$"))
        await expect(rows.first).to_contain_text("seed00500")
        await rows.first.click()
        await page.reload()
        await visit.settle()
        await expect(page.get_by_role("dialog")).to_contain_text("seed00500")
        await page.go_back()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("tab", name=re.compile("^timed out"))).to_have_attribute("aria-selected", "true")
        assert visit.wrong() == []


async def test_tasks_that_a_stop_cut_off_are_told_until_they_are_put_aside(browser: Browser, crowded: Host) -> None:
    async with visiting(browser, crowded) as visit:
        await visit.go("/tasks")
        banner = visit.page.locator("main .notice")
        await expect(banner).to_contain_text("75 tasks were cut off when the server stopped.")
        await banner.get_by_role("button", name="Dismiss").click()
        await expect(banner).to_have_count(0)
        await visit.page.reload()
        await visit.settle()
        await expect(banner).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:inert")
async def test_what_a_plugin_says_of_its_task_is_only_text(browser: Browser, crowded: Host) -> None:
    async with visiting(browser, crowded) as visit:
        await visit.go("/tasks?state=failed")
        rows, panel = visit.page.locator("main [data-row]"), visit.page.get_by_role("dialog")
        await expect(rows.first).to_be_visible()
        assert await active(visit.page) == []
        for number, text in enumerate(attacks()):
            await visit.page.evaluate(GO, f"/tasks?state=failed&task=task_{number:032x}")
            await expect(panel).to_have_accessible_name(f"Timelapse seed{number:05d}")
            await expect(panel.locator(".facts dd").first).to_have_text(" ".join(text.split()))
            assert await active(visit.page) == [], text
        assert visit.wrong() == []


async def test_real_tasks_are_cancelled_marked_failed_and_called_again(browser: Browser, tmp_path: Path) -> None:
    await seed(tmp_path / "home", [task(number, TaskState.INTERRUPTED) for number in range(2)])
    async with hosting(tmp_path) as host, visiting(browser, host) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog").first
        long: dict[str, Any] = {"command": "render", "scene": "mandelbrot", "frames": "150", "width": "160"}
        await visit.go("/tasks")
        rows = page.locator("main .tsk-row")
        await expect(rows).to_have_count(2)
        await page.get_by_role("button", name="Retry all").click()
        await expect(page.locator(".toast")).to_contain_text("2 of 2 were called again.")
        await expect(page.get_by_role("tab", name=re.compile("^done"))).to_have_text("done2")
        await expect(page.locator("main .notice")).to_have_count(0)

        await host.call("Timelapse", **long)
        await expect(rows.first).to_contain_text("running")
        await expect(rows.first.get_by_role("progressbar")).to_be_visible()
        await rows.first.get_by_role("button", name="Cancel Timelapse").click()
        await expect(rows.first).to_contain_text("cancelled")

        await host.call("Timelapse", **long)
        await expect(rows.first).to_contain_text("running")
        await rows.first.locator("[data-row]").click()
        await expect(panel).to_contain_text("No callback has come yet.")
        await expect(panel).to_contain_text("{{VCP_ASYNC_RESULT::Timelapse::")
        await panel.get_by_role("button", name="Mark as failed").click()
        sure = page.get_by_role("dialog", name="Mark this task as failed?")
        await sure.get_by_label("Why").fill("The provider is gone.")
        await sure.get_by_role("button", name="Mark as failed").click()
        await expect(panel.locator(".facts")).to_contain_text("The provider is gone.")
        await expect(panel.get_by_role("button", name="Cancel")).to_have_count(0)
        await panel.get_by_role("button", name="Retry").click()
        await panel.get_by_role("button", name="Close").click()
        await expect(rows).to_have_count(7)
        await expect(rows.first).to_contain_text("running")
        await rows.first.get_by_role("button", name="Cancel Timelapse").click()
        await expect(page.locator("main .tsk-row.runs")).to_have_count(0)
        # One that ended by itself shows what came.
        await page.locator("main .tsk-row", has_text="done").first.locator("[data-row]").click()
        await expect(panel.get_by_role("region", name="Callbacks")).to_contain_text("accepted")
        await expect(panel).to_contain_text("gif")
        assert visit.wrong() == []
        await end_processes(host)


async def end_processes(host: Host) -> None:
    """One that was given up works on; nobody would wait for it here."""
    async with stored(host.home) as store:
        for record in await store.find(KIND, Query(states=(TaskState.FAILED,)), limit=10):
            process = from_record(record).process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.requirement("console:layout", "console:accessible", "console:languages")
async def test_tasks_and_one_of_them_fit_a_phone_in_any_language(browser: Browser, crowded: Host) -> None:
    async with visiting(browser, crowded, size=PHONE, lang="pseudo", theme="dark") as visit:
        for path in ("/tasks", f"/tasks?task=task_{3:032x}", f"/tasks?task=task_{2000:032x}"):
            await visit.go(path)
            assert await layout_faults(visit.page, phone=True) == []
            assert await access_faults(visit.page) == []
            assert await untranslated(visit.page) == []
        assert visit.wrong() == []
