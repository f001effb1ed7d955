"""The keys of the addresses under which plugins publish files: ``/pw=KEY/images/...`` and ``/pw=KEY/files/...``.

They have the names that VCPToolBox gives to them. They are random, the same for every plugin of a home, and stand in
``publish-keys.json``, which only its owner can read. A plugin that names one gets it when its owner has said yes to a
review that shows it (``Trust``).
"""

import secrets
from collections.abc import Collection, Mapping
from pathlib import Path

from toolyard.plugins.state_file import StateFile
from toolyard.protocol.json import JsonObject

IMAGE_KEY = "IMAGESERVER_IMAGE_KEY"
FILE_KEY = "IMAGESERVER_FILE_KEY"
NAMES = frozenset({IMAGE_KEY, FILE_KEY})
FILE_NAME = "publish-keys.json"


class PublishKeys:
    """The keys of one home. Another process may create them."""

    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / FILE_NAME)

    def read(self) -> Mapping[str, str]:
        """Return the keys by their names; empty while there are none."""
        return _read_keys(self._file.read())

    def read_or_make(self) -> Mapping[str, str]:
        """Return both keys, created the first time. Raises ConfigError."""
        keys = self.read()
        if keys.keys() != NAMES:
            self._file.update(_add_missing_keys)
            keys = self.read()
        return keys


def find_key_names(text: bytes) -> Collection[str]:
    """Return the keys that a file of a plugin names."""
    return {name for name in NAMES if name.encode() in text}


def _read_keys(value: JsonObject) -> dict[str, str]:
    return {name: key for name in NAMES if isinstance(key := value.get(name), str) and len(key) >= 20}


def _add_missing_keys(value: JsonObject) -> None:
    keys = _read_keys(value)
    value.update({name: keys.get(name) or secrets.token_urlsafe(32) for name in sorted(NAMES)})
