"""The lease of this host: its right to what it has begun, although others could take it for dead.

A host renews its lease every ``HEARTBEAT_S``. Others may declare it lost only when the lease has run out on the clock
of the database. The lease is longer than two attempts to renew it can take one after the other, so a database that
stalls for some seconds harms nobody. ``LEASE_S`` after it sent its last renewal a host can no longer be certain: then
it starts nothing before it has asked. When it was declared lost it comes back in a new term, and whatever it began in
an earlier one is no longer its own: that has ended, or ends now, by the hand of another host.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from toolyard.engine.clock import read_boot_time
from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.store import Leases

HEARTBEAT_S: Final = 2.0
LEASE_S: Final = 15.0
_MARGIN_S = 1.0  # what may pass between a look at the clock and the start of a child
_PARTS = 4  # of a host's name


def owner_name(host: str, term: int) -> str:
    """Return the name under which a host owns what it begins in one of its terms."""
    return host if term <= 1 else f"{host}/{term}"


def split_owner(owner: str) -> tuple[str, int]:
    """Return the host and the term of an owner."""
    parts = owner.split("/")
    if len(parts) == _PARTS + 1 and parts[-1].isdigit():
        return "/".join(parts[:-1]), int(parts[-1])
    return owner, 1


class HostLease:
    """The lease of one host. ``take_name`` is called with the name under which it owns things from now on."""

    def __init__(
        self,
        leases: Leases,
        host: str,
        *,
        take_name: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = read_boot_time,
    ) -> None:
        self.host, self.term = host, 0
        self._leases, self._take_name, self._now = leases, take_name, now
        self._certain_until = now()
        self._store_time = self._sent = self._answered = 0.0  # of the newest renewal
        self._asking = asyncio.Lock()

    @property
    def owner(self) -> str:
        return owner_name(self.host, self.term)

    def is_certain(self) -> bool:
        """Return whether nobody can have declared this host lost."""
        return self._now() < self._certain_until

    def earliest_store_time(self) -> float:
        """Return a time that the clock of the store has passed."""
        return self._store_time + self._now() - self._answered

    def latest_store_time(self) -> float:
        """Return a time that the clock of the store has not passed yet."""
        return self._store_time + self._now() - self._sent

    async def renew(self) -> None:
        """Renew it, or begin a new term when this host was declared lost. Raises StorageError."""
        async with self._asking:
            await self._renew()

    async def release(self) -> None:
        await self._leases.release(self.host)

    async def confirm(self, owner: str) -> None:
        """Raise Failure unless what ``owner`` has begun is this host's own at this moment."""
        if not self.is_certain():
            async with self._asking:
                if not self.is_certain():  # nobody else has asked meanwhile
                    await self._request_lease()
        if owner != self.owner:
            raise Failure(
                Reason.INTERRUPTED,
                Message(
                    "It was not started: its host stood still, or could not reach the database, for longer than its "
                    "lease, and the call was ended without it."
                ),
                hint=Message("Call it again."),
            )

    async def _request_lease(self) -> None:
        try:
            await self._renew()
        except StorageError as error:
            raise Failure(
                Reason.INTERRUPTED,
                Message(
                    "It was not started: the database does not confirm that this host may still start it ({error}).",
                    error=error,
                ),
                hint=Message("Call it again when the database answers."),
            ) from error

    async def _renew(self) -> None:
        sent = self._now()
        time_ = await self._leases.renew(self.host, self.term, LEASE_S) if self.term else None
        if time_ is None:
            sent = self._now()
            self.term, time_ = await self._leases.acquire(self.host, LEASE_S)
            self._take_name(self.owner)
        self._store_time, self._sent, self._answered = time_, sent, self._now()
        self._certain_until = sent + LEASE_S - _MARGIN_S
