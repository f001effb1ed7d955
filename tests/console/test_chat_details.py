"""Small things around a conversation: its assistant, tools, pictures and errors, and what a search has found."""

import json

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults
from tests.console.talking import Talking, assistant, keep, replies, say, user
from tests.console.visit import visiting
from tests.gateway.upstream import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOT = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.requirement("console:compose:assistants", "console:compose:options")
async def test_the_first_assistant_is_made_at_once_and_its_chat_names_it_and_opens_at_its_tools(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/chat")
        await page.get_by_role("button", name="New assistant").click()
        await expect(dialog.get_by_label("Name")).to_be_focused()
        await page.keyboard.type("Gardener")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name="Start a chat with Gardener").click()
        await expect(page.get_by_role("img", name="Started with the assistant Gardener")).to_be_visible()
        await page.get_by_role("button", name="All tools").click()
        await expect(dialog.get_by_label("All tools")).to_be_focused()
        await expect(dialog.get_by_text("This chat can only use these tools.")).to_have_count(0)
        await dialog.get_by_label("Selected tools").check()
        await expect(dialog.get_by_text("This chat can only use these tools.")).to_be_visible()
        await page.keyboard.press("Escape")  # nothing was selected
        await expect(page.get_by_role("button", name="All tools")).to_be_visible()
        assert await access_faults(page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:find", "console:chat:parts", "console:print")
async def test_a_hit_is_marked_in_its_message_pictures_are_enlarged_and_days_stand_above_conversations(
    browser: Browser, chat: Talking
) -> None:
    said = assistant(
        {"kind": "text", "text": "The **zinnia** blooms. See https://zinnia.test/a or [this](https://b.test/)."}
    )
    path = await keep(chat.host, [user("Which flower?") | {"images": [DOT]}, said], title="Flowers")
    async with visiting(browser, chat.host) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.go(f"{path}?q=zinnia&at={said['id']}")
        await expect(replies(page).locator("a[data-address]")).to_have_text("https://zinnia.test/a")
        marked = "[...(CSS.highlights.get('chat-hit') ?? [])].map(String)"
        await page.wait_for_function(f"{marked}.length === 2")
        assert await page.evaluate(marked) == ["zinnia", "zinnia"]
        await page.get_by_role("button", name="Enlarge image").click()
        await expect(dialog.get_by_role("img", name="Image")).to_be_visible()
        await page.keyboard.press("Escape")
        await visit.go(path)
        await expect(page.get_by_role("heading", name="Today")).to_be_visible()
        assert await access_faults(page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:faults")
async def test_a_refusal_says_the_status_or_what_to_do_and_has_one_way_to_retry(
    browser: Browser, chat: Talking
) -> None:
    def refusal(status: int, error: dict[str, str]) -> Script:
        return Script([json.dumps({"error": error}).encode()], status=status, kind="application/json")

    chat.answers("Break.", refusal(418, {"message": "I am a teapot."}))
    full = {"message": "Please reduce the length.", "code": "context_length_exceeded"}
    chat.answers("Too much.", refusal(400, full))
    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["418", "400"]
        await visit.go("/chat")
        for words, told in (("Break.", "HTTP 418"), ("Too much.", "Start a new chat, choose fewer tools")):
            reply = await say(visit, words)
            await expect(reply.get_by_role("alert")).to_contain_text(told)
            await expect(reply.get_by_role("button", name="Retry")).to_have_count(1)
        assert visit.wrong() == []
