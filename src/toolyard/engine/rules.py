"""Rules and modes: decide whether a call runs, is refused, or needs an approval, and why.

In this order: a rule that denies, a rule that allows, the mode, and where that asks, what a person lets a chat do.
A rule for a plugin is about that plugin: it does not hold for another one that takes its name. A rule that names no
plugin, as one that was made before there was such a tool, holds for the name, but allows no plugin that hides others.
Rules are kept in the store, at most ``MAX_RULES``, so that each of them is looked at. Those for one chat are kept by
this process alone: they end with it, or when ``MAX_FOR_CHATS`` newer ones have come. ``engine.rule_uses`` counts how
often each was used.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.permission_request import PermissionRequest
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


class DecisionReason(StrEnum):
    """The reason of a verdict; the risks of tools are reasons too."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    PROTECTED = "protected"
    ALLOW_RULE = "allow-rule"
    DENY_RULE = "deny-rule"
    AUTO_SAFE = "auto-safe"
    MODE = "mode"


_REASON_TEXTS = {
    DecisionReason.READ: "{tool} only reads.",
    DecisionReason.WRITE: "{tool} changes files.",
    DecisionReason.EXECUTE: "{tool} runs a program.",
    DecisionReason.NETWORK: "{tool} reaches the network.",
    DecisionReason.PROTECTED: "{tool} writes to a place where only a person may let it.",
    DecisionReason.ALLOW_RULE: "A rule allows {tool}.",
    DecisionReason.DENY_RULE: "A rule refuses {tool}.",
    DecisionReason.AUTO_SAFE: "What {tool} does can be undone, and this chat may do such things without asking.",
    DecisionReason.MODE: "The approval mode is {mode}.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    effect: Effect | None  # None: ask
    because: DecisionReason
    rules: tuple[Record, ...] = ()  # that decided

    def describe(self, tool: str, mode: Mode) -> str:
        return _REASON_TEXTS[self.because].format(tool=tool, mode=mode.value)


class Rules:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._for_chats: OrderedDict[str, Record] = OrderedDict()
        self._uses = RuleUses(store, RULE)

    async def list_all(self) -> list[Record]:
        async with self._uses.lock:
            return [*await self._find_stored(), *self._for_chats.values()]

    async def require_room(self) -> None:
        """Raise Failure when there are ``MAX_RULES``: one more could hide one that denies."""
        if await self._store.count(RULE, Query(states=("active",))) >= MAX_RULES:
            raise Failure(
                ErrorCode.CONFLICT, f"There are {MAX_RULES} rules already.", hint="Revoke some of them first."
            )

    async def add(self, rule: Record) -> None:
        await self.require_room()
        await self._store.commit([rule], [rule_event(rule)])
        crashpoint("approval.rule-added")

    def add_for_chat(self, rule: Record) -> None:
        self._for_chats[rule.id] = rule
        while len(self._for_chats) > MAX_FOR_CHATS:
            self._for_chats.popitem(last=False)

    async def revoke(self, id_: str) -> bool:
        """Revoke a rule; False when there is none."""
        now = self._clock.now().timestamp()
        event = NewEvent(type="approval.rule_revoked", at=now, data={"id": id_})
        if self._for_chats.pop(id_, None):
            return await self._store.commit([], [event])
        while (record := await self._store.get(RULE, id_)) is not None and record.state == "active":
            if await self._store.commit([replace(record, state="revoked", updated=now)], [event]):
                return True  # else its uses were written meanwhile
        return False

    async def decide(self, request: PermissionRequest, mode: Mode) -> Verdict:
        rules = [
            *await self._find_for_names(request.names),
            *(one for one in list(self._for_chats.values()) if _is_for_chat(one, request)),
        ]
        rules = [one for one in rules if _applies_to(one, request.spec)]
        denying = [one for one in rules if one.body["effect"] == Effect.DENY and one.key in {"", *request.commands}]
        if denying:
            return Verdict(Effect.DENY, DecisionReason.DENY_RULE, (denying[0],))
        allowing = {one.key: one for one in rules if one.body["effect"] == Effect.ALLOW}
        commands = [""] if "" in allowing else list(request.commands)
        if not request.writes_protected and commands and all(name in allowing for name in commands):
            return Verdict(Effect.ALLOW, DecisionReason.ALLOW_RULE, tuple(allowing[name] for name in commands))
        verdict = _decide_by_mode(request, mode)
        if verdict.effect is None and request.is_unattended and not request.writes_protected:
            return Verdict(Effect.ALLOW, DecisionReason.AUTO_SAFE)
        return verdict

    def count(self, verdict: Verdict) -> None:
        """Count a use of the rules that decided about a call."""
        for rule in verdict.rules:
            self._uses.count(rule, self._clock.now().timestamp())

    def to_json(self, record: Record) -> JsonObject:
        """Return a rule as client JSON."""
        return {**rule_to_json(record), **self._uses.to_json(record)}

    async def close(self) -> None:
        """Save the use counts of rules."""
        await self._uses.close()

    async def _find_stored(self, tool: str | None = None) -> list[Record]:
        return await self._store.find(RULE, Query(states=("active",), tool=tool), limit=MAX_RULES)

    async def _find_for_names(self, names: tuple[str, ...]) -> list[Record]:
        """Return the stored rules for some names: one query for all, or, where there are too many, one for each."""
        rules = await self._find_stored()
        if len(rules) < MAX_RULES:
            return [rule for rule in rules if rule.tool in names]
        return [rule for name in names for rule in await self._find_stored(name)]


def new_rule(
    tool: str, command: str, effect: Effect, *, by: str, at: float, caller: str = "", chat: str = "", plugin: str = ""
) -> Record:
    """Build a rule; ``chat``: only for calls of this chat of ``caller``; ``plugin``: the plugin that it is about."""
    bound: JsonObject = {"chat": chat} if chat else {}
    bound |= {"plugin": plugin} if plugin else {}
    return Record(
        kind=RULE, id=f"rule_{uuid4().hex}", state="active", created=at, updated=at, tool=tool, key=command,
        caller=caller if chat else "", body={"effect": effect.value, "by": by, **bound},
    )  # fmt: skip


def rule_event(rule: Record) -> NewEvent:
    """Return the event of a new rule."""
    data: JsonObject = {"id": rule.id, "tool": rule.tool, "command": rule.key, "effect": rule.body["effect"]}
    return NewEvent(type="approval.rule", at=rule.created, data=data)


def rule_to_json(record: Record) -> JsonObject:
    row: JsonObject = {"id": record.id, "tool": record.tool, "command": record.key, "created": record.created}
    return {**row, "chat": None, "plugin": None, **record.body}


def _is_for_chat(rule: Record, request: PermissionRequest) -> bool:
    return rule.tool in request.names and (rule.caller, rule.body["chat"]) == (request.call.caller, request.call.chat)


def _applies_to(rule: Record, spec: ToolSpec) -> bool:
    plugin = rule.body.get("plugin")
    if plugin is None:
        return rule.body["effect"] == Effect.DENY or not spec.hides_plugins
    return plugin == spec.plugin_id


def _decide_by_mode(request: PermissionRequest, mode: Mode) -> Verdict:
    match mode:
        case Mode.DENY:
            return Verdict(Effect.DENY, DecisionReason.MODE)
        case Mode.AUTO:
            return (
                Verdict(None, DecisionReason.PROTECTED)
                if request.writes_protected
                else Verdict(Effect.ALLOW, DecisionReason.MODE)
            )
        case Mode.READ_ONLY | Mode.ASK if request.is_read_only:
            return Verdict(Effect.ALLOW, DecisionReason.READ)
        case Mode.READ_ONLY:
            return Verdict(Effect.DENY, DecisionReason.MODE)
        case Mode.ASK:
            return Verdict(
                None, DecisionReason.PROTECTED if request.writes_protected else DecisionReason(request.spec.risk.value)
            )
