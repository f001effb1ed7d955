"""The ``cluster_key``: all hosts of a database have the same, and sign with it what they ask of each other.

The name of the key that is in use stands in a record, where nothing of the key itself can be seen. A host with another
one, or without any, does not start while others run; when none does, a server or worker brings its own key.

A signature is HMAC-SHA256 over everything that decides what runs. A call is signed by the host that sends it, in one of
its terms; its end by the host that ran it; an announcement, with all its tools, by the host that offers them. Whoever
can write to the database, and does not know the key, can neither start a call nor answer one, nor tell a model about a
tool. Without a key nothing is signed, and nothing is refused.
"""

import hmac
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.json import Json
from toolyard.protocol.records.remote_call import Host, RemoteCall
from toolyard.protocol.store import Leases, Record, Store
from toolyard.storage.secret_key import SecretKey

CLUSTER: Final = "cluster"  # the kind of the record,
KEY: Final = "key"  # and its id
NO_KEY: Final = "none"
_log = logging.getLogger(__name__)


async def require_same_key(store: Store, leases: Leases, key: SecretKey | None, now: float, *, serves: bool) -> None:
    """Raise StorageError when the hosts that run have another key. A host that ``serves`` may bring a new one."""
    own = key.id if key else NO_KEY
    while (stored := await store.get(CLUSTER, KEY)) is None or stored.state != own:
        if stored is not None and (not serves or any(not lease.is_expired for lease in await leases.find_held())):
            raise _different_key(has_key=key is not None, others_have=stored.state != NO_KEY)
        if stored is not None:
            _log.warning("the cluster_key was changed: what the one before has encrypted can no longer be read")
        fresh = Record(kind=CLUSTER, id=KEY, state=own, created=now, updated=now)
        record = replace(stored, state=own, updated=now) if stored else fresh
        if await store.commit([record]):
            return


def _different_key(*, has_key: bool, others_have: bool) -> StorageError:
    if not has_key:
        return StorageError(
            Message(
                "the hosts of this database have a cluster_key, and this one has none: set the same cluster_key here"
            )
        )
    if not others_have:
        return StorageError(
            Message(
                "this host has a cluster_key, and the others of this database have none: stop them all, set the same "
                "cluster_key on each, and start them again"
            )
        )
    return StorageError(
        Message(
            "the hosts of this database have another cluster_key: set the same one on every host; to change it, stop "
            "them all first"
        )
    )


class ClusterSigner:
    def __init__(self, key: SecretKey | None = None) -> None:
        self._key = key

    def sign_call(self, call: RemoteCall) -> RemoteCall:
        return replace(call, signature=self._sign(_call_content(call)))

    def sign_end(self, call: RemoteCall) -> RemoteCall:
        return replace(call, end_signature=self._sign(_end_content(call)))

    def is_call_valid(self, call: RemoteCall) -> bool:
        return hmac.compare_digest(call.signature.encode(), self._sign(_call_content(call)).encode()) or not self._key

    def is_end_valid(self, call: RemoteCall) -> bool:
        return (
            hmac.compare_digest(call.end_signature.encode(), self._sign(_end_content(call)).encode()) or not self._key
        )

    def sign_host(self, host: Host, tools: Sequence[str]) -> Host:
        """Return an announcement with its signature; ``tools`` are the texts of its offer."""
        return replace(host, signature=self._sign(_host_content(host, tools)))

    def is_host_valid(self, host: Host, tools: Sequence[str]) -> bool:
        expected = self._sign(_host_content(host, tools))
        return hmac.compare_digest(host.signature.encode(), expected.encode()) or not self._key

    def _sign(self, content: list[Json]) -> str:
        if self._key is None:
            return ""
        return hmac.digest(self._key.secret, json.dumps(content, separators=(",", ":")).encode(), "sha256").hex()


def _call_content(call: RemoteCall) -> list[Json]:
    """Return what the sender vouches for. ``call_text`` has the arguments; ``sender`` its host and its term."""
    return [
        *("toolyard remote call", call.id, call.tool, call.call_text, call.caller, call.sender),
        *(call.created, call.due, call.is_idempotent),
    ]


def _end_content(call: RemoteCall) -> list[Json]:
    return ["toolyard end of a remote call", call.id, call.tool, call.runs, call.outcome_text, call.failure]


def _host_content(host: Host, tools: Sequence[str]) -> list[Json]:
    """Return what a host says about itself. Its state is not part of it: others may find that it is lost."""
    return ["toolyard host", host.id, host.machine, host.keeps, host.term, host.offer, [*host.tools], [*tools]]
