"""The resources for MCP clients: full results that were too long to show, and the states of tasks.

``toolyard://tool-output/NAME`` is a file of the project's ``tool-output``, an envelope as JSON or its text;
``toolyard://tasks/ID`` is a task of this caller. Names are matched, never joined into a path that leads elsewhere.
"""

import json
import os
import re
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolyard.protocol.envelope import Envelope
from toolyard.workspace.search.ignore import OUTPUT_FOLDER
from toolyard.yard.yard import Yard

OUTPUT: Final = "toolyard://tool-output/"
TASK: Final = "toolyard://tasks/"
_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*\.(?:json|txt)")
_MOST = 200  # the newest, in a list
_MOST_BYTES = 16 * 2**20  # of one that is read
_JSON = "application/json"
_TEXT = "text/plain"


def list_resources(yard: Yard) -> types.ListResourcesResult:
    try:
        with os.scandir(yard.config.project / OUTPUT_FOLDER) as entries:
            names = [entry.name for entry in entries if _NAME.fullmatch(entry.name) and not entry.is_symlink()]
    except OSError:
        names = []
    newest = sorted(names, reverse=True)[:_MOST]
    listed = [types.Resource(uri=f"{OUTPUT}{name}", name=name, mime_type=_mime_type(name)) for name in newest]
    return types.ListResourcesResult(resources=listed)


def list_templates() -> types.ListResourceTemplatesResult:
    templates = [
        types.ResourceTemplate(
            uri_template=f"{OUTPUT}{{name}}", name="tool-output",
            description="A whole result that was too long to show: its envelope (.json) or its text (.txt).",
        ),
        types.ResourceTemplate(
            uri_template=f"{TASK}{{id}}", name="task", mime_type=_JSON,
            description="A task that an asynchronous tool has begun: its state, its progress, its result.",
        ),
    ]  # fmt: skip
    return types.ListResourceTemplatesResult(resource_templates=templates)


async def read_resource(yard: Yard, uri: str, caller: str) -> types.ReadResourceResult:
    text = _read_output(yard, uri.removeprefix(OUTPUT)) if uri.startswith(OUTPUT) else None
    if uri.startswith(TASK):
        task = await yard.state.tasks.get(uri.removeprefix(TASK))
        if task is not None and task.caller == caller:
            text = json.dumps(task.to_json(), ensure_ascii=False, indent=2)
    if text is None:
        raise MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri})
    content = types.TextResourceContents(uri=uri, mime_type=_mime_type(uri), text=text)
    return types.ReadResourceResult(contents=[content])


def build_task_links(envelope: Envelope) -> list[types.ResourceLink]:
    """Build links to the tasks that a call has begun: the protocol of the SDK has no tasks."""
    tasks = envelope.data.get("tasks")
    ids = (
        [str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task]
        if isinstance(tasks, list)
        else []
    )
    return [
        types.ResourceLink(
            uri=f"{TASK}{id_}", name=id_, mime_type=_JSON, description="The task, until and after its end."
        )
        for id_ in ids
        if not envelope.error
    ]


def _mime_type(name: str) -> str:
    return _TEXT if name.startswith((OUTPUT, "tool_")) and name.endswith(".txt") else _JSON


def _read_output(yard: Yard, name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return None
    folder = -1
    try:
        folder = os.open(
            yard.config.project / OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(fd, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        if folder >= 0:
            os.close(folder)
