"""ListAllowedDirectories, ListDirectory and FileInfo: what is there."""

import json
import os
import stat
from collections.abc import Iterator

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import Text
from toolyard.protocol.envelope import Extras
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Checkpoint, Result
from toolyard.tools.counts import count_items
from toolyard.tools.operations.request import Request, build_facts, format_time
from toolyard.workspace.path_walk import to_text
from toolyard.workspace.search.ignore import IgnoreRules
from toolyard.workspace.workspace import OpenHandle, Workspace

MAX_ITEMS = 1000
_CHECK_EVERY = 256


class Listing:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list_allowed_directories(self, request: Request) -> Result:
        with self._workspace.open_folder(".") as root:
            items = list(_scan_items(root, request.checkpoint))
        shown = _sort_items(item for item in items if not item["isHidden"])[:MAX_ITEMS]
        inside: list[Json] = [{"name": item["name"], "type": item["type"]} for item in shown]
        text = Message(
            "The project is the only folder that may be used: {items} in it, and all below them. "
            "Paths are relative to it, or absolute inside it.",
            items=count_items(len(shown)),
        )
        return Result(
            data={"allowedRoots": {".": inside}},
            text=text,
            context={"path_resolved": "."},
            extras=Extras(parts=(Text(text), Text(json.dumps(inside, ensure_ascii=False, indent=2)))),
        )

    def list_directory(self, request: Request) -> Result:
        with self._workspace.open_folder(request["path"]) as folder:
            items = list(_scan_items(folder, request.checkpoint))
            where = folder.path
        visible = _sort_items(item for item in items if request["showHidden"] or not item["isHidden"])
        shown = visible[:MAX_ITEMS]
        hidden = len(items) - len(visible)
        text = join_sentences(
            Message("Directory listing of '{path}' ({items}).", path=where, items=count_items(len(shown))),
            Message("Truncated: {total} in all. LS lists the rest page by page.", total=len(visible))
            if len(shown) < len(visible)
            else "",
            Message("Not listed: {count} hidden (showHidden).", count=hidden) if hidden else "",
        )
        return Result(
            data={
                "path": where,
                "items": list(shown),
                "totalItems": len(visible),
                "truncated": len(shown) < len(visible),
            },
            text=text,
            stats={"total_items": len(visible), "hidden": len(items) - len(visible)},
            context={"path_resolved": where},
        )

    def file_info(self, request: Request) -> Result:
        with self._workspace.open_entry(request["path"], follow=False) as entry:
            is_link = stat.S_ISLNK(entry.stat.st_mode)
        with self._workspace.open_entry(request["path"], follow=True) as entry:
            info, path = entry.stat, entry.path
        about: JsonObject = {
            **build_facts(path, info),
            "directory": path.rpartition("/")[0] or ".",
            "extension": os.path.splitext(path)[1],
            "lastAccessed": format_time(info.st_atime),
            "created": format_time(getattr(info, "st_birthtime", None)),
            "permissions": info.st_mode,
            "mode": stat.filemode(info.st_mode),
            "isDirectory": stat.S_ISDIR(info.st_mode),
            "isFile": stat.S_ISREG(info.st_mode),
            "isSymbolicLink": is_link,
        }
        text = (
            Message(
                "Information about '{path}': {type}, last modified {time}.",
                path=path,
                type=about["type"],
                time=about["lastModified"],
            )
            if about["size"] is None
            else Message(
                "Information about '{path}': {type}, {size}, last modified {time}.",
                path=path,
                type=about["type"],
                size=about["sizeFormatted"],
                time=about["lastModified"],
            )
        )
        return Result(data={"info": about}, text=text, context={"path_resolved": path})


def _scan_items(folder: OpenHandle, checkpoint: Checkpoint) -> Iterator[JsonObject]:
    base = "" if folder.path == "." else f"{folder.path}/"
    with os.scandir(folder.fd) as entries:
        for number, entry in enumerate(entries):
            if number % _CHECK_EVERY == 0:
                checkpoint()
            path = base + to_text(os.fsencode(entry.name))
            if IgnoreRules().is_left_out(tuple(path.split("/")), is_folder=True):
                continue  # our own stored outputs
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since we saw its name
            yield {**build_facts(path, info), "permissions": info.st_mode, "isHidden": entry.name.startswith(".")}


def _sort_items(items: Iterator[JsonObject]) -> list[JsonObject]:
    return sorted(items, key=lambda item: (item["type"] != "directory", str(item["name"])))
