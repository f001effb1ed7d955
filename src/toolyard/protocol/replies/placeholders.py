"""The ``{{type:id}}`` of a content: where they stand, and what is wrong with them.

Inside code they are ordinary text. The type is taken in any case and with spaces around it; the id is taken as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolyard.protocol.replies.values import TYPES, Attachment, Problem, ProblemCode

_PLACEHOLDER = re.compile(r"\{\{[ \t]{0,8}([A-Za-z]{1,32})[ \t]{0,8}[:：]([^{}\n]{1,200}+)\}\}")
_LINE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})(.*)$|^[ \t\r]*$", re.MULTILINE)  # a fence, or the end of a paragraph
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """``content[start:end]`` asks for the attachment ``id`` of ``type``."""

    type: str
    id: str
    start: int
    end: int


def placeholders(content: str) -> Iterator[Placeholder]:
    """Every placeholder outside code, in order."""
    spans = _code(content) if "{{" in content else []
    starts = [start for start, _ in spans]
    for match in _PLACEHOLDER.finditer(content):
        number = bisect_right(starts, match.start()) - 1
        if (number < 0 or match.start() >= spans[number][1]) and match[2].strip():
            yield Placeholder(match[1].lower(), match[2].strip(), match.start(), match.end())


def placeholder_problems(content: str, attachments: Mapping[str, Attachment]) -> list[Problem]:
    problems: dict[tuple[str, str], Problem] = {}
    used: set[str] = set()
    for found in placeholders(content):
        attachment = attachments.get(found.id)
        used.add(found.id)
        problem = _problem(found, attachment)
        if problem:
            problems.setdefault((found.type, found.id), problem)
    unused = [
        Problem(ProblemCode.UNUSED_ATTACHMENT, f'The attachment "{id_}" is not used in the content.', id_)
        for id_ in attachments
        if id_ not in used
    ]
    return [*problems.values(), *unused]


def _problem(found: Placeholder, attachment: Attachment | None) -> Problem | None:
    shown = f"{{{{{found.type}:{found.id}}}}}"
    if attachment is None and found.type not in TYPES:
        return Problem(ProblemCode.UNKNOWN_TYPE, f'{shown} has the type "{found.type}", which is not known.', found.id)
    if attachment is None:
        return Problem(ProblemCode.MISSING_ATTACHMENT, f'There is no attachment "{found.id}" for {shown}.', found.id)
    if attachment.type != found.type:
        message = f'{shown} names an attachment of the type "{attachment.type}".'
        return Problem(ProblemCode.MISMATCHED_TYPE, message, found.id)
    return None


def _code(content: str) -> list[tuple[int, int]]:
    """Where code stands: fences, closed or not, and inline code of the paragraphs with braces; in order."""
    spans: list[tuple[int, int]] = []
    fence, begin, paragraph = "", 0, 0
    for match in _LINE.finditer(content) if "`" in content or "~~~" in content else ():
        run, info = match[1] or "", match[2] or ""
        if fence:
            if run.startswith(fence) and not info.strip():
                spans.append((begin, match.end()))
                fence, paragraph = "", match.end()
        elif not (run and run[0] == "`" and "`" in info):
            spans += _inline(content, paragraph, match.start())
            fence, begin, paragraph = run, match.start(), match.end()
    return [*spans, (begin, len(content))] if fence else [*spans, *_inline(content, paragraph, len(content))]


def _inline(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Code between two runs of as many backticks, in one paragraph."""
    if content.find("{{", start, end) < 0:
        return
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
