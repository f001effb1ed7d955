"""Clients of ``toolyard chat``: a server over HTTP, or a Yard in this process."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import aiohttp
import orjson

from toolyard.cli.commands.audit import cli_actor
from toolyard.config import Config
from toolyard.errors import ServerUnreachable, ToolyardError, UsageError
from toolyard.gateway.chat_request import EXTENSION, ClientRequest
from toolyard.gateway.sse import Events, data_of
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.json import JsonObject
from toolyard.web.security.owner_key import read_owner_key
from toolyard.web.server.running_server import cli_caller, read_presence
from toolyard.yard.chat import make_chat
from toolyard.yard.yard import Yard

T = TypeVar("T")
_SHOW = "events"
_ANSWER_S = 10.0  # for a sign of life of the server
_REQUEST_S = 60.0  # for a request other than a chat; the models are asked of every provider
_SILENT_S = 10.0  # after which a waiting chat asks whether the server still answers
_STALLED_S = 20.0  # for that answer: the machine may be busy with the chat


class ChatClient(Protocol):
    name: str  # shown to the user
    project: str  # in which the tools work; empty if that is not known

    def send(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Send a chat and yield its chunks; one with ``error`` on failure. ``options`` go to Toolyard itself."""
        ...

    async def interrupt(self) -> None: ...

    async def list_approvals(self, call_ids: set[str]) -> list[JsonObject]:
        """Return the approvals that these calls wait for."""
        ...

    async def get_arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        """Return the arguments of a waiting call, masked unless ``reveal``; None when unavailable."""
        ...

    async def answer_approval(self, approval: str, *, allowed: bool) -> None: ...

    async def list_models(self) -> list[str]: ...

    async def list_provider_errors(self) -> dict[str, str]:
        """Return the last error of each model provider by its name; the default one has no name."""
        ...

    async def list_tools(self) -> list[tuple[str, str]]: ...


@asynccontextmanager
async def open_chat_client(
    config: Config,
    *,
    url: str = "",
    key: str = "",
    names_project: bool = False,
    require_project: Callable[[], object] = lambda: None,
) -> AsyncIterator[ChatClient]:
    """Open a client of the named server, else of the one of this home and project, else of a Yard in this process.

    ``names_project``: the project was named, and a server that works on another is refused. ``require_project`` refuses
    a project that this process must not serve.
    """
    project, here = str(config.project.resolve()), read_presence(config.home)
    is_running = here is not None and here.is_alive
    async with AsyncExitStack() as around:
        if url or (here is not None and is_running and here.project == project):
            remote = RemoteChat(url, key) if url or here is None else RemoteChat(here.url, _find_key(config, key))
            around.push_async_callback(remote.close)
            await remote.check()
            remote.project = await remote.find_project() if url else project
            if names_project and remote.project not in ("", project):
                raise UsageError(f"the server at {remote.name} works on {remote.project}, not on {project}")
            yield remote
        else:
            other = here.project if here is not None and is_running else ""
            try:
                require_project()
            except UsageError as error:
                if not other:
                    raise
                command = config.own_command.in_project(other).format("chat")
                raise UsageError(f"{error}; or use the project of the running server: '{command}'") from error
            local = LocalChat(await around.enter_async_context(open_yard(config, serves=False)), other)
            around.push_async_callback(local.close)
            yield local


def _find_key(config: Config, key: str) -> str:
    return key or read_owner_key(config.home) or ""


class RemoteChat:
    def __init__(self, url: str, key: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"'{url}' is not a server URL: write it like http://127.0.0.1:6005")
        self.name, self._url = url, url.rstrip("/").removesuffix("/v1")
        self.project = ""
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}"}, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10)
        )
        self._chat = f"cli-{uuid4().hex}"

    async def find_project(self) -> str:
        """Return the project of the server; empty when the key may not ask for it."""
        return str((await self._request("GET", "/v1/status")).get("project") or "")

    async def check(self, answer_s: float = _ANSWER_S) -> None:
        """Ask the server for a sign of life; raises ServerUnreachable if it does not answer in time."""
        try:
            async with self._session.get(f"{self._url}/healthz", timeout=aiohttp.ClientTimeout(total=answer_s)):
                pass
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or f"no answer within {answer_s:g} s"
            raise ServerUnreachable(
                f"cannot reach the server at {self.name}: {reason}; restart it, or stop it and try again"
            ) from error

    async def send(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        request = {**body, "stream": True, EXTENSION: {**options, "show": _SHOW, "chat": self._chat}}
        sending = self._session.post(f"{self._url}/v1/chat/completions", json=request)
        async with await self._wait_while_alive(sending) as response:
            if response.content_type != "text/event-stream":
                yield _parse_object(await response.read(), response.status)
                return
            events = Events()
            while data := await self._wait_while_alive(response.content.readany()):
                for chunk in _parse_chunks(events.feed(data)):
                    yield chunk

    async def interrupt(self) -> None:
        await self._request("POST", "/v1/interrupt", {"chat": self._chat})

    async def list_approvals(self, call_ids: set[str]) -> list[JsonObject]:
        response = await self._request("GET", "/v1/approvals?state=pending&limit=200")
        listed = response.get("data")
        return (
            [one for one in listed if isinstance(one, dict) and _get_call_id(one) in call_ids]
            if isinstance(listed, list)
            else []
        )

    async def get_arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        response = await self._request("GET", f"/v1/approvals/{approval}{'/arguments' if reveal else ''}")
        arguments = response.get("arguments")
        return arguments if isinstance(arguments, dict) else None

    async def answer_approval(self, approval: str, *, allowed: bool) -> None:
        await self._request("POST", f"/v1/approvals/{approval}/{'allow' if allowed else 'deny'}", {})

    async def list_models(self) -> list[str]:
        response = await self._request("GET", "/v1/models")
        if isinstance(error := response.get("error"), dict) and error.get("code") == "unauthorized":
            raise ToolyardError(
                f"{self.name} rejected the key: pass the one that 'toolyard config show --key' prints there with --key"
            )
        return [str(one["id"]) for one in _list_data(response)]

    async def list_provider_errors(self) -> dict[str, str]:
        upstream = (await self._request("GET", "/v1/status")).get("upstream")
        contacts = upstream.get("contacts") if isinstance(upstream, dict) else None
        if not isinstance(contacts, dict):  # the key may not ask for the status
            return {}
        return {name: str(one.get("error", "")) for name, one in contacts.items() if isinstance(one, dict)}

    async def list_tools(self) -> list[tuple[str, str]]:
        return [
            (str(one["name"]), str(one["description"])) for one in _list_data(await self._request("GET", "/v1/tools"))
        ]

    async def close(self) -> None:
        await self._session.close()

    async def _wait_while_alive(self, work: Awaitable[T]) -> T:
        """Wait as long as the server shows that it lives. Raises ServerUnreachable."""
        running = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({running}, timeout=_SILENT_S))[0]:
                await self.check(_STALLED_S)
            return running.result()
        finally:
            running.cancel()

    async def _request(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        timeout = aiohttp.ClientTimeout(total=_REQUEST_S)
        async with self._session.request(method, f"{self._url}{path}", json=body, timeout=timeout) as response:
            return _parse_object(await response.read(), response.status)


class LocalChat:
    def __init__(self, yard: Yard, other_project: str = "") -> None:
        """``other_project``: that of the running server of this home, if it has another one."""
        why = f"the running server works on {other_project}" if other_project else "no server running"
        self.name, self.project = f"this process ({why})", yard.project
        self._yard = yard
        self._chat = make_chat(self._yard, mask=self._yard.mask)
        self._caller = cli_caller(yard.config)
        self._id = f"cli-{uuid4().hex}"

    async def send(self, body: JsonObject, options: JsonObject) -> AsyncGenerator[JsonObject, None]:
        request: JsonObject = {**body, "stream": True, EXTENSION: {**options, "show": _SHOW, "chat": self._id}}
        answer = await self._chat.complete(ClientRequest(request, caller=self._caller))
        if answer.pieces is None:
            yield _parse_object(answer.body, answer.status)
            return
        events = Events()
        async for piece in answer.pieces:
            for chunk in _parse_chunks(events.feed(piece)):
                yield chunk

    async def interrupt(self) -> None:
        self._chat.interrupt(caller=self._caller, chat=self._id)

    async def list_approvals(self, call_ids: set[str]) -> list[JsonObject]:
        approvals = await self._yard.state.approvals.page((ApprovalState.PENDING,), limit=200)
        return [one.to_list_json() for one in approvals if one.call_id in call_ids]

    async def get_arguments(self, approval: str, *, reveal: bool = False) -> JsonObject | None:
        if reveal:
            return self._yard.state.approvals.reveal(approval)
        stored = await self._yard.state.approvals.get(approval)
        arguments = stored.arguments if stored else None
        return arguments if isinstance(arguments, dict) else None

    async def answer_approval(self, approval: str, *, allowed: bool) -> None:
        await self._yard.state.approvals.answer(approval, allowed=allowed, by=cli_actor(self._yard.config))

    async def list_models(self) -> list[str]:
        return [str(model["id"]) for model in await self._chat.models()]

    async def list_provider_errors(self) -> dict[str, str]:
        return {name: self._yard.mask.text(one.error) for name, one in self._chat.contacts().items()}

    async def list_tools(self) -> list[tuple[str, str]]:
        return [(tool.spec.name, tool.spec.description) for tool in self._yard.tools]

    async def close(self) -> None:
        await self._chat.close()


def _parse_chunks(events: list[bytes]) -> list[JsonObject]:
    data = (data_of(event) for event in events)
    return [orjson.loads(one) for one in data if one and one != b"[DONE]"]


def _parse_object(body: bytes, status: int) -> JsonObject:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"error": {"message": f"the server answered {status}"}}


def _list_data(response: JsonObject) -> list[dict[str, Any]]:
    listed = response.get("data")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _get_call_id(approval: JsonObject) -> str:
    return str(approval.get("call_id", ""))
