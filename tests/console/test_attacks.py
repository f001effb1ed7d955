"""Hostile texts in every place of a conversation: they are shown, and do nothing."""

import base64
import json
import os
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from tests.console.talking import Talking, assistant, called, drawn, ended, keep, look, replies, say, slowly, user
from tests.console.visit import visiting
from tests.gateway.upstream import Script, streamed
from tests.render.attacks import ATTACKS, Attack, Where
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
CARRIED = [attack for attack in ATTACKS if "\ud800" not in attack.text]  # the server refuses half a sign
SAMPLE = CARRIED if SOAK else CARRIED[::5]
AT_ONCE = 15
BATCHES = [SAMPLE[at : at + AT_ONCE] for at in range(0, len(SAMPLE), AT_ONCE)]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ADDRESS = "https://pictures.example/secret.png?q=1"


def structured(attack: Attack) -> str:
    """A reply that has the text where it is meant to be."""
    text, where = attack.text, attack.where
    one: dict[str, Any] = {"type": "code", "content": "x"}
    id_, content = "x", "{{code:x}}"
    match where:
        case Where.TEXT | Where.ERROR:
            content = text
        case Where.LANGUAGE:
            one["language"] = text
        case Where.TITLE:
            one["title"] = text
        case Where.ID:
            id_, content = text, f"{{{{code:{text}}}}}"
        case _:
            one, content = {"type": where, "content": text, "title": text}, f"{{{{{where}:x}}}}"
    return json.dumps({"think": text, "content": content, "attachments": {id_: one}})


def pieces(attack: Attack) -> list[dict[str, Any]]:
    text = attack.text
    return [
        {"kind": "thinking", "text": text, "started": 1, "ms": 1},
        called(text, text, command=text),
        {"kind": "text", "text": f"<think>{text}</think>\n\n{text}"},
        {"kind": "text", "text": structured(attack)},
        *([{"kind": "text", "text": text}] if attack.where is Where.ERROR else []),
    ]


@pytest.mark.requirement("console:inert")
async def test_the_sample_has_some_of_every_row_and_every_place() -> None:
    assert {attack.row for attack in SAMPLE} == {attack.row for attack in ATTACKS}
    assert {Where.MERMAID, Where.LATEX, Where.IMAGE, Where.TEXT, Where.CODE} <= {attack.where for attack in SAMPLE}


@pytest.mark.requirement("console:inert", "s:S-63", "s:S-64", "s:S-66", "s:S-69")
@pytest.mark.parametrize("number", range(len(BATCHES)))
async def test_hostile_texts_in_thinking_calls_markdown_and_structured_replies_do_nothing(
    browser: Browser, chat: Talking, number: int
) -> None:
    batch = BATCHES[number]
    last = assistant(*(piece for attack in batch for piece in pieces(attack)))
    asked = [user(attack.text) for attack in batch]
    path = await keep(chat.host, [*asked, last], title=batch[0].text[:200])
    async with visiting(browser, chat.host) as visit:
        await visit.go(path)
        reply = replies(visit.page).last
        await drawn(reply)
        await reply.evaluate(
            "(reply) => reply.querySelectorAll('.chat-call-open, summary').forEach((one) => one.click())"
        )
        await expect(reply.locator(".chat-call-body").first).to_be_visible()
        texts = sum(piece["kind"] == "text" for piece in last["pieces"])
        await expect(reply.locator(".rendered, .chat-json")).to_have_count(texts)
        assert await look(visit.page.get_by_role("log"), "message_inert.js") == []
        assert visit.page.url == chat.host.url + path
        assert visit.wrong() == []


@pytest.mark.requirement("console:inert", "s:S-69")
async def test_what_a_tool_really_says_and_what_a_model_writes_bit_by_bit_does_nothing(
    browser: Browser, chat: Talking
) -> None:
    hostile = "\n\n".join(attack.text for attack in ATTACKS[:60:6])
    chat.answers(
        "Attack.",
        Script(streamed(format_request("EchoPlugin", {"text": hostile}), size=50)),
        slowly(hostile, size=5, pause_s=0.004),
    )
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Attack.")
        await ended(reply)
        await reply.get_by_role("button", name="EchoPlugin · Show details").click()
        await expect(reply.locator(".chat-call-body")).to_contain_text("<script>alert(1)</script>")
        assert await look(visit.page.get_by_role("log"), "message_inert.js") == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:inert")
@pytest.mark.parametrize("form", ["markdown", "structured"])
async def test_a_picture_elsewhere_is_asked_for_once_and_only_after_the_press(
    browser: Browser, chat: Talking, form: str
) -> None:
    attachment = {"p": {"type": "image", "content": ADDRESS}}
    whole = json.dumps({"content": "Look: {{image:p}}", "attachments": attachment})
    asked: list[dict[str, str]] = []
    fetched: list[Any] = []

    async def answer(route: Route) -> None:
        asked.append(await route.request.all_headers())
        await route.fulfill(body="a picture", content_type="text/plain")

    async def fetch(route: Route) -> None:
        """What our own server says of a host that is not there, and then of one that is."""
        fetched.append(route.request.post_data_json)
        if len(fetched) == 1:
            await route.fulfill(status=502, json={"error": {"message": "it is <b>away</b>", "code": "bad_gateway"}})
        else:
            await route.fulfill(body=base64.b64decode(DOT), content_type="image/png")

    async with visiting(browser, chat.host) as visit:
        visit.allowed.append("502")
        await visit.context.route("https://pictures.example/**", answer)
        await visit.context.route("**/v1/reply/media", fetch)
        await visit.go(await chat.keep(whole if form == "structured" else f"Look: ![p]({ADDRESS})"))
        card = replies(visit.page).last.locator(".card.remote")
        await expect(card).to_contain_text(ADDRESS)
        load = card.get_by_role("button", name="Load once")
        await expect(load).to_be_visible()
        assert (asked, fetched) == ([], [])
        assert visit.wrong() == []
        await load.click()
        await expect(card.get_by_role("alert")).to_contain_text("it is <b>away</b>")
        async with visit.context.expect_page() as opening:
            await card.get_by_role("button", name="Open pictures.example in a new tab").click()
        opened = await opening.value
        await expect(opened.get_by_text("a picture")).to_be_visible()
        assert len(asked) == 1
        assert "referer" not in asked[0]
        assert await opened.evaluate("window.opener") is None
        await load.click()
        picture = card.get_by_role("img", name="From pictures.example")
        await expect(picture).to_have_js_property("naturalWidth", 1)
        assert fetched == [{"url": ADDRESS, "kind": "image"}] * 2
        assert len(asked) == 1
        assert visit.wrong() == []
