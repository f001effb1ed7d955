"""Branches of a conversation, its copies and files, pins, and the search that leads to a message."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from tests.console.looks import access_faults, layout_faults
from tests.console.talking import (
    Talking,
    assistant,
    becomes,
    called,
    choose_action,
    copied,
    ended,
    keep,
    replies,
    say,
    user,
)
from tests.console.test_shell import foreign_words
from tests.console.visit import DESKTOP, PHONE, Visit, visiting
from tests.gateway.upstream import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")
HIT_AT_TOP = """() => {
  const view = document.querySelector('.chat-scroll')?.getBoundingClientRect();
  const hit = document.activeElement?.closest('article')?.getBoundingClientRect();
  return view && hit && hit.top >= view.top && hit.top < view.top + 60;
}"""


def questions(page: Page) -> Locator:
    return page.get_by_role("article", name="You")


def list_sent(chat: Talking) -> list[str]:
    """Return what the model was sent last, without instructions."""
    return [one["content"] for one in chat.provider.bodies[-1]["messages"] if one["role"] != "system"]


async def stored(visit: Visit) -> dict[str, Any]:
    place = visit.page.url.partition("?")[0].rsplit("/", 1)[1]
    return dict(await visit.host.api("GET", f"/v1/conversations/{place}"))


@pytest.mark.requirement("console:chat:branches")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_a_message_is_edited_and_a_reply_generated_again_and_every_branch_can_be_walked(
    browser: Browser, chat: Talking, size: tuple[int, int]
) -> None:
    name = f"Fruit {size[0]}"
    first, edited = chat.answers(f"{name}?", "Apples.", "Pears."), f"{name} in winter?"
    chat.answers("And then?", "A **cake**.")
    chat.answers(edited, "Oranges.")
    async with visiting(browser, chat.host, size=size) as visit:
        page = visit.page
        visit.allowed += ["409"]  # both windows store the end of the reply
        await visit.go("/chat")
        await ended(await say(visit, first))
        await ended(await say(visit, "And then?"))
        await replies(page).first.get_by_role("button", name="Regenerate").click()
        await expect(replies(page)).to_have_count(1)
        await expect(replies(page).first).to_contain_text("Pears.")
        await ended(replies(page).first)
        await expect(replies(page).first.locator(".chat-branches")).to_contain_text("2/2")
        await questions(page).first.get_by_role("button", name="Edit").click()
        box = page.get_by_role("textbox", name="Edit message")
        await expect(box).to_be_focused()
        await box.fill(edited)
        send = page.locator(".chat-edit").get_by_role("button", name="Send")
        await (send.click() if size == PHONE else box.press("Enter"))
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()  # one goes on writing
        await expect(replies(page).first).to_contain_text("Oranges.")
        await ended(replies(page).first)
        assert list_sent(chat) == [edited]
        assert await layout_faults(page) == []
        assert await access_faults(page) == []
        # By keyboard, and the focus stays where one walks.
        previous = questions(page).first.get_by_role("button", name="Previous version")
        await previous.focus()
        await page.keyboard.press("Enter")
        await expect(questions(page).first).to_contain_text(first)
        await expect(questions(page).first.get_by_role("button", name="Next version")).to_be_focused()
        await expect(replies(page).first).to_contain_text("Pears.")
        await replies(page).first.get_by_role("button", name="Previous version").click()
        await expect(replies(page)).to_have_count(2)
        await expect(replies(page).last).to_contain_text("A cake.")
        # Another window and a reload show the same branch.
        assert await becomes(lambda: stored(visit), lambda one: one["leaf"] == one["messages"][3]["id"])
        second = await visit.context.new_page()
        visit.watch(second)
        await second.goto(page.url)
        await expect(replies(second).last).to_contain_text("A cake.")
        await page.reload()
        await expect(replies(page).last).to_contain_text("A cake.")
        await replies(second).first.get_by_role("button", name="Next version").click()
        await expect(replies(page).first).to_contain_text("Pears.")
        # It goes on from the branch in view.
        chat.answers("More?", "No.")
        await ended(await say(visit, "More?"))
        assert list_sent(chat) == [first, "Pears.", "More?"]
        await expect(replies(second).last).to_contain_text("No.")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:branches")
async def test_an_edit_can_be_given_up_and_a_failed_reply_that_brought_nothing_leaves_no_branch(
    browser: Browser, chat: Talking
) -> None:
    refusal = Script([b'{"error": {"message": "Not now."}}'], status=400, kind="application/json")
    chat.answers("Try this.", refusal, "It **worked**.")
    async with visiting(browser, chat.host, lang="zh") as visit:
        page = visit.page
        visit.allowed += ["400"]
        await visit.go("/chat")
        await page.get_by_label("消息", exact=True).fill("Try this.")
        await page.get_by_label("消息", exact=True).press("Enter")
        await page.get_by_role("alert").get_by_role("button", name="重试").click()
        reply = page.get_by_role("article", name="助手")
        await expect(reply).to_contain_text("It worked.")
        await ended(reply)
        await expect(page.locator(".chat-branches")).to_have_count(0)
        mine = page.get_by_role("article", name="你", exact=True)
        await mine.hover()
        await mine.get_by_role("button", name="编辑").click()
        await page.get_by_role("textbox", name="编辑消息").press("Escape")
        await expect(mine.get_by_role("button", name="编辑")).to_be_focused()
        await expect(mine).to_contain_text("Try this.")
        assert await foreign_words(page, "zh") == []
        assert visit.wrong() == []


def tree(word: str) -> list[dict[str, Any]]:
    """A question with two replies, of which the first goes on."""
    notes = {"name": "notes.md", "kind": "text", "size": 7, "text": "## You\n", "truncated": False, "pages": None}
    question = user(f"Where is {word}?") | {"attachments": [notes]}
    call = called("Read", "line `one`\n```\nfenced\n```", summary="path: a.txt")
    replies_ = [
        assistant(call, {"kind": "text", "text": f"{word} is **here**."}, parent=question["id"]),
        assistant({"kind": "text", "text": f"No {word} on this branch, 却有中文{word}。"}, parent=question["id"]),
    ]
    more = user("Thanks") | {"parent": replies_[0]["id"]}
    return [question | {"parent": ""}, replies_[0], more, replies_[1]]


@pytest.mark.requirement("console:chat:copies")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_a_conversation_is_copied_exported_and_imported_with_all_branches(
    browser: Browser, chat: Talking, size: tuple[int, int]
) -> None:
    messages = tree("Wally")
    path = await keep(chat.host, messages, title=f"Where/is {size[0]}?")
    async with visiting(browser, chat.host, size=size) as visit:
        page = visit.page
        await visit.go(path)
        await replies(page).first.get_by_role("button", name="Previous version").click()
        await expect(questions(page)).to_have_count(2)
        await replies(page).first.get_by_role("button", name="More actions for this reply").click()
        reply = await copied(visit, page.get_by_role("menuitem", name="Copy with tool calls"))
        assert reply.startswith("> **Tool call: Read** (success, 1.0 s)\n>\n> `path: a.txt`\n>\n> ````\n> line `one`\n")
        assert reply.endswith("\n\nWally is **here**.")
        assert await becomes(lambda: stored(visit), lambda one: one["leaf"] == messages[2]["id"])
        await page.get_by_role("button", name="Conversation actions").click()
        whole = await copied(visit, page.get_by_role("menuitem", name="Copy as Markdown"))
        assert whole.startswith(
            f"# Where/is {size[0]}?\n\n## You\n\n> **Attached file: notes.md** (7 B)\n>\n> ```\n> ## You\n>\n> ```\n\n"
            "Where is Wally?\n\n## Assistant (scripted)\n\n> **Tool"
        )
        assert whole.endswith("## You\n\nThanks\n")
        async with page.expect_download() as markdown:
            await choose_action(visit, "Export as Markdown")
        assert (await markdown.value).suggested_filename == f"Where is {size[0]}.md"
        written = (await (await markdown.value).path()).read_text()
        assert re.sub(r"<!-- toolyard:.* -->\n", "", written) == whole
        async with page.expect_download() as exported:
            await choose_action(visit, "Export as JSON")
        file = await (await exported.value).path()
        if size == PHONE:
            await page.get_by_role("button", name="Conversations").click()
        await page.locator("input[data-import]").last.set_input_files(
            FilePayload(name="again.json", mimeType="application/json", buffer=file.read_bytes())
        )
        await expect(page).not_to_have_url(f"{chat.host.url}{path}")
        await visit.settle()
        await expect(questions(page)).to_have_count(2)
        again = await stored(visit)
        assert (again["title"], again["leaf"]) == (f"Where/is {size[0]}?", messages[2]["id"])
        assert [(one["id"], one["parent"]) for one in again["messages"]] == [
            (one["id"], one["parent"]) for one in messages
        ]
        assert again["messages"][0]["attachments"] == messages[0]["attachments"]
        await replies(page).first.get_by_role("button", name="Next version").click()
        await expect(replies(page).first).to_contain_text("却有中文Wally。")
        address = page.url
        if size == PHONE:
            await page.get_by_role("button", name="Conversations").click()
        await page.locator("input[data-import]").last.set_input_files(
            FilePayload(name="again.md", mimeType="text/markdown", buffer=written.encode())
        )
        await expect(page).not_to_have_url(address)
        await visit.settle()
        await expect(questions(page)).to_have_count(2)
        await expect(replies(page).first).to_contain_text("Read")
        again = await stored(visit)
        assert again["title"] == f"Where/is {size[0]}?"
        assert [one["text"] for one in again["messages"]] == [messages[0]["text"], "", "Thanks"]
        assert again["messages"][0]["attachments"] == messages[0]["attachments"]
        assert again["messages"][1]["pieces"] == messages[1]["pieces"]
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:copies")
async def test_messages_of_openai_are_imported_and_a_file_that_is_none_is_explained(
    browser: Browser, chat: Talking
) -> None:
    openai = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b>you</b>"}]
    openai.append({"role": "assistant", "content": "**Hello**."})
    files = {
        "notes.md": "# Notes",
        "broken.md": "<!-- toolyard:conversation -->\n# Broken\n\n<!-- toolyard:robot -->\n",
        "empty.json": "{}",
        "odd.json": json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "robot"}]}),
        "later.json": json.dumps({"format": "toolyard-conversation", "version": 9}),
    }
    async with visiting(browser, chat.host) as visit:
        page = visit.page
        await visit.go("/chat")

        async def choose(**texts: str) -> None:
            await page.locator("input[data-import]").set_input_files(
                [FilePayload(name=name, mimeType="", buffer=text.encode()) for name, text in texts.items()]
            )

        await choose(**files)
        dialog = page.get_by_role("dialog")
        faults = (
            "not an exported conversation",
            "Line 4 cannot",
            "has no messages",
            "Message 2 cannot",
            "newer version",
        )
        for told in faults:
            await expect(dialog).to_contain_text(told)
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await choose(**{"chat.json": json.dumps({"messages": openai})})
        await expect(replies(page)).to_contain_text("Hello.")
        await expect(questions(page)).to_contain_text("Hi <b>you</b>")
        assert (await stored(visit))["settings"]["instructions"] == "Be brief."
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:find")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_a_search_shows_the_words_around_a_hit_and_opens_its_message_on_another_branch(
    browser: Browser, chat: Talking, size: tuple[int, int]
) -> None:
    word = f"quokka{size[0]}"
    filler = [one for n in range(30) for one in (user(f"Step {n}"), assistant({"kind": "text", "text": "So. " * 300}))]
    for before, after in zip([{"id": ""}, *filler], filler, strict=False):
        after["parent"] = before["id"]
    hidden = assistant({"kind": "text", "text": f"Look, a {word} 在树上."}, parent=filler[20]["id"])
    more = assistant({"kind": "text", "text": "So. " * 900}, parent=hidden["id"])
    path = await keep(
        chat.host, [*filler, hidden, more, user("The end") | {"parent": filler[-1]["id"]}], title="Animals"
    )
    async with visiting(browser, chat.host, size=size) as visit:
        page = visit.page
        await visit.go("/chat")
        if size == PHONE:
            await page.get_by_role("button", name="Conversations").click()
        await page.get_by_role("searchbox", name="Search conversations").last.fill(word.upper()[:8])
        row = page.locator(".chat-list li:visible").filter(has_text=word)
        await expect(row.locator("mark")).to_have_text(word[:8])
        await expect(row.locator(".chat-snippet")).to_have_text(f"Look, a {word} 在树上.")
        assert await layout_faults(page) == []
        await row.get_by_role("link").click()
        hit = replies(page).filter(has_text=word)
        await expect(hit).to_be_visible()
        await page.wait_for_function(HIT_AT_TOP)
        await expect(hit.locator(".chat-branches")).to_contain_text("2/2")
        assert path in page.url
        await page.reload()
        await page.wait_for_function(HIT_AT_TOP)
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:find")
async def test_a_pinned_conversation_stays_first_and_can_be_renamed_beside_an_open_one(
    browser: Browser, chat: Talking
) -> None:
    old = await keep(chat.host, [user("old")], title="Pin me")
    await keep(chat.host, [user("new")], title="Newer one")
    async with visiting(browser, chat.host) as visit:
        page = visit.page
        await visit.go(old)
        rows = page.locator(".chat-list li")
        await choose_action(visit, "Pin")
        await expect(rows.first).to_contain_text("Pin me")
        await expect(rows.first.get_by_role("img", name="Pinned")).to_be_visible()
        await page.reload()
        await expect(rows.first).to_contain_text("Pin me")
        await choose_action(visit, "Rename", of=rows.first)
        await page.get_by_role("textbox", name="Name").fill("Pinned and renamed")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Pinned and renamed")
        await expect(rows.first).to_contain_text("Pinned and renamed")
        await choose_action(visit, "Unpin", of=rows.first)
        await expect(rows.first).not_to_contain_text("Pinned and renamed")
        assert visit.wrong() == []
