"""The files that a program needs to run at all: its installation, and what every program may read of the system.

Its installation is itself, its interpreter, and what they belong to. Of the system it may read some trees and use some
devices. For root those leave out what only root may read in /etc, at any depth. What is added there later counts at the
next start; a file that is closed to others without being replaced counts when Toolyard starts again.
"""

import functools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MAX_LINKS = 16
_MAX_PARENTS = 3
_FIRST_LINE = 256
_MAX_SETTINGS = 64 * 1024
_PROGRAM_FOLDERS = ("bin", "Scripts")
_TOO_WIDE = frozenset({"/", "/usr", "/usr/local", "/home", "/root"})
# /proc shows the memory and environment of a process only to processes of the same confinement
_TREES = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/snap", "/home/linuxbrew",
    "/proc", "/sys", "/var/lib/dbus/machine-id", "/var/lib/ca-certificates", "/var/cache/fontconfig",
    "/run/systemd/resolve", "/run/resolvconf", "/run/current-system",
)  # fmt: skip
# no terminals: whoever may open its own may open those of the user too
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_SETTINGS = "/etc"
_NAME_SERVERS = "/etc/resolv.conf"  # on many systems a link to a file of the program that keeps it
_READABLE_BY_ALL, _ENTERED_BY_ALL = 0o004, 0o001
_MAX_ENTRIES = 50_000  # what is beyond them is not readable


def list_program_trees(program: str, changeable: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the trees and files to read for starting ``program``, an absolute path; they have no links in them.

    A program in a folder ``bin`` belongs to the folder above it, as Python and Node do wherever they are installed,
    unless that is a person's home or holds several programs (``~/.local``): then only the programs beside it are
    readable, which it may start (``uvx`` starts ``uv``). A virtual environment names its base.

    ``changeable`` are folders in which other programs may have written. A link, a script's first line or a virtual
    environment in there leads to an installation of Python, as that of a virtual environment does, or to nothing.
    """
    return tuple(dict.fromkeys(_find_trees(program, changeable, depth=0)))


def is_inside(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it; both are absolute and without links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def resolve_links(path: str) -> str:
    """Return where a path leads; the path itself when it is replaced in that very moment."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def find_program_root(program: str) -> str:
    """Return the folder that a program belongs to by its place."""
    folder = os.path.dirname(program)
    return os.path.dirname(folder) if os.path.basename(folder) in _PROGRAM_FOLDERS else folder


def is_program(path: str) -> bool:
    """Return whether ``path`` is a file that can be run: a binary, or a script that names its interpreter."""
    return os.path.isfile(path) and os.access(path, os.X_OK) and _read_first_line(path).startswith((b"\x7fELF", b"#!"))


def list_packages(folder: Path) -> Iterator[str]:
    """Yield what Node reads for the packages of a program in ``folder``: there, and in the folders above it."""
    for place in (folder, *list(folder.parents)[:_MAX_PARENTS]):
        for name in ("node_modules", "package.json"):
            if os.path.lexists(place / name):
                yield str(place / name)


def list_editable_sources(program: str) -> Iterator[str]:
    """Yield the folders with code that is installed into the virtual environment of ``program`` but lives elsewhere.

    Whoever can write the environment decides on them.
    """
    environment = Path(program).parent.parent
    if (environment / "pyvenv.cfg").exists():
        for file in environment.glob("lib/*/site-packages/*.pth"):
            lines = _read_start(str(file), _MAX_SETTINGS).decode(errors="replace").splitlines()
            yield from (resolve_links(line) for line in lines if os.path.isabs(line) and os.path.isdir(line))


def _find_trees(program: str, changeable: Sequence[str], depth: int) -> Iterator[str]:
    is_believed = True  # until a step stands where another program may have put it
    for link in _follow_links(program):
        root = find_program_root(link)
        if not is_believed:
            yield from _list_python(link)
        elif any(is_inside(link, folder) for folder in changeable):
            is_believed = False
            is_whole = root != os.path.dirname(link) and not _is_too_wide(Path(root))
            if is_whole and not any(is_inside(folder, root) for folder in changeable):
                yield root
            elif not depth and not os.path.islink(link):  # the program itself; what it names may be any file
                yield link
            yield from (tree for base in _read_bases(root) for tree in _list_python(base))
        else:
            yield resolve_links(link)
            if root != os.path.dirname(link):
                yield resolve_links(os.path.dirname(link) if _is_too_wide(Path(root)) else root)
                yield from (tree for base in _read_bases(root) for tree in _find_base(base))
    interpreter = read_interpreter(program)
    if not interpreter or depth >= _MAX_LINKS:
        return
    if is_believed or any(is_inside(interpreter, folder) for folder in changeable):
        yield from _find_trees(interpreter, changeable, depth + 1)
    else:
        yield from _list_python(interpreter)


def is_python(path: str) -> bool:
    """Return whether a path leads to a real Python."""
    return is_program(path) and any(_list_python(path))


def _list_python(program: str) -> Iterator[str]:
    """Yield a Python and its library; nothing if it is something else, whatever its name is."""
    real = resolve_links(program)
    library = os.path.join(os.path.dirname(os.path.dirname(real)), "lib")
    try:
        versions = [name for name in os.listdir(library) if name.startswith("python3")]
    except OSError:
        return
    if is_program(real) and any(os.path.isfile(os.path.join(library, name, "os.py")) for name in versions):
        yield real
        yield library


def _follow_links(path: str) -> Iterator[str]:
    for _ in range(_MAX_LINKS):
        yield path
        try:
            target = os.readlink(path)
        except OSError:
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    real = resolve_links(path)
    if real != path:
        yield real


def _is_too_wide(installation: Path) -> bool:
    """Return whether a folder is no installation of one program: ``~/.cargo`` also holds credentials."""
    if not (installation / "lib").is_dir():
        return True
    return str(installation) in _TOO_WIDE or installation.name == ".local" or installation == Path.home()


def _read_bases(environment: str) -> Iterator[str]:
    """Yield the Python that a virtual environment was made from, as the environment names it."""
    lines = _read_start(os.path.join(environment, "pyvenv.cfg"), _MAX_SETTINGS).decode(errors="replace").splitlines()
    for key, _, value in (line.partition("=") for line in lines):
        if key.strip() == "home" and os.path.isabs(value.strip()):
            yield os.path.join(value.strip(), "python3")


def _find_base(python: str) -> Iterator[str]:
    """Yield the installation of a virtual environment's base, if there really is a Python."""
    if is_program(python):
        folder = Path(resolve_links(os.path.dirname(python)))
        yield str(folder)
        if folder.name in _PROGRAM_FOLDERS and not _is_too_wide(folder.parent):
            yield str(folder.parent)


def read_interpreter(program: str) -> str:
    """Return the interpreter that a script's first line names; empty when it names none."""
    first = _read_first_line(program)
    words = first.removeprefix(b"#!").split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and os.path.isabs(words[0]) else ""


def _read_first_line(path: str) -> bytes:
    return _read_start(path, _FIRST_LINE).partition(b"\n")[0]


def _read_start(path: str, size: int) -> bytes:
    """Return how a file begins; empty when it cannot be read, or is a pipe or a device, which might never answer."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        return os.read(opened, size) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(opened)


@functools.cache
def list_system_trees() -> tuple[str, ...]:
    """Return the folders of the system, without links: only root can change those that stand on the way."""
    return tuple(_list_outermost(map(os.path.realpath, (*_TREES, _SETTINGS, _NAME_SERVERS))))


def list_readable_trees() -> tuple[str, ...]:
    """Return the paths of the system that every program may read, without links."""
    if os.geteuid() != 0:
        return list_system_trees()
    settings = os.path.realpath(_SETTINGS)
    return (*(tree for tree in list_system_trees() if tree != settings), *_read_public(settings).paths)


@dataclass
class _PublicFiles:
    """The outermost paths below a folder of which everybody may read everything."""

    paths: list[str] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=dict)  # that were looked at, and when they last changed
    count: int = 0

    def is_current(self) -> bool:
        try:
            return all(os.lstat(folder).st_ctime_ns == changed for folder, changed in self.folders.items())
        except OSError:
            return False

    def read(self, folder: str, *, is_listed: bool = True) -> bool:
        """Add what everybody may read below ``folder``. Return whether that is all there is, and it can be listed."""
        first, is_public = len(self.paths), is_listed
        self.folders[folder] = os.lstat(folder).st_ctime_ns
        with os.scandir(folder) as entries:
            for entry in entries:
                is_public = self._read_entry(entry) and is_public
        if is_public:
            self.paths[first:] = [folder]
        return is_public

    def _read_entry(self, entry: "os.DirEntry[str]") -> bool:
        self.count += 1
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):  # it gives nothing but what it leads to, if that can be read
            return True
        if self.count > _MAX_ENTRIES or not mode & (_ENTERED_BY_ALL if stat.S_ISDIR(mode) else _READABLE_BY_ALL):
            return False
        if not stat.S_ISDIR(mode):
            self.paths.append(entry.path)
            return True
        return self.read(entry.path, is_listed=bool(mode & _READABLE_BY_ALL))


_known: dict[str, _PublicFiles] = {}


def _read_public(folder: str) -> _PublicFiles:
    known = _known.get(folder)
    if known is None or not known.is_current():
        known = _known[folder] = _PublicFiles()
        try:
            known.read(folder)
        except OSError:  # it changes right now: the next start looks again
            known.folders[folder] = 0
    return known


def _list_outermost(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that exist, without those inside of others."""
    outer = ""
    for path in sorted(filter(os.path.exists, paths), key=lambda path: path.split("/")):
        if not outer or (path != outer and not path.startswith(f"{outer}/")):
            outer = path
            yield path
