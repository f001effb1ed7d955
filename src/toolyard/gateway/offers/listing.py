"""The text listing of tools, for a model that does not support native ones."""

from collections.abc import Sequence
from typing import Final

from toolyard.protocol.requests.marks import CLOSE, END, ESCAPE_CLOSE, ESCAPE_OPEN, OPEN, START
from toolyard.protocol.tool import ToolSpec
from toolyard.protocol.tool_text import CHINESE, ENGLISH, write_example_request, write_tool

BETWEEN: Final = "\n\n---\n\n"
_NO_TOOLS: Final = {ENGLISH: "No tools are available.", CHINESE: "没有可用的工具。"}
_FORM: Final = f"{START}\ntool_name:{OPEN}NAME{CLOSE},\nparameter:{OPEN}value{CLOSE}\n{END}"
_HEAD: Final = {
    ENGLISH: (
        "# Tools\n\n"
        "You can use the tools below. To call one, write a block like this in your reply, with the start marker first "
        "on its line and not inside a code fence:\n\n{example}\n\n"
        f"tool_name says which tool. Every other field is one of its parameters, with the value between {OPEN} and "
        f"{CLOSE}; leave out optional ones you do not need. Write lists and objects as JSON. A value that itself "
        f"contains such markers goes between {ESCAPE_OPEN} and {ESCAPE_CLOSE}. Several blocks in one reply run at the "
        "same time. End your reply after the blocks: the results come with the next message. Never invent results, and "
        "call no tool that you do not need."
    ),
    CHINESE: (
        "# 工具\n\n"
        "你可以使用下面的工具。需要调用时，在回复中写出如下的请求块，起始标记必须位于行首，不要放进代码块：\n\n"
        "{example}\n\n"
        f"tool_name 是工具名，其余每个字段是它的一个参数，值写在 {OPEN} 和 {CLOSE} 之间；不需要的可选参数可以不写。"
        f"数组和对象写成 JSON。值本身含有这些标记时，写在 {ESCAPE_OPEN} 和 {ESCAPE_CLOSE} 之间。"
        "一次回复可以写多个请求块，它们会同时执行。写完请求块就结束回复，结果会在下一条消息中给出。"
        "不要编造结果，也不要调用不需要的工具。"
    ),
}


def write_listing(specs: Sequence[ToolSpec], language: str) -> str:
    """Return instructions for calling tools and a description of each of ``specs``; every example runs as it is."""
    example = min((block for spec in specs if (block := write_example_request(spec))), key=len, default=_FORM)
    return BETWEEN.join([_HEAD[language].format(example=example), write_tools(specs, language)])


def write_tools(specs: Sequence[ToolSpec], language: str) -> str:
    """Return the text of ``{{VCPAllTools}}``."""
    texts = (write_tool(spec, language) for spec in specs)
    return BETWEEN.join(text for text in texts if text) or _NO_TOOLS[language]
