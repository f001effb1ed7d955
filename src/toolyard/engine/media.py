"""Media of results: stored where readers of the envelope can fetch them, and referenced in ``data``.

Media that a tool read from a file or an address stay where they are. Those that came as bytes, as from a plugin, are
stored by ``save``. A result whose media cannot be stored is kept: its reference has no path, and a warning says why.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from toolyard.message import Message
from toolyard.protocol.extras import Extras
from toolyard.protocol.json import JsonObject

if TYPE_CHECKING:
    from toolyard.protocol.content import Blob, Media

SaveMedia = Callable[["Media | Blob"], Awaitable[None]]
"""Keeps the bytes at their ``source``. Raises OSError."""


class MediaKeeper:
    def __init__(self, save: SaveMedia | None) -> None:
        self._save = save

    async def keep(self, data: JsonObject, extras: Extras) -> tuple[JsonObject, Extras, list[str]]:
        """Store media; return the data with references to them, the extras, and warnings."""
        if not extras.parts and not extras.attached:
            return data, extras, []
        from toolyard.protocol.content import Blob, Media  # most results have none
        from toolyard.protocol.content_reference import content_key, drop_path, is_stored_path, to_reference

        media = [part for part in extras.parts if isinstance(part, Media | Blob)]
        warnings: list[str] = []
        for one in (*media, *extras.attached):
            if is_stored_path(one.source) and (problem := await self._try_save(one)):
                data = {key: drop_path(value, one.source) for key, value in data.items()}
                name = one.name or Message("answer.a_medium", "A medium")
                warnings.append(
                    Message("answer.not_stored", "{name} could not be stored: {problem}.", name=name, problem=problem)
                )
        if not media or extras.content_key:
            return data, extras, warnings
        key = content_key(data)
        return {**data, key: [to_reference(one) for one in media]}, replace(extras, content_key=key), warnings

    async def _try_save(self, media: "Media | Blob") -> str:
        """Store one medium; return the problem, or an empty text."""
        if self._save is None:
            return Message("answer.no_place", "there is no place for it")
        try:
            await self._save(media)
        except OSError as error:
            return error.strerror or str(error)
        return ""
