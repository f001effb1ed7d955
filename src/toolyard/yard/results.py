"""The results of a Yard: outcomes in a dialect, full or as a model sees them, and their media.

A model sees a result without secrets and cut to size, with the full envelope stored first. Cutting is loaded with the
first result that is shown: a command that prints a full one needs nothing of it.
"""

import json
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from toolyard.dialects import SHOWN_ONLY, encode, find_envelope, require_dialect
from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.content import (
    Blob,
    Media,
    Part,
    Text,
    content_key,
    drop_path,
    is_stored_path,
    to_reference,
)
from toolyard.protocol.envelope import Envelope, Extras
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.result_limits import Direction
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.protocol.tool_text import ENGLISH
from toolyard.tools.worker_thread import in_thread
from toolyard.yard.state import Basis

if TYPE_CHECKING:
    from toolyard.workspace.outputs import MediaFiles, Outputs


class Results:
    def __init__(self, basis: Basis) -> None:
        self._basis = basis

    def express(
        self,
        call: ToolCall,
        outcome: Outcome,
        dialect: str,
        *,
        shown: bool = False,
        codes: bool = False,
        language: str = ENGLISH,
    ) -> dict[str, Any]:
        """Encode an outcome in a dialect; ``shown`` encodes what a model would see instead of the full result.

        ``language``: of the conversation with the model that reads it.

        ``codes`` adds the codes and the parameters of its sentences to an envelope, for clients that translate them.
        What goes out over HTTP has no exact secret of the host and its plugins in it, shown or not.
        """
        require_dialect(dialect)
        if shown or dialect in SHOWN_ONLY:
            outcome = self._model_view.to_shown(call, outcome, language)
        elif call.origin is Origin.HTTP:
            outcome = self._model_view.mask(outcome)
        encoded = encode(dialect, call, outcome, uuid=str(uuid4()), language=language)
        if not codes:
            return encoded
        if (envelope := find_envelope(dialect, encoded)) is not None:
            envelope.update(outcome.envelope.to_json())
        return encoded

    def to_shown(self, call: ToolCall, outcome: Outcome) -> Envelope:
        """Return the envelope as a model sees it."""
        return self._model_view.to_shown(call, outcome).envelope

    async def load_media(self, source: str) -> Media | None:
        """Return media of a result by the path that its ``data`` refers to; None if they are gone."""
        files = self._media_files
        return await in_thread(lambda: files.load(source))

    async def keep_media(self, outcome: Outcome) -> Outcome:
        """Store the media of an outcome where readers of its envelope can fetch them; its data refers to them.

        Media that a tool read from a file or an address stay where they are. A result whose media cannot be stored is
        kept: its reference has no path, and a warning in the context says why.
        """
        extras = outcome.extras
        if not extras.parts and not extras.attached:
            return outcome
        data, context = outcome.envelope.data, outcome.envelope.context
        media = [part for part in extras.parts if isinstance(part, Media | Blob)]
        warnings: list[Json] = []
        for one in (*media, *extras.attached):
            if is_stored_path(one.source) and (problem := await self._try_save(one)):
                data = {key: drop_path(value, one.source) for key, value in data.items()}
                name = one.name or Message("A medium")
                warnings.append(Message("{name} could not be stored: {problem}.", name=name, problem=problem))
        if media and not extras.content_key:
            key = content_key(data)
            data, extras = {**data, key: [to_reference(one) for one in media]}, replace(extras, content_key=key)
        if warnings:
            earlier = context.get("warnings")
            context = {**context, "warnings": [*(earlier if isinstance(earlier, list) else []), *warnings]}
        return replace(outcome, envelope=replace(outcome.envelope, data=data, context=context), extras=extras)

    async def _try_save(self, media: Media | Blob) -> str:
        """Store one medium; return the problem, or an empty text."""
        files = self._media_files
        try:
            await in_thread(lambda: files.save(media, self._basis.clock.now()))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    @cached_property
    def _media_files(self) -> "MediaFiles":
        from toolyard.workspace.outputs import MediaFiles

        return MediaFiles(self._basis.workspace)

    @cached_property
    def _model_view(self) -> "ModelView":
        from toolyard.workspace.outputs import Outputs

        config, workspace, clock, mask = self._basis.config, self._basis.workspace, self._basis.clock, self._basis.mask
        return ModelView(Outputs(workspace), clock, mask=mask, direction=config.settings.truncation_direction)


class ModelView:
    """Outcomes as a model sees them."""

    def __init__(self, outputs: "Outputs", clock: Clock, *, mask: Mask, direction: Direction = Direction.HEAD) -> None:
        self._outputs, self._clock, self._mask, self._direction = outputs, clock, mask, direction

    def to_shown(self, call: ToolCall, outcome: Outcome, language: str = ENGLISH) -> Outcome:
        """Return the shown outcome: masked, and cut when long, with the full one stored first.

        JSON is stored in short lines: these are easier to page through and to search.
        """
        from toolyard.dialects.model_parts import join_texts, list_parts
        from toolyard.protocol.plugin_answers.plugin_content import to_pretty_json
        from toolyard.protocol.truncation import cut_text, is_too_long, paginate, shorten_params, truncate_envelope

        full = self.mask(outcome)
        envelope = shorten_params(full.envelope)
        skip = envelope.context.get("truncation_skip") is True
        if not is_too_long(join_texts(list_parts(call, full, language)), skip=skip):
            return replace(full, envelope=envelope)
        text = join_texts(list_parts(call, full, language, write_json=to_pretty_json))
        piece = cut_text(text, self._direction)
        pages = paginate(text, piece.preview, self._direction)
        stored, problem = None, ""
        try:
            full_text = json.dumps(full.envelope.to_dict(), ensure_ascii=False, indent=2)
            stored = self._outputs.save(call.tool, full_text, pages.text, self._clock.now())
        except OSError as error:
            problem = error.strerror or str(error)
        short = truncate_envelope(envelope, piece, self._direction, stored=stored, pages=pages, problem=problem)
        outcomes = [full, *(item.outcome for item in full.batch)]
        media = [part for one in outcomes for part in one.extras.parts if isinstance(part, Media)]
        parts: tuple[Part, ...] = (Text(short.text), Text(piece.preview), *media)
        extras = replace(full.extras, parts=parts, note="", content_key="", details=None)
        return replace(full, envelope=short, extras=extras, batch=())

    def mask(self, outcome: Outcome) -> Outcome:
        """Mask the exact secrets of the host and its plugins in every part of an outcome."""
        data = self._mask.mask_known(outcome.envelope.data)
        if data is outcome.envelope.data:  # no secret is known
            return outcome
        context = self._mask_object(outcome.envelope.context) or {}
        return replace(
            outcome,
            envelope=replace(outcome.envelope, data=data if isinstance(data, dict) else {}, context=context),
            arguments=self._mask_object(outcome.arguments) or {},
            extras=self._mask_extras(outcome.extras),
            batch=tuple(item._replace(outcome=self.mask(item.outcome)) for item in outcome.batch),
        )

    def _mask_extras(self, extras: Extras) -> Extras:
        before, after = (text if text is None else self._mask.text(text) for text in (extras.before, extras.after))
        parts = tuple(self._mask_part(part) for part in extras.parts)
        note = self._mask.text(extras.note)
        return replace(
            extras,
            parts=parts,
            note=note,
            before=before,
            after=after,
            payload=self._mask.mask_known(extras.payload),
            details=self._mask_object(extras.details),
            mcp=self._mask_object(extras.mcp),
        )

    def _mask_part(self, part: Part) -> Part:
        """Mask a part and keep its kind, so that a dialect can still write it as its plugin did."""
        original = self._mask.mask_known(part.original)
        if isinstance(part, Text):
            return replace(part, text=self._mask.text(part.text), original=original)
        return replace(part, original=original)

    def _mask_object(self, value: JsonObject | None) -> JsonObject | None:
        masked = self._mask.mask_known(value)
        return masked if isinstance(masked, dict) else None
