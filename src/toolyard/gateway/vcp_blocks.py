"""Elements of VCPToolBox's chat that its clients know: keys of requests, information blocks, the tool switch, media.

Its clients show HTML in a message, so each of a tool's media becomes the element that plays it, with its bytes in it.
What a client sends back of such a message loses the bytes again: a model cannot read them.
"""

import re
from collections.abc import Iterable
from typing import Final

from toolyard.protocol.json import Json, JsonObject

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


MOST: Final = 4 * 1024 * 1024  # characters of the media of one call
_URI = re.compile(r"data:((image|audio|video)/[\w.+-]+);base64,[A-Za-z0-9+/]+={0,2}")
_ELEMENTS = {"image": '<img src="{}">', "audio": '<audio controls src="{}"></audio>'}
_ELEMENTS["video"] = '<video controls src="{}"></video>'
_WRITTEN = re.compile(
    r'<(?:img|audio controls|video controls) src="data:((?:image|audio|video)/[\w.+-]+);base64,[A-Za-z0-9+/=]*">'
    r"(?:</(?:audio|video)>)?"
)


def fitting_media(content: Iterable[Json]) -> tuple[list[JsonObject], int]:
    """Return the parts that are no text, as far as they fit into one message, and how many do not."""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") != "text"]
    fitting: list[JsonObject] = []
    room = MOST
    for part in parts:
        size = len(str(part))
        if size <= room:
            fitting.append(part)
            room -= size
    return fitting, len(parts) - len(fitting)


def to_html(content: Iterable[Json]) -> str:
    """Return media as elements, one on a line; what does not fit is counted."""
    parts, left_out = fitting_media(content)
    lines = [_element(_uri_of(part)) for part in parts]
    if left_out:
        lines.append(f"({left_out} media too large to be sent)")
    return "\n".join(line for line in lines if line)


def remove_media(text: str) -> str:
    """Return a message without the bytes of its elements; their types stay."""
    return _WRITTEN.sub(r"(\1)", text)


def _element(uri: str) -> str:
    match = _URI.fullmatch(uri)
    return _ELEMENTS[match[2]].format(uri) if match else ""


def _uri_of(part: JsonObject) -> str:
    """Return the data URI of a part in any form that a dialect gives it."""
    for name in ("image_url", "video_url"):
        inner = part.get(name)
        if isinstance(inner, dict):
            return str(inner.get("url", ""))
    sound = part.get("input_audio")
    if isinstance(sound, dict):
        kind = {"mp3": "mpeg"}.get(str(sound.get("format")), str(sound.get("format")))
        return f"data:audio/{kind};base64,{sound.get('data', '')}"
    return ""
