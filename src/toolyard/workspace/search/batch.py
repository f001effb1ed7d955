"""The files of a search in batches, each small enough for a command line.

The first batch is small, so that searching begins while the walk goes on. Without a pattern for files a folder is
searched as a whole, and the files in it that are left out are named; with one each file is named.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from toolyard.workspace.search.file_walk import FolderMatches

_MOST_CHARS = 100 * 1024  # of names: a whole command line may have 1 MB on the meanest system
_PIECE_CHARS = 32 * 1024
_GROWTH = 4
_MOST_LINKS = 100  # ripgrep complains of each one in a whole folder, which takes its time
_LARGE = 128 * 1024 * 1024  # bytes of a file: a line as long as that and its match fit into memory
_AROUND = 24  # that a name costs besides itself


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
