"""``GET /v1/status``: how the server is doing, on one page."""

import asyncio
import resource
import shutil
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.gateway.chat import Chat
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE, used_bytes
from toolyard.web.answers import answer
from toolyard.web.drain import Drain
from toolyard.web.feed import Feed
from toolyard.web.first_run import is_first_run
from toolyard.web.plugin_view import SANDBOX, row
from toolyard.web.reloading import Reloading
from toolyard.web.settings_change import upstream_url
from toolyard.web.shapes_admin import Status
from toolyard.web.state_check import StateCheck

_STATE_S = 2.0


def router(
    yard: Yard,
    drain: Drain,
    feed: Feed,
    reloading: Reloading,
    chat: Chat | None = None,
    *,
    version: str,
    clock: Clock,
    state_check: StateCheck,
) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["status"])
    started = clock.now().timestamp()

    @routes.get("/status", responses={200: {"model": Status}})
    async def show_status() -> Response:
        """Version, places, state, disk, queue, events, plugins and memory."""
        newest, problem = await _newest(yard)
        problem = problem or state_check.problem
        on_disk = await asyncio.to_thread(_on_disk, yard)
        queue, config = yard.plugins.host.queue, reloading.config
        told = {
            "version": version,
            "started": started,
            "home": str(config.home),
            "project": str(config.project),
            "database": {
                "kind": _kind(yard),
                "ok": not problem,
                "problem": yard.mask.text(problem),
                "bytes": on_disk["bytes"],
            },
            "disk": on_disk["disk"],
            "queue": {"waiting": queue.waiting, "running": queue.running, "requests": drain.running},
            "events": {"newest": newest, "lag": max(0, newest - feed.last)},
            "websockets": feed.followers,
            "upstream": _upstream(yard, config, chat),
            "plugins": {"by_state": Counter(row(yard, one)["state"] for one in yard.plugins.plugins.all)},
            "mcp": _mcp(yard),
            "sandbox": SANDBOX,
            "memory_bytes": _memory(),
            "first_run": await asyncio.to_thread(is_first_run, config),
        }
        return answer(told)

    return routes


async def _newest(yard: Yard) -> tuple[int, str]:
    """The number of the newest event, and why the state does not tell it."""
    try:
        async with asyncio.timeout(_STATE_S):
            return (await yard.store.event_span())[1], ""
    except TimeoutError:
        return 0, f"the state did not answer within {_STATE_S:g} s"
    except StorageError as error:
        return 0, str(error)


def _on_disk(yard: Yard) -> dict[str, Any]:
    home = yard.config.home
    place = next(one for one in (home, *home.parents) if one.exists())
    usage = shutil.disk_usage(place)
    try:
        used = used_bytes(home / STATE) if _kind(yard) == "sqlite" else None
    except StorageError:
        used = None
    return {"bytes": used, "disk": {"free": usage.free, "total": usage.total}}


def _upstream(yard: Yard, config: Config, chat: Chat | None) -> dict[str, Any]:
    """A provider's error may repeat the key that it refuses."""
    contacts = {name: asdict(one) for name, one in chat.contacts().items()} if chat else {}
    contacts = {name: {**one, "error": yard.mask.text(one["error"])} for name, one in contacts.items()}
    return {"url": upstream_url(config) or None, "others": list(config.settings.upstreams), "contacts": contacts}


def _kind(yard: Yard) -> str:
    return "sqlite" if isinstance(yard.store, SqliteStore) else "postgres"


def _mcp(yard: Yard) -> dict[str, Any]:
    servers = yard.mcp.servers
    states = Counter(servers.state(entry).value for entry in servers.declarations.all())
    return {"by_state": states, "crashes": servers.crash_count}


def _memory() -> int:
    """What is resident now; on systems that do not tell, the most that ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
