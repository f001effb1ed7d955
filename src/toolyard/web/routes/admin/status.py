"""``/v1/status``, ``/v1/doctor`` and ``/v1/backup``: the state of the server, checks of this machine, and a backup."""

import asyncio
import os
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import IO, Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from toolyard.config import Config
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.doctor import Check, check_nodes, run_checks
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.gateway.chats import Chat
from toolyard.message import Message, to_fields
from toolyard.protocol.access import ConfinementLevel
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec
from toolyard.storage.backup_archive import back_up
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE, measure_used_bytes
from toolyard.web.answers import json_response
from toolyard.web.feed import Feed
from toolyard.web.routes.admin.setup import is_first_run
from toolyard.web.routes.plugins.plugin_details import to_row_json
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import Code, MessageFields, Params
from toolyard.web.server.health import Drain, StateCheck
from toolyard.web.settings.live_settings import SettingsReloader
from toolyard.web.settings.settings_change import upstream_url
from toolyard.yard.yard import Yard


class DatabaseStatus(BaseModel):
    kind: Literal["sqlite", "postgres"]
    ok: bool
    problem: str
    problem_code: Code = ""
    problem_params: Params
    bytes: Annotated[int | None, Field(description="The size of the file; null for PostgreSQL.")]


class DiskStatus(BaseModel):
    free: int
    total: int


class QueueStatus(BaseModel):
    waiting: int
    running: int
    requests: int


class EventStatus(BaseModel):
    newest: int
    lag: int


class ProviderContact(BaseModel):
    answered: Annotated[float | None, Field(description="When it last answered.")]
    failed: Annotated[float | None, Field(description="When it last failed.")]
    error: Annotated[str, Field(description="The last failure.")]
    error_code: Code = ""
    error_params: Params


class UpstreamStatus(BaseModel):
    url: str | None
    others: list[str]
    contacts: Annotated[dict[str, ProviderContact], Field(description="By the name of the provider.")]


class PluginStatus(BaseModel):
    by_state: dict[str, int]


class McpStatus(PluginStatus):
    crashes: int


class Status(BaseModel):
    version: str
    started: float
    home: str
    project: str
    database: DatabaseStatus
    disk: DiskStatus
    queue: QueueStatus
    events: EventStatus
    websockets: int
    upstream: UpstreamStatus
    plugins: PluginStatus
    mcp: McpStatus
    confinement: ConfinementLevel
    memory_bytes: int
    first_run: bool
    time_zone: Annotated[str, Field(description="The zone of times without an offset, such as those of schedules.")]
    home_option: Annotated[str, Field(description="What commands need to reach this home: ` --home DIR`, or empty.")]


class CheckRow(MessageFields):
    name: str
    level: Literal["ok", "missing_config", "warn", "fail"]
    fix: str
    fix_code: Code = ""
    fix_params: Params


class CheckRows(BaseModel):
    data: list[CheckRow]


_STATE_S = 2.0
_MAX_NAMED = 20  # names in a check


def router(
    yard: Yard,
    drain: Drain,
    feed: Feed,
    reloading: SettingsReloader,
    chat: Chat | None = None,
    *,
    version: str,
    clock: Clock,
    state_check: StateCheck,
) -> Routes:
    routes = Routes("/v1", tag="status")
    started = clock.now().timestamp()

    @routes.get("/status", Status)
    async def show_status() -> Response:
        """Return version, paths, storage, disk, queue, events, plugins and memory."""
        newest, problem = await _read_newest_event(yard)
        problem = problem or state_check.problem
        on_disk = await asyncio.to_thread(_measure_disk, yard)
        queue, config = yard.plugins.host.queue, reloading.config
        body = {
            "version": version,
            "started": started,
            "home": str(config.home),
            "project": str(config.project),
            "database": {
                "kind": _database_kind(yard),
                "ok": not problem,
                **to_fields("problem", yard.mask.text(problem)),
                "bytes": on_disk["bytes"],
            },
            "disk": on_disk["disk"],
            "queue": {"waiting": queue.waiting, "running": queue.running, "requests": drain.running_count},
            "events": {"newest": newest, "lag": max(0, newest - feed.last_seq)},
            "websockets": feed.client_count,
            "upstream": _upstream_to_json(yard, config, chat),
            "plugins": {"by_state": Counter(to_row_json(yard, one)["state"] for one in yard.plugins.plugins.all)},
            "mcp": _mcp_to_json(yard),
            "confinement": measure_confinement(Profile()).level.value,
            "memory_bytes": _resident_bytes(),
            "first_run": await asyncio.to_thread(is_first_run, config),
            "time_zone": config.zone.key,
            "home_option": config.own_command.for_home.options,
        }
        return json_response(body)

    return routes


async def _read_newest_event(yard: Yard) -> tuple[int, str]:
    """Return the number of the newest event, or 0 and the problem."""
    try:
        async with asyncio.timeout(_STATE_S):
            return (await yard.state.store.event_span())[1], ""
    except TimeoutError:
        return 0, Message("the store did not answer within {seconds:g} s", seconds=_STATE_S)
    except StorageError as error:
        return 0, str(error)


def _measure_disk(yard: Yard) -> dict[str, Any]:
    home = yard.config.home
    place = next(one for one in (home, *home.parents) if one.exists())
    usage = shutil.disk_usage(place)
    try:
        used = measure_used_bytes(home / STATE) if _database_kind(yard) == "sqlite" else None
    except StorageError:
        used = None
    return {"bytes": used, "disk": {"free": usage.free, "total": usage.total}}


def _upstream_to_json(yard: Yard, config: Config, chat: Chat | None) -> dict[str, Any]:
    """Return the providers and their last contacts; errors are masked, because they may repeat a refused key."""
    contacts = {name: asdict(one) for name, one in chat.contacts().items()} if chat else {}
    contacts = {name: {**one, **to_fields("error", yard.mask.text(one["error"]))} for name, one in contacts.items()}
    return {"url": upstream_url(config) or None, "others": list(config.settings.upstreams), "contacts": contacts}


def _database_kind(yard: Yard) -> str:
    return "sqlite" if isinstance(yard.state.store, SqliteStore) else "postgres"


def _mcp_to_json(yard: Yard) -> dict[str, Any]:
    servers = yard.mcp.servers
    states = Counter(servers.find_state(entry).value for entry in servers.declarations.all())
    return {"by_state": states, "crashes": servers.crash_count}


def _resident_bytes() -> int:
    """Return the resident memory; on systems without /proc, its maximum."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


_CHUNK = 256 * 1024
_ARCHIVE: JsonObject = {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}


def doctor_router(yard: Yard, clock: Clock) -> Routes:
    routes = Routes("/v1", tag="doctor")

    @routes.get("/doctor", CheckRows)
    async def run_doctor() -> Response:
        """Run the checks of `toolyard doctor`; each problem says how to fix it."""
        tools = [tool.spec for tool in yard.tools.list_built_in_first()]
        nodes = yard.nodes.nodes.to_json() if yard.nodes.nodes is not None else None
        checks = await asyncio.to_thread(_run_checks, yard, tools, nodes)
        return json_response(yard.mask.mask_known({"data": checks}))

    @routes.post(
        "/backup",
        audit="backup.downloaded",
        responses={200: {"description": "A .tar.gz.", "content": _ARCHIVE}},
        response_class=Response,
    )
    async def make_backup() -> Response:
        """Return the state, settings and keys of the home as one archive, like `toolyard backup`."""
        file = await asyncio.to_thread(_make_backup, yard.config.home)
        stamp = clock.now().strftime("%Y%m%d-%H%M%S")
        headers = {
            "Content-Length": str(os.fstat(file.fileno()).st_size),
            "Content-Disposition": f'attachment; filename="toolyard-{stamp}.tar.gz"',
        }
        return StreamingResponse(_read_chunks(file), headers=headers, media_type="application/gzip")

    return routes


def _run_checks(yard: Yard, tools: list[ToolSpec], nodes: list[JsonObject] | None) -> list[Json]:
    checks = [
        *run_checks(str(yard.config.project), str(yard.config.home), tools, yard.plugins.plugins.all),
        *_check_prompts(yard),
        *(check_nodes(nodes, yard.config.own_command) if nodes is not None else ()),
    ]
    return [
        {"name": one.name, "level": one.health.value, **to_fields("message", one.detail), **to_fields("fix", one.fix)}
        for one in checks
    ]


def _check_prompts(yard: Yard) -> Iterator[Check]:
    """Yield the problems of prompts, which only a running server knows."""
    for problem in yard.prompts.list_problems():
        message = Message("{place}: {problem}", place=problem.place, problem=problem.message)
        yield Check.warn("prompts", message, Message("Change the file; it is read again with the next request."))
    if unfilled := list(yard.prompts.unfilled):
        names = ", ".join(f"{{{{{name}}}}}" for name in unfilled[:_MAX_NAMED])
        yield Check.warn(
            "prompts",
            Message("Nothing fills these names in system messages: {names}", names=names),
            Message("Write a prompt file or a variable of that name, or take the name out."),
        )


def _make_backup(home: Path) -> IO[bytes]:
    """Return an open, unlinked archive, so that nothing remains after the download."""
    place = home / f".backup-{token_hex(8)}"
    back_up(home, place)
    try:
        return place.open("rb")
    finally:
        place.unlink()


def _read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
