"""Files that the arguments of a call name and only a node has: they are brought here before the call.

A client on another machine names a file by its ``file://`` URL there. Where there is no such file here, the nodes are
asked for it, and the argument names the copy in ``.file_cache`` of the installation, where its plugins may read. What
two nodes have differently is not brought: nobody knows which one is meant. What no node has stays as it was written.
"""

import asyncio
import base64
import binascii
import hashlib
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from toolyard.dialects.vcp_nodes import FILE_TOOL, file_arguments, read_file_data
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.vcp.nodes.node import Node, NodeError

FOLDER: Final = ".file_cache"
MAX_URLS: Final = 16  # of one call
MAX_CACHE: Final = 512 * 2**20  # bytes
ASK_S: Final = 60.0
FRESH_S: Final = 60.0  # how long a copy is used without asking again
_FAILED_S = 30.0
_MAX_FAILED = 1000
_URL = re.compile(r"file://[^\s\"'<>「」{}]{1,4000}(?<![,.;:!?)\]，。；：！？）])")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")


@dataclass(eq=False)
class NodeFiles:
    """The files of the nodes of a server; ``folder`` is the installation's."""

    folder: Path
    list_nodes: Callable[[], Sequence[Node]]
    monotonic: Callable[[], float]
    _running: dict[str, "asyncio.Future[str]"] = field(default_factory=dict)
    _failed: OrderedDict[str, float] = field(default_factory=OrderedDict)  # when no node had it
    _brought: dict[str, float] = field(default_factory=dict)

    async def bring(self, arguments: JsonObject) -> JsonObject:
        """Return arguments that name copies of the files that only a node has. Raises Failure."""
        if not self.list_nodes():
            return arguments
        urls = await asyncio.to_thread(_find_missing, arguments)
        if not urls:
            return arguments
        if len(urls) > MAX_URLS:
            message = Message("The call names more than {most} files of other machines.", most=MAX_URLS)
            raise Failure(ErrorCode.INVALID_PARAM, message)
        copies = await asyncio.gather(*(self._bring_shared(url) for url in urls))
        known = {url: copy for url, copy in zip(urls, copies, strict=True) if copy}
        return _replace(arguments, known) if known else arguments  # type: ignore[return-value]

    async def _bring_shared(self, url: str) -> str:
        """Return the URL of a copy, or nothing; calls at the same time bring it together."""
        running = self._running.get(url)
        if running is None:
            running = self._running[url] = asyncio.ensure_future(self._bring_url(url))
            running.add_done_callback(lambda _: self._running.pop(url, None))
        return await asyncio.shield(running)

    async def _bring_url(self, url: str) -> str:
        place = self.folder / FOLDER / f"{hashlib.sha256(url.encode()).hexdigest()}{_read_suffix(url)}"
        now = self.monotonic()
        if now - self._brought.get(url, -FRESH_S) < FRESH_S and place.exists():
            return place.as_uri()
        if now - self._failed.get(url, -_FAILED_S) < _FAILED_S:
            return ""
        found = await asyncio.gather(*(_ask(node, url) for node in self.list_nodes()))
        contents = {content for content in found if content is not None}
        if len(contents) > 1:
            message = Message("Several nodes have a file {url}, and not the same one.", url=url)
            hint = Message("Send the file itself, or call the tool of the node that has it.")
            raise Failure(ErrorCode.INVALID_PARAM, message, hint=hint)
        if not contents:
            if await asyncio.to_thread(place.exists):
                return place.as_uri()  # as it was when its node was connected
            self._failed[url] = now
            while len(self._failed) > _MAX_FAILED:
                self._failed.popitem(last=False)
            return ""
        try:
            await asyncio.to_thread(_store, place, contents.pop())
        except OSError as error:
            message = Message("The copy of {url} cannot be written: {error}.", url=url, error=error)
            raise Failure(ErrorCode.EXECUTION_ERROR, message) from error
        self._brought = {one: at for one, at in self._brought.items() if now - at < FRESH_S} | {url: now}
        return place.as_uri()


async def _ask(node: Node, url: str) -> bytes | None:
    """Return the file of a node; None when it has none."""
    try:
        async with asyncio.timeout(ASK_S), node.slots:
            answer = await node.call(FILE_TOOL, file_arguments(url))
    except (NodeError, Failure, TimeoutError):
        return None
    data = read_file_data(answer)
    if data is None:
        return None
    with suppress(binascii.Error, ValueError):
        return await asyncio.to_thread(base64.b64decode, data, validate=True)
    return None


def _find_missing(value: Json) -> list[str]:
    """Return the URLs of files that are not on this machine."""
    found = dict.fromkeys(url for text in _list_texts(value) for url in _list_urls(text))
    return [url for url in found if not _is_here(url)]


def _list_urls(text: str) -> list[str]:
    """Return the URLs in a text; one that is all of it may have blanks."""
    whole = text.strip()
    return [whole] if whole.startswith("file://") and "\n" not in whole else _URL.findall(text)


def _list_texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value] if "file://" in value else []
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in values for text in _list_texts(one)]


def _is_here(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.hostname in (None, "localhost") and os.path.exists(unquote(parts.path))
    except ValueError:
        return False


def _replace(value: Json, copies: dict[str, str]) -> Json:
    if isinstance(value, str):
        whole = copies.get(value.strip())
        return whole or _URL.sub(lambda match: copies.get(match[0], match[0]), value)
    if isinstance(value, dict):
        return {key: _replace(one, copies) for key, one in value.items()}
    return [_replace(one, copies) for one in value] if isinstance(value, list) else value


def _read_suffix(url: str) -> str:
    suffix = os.path.splitext(unquote(url.partition("?")[0]))[1]
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def _store(place: Path, content: bytes) -> None:
    """Write a copy, and remove the oldest ones where there are too many. Raises OSError."""
    place.parent.mkdir(exist_ok=True)
    fd, draft = tempfile.mkstemp(dir=place.parent)  # plugins may write there: a name that they cannot have prepared
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        os.replace(draft, place)
    except BaseException:
        os.unlink(draft)
        raise
    entries = [one for one in os.scandir(place.parent) if one.is_file(follow_symlinks=False)]
    total = 0
    for entry in sorted(entries, key=lambda one: -one.stat(follow_symlinks=False).st_mtime):
        total += entry.stat(follow_symlinks=False).st_size
        if total > MAX_CACHE and entry.name != place.name:
            os.unlink(entry.path)
