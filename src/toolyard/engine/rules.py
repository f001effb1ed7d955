"""Rules and modes: what may run without being asked, what must not run, and why.

In this order: a rule that denies, a rule that allows, the mode, and where that asks, what a person lets a chat do.
A rule for a plugin is about that plugin: it does not hold for another one that takes its name. A rule that names no
plugin, as one that was made before there was such a tool, holds for the name, but allows no plugin that hides others.
Rules are kept in the store, at most ``MAX_RULES``, so that each of them is looked at. Those for one chat are kept by
this process alone: they end with it, or when ``MAX_FOR_CHATS`` newer ones have come. How often a rule was used is for
``engine.rule_uses`` to know.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.ask import Ask
from toolyard.engine.clock import Clock
from toolyard.engine.rule_uses import RuleUses
from toolyard.protocol.approval import Effect, Mode
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.protocol.tool import ToolSpec

RULE: Final = "rule"
MAX_FOR_CHATS: Final = 1000
MAX_RULES: Final = 1000


class Because(StrEnum):
    """What decided. The risks of tools are words of their own."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    PROTECTED = "protected"
    ALLOW_RULE = "allow-rule"
    DENY_RULE = "deny-rule"
    AUTO_SAFE = "auto-safe"
    MODE = "mode"


_SAID = {
    Because.READ: "{tool} only reads.",
    Because.WRITE: "{tool} changes files.",
    Because.EXECUTE: "{tool} runs a program.",
    Because.NETWORK: "{tool} reaches the network.",
    Because.PROTECTED: "{tool} writes to a place where only a person may let it.",
    Because.ALLOW_RULE: "A rule allows {tool}.",
    Because.DENY_RULE: "A rule refuses {tool}.",
    Because.AUTO_SAFE: "What {tool} does can be undone, and this chat may do such things without asking.",
    Because.MODE: "The approval mode is {mode}.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    effect: Effect | None  # None: ask
    because: Because
    rules: tuple[Record, ...] = ()  # that decided

    def reason(self, tool: str, mode: Mode) -> str:
        return _SAID[self.because].format(tool=tool, mode=mode.value)


class Rules:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._for_chats: OrderedDict[str, Record] = OrderedDict()
        self._uses = RuleUses(store, RULE)

    async def every(self) -> list[Record]:
        async with self._uses.settled:
            return [*await self._stored(), *self._for_chats.values()]

    async def require_room(self) -> None:
        """Raises Failure when there are as many as are looked at: one more could hide one that denies."""
        if await self._store.count(RULE, Query(states=("active",))) >= MAX_RULES:
            raise Failure(
                ErrorCode.CONFLICT, f"There are {MAX_RULES} rules already.", hint="Revoke some of them first."
            )

    async def add(self, rule: Record) -> None:
        await self.require_room()
        await self._store.commit([rule], [told(rule)])
        crashpoint("approval.rule-added")

    def add_for_chat(self, rule: Record) -> None:
        self._for_chats[rule.id] = rule
        while len(self._for_chats) > MAX_FOR_CHATS:
            self._for_chats.popitem(last=False)

    async def revoke(self, id_: str) -> bool:
        """Whether there was such a rule."""
        now = self._clock.now().timestamp()
        event = NewEvent(type="approval.rule_revoked", at=now, data={"id": id_})
        if self._for_chats.pop(id_, None):
            return await self._store.commit([], [event])
        while (record := await self._store.get(RULE, id_)) is not None and record.state == "active":
            if await self._store.commit([replace(record, state="revoked", updated=now)], [event]):
                return True  # else its uses were written meanwhile
        return False

    async def verdict(self, ask: Ask, mode: Mode) -> Verdict:
        rules = [*await self._stored_for(ask.names), *(one for one in self._for_chats.values() if _is_for(one, ask))]
        rules = [one for one in rules if _is_about(one, ask.spec)]
        denying = [one for one in rules if one.body["effect"] == Effect.DENY and one.key in {"", *ask.commands}]
        if denying:
            return Verdict(Effect.DENY, Because.DENY_RULE, (denying[0],))
        allowing = {one.key: one for one in rules if one.body["effect"] == Effect.ALLOW}
        wanted = [""] if "" in allowing else list(ask.commands)
        if not ask.protected and wanted and all(name in allowing for name in wanted):
            return Verdict(Effect.ALLOW, Because.ALLOW_RULE, tuple(allowing[name] for name in wanted))
        verdict = _by_mode(ask, mode)
        if verdict.effect is None and ask.unattended and not ask.protected:
            return Verdict(Effect.ALLOW, Because.AUTO_SAFE)
        return verdict

    def count(self, verdict: Verdict) -> None:
        """Note that rules decided about a call."""
        for rule in verdict.rules:
            self._uses.count(rule, self._clock.now().timestamp())

    def shown(self, record: Record) -> JsonObject:
        """A rule as people and programs see it."""
        return {**shown_rule(record), **self._uses.of(record)}

    async def close(self) -> None:
        """Keep how often rules were used."""
        await self._uses.close()

    async def _stored(self, tool: str | None = None) -> list[Record]:
        return await self._store.find(RULE, Query(states=("active",), tool=tool), limit=MAX_RULES)

    async def _stored_for(self, names: tuple[str, ...]) -> list[Record]:
        """As there are seldom any, one look for all names; where there are too many for that, one for each."""
        rules = await self._stored()
        if len(rules) < MAX_RULES:
            return [rule for rule in rules if rule.tool in names]
        return [rule for name in names for rule in await self._stored(name)]


def new_rule(
    tool: str, command: str, effect: Effect, *, by: str, at: float, caller: str = "", chat: str = "", plugin: str = ""
) -> Record:
    """``chat``: only for the calls of this chat of ``caller``; ``plugin``: the id of the plugin that it is about."""
    bound: JsonObject = {"chat": chat} if chat else {}
    bound |= {"plugin": plugin} if plugin else {}
    return Record(
        kind=RULE, id=f"rule_{uuid4().hex}", state="active", created=at, updated=at, tool=tool, key=command,
        caller=caller if chat else "", body={"effect": effect.value, "by": by, **bound},
    )  # fmt: skip


def told(rule: Record) -> NewEvent:
    """The event of a rule that was made."""
    data: JsonObject = {"id": rule.id, "tool": rule.tool, "command": rule.key, "effect": rule.body["effect"]}
    return NewEvent(type="approval.rule", at=rule.created, data=data)


def shown_rule(record: Record) -> JsonObject:
    told: JsonObject = {"id": record.id, "tool": record.tool, "command": record.key, "created": record.created}
    return {**told, "chat": None, "plugin": None, **record.body}


def _is_for(rule: Record, ask: Ask) -> bool:
    return rule.tool in ask.names and (rule.caller, rule.body["chat"]) == (ask.call.caller, ask.call.chat)


def _is_about(rule: Record, spec: ToolSpec) -> bool:
    plugin = rule.body.get("plugin")
    if plugin is None:
        return rule.body["effect"] == Effect.DENY or not spec.hides_plugins
    return plugin == spec.plugin_id


def _by_mode(ask: Ask, mode: Mode) -> Verdict:
    match mode:
        case Mode.DENY:
            return Verdict(Effect.DENY, Because.MODE)
        case Mode.AUTO:
            return Verdict(None, Because.PROTECTED) if ask.protected else Verdict(Effect.ALLOW, Because.MODE)
        case Mode.READ_ONLY | Mode.ASK if ask.reads:
            return Verdict(Effect.ALLOW, Because.READ)
        case Mode.READ_ONLY:
            return Verdict(Effect.DENY, Because.MODE)
        case Mode.ASK:
            return Verdict(None, Because.PROTECTED if ask.protected else Because(ask.spec.risk.value))
