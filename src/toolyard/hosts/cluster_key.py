"""The check that all hosts of a database have the same ``cluster_key``.

The name of the key that is in use stands in a record, where nothing of the key itself can be seen. A host with another
one, or without any, does not start while others run; when none does, a server or worker brings its own key.
"""

import logging
from dataclasses import replace
from typing import Final

from toolyard.errors import StorageError
from toolyard.message import Message
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
                "host.cluster_key_needed",
                "the hosts of this database have a cluster_key, and this one has none: set the same cluster_key here",
            )
        )
    if not others_have:
        return StorageError(
            Message(
                "host.cluster_key_unknown_to_others",
                "this host has a cluster_key, and the others of this database have none: stop them all, set the same "
                "cluster_key on each, and start them again",
            )
        )
    return StorageError(
        Message(
            "host.cluster_key_differs",
            "the hosts of this database have another cluster_key: set the same one on every host; to change it, stop "
            "them all first",
        )
    )
