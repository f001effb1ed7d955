"""Tasks: thousands of them, those that a stopped server cut off, and what a person can do with one."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.hosting import START_S, Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import GO, active, attacks, seed, stored, task, untranslated, write_plugin
from tests.console.visit import PHONE, Visit, visiting
from tests.waiting import wait_for_value, wait_until
from toolyard.process_numbers import is_process_alive
from toolyard.protocol.records.task_record import KIND, Task, TaskState
from toolyard.protocol.store import Query

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
    made_in = {SCROLLED: "films", SCROLLED + 1: "another's"}  # of two chats one is kept here
    ended = [
        task(at, state, chat=made_in.get(at, "")) for at, state in enumerate(states) if state is not TaskState.FAILED
    ]
    done = [task(at, TaskState.SUCCEEDED, result={"ok": True}) for at in range(len(states), MANY)]
    await seed(place / "home", [*failed, *ended, *done])
    async with hosting(place) as host:
        await host.api("PUT", "/v1/conversations/films", {"title": "Films"})
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
            await expect(page.get_by_role("tab", name=re.compile(f"^{name}"))).to_have_text(f"{name}{count:,}")
        box = page.locator("main .virtual")

        async def scroll() -> int:
            await box.evaluate("box => { box.scrollTop = box.scrollHeight }")
            assert await rows.count() < 60
            return int(await box.locator("[aria-setsize]").first.get_attribute("aria-setsize") or 0)

        await wait_for_value(scroll, lambda size: size >= SCROLLED, within_s=START_S)
        ids = await page.evaluate(LIST, SCROLLED)
        assert ids[:SCROLLED] == [f"task_{number:032x}" for number in range(SCROLLED)]
        await page.get_by_role("tab", name=re.compile("^timed out")).click()
        await expect(page).to_have_url(re.compile(r"\?state=timed_out$"))
        await expect(rows.first).to_contain_text("Timelapse life")
        await expect(rows.first.locator(".tsk-name")).to_have_attribute("title", "Timelapse · life · seed00500")
        await rows.first.click()
        await page.reload()
        await visit.settle()
        panel = page.get_by_role("dialog")
        await expect(panel).to_contain_text("seed00500")
        await expect(panel.get_by_role("link", name="films")).to_have_attribute("href", "/chat/films")
        await page.evaluate(GO, f"/tasks?state=timed_out&task=task_{SCROLLED + 1:032x}")
        await expect(panel.locator(".facts").first).to_contain_text("another's")
        await expect(panel.get_by_role("link", name="another's")).to_have_count(0)
        await page.go_back()
        await expect(panel).to_contain_text("seed00500")
        await page.go_back()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("tab", name=re.compile("^timed out"))).to_have_attribute("aria-selected", "true")
        assert visit.wrong() == []


async def test_tasks_that_a_stop_cut_off_are_told_until_they_are_put_aside(browser: Browser, crowded: Host) -> None:
    async with visiting(browser, crowded) as visit:
        await visit.go("/tasks")
        banner = visit.page.locator("main .notice")
        await expect(banner).to_contain_text("75 tasks were interrupted when the server stopped.")
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
            await expect(panel).to_have_accessible_name("Timelapse · life")
            await expect(panel.locator(".facts").first).to_contain_text(f"seed{number:05d}")
            first = panel.locator(".tsk-words, .facts, .tsk-callbacks").first  # the result stands above all else
            await expect(first).to_have_text(" ".join(text.split()))
            await expect(panel.locator(".facts dd").first).to_have_text(" ".join(text.split()))
            assert await active(visit.page) == [], text
        assert visit.wrong() == []


# Works until it is told to go, or until somebody stops it: how fast anything is does not matter.
SLOW = """
import json, os, sys, time, urllib.request
id_ = "job" + str(os.getpid())
url = os.environ["CALLBACK_BASE_URL"] + "/Slow/" + id_
print(json.dumps({"status": "success", "result": "{{VCP_ASYNC_RESULT::Slow::" + id_ + "}}"}), flush=True)
print("PROGRESS 0.4 drawing", file=sys.stderr, flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
for body in ({"status": "Succeed", "message": "a film"},) * 2 + ({"status": "Failed"},):
    sent = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(sent, timeout=20).close()
    except urllib.error.HTTPError:
        pass
"""
PUSH = {"enabled": True, "messageType": "film", "targetClientType": "VCPLog"}


async def test_real_tasks_are_cancelled_marked_failed_called_again_and_pushed(browser: Browser, tmp_path: Path) -> None:
    await seed(tmp_path / "home", [task(number, TaskState.INTERRUPTED) for number in range(2)])
    plugins = write_plugin(tmp_path / "more", "Slow", SLOW, pluginType="asynchronous", webSocketPush=PUSH)
    async with (
        hosting(tmp_path, *plugins, settings={"TOOLYARD_VCP_CHANNELS": "true"}) as host,
        visiting(browser, host) as visit,
    ):
        page, panel = visit.page, visit.page.get_by_role("dialog").first
        await visit.go("/tasks")
        rows = page.locator("main .tsk-row")
        await expect(rows).to_have_count(2)
        await page.get_by_role("button", name="Retry all").click()
        await expect(page.get_by_role("tab", name=re.compile("^done"))).to_have_text("done2")
        await expect(page.locator("main .notice")).to_have_count(0)

        await host.call("Slow")
        await expect(rows.first).to_contain_text("drawing")
        await expect(rows.first.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
        await rows.first.get_by_role("button", name="Cancel Slow").click()
        await expect(rows.first).to_contain_text("cancelled")

        await host.call("Slow")
        await expect(rows.first).to_contain_text("running")
        await rows.first.locator("[data-row]").click()
        await expect(panel).to_contain_text("No callbacks received yet.")
        await expect(panel).to_contain_text("{{VCP_ASYNC_RESULT::Slow::")
        await panel.get_by_role("button", name="Mark as failed").click()
        sure = page.get_by_role("dialog", name="Mark this task as failed?")
        await sure.get_by_label("Reason").fill("The provider is gone.")
        await sure.get_by_role("button", name="Mark as failed").click()
        await expect(panel.locator(".facts").first).to_contain_text("The provider is gone.")
        await expect(panel.get_by_role("button", name="Cancel")).to_have_count(0)
        await gone(host, TaskState.FAILED)
        await panel.get_by_role("button", name="Retry").click()
        await panel.get_by_role("button", name="Close").click()
        await expect(rows).to_have_count(7)
        await expect(rows.first).to_contain_text("running")
        await rows.first.locator("[data-row]").click()
        await pushed_to_a_listener(host, visit, tmp_path / "more/Slow/go")
        assert visit.wrong() == []


async def pushed_to_a_listener(host: Host, visit: Visit, go: Path) -> None:
    """The open task ends: its panel shows every callback, who was told, and can tell them again."""
    panel = visit.page.get_by_role("dialog").first
    callbacks, pushes = panel.get_by_role("region", name="Callbacks"), panel.get_by_role("region", name="Push")
    listening = f"{host.url}/VCPlog/VCP_Key={host.key}"
    async with aiohttp.ClientSession() as client, client.ws_connect(listening) as told:
        assert (await told.receive_json(timeout=START_S))["type"] == "connection_ack"
        go.touch()  # noqa: ASYNC240 it is one file
        async with asyncio.timeout(START_S):
            while (await told.receive_json())["type"] != "film":
                pass
        await expect(pushes).to_contain_text("1 client received it")
    await gone(host, TaskState.SUCCEEDED)  # and all that it had to say is said
    await pushes.get_by_role("button", name="Send again").click()
    await expect(pushes.locator("tbody tr").nth(1)).to_contain_text("sent again")
    for answered in ("accepted200", "duplicate200", "rejected409"):
        await expect(callbacks.locator("tbody tr").filter(has_text=answered)).to_have_count(1)
    await expect(callbacks).to_contain_text("The task had already ended: done.")


async def gone(host: Host, state: TaskState) -> None:
    """Until the process of the newest task in a state has ended: nobody leaves one behind."""
    async with stored(host.home) as store:
        (record,) = await store.find(KIND, Query(states=(state,)), limit=1)
    process = Task.from_record(record).process
    assert process is not None
    await wait_until(lambda: not is_process_alive(process.pid, process.started), within_s=START_S)


@pytest.mark.requirement("console:layout", "console:accessible", "console:languages")
async def test_tasks_and_one_of_them_fit_a_phone_in_any_language(browser: Browser, crowded: Host) -> None:
    async with visiting(browser, crowded, size=PHONE, lang="pseudo", theme="dark") as visit:
        for path in ("/tasks", f"/tasks?task=task_{3:032x}", f"/tasks?task=task_{2000:032x}"):
            await visit.go(path)
            assert await layout_faults(visit.page, phone=True) == []
            assert await access_faults(visit.page) == []
            assert await untranslated(visit.page) == []
        assert visit.wrong() == []
