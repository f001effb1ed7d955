"""The secrets in records, and the keys that encrypt them: a file of the home, or the ``cluster_key`` of many hosts.

The key file is made when something is encrypted for the first time, and never replaced: without it, what it has
encrypted is lost. Secrets are encrypted by AES-256-GCM with a random nonce, bound to the kind and id of their record;
the name of their key stands with them. A record that was stored without encryption is read as it is.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError, StorageKeyMissing, StorageUnwritable
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.store import Record, find_secrets, hide_secrets, read_encrypted, read_text, restore_secrets
from toolyard.storage.damage import damaged_record
from toolyard.workspace.home_folder import make_private_folder, sync_to_disk

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


KEY_FILE: Final = "secret.key"
_BYTES = 32
_ENCRYPTION = b"toolyard: the secrets in records"
_SIGNATURES = b"toolyard: the calls between hosts"
_NONCE = 12


@dataclass(frozen=True, slots=True)
class SecretKey:
    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """Return a name of the key that says nothing about it, to tell a wrong key from a damaged record."""
        return hashlib.sha256(b"toolyard: the name of a key" + self.secret).hexdigest()[:16]


class KeySource(Protocol):
    def read(self) -> SecretKey | None:
        """Return the key; None when there is none. Raises StorageError."""
        ...

    def read_or_make(self) -> SecretKey | None:
        """Return the key, made now if it can be; None: nothing is encrypted here. Raises StorageError."""
        ...

    def make_error(self, name: str, key: SecretKey | None) -> StorageError:
        """Return the error for the record ``name``, which ``key`` did not encrypt."""
        ...


class KeyFile:
    """The key file of a home."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._key: SecretKey | None = None

    def read(self) -> SecretKey | None:
        if self._key is None:
            try:
                text = self._file.read_text(encoding="ascii")
            except FileNotFoundError:
                return None
            except (OSError, UnicodeDecodeError) as error:
                raise self._unreadable(error) from error
            self._key = SecretKey(self._parse(text))
        return self._key

    def read_or_make(self) -> SecretKey:
        while (key := self.read()) is None:  # another process may make it at the same moment
            self._make()
        return key

    @property
    def _forget_command(self) -> str:
        return OwnCommand(self._file.parent).format("doctor --forget-secrets")

    def make_error(self, name: str, key: SecretKey | None) -> StorageError:
        if key is None:
            return StorageKeyMissing(
                Message(
                    "the record {name} is encrypted, and its key {file} is missing: put the file back from a backup, "
                    "or give these records up with '{command}'",
                    name=name,
                    file=self._file,
                    command=self._forget_command,
                )
            )
        return StorageKeyMissing(
            Message(
                "the record {name} was encrypted with another key than {file}: put the right file back from a backup, "
                "or give these records up with '{command}'",
                name=name,
                file=self._file,
                command=self._forget_command,
            )
        )

    def _parse(self, text: str) -> bytes:
        try:
            secret = base64.b64decode(text.strip(), validate=True)
        except binascii.Error as error:
            raise self._unreadable(error) from error
        if len(secret) != _BYTES:
            raise self._unreadable(f"{len(secret)} bytes instead of {_BYTES}")
        return secret

    def _unreadable(self, error: object) -> StorageError:
        return StorageError(
            Message("{file} cannot be read as a key ({error}): put it back from a backup", file=self._file, error=error)
        )

    def _make(self) -> None:
        """Make the file, whole and for its owner's eyes only, unless there is one."""
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            make_private_folder(self._file.parent)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(base64.b64encode(secrets.token_bytes(_BYTES)) + b"\n")
                file.flush()
                os.fsync(fd)
            crashpoint("secret-key.before-link")
            with suppress(FileExistsError):
                os.link(draft, self._file)
            sync_to_disk(self._file.parent)
        except OSError as error:
            raise StorageUnwritable.from_os_error(self._file, error) from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


class ClusterKey:
    """The key of many hosts: the setting ``cluster_key``, the same on each of them. Without it nothing is encrypted."""

    def __init__(self, text: str | None) -> None:
        self._encryption = SecretKey(_derive(text, _ENCRYPTION)) if text else None
        self.signing = SecretKey(_derive(text, _SIGNATURES)) if text else None

    def read(self) -> SecretKey | None:
        return self._encryption

    def read_or_make(self) -> SecretKey | None:
        return self._encryption

    def make_error(self, name: str, key: SecretKey | None) -> StorageError:
        if key is None:
            return StorageKeyMissing(
                Message(
                    "the record {name} is encrypted with a cluster_key, and this host has none: set the cluster_key of "
                    "the other hosts",
                    name=name,
                )
            )
        return StorageKeyMissing(
            Message(
                "the record {name} was encrypted with another cluster_key: set the same one on every host", name=name
            )
        )


def _derive(text: str, purpose: bytes) -> bytes:
    return hmac.digest(text.encode(), purpose, "sha256")


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
                Message("the record {name} is damaged (what is encrypted in it was changed)", name=name)
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
