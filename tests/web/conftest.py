"""A server of the tests: a real one on a free port, with a home and a project of its own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fastapi._compat import v2 as fields
from fastapi._compat.v2 import ModelField
from pydantic import TypeAdapter, ValidationError

from tests.fakes import FakeClock
from tests.plugins.folders import make_plugin
from tests.web.openapi_answers import AnswerCheck
from toolyard.config import load_config
from toolyard.protocol.store import Event
from toolyard.web import feed
from toolyard.web.schemas.events import ServerEvent
from toolyard.web.security.scope import AccessRules, Scope
from toolyard.web.server.lifecycle import Server, ServerOptions
from toolyard.yard.yard import Yard

Headers = Mapping[str, str]
_make_adapter = ModelField.__post_init__
_adapters: dict[object, TypeAdapter[Any]] = {}
_checks: list[AnswerCheck] = []  # one at most


def _share_adapter(made: ModelField) -> None:
    """Give a field of a route the validator of an equal one: all servers of a process have the same routes, and to make
    their validators anew took a third of the processor time of a server."""
    described = fields.asdict(made.field_info)
    key = (described["annotation"], *described["metadata"], repr(described["attributes"]), made.mode)
    if key in _adapters:
        made._type_adapter = _adapters[key]
    else:
        _make_adapter(made)
        _adapters[key] = made._type_adapter


ModelField.__post_init__ = _share_adapter  # type: ignore[method-assign,assignment]


@dataclass(frozen=True)
class HttpResponse:
    status: int
    headers: Headers
    body: bytes
    json: Any


@dataclass(frozen=True)
class RunningServer:
    """A running server; ``request`` sends the owner's key by default, and checks each answer by the OpenAPI."""

    server: Server
    client: aiohttp.ClientSession
    project: Path
    home: Path

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def key(self) -> str:
        return self.server.key

    @property
    def yard(self) -> Yard:
        return self.server.yard

    @property
    def rules(self) -> AccessRules:
        """Who may use which path."""
        return self.server._app.rules

    async def request(
        self, method: str, path: str, *, key: str | None = "", headers: Headers | None = None, **more: Any
    ) -> HttpResponse:
        """Send a request; ``key``: another than the owner's, None for none."""
        sent = {} if key is None else {"Authorization": f"Bearer {key or self.key}"}
        async with self.client.request(
            method, self.url + path, headers={**sent, **(headers or {})}, allow_redirects=False, **more
        ) as response:
            body = await response.read()
            value = await response.json() if response.content_type == "application/json" and body else None
            if value is not None:
                check = await self._load_check(more.get("ssl", True))
                problem = check.find_problem(method, path, response.status, value)
                assert problem == "", problem
            return HttpResponse(response.status, response.headers, body, value)

    async def _load_check(self, trust: ssl.SSLContext | bool) -> AnswerCheck:
        """Return what compares answers with the OpenAPI document, which is the same for all servers."""
        if not _checks:
            headers = {"Authorization": f"Bearer {self.key}"}
            async with self.client.get(f"{self.url}/openapi.json", headers=headers, ssl=trust) as response:
                _checks.append(AnswerCheck(await response.json()))
        return _checks[0]

    async def get(self, path: str, **more: Any) -> HttpResponse:
        return await self.request("GET", path, **more)

    async def post(self, path: str, json: Any = None, **more: Any) -> HttpResponse:
        return await self.request("POST", path, **({"json": json} if json is not None else {}), **more)

    def make_key(self, *scopes: Scope) -> str:
        return self.server.access.keys.add("a key of the tests", scopes, 0.0)[1]

    async def send_raw(self, data: bytes) -> tuple[int, bytes]:
        """Send these bytes and return the response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        async with asyncio.timeout(60):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), head


@asynccontextmanager
async def run_server(
    place: Path, options: ServerOptions | None = None, settings: str = ""
) -> AsyncIterator[RunningServer]:
    """A server on ``place``; ``settings`` is its configuration file."""
    project, home = place / "project", place / "home"
    for folder in (project, home):
        folder.mkdir(parents=True, exist_ok=True)
    if settings:
        (home / "config.toml").write_text(settings, encoding="utf-8")
    given = place / "given"
    given.mkdir(exist_ok=True)
    config = load_config(project, home, plugin_folders=[given], trusts_given=True)
    server = Server(config, options or ServerOptions(port=0, grace_s=2.0, ping_s=600.0))
    await server.start()
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(180)) as client:
            yield RunningServer(server, client, project, home)
    finally:
        await server.stop()


@pytest.fixture(autouse=True)
def events_match_their_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compare what the servers of a test send over ``/ws`` with the OpenAPI; ``test.`` begins types of the tests."""
    wrong: list[str] = []
    to_client_event = feed.to_client_event

    def check(event: Event) -> feed.ClientEvent:
        if not event.type.startswith("test."):
            wrong.extend(find_event_problem(event.type, event.data))
        return to_client_event(event)

    monkeypatch.setattr(feed, "to_client_event", check)
    yield
    assert wrong == []


def find_event_problem(type_: str, data: Any) -> list[str]:
    """Return why no schema fits an event, if none does."""
    try:
        ServerEvent.model_validate({"seq": 1, "type": type_, "at": 0.0, "data": data})
    except ValidationError as problem:
        return [f"{type_}: {problem}"]
    return []


@pytest.fixture
async def running_server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with run_server(tmp_path) as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def add_plugin(tmp_path: Path) -> Callable[..., Path]:
    """Write a plugin for a server that is started afterwards."""

    def add(name: str, code: str, **more: Any) -> Path:
        folder = make_plugin(tmp_path / "given", name, **more)
        (folder / "main.py").write_text(code, encoding="utf-8")
        return folder

    return add
