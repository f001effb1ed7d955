"""Problems of a reply that can be read, in the language of the rendering.

In Chinese they are shorter: the kind of fault, and the attachment. Faults that show in their place are named there.
"""

from toolyard.protocol.replies.prompt import Language
from toolyard.protocol.replies.values import MAX_ATTACHMENTS
from toolyard.protocol.reply import Problem, ProblemCode

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


def write_problem(problem: Problem, language: Language) -> str:
    chinese = (_OF_THE_REPLY if problem.id is None else _OF_AN_ATTACHMENT).get(problem.code)
    return problem.message if chinese is None or language is not Language.CHINESE else chinese.format(problem.id)
