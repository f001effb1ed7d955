"""Reads the pages of ``docs/`` as they are in the repository, in one of the two languages of the site.

- The tables of ``docs/README.md`` are the navigation, and so is the table of any other ``README.md``.
- The Chinese site has ``NAME.zh-CN.md`` in place of ``NAME.md``; a page without one stays English and says so.
- A link to the page of the other language leads to the other site; one out of ``docs/`` or to a folder is but text.
- A link whose text is the name of its file or folder is shown with the title of that page.
- A line that is broken between two Chinese characters goes on without a blank.
- The labels of the theme are Chinese on the Chinese site, also those that the theme does not let translators reach.
"""

import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chinese_search import ChineseSearch
from sphinx.application import Sphinx

CHINESE = ".zh-CN.md"
INDEX = "README"
UNTRANSLATED = "> 本页还没有中文版，以下是英文原文。"
LABELS = {
    "Auto light/dark, in dark mode": "跟随系统，当前为深色",
    "Auto light/dark, in light mode": "跟随系统，当前为浅色",
    "Back to top": "返回顶部",
    "Collapse": "收起",
    "Dark mode": "深色模式",
    "Expand": "展开",
    "Home": "首页",
    "Light mode": "浅色模式",
    "Menu": "菜单",
    "Next": "下一页",
    "On this page": "本页内容",
    "Previous": "上一页",
    "Skip to content": "跳到正文",
    "Toggle Light / Dark / Auto color theme": "切换浅色、深色或跟随系统",
    "Toggle site navigation sidebar": "显示或隐藏导航",
    "Toggle table of contents sidebar": "显示或隐藏本页目录",
}
_LABEL = re.compile(rf"(?<=[>\"])(\s*)({'|'.join(map(re.escape, LABELS))})(\s*)(?=[<\"])")
_ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
_BROKEN_LINE = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n *(?=[\u3000-\u9fff\uff00-\uffef])")
_FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]+)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")
_HEADING = re.compile(r"^## (.+)$|^\| \[[^\]]+\]\(([^)#:]+)\.md\)", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_search_language(ChineseSearch)
    app.connect("source-read", _read_page)
    app.connect("html-page-context", _add_language_link)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _is_chinese(app: Sphinx) -> bool:
    return str(app.config.language).startswith("zh")


def _read_page(app: Sphinx, name: str, source: list[str]) -> None:
    page = Page(Path(app.srcdir), name, in_chinese=_is_chinese(app))
    source[0] = page.read()


class Page:
    """A page of the site: its name without suffix, such as ``clients/curl``, and its language."""

    def __init__(self, folder: Path, name: str, *, in_chinese: bool) -> None:
        self._folder, self._name, self._in_chinese = folder, name, in_chinese
        self._is_translated = in_chinese and self._has_translation(name)

    def read(self) -> str:
        """Return the Markdown for Sphinx."""
        text = (self._folder / f"{self._name}{CHINESE if self._is_translated else '.md'}").read_text("utf-8")
        if self._in_chinese and not self._is_translated:
            title, _, rest = text.partition("\n")
            text = f"{title}\n\n{UNTRANSLATED}\n{rest}"
        index = list_entries(text) if posixpath.basename(self._name) == INDEX else ()
        text = _change_outside(_FENCE, text, lambda prose: _LINK.sub(self._rewrite_link, _BROKEN_LINE.sub("", prose)))
        return text + "".join(_make_toctree(caption, names) for caption, names in index)

    def _has_translation(self, name: str) -> bool:
        return (self._folder / f"{name}{CHINESE}").exists()

    def _rewrite_link(self, link: re.Match[str]) -> str:
        text, target, anchor = link["text"], link["target"], link["anchor"] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self._name), target))
        if path.startswith("..") or (self._folder / path).is_dir():
            return text
        if not path.endswith(".md"):
            return link[0]  # a file to download
        name = path.removesuffix(CHINESE).removesuffix(".md")
        is_chinese_target = path.endswith(CHINESE)
        is_own_name = target in {text, f"{text}{INDEX}.md", f"{text}{INDEX}{CHINESE}"}
        title = self._read_title(path) if is_own_name else text
        if is_chinese_target and not self._in_chinese:
            return self._link_other_site(title, f"zh/{name}.html")
        if self._is_translated and not is_chinese_target and self._has_translation(name):
            return self._link_other_site(title, f"../{name}.html")
        if self._in_chinese and not self._is_translated and self._has_translation(name):
            anchor = ""  # the translation has headings of its own
        shown = "" if is_own_name else text
        relative = posixpath.relpath(f"{name}.md", posixpath.dirname(self._name) or ".")
        return f"[{shown}]({relative}{anchor})"

    def _read_title(self, path: str) -> str:
        return (self._folder / path).read_text("utf-8").partition("\n")[0].removeprefix("# ")

    def _link_other_site(self, text: str, path: str) -> str:
        return f'<a href="{"../" * self._name.count("/")}{path}">{text}</a>'


def list_entries(index: str) -> list[tuple[str, list[str]]]:
    """Return the sections of an index page, each with the pages that its table lists, without suffix."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for heading, name in _HEADING.findall(index):
        if heading:
            sections.append((heading, []))
        else:
            sections[-1][1].append(name.removesuffix(".zh-CN"))
    return [(caption, names) for caption, names in sections if names]


def _make_toctree(caption: str, names: list[str]) -> str:
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "".join(f"{name}\n" for name in names) + "```\n"


def _change_outside(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` to everything but what ``kept`` matches."""
    parts, at = [], 0
    for match in kept.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, change(text[at:])])


def _add_language_link(app: Sphinx, name: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    to_root = "../" * name.count("/")
    there = ("../", "English", "en") if _is_chinese(app) else ("zh/", "中文", "zh-CN")
    context["other_language"] = {"url": f"{to_root}{there[0]}{name}.html", "label": there[1], "code": there[2]}


def _finish(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        if _is_chinese(app):
            _translate_labels(Path(app.outdir))
        for page in Path(app.outdir).rglob(f"{INDEX}.html"):  # what a browser gets that asks for the folder
            shutil.copy(page, page.with_name("index.html"))


def _translate_labels(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        page.write_text(_change_outside(_ARTICLE, text, lambda part: _LABEL.sub(_translate_label, part)), "utf-8")


def _translate_label(label: re.Match[str]) -> str:
    return f"{label[1]}{LABELS[label[2]]}{label[3]}"
