"""An approval as client JSON, with all a person needs to decide: what would run, what would change, who asked."""

from toolyard.engine.clock import Clock
from toolyard.gateway.chat import Chat
from toolyard.message import to_fields
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.approval_record import Approval
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.tools.file_changer import ChangingTool
from toolyard.web.dry_run import DryRunResult, dry_run
from toolyard.yard.yard import Yard

_MAX_EXCERPT = 500


async def to_json(yard: Yard, clock: Clock, chat: Chat | None, approval: Approval) -> JsonObject:
    plugin = yard.plugins.plugins.get(approval.tool)
    argv: Json = list(plugin.command.argv) if plugin and plugin.command else None
    is_pending = approval.state is ApprovalState.PENDING
    rehearsed = await _preview_change(yard, clock, approval) if is_pending else DryRunResult()
    patch = None if rehearsed.patch is None else yard.mask.json([*rehearsed.patch])
    beside: JsonObject = {
        "command_line": argv, "patch": patch, **to_fields("patch_problem", rehearsed.problem),
        "excerpt": _find_excerpt(chat, approval.chat or "", approval.caller),
    }  # fmt: skip
    return approval.to_json() | beside


async def _preview_change(yard: Yard, clock: Clock, approval: Approval) -> DryRunResult:
    arguments = yard.approvals.reveal(approval.id) or approval.arguments
    try:
        tool = yard.tools.get(approval.tool)
    except Failure as failure:
        return DryRunResult(problem=failure.message)
    if not isinstance(tool, ChangingTool) or not isinstance(arguments, dict):
        return DryRunResult()
    return await dry_run(tool, tool.spec, arguments, caller=approval.caller, clock=clock)


def _find_excerpt(chat: Chat | None, id_: str, caller: str) -> str:
    """Return the last user message of the chat that made the call, if the chat is still remembered."""
    record = chat.record(id_, caller) if chat and id_ else None
    rounds = record["rounds"] if record else None
    first = rounds[0] if isinstance(rounds, list) and rounds else None
    sent = first.get("sent") if isinstance(first, dict) else None
    messages = sent.get("messages") if isinstance(sent, dict) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            return _content_text(message.get("content"))[:_MAX_EXCERPT]
    return ""


def _content_text(content: Json) -> str:
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""
