"""What is said in place of a reply that cannot be read: what happened, why and where, and the text as it came."""

from dataclasses import dataclass

from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.reply import ReplyError


@dataclass(frozen=True, slots=True)
class FailureTexts:
    """The four texts, in this order. ``raw`` is the model's own text, unchanged: each rendering makes it safe."""

    title: str
    error: str
    raw_label: str
    raw: str


def failure_texts(error: ReplyError, language: Language) -> FailureTexts:
    if language is Language.CHINESE:
        place = f"第 {error.line} 行第 {error.column} 列"
        return FailureTexts("⚠️ JSON 解析失败", f"错误: {error.message} ({place})", "原始内容:", error.raw)
    place = f"line {error.line}, column {error.column}"
    return FailureTexts(
        "⚠️ The JSON could not be read", f"Error: {error.message} ({place})", "Original text:", error.raw
    )
