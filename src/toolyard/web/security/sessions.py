"""Browser sessions: random names in cookies, stored as hashes in a file of the home.

A restart signs nobody out. A session ends when it expires, at sign-out, and when its key is removed or replaced. The
newest ``MAX_PER_KEY`` of each key are kept, so that no key can sign out another.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolyard.protocol.json import JsonObject
from toolyard.web.security.keys import Key, Keys, hash_secret
from toolyard.workspace.home_folder import StateFile

FILE: Final = "sessions.json"
SESSION_S: Final = 12 * 3600.0
MAX_PER_KEY: Final = 100


class Sessions:
    def __init__(self, home: Path, keys: Keys, now: Callable[[], float]) -> None:
        """``now`` returns seconds since the epoch."""
        self._file, self._keys, self._now = StateFile(home / FILE), keys, now

    def begin(self, key_id: str) -> str:
        name = secrets.token_urlsafe(32)
        key = next(key for key in self._keys.all() if key.id == key_id)

        def put(value: JsonObject) -> None:
            living = {id_: one for id_, one in value.items() if self._read_expiry(one) > self._now()}
            own = [id_ for id_, one in living.items() if isinstance(one, dict) and one.get("key") == key.id]
            for id_ in own[: max(0, len(own) + 1 - MAX_PER_KEY)]:
                del living[id_]
            value.clear()
            value.update(living)
            value[hash_secret(name)] = {"key": key.id, "of": key.digest[:16], "until": self._now() + SESSION_S}

        self._file.update(put)
        return name

    def find(self, name: str) -> Key | None:
        """Return the key of a valid session."""
        one = self._file.read().get(hash_secret(name))
        if not isinstance(one, dict) or self._read_expiry(one) <= self._now():
            return None
        return next(
            (key for key in self._keys.all() if key.id == one.get("key") and key.digest[:16] == one.get("of")), None
        )

    def end(self, name: str) -> None:
        def drop(value: JsonObject) -> None:
            value.pop(hash_secret(name), None)

        self._file.update(drop)

    @staticmethod
    def _read_expiry(one: object) -> float:
        until = one.get("until") if isinstance(one, dict) else None
        return float(until) if isinstance(until, int | float) else 0.0


def make_csrf_token(name: str) -> str:
    """Return the CSRF token of a session, which cannot be derived without its name."""
    return hash_secret(f"csrf {name}")
