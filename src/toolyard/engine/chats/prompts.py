"""Prompt files and variables: texts of the owner that system messages name as ``{{NAME}}``.

    HOME/prompts/                of the owner
    PROJECT/.toolyard/prompts/   of the project; of two with one name this one counts
        NAME.md or NAME.txt      a prompt
        variables.toml           short texts: name = "text"

A prompt may begin with a header between two lines of ``---``: lines of ``key: value``. One that has a ``model``, which
may be empty, is an assistant: clients see it as the model ``assistant/NAME``. Files are looked at whenever a list is
asked for, so a change counts from the next request on.

A name in a system message that nothing fills stays there, is logged once, and is listed until this process ends.
"""

import logging
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolyard.message import Message
from toolyard.protocol.records.assistant_record import AssistantOptions, ReasoningEffort

FOLDER: Final = "prompts"
PROJECT_FOLDER: Final = ".toolyard"
VARIABLES: Final = "variables.toml"
MAX_FILE: Final = 1024 * 1024  # bytes of one
MAX_PROMPTS: Final = 1_000  # of a folder
_MAX_UNFILLED = 500  # names
_SUFFIXES = (".md", ".txt")
NAME: Final = re.compile(r"[^\W_][\w.@#%&^+-]{0,99}")
_HEADER = re.compile(r"\ufeff?---[ \t]*\r?\n((?:[^\n]*\n){0,50}?)---[ \t]*(?:\r?\n|\Z)")
_log = logging.getLogger(__name__)
_KEYS: Final = frozenset({"model", "description", "temperature", "max_tokens", "reasoning_effort"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file or a variable."""

    name: str
    text: str
    place: Path  # the file that it stands in
    header: Mapping[str, str] = field(default_factory=dict)
    is_variable: bool = False

    @property
    def description(self) -> str:
        return self.header.get("description", "")

    def to_assistant(self) -> AssistantOptions | None:
        """Return the options of the assistant that this is; None: it is none. Raises ValueError."""
        if "model" not in self.header:
            return None
        temperature, tokens = self.header.get("temperature"), self.header.get("max_tokens")
        effort = self.header.get("reasoning_effort")
        return AssistantOptions(
            name=self.name,
            instructions=self.text,
            model=self.header["model"],
            temperature=float(temperature) if temperature else None,
            max_tokens=int(tokens) if tokens else None,
            reasoning_effort=ReasoningEffort(effort) if effort else None,
        )


@dataclass(frozen=True, slots=True)
class PromptProblem:
    """A file of a prompt folder that cannot be used as it is, and why."""

    place: Path
    message: str


class Prompts:
    """The prompts of a home and a project, and the names in system messages that nothing fills."""

    def __init__(self, home: Path, project: Path) -> None:
        self._folders = (home / FOLDER, project / PROJECT_FOLDER / FOLDER)
        self._unfilled: dict[str, int] = {}
        self._read: dict[Path, tuple[tuple[int, int, int], list[Prompt], list[PromptProblem]]] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder of the owner and that of the project, whether they are there or not."""
        return self._folders

    def list_prompts(self) -> dict[str, Prompt]:
        """Return the prompts and variables by name."""
        return {prompt.name: prompt for file in self._list_files() for prompt in self._read_file(file)[0]}

    def list_assistants(self) -> list[AssistantOptions]:
        """Return the assistants among the prompts, by name."""
        made: list[AssistantOptions] = []
        for prompt in sorted(self.list_prompts().values(), key=lambda one: one.name.casefold()):
            try:
                assistant = prompt.to_assistant()
            except ValueError:
                continue  # named by list_problems
            made += [assistant] if assistant else []
        return made

    def list_problems(self) -> list[PromptProblem]:
        return [problem for file in self._list_files() for problem in self._read_file(file)[1]]

    def report_unfilled(self, names: Iterable[str]) -> None:
        """Note the names in a prompt that nothing fills; a new one is logged."""
        for name in names:
            if name not in self._unfilled:
                if len(self._unfilled) >= _MAX_UNFILLED:
                    return
                _log.warning("nothing fills {{%s}} in a system message: it stays there as it is", name)
            self._unfilled[name] = self._unfilled.get(name, 0) + 1

    @property
    def unfilled(self) -> Mapping[str, int]:
        """The names that nothing fills, and in how many requests each was."""
        return self._unfilled

    def _list_files(self) -> Iterator[Path]:
        for folder in self._folders:
            try:
                with os.scandir(folder) as entries:
                    names = [entry.name for _, entry in zip(range(MAX_PROMPTS), entries, strict=False)]
            except OSError:
                continue
            # A variable gives way to a file of its name, in the same folder.
            yield from (folder / name for name in sorted(names, key=lambda name: (name != VARIABLES, name)))

    def _read_file(self, file: Path) -> tuple[list[Prompt], list[PromptProblem]]:
        if file.name != VARIABLES and file.suffix not in _SUFFIXES:
            return [], []
        try:
            found = os.stat(file)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            kept = self._read.get(file)
            if kept is None or kept[0] != seen:
                text = _read_text(file)
                prompts, problems = (
                    _parse_variables(file, text) if file.name == VARIABLES else _parse_prompt(file, text)
                )
                kept = self._read[file] = (seen, prompts, problems)
                if len(self._read) > 3 * MAX_PROMPTS:
                    del self._read[next(iter(self._read))]
        except OSError as error:
            return [], [PromptProblem(file, Message("it cannot be read: {reason}", reason=error.strerror or error))]
        return kept[1], kept[2]


def _read_text(file: Path) -> str:
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
    with os.fdopen(fd, "rb") as opened:
        raw = opened.read(MAX_FILE + 1) or b""
    if len(raw) > MAX_FILE:
        raise OSError(27, Message("it is larger than {most} KiB", most=MAX_FILE // 1024))
    return raw.decode("utf-8", "replace")


def _parse_prompt(file: Path, text: str) -> tuple[list[Prompt], list[PromptProblem]]:
    if not NAME.fullmatch(file.stem):
        return [], [PromptProblem(file, _name_problem(file.stem))]
    header = _HEADER.match(text)
    values: dict[str, str] = {}
    for line in header[1].splitlines() if header else ():
        key, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            values[key.strip()] = value.strip().strip("\"'")
    prompt = Prompt(file.stem, text[header.end() :] if header else text.removeprefix("\ufeff"), file, values)
    problems: list[PromptProblem] = []
    if "model" in values and (odd := values.keys() - _KEYS):
        message = Message(
            "'{key}' in its header means nothing: use {known}", key=min(odd)[:50], known=", ".join(sorted(_KEYS))
        )
        problems.append(PromptProblem(file, message))
    try:
        prompt.to_assistant()
    except ValueError as error:
        problems.append(PromptProblem(file, Message("it is no assistant: {reason}", reason=error)))
    return [prompt], problems


def _parse_variables(file: Path, text: str) -> tuple[list[Prompt], list[PromptProblem]]:
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return [], [PromptProblem(file, Message("it is not valid TOML: {reason}", reason=error))]
    prompts: list[Prompt] = []
    problems: list[PromptProblem] = []
    for name, value in values.items():
        if not NAME.fullmatch(name):
            problems.append(PromptProblem(file, _name_problem(name)))
        elif not isinstance(value, str):
            problems.append(PromptProblem(file, Message("'{name}' is no text: put it in quotes", name=name)))
        else:
            prompts.append(Prompt(name, value, file, is_variable=True))
    return prompts, problems


def _name_problem(name: str) -> Message:
    return Message("'{name}' cannot be named in a prompt: use letters, digits, '_', '-' and '.'", name=name[:100])
