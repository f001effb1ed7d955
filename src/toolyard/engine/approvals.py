"""Approvals: who may run what without being asked, and the asking.

In this order: a rule that denies, a rule that allows, the mode. An approval is bound to a hash of the tool, its
arguments, its fingerprint and the caller, so that it is good for exactly that call. The first answer counts; none
within the limit is a no. Nothing a model or a tool writes can answer: answers come by ``answer`` from a person's
command, key or click.
"""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.journal import excerpt
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, is_alive, orphans
from toolyard.protocol.approval import Effect, Mode, State
from toolyard.protocol.call import Origin, ToolCall, fold
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store
from toolyard.protocol.tool import Risk, ToolSpec

KIND: Final = "approval"
RULE: Final = "rule"
ASKED: Final = frozenset({Origin.CHAT, Origin.MCP, Origin.SCHEDULE})
_COMMAND = re.compile(r"command[0-9]*")
_MAX_RULES = 1000  # that are read at once
_LOOK_S = 1.0  # how often a waiting call looks at the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call as the approvals see it."""

    call: ToolCall
    spec: ToolSpec
    fingerprint: str = ""  # of the plugin as it was reviewed
    touches_protected: bool = False  # it names a place where only a person may let it write

    @property
    def commands(self) -> tuple[str, ...]:
        """What a tool of several commands is asked to do: one of them, or each of a numbered batch."""
        named = (value for key, value in self.call.arguments.items() if _COMMAND.fullmatch(fold(key)))
        return tuple(dict.fromkeys(str(value) for value in named))

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the tool: a rule for one of them holds for all."""
        return tuple(dict.fromkeys((self.call.tool, self.spec.name, *self.spec.aliases)))

    @property
    def protected(self) -> bool:
        """Whether it writes where only a person may say so."""
        return self.touches_protected and not self.reads

    @property
    def reads(self) -> bool:
        """Whether it only looks."""
        looks = self.spec.reading_commands
        return self.spec.risk is Risk.READ or (bool(self.commands) and all(name in looks for name in self.commands))

    @property
    def digest(self) -> str:
        parts = [self.call.tool, self.call.arguments, self.fingerprint, self.call.caller]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Approvals:
    def __init__(
        self, store: Store, clock: Clock, *, mode: Mode, owner: str, mask: Mask | None = None, timeout_s: float = 300.0
    ) -> None:
        self._store, self._clock, self._owner, self._timeout_s = store, clock, owner, timeout_s
        self._mask = mask or Mask()
        self.mode = mode

    async def require(self, ask: Ask, *, approved: str = "") -> str:
        """Return when the call may run, with the digest that was approved; else raise Failure(DENIED).

        ``approved`` is the digest that a person has approved before, as when a call was scheduled.
        """
        verdict = await self._verdict(ask)
        if verdict is Effect.DENY:
            raise _denied(f"{ask.call.tool} is not allowed here.", "Use another tool, or ask the owner to allow it.")
        if verdict is Effect.ALLOW or (approved and approved == ask.digest):
            return ask.digest
        answered = await self._ask(ask)
        if answered.state == State.ALLOWED:
            return ask.digest
        if answered.state == State.EXPIRED:
            raise _denied(
                f"Nobody approved {ask.call.tool} within {self._timeout_s:g} s.", "Ask the user, then try again."
            )
        why = str(answered.body.get("reason") or "no reason was given")
        raise _denied(f"{ask.call.tool} was refused: {why}.", "Do not try the same again; ask the user what they want.")

    async def answer(self, id_: str, *, allowed: bool, by: str, always: bool = False, reason: str = "") -> State | None:
        """Answer a pending approval. The state it has now, which another answer may have made; None if unknown."""
        while True:
            record = await self._store.get(KIND, id_)
            if record is None:
                return None
            if record.state != State.PENDING:
                return State(record.state)
            now = self._now()
            late = record.due is not None and record.due <= now
            state = State.EXPIRED if late else State.ALLOWED if allowed else State.DENIED
            changes = [
                replace(record, state=state, updated=now, due=None, body={**record.body, "by": by, "reason": reason})
            ]
            if always and not late and record.body.get("always_offered"):
                effect = Effect.ALLOW if allowed else Effect.DENY
                commands = record.body["commands"]
                command = str(commands[0]) if isinstance(commands, list) and commands else ""
                changes.append(_rule(record.tool, command, effect, by, now))
            told: JsonObject = {"id": id_, "state": state.value, "by": by, "call_id": record.body["call_id"]}
            if await self._store.commit(changes, [NewEvent(type=f"approval.{state.value}", at=now, data=told)]):
                crashpoint("approval.answered")
                return state

    async def page(self, states: tuple[str, ...] = (), *, limit: int, after: Place | None = None) -> list[Record]:
        return await self._store.find(KIND, Query(states=states), limit=limit, after=after)

    async def add_rule(self, tool: str, command: str, effect: Effect, *, by: str) -> Record:
        record = _rule(tool, command, effect, by, self._now())
        told: JsonObject = {"id": record.id, "tool": tool, "command": command, "effect": effect.value}
        await self._store.commit([record], [NewEvent(type="approval.rule", at=record.created, data=told)])
        crashpoint("approval.rule-added")
        return record

    async def rules(self) -> list[Record]:
        return await self._rules()

    async def _rules_for(self, names: tuple[str, ...]) -> list[Record]:
        """As there are seldom any, one look for all names; where there are too many for that, one for each."""
        rules = await self._rules()
        if len(rules) < _MAX_RULES:
            return [rule for rule in rules if rule.tool in names]
        return [rule for name in names for rule in await self._rules(name)]

    async def settle_orphans(self, alive: IsAlive = is_alive) -> int:
        """End what the calls of a host that is gone were asking for; how many there were."""
        settled = 0
        async for page in orphans(self._store, KIND, (State.PENDING,), alive):
            settled += sum(await asyncio.gather(*(self._settle(record.id, State.INTERRUPTED) for record in page)))
        return settled

    async def revoke(self, id_: str) -> bool:
        record = await self._store.get(RULE, id_)
        if record is None or record.state != "active":
            return False
        now = self._now()
        told: JsonObject = {"id": id_}
        gone = replace(record, state="revoked", updated=now)
        return await self._store.commit([gone], [NewEvent(type="approval.rule_revoked", at=now, data=told)])

    async def _rules(self, tool: str | None = None) -> list[Record]:
        return await self._store.find(RULE, Query(states=("active",), tool=tool), limit=_MAX_RULES)

    async def _verdict(self, ask: Ask) -> Effect | None:
        """Allowed, denied, or None: ask."""
        if ask.call.origin not in ASKED:
            return Effect.ALLOW
        rules = await self._rules_for(ask.names)
        named = {effect: {rule.key for rule in rules if rule.body["effect"] == effect} for effect in Effect}
        if named[Effect.DENY] & {"", *ask.commands}:
            return Effect.DENY
        allowed = named[Effect.ALLOW]
        if not ask.protected and ("" in allowed or (ask.commands and allowed.issuperset(ask.commands))):
            return Effect.ALLOW
        reads = ask.reads
        match self.mode:
            case Mode.DENY:
                return Effect.DENY
            case Mode.READ_ONLY:
                return Effect.ALLOW if reads else Effect.DENY
            case Mode.AUTO:
                return None if ask.protected else Effect.ALLOW
            case Mode.ASK:
                return Effect.ALLOW if reads else None

    async def _ask(self, ask: Ask) -> Record:
        """Put the question where people see it, and wait for the answer."""
        now = self._now()
        call = ask.call
        arguments = self._mask.json(call.arguments)
        record = Record(
            kind=KIND, id=f"approval_{uuid4().hex}", state=State.PENDING, created=now, updated=now,
            caller=call.caller, tool=call.tool, key=ask.digest, owner=self._owner, due=now + self._timeout_s,
            text=f"{call.tool} {excerpt(arguments)}",
            body={
                "call_id": call.id, "commands": list(ask.commands), "risk": ask.spec.risk.value,
                "origin": call.origin.value, "arguments": arguments, "maid": call.maid,
                "protected": ask.protected,
                "always_offered": not ask.protected and len(ask.commands) <= 1, "digest": ask.digest,
            },
        )  # fmt: skip
        told: JsonObject = {"id": record.id, "tool": call.tool, "call_id": call.id, "expires": record.due}
        await self._store.commit([record], [NewEvent(type="approval.requested", at=now, data=told | record.body)])
        try:
            crashpoint("approval.asked")
            return await self._answered(record.id)
        except asyncio.CancelledError:
            await asyncio.shield(self._settle(record.id, State.INTERRUPTED))
            raise

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
        told: JsonObject = {"id": id_, "state": state.value, "call_id": record.body["call_id"]}
        ended = replace(record, state=state, updated=now, due=None)
        return await self._store.commit([ended], [NewEvent(type=f"approval.{state.value}", at=now, data=told)])

    def _now(self) -> float:
        return self._clock.now().timestamp()


def shown(record: Record) -> JsonObject:
    """An approval as people and programs see it."""
    told: JsonObject = {
        "id": record.id, "tool": record.tool, "state": record.state, "caller": record.caller,
        "created": record.created, "updated": record.updated, "expires": record.due,
    }  # fmt: skip
    return told | record.body


def shown_rule(record: Record) -> JsonObject:
    told: JsonObject = {"id": record.id, "tool": record.tool, "command": record.key, "created": record.created}
    return told | record.body


def _rule(tool: str, command: str, effect: Effect, by: str, at: float) -> Record:
    return Record(
        kind=RULE, id=f"rule_{uuid4().hex}", state="active", created=at, updated=at, tool=tool, key=command,
        body={"effect": effect.value, "by": by},
    )  # fmt: skip


def _denied(message: str, hint: str) -> Failure:
    return Failure(Reason.DENIED, message, hint=hint)
