"""Conversations for the console's tests: a server whose model says what a test wants, and replies that are there."""

import io
import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import aiohttp
from playwright.async_api import Locator, Page, expect

from tests.console.hosting import Host, hosting
from tests.console.visit import Visit
from tests.gateway.upstream import Provider, Script, provider, says, streamed
from toolyard.gateway.vcp import PAYLOAD

KEY = "sk-canary-77d1c0"
_CLIPBOARD = """async () => {
  for (let tries = 0; tries < 400; tries++) {
    const text = await navigator.clipboard.readText();
    if (text) return text;
    await new Promise((wake) => setTimeout(wake, 25));
  }
  return '';
}"""
_NUMBER = itertools.count(1)


@dataclass
class Talking:
    host: Host
    provider: Provider
    scripts: dict[str, list[Script]] = field(default_factory=dict)

    def answers(self, words: str, *scripts: Script | str) -> str:
        """What the model says when it is told these words, one round after the other, the last for all that follow."""
        made = [says(one, size=40) if isinstance(one, str) else one for one in scripts]
        self.scripts[words] = made
        return words

    async def keep(self, *pieces: str | dict[str, Any], title: str = "kept", asked: str = "please") -> str:
        """A conversation with one reply that has ended; where it can be seen."""
        made = [{"kind": "text", "text": one} if isinstance(one, str) else one for one in pieces]
        return await keep(self.host, [user(asked), assistant(*made)], title=title)


def _heard(body: dict[str, Any]) -> str:
    texts = [one["content"] for one in body["messages"] if one["role"] == "user" and isinstance(one["content"], str)]
    return next((text for text in reversed(texts) if not text.startswith(PAYLOAD)), "")


@asynccontextmanager
async def talking(folder: Path, *options: str) -> AsyncIterator[Talking]:
    scripts: dict[str, list[Script]] = {}

    def answer(body: dict[str, Any]) -> Script:
        left = scripts.get(_heard(body)) or [says("I have nothing to say.")]
        return left.pop(0) if len(left) > 1 else left[0]

    async with provider(answer) as upstream:
        settings = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": KEY}
        async with hosting(folder, *options, settings=settings) as host:
            yield Talking(host, upstream, scripts)


def slowly(text: str, *, size: int = 3, pause_s: float = 0.01, then: str = "end") -> Script:
    pieces = streamed(text, size=size)
    return Script(pieces if then == "end" else pieces[:-2], pause_s=pause_s, then=then)


def user(text: str) -> dict[str, Any]:
    return {"id": f"asked{next(_NUMBER)}", "role": "user", "at": time.time(), "text": text}


def assistant(*pieces: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"id": f"said{next(_NUMBER)}", "role": "assistant", "at": time.time(), "model": "scripted"}
    return given | {"pieces": list(pieces), "state": "done"} | more


def called(tool: str, text: str, **more: Any) -> dict[str, Any]:
    """A call that has ended, as a conversation keeps it."""
    given = {"kind": "call", "id": "", "tool": tool, "command": "", "summary": text[:200], "state": "success"}
    ended = {"text": text, "started": 1.0, "ended": 2.0, "media": [], "left": 0, "approval": None, "answered": ""}
    return given | ended | more


async def keep(host: Host, messages: list[dict[str, Any]], *, title: str = "kept") -> str:
    id_ = f"kept{next(_NUMBER)}"
    body = {"title": title, "model": "scripted", "messages": messages, "settings": {}, "version": 0}
    headers = {"Authorization": f"Bearer {host.key}", "Content-Type": "application/json"}
    sent = io.BytesIO(json.dumps(body).encode())  # several megabytes at once would hold the loop up
    async with (
        aiohttp.ClientSession() as client,
        client.put(f"{host.url}/v1/conversations/{id_}", data=sent, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
    return f"/chat/{id_}"


async def say(visit: Visit, text: str) -> Locator:
    """The reply that now begins."""
    before = await replies(visit.page).count()
    await visit.page.get_by_label("Message", exact=True).fill(text)
    await visit.page.get_by_label("Message", exact=True).press("Enter")
    reply = replies(visit.page).nth(before)
    await expect(reply).to_be_visible()
    return reply


def replies(page: Page) -> Locator:
    return page.get_by_role("article", name="Assistant")


async def ended(reply: Locator) -> None:
    await expect(reply.locator(".chat-foot")).to_be_visible()
    await drawn(reply)


async def drawn(reply: Locator) -> None:
    """Until every diagram and formula of it is there, or is known not to come."""
    await expect(reply).to_be_visible()
    await expect(reply.locator(".chat-plain, .pending, .rendered[aria-busy=true]")).to_have_count(0)
    await expect(reply.locator(".stage > .faint")).to_have_count(0)
    await expect(reply.locator(".math[data-tex]:not([title]):not(:has(.acts))")).to_have_count(0)


async def copied(visit: Visit, button: Locator) -> str:
    """What a press of a copy button leaves in the clipboard."""
    await visit.page.evaluate("navigator.clipboard.writeText('')")
    await button.click()
    return cast("str", await visit.page.evaluate(_CLIPBOARD))


def script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


async def look(reply: Locator, name: str) -> Any:
    """What a script says of the first node of ``reply``."""
    return cast("Any", await reply.evaluate(script(name)))
