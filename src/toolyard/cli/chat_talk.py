"""Whom ``toolyard chat`` talks to: the server that runs on this home, or a Yard in this very process."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol
from uuid import uuid4

import aiohttp
import orjson

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.engine.approvals import KIND
from toolyard.errors import ToolyardError, UsageError
from toolyard.gateway.assemble import make_chat
from toolyard.gateway.options import EXTENSION
from toolyard.gateway.sse import Events, data_of
from toolyard.hosts.yard import open_yard
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.json import JsonObject
from toolyard.web.keys import stored_key
from toolyard.web.presence import presence_of

_SHOW = "events"


class Talk(Protocol):
    place: str  # who answers, for people

    def say(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """The chunks of the answer; one with ``error`` when there is none. ``options`` are for Toolyard itself."""
        ...

    async def interrupt(self) -> None: ...

    async def waiting(self, call_ids: set[str]) -> list[JsonObject]:
        """The approvals that these calls wait for."""
        ...

    async def arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        """All arguments of a call that waits, masked unless ``reveal``; None when they cannot be had."""
        ...

    async def answer(self, approval: str, *, allowed: bool) -> None: ...

    async def models(self) -> list[str]: ...

    async def tools(self) -> list[tuple[str, str]]: ...


@asynccontextmanager
async def talk_of(config: Config, *, url: str = "", key: str = "") -> AsyncIterator[Talk]:
    """The server that is named; else the one that runs on this home; else one's own Yard."""
    here = presence_of(config.home)
    if not url and here is not None and here.is_alive:
        url, key = here.url, key or stored_key(config.home) or ""
    async with AsyncExitStack() as around:
        talk = Remote(url, key) if url else Local(await around.enter_async_context(open_yard(config, serves=False)))
        around.push_async_callback(talk.close)
        yield talk


class Remote:
    def __init__(self, url: str, key: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"'{url}' is not the address of a server: write it like http://127.0.0.1:6005")
        self.place, self._url = url, url.rstrip("/").removesuffix("/v1")
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}"}, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10)
        )
        self._chat = f"cli-{uuid4().hex}"

    async def say(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        asked = {**body, "stream": True, EXTENSION: {**options, "show": _SHOW, "chat": self._chat}}
        async with self._session.post(f"{self._url}/v1/chat/completions", json=asked) as response:
            if response.content_type != "text/event-stream":
                yield _object(await response.read(), response.status)
                return
            events = Events()
            async for data in response.content.iter_any():
                for chunk in _chunks(events.feed(data)):
                    yield chunk

    async def interrupt(self) -> None:
        await self._ask("POST", "/v1/interrupt", {"chat": self._chat})

    async def waiting(self, call_ids: set[str]) -> list[JsonObject]:
        found = await self._ask("GET", "/v1/approvals?state=pending&limit=200")
        listed = found.get("data")
        return (
            [one for one in listed if isinstance(one, dict) and _call(one) in call_ids]
            if isinstance(listed, list)
            else []
        )

    async def arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        found = await self._ask("GET", f"/v1/approvals/{approval}{'/arguments' if reveal else ''}")
        arguments = found.get("arguments")
        return arguments if isinstance(arguments, dict) else None

    async def answer(self, approval: str, *, allowed: bool) -> None:
        await self._ask("POST", f"/v1/approvals/{approval}/{'allow' if allowed else 'deny'}", {})

    async def models(self) -> list[str]:
        found = await self._ask("GET", "/v1/models")
        if isinstance(error := found.get("error"), dict) and error.get("code") == "unauthorized":
            raise ToolyardError(f"{self.place} wants another key: name with --key what 'config show --key' shows there")
        return [str(one["id"]) for one in _listed(found)]

    async def tools(self) -> list[tuple[str, str]]:
        return [(str(one["name"]), str(one["description"])) for one in _listed(await self._ask("GET", "/v1/tools"))]

    async def close(self) -> None:
        await self._session.close()

    async def _ask(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        async with self._session.request(method, f"{self._url}{path}", json=body) as response:
            return _object(await response.read(), response.status)


class Local:
    def __init__(self, yard: Yard) -> None:
        self.place = "this process (no server is running)"
        self._yard = yard
        self._chat = make_chat(self._yard, mask=self._yard.mask)
        self._caller = f"cli:{yard.config.project.resolve()}"
        self._id = f"cli-{uuid4().hex}"

    async def say(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        asked: JsonObject = {**body, "stream": True, EXTENSION: {**options, "show": _SHOW, "chat": self._id}}
        run = await self._chat.complete(asked, caller=self._caller)
        if run.pieces is None:
            yield _object(run.body, run.status)
            return
        events = Events()
        async for piece in run.pieces:
            for chunk in _chunks(events.feed(piece)):
                yield chunk

    async def interrupt(self) -> None:
        self._chat.interrupt(caller=self._caller, chat=self._id)

    async def waiting(self, call_ids: set[str]) -> list[JsonObject]:
        found = await self._yard.approvals.page((ApprovalState.PENDING,), limit=200)
        return [{"id": one.id, "tool": one.tool, **one.body} for one in found if one.body.get("call_id") in call_ids]

    async def arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        if reveal:
            return self._yard.approvals.reveal(approval)
        record = await self._yard.store.get(KIND, approval)
        arguments = record.body.get("arguments") if record else None
        return arguments if isinstance(arguments, dict) else None

    async def answer(self, approval: str, *, allowed: bool) -> None:
        await self._yard.approvals.answer(approval, allowed=allowed, by="cli")

    async def models(self) -> list[str]:
        return [str(model["id"]) for model in await self._chat.models()]

    async def tools(self) -> list[tuple[str, str]]:
        return [(tool.spec.name, tool.spec.description) for tool in self._yard.tools]

    async def close(self) -> None:
        await self._chat.close()


def _chunks(events: list[bytes]) -> list[JsonObject]:
    data = (data_of(event) for event in events)
    return [orjson.loads(one) for one in data if one and one != b"[DONE]"]


def _object(body: bytes, status: int) -> JsonObject:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"error": {"message": f"the server answered {status}"}}


def _listed(found: JsonObject) -> list[dict[str, Any]]:
    listed = found.get("data")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _call(approval: JsonObject) -> str:
    return str(approval.get("call_id", ""))
