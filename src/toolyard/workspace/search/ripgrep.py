"""The programs that search for us, ripgrep or our own interpreter where there is none, and what they are given.

Each runs in a process of its own that ends with the search. It starts inside a folder that is already open, by the
folder's descriptor and not by its name, so that a folder renamed or swapped for a link meanwhile changes nothing. It
inherits no environment and no other descriptors, and neither reads ignore files nor settings nor follows links: it gets
the folders and files that a walk has chosen, in batches, each small enough for a command line. The first batch is
small, so that searching begins while the walk goes on. Without a pattern for files a folder is searched as a whole, and
the files in it that are left out are named; with one each file is named. ripgrep's own engine is linear; PCRE2, for
look-around and backreferences, is not, but its steps are bounded (S-19).
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from toolyard.workspace.search.file_walk import FolderMatches

try:
    from resource import RLIMIT_DATA, prlimit
except ImportError:  # not on this system: then only time bounds the child
    prlimit = None  # type: ignore[assignment]

_MAX_MESSAGE = 8192  # characters
_MAX_LINE = 64 * 1024  # the rest of a longer one tells nothing more
_SPECIAL = re.compile(rb"([\\*?\[\]{}!])")
_BINARY = re.compile(rb"ignoring \./(.*): found binary data at offset \d+", re.DOTALL)
_FAULT = re.compile(rb"(?:rg: )?\./(.*?): (PCRE2: .*|[^:]*?)(?: \(os error (\d+)\))?", re.DOTALL)
_PACKAGES = str(Path(__file__).parents[3])
_RUN = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from toolyard.workspace.search.python_search import main; main()"
)  # fmt: skip
MAX_MEMORY = 2 * 1024**3  # a line of 1 GB has to fit, and the host has to survive
_CHUNK = 256 * 1024
_WAIT_MS = 50  # how long to wait for output before looking at the checkpoint again
_GRACE_S = 1.0
_STEP_INSIDE = "import os, sys; os.fchdir(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
_MOST_CHARS = 100 * 1024  # of names: a whole command line may have 1 MB on the meanest system
_PIECE_CHARS = 32 * 1024
_GROWTH = 4
_MOST_LINKS = 100  # ripgrep complains of each one in a whole folder, which takes its time
_LARGE = 128 * 1024 * 1024  # bytes of a file: a line as long as that and its match fit into memory
_AROUND = 24  # that a name costs besides itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    pattern: str
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    pcre2: bool = False


class SearchProcess:
    def __init__(self, command: Sequence[str | bytes], folder: int, *, stdin: int | IO[bytes] | None = None) -> None:
        """Start ``command`` in the open ``folder``. Raises OSError when it cannot be started."""
        place = f"/proc/self/fd/{folder}"
        by_name = os.path.isdir(place)
        if not by_name:  # no such files, as on macOS: a small program steps inside and becomes the command
            command = [sys.executable, "-I", "-S", "-c", _STEP_INSIDE, str(folder), *command]
        self._process = subprocess.Popen(  # noqa: S603 the command is ours; what a caller wrote is in its arguments
            command,
            cwd=place if by_name else None,
            pass_fds=() if by_name else (folder,),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            start_new_session=True,
        )
        self._pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe]
        if prlimit is not None:
            with suppress(OSError):  # it may be over already
                prlimit(self._process.pid, RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))

    def read_output(self, check: Callable[[], None], note: Callable[[bytes], None]) -> Iterator[bytes]:
        """Yield the program's output as it comes; its stderr goes to ``note``."""
        out, err = (pipe.fileno() for pipe in self._pipes)
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(err, select.POLLIN)
        alive = 2
        while alive:
            check()
            for fd, _ in poll.poll(_WAIT_MS):
                chunk = os.read(fd, _CHUNK)
                if not chunk:
                    poll.unregister(fd)
                    alive -= 1
                elif fd == err:
                    note(chunk)
                else:
                    yield chunk

    def wait(self) -> int:
        """Its exit code, negative when a signal ended it. The output must have been read to the end."""
        return self._process.wait()

    def stop(self) -> None:
        """End it now, with all that it may have started."""
        if self._process.poll() is None:  # else its number may already be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # the system itself may hold it, on a dead network drive
                self._process.wait(_GRACE_S)
        for pipe in self._pipes:
            pipe.close()


@dataclass(frozen=True, slots=True)
class FolderPart:
    """Files of one folder that are searched together."""

    below: str  # the folder, from the start: empty, or "a/b/"
    files: Sequence[str]
    whole: bool  # the folder stands for them; a binary file is then left as soon as it is known for one
    excluded: Sequence[str] = ()  # files of the folder that it does not stand for

    @property
    def size(self) -> int:
        names = (*self.excluded, "") if self.whole else self.files
        return sum(map(len, names)) + len(names) * (len(self.below) + _AROUND)


@dataclass(slots=True)
class Batch:
    hidden: bool  # whether a folder also stands for its files with a dot in front
    parts: list[FolderPart] = field(default_factory=list)
    files: int = 0
    size: int = 0

    def split_off_large(self, folder: int) -> "tuple[Batch, list[str]]":
        """The batch without its largest files, which are below the open ``folder``, and the paths of those."""
        smaller, large = Batch(self.hidden), []
        for piece in self.parts:
            names = {name for name in piece.files if _read_size(piece.below + name, folder) > _LARGE}
            rest = [name for name in piece.files if name not in names]
            smaller.parts.append(replace(piece, files=rest, excluded=(*piece.excluded, *names) if piece.whole else ()))
            smaller.files += len(rest)
            large += [piece.below + name for name in sorted(names)]
        return smaller, large

    def list_targets(self) -> Iterator[bytes]:
        for piece in self.parts:
            if piece.whole:
                yield os.fsencode(piece.below)
            else:
                yield from (os.fsencode(piece.below + name) for name in piece.files)

    def list_excluded(self) -> Iterator[bytes]:
        for piece in self.parts:
            yield from (os.fsencode(piece.below + name) for name in piece.excluded)


class Engine(Protocol):
    """Something that searches batches of files and answers as ``rg --json`` does."""

    first_batch: int  # how many files to begin with
    largest_batch: int  # and how many to search in one batch
    parallel_batches: int  # how many batches to search at the same time

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        """Search the files of ``batch``, which are below the open ``folder``."""
        ...

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        """Search one open file; ``folder`` is any open folder."""
        ...


def find_ripgrep() -> str | None:
    """The program: the one installed beside our interpreter, else the system's. None when there is none."""
    from shutil import which  # slow to import, and only a search needs it

    for place in (str(Path(sys.executable).parent), None):
        program = which("rg", path=place)
        if program is not None and os.path.isabs(program):  # never one from the folder we happen to be in
            return program
    return None


class Ripgrep:
    first_batch = 4000  # a few milliseconds of the walk
    largest_batch = 1_000_000
    parallel_batches = 2  # it uses all processors by itself: the second one only fills the gaps at start and end

    def __init__(self, program: str) -> None:
        self._program = program

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        arguments = [*self._base_command(query), "--max-depth=1"]
        arguments.append("--debug")  # only then it tells which files are binary
        if batch.hidden:
            arguments += ["--hidden", "--glob=!.git"]
        excluded = [b"--glob=!/" + _escape_glob(path) for path in batch.list_excluded()]
        return SearchProcess([*arguments, *excluded, "--", *(b"./" + path for path in batch.list_targets())], folder)

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        return SearchProcess([*self._base_command(query), "--text", "--", "-"], folder, stdin=file)

    def _base_command(self, query: Query) -> Iterator[str]:
        yield from (self._program, "--json", "--no-config", "--no-ignore", "--no-mmap")
        yield "--ignore-case" if query.ignore_case else "--case-sensitive"
        yield from (f"--before-context={query.before}", f"--after-context={query.after}")
        if query.literal:
            yield "--fixed-strings"
        if query.multiline:
            yield from ("--multiline", "--multiline-dotall")
        if query.pcre2:
            yield "--pcre2"
        yield f"--regexp={query.pattern}"


@dataclass(slots=True)
class ErrorOutput:
    """The stderr of a search, read line by line. A name with a newline in it is miscounted at worst by one."""

    binary: set[bytes] = field(default_factory=set)  # files that are
    faults: dict[str, tuple[str, int]] = field(default_factory=dict)  # by path from the start: what, errno or 0
    message: str = ""  # its own words, when it could not search at all
    _rest: bytes = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:_MAX_LINE]
        for line in lines:
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if b"DEBUG|" in line[:16]:
            if match := _BINARY.search(line):
                self.binary.add(match[1])
        elif match := _FAULT.fullmatch(line):
            path, what, number = match.groups()
            self.faults[_decode(path)] = (_decode(what), int(number or 0))
        elif len(self.message) < _MAX_MESSAGE:
            self.message += _decode(line.removeprefix(b"rg: ")) + "\n"


def _decode(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _escape_glob(path: bytes) -> bytes:
    """A path as a pattern that matches it. Patterns must be UTF-8: a byte that is none is any one byte."""
    escaped = _SPECIAL.sub(rb"\\\1", path).decode(errors="surrogateescape").encode(errors="replace").decode()
    blank = escaped[-1:] if escaped[-1:].isspace() else ""  # which does not count at the end of a pattern
    return f"{escaped.removesuffix(blank)}{{{blank}}}".encode() if blank else escaped.encode()


class PythonEngine:
    first_batch = largest_batch = 4000  # one interpreter's work for some tens of milliseconds, so that starting it pays
    parallel_batches = min(os.cpu_count() or 1, 8)

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        from tempfile import TemporaryFile  # slow to import and seldom needed

        pieces = [(piece.below, list(piece.files), piece.whole) for piece in batch.parts]
        with TemporaryFile() as job:  # not a pipe: it must not wait for us while we wait for it
            job.write(json.dumps(pieces).encode())
            job.seek(0)
            return SearchProcess(_build_command(query, "batch"), folder, stdin=job)

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        return SearchProcess(_build_command(query, "file"), folder, stdin=file)


def _build_command(query: Query, mode: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _RUN, _PACKAGES, json.dumps(asdict(query)), mode]


def build_batches(
    folders: Iterable[FolderMatches], *, whole: bool, hidden: bool, first: int, most: int
) -> Iterator[Batch]:
    """``first`` files fill the first batch, each of the others as many times more, up to ``most``."""
    batch = Batch(hidden)
    for folder in folders:
        for piece in _split_folder(folder, whole=whole):
            size = piece.size
            if batch.files >= first or batch.size + size > _MOST_CHARS:
                yield batch
                batch, first = Batch(hidden), min(first * _GROWTH, most)
            batch.parts.append(piece)
            batch.files += len(piece.files)
            batch.size += size
    if batch.files:
        yield batch


def _read_size(path: str, folder: int) -> int:
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0  # gone, which whoever opens it will say


def _has_utf8_names(folder: FolderMatches) -> bool:
    """Return whether the files left out can be named to ripgrep, which takes only UTF-8 for that."""
    try:
        "".join((folder.below, *folder.ignored)).encode()
    except UnicodeEncodeError:
        return not folder.ignored
    return True


def _split_folder(folder: FolderMatches, *, whole: bool) -> Iterator[FolderPart]:
    if not folder.files:
        return
    whole = whole and len(folder.links) <= _MOST_LINKS and _has_utf8_names(folder)
    piece = FolderPart(folder.below, folder.files, whole, folder.ignored if whole else ())
    if piece.size <= _PIECE_CHARS:
        yield piece
        return
    each = max(map(len, folder.files)) + len(folder.below) + _AROUND
    step = max(1, _PIECE_CHARS // each)
    for start in range(0, len(folder.files), step):
        yield FolderPart(folder.below, folder.files[start : start + step], whole=False)
