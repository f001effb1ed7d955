"""Approvals: who may run what without being asked, and the asking.

What may run, and why, is for ``engine.rules`` to say. An approval is bound to a hash of the tool, its
arguments, its fingerprint and the caller, so that it is good for exactly that call. The first answer counts; none
within the limit is a no. Nothing a model or a tool writes can answer: answers come by ``answer`` from a person's
command, key or click.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.ask import Ask
from toolyard.engine.clock import Clock
from toolyard.engine.journal import excerpt
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, is_alive, orphans
from toolyard.engine.rules import RULE, Because, Rules, Verdict, new_rule, shown_rule, told
from toolyard.engine.whole import whole
from toolyard.errors import StorageError
from toolyard.protocol.approval import Effect, Mode, State
from toolyard.protocol.call import Origin
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store

__all__ = ["ASKED", "KIND", "RULE", "Approvals", "Ask", "listed", "shown", "shown_rule"]

_log = logging.getLogger(__name__)
KIND: Final = "approval"
ASKED: Final = frozenset({Origin.CHAT, Origin.MCP, Origin.SCHEDULE})
ANSWER_S: Final = 300.0  # for a person to answer
_LOOK_S = 1.0  # how often a waiting call looks at the clock
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
        self._watched: dict[str, asyncio.Future[Record]] = {}  # by call: who wants to know when it asks
        self.mode = mode

    async def require(self, ask: Ask, *, approved: str = "") -> str:
        """Return when the call may run, with the digest that was approved; else raise Failure(DENIED).

        ``approved`` is the digest that a person has approved before, as when a call was scheduled.
        """
        if ask.call.origin not in ASKED:
            return ask.digest
        verdict = await self.judge(ask)
        self._rules.count(verdict)
        if verdict.effect is Effect.DENY:
            raise _denied(f"{ask.call.tool} is not allowed here.", "Use another tool, or ask the owner to allow it.")
        if verdict.because is Because.AUTO_SAFE:
            await self._note(ask, verdict)
        if verdict.effect is Effect.ALLOW or (approved and approved == ask.digest):
            return ask.digest
        answered = await self._ask(ask, verdict)
        if answered.state == State.ALLOWED:
            return ask.digest
        if answered.state == State.EXPIRED:
            raise _denied(
                f"Nobody approved {ask.call.tool} within {self._timeout_s:g} s.", "Ask the user, then try again."
            )
        why = str(answered.body.get("reason") or "no reason was given")
        raise _denied(f"{ask.call.tool} was refused: {why}.", "Do not try the same again; ask the user what they want.")

    async def judge(self, ask: Ask) -> Verdict:
        """What would become of a call that a chat, an MCP client or a schedule makes."""
        async with self._ruling:
            pass  # until a rule that is being made for a chat is there
        return await self._rules.verdict(ask, self.mode)

    async def answer(
        self, id_: str, *, allowed: bool, by: str, always: bool = False, for_chat: bool = False, reason: str = ""
    ) -> State | None:
        """Answer a pending approval. The state it has now, which another answer may have made; None if unknown.

        ``always`` and ``for_chat`` also make a rule, where one rule can say it. Raises Failure when there are too many
        rules for another; the approval then still waits.
        """
        while True:
            record = await self._store.get(KIND, id_)
            if record is None:
                return None
            if record.state != State.PENDING:
                return State(record.state)
            now = self._now()
            late = record.due is not None and record.due <= now
            state = State.EXPIRED if late else State.ALLOWED if allowed else State.DENIED
            body: JsonObject = {**record.body, "by": by, "reason": reason, "answered": now}
            ended = replace(record, state=state, updated=now, due=None, body=body)
            data: JsonObject = {"id": id_, "state": state.value, "by": by, "call_id": record.body["call_id"]}
            events = [NewEvent(type=f"approval.{state.value}", at=now, data=data)]
            bound = for_chat and not always
            rule = _rule_of(record, allowed=allowed, by=by, at=now, chat=bound) if always or for_chat else None
            if rule is not None and not bound:
                await self._rules.require_room()
            if rule is None or late:
                changes = [ended]
            else:
                changes = [ended] if bound else [ended, rule]
                events.append(told(rule))
            if await whole(self._keep(changes, events, rule if bound and not late else None)):
                crashpoint("approval.answered")
                return state

    async def _keep(self, changes: list[Record], events: list[NewEvent], for_chat: Record | None) -> bool:
        """Commit an answer; whoever sees it finds its rule for the chat."""
        if for_chat is None:
            return await self._store.commit(changes, events)
        async with self._ruling:
            won = await self._store.commit(changes, events)
            if won:
                self._rules.add_for_chat(for_chat)
        return won

    async def page(self, states: tuple[str, ...] = (), *, limit: int, after: Place | None = None) -> list[Record]:
        return await self._store.find(KIND, Query(states=states), limit=limit, after=after)

    def watch(self, call_id: str) -> "asyncio.Future[Record]":
        """Return what is done, with the approval, once this call asks for one in this process; cancel it at the end."""
        asked: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._watched[call_id] = asked
        asked.add_done_callback(lambda _: self._watched.pop(call_id, None))
        return asked

    def reveal(self, id_: str) -> JsonObject | None:
        """Return the arguments of a call that waits in this process, nothing masked; None when it does not."""
        return self._waiting.get(id_)

    async def add_rule(self, tool: str, command: str, effect: Effect, *, by: str, plugin: str = "") -> Record:
        """Keep a rule; ``plugin`` is the id of the plugin that has the name, when one has."""
        rule = new_rule(tool, command, effect, by=by, at=self._now(), plugin=plugin)
        await self._rules.add(rule)
        return rule

    async def rules(self) -> list[Record]:
        return await self._rules.every()

    def shown_rule(self, rule: Record) -> JsonObject:
        """A rule, with how often it was used."""
        return self._rules.shown(rule)

    async def revoke(self, id_: str) -> bool:
        return await self._rules.revoke(id_)

    async def close(self) -> None:
        """Keep what was only counted so far; the store stays open."""
        await self._rules.close()

    async def settle_orphans(self, alive: IsAlive = is_alive) -> int:
        """End what the calls of a host that is gone were asking for; how many there were."""
        settled = 0
        async for page in orphans(self._store, KIND, (State.PENDING,), alive):
            settled += sum(await asyncio.gather(*(self._settle(record.id, State.INTERRUPTED) for record in page)))
        return settled

    async def _ask(self, ask: Ask, verdict: Verdict) -> Record:
        """Put the question where people see it, and wait for the answer."""
        asked = self._record(ask, verdict)
        record = replace(asked, owner=self.owner, due=asked.created + self._timeout_s)
        data: JsonObject = {"id": record.id, "tool": record.tool, "call_id": ask.call.id, "expires": record.due}
        event = NewEvent(type="approval.requested", at=record.created, data=data | record.body)
        self._waiting[record.id] = ask.call.arguments
        try:
            await whole(self._store.commit([record], [event]))
            crashpoint("approval.asked")
            watching = self._watched.get(ask.call.id)
            if watching is not None and not watching.done():
                watching.set_result(record)
            return await self._answered(record.id)
        except (asyncio.CancelledError, StorageError):  # nobody waits for the answer any more
            try:
                await whole(self._settle(record.id, State.INTERRUPTED))
            except StorageError as error:
                _log.error("%s stays open until the next start: %s", record.id, error)
            raise
        finally:
            del self._waiting[record.id]

    async def _note(self, ask: Ask, verdict: Verdict) -> None:
        """Keep that a call ran unseen, and why, where the answers of people are kept."""
        record = self._record(ask, verdict)
        body: JsonObject = {**record.body, "by": ask.call.caller, "reason": "", "answered": record.created}
        data: JsonObject = {
            "id": record.id, "state": State.ALLOWED.value, "by": ask.call.caller, "call_id": ask.call.id,
            "because": verdict.because.value,
        }  # fmt: skip
        event = NewEvent(type=f"approval.{State.ALLOWED.value}", at=record.created, data=data)
        await self._store.commit([replace(record, state=State.ALLOWED, body=body)], [event])

    def _record(self, ask: Ask, verdict: Verdict) -> Record:
        now, call = self._now(), ask.call
        arguments, hidden = self._mask.describe(call.arguments)
        commands = [self._mask.text(command) for command in ask.commands]
        return Record(
            kind=KIND, id=f"approval_{uuid4().hex}", state=State.PENDING, created=now, updated=now,
            caller=call.caller, tool=call.tool, key=ask.digest, text=f"{call.id} {call.tool} {excerpt(arguments)}",
            body={
                "call_id": call.id, "commands": [*commands], "risk": ask.spec.risk.value,
                "origin": call.origin.value, "arguments": arguments, "hidden": [*hidden], "maid": call.maid,
                "protected": ask.protected, "chat": call.chat or None, "because": verdict.because.value,
                "why": verdict.reason(call.tool, self.mode),
                "always_offered": ask.fits_one_rule and commands == [*ask.commands],
                "digest": ask.digest, "plugin": ask.spec.plugin_id,
            },
        )  # fmt: skip

    async def _answered(self, id_: str) -> Record:
        while True:
            _, seq = await self._store.event_span()
            record = await self._store.get(KIND, id_)
            if record is None:
                raise RuntimeError(f"{id_} was removed while it was pending")
            if record.state != State.PENDING:
                return record
            if record.due is not None and record.due <= self._now():
                await self._settle(id_, State.EXPIRED)
                continue
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._store.next_event(seq)
            except TimeoutError:
                pass

    async def _settle(self, id_: str, state: State) -> bool:
        """End a pending one that nobody answered; False when somebody did."""
        record = await self._store.get(KIND, id_)
        if record is None or record.state != State.PENDING:
            return False
        now = self._now()
        data: JsonObject = {"id": id_, "state": state.value, "call_id": record.body["call_id"]}
        ended = replace(record, state=state, updated=now, due=None)
        return await self._store.commit([ended], [NewEvent(type=f"approval.{state.value}", at=now, data=data)])

    def _now(self) -> float:
        return self._clock.now().timestamp()


def shown(record: Record) -> JsonObject:
    """An approval as people and programs see it: ``reason`` is why it asks, ``note`` what the answer said."""
    body = {key: value for key, value in record.body.items() if key not in ("by", "why")}
    rule = _rule_of(record, allowed=True, by="", at=0)
    return {
        "id": record.id, "tool": record.tool, "state": record.state, "caller": record.caller,
        "created": record.created, "updated": record.updated, "expires": record.due,
        "chat": None, "because": None, "answered": None, "hidden": [], **body,
        "reason": record.body.get("why", ""), "answered_by": record.body.get("by"),
        "note": record.body.get("reason", ""),
        "rule": {"tool": rule.tool, "command": rule.key, "effect": Effect.ALLOW.value} if rule else None,
    }  # fmt: skip


def listed(record: Record) -> JsonObject:
    """The same for a list: of the arguments, which may be megabytes, the beginning and how many bytes they are."""
    told = shown(record)
    whole = json_bytes(told.pop("arguments", None))
    begun = whole[: 4 * _SUMMARY].decode(errors="ignore")[:_SUMMARY]
    return {**told, "summary": begun, "arguments_bytes": len(whole)}


def _rule_of(record: Record, *, allowed: bool, by: str, at: float, chat: bool = False) -> Record | None:
    """The rule that says what an approval asks, or None when no one rule can."""
    if not record.body.get("always_offered") or (chat and not record.body.get("chat")):
        return None
    commands = record.body["commands"]
    command = str(commands[0]) if isinstance(commands, list) and commands else ""
    effect = Effect.ALLOW if allowed else Effect.DENY
    bound = str(record.body["chat"]) if chat else ""
    plugin = str(record.body.get("plugin") or "")
    return new_rule(record.tool, command, effect, by=by, at=at, caller=record.caller, chat=bound, plugin=plugin)


def _denied(message: str, hint: str) -> Failure:
    return Failure(Reason.DENIED, message, hint=hint)
