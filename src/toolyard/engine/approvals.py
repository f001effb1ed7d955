"""Approvals: questions to a person before a call runs, and their answers.

``engine.rules`` decides which calls run, are refused or need an approval. An approval is bound to a hash of the tool,
its arguments, its fingerprint and the caller, so that it is good for exactly that call. The first answer counts; none
within the limit is a no. Nothing a model or a tool writes can answer: answers come by ``answer`` from a person's
command, key or click.

A question of a chat outlives the process that asked it: the host that finds it takes it over (``settle_orphans``) and
settles its call anew, which waits for the answer to the same question and then runs, once.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.cancellation import uncancellable
from toolyard.engine.clock import Clock
from toolyard.engine.history.audit import new_entry
from toolyard.engine.history.journal import searchable_text
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.engine.rules import PermissionRequest, Rules, Verdict, audit_rule, new_rule
from toolyard.errors import StorageError
from toolyard.message import Message, strip_period, to_fields
from toolyard.protocol.access import ApprovalState, DecisionReason, Effect, Mode
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.approval_record import APPROVAL, Approval, Rule
from toolyard.protocol.records.audit_record import Actor
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store
from toolyard.protocol.tool import ASKING_ORIGINS, Origin

_log = logging.getLogger(__name__)
ANSWER_S: Final = 300.0  # time for a person to answer
_POLL_S = 1.0  # between two checks of the deadline


class Approvals:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        mode: Mode,
        owner: str,
        mask: Mask | None = None,
        timeout_s: float = ANSWER_S,
    ) -> None:
        self._store, self._clock, self.owner, self._timeout_s = store, clock, owner, timeout_s
        self._mask = mask or Mask()
        self._rules = Rules(store, clock)
        self._ruling = asyncio.Lock()  # held while an answer makes a rule for a chat
        self._waiting: dict[str, JsonObject] = {}  # the arguments of what waits here, as they are: never stored
        self._watched: dict[str, asyncio.Future[Approval]] = {}  # by call id: futures of ``watch``
        self._taken_over: dict[str, Approval] = {}  # by call id: questions of dead hosts whose calls are settled anew
        self.mode = mode

    async def require(self, request: PermissionRequest, *, approved: str = "") -> str:
        """Return when the call may run, with the digest that was approved; else raise Failure(DENIED).

        ``approved`` is the digest that a person has approved before, as when a call was scheduled.
        """
        if request.call.origin not in ASKING_ORIGINS:
            return request.digest
        verdict = await self.judge(request)
        self._rules.count(verdict)
        if verdict.effect is Effect.DENY:
            raise _denied_failure(
                Message("{tool} is not allowed here.", tool=request.call.tool),
                Message("Use another tool, or ask the owner to allow it."),
            )
        if verdict.because is DecisionReason.AUTO_SAFE:
            await self._note_auto_safe(request, verdict)
        if verdict.effect is Effect.ALLOW or (approved and approved == request.digest):
            return request.digest
        answered = await self._ask(request, verdict, self._taken_over.pop(request.call.id, None))
        if answered.state == ApprovalState.ALLOWED:
            return request.digest
        if answered.state == ApprovalState.EXPIRED:
            raise _denied_failure(
                Message(
                    "Nobody approved {tool} within {seconds:g} s.", tool=request.call.tool, seconds=self._timeout_s
                ),
                Message("Ask the user, then try again."),
            )
        why = answered.note or Message("no reason was given")
        raise _denied_failure(
            Message("{tool} was refused: {why}.", tool=request.call.tool, why=strip_period(why)),
            Message("Do not try the same again; ask the user what they want."),
        )

    async def judge(self, request: PermissionRequest) -> Verdict:
        """Decide about a call from a chat, an MCP client or a schedule, without asking anybody."""
        if self._ruling.locked():
            async with self._ruling:
                pass  # until the rule that is being made for a chat is there
        return await self._rules.decide(request, self.mode)

    async def answer(
        self,
        id_: str,
        *,
        allowed: bool,
        by: Actor | str,
        always: bool = False,
        for_chat: bool = False,
        reason: str = "",
    ) -> ApprovalState | None:
        """Answer a pending approval; return its state, which another answer may have set; None if unknown.

        ``always`` and ``for_chat`` also make a rule, where one rule can say it. Raises Failure when there are too many
        rules for another; the approval then still waits.
        """
        actor = Actor.from_name(by)
        while True:
            approval = await self.get(id_)
            if approval is None:
                return None
            if approval.state is not ApprovalState.PENDING:
                return approval.state
            now = self._now()
            late = approval.expires is not None and approval.expires <= now
            state = ApprovalState.EXPIRED if late else ApprovalState.ALLOWED if allowed else ApprovalState.DENIED
            ended = replace(
                approval, state=state, updated=now, expires=None, answered_by=actor.name, note=reason, answered=now
            ).to_record()
            data: JsonObject = {"id": id_, "state": state.value, "by": actor.name, "call_id": approval.call_id}
            events = [NewEvent(type=f"approval.{state.value}", at=now, data=data)]
            bound = for_chat and not always
            rule = (
                _build_rule(approval, allowed=allowed, by=actor.name, at=now, for_chat=bound)
                if always or for_chat
                else None
            )
            if rule is not None and not bound:
                await self._rules.require_room()
            changes = [ended, _audit_answer(approval, state, actor, now, reason)]
            if rule is not None and not late:
                changes += [audit_rule("rule.added", rule, actor, now), *([] if bound else [rule.to_record()])]
                events.append(rule.to_event())
            if await uncancellable(self._commit_answer(changes, events, rule if bound and not late else None)):
                crashpoint("approval.answered")
                return state

    async def _commit_answer(self, changes: list[Record], events: list[NewEvent], for_chat: Rule | None) -> bool:
        """Commit an answer together with its rule for the chat, so that no reader sees one without the other."""
        if for_chat is None:
            return await self._store.commit(changes, events)
        async with self._ruling:
            won = await self._store.commit(changes, events)
            if won:
                self._rules.add_for_chat(for_chat)
        return won

    async def get(self, id_: str) -> Approval | None:
        record = await self._store.get(APPROVAL, id_)
        return Approval.from_record(record) if record else None

    async def page(
        self, states: tuple[str, ...] = (), *, limit: int, after: PageCursor | None = None
    ) -> list[Approval]:
        records = await self._store.find(APPROVAL, Query(states=states), limit=limit, after=after)
        return [Approval.from_record(record) for record in records]

    async def find_for_call(self, call_id: str, caller: str) -> Approval | None:
        """Return the approval that a call asked for."""
        records = await self._store.find(APPROVAL, Query(text=call_id, caller=caller), limit=1)
        approval = Approval.from_record(records[0]) if records else None
        return approval if approval is not None and approval.call_id == call_id else None

    def watch(self, call_id: str) -> "asyncio.Future[Approval]":
        """Return a future of the approval that this call will ask for in this process; the caller cancels it."""
        approval: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self._watched[call_id] = approval
        approval.add_done_callback(lambda _: self._watched.pop(call_id, None))
        return approval

    def reveal(self, id_: str) -> JsonObject | None:
        """Return the unmasked arguments of a call that waits in this process; None when none waits."""
        return self._waiting.get(id_)

    async def add_rule(self, tool: str, command: str, effect: Effect, *, by: Actor | str, plugin: str = "") -> Rule:
        """Store a rule; ``plugin`` is the id of the plugin that provides the tool, if one does."""
        actor = Actor.from_name(by)
        rule = new_rule(tool, command, effect, by=actor.name, at=self._now(), plugin=plugin)
        await self._rules.add(rule, actor)
        return rule

    async def rules(self) -> list[Rule]:
        """Return the active rules with their uses."""
        return await self._rules.list_all()

    def with_uses(self, rule: Rule) -> Rule:
        """Return a rule with all uses that were counted so far."""
        return self._rules.with_uses(rule)

    async def revoke(self, id_: str, *, by: Actor | str = "") -> bool:
        return await self._rules.revoke(id_, Actor.from_name(by))

    async def close(self) -> None:
        """Save the use counts of rules; the store stays open."""
        await self._rules.close()

    async def settle_orphans(
        self, alive: IsAlive = is_owner_alive, *, takes_over: bool = True
    ) -> "tuple[list[Approval], list[Approval]]":
        """Keep the pending approvals of dead hosts that can be waited for, and interrupt the others; return both kinds.

        That takes a call of a chat whose arguments are stored as they are. With ``takes_over`` they belong to this host
        from now on, and their calls are to be settled anew; else they stay as they are for a host that lives longer.
        """
        kept, interrupted = list[Approval](), list[Approval]()
        async for page in find_orphans(self._store, APPROVAL, (ApprovalState.PENDING,), alive):
            for approval in map(Approval.from_record, page):
                if not self._can_wait_on(approval):
                    if await self._end_pending(approval.id, ApprovalState.INTERRUPTED):
                        interrupted.append(approval)
                elif not takes_over:
                    kept.append(approval)
                elif await self._store.commit([replace(approval, owner=self.owner).to_record()]):
                    kept.append(replace(approval, owner=self.owner, version=approval.version + 1))
                    self._taken_over[approval.call_id] = kept[-1]
        return kept, interrupted

    def _can_wait_on(self, approval: Approval) -> bool:
        is_open = approval.expires is None or approval.expires > self._now()
        is_exact = not approval.hidden and isinstance(approval.arguments, dict)
        return approval.origin == Origin.CHAT and is_exact and is_open

    async def withdraw(self, id_: str) -> None:
        """End a question for which nobody waits any more, if it is still open."""
        await self._end_pending(id_, ApprovalState.INTERRUPTED)

    async def _ask(self, request: PermissionRequest, verdict: Verdict, before: Approval | None) -> Approval:
        """Store a pending approval, unless it was asked ``before``, and wait for its answer."""
        approval = self._build_approval(request, verdict)
        approval = replace(approval, owner=self.owner, expires=approval.created + self._timeout_s)
        is_same = before is not None and before.digest == approval.digest
        if before is not None:
            if is_same:
                approval = before
            else:  # what it is about has changed meanwhile, such as its plugin
                await self._end_pending(before.id, ApprovalState.INTERRUPTED)
        self._waiting[approval.id] = request.call.arguments
        try:
            if not is_same:
                await uncancellable(self._store.commit([approval.to_record()], [approval.to_event()]))
            crashpoint("approval.asked")
            watching = self._watched.get(request.call.id)
            if watching is not None and not watching.done():
                watching.set_result(approval)
            return await self._wait_answer(approval.id)
        except (asyncio.CancelledError, StorageError):  # nobody waits for the answer any more
            try:
                await uncancellable(self._end_pending(approval.id, ApprovalState.INTERRUPTED))
            except StorageError as error:
                _log.error("%s stays open until the next start: %s", approval.id, error)
            raise
        finally:
            del self._waiting[approval.id]

    async def _note_auto_safe(self, request: PermissionRequest, verdict: Verdict) -> None:
        """Store an approval that was granted automatically because the call can be undone."""
        approval = self._build_approval(request, verdict)
        approval = replace(
            approval, state=ApprovalState.ALLOWED, answered_by=request.call.caller, answered=approval.created
        )
        data: JsonObject = {
            "id": approval.id, "state": ApprovalState.ALLOWED.value, "by": request.call.caller,
            "call_id": request.call.id, "because": verdict.because.value,
        }  # fmt: skip
        event = NewEvent(type=f"approval.{ApprovalState.ALLOWED.value}", at=approval.created, data=data)
        by = Actor(name=request.call.caller, way="auto")
        audited = _audit_answer(approval, ApprovalState.ALLOWED, by, approval.created, verdict.because.value)
        await self._store.commit([approval.to_record(), audited], [event])

    def _build_approval(self, request: PermissionRequest, verdict: Verdict) -> Approval:
        now, call = self._now(), request.call
        arguments, hidden = self._mask.describe(call.arguments)
        commands = tuple(self._mask.text(command) for command in request.commands)
        return Approval(
            id=f"approval_{uuid4().hex}", tool=call.tool, state=ApprovalState.PENDING, caller=call.caller,
            created=now, updated=now, chat=call.chat or None, because=verdict.because, hidden=tuple(hidden),
            call_id=call.id, commands=commands, risk=request.spec.risk.value, origin=call.origin.value,
            arguments=arguments, maid=call.maid, protected=request.writes_protected,
            always_offered=request.fits_one_rule and commands == request.commands, digest=request.digest,
            plugin=request.spec.plugin_id, reason=verdict.describe(call.tool, self.mode),
            search_text=f"{call.id} {call.tool} {searchable_text(arguments)}",
        )  # fmt: skip

    async def _wait_answer(self, id_: str) -> Approval:
        while True:
            _, seq = await self._store.event_span()
            approval = await self.get(id_)
            if approval is None:
                raise RuntimeError(f"{id_} was removed while it was pending")
            if approval.state is not ApprovalState.PENDING:
                return approval
            if approval.expires is not None and approval.expires <= self._now():
                await self._end_pending(id_, ApprovalState.EXPIRED)
                continue
            try:
                async with asyncio.timeout(_POLL_S):
                    await self._store.next_event(seq)
            except TimeoutError:
                pass

    async def _end_pending(self, id_: str, state: ApprovalState) -> bool:
        """End an approval that nobody answered; False when somebody did."""
        approval = await self.get(id_)
        if approval is None or approval.state is not ApprovalState.PENDING:
            return False
        now = self._now()
        data: JsonObject = {"id": id_, "state": state.value, "call_id": approval.call_id}
        ended = replace(approval, state=state, updated=now, expires=None).to_record()
        return await self._store.commit([ended], [NewEvent(type=f"approval.{state.value}", at=now, data=data)])

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _build_rule(approval: Approval, *, allowed: bool, by: str, at: float, for_chat: bool) -> Rule | None:
    """Return the rule that an answer makes, or None when no single rule can express it."""
    target = approval.rule
    if target is None or (for_chat and not approval.chat):
        return None
    return new_rule(
        target.tool, target.command, Effect.ALLOW if allowed else Effect.DENY, by=by, at=at, caller=approval.caller,
        chat=approval.chat or "" if for_chat else "", plugin=approval.plugin,
    )  # fmt: skip


def _audit_answer(approval: Approval, state: ApprovalState, by: Actor, at: float, reason: str) -> Record:
    detail: JsonObject = {"call_id": approval.call_id, "commands": [*approval.commands], "risk": approval.risk}
    if reason:
        detail |= to_fields("reason", reason)
    return new_entry(
        f"approval.{state.value}", by, at, tool=approval.tool, plugin=approval.plugin, target=approval.id, detail=detail
    ).to_record()


def _denied_failure(message: str, hint: str) -> Failure:
    return Failure(Reason.DENIED, message, hint=hint)
