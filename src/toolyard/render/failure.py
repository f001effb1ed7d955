"""The texts in place of a reply that cannot be read: what happened, why and where, and the text as it came."""

from dataclasses import dataclass

from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.replies.syntax import SYNTAX_ERROR
from toolyard.protocol.reply import Fault, ReplyError

_CHINESE = {
    Fault.TOO_LARGE: "回复太大。",
    Fault.TOO_DEEP: "JSON 嵌套太深。",
    Fault.SYNTAX: "JSON 格式错误",
    Fault.NO_OBJECT: "文本中没有 JSON 对象。",
    Fault.NO_CONTENT: "回复没有 content 字段。",
    Fault.CONTENT_NO_TEXT: "content 必须是文本。",
    Fault.CONTENT_EMPTY: "content 是空的。",
}


@dataclass(frozen=True, slots=True)
class FailureTexts:
    """The four texts, in this order. ``raw`` is the model's text, unchanged: each renderer makes it safe."""

    title: str
    error: str
    raw_label: str
    raw: str


def build_failure_texts(error: ReplyError, language: Language) -> FailureTexts:
    if language is Language.CHINESE:
        place = f"第 {error.line} 行第 {error.column} 列"
        message = error.message if error.fault is None else _CHINESE[error.fault]
        if error.fault is Fault.SYNTAX:  # the place, as JSON parsers word it in every language
            message += error.message.removeprefix(SYNTAX_ERROR)
        return FailureTexts("⚠️ JSON 解析失败", f"错误: {message} ({place})", "原始内容:", error.raw)
    place = f"line {error.line}, column {error.column}"
    return FailureTexts(
        "⚠️ The JSON could not be read", f"Error: {error.message} ({place})", "Original text:", error.raw
    )
