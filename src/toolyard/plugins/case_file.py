"""Add a test case to a plugin's own ``cases.json``: the arguments of a call and the expected answer.

What stands in the file stays as it is written, and the case comes last. The file is then there whole or as before. Only
plugins of the home's and the project's own folders are written to: what is shipped, linked or given for one run belongs
to others. A case never changes what may run: where the command line reads ``cases.json`` itself, it is refused.
"""

import json
import os
import stat
from pathlib import Path

from toolyard.errors import ConfigError, UsageError
from toolyard.message import Message
from toolyard.plugins.cases import FILE, MAX_BYTES, MAX_CASES
from toolyard.plugins.plugin import Origin, Plugin
from toolyard.plugins.roots import list_roots
from toolyard.plugins.state_file import lock_file, write_private_file
from toolyard.protocol.json import Json, JsonObject

MAX_NAME = 80
_LINE = 118  # a case that is longer stands on several lines
_NEW_MODE = 0o644


def is_own_plugin(plugin: Plugin, *, project: Path, home: Path) -> bool:
    """Return whether the plugin really lies in a plugin folder of this home or this project."""
    roots = (root for root in list_roots(project, home) if root.origin in (Origin.HOME, Origin.PROJECT))
    own = {os.path.realpath(root.folder) for root in roots}
    return plugin.origin is not Origin.SHIPPED and not own.isdisjoint((str(plugin.folder), str(plugin.folder.parent)))


def add_case(plugin: Plugin, *, home: Path, name: str, arguments: JsonObject, expect: JsonObject) -> str:
    """Write a case and return its name, made unique. Raises UsageError, ConfigError.

    Writers of one ``home`` take turns by a file there: the plugin's folder is a source, and gets nothing but the case.
    """
    if plugin.fingerprint is not None and FILE in plugin.fingerprint.files:
        raise UsageError(
            Message(
                "plugin.test_file_in_command",
                "the command line of {name} names {file}: a test there would change what runs",
                name=plugin.name,
                file=FILE,
            )
        )
    file = plugin.folder / FILE
    try:
        with lock_file(home / f".{FILE}.lock"):
            raw, mode = _read_file(file)
            cases = _parse_cases(raw)
            same = next((one for one in cases if _case_content(one) == (arguments, expect)), None)
            if same is not None:
                raise UsageError(
                    Message(
                        "plugin.test_already",
                        "{file} has this test already: '{name}'",
                        file=FILE,
                        name=same.get("name", ""),
                    )
                )
            free = _unique_name(_to_one_line(name), {str(one.get("name", "")) for one in cases})
            case = _format_case({"name": free, "args": arguments, "expect": expect})
            content = _append_case(raw.decode(), case, is_first=not cases).encode()
            if len(content) > MAX_BYTES:
                raise UsageError(
                    Message(
                        "plugin.would_larger_mib",
                        "{file} would be larger than {value} MiB",
                        file=FILE,
                        value=MAX_BYTES >> 20,
                    )
                )
            write_private_file(file, content)
            file.chmod(mode)  # it is a source like the others, and not for its owner only
    except OSError as error:
        raise ConfigError(
            Message(
                "plugin.cannot_changed", "{file} cannot be changed: {error}", file=file, error=error.strerror or error
            )
        ) from error
    return free


def _read_file(file: Path) -> tuple[bytes, int]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"[]", _NEW_MODE
    with os.fdopen(fd, "rb") as stream:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(Message("plugin.no_ordinary_file", "{file} is no ordinary file", file=FILE))
        return stream.read(MAX_BYTES + 1), stat.S_IMODE(info.st_mode)


def _parse_cases(raw: bytes) -> list[JsonObject]:
    try:
        raw.decode()
        value: Json = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            Message(
                "plugin.test_cases_unreadable",
                "{file} cannot be read: {error}. Correct it first",
                file=FILE,
                error=error,
            )
        ) from error
    if not isinstance(value, list):
        raise UsageError(
            Message("plugin.test_cases_not_list", "{file} is not a list of cases. Correct it first", file=FILE)
        )
    if len(value) >= MAX_CASES:
        raise UsageError(
            Message(
                "plugin.too_many_test_cases",
                "{file} has {count} cases, and no more than {max_cases} are run: take one out first",
                file=FILE,
                count=len(value),
                max_cases=MAX_CASES,
            )
        )
    return [one if isinstance(one, dict) else {} for one in value]


def _case_content(case: JsonObject) -> tuple[Json, Json]:
    return case.get("args", {}), case.get("expect", {})


def _to_one_line(name: str) -> str:
    """Return a name as one line of printable text."""
    printable = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(printable.split())[:MAX_NAME].strip() or "call"


def _unique_name(name: str, taken: set[str]) -> str:
    return next(one for n in range(1, len(taken) + 2) if (one := name if n == 1 else f"{name} ({n})") not in taken)


def _format_case(case: JsonObject) -> str:
    line = json.dumps(case, ensure_ascii=False)
    return line if len(line) <= _LINE else json.dumps(case, ensure_ascii=False, indent=2).replace("\n", "\n  ")


def _append_case(text: str, case: str, *, is_first: bool) -> str:
    """Insert a case before the closing bracket of ``text``, a JSON list."""
    before = text.rstrip()[:-1].rstrip()
    return f"{before}{'' if is_first else ','}\n  {case}\n]\n"
