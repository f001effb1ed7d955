"""A new plugin: a small working one, with tests, in the language of its author's choice.

The files are made from those in ``templates/``: words between ``@`` are filled in. The name is checked by the reader
of manifests before anything is written, and nothing is written over.
"""

import json
import re
from enum import StrEnum
from pathlib import Path

from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message
from toolyard.plugins.package.plugin import MANIFEST
from toolyard.protocol.manifests.manifest_parser import read_manifest

_TEMPLATES = Path(__file__).parent / "templates"
_WORD = re.compile(r"@([A-Z_]+)@")
_IGNORED = "config.env\n__pycache__/\nnode_modules/\n.venv/\n"


class Language(StrEnum):
    PYTHON = "python"
    NODE = "node"
    SHELL = "shell"


class TextLanguage(StrEnum):
    """The language of the plugin's texts for models and people."""

    ENGLISH = "en"
    CHINESE = "zh"


_MAIN = {
    Language.PYTHON: ("main.py", "python main.py"),
    Language.NODE: ("main.js", "node main.js"),
    Language.SHELL: ("main.sh", "sh main.sh"),
}


def build_files(name: str, *, language: Language, asynchronous: bool, tongue: TextLanguage) -> dict[str, str]:
    """Return the files of the new plugin, by name. Raises UsageError when the name is not valid."""
    kind = "async" if asynchronous else "sync"
    main, command = _MAIN[language]
    words = {**json.loads(_read_template("texts.json"))[tongue], "NAME": name, "COMMAND": command}
    manifest = _fill_template(f"{kind}.{tongue}.json", words)
    problem = next(iter(read_manifest(manifest).problems), None)
    if problem is not None or json.loads(manifest)["name"] != name:
        reason = f"{problem.message} {problem.fix}" if problem else "write it with letters, digits and _"
        raise UsageError(Message("a plugin cannot be called '{name}': {reason}", name=name, reason=reason))
    return {
        MANIFEST: manifest,
        main: _fill_template(f"{kind}.{language}.txt", words),
        "config.env.example": _fill_template(f"{kind}.config.txt", words),
        "cases.json": _fill_template(f"{kind}.cases.json", words),
        ".gitignore": _IGNORED,
    }


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write the files into a new folder. Raises ToolyardError."""
    if folder.exists():
        raise ToolyardError(Message("there is already a '{folder}': choose another name, or --folder", folder=folder))
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ToolyardError(
            Message("'{folder}' cannot be made: {strerror}", folder=folder, strerror=error.strerror)
        ) from error
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _read_template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _fill_template(name: str, words: dict[str, str]) -> str:
    return _WORD.sub(lambda match: words[match[1]], _read_template(name))
