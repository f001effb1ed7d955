"""The owner's key of a home: made at the first start, stored as plain text that only the owner can read."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.message import Message

OWNER_KEY_FILE: Final = "key"


def read_owner_key(home: Path) -> str | None:
    """Return the owner's key; None before the first start."""
    try:
        text = (home / OWNER_KEY_FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(Message("{home} cannot be read: {error}", home=home / OWNER_KEY_FILE, error=error)) from error
    if not text:
        raise ConfigError(
            Message("{home} is empty: remove it, and the next start makes a new key", home=home / OWNER_KEY_FILE)
        )
    return text


def make_owner_key(home: Path) -> str:
    """Make and store the owner's key. An existing file is never overwritten."""
    import secrets  # a client only reads the key

    from toolyard.workspace.home_folder import make_private_folder

    text = f"ty-{secrets.token_urlsafe(32)}"
    draft = home / f".{OWNER_KEY_FILE}.{os.getpid()}"
    try:
        make_private_folder(home)
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(fd)
        crashpoint("key.before-link")
        os.link(draft, home / OWNER_KEY_FILE)
        draft.unlink()
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise StorageUnwritable.from_os_error(home / OWNER_KEY_FILE, error) from error
    return text
