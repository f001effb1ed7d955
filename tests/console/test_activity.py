"""Activity: every call as it happens, each once, and all that is known of one.

The tests of this file share one server: each looks at calls of a tool of its own.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import GO, active, attacks, burst, call, seed, task, untranslated, write_plugin
from tests.console.visit import PHONE, visiting
from tests.waiting import wait_for_value
from toolyard.protocol.records.approval_record import APPROVAL
from toolyard.protocol.records.task_record import TaskState
from toolyard.protocol.store import Record

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 300
PATIENCE_S = 120
LIST = (Path(__file__).parent / "rows.js").read_text()
# The page's own socket, so that a test can cut it.
SOCKETS = """
const Real = WebSocket;
window.sockets = [];
window.WebSocket = class extends Real { constructor(...given) { super(...given); window.sockets.push(this); } };
"""
SLOW = "import sys, time\nsys.stdin.readline()\ntime.sleep(300)\n"
BROKEN = """
import sys
sys.stdin.readline()
print("this is no answer")
print("<b>went</b> wrong", file=sys.stderr)
sys.exit(3)
"""
SECRET = "canary-7d1f0b6e"
HOSTILE = attacks()
STORY = "call_" + "5" * 32


def hostile() -> Iterator[Record]:
    """Rows that say hostile things, then a call whose files have such names and lines, then one that printed them."""
    hunk = {"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1}
    files = [{"path": text, "structured_patch": [hunk | {"lines": [f"+{text}"]}]} for text in HOSTILE]
    for at, text in enumerate(HOSTILE):
        yield from call(at, {}, tool="Hostile", text=text, error=text if at % 2 else "")
    yield from call(100, {"files": files}, tool="HostileFiles")
    yield from call(101, {text: text for text in HOSTILE}, tool="HostileData", text="\n".join(HOSTILE))


def story() -> Iterator[Record]:
    """A call that was asked for, waited, ran, and whose task called back twice."""
    began = float(int(time.time()) - 3600)
    ended, result = call(200, {"tasks": []}, tool="Story")
    waiting = task(200, TaskState.SUCCEEDED, result={"message": "done"}, audit=({"at": began + 100, "body": {}},))
    body: Any = {
        **ended.body, "time_ms": 8000.0, "waited_ms": 30_000.0, "ran": began + 31, "tasks": [waiting.id],
        "bytes_out": 2048,
    }  # fmt: skip
    process: Any = {
        "pid": 1, "argv": [], "folder": "/", "environment": [], "warm": False, "exit_code": 0, "signal": None,
        "limits_hit": [], "stdout_bytes": 1, "stderr": "", "noise": "", "started": began + 33,
        "first_output": began + 37,
    }  # fmt: skip
    yield replace(ended, id=STORY, created=began, updated=began + 39, body=body)
    yield replace(result, id=STORY, body={**result.body, "process": process})
    yield replace(waiting, updated=began + 60, body={**waiting.body, "call_id": STORY})
    yield Record(
        kind=APPROVAL, id="approval_" + "5" * 32, state="allowed", created=began + 1, updated=began + 31,
        caller="key:owner", tool="Story", text=STORY,
        body={"call_id": STORY, "by": "key:owner", "commands": [], "arguments": {}},
    )  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    place = tmp_path_factory.mktemp("busy")
    write_plugin(place / "given", "Slow", SLOW, communication={"protocol": "stdio", "timeout": 300_000})
    options = write_plugin(place / "given", "Broken", BROKEN)
    await seed(place / "home", [*hostile(), *story()])
    async with hosting(place, *options) as host:
        yield host


async def newest(host: Host, tool: str) -> str:
    """The id of the last call of a tool."""
    return str((await host.api("GET", f"/v1/calls?tool={tool}&limit=1"))["data"][0]["id"])


async def scroll_to_row(page: Page, count: int) -> None:
    """Scroll down until the list has that many rows."""
    box = page.locator("main .virtual")

    async def scroll() -> int:
        await box.evaluate("box => { box.scrollTop = box.scrollHeight }")
        return await box.locator(f"[aria-setsize='{count}']").count()

    await wait_for_value(scroll)


async def known(host: Host, tool: str) -> list[str]:
    ids: list[str] = []
    after = ""
    while after or not ids:
        page = await host.api("GET", f"/v1/calls?tool={tool}&limit=200{after}")
        ids += [one["id"] for one in page["data"]]
        after = f"&after={page['next']}" if page["next"] else ""
    return ids


@pytest.mark.requirement("console:activity", "console:live")
async def test_a_burst_of_calls_shows_each_once_also_when_the_connection_breaks_in_it(
    browser: Browser, busy: Host
) -> None:
    async with visiting(browser, busy) as visit:
        await visit.context.add_init_script(SOCKETS)
        await visit.go("/activity?tool=Glob")
        await expect(visit.page.locator("main .empty")).to_be_visible()
        await burst(busy, MANY // 2, "Glob", pattern="*.none")
        await visit.page.evaluate("window.sockets.at(-1).close()")
        await burst(busy, MANY // 2, "Glob", pattern="*.none")
        await scroll_to_row(visit.page, MANY)
        await expect(visit.page.locator(".banner")).to_have_count(0)
        calls = await known(busy, "Glob")
        assert len(calls) == MANY
        async with asyncio.timeout(PATIENCE_S):  # the last of them may still move from the top, where it ran
            while await visit.page.evaluate(LIST, MANY + 1) != calls:
                pass
        assert await visit.page.locator("main [data-row]").count() < 60
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_paused_list_counts_what_comes_and_shows_it_when_it_goes_on(browser: Browser, busy: Host) -> None:
    async with visiting(browser, busy) as visit:
        await visit.context.add_init_script(SOCKETS)
        await busy.call("Read", path="none")
        await visit.go("/activity?tool=Read")
        rows, told = visit.page.locator("main [data-row]"), visit.page.locator(".act-new-calls")
        await expect(rows).to_have_count(1)
        await visit.page.get_by_role("button", name="Pause").click()
        await expect(visit.page.get_by_role("button", name="Resume")).to_be_visible()
        await burst(busy, 12, "Read", path="none")
        await expect(told).to_have_text("12 new")
        await visit.page.evaluate("window.sockets.at(-1).close()")
        await burst(busy, 3, "Read", path="none")
        await burst(busy, 4, "LS")  # of another tool: not counted
        await burst(busy, 1, "Read", path="none")
        await expect(told).to_have_text("16 new")
        await expect(rows).to_have_count(1)
        await visit.page.get_by_role("button", name="Resume").click()
        await expect(rows).to_have_count(17)
        await expect(told).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:url-state", "console:activity")
async def test_filters_and_the_open_call_are_in_the_address_and_survive_reload_back_and_forward(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/activity")
        await page.get_by_label("Tool", exact=True).select_option("Read")
        await page.get_by_label("Status", exact=True).select_option("error")
        await expect(page.get_by_label("Search calls")).to_have_value("tool:Read state:error")
        await page.get_by_label("Search calls").fill("tool:Read state:error missing.txt ")
        await expect(page.locator("main [data-row]")).to_have_count(1)
        await expect(page).to_have_url(re.compile(r"(?=.*q=missing)(?=.*tool=Read)(?=.*state=error)"))
        # More may come.
        await expect(page.get_by_label("Search calls")).to_have_value("tool:Read state:error missing.txt ")
        await page.locator("main [data-row]").click()
        await panel.get_by_role("tab", name="Input").click()
        await expect(panel).to_contain_text('"path": "missing.txt"')
        await page.reload()
        await visit.settle()
        await expect(panel.get_by_role("tab", name="Input")).to_have_attribute("aria-selected", "true")
        await expect(panel).to_contain_text('"path": "missing.txt"')
        await page.go_back()
        await expect(panel).to_have_count(0)
        await expect(page.locator("main [data-row]")).to_have_count(1)
        await page.go_forward()
        await expect(panel).to_contain_text('"path": "missing.txt"')
        await page.keyboard.press("Escape")
        await expect(panel).to_have_count(0)
        await expect(page.get_by_label("Search calls")).to_have_value("tool:Read state:error missing.txt")
        await expect(page.get_by_label("Status", exact=True)).to_have_value("error")
        await page.get_by_role("button", name="Clear filters").click()
        await expect(page.locator("main [data-row]")).not_to_have_count(1)
        await expect(page).to_have_url(re.compile("/activity$"))
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_running_call_is_on_top_and_stops_and_a_failed_one_shows_its_process(
    browser: Browser, busy: Host
) -> None:
    async with visiting(browser, busy) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/activity")
        running = asyncio.create_task(busy.call("Slow"))
        top = page.locator("main .act-row").first
        await expect(top).to_contain_text("running")
        await burst(busy, 2, "LS", path="later")
        await expect(page.locator("main [data-row]", has_text="later")).to_have_count(2)
        await expect(top).to_contain_text("Slow")
        await expect(page.locator("header")).to_contain_text(re.compile(r"1\s*running"))
        await page.get_by_role("button", name="Stop Slow").click()
        assert (await running)["context"]["reason"] == "CANCELLED"
        await expect(page.locator("main .act-row.runs")).to_have_count(0)
        await expect(page.locator("main .act-row", has_text="Slow")).to_contain_text("cancelled")
        stopped = await busy.api("GET", f"/v1/calls/{await newest(busy, 'Slow')}")
        assert (stopped["state"], stopped["process"]["exit_code"]) == ("cancelled", None)
        await busy.call("Broken", password=SECRET)
        broken = await newest(busy, "Broken")
        row = page.locator("main .act-row", has_text="Broken")
        size = (await busy.api("GET", f"/v1/calls/{broken}"))["bytes_out"]
        await expect(row.locator(".act-size")).to_have_text(f"{size} B" if size < 1024 else f"{size / 1024:.1f} KiB")
        await row.locator("[data-row]").click()
        await panel.get_by_role("tab", name="Process").click()
        for fact in ("Exit code", "3", "Command line", "main.py", "<b>went</b> wrong", "this is no answer", "PATH"):
            await expect(panel).to_contain_text(fact)
        assert await access_faults(page) == []
        assert await layout_faults(page) == []
        await panel.get_by_role("tab", name="Input").click()
        await expect(panel).to_contain_text("[masked]")
        assert SECRET not in await page.content()
        assert visit.wrong() == []
    async with visiting(browser, busy, size=PHONE, lang="pseudo") as small:
        await small.go(f"/activity?call={broken}&part=process")
        await expect(small.page.get_by_role("dialog").locator("[data-tab=process]")).to_be_visible()
        assert await layout_faults(small.page, phone=True) == []
        assert await untranslated(small.page) == []


@pytest.mark.requirement("console:activity")
async def test_a_timeline_tells_who_allowed_a_call_and_how_long_each_step_took(browser: Browser, busy: Host) -> None:
    async with visiting(browser, busy) as visit:
        panel = visit.page.get_by_role("dialog")
        await visit.go(f"/activity?tool=Story&call={STORY}&part=timeline")
        steps = panel.locator(".act-timeline li")
        shown = ["Called", "Approval requested after 1 s", "Approved by owner after 30 s", "Started after 2 s"]
        shown += ["First output after 4 s", "Ended after 2 s", "Callback accepted", "Callback rejected", "success"]
        await expect(steps).to_have_count(len(shown))
        for at, words in enumerate(shown):
            await expect(steps.nth(at)).to_contain_text(re.compile(r"\s*".join(map(re.escape, words.split()))))
        await expect(steps.last).to_contain_text("ran 8 s")
        await expect(steps.last).to_contain_text("waited 30 s")
        assert await access_faults(visit.page) == []
        await panel.get_by_role("link", name="task_").first.click()
        await expect(visit.page).to_have_url(re.compile(r"/tasks\?task="))
        await visit.page.go_back()
        await expect(panel).to_be_visible()
        await visit.page.keyboard.press("Escape")
        row = visit.page.locator("main .act-row")
        await expect(row.locator(".act-duration")).to_have_text("8 s")
        await expect(row.locator(".act-size")).to_have_text("2.0 KiB")
        await expect(row.get_by_role("link", name="Task")).to_have_attribute("href", re.compile(r"/tasks\?task=task_"))
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_retry_and_the_call_that_it_repeats_lead_to_each_other(browser: Browser, busy: Host) -> None:
    await busy.call("SciCalculator", expression="6*7")
    first = await newest(busy, "SciCalculator")
    async with visiting(browser, busy) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go(f"/activity?call={first}&part=related")
        await expect(panel).to_contain_text("Nothing related")
        await panel.get_by_role("button", name="Retry").click()
        await expect(page.get_by_role("textbox", name="expression")).to_have_value("6*7")
        await page.get_by_role("button", name="Run", exact=True).click()
        second = await wait_for_value(lambda: newest(busy, "SciCalculator"), lambda call: call != first)
        await page.evaluate(GO, f"/activity?call={second}&part=related")
        await expect(panel.locator("dl")).to_contain_text("Retry of")
        await panel.get_by_role("link", name=first).click()
        await expect(panel.locator("dl")).to_contain_text("Retried as")
        await expect(panel.get_by_role("link", name=second)).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity:patch")
async def test_a_change_is_shown_with_its_whole_files_and_undone_while_they_are_as_it_left_them(
    browser: Browser, busy: Host
) -> None:
    await busy.call("Write", path="a.txt", content="one\ntwo\n")
    written = await newest(busy, "Write")
    await busy.call("Edit", path="a.txt", old_string="two", new_string="three")
    edited = await newest(busy, "Edit")
    async with visiting(browser, busy) as visit:
        page, panel, file = visit.page, visit.page.get_by_role("dialog").first, busy.project / "a.txt"
        undo = panel.get_by_role("button", name="Undo these changes").first
        files, half = panel.get_by_role("button", name="Full files"), panel.locator(".act-full-file .code")
        await visit.go(f"/activity?call={written}")
        await expect(undo).to_be_disabled()  # the file has changed since
        await expect(panel).to_contain_text("Cannot be undone")
        await files.click()
        await expect(half).to_have_text([re.compile("Before.*No longer stored"), re.compile("After.*No longer stored")])
        await page.evaluate(GO, f"/activity?call={edited}&view=files")
        await expect(half).to_have_text([re.compile(r"Before\s*one\s*two"), re.compile(r"After\s*one\s*three")])
        await files.click()
        await expect(panel.locator(".patch-file")).to_have_count(1)
        await undo.click()
        sure = page.get_by_role("dialog", name="Undo these changes")
        await expect(sure).to_contain_text("a.txt")
        await sure.get_by_role("button", name="Undo these changes").click()
        await expect(panel.locator(".act-undone")).to_contain_text("Undone")
        await expect(undo).to_have_count(0)
        assert file.read_text() == "one\ntwo\n"
        # What was offered may have become untrue meanwhile: then the server says so, and nothing is written.
        await busy.call("Edit", path="a.txt", old_string="two", new_string="four")
        await page.evaluate(GO, f"/activity?call={await newest(busy, 'Edit')}")
        await undo.click()
        await expect(sure).to_contain_text("a.txt")
        file.write_text("mine\n")
        visit.allowed += ["409"]
        await sure.get_by_role("button", name="Undo these changes").click()
        await expect(panel.locator(".fault")).to_contain_text("Undo failed")
        assert file.read_text() == "mine\n"
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity", "console:layout", "console:accessible", "console:languages")
async def test_a_call_fits_a_phone_in_each_of_its_parts_and_in_any_language(browser: Browser, filled: Host) -> None:
    edited = await newest(filled, "Edit")
    async with visiting(browser, filled, size=PHONE, theme="dark", lang="pseudo") as visit:
        await visit.go("/activity")
        for part in ("output", "input", "patch", "patch&view=files", "timeline", "related"):
            await visit.page.evaluate(GO, f"/activity?call={edited}&part={part}")
            tab = visit.page.locator("dialog [role=tab][aria-selected=true]")
            await expect(tab).to_have_attribute("data-tab", part.partition("&")[0])
            await expect(visit.page.locator(".act-full-file")).to_have_count(1 if "files" in part else 0)
            await expect(visit.page.locator(".skeleton")).to_have_count(0)
            assert await layout_faults(visit.page, phone=True) == [], part
            assert await access_faults(visit.page) == [], part
            assert await untranslated(visit.page) == [], part
        assert visit.wrong() == []


@pytest.mark.requirement("console:inert", "console:activity")
async def test_what_a_tool_says_is_only_text_whatever_it_says(browser: Browser, busy: Host) -> None:
    def plain(texts: list[str]) -> list[str]:
        return [" ".join(text.split()) for text in texts]

    async with visiting(browser, busy) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/activity?tool=Hostile")
        rows = page.locator("main [role=listitem]")
        await expect(rows.first).to_have_attribute("aria-setsize", str(len(HOSTILE)))
        assert await active(page) == []
        await page.evaluate(GO, f"/activity?call=call_{100:032x}&part=patch")
        await expect(panel.locator(".patch-path")).to_have_text(plain(HOSTILE))
        assert await active(page) == []
        await page.evaluate(GO, f"/activity?call=call_{101:032x}&part=output")
        await expect(panel.locator(".outcome-text")).to_have_text(" ".join(plain(["\n".join(HOSTILE)])))
        for at in range(1, len(HOSTILE), 6):  # those with a message of an error
            await page.evaluate(GO, f"/activity?call=call_{at:032x}&part=output")
            await expect(panel.locator(".act-error").first).to_have_text(" ".join(HOSTILE[at].split()))
            assert await active(page) == [], HOSTILE[at]
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity", "console:layout")
async def test_the_longest_state_and_a_long_time_stand_beside_each_other(browser: Browser, busy: Host) -> None:
    async with visiting(browser, busy) as visit:
        page = visit.page
        await visit.go("/activity?tool=Story")
        row = page.locator("main .act-row")
        # A call that waits for minutes, without the minutes.
        await row.evaluate(
            """(row) => {
              row.querySelector('.chip').lastChild.textContent = 'waiting for approval';
              row.querySelector('.act-duration').textContent = '59 min 59 s';
              row.querySelector('.act-time').textContent = 'Nov 17, 14:30';
            }"""
        )
        boxes = [await row.locator(part).bounding_box() for part in (".chip", ".act-duration")]
        fits = "one => one.scrollWidth <= one.clientWidth"
        for part in (".act-time", ".act-state", ".act-duration"):
            assert await row.locator(part).evaluate(fits), part
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_call_is_shown_as_on_the_page_of_its_tool_each_part_once(browser: Browser, fresh: Host) -> None:
    (fresh.project / "notes.txt").write_text("one\n<b>two</b>\n")
    await fresh.call("Read", path="notes.txt")
    read = await newest(fresh, "Read")
    await fresh.call("Read", path="missing2.txt")
    missing = await newest(fresh, "Read")
    async with visiting(browser, fresh) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go(f"/activity?call={read}&part=output")
        await expect(panel.get_by_role("heading").first).to_have_text("Read · notes.txt")
        await expect(panel.locator(".code-head").first).to_contain_text("Content")
        await expect(panel.locator("pre").first).to_contain_text("<b>two</b>")
        shown = await panel.inner_text()
        assert shown.count("<b>two</b>") == 1  # and not once more as escaped JSON
        await page.evaluate(GO, f"/activity?call={missing}&part=output")
        await expect(panel.get_by_role("heading").first).to_have_text("Read · missing2.txt")
        message = (await fresh.api("GET", f"/v1/calls/{missing}"))["error"]["message"]
        await expect(panel).to_contain_text(message)
        assert (await panel.inner_text()).count(message) == 1
        assert await access_faults(page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity", "console:url-state")
async def test_a_link_may_have_typed_filters_and_an_unknown_call_says_that_there_is_none(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["404"]
        await visit.go("/activity?q=code:NOT_FOUND")
        await expect(visit.page).to_have_url(re.compile(r"/activity\?code=NOT_FOUND$"))
        await expect(visit.page.locator("main [data-row]").first).to_contain_text("NOT_FOUND")
        await visit.go(f"/activity?call=call_{'f' * 32}")
        panel = visit.page.get_by_role("dialog")
        await expect(panel).to_contain_text("There is no such call")
        await panel.get_by_role("button", name="Show all calls").click()
        await expect(panel).to_have_count(0)
        assert visit.wrong() == []
