"""Conversations for the console's tests: a server whose model says what a test wants, and replies that are there."""

import io
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import aiohttp
from playwright.async_api import Locator, Page, expect

from tests.console.hosting import Host, hosting
from tests.console.seeding import write_plugin
from tests.console.visit import PATIENCE_MS, Visit
from tests.gateway.upstream import Provider, Script, provider, says, streamed
from tests.waiting import wait_for_value
from toolyard.gateway.vcp_blocks import PAYLOAD

KEY = "sk-canary-77d1c0"
_CLIPBOARD = """async () => {
  for (let tries = 0; tries < 2400; tries++) {
    const text = await navigator.clipboard.readText();
    if (text) return text;
    await new Promise((wake) => setTimeout(wake, 25));
  }
  return '';
}"""
_NUMBER = itertools.count(1)
T = TypeVar("T")


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


def _last_user_text(body: dict[str, Any]) -> str:
    texts = [one["content"] for one in body["messages"] if one["role"] == "user" and isinstance(one["content"], str)]
    return next((text for text in reversed(texts) if not text.startswith(PAYLOAD)), "")


@asynccontextmanager
async def talking(folder: Path, *options: str) -> AsyncIterator[Talking]:
    scripts: dict[str, list[Script]] = {}

    def answer(body: dict[str, Any]) -> Script:
        left = scripts.get(_last_user_text(body)) or [says("I have nothing to say.")]
        return left.pop(0) if len(left) > 1 else left[0]

    async with provider(answer) as upstream:
        settings = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": KEY}
        async with hosting(folder, *options, settings=settings) as host:
            yield Talking(host, upstream, scripts)


SLOW = "import time\ntime.sleep(300)\n"


@asynccontextmanager
async def chatting(folder: Path) -> AsyncIterator[Talking]:
    """One that also has a tool, Slow, which takes minutes."""
    long = {"protocol": "stdio", "timeout": 300_000}
    async with talking(folder, *write_plugin(folder / "given", "Slow", SLOW, communication=long, risk="read")) as one:
        await confirm_read(one, "Slow")
        yield one


async def confirm_read(one: Talking, plugin: str) -> None:
    """Say as the owner that a plugin only reads, so that the model need not ask."""
    review = (await one.host.api("GET", f"/v1/plugins/{plugin}"))["review"]
    confirmed = {"fingerprint": review["fingerprint"], "confirm_read": True}
    await one.host.api("POST", f"/v1/plugins/{plugin}/allow", confirmed)


class Held(Sequence[bytes]):
    """Pieces of a reply of which the later ones come only when ``go_on`` is called, however long that takes.

    Unless it ``ends``, the reply is never said to be over.
    """

    def __init__(self, first: str, then: str, *, size: int, ends: bool = True) -> None:
        pieces, self._first = streamed(first + then, size=size), len(first) // size
        self._pieces, self._held = pieces if ends else pieces[:-2], True

    def go_on(self) -> None:
        self._held = False

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, at: Any) -> Any:
        return self._pieces[at]

    def __iter__(self) -> Iterator[bytes]:
        for number, piece in enumerate(self._pieces):
            while number > self._first and self._held:
                yield b": nothing yet\n\n"
            yield piece


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
    """The reply that now begins. On a touch keyboard Enter makes a new line: there the button sends."""
    before = await replies(visit.page).count()
    box = visit.page.get_by_label("Message", exact=True)
    await box.fill(text)
    if await visit.page.evaluate("matchMedia('(hover: none) and (pointer: coarse)').matches"):
        await visit.page.locator(".chat-compose").get_by_role("button", name="Send", exact=True).click()
    else:
        await box.press("Enter")
    reply = replies(visit.page).nth(before)
    await expect(reply).to_be_visible()
    return reply


def replies(page: Page) -> Locator:
    return page.get_by_role("article", name="Assistant")


async def ended(reply: Locator) -> None:
    await expect(reply.locator(".chat-foot")).to_be_visible()
    await drawn(reply)


async def kept_state(visit: Visit) -> str:
    """How the last reply of the open conversation stands in what the server keeps."""
    place = visit.page.url.partition("?")[0].rsplit("/", 1)[1]
    return str((await visit.host.api("GET", f"/v1/conversations/{place}"))["messages"][-1]["state"])


async def reloaded(visit: Visit) -> None:
    """The page anew, once the end of the last reply is kept: nobody reads that end again while it is on its way."""
    assert await becomes(lambda: kept_state(visit), lambda state: state != "running") != "running"
    await visit.page.reload()


async def drawn(reply: Locator) -> None:
    """Until every diagram and formula of it is there, or is known not to come."""
    await expect(reply).to_be_visible()
    await expect(reply.locator(".chat-plain, .pending, .rendered[aria-busy=true]")).to_have_count(0)
    await expect(reply.locator(".stage > .faint")).to_have_count(0, timeout=3 * PATIENCE_MS)  # one after the other
    await expect(reply.locator(".math[data-tex]:not([title]):not(:has(.acts))")).to_have_count(0)


async def copied(visit: Visit, button: Locator) -> str:
    """What a press of a copy button leaves in the clipboard."""
    await visit.page.evaluate("navigator.clipboard.writeText('')")
    await button.click()
    return cast("str", await visit.page.evaluate(_CLIPBOARD))


async def choose_action(visit: Visit, name: str, *, of: Locator | None = None) -> None:
    """Choose from the menu of the open conversation, or of a row of the list."""
    if of is None:
        await visit.page.get_by_role("button", name="Conversation actions").click()
    else:
        await of.hover()
        await of.get_by_role("button", name="Actions for").click()
    await visit.page.get_by_role("menuitem", name=name, exact=True).click()


async def becomes(seen: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
    """What is seen once it is as wanted; or as it is when nobody would wait any longer, for the test to complain of."""
    with suppress(TimeoutError):
        return await wait_for_value(seen, wanted, within_s=PATIENCE_MS / 1000)
    return await seen()


def script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


async def look(reply: Locator, name: str) -> Any:
    """What a script says of the first node of ``reply``."""
    return cast("Any", await reply.evaluate(script(name)))
