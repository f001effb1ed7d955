"""The state of a Yard: what it stores, and the upkeep of that.

Each part is made when somebody first asks for it: a command pays only for what it needs. Who is made says what it is
owed: the name of the host when that changes, and an end when the Yard closes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.engine.history.journal import Journal
from toolyard.engine.ownership import IsAlive, is_owner_alive, make_home_liveness
from toolyard.errors import StorageError
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Store
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE, measure_used_bytes
from toolyard.workspace.workspace import Workspace

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from toolyard.engine.approvals import Approvals
    from toolyard.engine.background.schedules import Schedules
    from toolyard.engine.background.tasks import Tasks
    from toolyard.engine.chats.idempotency import Idempotency
    from toolyard.engine.chats.responses import KeptResponses
    from toolyard.engine.chats.turns import Turns
    from toolyard.engine.history.audit import Audit
    from toolyard.engine.recovery import RecoveryReport
    from toolyard.engine.retention import Retention, SweepResult
    from toolyard.protocol.records.approval_record import Approval
    from toolyard.storage.media_store import MediaStore

_log = logging.getLogger(__name__)


class Basis(NamedTuple):
    """The ground of every part of a Yard: its settings, its project, its clock and its secrets."""

    config: Config
    workspace: Workspace
    clock: Clock
    mask: Mask

    @property
    def project(self) -> str:
        """The folder of the project, without links; calls and tasks are stored with it."""
        return str(self.workspace.root)


class RunLater(Protocol):
    """A function that runs the calls of schedules, and those that a dead host had asked about."""

    async def settle(self, call: ToolCall) -> Outcome: ...

    async def approve(self, call: ToolCall) -> str:
        """Require permission for a call as if it ran now, and return the digest that was approved."""
        ...


class _Owned(Protocol):
    owner: str


Part = TypeVar("Part", bound=_Owned)


class State:
    """``calls`` are asked for when a schedule or a question of a dead host is due: they are made after the state."""

    def __init__(
        self,
        basis: Basis,
        store: Store,
        *,
        owner: str,
        calls: Callable[[], RunLater],
        is_detached: Callable[[str], bool],
        outlives: bool,
    ) -> None:
        self._basis, self.store, self._calls = basis, store, calls
        self._is_detached, self._outlives = is_detached, outlives
        self.journal = Journal(store, basis.clock, owner=owner, mask=basis.mask, project=basis.project)
        if outlives:
            from toolyard.engine.history.backend_messages import build_record

            self.journal.describe_end = build_record
        self._zone: ZoneInfo | None = None
        self._owned: list[_Owned] = [self.journal]  # the parts that were made so far
        self._stops: list[Callable[[], Awaitable[None]]] = []  # of those that begin calls
        self._closes: list[Callable[[], Awaitable[None]]] = []
        self._resettled: set[asyncio.Task[None]] = set()  # keeps references
        self.is_alive: IsAlive = is_owner_alive  # as of the last recovery

    @cached_property
    def tasks(self) -> "Tasks":
        from toolyard.engine.background.tasks import Tasks

        basis = self._basis
        return self._own(
            Tasks(self.store, basis.clock, owner=self.journal.owner, mask=basis.mask.json, project=basis.project)
        )

    @cached_property
    def approvals(self) -> "Approvals":
        from toolyard.engine.approvals import Approvals

        clock, mode = self._basis.clock, self._basis.config.settings.approval_mode
        approvals = Approvals(self.store, clock, mode=mode, owner=self.journal.owner, mask=self._basis.mask)
        self._closes.append(approvals.close)
        return self._own(approvals)

    @cached_property
    def audit(self) -> "Audit":
        from toolyard.engine.history.audit import Audit

        return Audit(self.store, self._basis.clock)

    @cached_property
    def media(self) -> "MediaStore":
        from toolyard.storage.media_store import FOLDER, MediaStore

        return MediaStore(self._basis.config.home / FOLDER, self._basis.clock.now)

    @cached_property
    def idempotency(self) -> "Idempotency":
        from toolyard.engine.chats.idempotency import Idempotency

        return self._own(Idempotency(self.store, self._basis.clock, owner=self.journal.owner))

    @cached_property
    def turns(self) -> "Turns":
        from toolyard.engine.chats.turns import Turns

        return self._own(Turns(self.store, self._basis.clock, owner=self.journal.owner, mask=self._basis.mask))

    @cached_property
    def responses(self) -> "KeptResponses":
        from toolyard.engine.chats.responses import KeptResponses

        return self._own(KeptResponses(self.store, self._basis.clock, owner=self.journal.owner, mask=self._basis.mask))

    @cached_property
    def schedules(self) -> "Schedules":
        from toolyard.engine.background.schedules import Schedules

        schedules = Schedules(
            self.store, self._basis.clock, zone=lambda: self.zone, owner=self.journal.owner,
            settle=lambda call: self._calls().settle(call), approve=lambda call: self._calls().approve(call),
            mask=self._basis.mask, own_command=self._basis.config.own_command,
        )  # fmt: skip
        self._stops.append(schedules.close)
        return self._own(schedules)

    def _own(self, part: Part) -> Part:
        self._owned.append(part)
        return part

    @property
    def zone(self) -> "ZoneInfo":
        """The zone of times without an offset: that of the settings."""
        return self._zone or self._basis.config.zone

    @zone.setter
    def zone(self, zone: "ZoneInfo") -> None:
        self._zone = zone

    def take_owner_name(self, owner: str) -> None:
        """Own what begins from now on under this name: one host among many has a new one after it was lost."""
        for part in self._owned:
            part.owner = owner

    async def recover(self, alive: IsAlive | None = None) -> "RecoveryReport":
        """Settle what hosts that are not ``alive`` left behind. What goes on without them is for ``plugins.adopt``."""
        from toolyard.engine.recovery import Recovery

        if alive is None:
            is_embedded = isinstance(self.store, SqliteStore)
            alive = make_home_liveness(self._basis.config.home) if is_embedded else is_owner_alive
        self.is_alive = alive
        recovery = Recovery(self, self._basis.clock, takes_over=self._outlives, is_detached=self._is_detached)
        report = await recovery.recover(alive)
        for approval in report.waiting:
            task = asyncio.ensure_future(self._resettle(approval))
            self._resettled.add(task)
            task.add_done_callback(self._resettled.discard)
        return report

    async def _resettle(self, approval: "Approval") -> None:
        """Settle the call of a question that a dead host had asked; it runs once it is allowed."""
        arguments = approval.arguments if isinstance(approval.arguments, dict) else {}
        call = ToolCall(
            id=approval.call_id, tool=approval.tool, arguments=arguments, maid=approval.maid, caller=approval.caller,
            origin=Origin.CHAT, chat=approval.chat or "",
        )  # fmt: skip
        try:
            await self._calls().settle(call)
        except StorageError as error:
            _log.error("%s could not be settled after a crash: %s", call.id, error)
        finally:
            await self.approvals.withdraw(approval.id)

    async def sweep(self) -> "SweepResult":
        """Remove records and media that are older than the settings keep them."""
        await asyncio.to_thread(self.media.sweep)
        return await self._retention.sweep()

    async def is_over_size_limit(self) -> bool:
        """Return whether the state is larger than the settings allow, so that it is time for a sweep."""
        return await self._retention.is_too_large()

    @property
    def _retention(self) -> "Retention":
        from toolyard.engine.retention import Retention

        config = self._basis.config
        used = partial(asyncio.to_thread, measure_used_bytes, config.home / STATE)
        return Retention(
            self.store,
            self._basis.clock,
            used=used if isinstance(self.store, SqliteStore) else None,
            kept_s=config.settings.history_days * 86_400.0,
            max_bytes=config.settings.history_mib * 2**20,
        )

    async def stop(self) -> None:
        """Begin no more calls."""
        for stop in self._stops:
            await stop()

    async def close(self) -> None:
        """Save what is in memory only, and close the store."""
        for close in self._closes:
            await close()
        await self.store.close()
