"""Every file below a folder that a search may look at, and the number of those it may not.

Each folder is opened relative to the one above it and never through a link, so nothing outside is ever listed, whatever
is swapped meanwhile (S-12, S-13). Hidden names, what ``.gitignore`` leaves out, links and special files are counted;
folders that cannot be read are named. ``.git`` and our own ``tool-output`` are always left out: to look into them, one
starts there. At most ``MAX_SEEN`` entries are looked at.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER, IgnoreRules, read_rules, to_byte_text
from toolyard.workspace.private_home import is_private
from toolyard.workspace.search.file_glob import FileGlob, GlobState, NameTest
from toolyard.workspace.search.ignore_sieve import IgnoreSieve

MAX_SEEN = 1_000_000
MAX_DEPTH = 200  # each level keeps one folder open
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GIT = ".git"


@dataclass(slots=True)
class FolderMatches:
    """The matching files of one folder. Names are as the system gives them."""

    below: str  # where it is from the start: empty, or "a/b/"
    files: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)  # of the files' last changes, when wanted
    links: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)  # all its files that a rule leaves out


@dataclass(slots=True)
class SkippedEntries:
    hidden: int = 0
    ignored: int = 0
    special: int = 0
    unreadable: list[tuple[str, int]] = field(default_factory=list)  # path from the start, errno
    stopped: bool = False  # there are more entries than are looked at


@dataclass(slots=True)
class _OpenFolder:
    """A folder on the way: open, with the rules that hold in it and what is left of the pattern."""

    fd: int
    below: str
    path: tuple[str, ...]  # from the root
    rules: IgnoreRules
    sieve: IgnoreSieve
    state: GlobState
    inner: list[tuple[str, GlobState]] = field(default_factory=list)  # its folders that are still to be entered


class FileWalk:
    def __init__(
        self,
        fd: int,
        path: tuple[str, ...],
        glob: FileGlob,
        *,
        rules: IgnoreRules | None,
        hidden: bool,
        times: bool = False,
        pause: Callable[[], None],
    ) -> None:
        """Below ``fd``, which is at ``path`` in the project. ``rules`` are those from above it; None: none count."""
        self._glob, self._hidden, self._times, self._pause = glob, hidden, times, pause
        self._heeds_rules = rules is not None
        rules = rules or IgnoreRules()
        self._start = _OpenFolder(fd, "", path, rules, IgnoreSieve.from_rules(rules), glob.start)
        self._seen = 0
        self.skipped = SkippedEntries()

    def __iter__(self) -> Iterator[FolderMatches]:
        way = [self._start]
        try:
            yield self._scan_folder(self._start)
            while way:
                here = way[-1]
                if not here.inner or self.skipped.stopped:
                    self._close_folder(way.pop())
                    continue
                entered = self._open_inner(here, *here.inner.pop(), depth=len(way))
                if entered is not None:
                    way.append(entered)
                    yield self._scan_folder(entered)
        finally:
            for place in way:
                self._close_folder(place)

    def _close_folder(self, place: _OpenFolder) -> None:
        if place is not self._start:
            os.close(place.fd)

    def _open_inner(self, above: _OpenFolder, name: str, state: GlobState, *, depth: int) -> _OpenFolder | None:
        below = f"{above.below}{name}/"
        try:
            if depth > MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            fd = os.open(name, _FOLDER, dir_fd=above.fd)
            if is_private(fd):
                os.close(fd)
                self.skipped.ignored += 1
                return None
        except OSError as error:  # gone, changed or not ours to read since we saw it
            self.skipped.unreadable.append((below, error.errno or 0))
            return None
        return _OpenFolder(fd, below, (*above.path, name), above.rules, above.sieve, state)

    def _scan_folder(self, place: _OpenFolder) -> FolderMatches:
        self._pause()
        matches = FolderMatches(place.below)
        try:
            with os.scandir(place.fd) as listing:
                entries = list(listing)
        except OSError as error:
            self.skipped.unreadable.append((place.below, error.errno or 0))
            return matches
        self._seen += len(entries)
        self.skipped.stopped = self._seen > MAX_SEEN
        names = [entry.name for entry in entries]
        if self._heeds_rules and FILE_NAME in names:
            place.rules = place.rules.with_lines(read_rules(place.fd), len(place.path))
            place.sieve = IgnoreSieve.from_rules(place.rules)
        if not place.path and OUTPUT_FOLDER in names:
            at = names.index(OUTPUT_FOLDER)
            if entries[at].is_dir(follow_symlinks=False):
                del entries[at]
                self.skipped.ignored += 1
        self._sort_entries(place, entries, matches)
        place.inner.sort(key=_inner_name, reverse=True)  # the next one last: what comes first is found first
        if self._times:
            matches.times = [_read_modified_time(name, place.fd) for name in matches.files]
        return matches

    def _sort_entries(self, place: _OpenFolder, entries: "list[os.DirEntry[str]]", matches: FolderMatches) -> None:
        """The hot loop: one round for every entry of the project."""
        test = self._glob.build_name_test(place.state)
        suffixes, regex = test.suffixes, test.regex
        every, keep = "" in suffixes, matches.files.append  # without a pattern every name matches
        sieve = place.sieve.for_folder(place.path)
        exact, tails, endings, other = sieve.exact, sieve.tails, sieve.endings, sieve.other
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                if self._skips_hidden(place, entry, test) or self._skips_ignored(place, entry, sieve, matches):
                    continue
            elif (
                (raw := name if name.isascii() else to_byte_text(name)) in exact
                or raw.endswith(tails)
                or (endings and raw.rpartition(".")[2] in endings)
                or (other is not None and other(raw))
            ) and self._skips_ignored(place, entry, sieve, matches):
                continue
            is_match = every or name.endswith(suffixes) or (regex is not None and regex(name))
            if is_match and entry.is_file(follow_symlinks=False):
                keep(name)
            elif entry.is_dir(follow_symlinks=False):
                state = self._glob.enter_folder(place.state, name)
                if state is not None:
                    place.inner.append((name, state))
            elif is_match and entry.is_symlink():
                matches.links.append(name)
            elif is_match:
                self.skipped.special += 1

    def _skips_hidden(self, place: _OpenFolder, entry: "os.DirEntry[str]", test: NameTest) -> bool:
        """Return whether a hidden name is skipped, and count it: it needs ``hidden`` or a pattern with the dot."""
        if entry.name != _GIT:
            if self._hidden:
                return False
            if entry.is_dir(follow_symlinks=False):
                is_named = self._glob.enter_folder(place.state, entry.name) is not None
            else:
                is_named = test.dotted is not None and bool(test.dotted(entry.name))
            if is_named:
                return False
        self.skipped.hidden += 1
        return True

    def _skips_ignored(
        self, place: _OpenFolder, entry: "os.DirEntry[str]", sieve: IgnoreSieve, matches: FolderMatches
    ) -> bool:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not sieve.is_left_out((*place.path, entry.name), is_folder=is_folder):
            return False
        self.skipped.ignored += 1
        if not is_folder:
            matches.ignored.append(entry.name)
        return True


def _inner_name(inner: tuple[str, GlobState]) -> str:
    return inner[0]


def _read_modified_time(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0  # gone since we saw its name
