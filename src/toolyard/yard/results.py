"""The results of a Yard: outcomes in a dialect, full or as a model sees them, and their media."""

from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from toolyard.dialects import DIALECTS, NAMES_CALL, SHOWN_ONLY, encode, find_envelope
from toolyard.errors import UsageError
from toolyard.message import Message
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.tools.thread import in_thread
from toolyard.yard.state import Basis

if TYPE_CHECKING:
    from toolyard.engine.model_view import ModelView
    from toolyard.protocol.content import Blob, Media
    from toolyard.workspace.outputs import MediaFiles


class Results:
    def __init__(self, basis: Basis) -> None:
        self._basis = basis

    def express(
        self, call: ToolCall, outcome: Outcome, dialect: str, *, shown: bool = False, codes: bool = False
    ) -> dict[str, Any]:
        """Encode an outcome in a dialect; ``shown`` encodes what a model would see instead of the full result.

        ``codes`` adds the codes and the parameters of its sentences to an envelope, for clients that translate them.
        What goes out over HTTP has no exact secret of the host and its plugins in it, shown or not.
        """
        require_dialect(dialect)
        if shown or dialect in SHOWN_ONLY:
            outcome = self._model_view.to_shown(call, outcome)
        elif call.origin is Origin.HTTP:
            outcome = self._model_view.mask(outcome)
        encoded = encode(dialect, call, outcome, uuid=str(uuid4()))
        if not codes:
            return encoded
        if (envelope := find_envelope(dialect, encoded, outcome)) is not None:
            envelope.update(outcome.envelope.to_json())
        return encoded

    def to_shown(self, call: ToolCall, outcome: Outcome) -> Envelope:
        """Return the envelope as a model sees it."""
        return self._model_view.to_shown(call, outcome).envelope

    async def load_media(self, source: str) -> "Media | None":
        """Return media of a result by the path that its ``data`` refers to; None if they are gone."""
        files = self._media_files
        return await in_thread(lambda: files.load(source))

    async def save_media(self, media: "Media | Blob") -> None:
        """Keep the bytes of media at their ``source``. Raises OSError."""
        files = self._media_files
        await in_thread(lambda: files.save(media, self._basis.clock.now()))

    @cached_property
    def _media_files(self) -> "MediaFiles":
        from toolyard.workspace.outputs import MediaFiles

        return MediaFiles(self._basis.workspace)

    @cached_property
    def _model_view(self) -> "ModelView":
        from toolyard.engine.model_view import ModelView
        from toolyard.workspace.outputs import Outputs

        config, workspace, clock, mask = self._basis.config, self._basis.workspace, self._basis.clock, self._basis.mask
        return ModelView(Outputs(workspace), clock, mask=mask, direction=config.settings.truncation_direction)


def require_dialect(dialect: str, tool_call_id: str | None = None) -> None:
    """Raise UsageError for an unknown dialect, or one that has no place for the id of a call."""
    if tool_call_id and dialect in DIALECTS and dialect not in NAMES_CALL:
        raise UsageError(
            Message(
                "a result in the dialect '{dialect}' names no call: pass tool_call_id with one of {names}",
                dialect=dialect,
                names=", ".join(NAMES_CALL),
            )
        )
    if dialect not in DIALECTS:
        raise UsageError(
            Message("unknown dialect '{dialect}': choose one of {names}", dialect=dialect, names=", ".join(DIALECTS))
        )
