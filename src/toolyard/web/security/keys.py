"""The keys of a home. The owner's is made at the first start and stored as plain text that only the owner can read.

Other keys are made by the owner, have scopes, and are stored as hashes: they cannot be read again. The keys of a
VCPToolBox installation that is used in place are accepted too, so that its clients need no change. A key is compared by
its SHA-256, in constant time, with every known key. Changes by this server take effect at once; those that another
process writes to the file, within ``FRESH_S``.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.settings import OfferMode
from toolyard.vcp.installation import MIN_KEY
from toolyard.web.security.scope import ANY_KEY, Scope
from toolyard.workspace.home_folder import StateFile

KEYS_FILE: Final = "keys.json"
OWNER: Final = "owner"
INSTALLATION: Final = "vcp"  # the VCP_Key of a VCPToolBox installation
VCP_PROCESS: Final = "vcp-plugins"
PANEL: Final = "vcp-panel"  # who reads VCPToolBox's admin API with its password
MIN_REMOTE_LENGTH: Final = 32  # characters of an owner key that other machines may use
MAX_KEYS: Final = 1000
FRESH_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    id: str
    name: str
    scopes: frozenset[Scope]
    digest: str
    created: float = 0.0
    offer: OfferMode | None = None  # how its chats are offered tools; None: the setting

    def to_json(self) -> JsonObject:
        return {
            "id": self.id,
            "name": self.name,
            "scopes": [scope.value for scope in sorted(self.scopes)],
            "created": self.created,
            "offer": self.offer.value if self.offer else None,
        }


class Keys:
    """The keys that a server accepts. Those in the file may change while it runs."""

    def __init__(self, home: Path, owner: str, now: Callable[[], float], *, more: Iterable[Key] = ()) -> None:
        """``now`` returns monotonic seconds; ``more`` keys stand in no file of this home."""
        own = Key(id=OWNER, name="the owner", scopes=ANY_KEY, digest=hash_secret(owner))
        self._fixed = {key.id: key for key in (*more, own)}
        self._known = self._fixed
        self._file, self._now = StateFile(home / KEYS_FILE), now
        self._content: JsonObject = {}  # of the file, as ``_known`` has it
        self._stale_at = -inf  # when to read the file again

    def find(self, text: str) -> Key | None:
        """Return the key with this text. All keys are compared, so that the time reveals nothing."""
        hashed = hash_secret(text)
        match = None
        for key in self._load().values():
            if hmac.compare_digest(key.digest, hashed):
                match = key
        return match

    def all(self) -> list[Key]:
        """Return all keys, the owner's first."""
        return list(self._load().values())

    def exists(self, id_: str) -> bool:
        return id_ in self._load()

    def add(self, name: str, scopes: Iterable[Scope], now: float, offer: OfferMode | None = None) -> tuple[Key, str]:
        """Make a key; return it and its text, which cannot be read again."""
        text = f"ty-{secrets.token_urlsafe(32)}"
        key = Key(
            id=f"key_{secrets.token_hex(8)}",
            name=name,
            scopes=frozenset(scopes),
            digest=hash_secret(text),
            created=now,
            offer=offer,
        )

        def put(value: JsonObject) -> None:
            if len(value) >= MAX_KEYS:
                raise ConfigError(Message("there are already {max_keys} keys: remove some first", max_keys=MAX_KEYS))
            value[key.id] = {**key.to_json(), "digest": key.digest}

        self._change(put)
        return key, text

    def remove(self, id_: str) -> bool:
        removed: list[str] = []

        def drop(value: JsonObject) -> None:
            if value.pop(id_, None) is not None:
                removed.append(id_)

        self._change(drop)
        return bool(removed)

    def _change(self, edit: Callable[[JsonObject], None]) -> None:
        self._file.update(edit)
        self._stale_at = -inf

    def _load(self) -> dict[str, Key]:
        now = self._now()
        if now >= self._stale_at:  # reading costs a good part of a request
            self._stale_at = now + FRESH_S
            content = self._file.read()
            if content is not self._content:
                more = {
                    id_: _parse_key(id_, value)
                    for id_, value in content.items()
                    if isinstance(value, dict) and id_ not in self._fixed
                }
                self._content, self._known = content, self._fixed | more
        return self._known


def make_installation_keys(http: str, channels: str) -> list[Key]:
    """Return the keys of a VCPToolBox installation: ``Key`` uses models and tools, ``VCP_Key`` its channels and nodes.

    One that is empty or too short to be a secret is left out; where both are the same text, it is one key.
    """
    scopes = {http: {Scope.CHAT, Scope.TOOLS}} if len(http) >= MIN_KEY else {}
    if len(channels) >= MIN_KEY:
        scopes.setdefault(channels, set()).update((Scope.APPROVE, Scope.NODE))
    return [
        Key(
            id=INSTALLATION if Scope.APPROVE in allowed else f"{INSTALLATION}-http",
            name="VCP_Key of VCPToolBox" if Scope.APPROVE in allowed else "Key of VCPToolBox",
            scopes=frozenset(allowed),
            digest=hash_secret(text),
        )
        for text, allowed in scopes.items()
    ]


def make_process_key(text: str) -> Key:
    """Return the key with which the plugins in VCPToolBox's process use this server, for as long as it runs."""
    return Key(
        id=VCP_PROCESS,
        name="plugins of VCPToolBox",
        scopes=frozenset({Scope.CHAT, Scope.TOOLS}),
        digest=hash_secret(text),
    )


def hash_secret(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _parse_key(id_: str, value: JsonObject) -> Key:
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
