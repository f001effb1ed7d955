"""HTML: tags, quotes and comments are closed, in their order; scripts and styles inside are checked as what they are.

Browsers put up with everything, so most findings are warnings. What may be left out is not asked for (``</li>``), and
attributes and elements may be called anything.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation import Finding, Language, Severity, Unchecked, css, data, finding_at, shift_findings

_TEMPLATE = re.compile(r"\{%|<%|<\?(?:php|=)|\{\{[#/>^!]")
_EXPRESSION = re.compile(r"\{\{[^{}\n]*+\}\}")
_TAG = compile_pattern(r"""<(/?)([a-zA-Z][^\s/>]*+)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)(?P<close>>?)""")
_RUN_ON = re.compile(r"""=\s*+(["'])(?=[^"'<]*+<)[^"']*=\s*+\1""")  # the next attribute's quote closes this one
_UNQUOTED_END = re.compile(r"""=\s*+[^\s"'>]*/\s*\Z""")  # <a href=/here/> is not closed by its slash
_TYPE = re.compile(r"""\btype\s*+=\s*+["']?([^"'\s>]*+)""", re.IGNORECASE)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track",
     "wbr"]
)  # fmt: skip
_MAY_STAY_OPEN = frozenset(
    ["html", "head", "body", "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot",
     "colgroup", "caption", "rt", "rp"]
)  # fmt: skip
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
_SCRIPTS = frozenset(["", "module", "text/javascript", "application/javascript"])
_JSX = frozenset(["text/babel", "text/jsx"])
_DATA = frozenset(["application/json", "application/ld+json", "importmap", "speculationrules"])
_TAGS_PER_STEP = 500


@dataclass(slots=True)
class _OpenTags:
    """The elements that are open, and how often each name is among them."""

    text: str
    opened: list[tuple[str, int]] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def open(self, name: str, start: int) -> None:
        self.opened.append((name, start))
        self.names[name] += 1

    def close(self, name: str, start: int) -> Iterator[Finding]:
        if not self.names[name]:
            yield finding_at(self.text, start, f"`</{name}>` closes nothing", Severity.WARNING, "html:tags")
            return
        while True:
            last, opened = self._pop()
            if last == name:
                return
            yield from self._report_open(last, opened, f" before `</{name}>`")

    def close_all(self) -> Iterator[Finding]:
        while self.opened:
            yield from self._report_open(*self._pop(), "")

    def _pop(self) -> tuple[str, int]:
        name, start = self.opened.pop()
        self.names[name] -= 1
        return name, start

    def _report_open(self, name: str, start: int, before: str) -> Iterator[Finding]:
        if name not in _MAY_STAY_OPEN:
            yield finding_at(self.text, start, f"`<{name}>` is not closed{before}", Severity.WARNING, "html:tags")


def check(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    if _TEMPLATE.search(text):
        raise Unchecked("it is a template, not HTML yet")
    scripts: list[_Tag] = []
    yield from _check_tags(text, scripts, checkpoint)
    if scripts:
        from toolyard.tools.validation.program import check_all

        findings_by_script = check_all([tag.raw for tag in scripts], Language.JAVASCRIPT, checkpoint)
        for tag, findings in zip(scripts, findings_by_script, strict=True):
            yield from shift_findings(findings, text, tag.raw_start)


def _check_tags(text: str, scripts: list["_Tag"], checkpoint: Checkpoint) -> Iterator[Finding]:
    """The tags, styles and data; the scripts are put aside."""
    tags = _OpenTags(text)
    # {{ a < b }} is for a script, not for the browser.
    for number, tag in enumerate(_parse_tags(_EXPRESSION.sub(lambda match: " " * len(match[0]), text))):
        if number % _TAGS_PER_STEP == 0:
            checkpoint()
        if tag.broken:
            yield finding_at(text, tag.start, tag.broken)
            return
        if tag.closes:
            yield from tags.close(tag.name, tag.start)
        elif not tag.is_empty:
            tags.open(tag.name, tag.start)
            whole = replace(tag, raw=text[tag.raw_start : tag.raw_start + len(tag.raw)])
            if whole.language is Language.JAVASCRIPT:
                scripts.append(whole)
            elif whole.language is not None:
                check_raw = css.check if whole.language is Language.CSS else data.check_json
                yield from shift_findings(check_raw(whole.raw, checkpoint), text, tag.raw_start)
    yield from tags.close_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tag:
    start: int
    name: str = ""
    closes: bool = False
    attributes: str = ""
    raw: str = ""  # the text up to the closing tag, of elements that hold nothing else
    raw_start: int = 0
    broken: str = ""  # what is wrong; nothing after it can be parsed

    @property
    def is_empty(self) -> bool:
        slash = self.attributes.rstrip().endswith("/") and not _UNQUOTED_END.search(self.attributes)
        return slash or self.name in _VOID

    @property
    def language(self) -> Language | None:
        """The language of what is in it, if that is to be checked."""
        named = _TYPE.search(self.attributes)
        kind = named[1].lower() if named else ""
        if not self.raw.strip() or ("{{" in self.raw and kind not in _JSX):
            return None  # a template engine may still fill it in
        if self.name == "style":
            return Language.CSS if kind in ("", "text/css") else None
        if self.name == "script":
            return Language.JSON if kind in _DATA else Language.JAVASCRIPT if kind in _SCRIPTS | _JSX else None
        return None


def _parse_tags(text: str) -> Iterator[_Tag]:
    index = 0
    while (start := text.find("<", index)) >= 0:
        index = start + 1
        if text.startswith(("<!", "<?"), start):
            opening = "<!--" if text.startswith("<!--", start) else text[start : start + 2]
            end = text.find("-->" if opening == "<!--" else ">", start + 2)
            if end < 0:
                yield _Tag(start=start, broken=f"`{opening}` is never closed")
                return
            index = end + 1
        elif match := _TAG.match(text, start):
            index = match.end()
            tag = _parse_tag(text, match)
            yield tag
            index += len(tag.raw)


def _parse_tag(text: str, match: re.Match[str]) -> _Tag:
    start, name, attributes = match.start(), match[2].lower(), match[3]
    run_on = _RUN_ON.search(attributes)
    if run_on:
        return _Tag(start=match.start(3) + run_on.start(1), broken=f"`{run_on[1]}` is not closed")
    if not match["close"]:
        return _Tag(start=start, broken=f"the tag `<{match[1]}{name[:40]}` is never closed")
    tag = _Tag(start=start, name=name, closes=bool(match[1]), attributes=attributes)
    if name not in _RAW or tag.closes or tag.is_empty:
        return tag
    end = _RAW[name].search(text, match.end())
    if end is None:
        return _Tag(start=start, broken=f"`<{name}>` is never closed")
    return replace(tag, raw=text[match.end() : end.start()], raw_start=match.end())
