"""The keys of a home. The owner's is made at the first start and kept as it is, in a file only the owner can read.

Others are made by the owner, have scopes, and are stored as hashes: nobody can read them again. A key is compared by
its SHA-256 in constant time, with every key there is. What this server changes holds at once; what another process
writes into the file is seen within ``FRESH_S``.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.plugins.state_file import StateFile
from toolyard.protocol.json import JsonObject
from toolyard.protocol.offer import OfferMode
from toolyard.web.scope import ANY, Scope
from toolyard.workspace.home_folder import make_private_folder

FILE: Final = "key"
MORE: Final = "keys.json"
OWNER: Final = "owner"
LONG: Final = 32  # characters of a key that may be tried from other machines
MAX_KEYS: Final = 1000
FRESH_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    id: str
    name: str
    scopes: frozenset[Scope]
    digest: str
    created: float = 0.0
    offer: OfferMode | None = None  # how its chats are offered tools; None: as the setting says

    def to_dict(self) -> JsonObject:
        return {
            "id": self.id,
            "name": self.name,
            "scopes": [scope.value for scope in sorted(self.scopes)],
            "created": self.created,
            "offer": self.offer.value if self.offer else None,
        }


def stored_key(home: Path) -> str | None:
    """The owner's key, if there was a first start."""
    try:
        text = (home / FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{home / FILE} cannot be read: {error}") from error
    if not text:
        raise ConfigError(f"{home / FILE} is empty: remove it, and the next start makes a new key")
    return text


def make_key(home: Path) -> str:
    """A new owner's key, stored. The file is never written over."""
    text = f"ty-{secrets.token_urlsafe(32)}"
    draft = home / f".{FILE}.{os.getpid()}"
    try:
        make_private_folder(home)
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(fd)
        crashpoint("key.before-link")
        os.link(draft, home / FILE)
        draft.unlink()
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise StorageUnwritable.from_os_error(home / FILE, error) from error
    return text


class Keys:
    """The keys that open a server. Those in the file may change while it runs."""

    def __init__(self, home: Path, owner: str, now: Callable[[], float]) -> None:
        """``now`` tells seconds that never jump."""
        self._known = {OWNER: Key(id=OWNER, name="the owner", scopes=ANY, digest=digest(owner))}
        self._file, self._now = StateFile(home / MORE), now
        self._content: JsonObject = {}  # of the file, as ``_known`` has it
        self._stale = -inf  # when to look at the file again

    def find(self, text: str) -> Key | None:
        """The key that ``text`` is. Every one is compared, so that the time tells nothing."""
        hashed = digest(text)
        found = None
        for key in self._all().values():
            if hmac.compare_digest(key.digest, hashed):
                found = key
        return found

    def all(self) -> list[Key]:
        """The owner's first."""
        return list(self._all().values())

    def exists(self, id_: str) -> bool:
        return id_ in self._all()

    def add(self, name: str, scopes: Iterable[Scope], now: float, offer: OfferMode | None = None) -> tuple[Key, str]:
        """A new key, and its text, which cannot be read again."""
        text = f"ty-{secrets.token_urlsafe(32)}"
        key = Key(
            id=f"key_{secrets.token_hex(8)}",
            name=name,
            scopes=frozenset(scopes),
            digest=digest(text),
            created=now,
            offer=offer,
        )

        def put(value: JsonObject) -> None:
            if len(value) >= MAX_KEYS:
                raise ConfigError(f"there are {MAX_KEYS} keys already: remove some first")
            value[key.id] = {**key.to_dict(), "digest": key.digest}

        self._change(put)
        return key, text

    def remove(self, id_: str) -> bool:
        found: list[str] = []

        def drop(value: JsonObject) -> None:
            if value.pop(id_, None) is not None:
                found.append(id_)

        self._change(drop)
        return bool(found)

    def _change(self, edit: Callable[[JsonObject], None]) -> None:
        self._file.update(edit)
        self._stale = -inf

    def _all(self) -> dict[str, Key]:
        now = self._now()
        if now >= self._stale:  # looking costs as much as a good part of a request
            self._stale = now + FRESH_S
            content = self._file.read()
            if content is not self._content:
                more = {
                    id_: _key(id_, value) for id_, value in content.items() if isinstance(value, dict) and id_ != OWNER
                }
                self._content, self._known = content, {OWNER: self._known[OWNER]} | more
        return self._known


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _key(id_: str, value: JsonObject) -> Key:
    scopes = value.get("scopes")
    known = {scope.value for scope in Scope}
    created = value.get("created")
    return Key(
        id=id_,
        name=str(value.get("name", "")),
        scopes=frozenset(Scope(one) for one in scopes if one in known) if isinstance(scopes, list) else frozenset(),
        digest=str(value.get("digest", "")),
        created=float(created) if isinstance(created, int | float) else 0.0,
        offer=OfferMode(str(value["offer"])) if value.get("offer") in list(OfferMode) else None,
    )
