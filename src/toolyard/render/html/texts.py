"""The HTML renderer's own texts, in English and Chinese."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from toolyard.protocol.replies.prompt import Language


class Reason(StrEnum):
    """The reason why a piece of media is not shown."""

    NO_MEDIA = "no_media"
    TYPE = "type"
    BYTES = "bytes"
    TOO_LARGE = "too_large"
    BASE64 = "base64"
    NO_SIZE = "no_size"
    PIXELS = "pixels"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class Texts:
    think: str
    rest: str
    incomplete: str
    missing: str
    mismatched: str
    unknown: str
    unknown_placeholder: str
    too_long: str
    too_deep: str
    cut: str
    rows_cut: str
    not_drawn: str
    directives: str
    formula: str
    remote: str
    load: str
    refused: Mapping[Reason, str]
    chart: str
    elsewhere: str


_ENGLISH = Texts(
    think="Thinking",
    rest="Attachments that are not in the text",
    incomplete="The reply is incomplete: its text broke off.",
    missing='There is no attachment "{id}" for {{{{{type}:{id}}}}}.',
    mismatched='{{{{{type}:{id}}}}} names an attachment of the type "{other}".',
    unknown='The type "{type}" is not known.',
    unknown_placeholder='{{{{{type}:{id}}}}} has the type "{type}", which is not known.',
    too_long="What follows is shown as it was written: the text is too long.",
    too_deep="The text is shown as it was written: it is nested too deeply.",
    cut="Only the first {shown} of {all} characters are shown.",
    rows_cut="Only a part of the data is shown: {shown} of {all}.",
    not_drawn="The diagram is too large to be drawn.",
    directives="Not drawn, because they are settings or actions: {count}",
    formula="The formula is shown as it was written.",
    remote="Not loaded, because it is elsewhere:",
    load="Load",
    refused={
        Reason.NO_MEDIA: "This is neither data nor an address on the web:",
        Reason.TYPE: "Data of this type is not shown:",
        Reason.BYTES: "The data is not what its type says:",
        Reason.TOO_LARGE: "The data is too large to be shown:",
        Reason.BASE64: "The base64 of this data is broken:",
        Reason.NO_SIZE: "The picture does not tell its size:",
        Reason.PIXELS: "The picture has too many pixels to be shown:",
        Reason.SVG: "This SVG is not shown, because it could grow without bound:",
    },
    chart="The data of the chart cannot be read.",
    elsewhere="see {name}",
)
_CHINESE = Texts(
    think="思考过程",
    rest="正文中没有引用的附件",
    incomplete="回复不完整：文本中断。",
    missing="占位符 {{{{{type}:{id}}}}} 没有对应的附件“{id}”。",
    mismatched="占位符 {{{{{type}:{id}}}}} 对应的附件类型是“{other}”。",
    unknown="未知的附件类型“{type}”。",
    unknown_placeholder="占位符 {{{{{type}:{id}}}}} 的类型“{type}”未知。",
    too_long="文本过长，以下按原文显示。",
    too_deep="嵌套过深，按原文显示。",
    cut="只显示前 {shown} 个字符，共 {all} 个。",
    rows_cut="只显示部分数据：{shown} / {all}。",
    not_drawn="图表过大，不绘制。",
    directives="以下设置或动作不绘制，数量：{count}",
    formula="公式按原文显示。",
    remote="未加载的外部内容：",
    load="加载",
    refused={
        Reason.NO_MEDIA: "既不是数据，也不是网址：",
        Reason.TYPE: "不显示此类型的数据：",
        Reason.BYTES: "数据与其声明的类型不符：",
        Reason.TOO_LARGE: "数据过大，不显示：",
        Reason.BASE64: "base64 数据已损坏：",
        Reason.NO_SIZE: "无法得知图片尺寸：",
        Reason.PIXELS: "图片像素过多，不显示：",
        Reason.SVG: "此 SVG 可能无限膨胀，不显示：",
    },
    chart="无法读取图表数据。",
    elsewhere="见 {name}",
)


def find_texts(language: Language) -> Texts:
    return _CHINESE if language is Language.CHINESE else _ENGLISH
