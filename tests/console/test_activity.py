"""Activity: every call as it happens, each once, and all that is known of one."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import GO, active, attacks, burst, call, seed, untranslated, write_plugin
from tests.console.visit import PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 300
LIST = (Path(__file__).parent / "rows.js").read_text()
# The page's own socket, so that a test can cut it.
SOCKETS = """
const Real = WebSocket;
window.sockets = [];
window.WebSocket = class extends Real { constructor(...given) { super(...given); window.sockets.push(this); } };
"""
SLOW = "import sys, time\nsys.stdin.readline()\ntime.sleep(120)\n"
BROKEN = """
import sys
sys.stdin.readline()
print("this is no answer")
print("<b>went</b> wrong", file=sys.stderr)
sys.exit(3)
"""
SECRET = "canary-7d1f0b6e"


async def whole(page: Page, count: int) -> None:
    """Scroll down until the list has that many rows."""
    box = page.locator("main .virtual")
    async with asyncio.timeout(30):
        while await box.locator(f"[aria-setsize='{count}']").count() == 0:
            await box.evaluate("box => { box.scrollTop = box.scrollHeight }")
            await page.wait_for_timeout(50)


async def known(host: Host) -> list[str]:
    ids: list[str] = []
    after = ""
    while after or not ids:
        page = await host.api("GET", f"/v1/calls?limit=200{after}")
        ids += [one["id"] for one in page["data"]]
        after = f"&after={page['next']}" if page["next"] else ""
    return ids


@pytest.mark.requirement("console:activity", "console:live")
async def test_a_burst_of_calls_shows_each_once_also_when_the_connection_breaks_in_it(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.context.add_init_script(SOCKETS)
        await visit.go("/activity")
        await expect(visit.page.locator("main .empty")).to_be_visible()
        await burst(fresh, MANY // 2)
        await visit.page.evaluate("window.sockets.at(-1).close()")
        await burst(fresh, MANY // 2)
        await expect(visit.page.locator(".banner")).to_have_count(0)
        await whole(visit.page, MANY)
        calls = await known(fresh)
        assert len(calls) == MANY
        async with asyncio.timeout(15):  # the last of them may still move from the top, where it ran, to its place
            while await visit.page.evaluate(LIST, MANY + 1) != calls:
                pass
        assert await visit.page.locator("main [data-row]").count() < 60
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_paused_list_counts_what_comes_and_shows_it_when_it_goes_on(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.context.add_init_script(SOCKETS)
        await fresh.call("LS", path=".")
        await visit.go("/activity")
        rows, told = visit.page.locator("main [data-row]"), visit.page.locator(".act-unseen")
        await expect(rows).to_have_count(1)
        await visit.page.get_by_role("button", name="Pause").click()
        await burst(fresh, 12)
        await expect(told).to_have_text("12 new")
        await visit.page.evaluate("window.sockets.at(-1).close()")
        await burst(fresh, 3)
        await expect(told).to_have_text("15 new")
        await expect(rows).to_have_count(1)
        await visit.page.get_by_role("button", name="Go on").click()
        await expect(rows).to_have_count(16)
        await expect(told).to_have_count(0)
        # A filter counts what fits it.
        await visit.page.get_by_label("Tool", exact=True).select_option("Write")
        await expect(visit.page.locator("main .empty")).to_be_visible()
        await visit.page.get_by_role("button", name="Pause").click()
        await burst(fresh, 4)
        await fresh.call("Write", path="a.txt", content="a")
        await expect(told).to_have_text("1 new")
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
        await page.get_by_label("Search arguments and results").fill("missing.txt")
        await expect(page.locator("main [data-row]")).to_have_count(1)
        await expect(page).to_have_url(re.compile(r"(?=.*q=missing)(?=.*tool=Read)(?=.*state=error)"))
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
        await expect(page.get_by_label("Search arguments and results")).to_have_value("missing.txt")
        await expect(page.get_by_label("Status", exact=True)).to_have_value("error")
        await page.get_by_role("button", name="Clear filters").click()
        await expect(page.locator("main [data-row]")).not_to_have_count(1)
        await expect(page).to_have_url(re.compile("/activity$"))
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity")
async def test_a_running_call_is_on_top_and_stops_and_a_failed_one_shows_its_process(
    browser: Browser, tmp_path: Path
) -> None:
    long = {"communication": {"protocol": "stdio", "timeout": 60000}}
    write_plugin(tmp_path / "given", "Slow", SLOW, **long)
    options = write_plugin(tmp_path / "given", "Broken", BROKEN)
    async with hosting(tmp_path, *options) as host, visiting(browser, host) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/activity")
        running = asyncio.create_task(host.call("Slow"))
        top = page.locator("main .act-row").first
        await expect(top).to_contain_text("running")
        await burst(host, 2)
        await expect(page.locator("main [data-row]")).to_have_count(3)
        await expect(top).to_contain_text("Slow")
        await expect(page.locator("header")).to_contain_text("1")
        await page.get_by_role("button", name="Stop Slow").click()
        assert (await running)["context"]["reason"] == "CANCELLED"
        await expect(page.locator("main .act-row.runs")).to_have_count(0)
        await host.call("Broken", password=SECRET)
        await page.locator("main [data-row]", has_text="Broken").click()
        await panel.get_by_role("tab", name="Process").click()
        for fact in ("Exit code", "3", "Command line", "main.py", "<b>went</b> wrong", "this is no answer", "PATH"):
            await expect(panel).to_contain_text(fact)
        assert await access_faults(page) == []
        assert await layout_faults(page) == []
        await panel.get_by_role("tab", name="Input").click()
        await expect(panel).to_contain_text("[masked]")
        await panel.get_by_role("tab", name="Timeline").click()
        await expect(panel.locator(".act-timeline li")).to_have_count(3)
        assert SECRET not in await page.content()
        assert visit.wrong() == []
        broken = (await host.api("GET", "/v1/calls?tool=Broken"))["data"][0]["id"]
        async with visiting(browser, host, size=PHONE, lang="pseudo") as small:
            await small.go(f"/activity?call={broken}&part=process")
            assert await layout_faults(small.page, phone=True) == []
            assert await untranslated(small.page) == []


@pytest.mark.requirement("console:activity:patch")
async def test_a_change_can_be_undone_while_its_file_is_as_it_left_it(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        page, panel, file = visit.page, visit.page.get_by_role("dialog").first, fresh.project / "a.txt"
        await fresh.call("Write", path="a.txt", content="one\ntwo\n")
        await fresh.call("Edit", path="a.txt", old_string="two", new_string="three")
        (first, written) = (await fresh.api("GET", "/v1/calls"))["data"]
        await visit.go(f"/activity?call={written['id']}")
        undo = panel.get_by_role("button", name="Undo these changes").first
        await expect(undo).to_be_disabled()  # the file has changed since
        await expect(panel).to_contain_text("It cannot be undone")
        await visit.go(f"/activity?call={first['id']}")
        await undo.click()
        sure = page.get_by_role("dialog", name="Undo these changes")
        await expect(sure).to_contain_text("a.txt")
        await sure.get_by_role("button", name="Undo these changes").click()
        await expect(undo).to_be_disabled()
        assert file.read_text() == "one\ntwo\n"
        # What was offered may have become untrue meanwhile: then the server says so, and nothing is written.
        await fresh.call("Edit", path="a.txt", old_string="two", new_string="four")
        edited = (await fresh.api("GET", "/v1/calls"))["data"][0]
        await visit.go(f"/activity?call={edited['id']}")
        await expect(undo).to_be_enabled()
        file.write_text("mine\n")
        visit.allowed += ["409"]
        await undo.click()
        await sure.get_by_role("button", name="Undo these changes").click()
        await expect(panel.locator(".fault")).to_contain_text("It could not be undone")
        assert file.read_text() == "mine\n"
        assert visit.wrong() == []


@pytest.mark.requirement("console:activity", "console:layout", "console:accessible", "console:languages")
async def test_a_call_fits_a_phone_in_each_of_its_parts_and_in_any_language(browser: Browser, filled: Host) -> None:
    calls = (await filled.api("GET", "/v1/calls?tool=Edit"))["data"]
    async with visiting(browser, filled, size=PHONE, theme="dark", lang="pseudo") as visit:
        for part in ("output", "input", "patch", "timeline", "related"):
            await visit.go(f"/activity?call={calls[0]['id']}&part={part}")
            await expect(visit.page.locator("dialog [role=tab][aria-selected=true]")).to_have_attribute(
                "data-tab", part
            )
            assert await layout_faults(visit.page, phone=True) == [], part
            assert await access_faults(visit.page) == [], part
            assert await untranslated(visit.page) == [], part
        assert visit.wrong() == []


@pytest.mark.requirement("console:inert", "console:activity")
async def test_what_a_tool_says_is_only_text_whatever_it_says(browser: Browser, tmp_path: Path) -> None:
    texts = attacks()
    hunk = {"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1}
    records = [
        record
        for at, text in enumerate(texts)
        for record in call(
            at,
            {"path": text, "structured_patch": [hunk | {"lines": [f"+{text}"]}], text: text},
            text=text,
            error=text if at % 2 else "",
        )
    ]
    await seed(tmp_path / "home", records)
    async with hosting(tmp_path) as host, visiting(browser, host) as visit:
        page, panel = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/activity")
        await expect(page.locator("main [role=listitem]").first).to_have_attribute("aria-setsize", str(len(texts)))
        assert await active(page) == []
        for at, text in enumerate(texts):
            part, shown = ("output", "pre") if at % 2 else ("patch", ".patch-path")
            await page.evaluate(GO, f"/activity?call=call_{at:032x}&part={part}")
            await expect(panel.locator(shown).first).to_have_text(" ".join(text.split()))
            assert await active(page) == [], text
        assert visit.wrong() == []
