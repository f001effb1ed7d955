"""The home on disk: only its owner can enter it, however it came to be.

The home holds keys, results and the old content of files. Folders that are made in it have the mode 0700, those on the
way too; ``mkdir`` alone gives its mode to the last folder only. A home that somebody made with another mode is closed
when it is first used.
"""

import logging
import stat
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger(__name__)
_LEFT_OPEN = ("transactions", "trash")  # by earlier versions


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those on the way that are missing, for its owner alone. Raises OSError."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise


def restrict_home(home: Path) -> None:
    """Take a home that exists away from everybody but its owner. A home of another user is only warned about."""
    try:
        facts = home.stat()
        if not facts.st_mode & 0o077:
            return
        if facts.st_mode & stat.S_ISVTX:  # /tmp and its like are for everybody
            _log.warning("%s is open to every user of this machine: use a home of your own", home)
            return
        home.chmod(stat.S_IMODE(facts.st_mode) & 0o700)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        _log.warning("%s can be read by others (%s): run chmod 700 on it", home, error.strerror)
        return
    for name in _LEFT_OPEN:
        with suppress(OSError):
            if not (home / name).is_symlink():
                (home / name).chmod(0o700)
