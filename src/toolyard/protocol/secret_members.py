"""The members of record bodies that may hold secrets and are read again exactly as they were written.

A store encrypts them: they stand together in one member, ``encrypted``. Everything else that could hold a secret is
masked or hashed before it is stored. The kinds are written out here, because a process that has no such record does not
load their values.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_object
from toolyard.protocol.store import Record

SECRET_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule": ("arguments",),  # of a call that runs later
    "remote": ("call", "outcome"),  # a call on its way to another host, and the way back
    "idempotency_response": ("headers", "text", "base64"),  # as the client of the request got it
}
_ENCRYPTED = "encrypted"


def find_secrets(record: Record) -> JsonObject:
    """Return the members of a record that are to be encrypted; none when they are empty."""
    names = SECRET_MEMBERS.get(record.kind, ())
    return {name: record.body[name] for name in names if record.body.get(name)}


def hide_secrets(record: Record, encrypted: JsonObject) -> Record:
    """Return the record with its secrets replaced by what they were encrypted to."""
    secrets = find_secrets(record)
    body: JsonObject = {name: value for name, value in record.body.items() if name not in secrets}
    return replace(record, body=body | {_ENCRYPTED: encrypted})


def read_encrypted(record: Record) -> JsonObject | None:
    """Return what the secrets of a stored record were encrypted to; None when nothing in it is."""
    is_encrypted = record.kind in SECRET_MEMBERS and _ENCRYPTED in record.body
    return read_object(record.body, _ENCRYPTED) if is_encrypted else None


def restore_secrets(record: Record, secrets: JsonObject) -> Record:
    """Return a stored record as it was before its secrets were encrypted."""
    body: JsonObject = {name: value for name, value in record.body.items() if name != _ENCRYPTED}
    return replace(record, body=body | secrets)
