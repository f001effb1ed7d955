"""WebReadFile and DownloadFile: what a URL has, read or kept; both only when all of it has arrived."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import Media, Part, Text
from toolyard.protocol.tool import Result
from toolyard.tools.operations.arranging import describe_taken_name
from toolyard.tools.operations.command import MAX_NAME_BYTES, Request, format_size, require_plain_name
from toolyard.tools.operations.reading import Reading
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.changes.arranger import Arranger
from toolyard.workspace.changes.undo import Undo
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.safe_fetch import FetchedBody, SafeFetch
from toolyard.workspace.workspace import Workspace

DOWNLOADS = "downloads"
_NO_NAME = "download"


class Fetching:
    def __init__(self, fetch: SafeFetch, arranger: Arranger, undo: Undo, fallback_encodings: Sequence[str]) -> None:
        self._fetch, self._arranger, self._undo, self._fallbacks = fetch, arranger, undo, fallback_encodings

    async def web_read_file(self, request: Request) -> Result:
        """Read it as ReadFile would. Nothing is kept: who wants the file asks for DownloadFile."""
        from tempfile import TemporaryDirectory  # only this needs it, and it takes a while to load

        if request.get("path") is None:
            request.require("url")
        url: str = request.get("url") or request["path"]
        fetched = await in_thread(self._fetch.fetch, url, request.checkpoint)
        name = choose_file_name(fetched)
        with TemporaryDirectory(prefix="toolyard-") as folder:
            workspace = await in_thread(lambda: _store_temporarily(fetched.content, Path(folder), name))
            try:
                result = await Reading(workspace, ReadHistory(Path(folder)), self._fallbacks).read(request, name)
            finally:
                workspace.close()
        return _rewrite_result(result, fetched)

    def download_file(self, request: Request) -> Result:
        requested = request.get("fileName")
        name = require_plain_name(requested, "fileName") if requested else None
        fetched = self._fetch.fetch(request["url"], request.checkpoint)
        path = f"{request.get('downloadDir') or DOWNLOADS}/{name or choose_file_name(fetched)}"
        placed = self._arranger.create(path, fetched.content, request.checkpoint, access=request.access)
        self._undo.record_changes(request.call.id, [placed.change])
        text = join_sentences(
            Message(
                "Downloaded '{path}' ({size}) from '{host}'.",
                path=placed.path,
                size=format_size(len(fetched.content)),
                host=fetched.source.host,
            ),
            describe_taken_name(placed) if placed.is_renamed else "",
        )
        return Result(
            data={
                "applied": True,
                "path": placed.path,
                "originalPath": placed.requested,
                "renamed": placed.is_renamed,
                "size": len(fetched.content),
                "sourceUrl": request["url"],
                "mime": fetched.mime,
            },
            text=text,
            context={"path_resolved": placed.path},
        )


def choose_file_name(fetched: FetchedBody) -> str:
    """A file name out of the URL: whatever it says, one name of harmless characters."""
    name = "".join(
        "_" if unicodedata.category(char)[0] in "CZ" or char in '/\\:*?"<>|' else char
        for char in fetched.source.file_name
    )
    stem, dot, ending = name.rpartition(".")
    room = MAX_NAME_BYTES - len((dot + ending).encode())
    if stem and room > 0:
        name = stem.encode()[:room].decode(errors="ignore") + dot + ending
    return name.encode()[:MAX_NAME_BYTES].decode(errors="ignore").lstrip(".") or _NO_NAME


def _store_temporarily(content: bytes, folder: Path, name: str) -> Workspace:
    """A place of its own for a file that is only passing through."""
    (folder / name).write_bytes(content)
    return Workspace(folder)


def _rewrite_part(part: Part, summary: str, text: str, url: str) -> Part:
    """A part with the new summary, or whose bytes can be had at ``url``."""
    if isinstance(part, Media):
        return replace(part, source=url)
    return Text(text) if part == Text(summary) else part


def _rewrite_result(result: Result, fetched: FetchedBody) -> Result:
    """The result of a read whose file was only passing through."""
    host = Message("Fetched from '{host}'.", host=fetched.source.host)
    text = join_sentences(host, result.text)
    parts = tuple(_rewrite_part(part, result.text, text, fetched.source.url) for part in result.extras.parts)
    data = {key: value for key, value in result.data.items() if key not in ("path", "lastModified")}
    return replace(
        result,
        data={"originalUrl": fetched.source.url, **data},
        text=text,
        context={key: value for key, value in result.context.items() if key != "path_resolved"},
        extras=replace(result.extras, parts=parts),
    )
