"""The text around blocks: finds the start markers that count, and none that is thought, quoted or shown as code.

A marker counts when it is the first thing on its line and stands outside reasoning (``<think>``, ``<thinking>``), code
fences, code spans and block quotes. Fences and code spans follow CommonMark, except that a fence may be indented as
deep as a list wants it. Reasoning hides all but its own tags; an unclosed one hides the rest. Every character is
looked at a bounded number of times, and most of them by one search for the few that matter.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.requests.marks import Marks

_TAG = r"[ \t]*+(?P<slash>/?)[ \t]*+(?i:think(?:ing)?)(?=[\s/>])(?P<rest>[^<>\n]*+(?:\n[^<>\n]*+)?+)>"
OPEN_TAG = compile_pattern(r"<[ \t]*+/?[ \t]*+(?i:think(?:ing)?)(?:[\s/][^<>\n]*+)?+")  # what the next line may end
_THINK = compile_pattern(f"<{_TAG}")
_ANGLE = compile_pattern(f"<(?:<|{_TAG})")
_FENCE_MARKS = ("```", "~~~")
_RUN = re.compile(r"`++")
_RUN_OR_BLANK_LINE = re.compile(r"\\`|(?P<run>`++)|(?P<blank>^[ \t\r]*+\n)", re.MULTILINE)
_QUOTE = re.compile(r" {0,3}>")
_LIST = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"
_FENCE = compile_pattern(rf"(?P<indent>{_LIST})(?:(?P<ticks>`{{3,}}+)(?=[^`\n]*+(?:\n|\Z))|(?P<waves>~{{3,}}+))")
_FENCE_END = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+\r?$", re.MULTILINE)


class Verdict(Enum):
    """What became of the code span that was open before a block."""

    CODE = auto()  # it was closed after the block: the block is code
    NO_CODE = auto()  # the paragraph ended: the backticks were mere characters


@dataclass(frozen=True, slots=True)
class _Fence:
    sort: str
    length: int
    indent: int

    def ends_with(self, found: re.Match[str]) -> bool:
        deepest = 3 if self.indent <= 3 else self.indent + 3
        return found[2][0] == self.sort and len(found[2]) >= self.length and len(found[1]) <= deepest


class _NextMatch:
    """The next thing in a text that may matter; what is far away is looked for once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._angle: re.Match[str] | None = None
        self._angle_at = -1
        self._marks = dict.fromkeys(_FENCE_MARKS, -1)

    def next(self, at: int) -> tuple[int, int, re.Match[str] | None]:
        """Where it begins and ends, and the match if it is a tag; at the end of the text if there is none."""
        none = len(self.text)
        if self._angle_at < at:
            self._angle = _ANGLE.search(self.text, at)
            self._angle_at = self._angle.start() if self._angle else none
        begin, end = self._angle_at, self._angle.end() if self._angle else none
        tag = self._angle if self._angle and self._angle["rest"] is not None else None
        for mark in _FENCE_MARKS:
            if self._marks[mark] < at:
                sign = self.text.find(mark[0], at)  # one character is found much faster than three
                found = self.text.find(mark, sign) if sign >= 0 else -1
                self._marks[mark] = found if found >= 0 else none
            if self._marks[mark] < begin:
                begin, end, tag = self._marks[mark], self._marks[mark] + len(mark), None
        return begin, end, tag


class Prose:
    def __init__(self, marks: Marks) -> None:
        self.verdict: Verdict | None = None
        self._marks = marks
        self._ahead = _NextMatch("")
        self._fence: _Fence | None = None
        self._depth = 0  # of reasoning
        self._leads = False  # only blanks and reasoning stand before this place of the line
        self._line = 0  # where the line at hand begins
        self._looked = -1  # the line whose beginning was looked at
        self._spans: dict[int, int] = {}  # open code spans in order: length of their backticks, when they were opened
        self._counted = 0  # up to where backticks are in ``_spans``
        self._blocks = 0  # counts the blocks that began while a code span was open

    @property
    def is_idle(self) -> bool:
        """Whether nothing that stands before has a say in what follows."""
        return not (self._spans or self._fence or self._depth or self._leads)

    @property
    def is_perhaps_code(self) -> bool:
        """Whether a code span is open: what follows is code if the same backticks come again in the paragraph."""
        return bool(self._spans)

    def read(self, text: str, at: int) -> tuple[int, re.Match[str] | None]:
        """Pass over prose from ``at``; give where it ends, and the start marker there if one counts."""
        if text is not self._ahead.text:
            self._ahead = _NextMatch(text)
        begins = at == 0 or text[at - 1] == "\n"
        self._line, self._looked, self._counted = at, -1 if begins else at, at
        while at < len(text):
            if self._fence:
                at = self._counted = self._read_fence(text, at, self._fence)
            elif self._depth:
                at = self._counted = self._read_thinking(text, at)
            else:
                at, marker = self._read_next(text, at)
                if marker:
                    self._count(text, at)
                    return at, marker
        self._count(text, at)
        return at, None

    def hold(self) -> None:
        """A block begins while a code span is open: from now on ``verdict`` says what becomes of it."""
        self._blocks += 1
        self.verdict = None

    def pass_over(self, block: str) -> None:
        """The text of that block, as far as it may be code."""
        for found in _RUN_OR_BLANK_LINE.finditer(block):
            if found["blank"]:
                self._end_paragraph()
                return
            if found["run"] and len(found["run"]) in self._spans:
                self._toggle_span(len(found["run"]))

    def _read_next(self, text: str, at: int) -> tuple[int, re.Match[str] | None]:
        """As far as the next thing that may matter, and past it."""
        begin = at if self._leads else -1  # from where only blanks may stand before a thing that is to be the first
        self._leads = False
        if at == 0 or text[at - 1] == "\n":
            self._line = at
        if begin >= 0 and (marker := self._marks.start.match(text, at)):
            return marker.start(1), marker
        lively, end, tag = self._ahead.next(at)
        if lively >= len(text):
            return len(text), None
        self._line = text.rfind("\n", at, lively) + 1 or self._line
        if self._line != self._looked:
            begin = self._looked = self._line
            if marker := self._marks.start.match(text, self._line):
                return marker.start(1), marker
            if _QUOTE.match(text, self._line) or self._opens_fence(text):
                self._count(text, self._line)
                if self._fence and self._fence.sort == "`" and self._fence.length in self._spans:
                    self._toggle_span(self._fence.length)  # backticks that were opened in a sentence end like a fence
                self._end_paragraph()
                self._counted = text.find("\n", lively) + 1 or len(text)
                return self._counted, None
        if tag is None or tag["slash"] or tag["rest"].endswith("/"):
            return end, None
        return self._read_tag(text, tag, begin), None

    def _opens_fence(self, text: str) -> bool:
        found = _FENCE.match(text, self._line)
        if found:
            mark = found["ticks"] or found["waves"]
            self._fence = _Fence(mark[0], len(mark), len(found["indent"]))
        return found is not None

    def _read_fence(self, text: str, at: int, fence: _Fence) -> int:
        for found in _FENCE_END.finditer(text, at):
            if fence.ends_with(found):
                self._fence = None
                return found.end()
        return len(text)

    def _read_tag(self, text: str, tag: re.Match[str], begin: int) -> int:
        """An opening tag begins reasoning, unless it stands in a code span that is closed on the same line."""
        self._count(text, tag.start())
        if self._spans:
            line_end = text.find("\n", tag.end()) + 1 or len(text)
            for run in _RUN.finditer(text, tag.end(), line_end):
                if len(run[0]) in self._spans:
                    self._toggle_span(len(run[0]))
                    self._counted = run.end()
                    return run.end()
        self._end_paragraph()
        self._depth = 1
        self._leads = begin >= 0 and not text[begin : tag.start()].strip()
        return tag.end()

    def _read_thinking(self, text: str, at: int) -> int:
        found = _THINK.search(text, at)
        end = found.end() if found else len(text)
        line = text.rfind("\n", at, end) + 1
        if line:
            self._line, self._leads = line, True
        self._looked = self._line
        if found and not found["rest"].endswith("/"):
            self._depth += -1 if found["slash"] else 1
        return end

    # --- code spans

    def _count(self, text: str, end: int) -> None:
        """Bring the open code spans up to ``end``; only the last paragraph matters unless a block waits for more."""
        at, self._counted = self._counted, max(end, self._counted)
        if not self._spans:
            if text.find("`", at, end) < 0:
                return
            at = max(at, text.rfind("\n\n", at, end) + 1)
        for found in _RUN_OR_BLANK_LINE.finditer(text, at, end):
            if found["blank"]:
                self._end_paragraph()
            elif found["run"]:
                self._toggle_span(len(found["run"]))

    def _toggle_span(self, length: int) -> None:
        opened = self._spans.get(length)
        if opened is None:
            self._spans[length] = self._blocks
            return
        while self._spans.popitem()[0] != length:  # what was opened inside it is code
            pass
        if opened < self._blocks and self.verdict is None:
            self.verdict = Verdict.CODE

    def _end_paragraph(self) -> None:
        self._spans.clear()
        if self.verdict is None:
            self.verdict = Verdict.NO_CODE
