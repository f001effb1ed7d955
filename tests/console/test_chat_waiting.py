"""A reply that waits says for what and for how long."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import untranslated
from tests.console.talking import Talking, ended, say, talking
from tests.console.visit import PHONE, Visit, visiting
from tests.gateway.upstream import Script, streamed
from tests.waiting import wait_until
from toolyard.protocol.requests.scanner import format_request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:chat:waiting")]


def busy(seconds: int) -> Script:
    return Script([b"{}"], status=429, kind="application/json", headers={"Retry-After": str(seconds)})


async def expect_wait(reply: Locator | Visit, reason: str, time: str) -> None:
    place = reply.page if isinstance(reply, Visit) else reply
    line = place.locator(".chat-writing")
    await expect(line.get_by_role("status")).to_have_text(reason)
    await expect(line.get_by_role("timer")).to_have_text(re.compile(time))


async def stop(visit: Visit, reply: Locator) -> None:
    await visit.page.get_by_role("button", name="Stop").last.click()
    await ended(reply)
    await expect(reply.locator(".chat-writing")).to_have_count(0)


async def test_the_provider_is_waited_for_with_the_reason_and_the_time_of_the_next_try(
    browser: Browser, chat: Talking
) -> None:
    begins = asyncio.Event()
    chat.answers("Busy.", busy(20))
    chat.answers("Busy for a moment.", busy(1), "I was **busy**.")
    chat.answers("Late.", Script(streamed("I was **late**."), begins=begins))
    chat.answers("Silent.", Script(streamed("I begin")[:-2], then="hang"))
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Busy.")
        await expect_wait(reply, "The provider answered 429", r"^next try in 1?\d s$")
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        await visit.page.reload()  # it is still known why
        await expect_wait(reply, "The provider answered 429", r"^next try in 1?\d s$")
        await stop(visit, reply)
        reply = await say(visit, "Busy for a moment.")
        await expect(reply).to_contain_text("I was busy.")
        await ended(reply)
        reply = await say(visit, "Late.")
        await expect_wait(reply, "Waiting for scripted", r"^no first byte yet, [1-9]\d* s$")
        begins.set()
        await expect(reply).to_contain_text("I was late.")
        await ended(reply)
        reply = await say(visit, "Silent.")
        await expect_wait(reply, "Nothing new from the provider", r"^for \d+ s$")
        await stop(visit, reply)
        assert visit.wrong() == []


async def test_a_person_and_a_tool_are_waited_for_with_the_time_left_and_the_time_elapsed(
    browser: Browser, chat: Talking
) -> None:
    asks = format_request("Write", {"path": "waits/a.md", "content": "a"})
    chat.answers("Both.", asks, format_request("Slow", {"command": "Go"}), "Done.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Both.")
        await expect_wait(reply, "Waiting for your approval", r"^[1-5] min( \d+ s)? left$")
        await reply.get_by_role("button", name="Allow once").click()
        await expect_wait(reply, "Waiting for Slow", r"^[1-9]\d* s$")
        await stop(visit, reply)
        assert visit.wrong() == []


@pytest.mark.requirement("console:layout", "console:languages")
async def test_the_reason_fits_a_phone_in_any_language(browser: Browser, chat: Talking) -> None:
    chat.answers("Busy on a phone.", busy(20))
    async with visiting(browser, chat.host, size=PHONE, lang="pseudo") as visit:
        await visit.go("/chat")
        await visit.page.locator(".chat-compose textarea").fill("Busy on a phone.")
        await visit.page.locator(".chat-send").click()
        await expect(visit.page.locator(".chat-writing")).to_contain_text("429")
        assert await layout_faults(visit.page, phone=True) == []
        assert await untranslated(visit.page) == []
        await visit.page.locator(".chat-send.stop").click()
        await expect(visit.page.locator(".chat-writing")).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("approval:survives")
async def test_a_question_stands_in_its_chat_again_after_the_server_was_killed(
    browser: Browser, tmp_path: Path
) -> None:
    block = format_request("Write", {"path": "kept.txt", "content": "kept"})
    async with talking(tmp_path) as own, visiting(browser, own.host) as visit:
        visit.allowed += ["Failed to load", "net::", "404", "502", "WebSocket"]
        own.answers("Write it.", f"I write it.\n{block}\n", "It is written.")
        await visit.go("/chat")
        await say(visit, "Write it.")
        card = visit.page.locator(".chat-approval")
        await expect(card).to_be_visible()
        await own.host.stop()
        await own.host.start()
        await visit.page.reload()
        await expect(card).to_be_visible(timeout=60_000)
        await card.get_by_role("button", name="Allow once").click()
        written = own.host.project / "kept.txt"
        await wait_until(written.exists)
        await expect(card).to_have_count(0)
        assert written.read_text() == "kept"
