"""Approvals: questions to a person before a call runs, and their answers.

``engine.rules`` decides which calls run, are refused or need an approval. An approval is bound to a hash of the tool,
its arguments, its fingerprint and the caller, so that it is good for exactly that call. The first answer counts; none
within the limit is a no. Nothing a model or a tool writes can answer: answers come by ``answer`` from a person's
command, key or click.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.inline import go_to_event_loop
from toolyard.engine.journal import searchable_text
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.engine.permission_request import PermissionRequest
from toolyard.engine.rules import RULE, DecisionReason, Rules, Verdict, new_rule, rule_event, rule_to_json
from toolyard.engine.uncancellable import uncancellable
from toolyard.errors import StorageError
from toolyard.protocol.approval import ApprovalState, Effect, Mode
from toolyard.protocol.call import Origin
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store

__all__ = [
    "ASKING_ORIGINS",
    "KIND",
    "RULE",
    "Approvals",
    "PermissionRequest",
    "rule_to_json",
    "to_json",
    "to_list_json",
]

_log = logging.getLogger(__name__)
KIND: Final = "approval"
ASKING_ORIGINS: Final = frozenset({Origin.CHAT, Origin.MCP, Origin.SCHEDULE})
ANSWER_S: Final = 300.0  # time for a person to answer
_POLL_S = 1.0  # between two checks of the deadline
_SUMMARY = 300  # characters of the arguments that a list shows


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
        self._watched: dict[str, asyncio.Future[Record]] = {}  # by call id: futures of ``watch``
        self.mode = mode

    async def require(self, request: PermissionRequest, *, approved: str = "") -> str:
        """Return when the call may run, with the digest that was approved; else raise Failure(DENIED).

        ``approved`` is the digest that a person has approved before, as when a call was scheduled.
        """
        if request.call.origin not in ASKING_ORIGINS:
            return request.digest
        verdict = await self.judge(request)
        if verdict.rules or verdict.effect is None or verdict.because is DecisionReason.AUTO_SAFE:
            await go_to_event_loop()  # to count the rules, to ask or to note it
        self._rules.count(verdict)
        if verdict.effect is Effect.DENY:
            raise _denied_failure(
                f"{request.call.tool} is not allowed here.", "Use another tool, or ask the owner to allow it."
            )
        if verdict.because is DecisionReason.AUTO_SAFE:
            await self._note_auto_safe(request, verdict)
        if verdict.effect is Effect.ALLOW or (approved and approved == request.digest):
            return request.digest
        answered = await self._ask(request, verdict)
        if answered.state == ApprovalState.ALLOWED:
            return request.digest
        if answered.state == ApprovalState.EXPIRED:
            raise _denied_failure(
                f"Nobody approved {request.call.tool} within {self._timeout_s:g} s.", "Ask the user, then try again."
            )
        why = str(answered.body.get("reason") or "no reason was given")
        raise _denied_failure(
            f"{request.call.tool} was refused: {why}.", "Do not try the same again; ask the user what they want."
        )

    async def judge(self, request: PermissionRequest) -> Verdict:
        """Decide about a call from a chat, an MCP client or a schedule, without asking anybody."""
        if self._ruling.locked():
            await go_to_event_loop()
            async with self._ruling:
                pass  # until the rule that is being made for a chat is there
        return await self._rules.decide(request, self.mode)

    async def answer(
        self, id_: str, *, allowed: bool, by: str, always: bool = False, for_chat: bool = False, reason: str = ""
    ) -> ApprovalState | None:
        """Answer a pending approval; return its state, which another answer may have set; None if unknown.

        ``always`` and ``for_chat`` also make a rule, where one rule can say it. Raises Failure when there are too many
        rules for another; the approval then still waits.
        """
        while True:
            record = await self._store.get(KIND, id_)
            if record is None:
                return None
            if record.state != ApprovalState.PENDING:
                return ApprovalState(record.state)
            now = self._now()
            late = record.due is not None and record.due <= now
            state = ApprovalState.EXPIRED if late else ApprovalState.ALLOWED if allowed else ApprovalState.DENIED
            body: JsonObject = {**record.body, "by": by, "reason": reason, "answered": now}
            ended = replace(record, state=state, updated=now, due=None, body=body)
            data: JsonObject = {"id": id_, "state": state.value, "by": by, "call_id": record.body["call_id"]}
            events = [NewEvent(type=f"approval.{state.value}", at=now, data=data)]
            bound = for_chat and not always
            rule = _build_rule(record, allowed=allowed, by=by, at=now, chat=bound) if always or for_chat else None
            if rule is not None and not bound:
                await self._rules.require_room()
            if rule is None or late:
                changes = [ended]
            else:
                changes = [ended] if bound else [ended, rule]
                events.append(rule_event(rule))
            if await uncancellable(self._commit_answer(changes, events, rule if bound and not late else None)):
                crashpoint("approval.answered")
                return state

    async def _commit_answer(self, changes: list[Record], events: list[NewEvent], for_chat: Record | None) -> bool:
        """Commit an answer together with its rule for the chat, so that no reader sees one without the other."""
        if for_chat is None:
            return await self._store.commit(changes, events)
        async with self._ruling:
            won = await self._store.commit(changes, events)
            if won:
                self._rules.add_for_chat(for_chat)
        return won

    async def page(self, states: tuple[str, ...] = (), *, limit: int, after: PageCursor | None = None) -> list[Record]:
        return await self._store.find(KIND, Query(states=states), limit=limit, after=after)

    def watch(self, call_id: str) -> "asyncio.Future[Record]":
        """Return a future of the approval that this call will ask for in this process; the caller cancels it."""
        approval: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._watched[call_id] = approval
        approval.add_done_callback(lambda _: self._watched.pop(call_id, None))
        return approval

    def reveal(self, id_: str) -> JsonObject | None:
        """Return the unmasked arguments of a call that waits in this process; None when none waits."""
        return self._waiting.get(id_)

    async def add_rule(self, tool: str, command: str, effect: Effect, *, by: str, plugin: str = "") -> Record:
        """Store a rule; ``plugin`` is the id of the plugin that provides the tool, if one does."""
        rule = new_rule(tool, command, effect, by=by, at=self._now(), plugin=plugin)
        await self._rules.add(rule)
        return rule

    async def rules(self) -> list[Record]:
        return await self._rules.list_all()

    def rule_to_json(self, rule: Record) -> JsonObject:
        """Return a rule as client JSON, with its use count."""
        return self._rules.to_json(rule)

    async def revoke(self, id_: str) -> bool:
        return await self._rules.revoke(id_)

    async def close(self) -> None:
        """Save the use counts of rules; the store stays open."""
        await self._rules.close()

    async def settle_orphans(self, alive: IsAlive = is_owner_alive) -> int:
        """Interrupt the pending approvals of dead hosts; return how many there were."""
        settled = 0
        async for page in find_orphans(self._store, KIND, (ApprovalState.PENDING,), alive):
            settled += sum(
                await asyncio.gather(*(self._end_pending(record.id, ApprovalState.INTERRUPTED) for record in page))
            )
        return settled

    async def _ask(self, request: PermissionRequest, verdict: Verdict) -> Record:
        """Store a pending approval and wait for its answer."""
        record = self._build_record(request, verdict)
        record = replace(record, owner=self.owner, due=record.created + self._timeout_s)
        data: JsonObject = {"id": record.id, "tool": record.tool, "call_id": request.call.id, "expires": record.due}
        event = NewEvent(type="approval.requested", at=record.created, data=data | record.body)
        self._waiting[record.id] = request.call.arguments
        try:
            await uncancellable(self._store.commit([record], [event]))
            crashpoint("approval.asked")
            watching = self._watched.get(request.call.id)
            if watching is not None and not watching.done():
                watching.set_result(record)
            return await self._wait_answer(record.id)
        except (asyncio.CancelledError, StorageError):  # nobody waits for the answer any more
            try:
                await uncancellable(self._end_pending(record.id, ApprovalState.INTERRUPTED))
            except StorageError as error:
                _log.error("%s stays open until the next start: %s", record.id, error)
            raise
        finally:
            del self._waiting[record.id]

    async def _note_auto_safe(self, request: PermissionRequest, verdict: Verdict) -> None:
        """Store an approval that was granted automatically because the call can be undone."""
        record = self._build_record(request, verdict)
        body: JsonObject = {**record.body, "by": request.call.caller, "reason": "", "answered": record.created}
        data: JsonObject = {
            "id": record.id, "state": ApprovalState.ALLOWED.value, "by": request.call.caller,
            "call_id": request.call.id,
            "because": verdict.because.value,
        }  # fmt: skip
        event = NewEvent(type=f"approval.{ApprovalState.ALLOWED.value}", at=record.created, data=data)
        await self._store.commit([replace(record, state=ApprovalState.ALLOWED, body=body)], [event])

    def _build_record(self, request: PermissionRequest, verdict: Verdict) -> Record:
        now, call = self._now(), request.call
        arguments, hidden = self._mask.describe(call.arguments)
        commands = [self._mask.text(command) for command in request.commands]
        return Record(
            kind=KIND, id=f"approval_{uuid4().hex}", state=ApprovalState.PENDING, created=now, updated=now,
            caller=call.caller, tool=call.tool, key=request.digest,
            text=f"{call.id} {call.tool} {searchable_text(arguments)}",
            body={
                "call_id": call.id, "commands": [*commands], "risk": request.spec.risk.value,
                "origin": call.origin.value, "arguments": arguments, "hidden": [*hidden], "maid": call.maid,
                "protected": request.writes_protected, "chat": call.chat or None, "because": verdict.because.value,
                "why": verdict.describe(call.tool, self.mode),
                "always_offered": request.fits_one_rule and commands == [*request.commands],
                "digest": request.digest, "plugin": request.spec.plugin_id,
            },
        )  # fmt: skip

    async def _wait_answer(self, id_: str) -> Record:
        while True:
            _, seq = await self._store.event_span()
            record = await self._store.get(KIND, id_)
            if record is None:
                raise RuntimeError(f"{id_} was removed while it was pending")
            if record.state != ApprovalState.PENDING:
                return record
            if record.due is not None and record.due <= self._now():
                await self._end_pending(id_, ApprovalState.EXPIRED)
                continue
            try:
                async with asyncio.timeout(_POLL_S):
                    await self._store.next_event(seq)
            except TimeoutError:
                pass

    async def _end_pending(self, id_: str, state: ApprovalState) -> bool:
        """End an approval that nobody answered; False when somebody did."""
        record = await self._store.get(KIND, id_)
        if record is None or record.state != ApprovalState.PENDING:
            return False
        now = self._now()
        data: JsonObject = {"id": id_, "state": state.value, "call_id": record.body["call_id"]}
        ended = replace(record, state=state, updated=now, due=None)
        return await self._store.commit([ended], [NewEvent(type=f"approval.{state.value}", at=now, data=data)])

    def _now(self) -> float:
        return self._clock.now().timestamp()


def to_json(record: Record) -> JsonObject:
    """Return an approval as client JSON: ``reason`` is why it asks, ``note`` what the answer said."""
    body = {key: value for key, value in record.body.items() if key not in ("by", "why")}
    rule = _build_rule(record, allowed=True, by="", at=0)
    return {
        "id": record.id, "tool": record.tool, "state": record.state, "caller": record.caller,
        "created": record.created, "updated": record.updated, "expires": record.due,
        "chat": None, "because": None, "answered": None, "hidden": [], **body,
        "reason": record.body.get("why", ""), "answered_by": record.body.get("by"),
        "note": record.body.get("reason", ""),
        "rule": {"tool": rule.tool, "command": rule.key, "effect": Effect.ALLOW.value} if rule else None,
    }  # fmt: skip


def to_list_json(record: Record) -> JsonObject:
    """Return an approval as JSON for a list: of large arguments only their beginning and their size in bytes."""
    row = to_json(record)
    arguments = json_bytes(row.pop("arguments", None))
    summary = arguments[: 4 * _SUMMARY].decode(errors="ignore")[:_SUMMARY]
    return {**row, "summary": summary, "arguments_bytes": len(arguments)}


def _build_rule(record: Record, *, allowed: bool, by: str, at: float, chat: bool = False) -> Record | None:
    """Return the rule that an answer makes permanent, or None when no single rule can express it."""
    if not record.body.get("always_offered") or (chat and not record.body.get("chat")):
        return None
    commands = record.body["commands"]
    command = str(commands[0]) if isinstance(commands, list) and commands else ""
    effect = Effect.ALLOW if allowed else Effect.DENY
    bound = str(record.body["chat"]) if chat else ""
    plugin = str(record.body.get("plugin") or "")
    return new_rule(record.tool, command, effect, by=by, at=at, caller=record.caller, chat=bound, plugin=plugin)


def _denied_failure(message: str, hint: str) -> Failure:
    return Failure(Reason.DENIED, message, hint=hint)
