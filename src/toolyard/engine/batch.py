"""A numbered batch: one call that stands for several of the same tool, and their outcomes as one."""

from collections.abc import Sequence

from toolyard.message import Message, join_sentences
from toolyard.protocol.call import ToolCall, split_batch
from toolyard.protocol.envelope import Fault, Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import BatchItem, Extras, Result
from toolyard.protocol.tool import Tool


def split_items(call: ToolCall, tool: Tool) -> list[JsonObject] | None:
    """Split a numbered batch into the arguments of its items; None when it is a single call."""
    if not tool.spec.splits_batches or not all(isinstance(name, str) for name in call.arguments):
        return None  # a name that is no text is refused with the arguments
    return split_batch(call.arguments, (*tool.spec.parameter_names, *tool.spec.synonyms))


def combine_items(items: Sequence[BatchItem]) -> tuple[Result, Fault | None]:
    """Combine the outcomes of all items into one result; a fault only when none of them succeeded."""
    envelopes = [item.outcome.envelope for item in items]
    failed: list[Json] = [
        {"item": str(number), **envelope.error.to_dict()}
        for number, envelope in enumerate(envelopes, 1)
        if envelope.error
    ]
    good = len(items) - len(failed)
    numbered = enumerate(envelopes, 1)
    remarks = [
        Message("call.batch_item", "({number}) {text}", number=number, text=envelope.text)
        for number, envelope in numbered
        if envelope.status is not Status.SUCCESS
    ]
    finished = Message(
        "call.batch_finished",
        "Batch of {count} finished: {good} succeeded, {bad} failed.",
        count=len(items),
        good=good,
        bad=len(failed),
    )
    text = join_sentences(finished, *remarks)
    data: JsonObject = {"results": [envelope.data for envelope in envelopes]}
    if failed:
        data["failed_items"] = failed
    partial = any(envelope.status is not Status.SUCCESS for envelope in envelopes)
    result = Result(data=data, text=text, partial=partial, extras=_find_action(items))
    return result, None if good else envelopes[0].error


def _find_action(items: Sequence[BatchItem]) -> Extras:
    """Return the special action of a batch: a client can do one, and the last is what it is left with."""
    asked = [item.outcome.extras for item in items if item.outcome.extras.action is not None]
    return Extras(action=asked[-1].action, payload=asked[-1].payload) if asked else Extras()
