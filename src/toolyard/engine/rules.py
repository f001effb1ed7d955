"""Rules and modes: decide whether a call runs, is refused, or needs an approval, and why.

In this order: a rule that denies, a rule that allows, the mode, and where that asks, what a person lets a chat do.
A tool with exact approval asks in the mode ``auto`` too, and a rule allows a call of it only by its exact arguments.
A rule for a plugin is about that plugin: it does not hold for another one that takes its name. A rule that names no
plugin, as one that was made before there was such a tool, holds for the name, but allows no plugin that hides others.
Rules are kept in the store, at most ``MAX_RULES``, so that each of them is looked at. Those for one chat are kept by
this process alone: they end with it, or when ``MAX_FOR_CHATS`` newer ones have come. ``engine.rule_uses`` counts how
often each was used.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.audit import new_entry
from toolyard.engine.clock import Clock
from toolyard.engine.permission_request import PermissionRequest
from toolyard.engine.rule_uses import RuleUses
from toolyard.message import Message
from toolyard.protocol.approval import DecisionReason, Effect, Mode
from toolyard.protocol.audit import Actor
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.rule import RULE, Rule, RuleState
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.protocol.tool import ToolSpec

MAX_FOR_CHATS: Final = 1000
MAX_RULES: Final = 1000


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
    rules: tuple[Rule, ...] = ()  # that decided

    def describe(self, tool: str, mode: Mode) -> str:
        return _REASON_TEXTS[self.because].format(tool=tool, mode=mode.value)


class Rules:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._for_chats: OrderedDict[str, Rule] = OrderedDict()
        self._uses = RuleUses(store)

    async def list_all(self) -> list[Rule]:
        """Return the active rules with their uses."""
        async with self._uses.lock:
            return [self.with_uses(rule) for rule in (*await self._find_stored(), *self._for_chats.values())]

    async def require_room(self) -> None:
        """Raise Failure when there are ``MAX_RULES``: one more could hide one that denies."""
        if await self._store.count(RULE, Query(states=(RuleState.ACTIVE,))) >= MAX_RULES:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("approval.rules_already", "There are {max_rules} rules already.", max_rules=MAX_RULES),
                hint=Message("hint.revoke_some", "Revoke some of them first."),
            )

    async def add(self, rule: Rule, by: Actor) -> None:
        await self.require_room()
        await self._store.commit(
            [rule.to_record(), audit_rule("rule.added", rule, by, rule.created)], [rule.to_event()]
        )
        crashpoint("approval.rule-added")

    def add_for_chat(self, rule: Rule) -> None:
        self._for_chats[rule.id] = rule
        while len(self._for_chats) > MAX_FOR_CHATS:
            self._for_chats.popitem(last=False)

    async def revoke(self, id_: str, by: Actor) -> bool:
        """Revoke a rule; False when there is none."""
        now = self._clock.now().timestamp()
        event = NewEvent(type="approval.rule_revoked", at=now, data={"id": id_})
        if rule := self._for_chats.pop(id_, None):
            return await self._store.commit([audit_rule("rule.revoked", rule, by, now)], [event])
        while (record := await self._store.get(RULE, id_)) is not None and record.state == RuleState.ACTIVE:
            revoked = replace(Rule.from_record(record), state=RuleState.REVOKED, updated=now)
            if await self._store.commit([revoked.to_record(), audit_rule("rule.revoked", revoked, by, now)], [event]):
                return True  # else its uses were written meanwhile
        return False

    async def decide(self, request: PermissionRequest, mode: Mode) -> Verdict:
        rules = [
            *await self._find_for_names(request.names),
            *(one for one in list(self._for_chats.values()) if _is_for_chat(one, request)),
        ]
        rules = [one for one in rules if _applies_to(one, request.spec)]
        denying = [one for one in rules if one.effect is Effect.DENY and one.command in {"", *request.commands}]
        if denying:
            return Verdict(Effect.DENY, DecisionReason.DENY_RULE, (denying[0],))
        allowing = {one.command: one for one in rules if one.effect is Effect.ALLOW}
        commands = [""] if "" in allowing and not request.spec.exact_approval else list(request.commands)
        if not request.asks_always and commands and all(name in allowing for name in commands):
            return Verdict(Effect.ALLOW, DecisionReason.ALLOW_RULE, tuple(allowing[name] for name in commands))
        verdict = _decide_by_mode(request, mode)
        if verdict.effect is None and request.is_unattended and not request.writes_protected:
            return Verdict(Effect.ALLOW, DecisionReason.AUTO_SAFE)
        return verdict

    def count(self, verdict: Verdict) -> None:
        """Count a use of the rules that decided about a call."""
        for rule in verdict.rules:
            self._uses.count(rule, self._clock.now().timestamp())

    def with_uses(self, rule: Rule) -> Rule:
        """Return a rule with all uses that were counted so far."""
        return self._uses.add_to(rule)

    async def close(self) -> None:
        """Save the use counts of rules."""
        await self._uses.close()

    async def _find_stored(self, tool: str | None = None) -> list[Rule]:
        query = Query(states=(RuleState.ACTIVE,), tool=tool)
        return [Rule.from_record(record) for record in await self._store.find(RULE, query, limit=MAX_RULES)]

    async def _find_for_names(self, names: tuple[str, ...]) -> list[Rule]:
        """Return the stored rules for some names: one query for all, or, where there are too many, one for each."""
        rules = await self._find_stored()
        if len(rules) < MAX_RULES:
            return [rule for rule in rules if rule.tool in names]
        return [rule for name in names for rule in await self._find_stored(name)]


def new_rule(
    tool: str, command: str, effect: Effect, *, by: str, at: float, caller: str = "", chat: str = "", plugin: str = ""
) -> Rule:
    """Build a rule; ``chat``: only for calls of this chat of ``caller``; ``plugin``: the plugin that it is about."""
    return Rule(
        id=f"rule_{uuid4().hex}", tool=tool, command=command, effect=effect, by=by, created=at, updated=at,
        caller=caller if chat else "", chat=chat or None, plugin=plugin or None,
    )  # fmt: skip


def audit_rule(action: str, rule: Rule, by: Actor, at: float) -> Record:
    """Return the audit record of a rule that was made or revoked."""
    detail: JsonObject = {"effect": rule.effect.value, "command": rule.command, "chat": rule.chat}
    return new_entry(
        action, by, at, tool=rule.tool, plugin=rule.plugin or "", target=rule.id, detail=detail
    ).to_record()


def _is_for_chat(rule: Rule, request: PermissionRequest) -> bool:
    return rule.tool in request.names and (rule.caller, rule.chat) == (request.call.caller, request.call.chat)


def _applies_to(rule: Rule, spec: ToolSpec) -> bool:
    if rule.plugin is None:
        return rule.effect is Effect.DENY or not spec.hides_plugins
    return rule.plugin == spec.plugin_id


def _decide_by_mode(request: PermissionRequest, mode: Mode) -> Verdict:
    match mode:
        case Mode.DENY:
            return Verdict(Effect.DENY, DecisionReason.MODE)
        case Mode.AUTO:
            return (
                Verdict(None, DecisionReason.PROTECTED)
                if request.writes_protected
                else Verdict(None, DecisionReason(request.spec.risk.value))
                if request.spec.exact_approval
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
