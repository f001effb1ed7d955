"""The fingerprint of a plugin: one digest of everything that decides what would run (S-83).

It covers the manifest, the command line, every file that the command line names, every file of code in the folder and
below, compiled Python too, where links lead, and settings that choose what an interpreter loads. It does not cover what
plugins write while they run (data, caches, logs, other settings), nor installed dependencies and hidden folders
(node_modules, .venv): a review of those would never end. What is in the folders of dependencies does not count even if
the command line names it, so that installing or upgrading them takes no permission away; only a script in the place of
a virtual environment's interpreter does, because no installer puts one there. What Python itself keeps in
``__pycache__`` is left out because it is never read (see ``environment``); anything else in there counts.

Whether it still holds costs one ``stat`` for each file and folder. A folder with more code than the bounds has no
number, and says so in ``problem``.

On the way it finds what the code names: keys of the host, and folders that VCPToolBox keeps in its root and its plugins
share (pictures, diaries, results). An old manifest declares nothing, so the folders that a plugin needs are read from
its code: it names the folder, and it names the project's root. A program that works in several processes needs their
shared memory, which is a folder too. A review shows all that, and the owner may allow fewer or more.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from toolyard.message import Message
from toolyard.plugins.package.command_line import OWN_PYTHON

MAX_FILES = 2000
MAX_BYTES = 256 * 2**20
_MAX_ENTRIES = 100_000
_CHUNK = 2**20
_OVERLAP = 64  # longer than any name that is looked for
_CODE = frozenset({
    ".py", ".pyw", ".pyi", ".pyd", ".pyx", ".pyc", ".pyo", ".pth", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts",
    ".tsx", ".node", ".wasm", ".sh", ".bash", ".zsh", ".rb", ".pl", ".pm", ".php", ".lua", ".tcl", ".ps1", ".psm1",
    ".bat", ".cmd", ".r", ".jl", ".go", ".rs", ".c", ".cs", ".java", ".class", ".jar", ".exe", ".dll", ".so", ".dylib",
})  # fmt: skip
_DEPENDENCY_FOLDERS = frozenset({"node_modules", ".venv", "venv", "site-packages"})
_PYCACHE = "__pycache__"
_CACHED = re.compile(r"[^.]+\.\w+-\d+(?:\.opt-\w+)?\.pyc")  # main.cpython-311.pyc: no module has such a name
# settings that decide what code an interpreter or the loader takes in
_STEERING = re.compile(
    r"PATH|(?:LD|DYLD)_\w+|PYTHON\w+|NODE_(?:OPTIONS|PATH)|PERL5\w*|RUBY(?:LIB|OPT)|LUA_\w+|PHPRC|PHP_INI\w*|CLASSPATH"
    r"|(?:_|JDK_)?JAVA_(?:TOOL_)?OPTIONS|DOTNET_STARTUP_HOOKS|GO(?:FLAGS|PATH|ROOT|ENV)|ENV|BASH_\w+|SHELLOPTS|IFS"
)
# of the addresses under which plugins publish files: see ``PublishKeys``
IMAGE_KEY = "IMAGESERVER_IMAGE_KEY"
FILE_KEY = "IMAGESERVER_FILE_KEY"
PUBLISH_KEYS = frozenset({IMAGE_KEY, FILE_KEY})
FileSignature: TypeAlias = tuple[int, ...]
WRITABLE = frozenset({"image", "file", "dailynote", "knowledge", "VCPAsyncResults", "VCPTimedContacts", "DebugLog"})
SHARED = (*sorted(WRITABLE), "VCPTimedResults", ".file_cache")  # of an installation, as far as they are there
PROCESS_STATE = ("VectorStore", "config", "ToolConfigs")  # where VCPToolBox's own process keeps what it knows
SHARED_MEMORY = "/dev/shm"  # noqa: S108 where the locks of processes are files
READABLE = frozenset({"Agent", "TVStxt"})
_ROOT = re.compile(rb"""PROJECT_BASE_PATH|\.\./\.\.|['"]\.\.['"]|parent\.parent|parents\[""")
_FOLDER = re.compile(rb"""['"/](%s)['"/]""" % "|".join(sorted(WRITABLE | READABLE)).encode())
_PROCESSES = re.compile(rb"\bmultiprocessing\b|\bProcessPoolExecutor\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    digest: str  # empty when there is a problem
    files: Mapping[str, str] = field(default_factory=dict)  # path in the folder -> sha256 of its bytes, or "-> target"
    problem: str = ""
    publish_keys: frozenset[str] = frozenset()  # of the host, which its code or its manifest names
    shared_folders: frozenset[str] = frozenset()  # of VCPToolBox or the system, which its code needs
    signatures: Mapping[str, FileSignature] = field(
        default_factory=dict, compare=False
    )  # path -> its stat when it was read

    def is_current(self) -> bool:
        """Return whether nothing was touched since; only a clock that stands still during a write escapes this."""
        return not self.problem and all(_read_signature(path) == seen for path, seen in self.signatures.items())

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that were scanned."""
        return tuple(path for path, seen in self.signatures.items() if seen and stat.S_ISDIR(seen[0]))


class _UnreviewableError(Exception):
    """Raised when a review cannot cover a folder."""


def compute_fingerprint(
    folder: Path, *, manifest: bytes, command: str, shell: bool, named: Iterable[str], config: Mapping[str, str]
) -> Fingerprint:
    """Compute the fingerprint; ``named`` are the files on the command line, ``config`` the plugin's settings."""
    files: dict[str, str] = {}
    keys = set(find_key_names(manifest))
    folders = FolderMentions()
    seen = {
        path: _read_signature(path) for path in (f"{folder}/{own}" for own in OWN_PYTHON)
    }  # it would be used if it came
    try:
        room = MAX_BYTES
        counted = [path for path in sorted(named) if not _is_installed(folder, path)]
        for path in (*counted, *_find_code(folder, seen)):
            if path in files:
                continue
            if len(files) >= MAX_FILES:
                raise _UnreviewableError(Message("there are more than {most} files of code", most=MAX_FILES))
            files[path], size, named_keys = _digest_file(folder, path, seen, room, folders)
            room -= size
            keys |= named_keys
    except _UnreviewableError as error:
        return Fingerprint(
            digest="",
            problem=Message("{problem}; dependencies belong into node_modules or .venv", problem=str(error)),
            signatures=seen,
        )
    except OSError as error:
        return Fingerprint(
            digest="",
            problem=Message("{path} cannot be read: {error}", path=error.filename or folder, error=error.strerror),
            signatures=seen,
        )
    content = {
        "manifest": hashlib.sha256(manifest).hexdigest(),
        "command": command,
        "shell": shell,
        "files": dict(sorted(files.items())),
        "steering": {key: value for key, value in sorted(config.items()) if _STEERING.fullmatch(key)},
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return Fingerprint(
        digest=digest,
        files=files,
        publish_keys=frozenset(keys),
        shared_folders=folders.result(),
        signatures=seen,
    )


def is_code(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in _CODE


def is_own_folder(name: str) -> bool:
    """Return whether a folder of this name is the plugin's own work, not a dependency."""
    return name not in _DEPENDENCY_FOLDERS and not name.startswith(".")


def _is_installed(folder: Path, path: str) -> bool:
    """Return whether a file that the command line names belongs to the installed dependencies."""
    if not any(part in _DEPENDENCY_FOLDERS for part in Path(path).parts[:-1]):
        return False
    if path not in OWN_PYTHON:
        return True
    with open(folder / path, "rb") as file:
        return file.read(2) != b"#!"


def _find_code(folder: Path, seen: dict[str, FileSignature]) -> list[str]:
    """Return every file of code and every link to a folder, relative to the plugin's folder."""
    code: list[str] = []
    pending, entries = [""], 0
    while pending:
        inner = pending.pop()
        place = os.path.join(folder, inner)
        seen[place] = _read_signature(place)
        with os.scandir(place) as listing:
            for entry in listing:
                entries += 1
                if entries > _MAX_ENTRIES:
                    raise _UnreviewableError(Message("there are more than {most} files", most=_MAX_ENTRIES))
                path = os.path.join(inner, entry.name)
                if not entry.is_dir():
                    is_cached = os.path.basename(inner) == _PYCACHE and _CACHED.fullmatch(entry.name)
                    code += [path] if is_code(entry.name) and not is_cached else []
                elif is_own_folder(entry.name):
                    (code if entry.is_symlink() else pending).append(path)
    return sorted(code)


@dataclass(slots=True)
class FolderMentions:
    """The shared folders and the root that the code of a plugin has named so far."""

    names: set[str] = field(default_factory=set)
    names_root: bool = False
    shares_memory: bool = False

    def scan(self, code: bytes) -> None:
        self.names.update(match[1].decode() for match in _FOLDER.finditer(code))
        self.names_root = self.names_root or bool(_ROOT.search(code))
        self.shares_memory = self.shares_memory or bool(_PROCESSES.search(code))

    def result(self) -> frozenset[str]:
        folders = self.names if self.names_root else set()
        return frozenset({*folders, SHARED_MEMORY} if self.shares_memory else folders)


def _digest_file(
    folder: Path, path: str, seen: dict[str, FileSignature], room: int, folders: FolderMentions
) -> tuple[str, int, set[str]]:
    """Return the digest or link target of ``path``, the bytes read for it, and the publish keys it names."""
    full = os.path.join(folder, path)
    seen[full] = _read_signature(full)
    link = f"-> {os.readlink(full)}" if os.path.islink(full) else ""
    if link and not os.path.isfile(full):
        return link, 0, set()
    fd = os.open(full, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise _UnreviewableError(Message("{path} is no ordinary file", path=path))
        if info.st_size > room:
            raise _UnreviewableError(Message("there are more than {mib} MiB of code", mib=MAX_BYTES >> 20))
        with open(fd, "rb", buffering=0, closefd=False) as file:
            digest, keys = _digest_stream(file, folders)
            return digest + link, info.st_size, keys
    finally:
        os.close(fd)


def _digest_stream(file: IO[bytes], folders: FolderMentions) -> tuple[str, set[str]]:
    digest, keys, last = hashlib.sha256(), set[str](), b""
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        keys.update(find_key_names(last + chunk))
        folders.scan(last + chunk)
        last = chunk[-_OVERLAP:]
    return digest.hexdigest(), keys


def _read_signature(path: str) -> FileSignature:
    """Return a value that changes when a file is written, replaced or linked elsewhere (ctime cannot be set)."""
    try:
        info = os.lstat(path)
        there = os.stat(path) if stat.S_ISLNK(info.st_mode) else info
    except OSError as error:
        return (0, error.errno or 0)
    own = (there.st_mode, there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
    return own if there is info else (*own, info.st_ino, info.st_ctime_ns)


def find_key_names(text: bytes) -> set[str]:
    """Return the keys that a file of a plugin names."""
    return {name for name in PUBLISH_KEYS if name.encode() in text}
