"""The catalogue, and trying a tool: its form, its run, what came out, and the call as other programs make it."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Request, expect

from tests.console.hosting import START_S, Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.schemas import ENDINGS, SHAPES, acts, plugin
from tests.console.talking import becomes
from tests.console.visit import PHONE, Visit, visiting
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")
FORM = [
    "title: text", "colour: choice of –, red, green, blue", "count: text", "sure: choice of –, true, false",
    "deep: switch", "city: text", "zip: text", "note: text", "null note: switch",
    "size: value type: choice of whole number, box", "size: text", "rest: lines",
]  # fmt: skip
CONTROLS = """(nodes) => nodes.map((node) => {
  const name = node.getAttribute('aria-label') ?? node.labels?.[0]?.textContent.replace(' *', '').trim();
  const options = [...(node.options ?? [])].map((one) => one.textContent).join(', ');
  const kind = node.role === 'switch' ? 'switch' : node.rows ? 'lines' : 'text';
  return `${name}: ${options ? `choice of ${options}` : kind}`;
})"""
TRICKY = 'it\'s "two" lines:\n$HOME `id` \\ 「末」 <<<[END_TOOL_REQUEST]>>> 你好'


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shaped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """A server with plugins to try; each test uses its own of them."""
    folder = tmp_path_factory.mktemp("shaped")
    plugins = folder / "plugins"
    plugin(plugins, "Shapes", parameters=SHAPES)
    plugin(plugins, "Copied", parameters={"type": "object", "properties": {"text": {"type": "string"}}})
    long = {"protocol": "stdio", "timeout": 300_000}
    for name in ("Endings", "Sleeper"):
        given = acts("success", "partial", "error", "noise", "sleep")
        plugin(plugins, name, script=ENDINGS, parameters=given, communication=long)
    async with hosting(folder, "--plugins", str(plugins)) as host:
        yield host


def calls_of(visit: Visit) -> list[Request]:
    """Every call of a tool that the page makes from now on."""
    made: list[Request] = []
    visit.page.on("request", lambda one: made.append(one) if one.method == "POST" and "/v1/tools/" in one.url else None)
    return made


async def run(page: Page) -> None:
    await page.get_by_role("button", name="Run", exact=True).click()


def result(page: Page) -> Any:
    return page.get_by_role("region", name="Output")


@pytest.mark.requirement("console:tools", "console:languages")
async def test_a_tool_is_named_described_and_explained_in_the_language_of_the_reader(
    browser: Browser, shaped: Host
) -> None:
    told = {
        "en": (
            *("Scientific calculator", "Gives the exact value of an expression", "What to calculate, such as"),
            *("The edits, in the order in which they are made.", "The text to put in its place."),
        ),
        "zh": (
            *("科学计算器 SciCalculator", "计算表达式 expression 的准确值", "要计算的表达式，例如"),
            *("各处替换，按先后顺序执行。", "替换后的文字。"),
        ),
    }
    for lang, (name, about, expression, edits, inside) in told.items():
        async with visiting(browser, shaped, lang=lang) as visit:
            await visit.go("/tools")
            card = visit.page.locator(".tools-card").filter(has_text=name)
            await expect(card).to_contain_text(about)
            await expect(card).to_contain_text("SciCalculator")
            form = visit.page.locator(".tools-input")
            await visit.go("/tools/SciCalculator")
            await expect(form).to_contain_text(expression)
            await visit.go("/tools/MultiEdit")
            await form.locator("fieldset").get_by_role("button", name="edits").click()
            await expect(form).to_contain_text(edits)
            await expect(form).to_contain_text(inside)
            assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try")
async def test_a_form_has_a_field_for_each_type_and_sends_what_was_filled_in(browser: Browser, shaped: Host) -> None:
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/Shapes")
        page, form = visit.page, visit.page.get_by_role("region", name="Input")
        await form.get_by_text("Options (7)").click()
        fields = form.locator("input, select, textarea")
        await expect(fields).to_have_count(len(FORM))
        assert await fields.evaluate_all(CONTROLS) == FORM
        await form.get_by_label("title").fill("你好 <b>")
        await form.get_by_label("colour").select_option("green")
        await form.get_by_label("count").fill("7")
        await form.get_by_label("sure").select_option("false")
        await form.get_by_text("deep", exact=True).click()
        for tag in ("one", "two"):
            await form.get_by_role("button", name="Add tags").click()
            await form.get_by_role("textbox", name=re.compile(r"tags \d")).last.fill(tag)
        await form.get_by_role("button", name="Remove tags 1").click()
        await form.get_by_label("city").fill("上海")
        await form.get_by_label("zip").fill("200000")
        await form.get_by_text("null note").click()
        await form.get_by_label("size: value type").select_option("box")
        await form.get_by_label("w", exact=True).fill("3")
        await form.get_by_role("button", name="Add parts").click()
        await form.get_by_label("parts 1: value type").select_option("whole number")
        await form.get_by_role("textbox", name="parts 1").fill("4")
        await form.get_by_label("rest").fill('{"a": [1')
        assert await access_faults(page) == []
        assert await layout_faults(page) == []
        made = calls_of(visit)
        await run(page)
        await expect(form.get_by_role("alert")).to_have_text("Not valid JSON yet.")
        assert made == []
        await form.get_by_label("rest").fill('{"a": [1]}')
        wanted = {
            "title": "你好 <b>", "colour": "green", "count": 7, "sure": False, "deep": True, "tags": ["two"],
            "place": {"city": "上海", "zip": 200000}, "note": None, "size": {"w": 3}, "parts": [4],
            "rest": {"a": [1]},
        }  # fmt: skip
        await form.get_by_role("tab", name="JSON").click()
        await expect(form.get_by_label("JSON", exact=True)).to_have_value(re.compile("上海"))
        assert json.loads(await form.get_by_label("JSON", exact=True).input_value()) == wanted
        await form.get_by_role("tab", name="Form").click()
        await expect(form.get_by_label("count")).to_have_value("7")
        await run(page)
        await expect(result(page).locator(".chip").first).to_have_text("success")
        assert [json.loads(one.post_data or "") for one in made] == [wanted]
        await result(page).get_by_role("tab", name="Raw JSON").click()
        await expect(result(page).get_by_role("list", name="Result fields")).to_be_visible()
        raw = json.loads(await result(page).locator("pre").inner_text())
        assert raw["data"]["given"] == wanted
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try")
@pytest.mark.parametrize(
    ("lang", "needed", "most"),
    [("en", "Required", "At most 9."), ("zh", "必填", "不大于 9。")],
    ids=["en", "zh"],
)
async def test_what_is_missing_or_wrong_is_said_at_its_field_and_nothing_is_sent(
    browser: Browser, shaped: Host, lang: str, needed: str, most: str
) -> None:
    async with visiting(browser, shaped, size=PHONE, lang=lang) as visit:
        await visit.go("/tools/Shapes")
        form, made = visit.page.locator(".tools-input"), calls_of(visit)
        send = visit.page.locator(".tools-run button").first
        await send.click()
        for name in ("title", "colour", "count", "sure"):
            field = form.get_by_label(name)
            await expect(field).to_have_attribute("aria-invalid", "true")
            await expect(field).to_have_accessible_description(re.compile(re.escape(needed)))
        await expect(form.get_by_label("title")).to_be_focused()
        await form.get_by_label("count").fill("99")
        await expect(form.get_by_label("count")).to_have_accessible_description(re.compile(re.escape(most)))
        await form.get_by_label("count").fill("seven")
        await expect(form.get_by_label("count")).to_have_attribute("aria-invalid", "true")
        await form.get_by_label("count").fill("9")
        await expect(form.get_by_label("count")).not_to_have_attribute("aria-invalid", "true")
        await send.click()
        assert made == []
        assert await layout_faults(visit.page, phone=True) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try")
async def test_each_way_to_end_is_shown_for_people_as_it_came_and_with_its_process(
    browser: Browser, shaped: Host
) -> None:
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/Endings")
        shown = result(visit.page)
        ends = [("success", "the answer to success"), ("partial", "the answer to partial"), ("error", "no such star")]
        for act, words in ends:
            await visit.page.get_by_role("combobox", name="act").select_option(act)
            await run(visit.page)
            await expect(shown.locator(".chip").first).to_have_text(act)
            await expect(shown).to_contain_text(words)
        await expect(shown).to_contain_text("NOT_FOUND")
        await shown.get_by_role("tab", name="Raw JSON").click()
        keys = shown.get_by_role("list", name="Result fields").get_by_role("listitem")
        await expect(keys).to_have_text(["status ✓", "data ✓", "text ✓", "stats ✓", "context ✓", "error ✓"])
        await visit.page.get_by_role("combobox", name="act").select_option("noise")
        await run(visit.page)
        await expect(shown.locator(".chip").first).to_have_text("success")
        await shown.get_by_role("tab", name="Process").click()
        await expect(shown).to_contain_text(re.compile(r"python3? act\.py"))
        for words in ("a word on stderr", "this line is no answer", "PATH"):
            await expect(shown).to_contain_text(words)
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try")
async def test_a_running_call_has_a_timer_and_stop_ends_its_process(browser: Browser, shaped: Host) -> None:
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/Sleeper")
        await visit.page.get_by_role("combobox", name="act").select_option("sleep")
        await run(visit.page)
        await expect(visit.page.get_by_role("timer").first).to_have_text(re.compile(r"Running, [1-9]"))
        # The page counts from the press, the server from when it hears of it.
        [row] = await becomes(lambda: calls(shaped, "Sleeper"), lambda rows: len(rows) == 1)
        assert row["state"] == "running"
        await visit.page.get_by_role("button", name="Stop").click()
        await expect(result(visit.page).locator(".chip").first).to_have_text("cancelled")
        await expect(visit.page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        call = await shaped.api("GET", f"/v1/calls/{row['id']}")
        assert (call["state"], call["envelope"]["context"]["reason"]) == ("cancelled", "CANCELLED")
        await wait_until(lambda: not runs(call["process"]["pid"]), within_s=START_S)
        await result(visit.page).get_by_role("tab", name="Process").click()
        await expect(result(visit.page)).to_contain_text(str(call["process"]["pid"]))
        await expect(result(visit.page)).not_to_contain_text("null")

        other = asyncio.create_task(shaped.call("Sleeper", act="sleep"))  # somebody else's
        past = visit.page.get_by_role("region", name="Recent runs").locator("[data-row]")
        await expect(past.last).to_contain_text("cancelled")
        await past.filter(has_text="running").click()
        await expect(visit.page.get_by_role("timer").first).to_be_visible()
        await visit.page.get_by_role("button", name="Stop").click()
        assert (await other)["context"]["reason"] == "CANCELLED"
        await expect(result(visit.page).locator(".chip").first).to_have_text("cancelled")
        assert visit.wrong() == []


async def calls(host: Host, tool: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await host.api("GET", f"/v1/calls?tool={tool}"))["data"]
    return found


def runs(pid: int) -> bool:
    """A killed one stays on the list until somebody looks after it, but runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.requirement("console:tools:try")
async def test_the_last_fifteen_runs_can_be_shown_and_run_again(browser: Browser, shaped: Host) -> None:
    for number in range(1, 18):
        await shaped.call("LS", path=".", limit=number)
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/LS")
        past = visit.page.get_by_role("region", name="Recent runs")
        rows = past.locator("[data-row]")
        await expect(rows).to_have_count(15)
        await expect(rows.first).to_contain_text("limit=17")
        await rows.last.click()
        await expect(visit.page.get_by_role("textbox", name="limit")).to_have_value("3")
        await expect(result(visit.page).locator(".chip").first).to_have_text("success")
        made = calls_of(visit)
        await past.get_by_role("button", name="Run again").last.click()
        await expect(rows.first).to_contain_text("limit=3")
        await expect(rows).to_have_count(15)
        assert [json.loads(one.post_data or "") for one in made] == [{"path": ".", "limit": 3}]
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try", "console:url-state")
async def test_input_stays_when_one_looks_elsewhere_and_a_call_fills_it_in(browser: Browser, shaped: Host) -> None:
    answer = await shaped.api("POST", "/v1/tools/Read", {"path": "none.txt", "limit": 5})
    [call] = (await shaped.api("GET", "/v1/calls?tool=Read"))["data"]
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/Grep")
        await visit.page.get_by_role("textbox", name="pattern").fill("x+")
        await visit.page.get_by_role("link", name="All tools").click()
        await visit.page.get_by_role("link", name="Glob").click()
        await expect(visit.page.get_by_role("textbox", name="pattern")).to_have_value("")
        await visit.page.go_back()
        await visit.page.go_back()
        await expect(visit.page.get_by_role("textbox", name="pattern")).to_have_value("x+")
        await visit.page.reload()
        await expect(visit.page.get_by_role("textbox", name="pattern")).to_have_value("x+")
        await visit.go(f"/tools/Read?call={call['id']}")
        await expect(visit.page.get_by_role("region", name="Input").get_by_role("note")).to_contain_text(
            "an earlier call"
        )
        await expect(visit.page.get_by_role("textbox", name="path")).to_have_value("none.txt")
        await expect(visit.page.get_by_role("textbox", name="limit")).to_have_value("5")
        await expect(result(visit.page)).to_contain_text(answer["error"]["message"])
        visit.allowed += ["404"]
        for lost in ("call_0", call["id"]):
            await visit.go(f"/tools/{'Read' if lost == 'call_0' else 'Grep'}?call={lost}")
            await expect(visit.page.get_by_role("region", name="Input").get_by_role("note")).to_contain_text(
                "no longer available"
            )
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:try")
async def test_a_call_copied_as_curl_command_line_or_block_does_the_same(browser: Browser, shaped: Host) -> None:
    async with visiting(browser, shaped) as visit:
        await visit.go("/tools/Copied")
        await visit.page.get_by_label("text").fill(TRICKY)
        texts = {}
        for name in ("curl", "Command line", "Request block"):
            await visit.page.evaluate("navigator.clipboard.writeText('')")
            await visit.page.locator("summary", has_text="Copy as").click()
            await visit.page.get_by_role("button", name=name, exact=True).click()
            copied = await visit.page.wait_for_function("() => navigator.clipboard.readText()")
            texts[name] = await copied.json_value()
        assert visit.wrong() == []
    command = f'toolyard() {{ "{sys.executable}" -m toolyard "$@"; }}\n{texts["Command line"]}'
    assert json.loads(await shell(command))["data"]["given"]["text"] == TRICKY
    sent = (await shell(f"curl() {{ printf '%s\\0' \"$@\"; }}\n{texts['curl']}", TOOLYARD_KEY=shaped.key)).split("\0")
    assert sent[:2] == ["-X", "POST"]
    headers = dict(sent[at + 1].split(": ") for at, word in enumerate(sent) if word == "-H")
    assert (await ask(sent[2], sent[sent.index("-d") + 1], headers))["data"]["given"]["text"] == TRICKY
    plain = {"Authorization": f"Bearer {shaped.key}", "Content-Type": "text/plain"}
    block = await ask(f"{shaped.url}/v1/human/tool", texts["Request block"], plain)
    assert block["details"]["given"]["text"] == TRICKY, block


async def shell(script: str, **environment: str) -> str:
    child = await asyncio.create_subprocess_exec(
        *("sh", "-c", script), env={**os.environ, **environment}, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(START_S):
        out, _ = await child.communicate()
    assert child.returncode == 0
    return out.decode()


async def ask(url: str, body: str, headers: dict[str, str]) -> Any:
    async with aiohttp.ClientSession() as client, client.post(url, data=body.encode(), headers=headers) as response:
        assert response.status == 200, await response.text()
        return await response.json()


@pytest.mark.requirement("console:tools", "console:url-state")
async def test_the_catalogue_finds_by_word_kind_state_and_risk_and_keeps_it_over_a_reload(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        await visit.go("/tools")
        rows = visit.page.locator("main [data-row]")
        echo = visit.page.locator(".tools-card", has_text="EchoPlugin")
        [read] = [one for one in (await filled.api("GET", "/v1/calls/stats"))["by_tool"] if one["tool"] == "Read"]
        told = f"{read['calls']} calls · {round(100 * read['errors'] / read['calls'])}% errors"
        await expect(visit.page.locator(".tools-card", has=visit.page.get_by_text("Read", exact=True))).to_contain_text(
            told
        )
        total = await rows.count()
        await visit.page.get_by_label("Kind").select_option("sync")
        await visit.page.get_by_label("Risk").select_option("read")
        await visit.page.get_by_label("State").select_option("ready")
        await visit.page.get_by_label("Search tools").fill("echo")
        await expect(rows).to_have_count(1)
        await visit.page.reload()
        await visit.settle()
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("EchoPlugin")
        for label, value in (("Kind", "sync"), ("Risk", "read"), ("State", "ready"), ("Search tools", "echo")):
            await expect(visit.page.get_by_label(label)).to_have_value(value)
        await visit.page.get_by_label("Search tools").fill("Tool not found")
        await visit.page.get_by_role("button", name="Clear filters").click()
        await expect(rows).to_have_count(total)
        await echo.get_by_role("button", name=re.compile("favourite")).click()
        await visit.page.reload()
        await expect(rows.first).to_contain_text("EchoPlugin")
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools", "console:tools:try")
async def test_a_key_for_tools_alone_tries_tools_and_is_refused_nothing(browser: Browser, shaped: Host) -> None:
    made = await shaped.api("POST", "/v1/keys", {"name": "hands", "scopes": ["tools"]})
    async with visiting(browser, shaped, signed_in=False) as visit:
        await visit.context.request.post(f"{shaped.url}/login", form={"key": made["key"]})
        await visit.go("/tools")
        await expect(visit.page.get_by_role("link", name="Shapes")).to_be_visible()
        await expect(visit.page.get_by_role("button", name="Install")).to_have_count(0)
        await visit.page.get_by_role("link", name="EchoPlugin").click()
        tabs = visit.page.get_by_role("tablist", name="About this tool").get_by_role("tab")
        await expect(tabs).to_have_text(["Try it", "Description"])
        await visit.page.get_by_label("text").fill("hello")
        await run(visit.page)
        await expect(result(visit.page)).to_contain_text("Echo: hello")
        await expect(visit.page.get_by_role("region", name="Recent runs").locator("[data-row]")).to_have_count(1)
        assert visit.wrong() == []
