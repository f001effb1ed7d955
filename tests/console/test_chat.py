"""Talking: what is sent and what never is, tools and tasks at their place, and conversations that are kept."""

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Request, Route, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import write_plugin
from tests.console.talking import (
    KEY,
    Talking,
    assistant,
    called,
    choose_action,
    confirm_read,
    copied,
    ended,
    keep,
    reloaded,
    replies,
    say,
    talking,
    user,
)
from tests.console.test_shell import foreign_words
from tests.console.visit import DESKTOP, PHONE, Visit, visiting
from tests.gateway.upstream import Script, streamed
from toolyard.protocol.requests.scanner import format_request, parse_requests

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# Every state that a call's line shows, and where the line stands.
STATES = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const line = document.querySelector('.chat-call-line'), state = line?.querySelector('.chip').textContent;
    if (state && window.seen.at(-1)?.[0] !== state) window.seen.push([state, `${line.offsetTop} ${line.offsetHeight}`]);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
# The page waits a moment before it draws what has come of a reply: what it then does is kept until it is run here.
HELD = """
const real = window.setTimeout;
window.setTimeout = (run, after, ...given) =>
  window.held && after === 40 ? 1e9 + window.held.push(run) : real(run, after, ...given);
"""
TRICKY = "line one\n  「末」, and <<<[END_TOOL_REQUEST]>>>\n\ttab 「始ESCAPE」\n"


def message_box(visit: Visit) -> Locator:
    return visit.page.get_by_label("Message", exact=True)


@pytest.mark.requirement("console:chat:parts", "console:chat:stream")
async def test_a_call_waits_for_its_approval_and_ends_in_its_place_and_can_be_copied_as_a_block(
    browser: Browser, chat: Talking
) -> None:
    arguments = {"path": "notes/a b.md", "content": TRICKY}
    chat.answers("Write it.", f"I write.\n{format_request('Write', arguments)}", "It is **written**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        await visit.page.evaluate(STATES)
        reply = await say(visit, "Write it.")
        chip = reply.locator(".chat-call-line .chip")
        asks = reply.get_by_role("region", name="Write needs your approval")
        await expect(asks).to_contain_text("notes/a b.md")
        await expect(chip).to_have_text("waiting for approval")
        assert not (chat.host.project / "notes").exists()
        await asks.get_by_role("button", name="Allow once").click()
        await expect(chip).to_have_text("success")
        await expect(asks).to_have_count(0)
        await expect(reply).to_contain_text("It is written.")
        seen = await visit.page.evaluate("window.seen")
        lasting = [state for state, _ in seen if state != "running"]  # which may be over before it is drawn
        assert lasting == ["waiting for approval", "success"]
        assert len({place for _, place in seen}) == 1, "it moved"
        assert (chat.host.project / "notes" / "a b.md").read_text() == TRICKY
        await ended(reply)
        await expect(reply.locator(".chat-facts")).to_contain_text("1 tool round")
        await reply.get_by_role("button", name="Write · Show details").click()
        await expect(reply.locator(".chat-call-body")).to_contain_text("line one")
        block = await copied(visit, reply.get_by_role("button", name="Copy as request block"))
        (found,) = parse_requests(block)
        assert (found["tool"], found["args"]) == ("Write", arguments)
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:special-action", "console:chat:parts")
async def test_a_canvas_that_a_call_made_is_opened_once_and_can_be_opened_again(
    browser: Browser, chat: Talking
) -> None:
    arguments = {"command": "CreateCanvas", "fileName": "sketch.md", "content": "A first sketch\nand more\n"}
    chat.answers("Draw it.", format_request("FileOperator", arguments), "It is **drawn**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Draw it.")
        await reply.get_by_role("button", name="Allow once").click()
        panel = visit.page.get_by_role("dialog", name="sketch.md")
        await expect(panel.locator("pre")).to_have_text("A first sketch\nand more\n")
        assert await access_faults(visit.page) == []
        await panel.get_by_role("button", name="Close").click()
        await ended(reply)
        await reloaded(visit)
        button = visit.page.get_by_role("button", name="Open sketch.md")
        await expect(button).to_be_visible()
        await expect(panel).to_have_count(0)
        await button.click()
        await expect(panel).to_contain_text("A first sketch")
        await panel.get_by_role("button", name="Close").click()
        assert await layout_faults(visit.page) == []
        (call,) = (await chat.host.api("GET", "/v1/calls?tool=FileOperator"))["data"]
        await visit.go(f"/tools/FileOperator?call={call['id']}")
        await visit.page.get_by_role("button", name="Run", exact=True).click()
        panel = visit.page.get_by_role("dialog", name="sketch(1).md")
        await expect(panel).to_contain_text("A first sketch")
        await panel.get_by_role("button", name="Close").click()
        await expect(visit.page.get_by_role("button", name="Open sketch(1).md")).to_be_visible()
        await visit.go(f"/activity?call={call['id']}&part=output")
        await expect(visit.page.get_by_role("button", name="Open sketch.md")).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts")
async def test_a_denied_call_and_one_that_is_stopped_say_so_and_the_reply_goes_on(
    browser: Browser, chat: Talking
) -> None:
    chat.answers("Delete it.", format_request("Write", {"path": "x.txt", "content": "x"}), "I was **refused**.")
    chat.answers("Take long.", format_request("Slow", {"command": "Go"}), "It was **cut**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Delete it.")
        await reply.get_by_role("button", name="Deny", exact=True).click()
        await expect(reply).to_contain_text("I was refused.")
        await expect(reply.locator(".chat-call-line .chip")).to_have_text("denied")
        assert not (chat.host.project / "x.txt").exists()
        await ended(reply)
        reply = await say(visit, "Take long.")
        await expect(reply.locator(".chat-call-line .chip")).to_have_text("running")
        await reply.get_by_role("button", name="Stop").click()
        await expect(reply).to_contain_text("It was cut.")
        await expect(reply.locator(".chat-call-line .chip")).to_have_text("cancelled")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:chat:stream")
async def test_what_a_person_answered_stays_although_more_of_the_reply_came_before_it_was_confirmed(
    browser: Browser, chat: Talking
) -> None:
    goes_on, confirmed = asyncio.Event(), asyncio.Event()
    asked = format_request("Write", {"path": "y.txt", "content": "y"})
    chat.answers("Refuse it.", asked, Script(streamed("I was **refused**."), waits=goes_on))

    async def late(route: Route) -> None:
        answer = await route.fetch()
        await confirmed.wait()
        await route.fulfill(response=answer)

    async with visiting(browser, chat.host) as visit:
        await visit.context.add_init_script(HELD)
        await visit.page.route("**/v1/approvals/*/deny", late)
        await visit.page.route_web_socket(re.compile("/ws"), lambda _: None)  # nothing else hears of the answer
        await visit.go("/chat")
        reply = await say(visit, "Refuse it.")
        deny, chip = reply.get_by_role("button", name="Deny", exact=True), reply.locator(".chat-call-line .chip")
        await expect(deny).to_be_visible()
        await visit.page.evaluate("window.held = []")
        await deny.click()
        await visit.page.wait_for_function("() => window.held.length > 0")
        confirmed.set()
        await expect(chip).to_have_text("denied")
        await visit.page.evaluate("for (const run of window.held.splice(0)) run(); window.held = null")
        goes_on.set()
        await ended(reply)
        await expect(chip).to_have_text("denied")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:chat:stream")
async def test_a_call_that_was_denied_elsewhere_says_so_although_it_has_ended_before_this_is_known(
    browser: Browser, chat: Talking
) -> None:
    goes_on, known = asyncio.Event(), asyncio.Event()
    asked = format_request("Write", {"path": "z.txt", "content": "z"})
    chat.answers("Ask others.", asked, Script(streamed("They **refused**."), waits=goes_on))

    async def late(route: Route) -> None:
        await known.wait()
        await route.continue_()

    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Ask others.")
        await expect(reply.get_by_role("button", name="Allow once")).to_be_enabled()  # the page knows of it
        await visit.page.route(re.compile(r"/v1/approvals/approval_\w+$"), late)
        [waiting] = (await chat.host.api("GET", "/v1/approvals?state=pending"))["data"]
        await chat.host.api("POST", f"/v1/approvals/{waiting['id']}/deny", {})
        chip = reply.locator(".chat-call-line .chip")
        await expect(chip).not_to_have_text("waiting for approval")
        known.set()
        await expect(chip).to_have_text("denied")
        goes_on.set()
        await ended(reply)
        await expect(chip).to_have_text("denied")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:chat:stream")
async def test_a_task_becomes_its_result_where_it_stands_and_stays_so_after_a_reload(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.go("/chat")
        reply = await say(visit, "async animation")
        await reply.get_by_role("button", name="Allow once").click()
        result = reply.locator(".rendered").get_by_role("group", name=re.compile("^Timelapse task "))
        await expect(result).to_contain_text("done")
        await ended(reply)
        said = await result.inner_text()
        await expect(reply.locator(".rendered p", has_text="VCP_ASYNC_RESULT")).to_have_count(0)
        await expect(reply.locator(".chat-call-line .chip")).to_have_count(1)
        await reloaded(visit)
        await expect(result).to_have_text(said, use_inner_text=True)
        assert await layout_faults(visit.page) == []
        assert visit.wrong() == []


BACKGROUND = """
import json, os, sys, urllib.request
task = json.loads(sys.stdin.read())["task"]
receipt = f"{'Submitted. ' * 400} {{{{VCP_ASYNC_RESULT::Background::{task}}}}}"
print(json.dumps({"status": "success", "result": receipt}), flush=True)
url = f"{os.environ['CALLBACK_BASE_URL']}/Background/{task}"
body = json.dumps({"requestId": task, "status": "Succeed", "message": f"The result of {task}."}).encode()
urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
"""
# What models make of a receipt: the placeholder as a whole stands in the last one only.
SAYINGS = {
    "partly": "It runs: `partly`, see VCP_ASYNC_RESULT::Background::partly.",
    "in-code": "Wait for this:\n\n```\n{{VCP_ASYNC_RESULT::Background::in-code}}\n```",
    "inline": "Look for `{{VCP_ASYNC_RESULT::Background::inline}}` later.",
    "silent": "I have begun.",
    "in-thought": "<think>{{VCP_ASYNC_RESULT::Background::in-thought}}</think>It is on its way.",
    "in-json": json.dumps({"think": "{{VCP_ASYNC_RESULT::Background::in-json}}", "content": "Soon."}),
    "whole": "Here: {{VCP_ASYNC_RESULT::Background::whole}}",
}


@pytest.mark.requirement("console:chat:tasks")
async def test_the_result_of_a_task_is_shown_once_whatever_the_model_says_of_it(
    browser: Browser, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "given", "Background", BACKGROUND, pluginType="asynchronous", risk="read")
    async with talking(tmp_path, *plugin) as chat, visiting(browser, chat.host) as visit:
        await confirm_read(chat, "Background")
        await visit.go("/chat")
        for task, saying in SAYINGS.items():
            words = chat.answers(f"Do {task}.", format_request("Background", {"task": task}), saying)
            reply = await say(visit, words)
            await ended(reply)
            result = reply.get_by_role("group", name=f"Background task {task[:8]}")
            await expect(result).to_have_count(1)
            await expect(result).to_contain_text(f"The result of {task}.")
        drawn = visit.page.locator(".rendered").get_by_role("group", name="Background task ")
        await expect(drawn).to_have_count(1)  # where its placeholder stands
        await reloaded(visit)
        for task in SAYINGS:
            result = visit.page.get_by_role("group", name=f"Background task {task[:8]}")
            await expect(result).to_have_count(1)
            await expect(result).to_contain_text(f"The result of {task}.")
        assert await layout_faults(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:undo", "console:accessible", "console:layout")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_what_a_call_did_to_files_is_undone_at_its_card(
    browser: Browser, chat: Talking, size: tuple[int, int]
) -> None:
    folder, page_width = chat.host.project / f"undo-{size[0]}", size[0]
    folder.mkdir()
    (folder / "old.md").write_text("before\n")
    (folder / "gone.md").write_text("deleted by the call\n")
    requests = [
        ("Write", {"path": f"undo-{page_width}/new.md", "content": "new\n"}),
        ("Edit", {"path": f"undo-{page_width}/old.md", "old_string": "before", "new_string": "after"}),
        ("FileOperator", {"command": "DeleteFile", "filePath": f"undo-{page_width}/gone.md"}),
    ]
    rounds = [format_request(tool, arguments) for tool, arguments in requests]
    words = chat.answers(f"Undo at {page_width}.", *rounds, "That was **all**.")
    async with visiting(browser, chat.host, size=size) as visit:
        page = visit.page
        await visit.go("/chat")
        reply = await say(visit, words)
        for _ in rounds:
            await reply.get_by_role("button", name="Allow once").click()
        await ended(reply)
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"new.md": "new\n", "old.md": "after\n"}
        calls, dialog = reply.locator(".chat-call"), page.get_by_role("dialog", name="Undo these changes")
        said = (
            ("Delete the file that this call created?", "1 new file deleted."),
            ("Restore the files to their state before this call?", "1 file restored."),
            ("Restore the files to their state before this call?", "1 file restored."),
        )
        for at, (question, toast) in enumerate(said):
            await calls.nth(at).get_by_role("button", name=re.compile("Show details")).click()
            await calls.nth(at).get_by_role("button", name="Undo these changes").click()
            await expect(dialog).to_contain_text(question)
            assert await access_faults(page) == []
            await dialog.get_by_role("button", name="Undo these changes").click()
            await expect(page.get_by_text(toast).last).to_be_visible()
            await expect(calls.nth(at).locator(".act-undone")).to_contain_text("Undone")
            await expect(calls.nth(at).get_by_role("button", name="Undo these changes")).to_have_count(0)
        assert await layout_faults(page, phone=size == PHONE) == []
        left = {path.name: path.read_text() for path in folder.iterdir()}
        assert left == {"old.md": "before\n", "gone.md": "deleted by the call\n"}
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:sent")
async def test_a_drawer_shows_each_round_as_it_was_sent_without_secrets(browser: Browser, chat: Talking) -> None:
    words = f"List the files, my key is {KEY}."
    chat.answers(words.replace(KEY, "[masked]"), format_request("LS", {"path": "."}), "That is **all**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, words)
        await ended(reply)
        await reply.get_by_role("button", name="What was sent").click()
        drawer = visit.page.get_by_role("dialog", name="What was sent")
        await expect(drawer).to_contain_text("Round 2 of 2")
        await drawer.get_by_text("Round 1 of 2").click()
        offered = "15 tools offered natively, at most"
        for part in (offered, "SciCalculator", "List the files, my key is ", "VCP_TOOL_PAYLOAD"):
            await expect(drawer).to_contain_text(part)
        assert KEY not in await drawer.inner_html()
        assert await layout_faults(visit.page) == []
        await reloaded(visit)
        await expect(drawer).to_contain_text("Round 2 of 2")  # the open panel is in the address
        assert chat.provider.keys[-1] == f"Bearer {KEY}"
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:url-state")
async def test_an_address_may_fill_the_box_but_never_sends_and_a_draft_is_kept(browser: Browser, chat: Talking) -> None:
    async with visiting(browser, chat.host) as visit:
        before = len(chat.provider.bodies)
        await visit.go("/chat?prompt=delete%20everything%20%E5%90%A7&send=1")
        await expect(message_box(visit)).to_have_value("delete everything 吧")
        await visit.go("/chat")
        await message_box(visit).fill("half a thought\nand more")
        await visit.page.get_by_role("link", name="Status").click()
        await visit.page.wait_for_url("**/status")
        await visit.page.go_back()
        await expect(message_box(visit)).to_have_value("half a thought\nand more")
        await visit.page.reload()
        await expect(message_box(visit)).to_have_value("half a thought\nand more")
        assert len(chat.provider.bodies) == before
        await expect(replies(visit.page)).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts")
async def test_enter_that_ends_a_choice_of_the_input_method_does_not_send_and_shift_enter_is_a_new_line(
    browser: Browser, chat: Talking
) -> None:
    chat.answers("你好\nagain", "**好**")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        await message_box(visit).focus()
        method = await visit.context.new_cdp_session(visit.page)
        await method.send("Input.imeSetComposition", {"text": "nihao", "selectionStart": 5, "selectionEnd": 5})
        await message_box(visit).evaluate(
            "(box) => box.addEventListener('keydown', (event) => { window.composing = event.isComposing; })"
        )
        await visit.page.keyboard.press("Enter")
        assert await visit.page.evaluate("window.composing") is True
        await expect(replies(visit.page)).to_have_count(0)
        await message_box(visit).fill("")
        await method.send("Input.insertText", {"text": "你好"})
        await visit.page.keyboard.press("Shift+Enter")
        await visit.page.keyboard.type("again")
        await expect(message_box(visit)).to_have_value("你好\nagain")
        await visit.page.keyboard.press("Enter")
        await expect(replies(visit.page).last).to_contain_text("好")
        await expect(message_box(visit)).to_have_value("")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:chat:sent")
async def test_a_chat_sends_its_instructions_its_chosen_tools_and_attached_pictures(
    browser: Browser, chat: Talking
) -> None:
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        await visit.page.get_by_role("button", name="All tools").click()
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_label("Instructions").fill("Speak like a sailor.")
        await dialog.get_by_label("Selected tools").check()
        await dialog.get_by_label("EchoPlugin").check()
        await dialog.get_by_role("radio", name="Read-only").check()
        assert await layout_faults(visit.page) == []
        await dialog.get_by_role("button", name="Done").click()
        sent: list[Any] = []

        def keep(one: Request) -> None:
            if "completions" in one.url:
                sent.append(one.post_data_json)

        visit.page.on("request", keep)
        await expect(visit.page.get_by_role("button", name="Read-only, 1 tool")).to_be_visible()
        picture = FilePayload(name="dot.png", mimeType="image/png", buffer=base64.b64decode(DOT))
        await visit.page.get_by_label("Upload files").set_input_files([picture])
        await expect(visit.page.locator(".chat-thumb")).to_have_count(1)
        reply = await say(visit, "What is this?")
        await ended(reply)
        assert sent[0]["toolyard"] == {"tools": ["EchoPlugin"], "mode": "read-only"}
        system, asked = chat.provider.bodies[-1]["messages"]
        assert system["content"] == "Speak like a sailor."
        assert [tool["function"]["name"] for tool in chat.provider.bodies[-1]["tools"]] == ["EchoPlugin"]
        assert asked["content"][0] == {"type": "text", "text": "What is this?"}
        assert [part["image_url"]["url"] for part in asked["content"][1:]] == [f"data:image/png;base64,{DOT}"]
        await reloaded(visit)
        await expect(visit.page.get_by_role("article", name="You").get_by_role("img", name="Image")).to_be_visible()
        await expect(visit.page.get_by_role("button", name="1 tool")).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("approval:auto-safe", "console:chat:parts")
async def test_a_chat_may_do_what_can_be_undone_without_asking_if_its_key_may_approve(
    browser: Browser, chat: Talking
) -> None:
    call = format_request("Write", {"path": "unasked/a.md", "content": "safe"})
    chat.answers("Write it unasked.", f"I write.\n{call}", "It **stands** there.")
    made = await chat.host.api("POST", "/v1/keys", {"name": "talker", "scopes": ["chat"]})
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat?open=options")
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_role("radio", name="Auto-safe").check()
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        await dialog.get_by_role("button", name="Done").click()
        await expect(visit.page.get_by_role("button", name="Auto-safe, all tools")).to_be_visible()
        reply = await say(visit, "Write it unasked.")
        await ended(reply)
        await expect(reply).to_contain_text("It stands there.")
        await expect(reply.locator(".chat-call-line .chip")).to_have_text("success")
        assert (chat.host.project / "unasked" / "a.md").read_text() == "safe"
        await visit.go("/approvals?tab=history")
        await visit.page.locator("[data-row]", has_text="no approval needed").first.click()
        await expect(visit.page.get_by_role("dialog")).to_contain_text("It can be undone")
        assert visit.wrong() == []
    async with visiting(browser, chat.host, signed_in=False) as other:
        await other.context.request.post(f"{chat.host.url}/login", form={"key": made["key"]})
        other.allowed += ["403", "/ws"]
        await other.go("/chat?open=options")
        await expect(other.page.get_by_role("radio", name="Auto-safe")).to_be_disabled()
        await expect(other.page.get_by_role("dialog")).to_contain_text("Your key cannot answer approvals")


@pytest.mark.requirement("console:chat:parts", "console:lists")
async def test_conversations_are_begun_found_renamed_and_deleted(browser: Browser, fresh: Host) -> None:
    for title in ("About apples", "About pears", "梨"):
        await keep(fresh, [user(title), assistant({"kind": "text", "text": "Yes."})], title=title)
    async with visiting(browser, fresh) as visit:
        await visit.go("/chat")
        side = visit.page.get_by_role("complementary", name="Conversations")
        rows = side.locator("li")
        await expect(rows).to_have_count(3)
        await side.get_by_role("searchbox").fill("about")
        await expect(rows).to_have_count(2)
        await visit.page.wait_for_url("**/chat?q=about")
        await rows.filter(has_text="pears").get_by_role("link").click()
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("About pears")
        await choose_action(visit, "Rename", of=rows.filter(has_text="pears"))
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_label("Name").fill("About plums")
        await dialog.get_by_role("button", name="Save").click()
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("About plums")
        await expect(dialog).to_have_count(0)  # it is kept
        await visit.page.reload()
        await expect(rows.filter(has_text="About plums")).to_have_count(1)
        await choose_action(visit, "Delete", of=rows.filter(has_text="About plums"))
        await dialog.get_by_role("button", name="Delete").click()
        await expect(rows).to_have_count(1)
        await visit.page.wait_for_url(re.compile("/chat($|[?])"))
        await side.get_by_role("searchbox").fill("nothing has this")
        await expect(side).to_contain_text("No matching conversations.")
        await side.get_by_role("searchbox").fill("")
        await expect(rows).to_have_count(2)
        await side.get_by_role("link", name="New chat").click()
        await expect(visit.page.get_by_text("What would you like to do?")).to_be_visible()
        await expect(visit.page.get_by_role("link", name=re.compile("first steps|Set up", re.I))).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "console:layout")
async def test_on_a_phone_the_conversations_are_in_a_drawer(browser: Browser, chat: Talking) -> None:
    await keep(chat.host, [user("hello"), assistant({"kind": "text", "text": "**Hello** you."})], title="A greeting")
    async with visiting(browser, chat.host, size=PHONE) as visit:
        await visit.go("/chat")
        await expect(visit.page.get_by_role("complementary", name="Conversations")).to_be_hidden()
        await visit.page.get_by_role("button", name="Conversations").click()
        drawer = visit.page.get_by_role("dialog", name="Conversations")
        assert await layout_faults(visit.page, phone=True) == []
        await drawer.get_by_role("link", name="A greeting").click()
        await expect(drawer).to_have_count(0)
        await expect(replies(visit.page).last).to_contain_text("Hello you.")
        await visit.page.get_by_role("button", name="New chat").click()
        await expect(visit.page.get_by_text("What would you like to do?")).to_be_visible()
        assert visit.wrong() == []


def everything() -> list[dict[str, object]]:
    """A conversation with one of each part, in words that no dictionary has."""
    thinking = {"kind": "thinking", "text": "思考 a while", "started": 1, "ms": 4200}
    calls = [
        called("Write", "path: 说明.md, content: long " * 9),
        called("Slow", "it failed", state="error", id="call_none"),
    ]
    fault = {"code": "upstream_cut_off", "message": "The stream ended.", "request": "req_0123456789abcdef"}
    text = {"kind": "text", "text": "Hello **你好**.\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"}
    return [
        user("Please 请 do it " + "and more " * 20),
        assistant(thinking, *calls, text, usage={"total_tokens": 1234}, rounds=2),
        user("again"),
        assistant({"kind": "text", "text": "{wrong"}, state="done"),
        user("again"),
        assistant({"kind": "text", "text": "Half"}, state="failed", fault=fault),
    ]


@pytest.mark.requirement("console:languages", "console:layout", "console:accessible")
@pytest.mark.parametrize(
    ("size", "theme", "lang"),
    [(DESKTOP, "dark", "en"), (PHONE, "light", "zh"), (PHONE, "dark", "pseudo")],
    ids=["desktop-dark-en", "phone-light-zh", "phone-dark-pseudo"],
)
async def test_a_conversation_with_everything_fits_and_is_wholly_in_one_language(
    browser: Browser, chat: Talking, size: tuple[int, int], theme: str, lang: str
) -> None:
    path = await keep(chat.host, everything(), title="A title 标题 that is much longer than its place has room for")
    async with visiting(browser, chat.host, size=size, theme=theme, lang=lang) as visit:
        await visit.go(path)
        await expect(visit.page.locator(".chat-json")).to_be_visible()
        await expect(visit.page.locator(".chat-plain")).to_have_count(0)
        for at in ("0", "view.scrollHeight"):
            await visit.page.locator(".chat-scroll").evaluate(f"(view) => {{ view.scrollTop = {at}; }}")
            await expect(visit.page.locator(".chat-plain")).to_have_count(0)
            assert await layout_faults(visit.page, phone=size == PHONE) == []
        assert await access_faults(visit.page) == []
        assert await foreign_words(visit.page, lang) == []
        if size == PHONE:
            await visit.page.set_viewport_size({"width": 320, "height": 640})
            for at in (path, "/chat"):
                await visit.go(at)
                assert await layout_faults(visit.page, phone=True) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:faults")
async def test_an_empty_reply_says_so_and_can_be_asked_for_again(browser: Browser, chat: Talking) -> None:
    chat.answers("Say nothing.", "", "Now I **speak**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Say nothing.")
        await ended(reply)
        await expect(reply.get_by_role("note")).to_contain_text("The model sent an empty reply.")
        await expect(reply.get_by_role("button", name="Regenerate")).to_have_count(0)  # one way to ask again is enough
        await reply.get_by_role("button", name="Retry").click()
        await expect(visit.page.get_by_text("Now I speak.")).to_be_visible()
        await expect(visit.page.get_by_text("The model sent an empty reply.")).to_have_count(0)
        assert visit.wrong() == []
