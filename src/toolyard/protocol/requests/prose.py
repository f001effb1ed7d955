"""The text around blocks: finds the effective start markers, outside of reasoning, quotes and code.

A marker is effective when it is first on its line and outside of reasoning (``<think>``, ``<thinking>``), code
fences, code spans and block quotes. Fences and code spans follow CommonMark, except that a fence may be indented as
deep as a list requires. Reasoning hides all but its own tags; an unclosed one hides the rest. Every character is read
a bounded number of times, and most of them by one search for the few that matter.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.requests.marks import Marks

_TAG = r"[ \t]*+(?P<slash>/?)[ \t]*+(?i:think(?:ing)?)(?=[\s/>])(?P<rest>[^<>\n]*+(?:\n[^<>\n]*+)?+)>"
OPEN_TAG = compile_pattern(r"<[ \t]*+/?[ \t]*+(?i:think(?:ing)?)(?:[\s/][^<>\n]*+)?+")  # the next line may end it
_THINK = compile_pattern(f"<{_TAG}")
_ANGLE = compile_pattern(f"<(?:<|{_TAG})")
_FENCE_MARKS = ("```", "~~~")
_RUN = re.compile(r"`++")
_RUN_OR_BLANK_LINE = re.compile(r"\\`|(?P<run>`++)|(?P<blank>^[ \t\r]*+\n)", re.MULTILINE)
_QUOTE = re.compile(r" {0,3}>")
_LIST = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"
_FENCE_START = compile_pattern(rf"(?P<indent>{_LIST})(?:(?P<ticks>`{{3,}}+)(?=[^`\n]*+(?:\n|\Z))|(?P<waves>~{{3,}}+))")
_FENCE_END = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+\r?$", re.MULTILINE)


class Verdict(Enum):
    """The outcome of the code span that was open before a block."""

    CODE = auto()  # it was closed after the block: the block is code
    NO_CODE = auto()  # the paragraph ended: the backticks were ordinary characters


@dataclass(frozen=True, slots=True)
class _Fence:
    sort: str
    length: int
    indent: int

    def ends_with(self, match: re.Match[str]) -> bool:
        deepest = 3 if self.indent <= 3 else self.indent + 3
        return match[2][0] == self.sort and len(match[2]) >= self.length and len(match[1]) <= deepest


_NO_FENCE = _Fence("", 0, 0)


class _Mode(Enum):
    """States of the text outside of blocks.

    | mode      | ends with                             | then                                |
    |-----------|---------------------------------------|-------------------------------------|
    | TEXT      | an effective start marker             | a block begins; TEXT again after it |
    |           | a line that opens a fence             | FENCE                               |
    |           | an opening tag outside of a code span | REASONING, one level deep           |
    | FENCE     | a line that closes the fence          | TEXT                                |
    | REASONING | a closing tag of the outermost level  | TEXT; a marker may follow at once   |
    |           | any other tag                         | REASONING, one level more or less   |

    In TEXT the open code spans are counted too; a paragraph ends them all.
    """

    TEXT = auto()
    FENCE = auto()
    REASONING = auto()


_TEXT, _FENCE, _REASONING = _Mode  # globals are faster than class attributes


class _NextMatch:
    """The next mark in a text that may matter; a distant one is searched once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._angle: re.Match[str] | None = None
        self._angle_at = -1
        self._marks = dict.fromkeys(_FENCE_MARKS, -1)

    def next(self, at: int) -> tuple[int, int, re.Match[str] | None]:
        """Return its start and end, and the match if it is a tag; the end of the text if there is none."""
        none = len(self.text)
        if self._angle_at < at:
            self._angle = _ANGLE.search(self.text, at)
            self._angle_at = self._angle.start() if self._angle else none
        begin, end = self._angle_at, self._angle.end() if self._angle else none
        tag = self._angle if self._angle and self._angle["rest"] is not None else None
        for mark in _FENCE_MARKS:
            if self._marks[mark] < at:
                sign = self.text.find(mark[0], at)  # one character is found much faster than three
                position = self.text.find(mark, sign) if sign >= 0 else -1
                self._marks[mark] = position if position >= 0 else none
            if self._marks[mark] < begin:
                begin, end, tag = self._marks[mark], self._marks[mark] + len(mark), None
        return begin, end, tag


class Prose:
    def __init__(self, marks: Marks) -> None:
        self.verdict: Verdict | None = None
        self._marks = marks
        self._ahead = _NextMatch("")
        self._mode = _TEXT
        self._fence = _NO_FENCE  # the one that is open
        self._depth = 0  # of reasoning
        self._leads = False  # only blanks and reasoning stand before this position of the line
        self._line = 0  # start of the current line
        self._looked = -1  # the line whose beginning was checked
        self._spans: dict[int, int] = {}  # open code spans in order: length of backticks, block count
        self._counted = 0  # backticks up to here are in ``_spans``
        self._blocks = 0  # counts the blocks that began while a code span was open

    @property
    def is_idle(self) -> bool:
        """Return whether no earlier text affects the reading of what follows."""
        return self._mode is _TEXT and not (self._spans or self._leads)

    @property
    def is_perhaps_code(self) -> bool:
        """Return whether a code span is open: the text is code if the same backticks come again in the paragraph."""
        return bool(self._spans)

    def read(self, text: str, at: int) -> tuple[int, re.Match[str] | None]:
        """Pass over prose from ``at``; return its end, and the start marker there if one is effective."""
        if text is not self._ahead.text:
            self._ahead = _NextMatch(text)
        begins = at == 0 or text[at - 1] == "\n"
        self._line, self._looked, self._counted = at, -1 if begins else at, at
        while at < len(text):
            if self._mode is _TEXT:
                at, marker = self._read_next(text, at)
                if marker:
                    self._count(text, at)
                    return at, marker
            elif self._mode is _FENCE:
                at = self._counted = self._read_fence(text, at)
            else:
                at = self._counted = self._read_reasoning(text, at)
        self._count(text, at)
        return at, None

    def hold(self) -> None:
        """Begin a block while a code span is open: from now on ``verdict`` decides about it."""
        self._blocks += 1
        self.verdict = None

    def pass_over(self, block: str) -> None:
        """Read the text of that block, as far as it may be code."""
        for match in _RUN_OR_BLANK_LINE.finditer(block):
            if match["blank"]:
                self._end_paragraph()
                return
            if match["run"] and len(match["run"]) in self._spans:
                self._toggle_span(len(match["run"]))

    def _read_next(self, text: str, at: int) -> tuple[int, re.Match[str] | None]:
        """Read up to the next mark that may matter, and past it."""
        begin = at if self._leads else -1  # from here only blanks may precede a mark that is first
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
                if self._mode is _FENCE and self._fence.sort == "`" and self._fence.length in self._spans:
                    self._toggle_span(self._fence.length)  # backticks opened in a sentence end like a fence
                self._end_paragraph()
                self._counted = text.find("\n", lively) + 1 or len(text)
                return self._counted, None
        if tag is None or tag["slash"] or tag["rest"].endswith("/"):
            return end, None
        return self._read_tag(text, tag, begin), None

    def _opens_fence(self, text: str) -> bool:
        match = _FENCE_START.match(text, self._line)
        if match:
            mark = match["ticks"] or match["waves"]
            self._mode, self._fence = _FENCE, _Fence(mark[0], len(mark), len(match["indent"]))
        return match is not None

    def _read_fence(self, text: str, at: int) -> int:
        for match in _FENCE_END.finditer(text, at):
            if self._fence.ends_with(match):
                self._mode = _TEXT
                return match.end()
        return len(text)

    def _read_tag(self, text: str, tag: re.Match[str], begin: int) -> int:
        """Read a tag: an opening one begins reasoning, unless it stands in a code span closed on the same line."""
        self._count(text, tag.start())
        if self._spans:
            line_end = text.find("\n", tag.end()) + 1 or len(text)
            for run in _RUN.finditer(text, tag.end(), line_end):
                if len(run[0]) in self._spans:
                    self._toggle_span(len(run[0]))
                    self._counted = run.end()
                    return run.end()
        self._end_paragraph()
        self._mode, self._depth = _REASONING, 1
        self._leads = begin >= 0 and not text[begin : tag.start()].strip()
        return tag.end()

    def _read_reasoning(self, text: str, at: int) -> int:
        tag = _THINK.search(text, at)
        end = tag.end() if tag else len(text)
        line = text.rfind("\n", at, end) + 1
        if line:
            self._line, self._leads = line, True
        self._looked = self._line
        if tag and not tag["rest"].endswith("/"):
            self._depth += -1 if tag["slash"] else 1
            self._mode = _REASONING if self._depth else _TEXT
        return end

    # --- code spans

    def _count(self, text: str, end: int) -> None:
        """Update the open code spans up to ``end``; only the last paragraph matters unless a block waits for more."""
        at, self._counted = self._counted, max(end, self._counted)
        if not self._spans:
            if text.find("`", at, end) < 0:
                return
            at = max(at, text.rfind("\n\n", at, end) + 1)
        for match in _RUN_OR_BLANK_LINE.finditer(text, at, end):
            if match["blank"]:
                self._end_paragraph()
            elif match["run"]:
                self._toggle_span(len(match["run"]))

    def _toggle_span(self, length: int) -> None:
        opened = self._spans.get(length)
        if opened is None:
            self._spans[length] = self._blocks
            return
        while self._spans.popitem()[0] != length:  # spans opened inside it are code
            pass
        if opened < self._blocks and self.verdict is None:
            self.verdict = Verdict.CODE

    def _end_paragraph(self) -> None:
        self._spans.clear()
        if self.verdict is None:
            self.verdict = Verdict.NO_CODE
