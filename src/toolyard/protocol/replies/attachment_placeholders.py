"""The ``{{type:id}}`` of a content: their positions, and their problems.

Inside code they are ordinary text. The type may be in any case and have spaces around it; the id is exact but for
blanks around it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolyard.protocol.placeholders import TEXT_END, Tokenizer
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.reply_values import TYPES, Attachment, Problem, ProblemCode

_TOKENIZER = Tokenizer(r"[ \t]{0,8}([A-Za-z]{1,32})[ \t]{0,8}[:：](?!\s*+\})([^{}\n]{1,200}+)")
_FENCES = {mark: re.compile(rf"({mark}(?={mark}{mark}){mark}+)(.*)") for mark in "`~"}
_LEAD = compile_pattern(r"[ \t]*+(?:(?:>|(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]))[ \t]*+)*+")
_LONGEST_LEAD = 64
_DEEPEST = 3
_BLANK_LINE = re.compile(r"\n[ \t\r]*+(?=\n)")
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """``content[start:end]`` refers to the attachment ``id`` of ``type``."""

    type: str
    id: str
    start: int
    end: int


def find_placeholders(content: str) -> Iterator[Placeholder]:
    """Return every placeholder outside code, in order."""
    return map(_to_placeholder, _find_outside_code(content))


def match_placeholder(content: str, start: int, end: int = TEXT_END) -> Placeholder | None:
    """Return the placeholder that begins at ``start`` and does not go beyond ``end``."""
    match = _TOKENIZER.match(content, start, end)
    return _to_placeholder(match) if match else None


def _to_placeholder(match: re.Match[str]) -> Placeholder:
    return Placeholder(match[1].lower(), match[2].strip(), match.start(), match.end())


def find_problems(content: str, attachments: Mapping[str, Attachment]) -> list[Problem]:
    problems: dict[tuple[str, str], Problem] = {}
    used: set[str] = set()
    for match in _find_outside_code(content):
        type_, id_ = match.groups()
        attachment = attachments.get(id_)
        if attachment is None or attachment.type != type_:
            type_, id_ = type_.lower(), id_.strip()
            attachment = attachments.get(id_)
        used.add(id_)
        if attachment is None or attachment.type != type_:
            problems.setdefault((type_, id_), _describe_problem(type_, id_, attachment))
    if not problems and len(used) == len(attachments):
        return []
    unused = [
        Problem(ProblemCode.UNUSED_ATTACHMENT, f'The attachment "{id_}" is not used in the content.', id_)
        for id_ in attachments
        if id_ not in used
    ]
    return [*problems.values(), *unused]


def _describe_problem(type_: str, id_: str, attachment: Attachment | None) -> Problem:
    placeholder = f"{{{{{type_}:{id_}}}}}"
    if attachment is not None:
        message = f'{placeholder} names an attachment of the type "{attachment.type}".'
        return Problem(ProblemCode.MISMATCHED_TYPE, message, id_)
    if type_ not in TYPES:
        return Problem(ProblemCode.UNKNOWN_TYPE, f'{placeholder} has the type "{type_}", which is not known.', id_)
    return Problem(ProblemCode.MISSING_ATTACHMENT, f'There is no attachment "{id_}" for {placeholder}.', id_)


def _find_outside_code(content: str) -> list[re.Match[str]]:
    matches = list(_TOKENIZER.find(content))
    if not matches or ("`" not in content and "~" not in content):
        return matches
    end = _find_paragraph_end(content, matches[-1].end(), len(content))
    if content.find("`", 0, end) < 0 and content.find("~", 0, end) < 0:
        return matches
    spans = list(_find_code(content, end))
    starts = [start for start, _ in spans]
    numbers = [bisect_right(starts, match.start()) - 1 for match in matches]
    return [
        match for match, number in zip(matches, numbers, strict=True) if number < 0 or match.start() >= spans[number][1]
    ]


def _find_code(content: str, end: int) -> Iterator[tuple[int, int]]:
    """Yield spans of code that begin before ``end``: fences, closed or not, and inline code near braces; in order."""
    opened: tuple[re.Match[str], str] | None = None
    text = 0  # start of the text since the last fence
    for match, lead in _find_fences(content, end):
        run, info = match[1], match[2]
        if opened:
            if run.startswith(opened[0][1]) and not info.strip() and _can_end(lead, opened[1]):
                yield opened[0].start(), match.end()
                opened, text = None, match.end()
        elif not (run[0] == "`" and "`" in info):
            yield from _find_inline_code(content, text, match.start())
            opened = match, lead
    if opened:
        yield opened[0].start(), len(content)
    else:
        yield from _find_inline_code(content, text, end)


def _find_fences(content: str, end: int) -> list[tuple[re.Match[str], str]]:
    """Return every run that begins a line, with the text before it: blanks, the marks of lists and quotes."""
    marks = [pattern for mark, pattern in _FENCES.items() if mark in content]
    runs = [match for pattern in marks for match in pattern.finditer(content, 0, end)]
    led = [(match, _text_before(content, match.start())) for match in runs]
    return sorted(((match, lead) for match, lead in led if _LEAD.fullmatch(lead)), key=lambda item: item[0].start())


def _can_end(lead: str, opened: str) -> bool:
    """Return whether a fence may end here: after blanks and quote marks only, and not much deeper than it began."""
    return not lead.strip(" \t>") and len(lead) <= (_DEEPEST if len(opened) <= _DEEPEST else len(opened) + _DEEPEST)


def _text_before(content: str, at: int) -> str:
    """Return the text before ``at`` on its line, or enough of it to see that no fence begins here."""
    first = max(0, at - _LONGEST_LEAD)
    return content[content.rfind("\n", first, at) + 1 or first : at]


def _find_inline_code(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield inline code of the paragraphs with braces between two fences."""
    braces = content.find("{{", start, end) if content.find("`", start, end) >= 0 else -1
    while braces >= 0:
        stop = _find_paragraph_end(content, braces, end)
        yield from _find_spans(content, _find_paragraph_start(content, start, braces), stop)
        start, braces = stop, content.find("{{", stop, end)


def _find_paragraph_end(content: str, at: int, end: int) -> int:
    blank = _BLANK_LINE.search(content, at, end)
    return blank.start() if blank else end


def _find_paragraph_start(content: str, start: int, at: int) -> int:
    """Return the start of the paragraph of ``at``, not before ``start``."""
    line = content.rfind("\n", start, at)
    while line >= 0:
        before = content.rfind("\n", start, line)
        if not content[max(before + 1, start) : line].strip(" \t\r"):
            return line
        line = before
    return start


def _find_spans(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield code between two runs of as many backticks, in one paragraph."""
    runs = [match.span() for match in _TICKS.finditer(content, start, end)]
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[number][1] - runs[number][0], []).append(number)
    number = 0
    while number < len(runs):
        same = later[runs[number][1] - runs[number][0]]
        while same and same[-1] <= number:
            same.pop()
        if same:
            yield runs[number][0], runs[same[-1]][1]
            number = same[-1]
        number += 1
