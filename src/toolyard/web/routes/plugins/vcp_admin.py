"""The part of VCPToolBox's admin API that its clients read: plugins, agents, emoji and the log. It changes nothing.

The owner's key opens it, or ``AdminUsername`` and ``AdminPassword`` of the installation, in Basic authentication as its
clients send them; the two are good for these paths alone. Everything else below ``/admin_api`` belongs to plugins
(``vcp_plugins``), or is answered with the page of the console that has it.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Final

from fastapi import Query, Response

from toolyard.dialects.vcp_admin import NOT_FOUND, agent_list, log_gone, log_part, node_plugin_row, plugin_row
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.vcp.prompt_files import EMOJI, PromptFiles
from toolyard.web.answers import json_response
from toolyard.web.routing import Routes
from toolyard.web.security.scope import Scope
from toolyard.yard.yard import Yard

PREFIX: Final = "/admin_api"
LOG_BYTES: Final = 2 * 2**20
_MAX_FILES = 5_000  # agents, and packs of emoji
_MAX_DEPTH = 8
_MAX_TEXT = 8 * 2**20
_PAGES: Final = (  # of the console, by the beginning of a path
    (("plugin", "preprocessors", "dynamic-tools", "tool-list"), "tools"),
    (("agents", "tvs", "toolbox", "sar", "placeholders", "final-context"), "prompts"),
    (("tool-approval",), "approvals"),
    (("schedules",), "schedule"),
    (("tool-call-records", "server-log"), "activity"),
    (("config", "main-config", "semantic", "multimodal", "bridge"), "settings"),
)


class RecentLog(logging.Handler):
    """The newest lines of the log of this server, at most ``LOG_BYTES``, with their place in all that was logged."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._lines: deque[bytes] = deque()
        self.begin = self.end = 0  # in bytes since the server started

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)}\n".encode(errors="replace")
        self._lines.append(line)
        self.end += len(line)
        while self.end - self.begin > LOG_BYTES:
            self.begin += len(self._lines.popleft())

    def read(self, since: int) -> bytes:
        """Return what was logged after ``since``, which is not before ``begin``."""
        self.acquire()
        try:
            return b"".join(self._lines)[since - self.begin :]
        finally:
            self.release()


def router(yard: Yard, root: Path, log: RecentLog) -> Routes:
    routes = Routes(PREFIX, tag="admin API of VCPToolBox", scope=Scope.ADMIN)
    files = PromptFiles(root)

    @routes.get("/plugins", include_in_schema=False)
    async def list_plugins() -> Response:
        return json_response(await asyncio.to_thread(lambda: [*_list_plugins(yard), *_list_tools_of_nodes(yard)]))

    @routes.get("/agents/map", include_in_schema=False)
    async def map_agents() -> Response:
        return json_response(await asyncio.to_thread(lambda: dict(files.agents)))

    @routes.get("/agents", include_in_schema=False)
    async def list_agents() -> Response:
        return json_response(await asyncio.to_thread(lambda: agent_list(_walk(_find_agents(root, files)))))

    @routes.get("/agents/{name:path}", include_in_schema=False)
    async def read_agent(name: str) -> Response:
        text = await asyncio.to_thread(_read_agent, _find_agents(root, files), name)
        if text is None:
            return json_response(NOT_FOUND, HTTPStatus.NOT_FOUND)
        return json_response({"content": text})

    @routes.get("/emojis/list", include_in_schema=False)
    async def list_emoji() -> Response:
        return json_response({"success": True, "data": await asyncio.to_thread(_list_emoji, root, files)})

    @routes.get("/server-log", include_in_schema=False)
    async def read_log(incremental: str = "", offset: Annotated[int, Query(ge=0)] = 0) -> Response:
        since = offset if incremental == "true" else log.begin
        if not log.begin <= since <= log.end:
            return json_response(log_gone())
        return json_response(log_part(log.read(since).decode(errors="replace"), end=log.end))

    return routes


def answer_elsewhere(path: str, address: str) -> Response:
    """Return the answer for what is not here: where it is in the console, as VCPToolBox's clients read errors."""
    name = path.removeprefix(PREFIX).strip("/")
    page = next((page for beginnings, page in _PAGES if name.startswith(beginnings)), "status")
    url = f"{address}/{page}"
    message = Message("Toolyard has no {path} of VCPToolBox's admin API: open {url}", path=path[:200], url=url)
    answer: JsonObject = {"error": str(message), "message": str(message), "console": url}
    return json_response(answer, HTTPStatus.NOT_IMPLEMENTED)


def _list_plugins(yard: Yard) -> Iterator[Json]:
    for plugin in yard.plugins.plugins.all:
        if plugin.manifest is not None:
            yield plugin_row(plugin.name, plugin.manifest.fields, is_enabled=plugin.may_run)


def _list_tools_of_nodes(yard: Yard) -> Iterator[Json]:
    for node, manifest, name in yard.nodes.nodes.list_manifests() if yard.nodes.nodes is not None else ():
        yield node_plugin_row(name, manifest.fields, manifest.display_name or manifest.name, node.id)


def _find_agents(root: Path, files: PromptFiles) -> Path:
    return root / (files.variables.get("AGENT_DIR_PATH", "").strip() or "Agent")


def _read_agent(folder: Path, name: str) -> str | None:
    """Return the text of an agent; None for what is not in the list."""
    if name not in set(_walk(folder)):
        return None
    try:
        with open(folder / name, "rb") as file:
            return file.read(_MAX_TEXT).decode("utf-8", "replace")
    except OSError:
        return None


def _walk(folder: Path) -> Iterator[str]:
    """Yield the texts below a folder, by their paths in it; links are not followed."""
    found = 0
    for at, folders, names in os.walk(folder):
        place = Path(at).relative_to(folder)
        if len(place.parts) >= _MAX_DEPTH:
            folders.clear()
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith((".txt", ".md")) and not os.path.islink(os.path.join(at, name)):
                yield (place / name).as_posix()
                found += 1
                if found >= _MAX_FILES:
                    return


def _list_emoji(root: Path, files: PromptFiles) -> JsonObject:
    try:
        names = sorted(name for name in os.listdir(root / EMOJI) if name.lower().endswith(".txt"))
    except OSError:
        return {}
    packs = (name[: -len(".txt")] for name in names[:_MAX_FILES])
    return {pack: [one for one in files.read_emoji(pack).split("|") if one.strip()] for pack in packs}
