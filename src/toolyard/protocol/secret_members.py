"""The members of record bodies that may hold secrets and are read again exactly as they were written.

A store encrypts them. Everything else that could hold a secret is masked or hashed before it is stored. The kinds are
written out here, because a process that has no such record does not load their values.
"""

from collections.abc import Mapping
from typing import Final

SECRET_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule": ("arguments",),  # of a call that runs later
    "remote": ("call", "outcome"),  # a call on its way to another host, and the way back
    "idempotency_response": ("headers", "text", "base64"),  # as the client of the request got it
}
