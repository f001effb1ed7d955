"""What must be there before a test of the console looks: many records, hostile texts, models that ask for tools."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import aiohttp
from playwright.async_api import Page

from tests.console.hosting import START_S, Host
from tests.console.looks import own_texts
from tests.console.test_shell import SAME
from tests.gateway.upstream import Provider, Script, provider, says
from tests.plugins.folders import make_plugin
from tests.render.attacks import ATTACKS
from tests.waiting import wait_for_value
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import CALL, KEPT, RESULT
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.requests.scanner import format_request
from toolyard.protocol.store import Record
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE

AT_ONCE = 20
# Goes to another address as a click on a link does, without loading the page again.
GO = "to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }"


@asynccontextmanager
async def stored(home: Path) -> AsyncIterator[SqliteStore]:
    """The state of a home, beside its server or before there is one."""
    store = SqliteStore(home / STATE)
    try:
        yield store
    finally:
        await store.close()


async def seed(home: Path, records: Iterable[Record]) -> None:
    async with stored(home) as store:
        assert await store.commit(list(records))


def task(number: int, state: TaskState, *, result: Any = None, message: str = "", **more: Any) -> Record:
    """A task of long ago enough to have ended; the higher its number, the older it is."""
    at = time.time() - 60 - number
    ended = state is not TaskState.WAITING
    made = Task(
        id=f"task_{number:032x}", call_id=f"call_{number:032x}", plugin="Timelapse", task_id=f"seed{number:05d}",
        state=state, created=at, updated=at + (1 if ended else 0), deadline=at + 1800, caller="key:owner",
        token_hash=f"{number:064x}", arguments={"command": "render", "scene": "life", "frames": "1", "seed": "7"},
        receipt="{}", result=result, message=message, **more,
    )  # fmt: skip
    return made.to_record()


def call(
    number: int, data: dict[str, Any], *, tool: str = "Edit", text: str = "", error: str = ""
) -> tuple[Record, ...]:
    """A call that has ended, with its whole result."""
    at = time.time() - 60 - number
    id_ = f"call_{number:032x}"
    fault: Any = {"code": "EXECUTION_ERROR", "message": error}
    envelope: JsonObject = {
        "status": "error" if error else "success", "data": data, "text": text, "stats": {"time_ms": 1.5},
        "context": {"cwd": ".", "params_input": {}}, **({"error": fault} if error else {}),
    }  # fmt: skip
    body: JsonObject = {
        "arguments": {}, "origin": "http", "maid": None, "chat": None, "text": text[:2000], "time_ms": 1.5,
        "reason": None, "error": fault if error else None,
    }  # fmt: skip
    ended = Record(
        kind=CALL, id=id_, state=str(envelope["status"]), created=at, updated=at, caller="key:owner", tool=tool,
        code="EXECUTION_ERROR" if error else "", text=f"{tool} {text}", body=body,
    )  # fmt: skip
    whole: JsonObject = {"arguments": {}, "envelope": envelope}
    return ended, Record(kind=RESULT, id=id_, state=KEPT, created=at, updated=at, body=whole)


def attacks() -> list[str]:
    """A sample of what hostile texts hold, of every kind."""
    texts = [one.text for one in ATTACKS if "\x00" not in one.text and one.text.isascii()]
    return texts[:: len(texts) // 25][:25]


async def active(page: Page) -> list[str]:
    """What is in the page that a text must never bring in."""
    return cast("list[str]", await page.evaluate((Path(__file__).parent / "inert.js").read_text()))


async def untranslated(page: Page) -> list[str]:
    """The console's own words that come from no dictionary, on a page in the stretched language."""
    return [
        text
        for text in await own_texts(page)
        if re.search("[A-Za-z]{3}", text) and "xx" not in text and text not in SAME
    ]


def write_plugin(root: Path, name: str, code: str, **more: Any) -> tuple[str, str]:
    """A plugin, and the options of a server that has it."""
    (make_plugin(root, name, **more) / "main.py").write_text(code, encoding="utf-8")
    return "--plugins", str(root)


async def burst(host: Host, count: int, tool: str = "LS", **arguments: object) -> None:
    """Many calls, some at once."""
    wanted = iter(range(count))
    headers = {"Authorization": f"Bearer {host.key}"}
    async with aiohttp.ClientSession(headers=headers) as client:

        async def work() -> None:
            for _ in wanted:
                async with client.post(f"{host.url}/v1/tools/{tool}", json=arguments or {"path": "."}) as response:
                    assert response.status == 200, await response.text()

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


@dataclass
class Model:
    """A model that asks for the tool of a word when it is told that word, and is content with whatever comes back."""

    provider: Provider = field(default_factory=lambda: Provider(""))
    wishes: dict[str, str] = field(default_factory=dict)
    waiting: set[asyncio.Task[str]] = field(default_factory=set)

    def answer(self, body: JsonObject) -> Script:
        messages: Any = body["messages"]
        said = str(messages[-1]["content"])
        text = next((wish for word, wish in self.wishes.items() if said.startswith(f"{word} ")), "Done.")
        return says(text, size=400, stream=bool(body.get("stream")))

    def ask(self, host: Host, word: str, tool: str, *, said: str = "please", **arguments: str) -> asyncio.Task[str]:
        """Tell it the word, in a chat of that name; the task is the whole reply, once the tool was allowed or not."""
        self.wishes[word] = format_request(tool, arguments)
        running = asyncio.create_task(send_chat(host, f"{word} {said}", f"chat-{word}"))
        self.waiting.add(running)
        return running

    def sent_text(self) -> str:
        """All that it was ever sent."""
        return json.dumps(self.provider.bodies, ensure_ascii=False)


@dataclass
class Desk:
    """A server and the model whose calls a person approves there."""

    host: Host
    model: Model

    async def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.host.api("GET", "/v1/approvals?state=pending"))["data"]
        return found

    async def clear(self) -> None:
        if ids := [one["id"] for one in await self.pending()]:
            await self.host.api("POST", "/v1/approvals/bulk", {"ids": ids, "effect": "deny"})

    async def ask(self, word: str, tool: str, *, said: str = "please", **arguments: str) -> "asyncio.Task[str]":
        """Until it asks."""
        before = len(await self.pending())
        running = self.model.ask(self.host, word, tool, said=said, **arguments)
        await wait_for_value(self.pending, lambda pending: len(pending) != before, within_s=START_S)
        return running


@asynccontextmanager
async def modelled() -> AsyncIterator[Model]:
    model = Model()
    async with provider(model.answer) as model.provider:
        try:
            yield model
        finally:
            for one in model.waiting:
                one.cancel()
            await asyncio.gather(*model.waiting, return_exceptions=True)


async def send_chat(host: Host, text: str, chat: str) -> str:
    headers = {"Authorization": f"Bearer {host.key}", "X-Toolyard-Chat": chat}
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": text}]}
    async with (
        asyncio.timeout(4 * START_S),  # it waits for a person
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{host.url}/v1/chat/completions", json=body) as response,
    ):
        assert response.status == 200, await response.text()
        return await response.text()
