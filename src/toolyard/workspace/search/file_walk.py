"""Every file below a folder that a search may look at, and the number of those it may not.

Each folder is opened relative to the one above it and never through a link, so nothing outside is ever listed, whatever
is swapped meanwhile (S-12, S-13). Hidden names, what ``.gitignore`` leaves out, links and special files are counted;
folders that cannot be read are named. ``.git`` and our own ``tool-output`` are always left out: to look into them, one
starts there. At most ``MAX_SEEN`` entries are looked at.

The ignore rules of one folder are arranged (``IgnoreSieve``) so that most names are let through after two quick looks,
because a search asks them of every name in the project; the decision is that of ``workspace.search.ignore``: the last
rule that matches counts. When the time is over, a search ends with what it has found (``TimeLimit``): a timer sets a
flag, so that a check at every step costs no system call.
"""

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.home_folder import is_private
from toolyard.workspace.search.file_glob import FileGlob, GlobState, NameTest, literal_text
from toolyard.workspace.search.ignore import FILE_NAME, OUTPUT_FOLDER, IgnoreRules, read_rules, to_byte_text
from toolyard.workspace.search.wildcard import Segment, matches_path

MAX_SEEN = 1_000_000
MAX_DEPTH = 200  # each level keeps one folder open
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GIT = ".git"
_MANY = 24  # beyond so many endings a table is faster than trying one after the other
_SMALL_CLASS = re.compile(r"([^\[\]]*)\[(\w+)\]([^\[\]]*)")


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


class Rule(Protocol):
    @property
    def segments(self) -> tuple[Segment, ...]: ...
    @property
    def negated(self) -> bool: ...
    @property
    def folders_only(self) -> bool: ...


class _OrderedRule:
    """A rule in its place among the others."""

    __slots__ = ("_fixed", "_open_end", "_steps", "depth", "order", "rule")

    def __init__(self, order: int, depth: int, rule: Rule) -> None:
        self.order = order  # the highest one that matches decides
        self.depth = depth  # where its paths begin
        self.rule = rule
        self._fixed = None not in rule.segments
        self._steps = list(rule.segments[:-1])  # which lead to the folder of the name
        self._open_end = rule.segments[-1] is None
        while self._steps and self._steps[-1] is None:
            self._open_end = True
            self._steps.pop()

    def can_match_in(self, folder: tuple[str, ...]) -> bool:
        """Return whether the rule can match any name in ``folder``."""
        below = folder[self.depth :]
        if self._fixed and len(below) != len(self._steps):
            return False
        first = self._steps[0] if self._steps else None
        if first is not None and not (below and first.fullmatch(below[0])):
            return False
        return matches_path(self._steps, below) or (self._open_end and matches_path((*self._steps, None), below))


@dataclass(slots=True)
class IgnoreSieve:
    """Rules by the names they may match. A name without a dot in front that no table knows is let through.

    The tables know names as ``to_byte_text`` gives them.
    """

    exact: dict[str, list[_OrderedRule]] = field(default_factory=dict)  # one name
    tails: tuple[str, ...] = ()  # names that end so
    endings: dict[str, list[_OrderedRule]] = field(
        default_factory=dict
    )  # the same by what follows the last dot, when many
    other: Callable[[str], object] | None = None
    _tailed: list[tuple[str, _OrderedRule]] = field(default_factory=list)
    _others: list[_OrderedRule] = field(default_factory=list)
    _dotted: list[_OrderedRule] = field(default_factory=list)  # for names that begin with a dot
    _anchored: list[_OrderedRule] = field(
        default_factory=list
    )  # those that hold in some folders only: not in the tables

    @classmethod
    def from_rules(cls, rules: IgnoreRules) -> "IgnoreSieve":
        sieve = cls()
        placed = [(depth, rule) for depth, layer in rules.layers for rule in layer]
        for order, (depth, rule) in enumerate(placed):
            bare = len(rule.segments) == 2 and rule.segments[0] is None and rule.segments[1] is not None
            if bare:
                sieve._add(_OrderedRule(order, depth, rule))
            else:
                sieve._anchored.append(_OrderedRule(order, depth, rule))
        return sieve._build_tables()

    def for_folder(self, folder: tuple[str, ...]) -> "IgnoreSieve":
        folder = tuple(map(to_byte_text, folder)) if self._anchored else folder
        near = [placed for placed in self._anchored if placed.can_match_in(folder)]
        if not near:
            return self
        own = IgnoreSieve({name: [*placed] for name, placed in self.exact.items()})
        own.endings = {ending: [*placed] for ending, placed in self.endings.items()}
        own._tailed, own._others, own._dotted = [*self._tailed], [*self._others], [*self._dotted]
        for placed in near:
            own._add(placed)
        return own._build_tables()

    def is_left_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Return whether the rules leave out ``path``, one of the folder's entries."""
        path = tuple(map(to_byte_text, path))
        best: _OrderedRule | None = None
        for placed in self._find_candidates(path[-1]):
            counts = (best is None or placed.order > best.order) and (is_folder or not placed.rule.folders_only)
            if counts and matches_path(placed.rule.segments, path[placed.depth :]):
                best = placed
        return best is not None and not best.rule.negated

    def _find_candidates(self, name: str) -> Iterator[_OrderedRule]:
        yield from self.exact.get(name, ())
        yield from self.endings.get(name.rpartition(".")[2], ())
        yield from (placed for tail, placed in self._tailed if name.endswith(tail))
        if self.other is not None and self.other(name):
            yield from self._others
        if name.startswith("."):
            yield from self._dotted

    def _add(self, placed: _OrderedRule) -> None:
        source = _last_step(placed)
        text = literal_text(source)
        tails = _list_tails(source)
        if text is not None:
            self.exact.setdefault(text, []).append(placed)
        elif source.startswith(r"\."):
            self._dotted.append(placed)
        elif tails:
            self._tailed += [(tail, placed) for tail in tails]
        else:
            self._others.append(placed)

    def _build_tables(self) -> "IgnoreSieve":
        if len(self._tailed) > _MANY:
            for tail, placed in self._tailed:
                if "." in tail:
                    self.endings.setdefault(tail.rpartition(".")[2], []).append(placed)
            self._tailed = [(tail, placed) for tail, placed in self._tailed if "." not in tail]
        self.tails = tuple({tail for tail, _ in self._tailed})
        if self._others:
            self.other = re.compile("|".join(map(_last_step, self._others)), re.DOTALL).fullmatch
        return self


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


def _last_step(placed: _OrderedRule) -> str:
    last = placed.rule.segments[-1]
    return ".*" if last is None else last.pattern


def _list_tails(source: str) -> tuple[str, ...]:
    """List the endings of names that match; none when they are not known. ``*.py[co]`` gives two."""
    tail = source.rpartition(".*")[2]
    match = _SMALL_CLASS.fullmatch(tail)
    sources = [match[1] + char + match[3] for char in match[2]] if match else [tail]
    texts = [literal_text(source) for source in sources]
    return tuple(text for text in texts if text) if ".*" in source and all(texts) else ()


class TimeLimitReached(Exception):
    """The search ends here; what it found so far is the result."""


class TimeLimit:
    def __init__(self, seconds: float, checkpoint: Checkpoint) -> None:
        self.seconds = seconds
        self._checkpoint = checkpoint
        self._over = threading.Event()
        self._timer = threading.Timer(seconds, self._over.set)
        self._timer.daemon = True

    def check(self) -> None:
        self._checkpoint()
        if self._over.is_set():
            raise TimeLimitReached

    def __enter__(self) -> "TimeLimit":
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
