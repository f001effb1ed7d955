"""Patterns for files, in the language of ``.gitignore`` and of ``rg --glob``.

A pattern without a slash names files at any depth; one with a slash is anchored where the search starts. ``*`` and
``?`` stay inside one name, ``**`` crosses folders, ``{a,b}`` stands for either, and a leading ``!`` names all other
files. A name that begins with a dot is matched only by a segment that begins with one, unless hidden files are wanted.

The pattern is followed folder by folder: ``enter_folder`` says what is left of it below a folder, so folders in which
nothing can match are never opened. No pattern is slow (S-18): braces are few, and a segment never looks back.

A pattern may not lead out of the folder that is searched (S-18). A leading slash anchors it at that folder. One that
begins with the folder's own absolute path means the same; one that begins with a folder of the system which the
searched folder does not have was meant for outside.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.workspace.search.wildcard import Segment, compile_path, compile_segment

MAX_CHARS = 1000
MAX_GROUPS = 5
MAX_NESTING = 2
MAX_CHOICES = 200  # patterns that all braces together may stand for
INCOMPLETE = "is not complete: a [ without its ], or a backslash at the end"
GlobState: TypeAlias = frozenset[tuple[int, int]]  # which segments of which choices may match next
_TOKEN = re.compile(r"\\.|\[[!^]?\]?(?:\[:\w+:\]|[^\]])*\]|[^\\\[{},]+|.", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_IMPOSSIBLE = compile_segment("[").pattern
_NOTHING = re.compile(r"(?!.)(?=.)")
_ANY = compile_segment("*")
_SYSTEM = {"bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin",
           "srv", "sys", "tmp", "usr", "var",
           "Applications", "Library", "System", "Users", "Volumes", "private"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NameTest:
    """A test for the files of one folder: a name matches by one of the ``suffixes`` or by ``regex``."""

    suffixes: tuple[str, ...] = ()
    regex: Callable[[str], object] | None = None
    dotted: Callable[[str], object] | None = None  # the same for names that begin with a dot


class FileGlob:
    def __init__(self, pattern: str = "**", *, hidden: bool) -> None:
        """``pattern`` must be valid, see ``parse``; with ``hidden`` a dot at the start of a name is like any other."""
        self._negated = pattern.startswith("!")
        self._hidden = hidden
        self._choices = tuple(map(_compile_pattern, _expand_braces(pattern[self._negated :])))
        self._tests: dict[GlobState, NameTest] = {}
        self.start: GlobState = frozenset(
            step for choice in range(len(self._choices)) for step in self._list_places(choice, 0)
        )

    @classmethod
    def parse(cls, pattern: str, parameter: str, *, hidden: bool) -> "FileGlob":
        """The pattern a caller wrote for ``parameter``; raises Failure when it is none."""
        why = _find_problem(pattern)
        if why is not None:
            raise _invalid_glob(parameter, why)
        glob = cls(pattern, hidden=hidden)
        if not all(map(can_match, glob._choices)):
            raise _invalid_glob(parameter, INCOMPLETE)
        return glob

    def enter_folder(self, state: GlobState, name: str) -> GlobState | None:
        """Return the state below the folder ``name``; None when nothing can match there."""
        dotted = name.startswith(".") and not self._hidden
        places: set[tuple[int, int]] = set()
        for choice, at in state:
            segments = self._choices[choice]
            segment = segments[at]
            if segment is None:
                if not dotted:
                    places.add((choice, at))
                    places.update(self._list_places(choice, at + 1))
            elif at + 1 < len(segments) and not (dotted and not _is_dotted(segment)) and segment.fullmatch(name):
                places.update(self._list_places(choice, at + 1))
        return frozenset(places) if places or (self._negated and not dotted) else None

    def build_name_test(self, state: GlobState) -> NameTest:
        """The test for the files of a folder in this state."""
        test = self._tests.get(state)
        if test is None:
            last = [self._choices[choice][-1] for choice, at in state if at + 1 == len(self._choices[choice])]
            test = self._tests[state] = _compile_test([segment for segment in last if segment], negated=self._negated)
        return test

    def _list_places(self, choice: int, at: int) -> set[tuple[int, int]]:
        """Place ``at`` and, since ``**`` may stand for nothing, the places after it."""
        places = {(choice, at)}
        while self._choices[choice][at] is None:
            at += 1
            places.add((choice, at))
        return places


def literal_text(source: str) -> str | None:
    """The text that a regular expression made by ``compile_segment`` stands for; None when it is not just one text."""
    text = _ESCAPED.sub(r"\1", source)
    return text if re.escape(text) == source else None


def literal_suffix(source: str) -> str | None:
    """Return the required ending of a name, when the expression requires nothing else; ``*`` requires none."""
    return literal_text(source[2:]) if source.startswith(".*") else None


def _compile_test(segments: list[re.Pattern[str]], *, negated: bool) -> NameTest:
    sources = [segment.pattern for segment in segments]
    if negated:
        return NameTest(regex=re.compile(rf"(?!(?:{'|'.join(sources)})\Z).*", re.DOTALL).fullmatch if sources else bool)
    endings = [literal_suffix(source) for source in sources]
    return NameTest(
        tuple(ending for ending in endings if ending is not None),
        _compile_any([source for source, ending in zip(sources, endings, strict=True) if ending is None]),
        _compile_any([segment.pattern for segment in segments if _is_dotted(segment)]),
    )


def _compile_any(sources: list[str]) -> Callable[[str], object] | None:
    return re.compile("|".join(sources), re.DOTALL).fullmatch if sources else None


def _is_dotted(segment: re.Pattern[str]) -> bool:
    return segment.pattern.startswith(r"\.")


def _compile_pattern(pattern: str) -> tuple[Segment, ...]:
    if pattern.endswith("/"):
        return (_NOTHING,)  # it names folders, and only files are asked for
    steps = [step for step in re.split("/+", pattern) if step != "."]
    segments = compile_path("/".join(steps).removeprefix("/") if "/" in pattern else f"**/{pattern}")
    return (*segments, _ANY) if segments[-1] is None else segments


def _expand_braces(pattern: str) -> list[str]:
    """The pattern once for each choice of its braces, or as many as are allowed and one more."""
    outer: list[tuple[list[str], list[str]]] = []  # what stands before each open brace, and its choices so far
    now = [""]
    for sign in _TOKEN.findall(pattern):
        if sign == "{":
            outer.append((now, []))
            now = [""]
        elif sign == "," and outer:
            outer[-1][1].extend(now)
            now = [""]
        elif sign == "}" and outer:
            before, choices = outer.pop()
            now = [start + choice for start in before for choice in (*choices, *now)][: MAX_CHOICES + 1]
        else:
            now = [start + sign for start in now]
    return now


def can_match(segments: tuple[Segment, ...]) -> bool:
    """Return whether a pattern can match anything at all."""
    return not any(segment and segment.pattern == _IMPOSSIBLE for segment in segments)


def _find_problem(pattern: str) -> str | None:
    """Describe what is wrong with the length or the braces of a pattern."""
    if len(pattern) > MAX_CHARS:
        return Message("has {count} characters, and at most {max} are allowed", count=len(pattern), max=MAX_CHARS)
    depth = groups = 0
    for sign in _TOKEN.findall(pattern):
        depth += (sign == "{") - (sign == "}")
        groups += sign == "{"
        if depth < 0:
            return Message("has a }} without its {{; write \\}} for the character itself")
        if depth > MAX_NESTING:
            return Message("has braces in braces more than {max} deep", max=MAX_NESTING)
    if depth:
        return Message("has a {{ without its }}; write \\{{ for the character itself")
    if groups > MAX_GROUPS:
        return Message("has {count} groups of braces, and at most {max} are allowed", count=groups, max=MAX_GROUPS)
    if len(_expand_braces(pattern)) > MAX_CHOICES:
        return Message("stands for more than {max} patterns by its braces", max=MAX_CHOICES)
    return None


def _invalid_glob(parameter: str, why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("The {parameter} {why}.", parameter=parameter, why=why),
        hint=Message("Write a simpler one, such as **/*.py."),
    )


def confine_pattern(
    pattern: str, parameter: str, *, root: str, path: tuple[str, ...], has: Callable[[str], bool]
) -> str:
    """``pattern`` for a search at ``path`` below ``root``; ``has`` tells whether that folder has an entry."""
    sign, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    here = "/".join((root.rstrip("/"), *path))
    if body.startswith(f"{here}/"):
        body = body[len(here) :]
    elif body.startswith(f"{root.rstrip('/')}/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "The {parameter} '{pattern}' does not lead into '{names}', which is searched.",
                parameter=parameter,
                pattern=pattern,
                names="/".join(path),
            ),
            hint=Message("Name the folder in path, and write the pattern relative to it."),
        )
    first = body.lstrip("/").partition("/")[0]
    depth = len(path)
    for step in body.split("/"):
        depth += (step not in ("", ".", "**", "..")) - (step == "..")
        if depth < 0:
            break
    if depth < 0 or (body.startswith("/") and first in _SYSTEM and not has(first)):
        raise Failure(
            ErrorCode.ACCESS_DENIED,
            Message("The {parameter} '{pattern}' leads outside the project.", parameter=parameter, pattern=pattern),
            hint=Message("Write it relative to path, such as **/*.py."),
        )
    if ".." in body.split("/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "The {parameter} '{pattern}' contains '..', which patterns may not.",
                parameter=parameter,
                pattern=pattern,
            ),
            hint=Message("Name the folder in path instead."),
        )
    return sign + body
