"""Argument checks before an approval is asked for: nobody should approve what cannot run as shown."""

from dataclasses import replace

from toolyard.engine.batch import split_items
from toolyard.message import Message, join_sentences
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.tool import Tool, find_check


def check_call(tool: Tool, call: ToolCall) -> None:
    """Raise Failure unless the tool would begin this call, and every item of it when it is a batch.

    One bad item refuses the whole batch: what is approved is approved as one.
    """
    items = split_items(call, tool)
    if items is None:
        _check_one(tool, call)
        return
    for number, arguments in enumerate(items, 1):
        try:
            _check_one(tool, replace(call, arguments=arguments))
        except Failure as failure:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message(
                    "call.item_batch", "Item {number} of the batch: {message}", number=number, message=failure.message
                ),
                hint=join_sentences(failure.hint, Message("hint.batch_not_run", "Nothing of the batch was run.")),
            ) from failure


def _check_one(tool: Tool, call: ToolCall) -> None:
    arguments = call.arguments if tool.spec.verbatim else accept_arguments(tool.spec, call.arguments)
    if (check := find_check(tool)) is not None:
        check(replace(call, arguments=arguments))
