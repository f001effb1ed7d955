"""The files that a program was kept from, as it notices them: also those whose error it swallows.

The kernel tells only the program. So Node and Python load a small module of ours before the script of a plugin, which
writes a line to stderr for each path whose opening, listing or change was refused, and changes nothing else. Programs
in other languages are not watched: what they print is searched for the words of a refusal (see ``plugins.advice``).

A plugin could write such lines itself; they are about nothing but its own result.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolyard.plugins.process.launch import Launch

FOLDER: Final = str(Path(__file__).resolve().parent)
NODE_HOOK: Final = os.path.join(FOLDER, "note_refusals.js")
_NODE = re.compile(r"node(?:js)?[\d.]*")
_PYTHON = re.compile(r"python[\d.]*")
_ISOLATED = re.compile(r"-[A-Za-z]*[EIS][A-Za-z]*")
_LINE = re.compile(r"^TOOLYARD REFUSED (\".*\")$", re.MULTILINE)
_MOST = 20


def watch_refusals(launch: Launch) -> Launch:
    """Return a launch whose program notes what it is refused, if it is one that can."""
    if launch.profile is None:
        return launch
    program = Path(launch.argv[0]).name
    seen = replace(launch.profile, read=(*launch.profile.read, FOLDER))
    if _NODE.fullmatch(program) and len(launch.argv) > 1 and not launch.argv[1].startswith("-"):
        return replace(launch, argv=(launch.argv[0], "--require", NODE_HOOK, *launch.argv[1:]), profile=seen)
    if _PYTHON.fullmatch(program) and not any(_ISOLATED.fullmatch(word) for word in launch.argv[1:2]):
        before = launch.environment.get("PYTHONPATH")
        places = f"{FOLDER}{os.pathsep}{before}" if before else FOLDER
        return replace(launch, environment={**launch.environment, "PYTHONPATH": places}, profile=seen)
    return launch


def find_refused_paths(stderr: str, grounds: Iterable[Path]) -> tuple[str, ...]:
    """Return the paths below ``grounds`` that a program noted as refused; what it probes elsewhere means nothing."""
    folders = tuple(f"{ground}/" for ground in grounds)
    found: dict[str, None] = {}
    for line in _LINE.finditer(stderr):
        try:
            path = json.loads(line[1])
        except ValueError:
            continue
        if isinstance(path, str) and f"{path}/".startswith(folders):
            found[path] = None
    return tuple(found)[:_MOST]
