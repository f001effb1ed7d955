"""The sheet that a reply is drawn on: its texts and budgets, the escaping of text, and small framed pieces.

A reply of 2 MiB must not become a page of gigabytes or minutes. So colouring, formulas and repeated attachments each
have a budget for the whole reply; anything beyond it is shown too, in its plainest form.

Text is escaped, with invisible characters and direction changes marked. ``escape_text`` is for code and other exact
text and marks every invisible character; ``escape_prose`` is for running text, where joiners and direction marks belong
to the writing of some languages; ``escape_plain`` is for attributes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment

_COLOURED = 100_000  # characters of code
_FORMULAS = 50_000  # characters of TeX
_REPEATED = 1_000_000  # characters of HTML of attachments that were shown before
_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_DIRECTIONS = r"\u202a-\u202e\u2066-\u2069"
_UNSEEN = r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028\u2029\u2060-\u206f\u3164"
_UNSEEN += r"\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
_IN_CODE = re.compile(f"[{_CONTROLS}{_DIRECTIONS}{_UNSEEN}]+")
_IN_PROSE = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]+")
_NAMES = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\x7f": "␡"}  # the pictures that Unicode has


@dataclass(slots=True)
class Budget:
    remaining: int

    def take(self, size: int) -> bool:
        """Take ``size`` from the budget; return whether it was available."""
        if size > self.remaining:
            return False
        self.remaining -= size
        return True


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


@dataclass(slots=True)
class Sheet:
    texts: Texts
    attachments: Mapping[str, Attachment]
    partial: bool = False  # more of it is to come
    writing: str = ""  # the id of the attachment that may be incomplete
    shown_ids: set[str] = field(default_factory=set)  # ids
    html_by_form: dict[tuple[str, bool], str] = field(default_factory=dict)  # by id, and whether in a line
    colouring: Budget = field(default_factory=lambda: Budget(_COLOURED))
    formulas: Budget = field(default_factory=lambda: Budget(_FORMULAS))
    repeats: Budget = field(default_factory=lambda: Budget(_REPEATED))


def escape_text(text: str) -> str:
    return mark_hidden(escape(text))


def escape_prose(text: str) -> str:
    return _IN_PROSE.sub(_mark_character, escape(text))


def escape_plain(text: str) -> str:
    return _IN_CODE.sub(_name_character, escape(text))


def mark_hidden(html: str) -> str:
    """Return ``html``, made from text that may hold such characters, with each of them named."""
    return _IN_CODE.sub(_mark_character, html)


def _mark_character(match: re.Match[str]) -> str:
    return f'<span class="control">{_name_character(match)}</span>'


def _name_character(match: re.Match[str]) -> str:
    return "".join(_NAMES.get(sign) or f"⟨U+{ord(sign):04X}⟩" for sign in match[0])


def render_warning(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="card warning" role="note">⚠️ {escape_text(text)}</{tag}>'


def render_note(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="note" role="note">{escape_text(text)}</{tag}>'


def render_pending(kind: str, *, inline: bool = False) -> str:
    """Return the placeholder of a part that is still being written."""
    tag = "span" if inline else "div"
    return f'<{tag} class="pending" data-kind="{escape_plain(kind)}"></{tag}>'


def render_figure(kind: str, title: str | None, body: str, *, attributes: str = "", label: str = "") -> str:
    """Return a figure. ``body`` and ``label`` are HTML, ``attributes`` too; ``title`` is text."""
    caption = (f'<span class="title">{escape_text(title)}</span>' if title else "") + label
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure class="{kind}"{attributes}>{caption}{body}</figure>\n'


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
