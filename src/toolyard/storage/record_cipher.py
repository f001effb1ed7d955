"""Encryption of the secrets in records: AES-256-GCM with a random nonce, bound to the kind and id of their record.

With what is encrypted stands the name of its key. A record that was stored without encryption is read as it is.
"""

import base64
import binascii
import secrets
from typing import TYPE_CHECKING

from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.record_body import read_text
from toolyard.protocol.secret_members import find_secrets, hide_secrets, read_encrypted, restore_secrets
from toolyard.protocol.store import Record
from toolyard.storage.damage import damaged_record
from toolyard.storage.secret_key import KeySource, SecretKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12


class RecordCipher:
    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self._ciphers: dict[str, AESGCM] = {}  # by the id of their key; one, or none

    def encrypt(self, record: Record) -> Record:
        """Return the record as it is stored. Raises StorageError when its key cannot be read or made."""
        hidden = find_secrets(record)
        key = self._keys.read_or_make() if hidden else None
        if key is None:
            return record
        nonce = secrets.token_bytes(_NONCE)
        data = nonce + self._cipher(key).encrypt(nonce, json_bytes(hidden), _bind(record))
        return hide_secrets(record, {"key": key.id, "data": base64.b64encode(data).decode()})

    def decrypt(self, record: Record) -> Record:
        """Return the record as it was before it was stored. Raises StorageError without its key."""
        encrypted = read_encrypted(record)
        if encrypted is None:
            return record
        key, name = self._keys.read(), f"{record.kind} {record.id}"
        if key is None or key.id != read_text(encrypted, "key"):
            raise self._keys.make_error(name, key)
        from cryptography.exceptions import InvalidTag

        try:
            data = base64.b64decode(read_text(encrypted, "data"), validate=True)
            hidden: JsonObject = json_value(self._cipher(key).decrypt(data[:_NONCE], data[_NONCE:], _bind(record)))
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise damaged_record(
                Message(
                    "state.encrypted_record_damaged",
                    "the record {name} is damaged (what is encrypted in it was changed)",
                    name=name,
                )
            ) from error
        return restore_secrets(record, hidden)

    def can_read(self, record: Record) -> bool:
        """Return whether its key is here, or it needs none."""
        encrypted = read_encrypted(record)
        key = self._keys.read() if encrypted is not None else None
        return encrypted is None or (key is not None and key.id == read_text(encrypted, "key"))

    def _cipher(self, key: SecretKey) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # most processes encrypt nothing

        if key.id not in self._ciphers:
            self._ciphers = {key.id: AESGCM(key.secret)}
        return self._ciphers[key.id]


def _bind(record: Record) -> bytes:
    """Return the name of a record, so that nothing encrypted can be moved to another one."""
    return f"{record.kind}\0{record.id}".encode()
