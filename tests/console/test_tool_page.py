"""The tool page: forms that know commands and every kind of field, paths, inputs to start from, and one result."""

import base64
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Request, expect

from tests import postgres
from tests.console.flows import Steps
from tests.console.hosting import START_S, Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.schemas import MANIFEST, plugin
from tests.console.test_media import png, wav
from tests.console.test_tools import calls_of, result, run, shell
from tests.console.visit import DESKTOP, PHONE, visiting
from tests.hosts.yards import plugin as shared_plugin
from tests.hosts.yards import workers
from tests.waiting import wait_for_value

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXAMPLE: Final = (
    "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Orders「末」,\ncommand:「始」create「末」,\nitem:「始」tea「末」\n"
    "<<<[END_TOOL_REQUEST]>>>"
)
ORDERS: Final[list[dict[str, Any]]] = [
    {
        "command": "create", "description": "Creates an order.\nMore for models.", "example": EXAMPLE,
        "parameters": {
            "type": "object", "required": ["item"],
            "properties": {"note": {"type": "string"}, "item": {"type": "string"}, "count": {"type": "integer"}},
        },
    },
    {
        "command": "cancel", "description": "Cancels an order.",
        "parameters": {
            "type": "object", "required": ["id"],
            "properties": {"note": {"type": "string"}, "id": {"type": "string", "pattern": "^o-"}},
        },
    },
    {"command": "list", "description": "Lists the orders.", "parameters": {"type": "object", "properties": {}}},
]  # fmt: skip
UNION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"dry": {"type": "boolean"}},
    "oneOf": [
        {"properties": {"action": {"const": "get"}, "key": {"type": "string"}}, "required": ["key"]},
        {"properties": {"action": {"const": "put"}, "value": {"type": "string"}}, "required": ["value"]},
    ],
}
FIELDS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "api_key": {"type": "string"},
        "target": {
            "oneOf": [
                {
                    "properties": {"type": {"const": "mail"}, "to": {"type": "string", "format": "email"}},
                    "required": ["type", "to"],
                },
                {
                    "properties": {"type": {"const": "hook"}, "url": {"type": "string", "format": "uri"}},
                    "required": ["type", "url"],
                },
            ]
        },
        "picture": {"type": "string", "contentEncoding": "base64"},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed"]}},
        "steps": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    },
    "required": ["when", "api_key", "target"],
}
PLAYER: Final = """
import json, sys
sys.stdin.read()
text = {"type": "text", "text": "Three things to see and hear."}
media = [{"type": "image_url", "image_url": {"url": uri}} for uri in %r]
print(json.dumps({"status": "success", "result": {"content": [text, *media], "message": "Three things to see and hear.",
                                                  "rows": [{"name": "one", "size": 1}, {"name": "two", "size": 2}]}}))
"""


def data_uri(mime: str, raw: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(raw).decode()}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workshop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """A server with tools that have commands, special fields and media; each test uses its own of them."""
    folder = tmp_path_factory.mktemp("workshop")
    plugins = folder / "plugins"
    orders = plugin(plugins, "Orders")
    given = json.loads((orders / MANIFEST).read_text())
    given["capabilities"]["invocationCommands"] = ORDERS
    (orders / MANIFEST).write_text(json.dumps(given, ensure_ascii=False))
    plugin(plugins, "Union", parameters=UNION)
    plugin(plugins, "Fields", parameters=FIELDS)
    uris = [data_uri("image/png", png(40, 30)), data_uri("audio/wav", wav(2)),
            data_uri("video/mp4", b"\0\0\0\x18ftypisom" + bytes(64))]  # fmt: skip
    plugin(plugins, "Player", script=PLAYER % uris, parameters={"type": "object", "properties": {}})
    for path in ("README.md", "src/app/main.py", "src/notes/计划.md"):
        (folder / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "project" / path).write_text("# text\n")
    async with hosting(folder, "--plugins", str(plugins)) as host:
        yield host


async def names_of(form: Locator) -> list[str]:
    """The fields that a form shows, in their order."""
    labels = await form.locator(".schema-fields .schema-fields label[for]").all_inner_texts()
    return [text.replace("*", "").strip() for text in labels]


def sent(made: list[Request]) -> list[Any]:
    return [json.loads(one.post_data or "") for one in made]


@pytest.mark.requirement("tool-page:commands")
@pytest.mark.parametrize(
    ("size", "lang", "needed"), [(DESKTOP, "en", "Required"), (PHONE, "zh", "必填")], ids=["desktop", "phone"]
)
async def test_one_chooses_a_command_sees_only_its_fields_and_sends_nothing_wrong(
    browser: Browser, workshop: Host, size: tuple[int, int], lang: str, needed: str
) -> None:
    async with visiting(browser, workshop, size=size, lang=lang) as visit:
        await visit.go("/tools/Orders")
        page, form = visit.page, visit.page.locator(".tools-input")
        send, made = page.locator(".tools-run button").first, calls_of(visit)
        assert await names_of(form) == []
        await send.click()
        await expect(form.get_by_role("alert")).to_have_text(needed)
        await form.get_by_role("radio", name="create").check()
        await expect(form).to_contain_text("Creates an order.")
        await expect(form).not_to_contain_text("More for models.")
        assert await names_of(form) == ["item", "note", "count"]
        await send.click()
        await expect(form.get_by_label("item")).to_have_attribute("aria-invalid", "true")
        await expect(form.get_by_label("item")).to_be_focused()
        await form.get_by_label("item").fill("tea")
        await form.get_by_label("note").fill("hot")
        await form.get_by_role("radio", name="cancel").check()
        assert await names_of(form) == ["id", "note"]
        await form.get_by_label("id").fill("7")
        await send.click()
        assert made == []
        await form.get_by_label("id").fill("o-7")
        await send.click()
        await expect(page.locator(".tools-result .chip").first).to_be_visible()
        await form.get_by_role("radio", name="create").check()
        await expect(form.get_by_label("item")).to_have_value("tea")
        assert sent(made) == [{"command": "cancel", "id": "o-7", "note": "hot"}]
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []

        await visit.go("/tools/FileOperator")
        assert await names_of(form) == []
        await form.locator("select").first.select_option("SearchFiles")
        assert await names_of(form) == ["searchPath", "pattern", "options"]
        await form.locator("select").first.select_option("ReadFile")
        assert await names_of(form) == ["filePath", "encoding", "lines"]
        await send.click()
        await expect(form.get_by_role("textbox", name="filePath")).to_have_attribute("aria-invalid", "true")
        assert len(made) == 1
        await form.get_by_role("textbox", name="filePath").fill("README.md")
        await send.click()
        await expect(page.locator(".tools-result")).to_contain_text("# text")
        assert sent(made)[1:] == [{"command": "ReadFile", "filePath": "README.md"}]
        assert await layout_faults(page, phone=size == PHONE) == []
        assert visit.wrong() == []


@pytest.mark.requirement("hosts:forms", "tool-page:commands")
async def test_a_plugin_of_another_host_has_a_form_for_each_command_and_runs_there(
    browser: Browser, tmp_path: Path
) -> None:
    shared_plugin(tmp_path / "worker", "Orders", capabilities={"invocationCommands": ORDERS})
    async with (
        postgres.database() as url,
        workers(url, tmp_path / "worker"),
        hosting(tmp_path / "server", settings={"TOOLYARD_DATABASE": url}) as host,
        visiting(browser, host) as visit,
    ):

        async def is_there() -> bool:
            tools = (await host.api("GET", "/v1/tools"))["data"]
            return any(one["name"] == "Orders" and one["kind"] == "remote" for one in tools)

        await wait_for_value(is_there, within_s=START_S)
        await visit.go("/tools/Orders")
        form, made = visit.page.locator(".tools-input"), calls_of(visit)
        assert await names_of(form) == []
        await form.get_by_role("radio", name="cancel").check()
        assert await names_of(form) == ["id", "note"]
        await form.get_by_role("radio", name="create").check()
        assert await names_of(form) == ["item", "note", "count"]
        await run(visit.page)
        await expect(form.get_by_label("item")).to_have_attribute("aria-invalid", "true")
        await form.get_by_label("item").fill("tea")
        await run(visit.page)
        await expect(result(visit.page)).to_contain_text("worker")
        assert sent(made) == [{"command": "create", "item": "tea"}]
        assert visit.wrong() == []


@pytest.mark.requirement("tool-page:commands")
async def test_a_schema_whose_variants_differ_in_one_property_has_commands_too(
    browser: Browser, workshop: Host
) -> None:
    async with visiting(browser, workshop) as visit:
        await visit.go("/tools/Union")
        form, made = visit.page.locator(".tools-input"), calls_of(visit)
        await form.get_by_role("radio", name="put").check()
        assert await names_of(form) == ["value"]
        await form.get_by_label("value").fill("x")
        await run(visit.page)
        await expect(result(visit.page).locator(".chip").first).to_have_text("success")
        assert sent(made) == [{"action": "put", "value": "x"}]
        assert visit.wrong() == []


@pytest.mark.requirement("tool-page:fields")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_dates_secrets_files_maps_choices_and_unions_have_fields_of_their_own(
    browser: Browser, workshop: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, workshop, size=size) as visit:
        await visit.go("/tools/Fields")
        page, form, made = visit.page, visit.page.locator(".tools-input"), calls_of(visit)
        await run(page)
        for name in ("when", "api_key", "to"):  # what a union lacks is said at its own field
            await expect(form.get_by_label(name, exact=False).first).to_have_attribute("aria-invalid", "true")
        await form.locator("input[type=datetime-local]").fill("2026-03-01T09:30")
        secret = form.get_by_role("textbox", name="api_key")
        await expect(form.get_by_label("api_key", exact=False).first).to_have_attribute("type", "password")
        await form.locator("input[type=password]").fill("canary-7")
        await form.get_by_role("button", name="Show api_key").click()
        await expect(secret).to_have_value("canary-7")
        await form.get_by_role("combobox", name="target: value type").select_option("hook")
        await form.get_by_label("url").fill("example.com")
        await run(page)
        await expect(form.get_by_role("alert")).to_have_text("Enter a complete address, such as https://example.com.")
        assert made == []
        await form.get_by_label("url").fill("https://example.com/x")
        await form.get_by_text("Options (4)").click()
        await form.locator("input[type=file]").set_input_files(
            {"name": "a.txt", "mimeType": "text/plain", "buffer": "你好".encode()}
        )
        await expect(form).to_contain_text("a.txt · 6 B")
        await form.get_by_label("New name in labels").fill("size")
        await form.get_by_label("New name in labels").press("Enter")
        await form.get_by_role("textbox", name="size").fill("4")
        await form.get_by_role("checkbox", name="wed").check()
        await form.get_by_role("checkbox", name="mon").check()
        await form.get_by_role("button", name="Add steps").click()
        await form.get_by_label("name", exact=False).last.fill("first")
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        await run(page)
        await expect(result(page).locator(".chip").first).to_have_text("success")
        assert sent(made) == [
            {
                "when": "2026-03-01T09:30:00+08:00",
                "api_key": "canary-7",
                "target": {"type": "hook", "url": "https://example.com/x"},
                "picture": base64.b64encode("你好".encode()).decode(),
                "labels": {"size": 4},
                "days": ["mon", "wed"],
                "steps": [{"name": "first"}],
            }
        ]
        assert "canary-7" not in await page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
        await page.reload()
        await expect(form.locator("input[type=datetime-local]")).to_have_value("2026-03-01T09:30")
        await expect(form.locator("input[type=password]")).to_have_value("")
        assert visit.wrong() == []


@pytest.mark.requirement("tool-page:paths")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_the_path_picker_walks_through_named_folders_and_leaves_the_journal_alone(
    browser: Browser, workshop: Host, size: tuple[int, int]
) -> None:
    before = (await workshop.api("GET", "/v1/calls?tool=LS"))["data"]
    async with visiting(browser, workshop, size=size) as visit:
        await visit.go("/tools/Write")
        page, form = visit.page, visit.page.locator(".tools-input")
        field = form.get_by_role("textbox", name="path")
        await form.get_by_role("button", name="Choose path from the project").click()
        files = form.locator(".schema-files")
        await expect(files.locator("ul button")).to_have_text(["src", "README.md"])
        await files.get_by_role("button", name="src").click()
        await files.get_by_role("button", name="notes").click()
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        await files.get_by_role("button", name="计划.md").click()
        await expect(field).to_have_value("src/notes/计划.md")
        await expect(files).to_have_count(0)
        await form.get_by_role("button", name="Choose path from the project").click()
        way = files.get_by_role("navigation", name="Folders above")
        await expect(way.get_by_role("listitem")).to_have_text(["Project", "src", "notes"])
        await way.get_by_role("button", name="src").click()
        await files.get_by_role("button", name="Select this folder").click()
        await expect(field).to_have_value("src")
        await field.fill("src/app/new/file.txt")  # not there yet: the nearest folder
        await form.get_by_role("button", name="Choose path from the project").click()
        await expect(way.get_by_role("listitem")).to_have_text(["Project", "src", "app"])
        await field.press("Escape")
        await expect(files).to_have_count(0)
        assert visit.wrong() == []
    assert (await workshop.api("GET", "/v1/calls?tool=LS"))["data"] == before


@pytest.mark.requirement("tool-page:starters", "tool-page:copy")
async def test_examples_and_last_inputs_are_one_press_away_and_the_call_can_be_copied_as_python(
    browser: Browser, workshop: Host
) -> None:
    await workshop.call("Orders", command="create", item='it\'s "hot"', note="two\nlines", count=2)
    async with visiting(browser, workshop) as visit:
        await visit.go("/tools/Orders")
        page, form = visit.page, visit.page.locator(".tools-input")
        await form.get_by_role("group", name="Examples").get_by_role("button").click()
        await expect(form.get_by_role("radio", name="create")).to_be_checked()
        await expect(form.get_by_label("item")).to_have_value("tea")
        last = form.get_by_role("group", name="Last inputs").get_by_role("button")
        await last.filter(has_text="it's").click()
        await expect(form.get_by_label("count")).to_have_value("2")
        texts = {}
        for name in ("Command line", "Python"):
            await page.evaluate("navigator.clipboard.writeText('')")
            await page.locator("summary", has_text="Copy as").click()
            await page.get_by_role("button", name=name, exact=True).click()
            texts[name] = await (await page.wait_for_function("() => navigator.clipboard.readText()")).json_value()
        assert visit.wrong() == []
    expected = {"command": "create", "item": 'it\'s "hot"', "note": "two\nlines", "count": 2}
    command = f'toolyard() {{ "{sys.executable}" -m toolyard "$@"; }}\n{texts["Command line"]}'
    assert json.loads(await shell(command))["data"]["given"] == expected
    script = texts["Python"].replace("print(envelope.text)", "import json; print(json.dumps(envelope.data))")
    assert json.loads(await shell('"$PYTHON" -c "$SCRIPT"', PYTHON=sys.executable, SCRIPT=script))["given"] == expected


@pytest.mark.requirement("tool-page:starters")
async def test_the_example_of_a_file_tool_names_a_file_that_is_in_the_project(browser: Browser, fresh: Host) -> None:
    (fresh.project / ".env").write_text("KEY=1\n")
    async with visiting(browser, fresh) as visit:
        page, examples = visit.page, visit.page.get_by_role("group", name="Examples")
        await visit.go("/tools/LS")
        await expect(examples).to_be_visible()
        await visit.go("/tools/Read")
        await expect(page.get_by_role("textbox", name="path")).to_be_visible()
        await expect(examples).to_have_count(0)
        (fresh.project / "计划.md").write_text("# Plan\n")
        await visit.go("/tools/Read")
        await examples.get_by_role("button").click()
        await expect(page.get_by_role("textbox", name="path")).to_have_value("计划.md")
        await run(page)
        await expect(result(page)).to_contain_text("Plan")
        assert visit.wrong() == []


@pytest.mark.requirement("tool-page:result")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_result_is_shown_once_plays_its_media_and_can_go_to_a_new_chat(
    browser: Browser, workshop: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, workshop, size=size) as visit:
        await visit.go("/tools/Player")
        page, shown = visit.page, result(visit.page)
        await run(page)
        await check_media(shown)
        await expect(shown.get_by_text("Three things to see and hear.")).to_have_count(1)
        await expect(shown.locator("tbody tr")).to_have_text([re.compile("one"), re.compile("two")])
        await expect(shown.locator("pre")).to_have_count(0)
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        await page.reload()
        await page.get_by_role("region", name="Recent runs").locator("[data-row]").first.click()
        await check_media(shown)
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.url) if one.method == "POST" else None)
        await shown.get_by_role("button", name="Send to a new chat").click()
        await expect(page).to_have_url(re.compile("/chat$"))
        draft = page.locator("textarea").first
        await expect(draft).to_have_value(re.compile(r"Result of Player:\s+```\s+Three things to see and hear\."))
        assert [url for url in asked if "/v1/chat" in url] == []
        assert visit.wrong() == []


async def check_media(shown: Locator) -> None:
    """The picture is drawn, the sound plays, and the film has its player."""
    await expect(shown.locator("img")).to_have_js_property("naturalWidth", 40)
    await expect(shown.locator("audio")).to_have_js_property("duration", 2)
    await expect(shown.locator("video[controls]")).to_have_count(1)


@pytest.mark.requirement("tool-page:own-tool")
async def test_the_flow_to_write_and_try_an_own_tool_takes_no_more_steps_than_before(
    browser: Browser, tmp_path: Path
) -> None:
    async with hosting(tmp_path) as host, visiting(browser, host) as visit:
        page, steps = visit.page, Steps(visit.page, at_most=7)
        folder = host.home / "plugins"
        await shell(f'"{sys.executable}" -m toolyard plugin new Greeter --folder "{folder}" --home "{host.home}"')
        await steps.open(f"{host.url}/tools")
        card = page.locator(".tools-attention", has_text="Greeter")
        await steps.press(card.get_by_role("link", name="Review and allow"))
        await steps.press(page.get_by_role("main").get_by_role("button", name="Review and allow"))
        await steps.press(page.get_by_role("dialog").get_by_role("button", name="Allow", exact=True))
        await expect(page.locator(".tools-head")).to_contain_text("ready", timeout=START_S * 1000)
        await steps.press(page.get_by_role("tab", name="Try it"))
        await steps.press(page.get_by_role("group", name="Examples").get_by_role("button"))
        await steps.press(page.get_by_role("button", name="Run", exact=True))
        await expect(result(page)).to_contain_text("Hello, Ada")
        steps.check()
        assert visit.wrong() == []
