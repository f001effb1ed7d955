"""A running call shows what it reports: in the chat, and in Activity."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.looks import access_faults
from tests.console.seeding import write_plugin
from tests.console.talking import Talking, confirm_read, say, talking
from tests.console.visit import visiting
from toolyard.protocol.requests.scanner import format_request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:progress")]
# It reports lines until it may end.
BUILDER = """
import json, os, sys, time
own = os.environ["HOME"]
for line in ("compiling <b>one</b>", "compiling two"):
    print("PROGRESS 0.5", line, file=sys.stderr, flush=True)
while not os.path.exists(own + "/go"):
    time.sleep(0.05)
os.unlink(own + "/go")
print(json.dumps({"status": "success", "result": "It is built."}))
"""


@pytest_asyncio.fixture(loop_scope="session")
async def building(tmp_path: Path) -> AsyncIterator[Talking]:
    long = {"protocol": "stdio", "timeout": 300_000}
    options = write_plugin(tmp_path / "given", "Builder", BUILDER, communication=long, risk="read", warmStart=False)
    async with talking(tmp_path, *options) as one:
        await confirm_read(one, "Builder")
        yield one


def let_it_end(one: Talking) -> None:
    (one.host.home / "plugin-data/Builder/go").touch()


async def test_a_call_in_the_chat_shows_its_last_lines_until_it_has_ended(browser: Browser, building: Talking) -> None:
    building.answers("Build it.", format_request("Builder", {"command": "Go"}), "Done.")
    async with visiting(browser, building.host) as visit:
        await visit.go("/chat")
        await say(visit, "Build it.")
        progress = visit.page.get_by_role("group", name="Progress")
        await expect(progress.locator("pre")).to_have_text("compiling <b>one</b>\ncompiling two")
        await expect(progress.locator("progress")).to_have_attribute("value", "0.5")
        assert await access_faults(visit.page) == []
        let_it_end(building)
        await expect(visit.page.locator("main")).to_contain_text("Done.")
        await expect(progress).to_have_count(0)
        assert visit.wrong() == []


async def test_activity_shows_the_last_line_in_the_row_and_the_lines_beside_it(
    browser: Browser, building: Talking
) -> None:
    async with visiting(browser, building.host) as visit:
        await visit.go("/activity")
        call = asyncio.ensure_future(building.host.call("Builder"))
        row = visit.page.locator(".act-row", has_text="Builder")
        await expect(row).to_contain_text("compiling two")
        await row.locator("a.act-open").click()
        panel = visit.page.get_by_role("dialog")
        await expect(panel.locator("pre", has_text="compiling")).to_have_text("compiling <b>one</b>\ncompiling two")
        let_it_end(building)
        await call
        await expect(panel.get_by_role("group", name="Progress")).to_have_count(0)
        await expect(row).to_contain_text("It is built.")
        assert visit.wrong() == []
