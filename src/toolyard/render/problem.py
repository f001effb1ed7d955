"""The texts about a faulty reply, in the language of the rendering.

Problems of a reply that can be read are shorter in Chinese: the kind of fault, and the attachment. Faults that show in
their place are named there. In place of a reply that cannot be read stand what happened, why and where, and the text as
it came.
"""

from dataclasses import dataclass

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import MAX_ATTACHMENTS, Fault, Problem, ProblemCode, ReplyError
from toolyard.protocol.reply import SYNTAX_ERROR

_OF_THE_REPLY = {
    ProblemCode.DUPLICATE_KEY: "回复中有重复的字段，以最后一个为准。",
    ProblemCode.WRONG_TYPE: "think 必须是文本，attachments 必须是对象：类型不对的已修正或略去。",
    ProblemCode.TOO_MANY: f"附件过多，只保留前 {MAX_ATTACHMENTS} 个。",
}
_OF_AN_ATTACHMENT = {
    ProblemCode.UNKNOWN_TYPE: "“{}”的类型未知。",
    ProblemCode.DUPLICATE_KEY: "附件“{}”中有重复的字段，以最后一个为准。",
    ProblemCode.WRONG_TYPE: "附件“{}”的内容类型或位置不对，已修正。",
    ProblemCode.INVALID_ATTACHMENT: "附件“{}”无效，已略去：附件是含有 type 和 content 的对象。",
    ProblemCode.TOO_LARGE: "附件“{}”过大，已略去。",
}
_CHINESE = {
    Fault.TOO_LARGE: "回复太大。",
    Fault.TOO_DEEP: "JSON 嵌套太深。",
    Fault.SYNTAX: "JSON 格式错误",
    Fault.NO_OBJECT: "文本中没有 JSON 对象。",
    Fault.NO_CONTENT: "回复没有 content 字段。",
    Fault.CONTENT_NO_TEXT: "content 必须是文本。",
    Fault.CONTENT_EMPTY: "content 是空的。",
}


def write_problem(problem: Problem, language: Language) -> str:
    chinese = (_OF_THE_REPLY if problem.id is None else _OF_AN_ATTACHMENT).get(problem.code)
    return problem.message if chinese is None or language is not Language.CHINESE else chinese.format(problem.id)


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
