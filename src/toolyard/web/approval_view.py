"""One approval with all that a person needs to decide: what would run, what it would change, and who asked for it."""

from toolyard.app import Yard
from toolyard.engine.approvals import to_json
from toolyard.engine.clock import Clock
from toolyard.gateway.chat import Chat
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.store import Record
from toolyard.tools.file_changer import ChangingTool
from toolyard.web.rehearsal import Rehearsed, rehearse

_MAX_EXCERPT = 500


async def whole(yard: Yard, clock: Clock, chat: Chat | None, record: Record) -> JsonObject:
    told = to_json(record)
    plugin = yard.plugins.plugins.get(record.tool)
    argv: Json = list(plugin.command.argv) if plugin and plugin.command else None
    rehearsed = await _rehearsed(yard, clock, record) if record.state == ApprovalState.PENDING else Rehearsed()
    patch = None if rehearsed.patch is None else yard.mask.json([*rehearsed.patch])
    beside: JsonObject = {
        "command_line": argv, "patch": patch, "patch_problem": rehearsed.problem,
        "excerpt": _excerpt(chat, str(told["chat"] or ""), record.caller),
    }  # fmt: skip
    return told | beside


async def _rehearsed(yard: Yard, clock: Clock, record: Record) -> Rehearsed:
    arguments = yard.approvals.reveal(record.id) or record.body.get("arguments")
    try:
        tool = yard.tools.get(record.tool)
    except Failure as failure:
        return Rehearsed(problem=failure.message)
    if not isinstance(tool, ChangingTool) or not isinstance(arguments, dict):
        return Rehearsed()
    return await rehearse(tool, tool.spec, arguments, caller=record.caller, clock=clock)


def _excerpt(chat: Chat | None, id_: str, caller: str) -> str:
    """The last words of the user in the chat that asks, as far as the chat is remembered."""
    found = chat.record(id_, caller) if chat and id_ else None
    rounds = found["rounds"] if found else None
    first = rounds[0] if isinstance(rounds, list) and rounds else None
    sent = first.get("sent") if isinstance(first, dict) else None
    messages = sent.get("messages") if isinstance(sent, dict) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            return _text(message.get("content"))[:_MAX_EXCERPT]
    return ""


def _text(content: Json) -> str:
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""
