"""The sessions of browsers: random names in cookies, kept as hashes in a file of the home for as long as they last.

A restart signs nobody out. A session ends with its time, at sign-out, with its key, and when its key is another one
than it was. Of each key the newest ``MOST`` are kept, so that nobody can sign anybody else out.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolyard.plugins.state_file import StateFile
from toolyard.protocol.json import JsonObject
from toolyard.web.keys import Key, Keys, digest

FILE: Final = "sessions.json"
SESSION_S: Final = 12 * 3600.0
MOST: Final = 100


class Sessions:
    def __init__(self, home: Path, keys: Keys, now: Callable[[], float]) -> None:
        """``now`` tells seconds since 1970."""
        self._file, self._keys, self._now = StateFile(home / FILE), keys, now

    def begin(self, key_id: str) -> str:
        name = secrets.token_urlsafe(32)
        key = next(key for key in self._keys.all() if key.id == key_id)

        def put(value: JsonObject) -> None:
            living = {id_: one for id_, one in value.items() if self._until(one) > self._now()}
            own = [id_ for id_, one in living.items() if isinstance(one, dict) and one.get("key") == key.id]
            for id_ in own[: max(0, len(own) + 1 - MOST)]:
                del living[id_]
            value.clear()
            value.update(living)
            value[digest(name)] = {"key": key.id, "of": key.digest[:16], "until": self._now() + SESSION_S}

        self._file.update(put)
        return name

    def find(self, name: str) -> Key | None:
        """The key that a session was begun with."""
        one = self._file.read().get(digest(name))
        if not isinstance(one, dict) or self._until(one) <= self._now():
            return None
        return next(
            (key for key in self._keys.all() if key.id == one.get("key") and key.digest[:16] == one.get("of")), None
        )

    def end(self, name: str) -> None:
        def drop(value: JsonObject) -> None:
            value.pop(digest(name), None)

        self._file.update(drop)

    @staticmethod
    def _until(one: object) -> float:
        until = one.get("until") if isinstance(one, dict) else None
        return float(until) if isinstance(until, int | float) else 0.0


def csrf_of(name: str) -> str:
    """What a page of the session has to send with every change: whoever does not know the name cannot know this."""
    return digest(f"csrf {name}")
