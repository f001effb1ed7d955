"""Elements of VCPToolBox's chat that its clients know: keys of requests, information blocks, the tool switch."""

from typing import Final

from toolyard.protocol.json import JsonObject

PAYLOAD: Final = "<!-- VCP_TOOL_PAYLOAD -->"
INFORMATION: Final = "[[VCP调用结果信息汇总:"
INFORMATION_END: Final = "VCP调用结果结束]]"
FORBIDDEN: Final = "[[VCPToolUse=Forbidden]]"
MARK_HISTORY: Final = "mark_history"
HANDLES: Final = ("requestId", "messageId")  # how a client names a request that it may interrupt
EXTRAS: Final = (*HANDLES, "contextTokenLimit", "vcpchatExtensions")  # for the host, never for a model provider


def find_handle(body: JsonObject) -> str:
    """Return the name by which a request can be interrupted; empty without one."""
    named = (body.get(key) for key in HANDLES)
    return next((name for name in named if isinstance(name, str) and name), "")


def write_information_block(tool: str, text: str, *, failed: bool) -> str:
    """Return the block that shows one call to a client."""
    state = "❌ ERROR" if failed else "✅ SUCCESS"
    return f"\n{INFORMATION}\n- 工具名称: {tool}\n- 执行状态: {state}\n- 返回内容: {text}\n{INFORMATION_END}\n"


def write_summary_block(calls: list[tuple[str, bool]]) -> str:
    """Return one line for the calls of a round: their names, and whether each failed."""
    line = "；".join(f"{tool} {'调用失败' if failed else '调用成功'}" for tool, failed in calls)
    return f"\n[本轮工具调用摘要:]\n{line}。\n[本轮工具调用摘要结束]\n"
