"""What a model gets to see of an outcome: no secrets, and not more than fits; the whole is stored first."""

import json
from dataclasses import replace

from toolyard.engine.clock import Clock
from toolyard.engine.masking import Mask
from toolyard.protocol.call import ToolCall
from toolyard.protocol.content import Media, Part, Text
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.truncation import Direction, cut, paginate, readable, shorten_params, too_long, truncated
from toolyard.workspace.outputs import Outputs


class Showing:
    def __init__(self, outputs: Outputs, clock: Clock, *, mask: Mask, direction: Direction = Direction.HEAD) -> None:
        self._outputs, self._clock, self._mask, self._direction = outputs, clock, mask, direction

    def shown(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """The outcome as a model sees it: no secrets, and long ones cut, with the whole stored first."""
        outcome = self._masked(outcome)
        envelope = shorten_params(outcome.envelope)
        text = readable(outcome)
        if not too_long(text, skip=envelope.context.get("truncation_skip") is True):
            return replace(outcome, envelope=envelope)
        piece = cut(text, self._direction)
        pages = paginate(text, piece.preview, self._direction)
        stored, problem = None, ""
        try:
            whole = json.dumps(outcome.envelope.to_dict(), ensure_ascii=False, indent=2)
            stored = self._outputs.save(call.tool, whole, pages.text, self._clock.now())
        except OSError as error:
            problem = error.strerror or str(error)
        short = truncated(envelope, piece, self._direction, stored=stored, pages=pages, problem=problem)
        outcomes = [outcome, *(item.outcome for item in outcome.batch)]
        media = [part for one in outcomes for part in one.extras.parts if isinstance(part, Media)]
        parts: tuple[Part, ...] = (Text(short.text), Text(piece.preview), *media)
        return replace(outcome, envelope=short, extras=replace(outcome.extras, parts=parts), batch=())

    def _masked(self, outcome: Outcome) -> Outcome:
        data = self._mask.known(outcome.envelope.data)
        if data is outcome.envelope.data:  # no secret is known
            return outcome
        parts = tuple(Text(self._mask.text(p.text)) if isinstance(p, Text) else p for p in outcome.extras.parts)
        return replace(
            outcome,
            envelope=replace(outcome.envelope, data=data if isinstance(data, dict) else {}),
            extras=replace(outcome.extras, parts=parts),
            batch=tuple(replace(item, outcome=self._masked(item.outcome)) for item in outcome.batch),
        )
