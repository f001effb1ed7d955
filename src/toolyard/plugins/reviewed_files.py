"""Copies of the text files that an owner has reviewed, so that the next review can show what is different.

One compressed file for each plugin in the folder ``reviewed`` of the home. It is replaced with every permission and
removed with it. A copy counts only if it has the digest that the permission names, so nobody can show a false
difference by changing it. What is binary or beyond the bounds is not kept: of that a review shows the digests.
"""

import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from toolyard.workspace.home_folder import make_private_folder

FOLDER: Final = "reviewed"
MAX_FILES: Final = 500
MAX_FILE_BYTES: Final = 512 * 1024
MAX_BYTES: Final = 8 * 2**20  # of all files of a plugin
_DAMAGED = (OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
_log = logging.getLogger(__name__)


class ReviewedFiles:
    def __init__(self, home: Path) -> None:
        self._place = home / FOLDER

    def keep(self, folder: Path, files: Mapping[str, str]) -> None:
        """Keep copies of the files with these digests. Without room for them only a difference cannot be shown."""
        archive = self._find_archive(folder)
        draft = archive.with_name(f".{archive.name}.{os.getpid()}")
        try:
            make_private_folder(self._place)
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as kept:
                for path, content in _read_texts(folder, files):
                    kept.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
            draft.replace(archive)
        except (OSError, ValueError) as error:  # a name that a zip cannot hold
            _log.warning("the reviewed files of %s are not kept: %s", folder, error)
            draft.unlink(missing_ok=True)

    def read(self, folder: Path, path: str, digest: str) -> str | None:
        """Return the text of a file as it was reviewed; None when it was not kept."""
        try:
            with zipfile.ZipFile(self._find_archive(folder)) as kept, kept.open(path) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except _DAMAGED:
            return None
        return content.decode(errors="replace") if hashlib.sha256(content).hexdigest() == digest else None

    def forget(self, folder: Path) -> None:
        self._find_archive(folder).unlink(missing_ok=True)

    def _find_archive(self, folder: Path) -> Path:
        return self._place / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.zip"


def is_text(content: bytes) -> bool:
    """Return whether a file is shown as text: UTF-8 without NUL, but for a character that is cut at the end."""
    if b"\x00" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(content) - 3 and error.reason == "unexpected end of data"
    return True


def _read_texts(folder: Path, files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the text files that still have the digests that were reviewed, within the bounds."""
    room = MAX_BYTES
    for path, digest in sorted(files.items())[:MAX_FILES]:
        try:
            with open(folder / path, "rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            continue
        is_same = hashlib.sha256(content).hexdigest() == digest
        if is_same and len(content) <= min(room, MAX_FILE_BYTES) and is_text(content):
            room -= len(content)
            yield path, content
