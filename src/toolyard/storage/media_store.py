"""Media that tools gave in chats, as files of the home that links in answers lead to.

A file is named by the SHA-256 of its bytes and the extension of its media type; it appears whole under its name or not
at all, and only its owner can read it. The same bytes are one file, whose time begins anew each time they are put.
Bounded: ``KEPT`` after the last put, ``MAX_BYTES`` for one file, ``MAX_TOTAL`` and ``MAX_FILES`` for all of them; the
oldest go first.
"""

import os
import re
import secrets
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from toolyard.crashpoint import crashpoint
from toolyard.protocol.content import Media
from toolyard.workspace.home_folder import make_private_folder

FOLDER: Final = "media"
KEPT: Final = timedelta(days=7)
MAX_BYTES: Final = 32 * 2**20
MAX_TOTAL: Final = 512 * 2**20
MAX_FILES: Final = 4096
EXTENSIONS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/x-icon": "ico",
    "image/tiff": "tiff",
    "image/heic": "heic",
    "audio/mpeg": "mp3",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/mp4": "m4a",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/x-msvideo": "avi",
}
"""The media types that are kept, and nothing else; none of them can carry a script that a browser would run."""
TYPES: Final = {extension: mime for mime, extension in EXTENSIONS.items()}
_NAME = re.compile(rf"[0-9a-f]{{64}}\.({'|'.join(TYPES)})")
_DRAFT = ".writing-"
_DRAFT_S = 3600.0  # a draft that is older was left by a process that died
_KEY, _KEY_BYTES = ".key", 32


@dataclass(frozen=True, slots=True)
class StoredMedia:
    """A file of the store."""

    path: Path
    mime: str


class _File(NamedTuple):
    modified: float
    size: int
    path: str


class MediaStore:
    """The files in ``folder``, which is made when the first is put. Every method may block: call it in a thread."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        self._folder, self._now = folder, now
        self._lock = threading.Lock()

    def put(self, media: Media) -> str:
        """Keep a piece of media and return its name. Raises OSError when it cannot be written."""
        name = f"{sha256(media.data).hexdigest()}.{EXTENSIONS[media.mime]}"
        with self._lock:
            try:
                os.utime(self._folder / name, (self._timestamp(), self._timestamp()), follow_symlinks=False)
            except FileNotFoundError:
                make_private_folder(self._folder)
                self._make_room(len(media.data))
                self._write(name, media.data)
        return name

    def find(self, name: str) -> StoredMedia | None:
        """Return the file of that name; None when there is none."""
        matched = _NAME.fullmatch(name)
        if matched is None:
            return None
        path = self._folder / name
        try:
            is_file = stat.S_ISREG(path.lstat().st_mode)
        except OSError:
            return None
        return StoredMedia(path, TYPES[matched[1]]) if is_file else None

    def signing_key(self) -> bytes | None:
        """Return the secret that signs links to these files; None before the first was made. Raises OSError."""
        try:
            key = (self._folder / _KEY).read_bytes()
        except FileNotFoundError:
            return None
        return key if len(key) == _KEY_BYTES else None

    def make_signing_key(self) -> bytes:
        """Return the secret that signs links, made anew if there is none. Raises OSError."""
        with self._lock:
            key = self.signing_key()
            if key is None:
                make_private_folder(self._folder)
                self._write(_KEY, key := secrets.token_bytes(_KEY_BYTES))
            return key

    def sweep(self) -> int:
        """Remove what was kept long enough, and the oldest beyond the limits; return how many files went."""
        with self._lock:
            return self._make_room(0)

    def _make_room(self, size: int) -> int:
        now, oldest = self._timestamp(), (self._now() - KEPT).timestamp()
        files, removed = self._list_files(now), 0
        total, left = sum(file.size for file in files) + size, len(files) + (size > 0)
        for file in sorted(files):
            if file.modified >= oldest and total <= MAX_TOTAL and left <= MAX_FILES:
                break
            with suppress(OSError):
                os.unlink(file.path)
                removed += 1
            total, left = total - file.size, left - 1
        return removed

    def _list_files(self, now: float) -> list[_File]:
        """List what is kept; drafts that nobody writes any more are removed on the way."""
        files = []
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if _NAME.fullmatch(entry.name):
                        files.append(_File(about.st_mtime, about.st_size, entry.path))
                    elif entry.name.startswith(_DRAFT) and about.st_mtime < now - _DRAFT_S:
                        os.unlink(entry.path)
        return files

    def _write(self, name: str, content: bytes) -> None:
        draft = self._folder / f"{_DRAFT}{secrets.token_hex(8)}"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.utime(draft, (self._timestamp(), self._timestamp()))
            crashpoint("chat-media.draft-written")
            draft.rename(self._folder / name)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _timestamp(self) -> float:
        return self._now().timestamp()
