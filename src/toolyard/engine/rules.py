"""Rules and modes: decide whether a call runs, is refused, or needs an approval, and why.

A ``PermissionRequest`` is one call with all that decides about it.
In this order: a rule that denies, a rule that allows, the mode, and where that asks, what a person lets a chat do.
A tool with exact approval asks in the mode ``auto`` too, and a rule allows a call of it only by its exact arguments.
A rule for a plugin is about that plugin: it does not hold for another one that takes its name. A rule that names no
plugin, as one that was made before there was such a tool, holds for the name, but allows no plugin that hides others.
Rules are kept in the store, at most ``MAX_RULES``, so that each of them is looked at. Those for one chat are kept by
this process alone: they end with it, or when ``MAX_FOR_CHATS`` newer ones have come.

How often each rule decided, and when last, is counted in memory; all that was counted within ``SAVE_S`` is one write
for each rule, so a crash loses the counts of that moment. The counts of rules for chats end with the process.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.history.audit import new_entry
from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.access import DecisionReason, Effect, Mode
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.approval_record import RULE, Rule, RuleState
from toolyard.protocol.records.audit_record import Actor
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.protocol.tool import Risk, ToolCall, ToolSpec, fold_name

MAX_FOR_CHATS: Final = 1000
MAX_RULES: Final = 1000
MAX_RULE_COMMAND: Final = 2000  # characters of the command, or the arguments, that a rule is about
SAVE_S: Final = 5.0
_MAX_COUNTED = 10_000
_TRIES = 5  # another host may count the same rule in the same moment
_COMMAND = re.compile(r"command[0-9]*")
_log = logging.getLogger(__name__)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    call: ToolCall
    spec: ToolSpec
    fingerprint: str = ""  # of the plugin as it was reviewed
    touches_protected: bool = False  # it names a place that always needs a person's approval to write
    is_unattended: bool = False  # a person lets undoable calls of this chat run without asking

    @property
    def commands(self) -> tuple[str, ...]:
        """Return what a rule names: the commands, or of a tool with exact approval the complete arguments."""
        if self.spec.exact_approval:
            return (write_exact_arguments(self.call.arguments),)
        return find_commands(self.call.arguments)

    @property
    def asks_always(self) -> bool:
        """Return whether no rule can allow it."""
        return self.writes_protected or (
            self.spec.exact_approval
            and any(fold_name(name) in map(fold_name, self.spec.ask_always_with) for name in self.call.arguments)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name of the tool: a rule for one of them holds for all."""
        return tuple(dict.fromkeys((self.call.tool, self.spec.name, *self.spec.aliases)))

    @property
    def writes_protected(self) -> bool:
        """Return whether it writes to a place that always needs a person's approval."""
        return self.touches_protected and not self.is_read_only

    @property
    def is_read_only(self) -> bool:
        """Return whether it only reads."""
        looks = self.spec.reading_commands
        return self.spec.risk is Risk.READ or (bool(self.commands) and all(name in looks for name in self.commands))

    @property
    def fits_one_rule(self) -> bool:
        """Return whether one rule can express this request: for one command, and never for a protected place.

        A rule without a command is for all of them: it is never made from a call that names none, or an empty one, of
        a tool that has some.
        """
        if self.asks_always:
            return False
        if self.spec.exact_approval:
            return len(self.commands[0]) <= MAX_RULE_COMMAND
        if self.commands:
            return len(self.commands) == 1 and self.commands[0] != ""
        return not any(_COMMAND.fullmatch(fold_name(name)) for name in self.spec.parameter_names)

    @property
    def digest(self) -> str:
        parts = [self.call.tool, self.call.arguments, self.fingerprint, self.call.caller]
        if self.writes_protected:  # a yes from before a path led there is no yes for it now
            parts.append("protected")
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


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
                Message("There are {max_rules} rules already.", max_rules=MAX_RULES),
                hint=Message("Revoke some of them first."),
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


class _Count(NamedTuple):
    hits: int = 0
    last: float | None = None


class RuleUses:
    def __init__(self, store: Store, *, save_s: float = SAVE_S) -> None:
        self._store, self._save_s = store, save_s
        self._counted: dict[str, _Count] = {}  # what the store does not have yet
        self._of_chats: OrderedDict[str, _Count] = OrderedDict()
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.lock = asyncio.Lock()  # held while rules are read for clients, so that nothing counts twice

    def count(self, rule: Rule, at: float) -> None:
        if rule.chat:
            self._of_chats[rule.id] = _Count(self._of_chats.pop(rule.id, _Count()).hits + 1, at)
            while len(self._of_chats) > _MAX_COUNTED:
                self._of_chats.popitem(last=False)
            return
        self._counted[rule.id] = _Count(self._counted.get(rule.id, _Count()).hits + 1, at)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_later())

    def add_to(self, rule: Rule) -> Rule:
        """Return a rule with the uses that the store does not have yet."""
        counted = self._of_chats.get(rule.id) or self._counted.get(rule.id) or _Count()
        return replace(rule, hits=rule.hits + counted.hits, last_used=counted.last or rule.last_used)

    async def save(self) -> None:
        """Save the counts. Those that the store refuses stay in memory."""
        async with self.lock:
            for id_ in list(self._counted):
                try:
                    await self._save(id_)
                except StorageError as error:
                    _log.warning("the uses of rules are not kept yet: %s", error)
                    return

    async def close(self) -> None:
        self._closing.set()
        if self._saving is not None:
            await asyncio.wait({self._saving})  # never cut off: what is written twice would count twice
            await self.save()

    async def _save_later(self) -> None:
        while self._counted and not self._closing.is_set():  # more may be counted while this is saved
            try:
                async with asyncio.timeout(self._save_s):
                    await self._closing.wait()
            except TimeoutError:
                pass
            await self.save()

    async def _save(self, id_: str) -> None:
        for _ in range(_TRIES):
            record = await self._store.get(RULE, id_)
            if record is None:
                del self._counted[id_]
                return
            new, rule = self._counted[id_], Rule.from_record(record)
            used = replace(rule, hits=rule.hits + new.hits, last_used=new.last)
            if await self._store.commit([used.to_record()], [], lasting=False):
                now = self._counted.pop(id_)
                if now.hits > new.hits:
                    self._counted[id_] = _Count(now.hits - new.hits, now.last)
                return


def write_exact_arguments(arguments: JsonObject) -> str:
    """Return arguments as one text that is the same for the same arguments, and for no others."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def find_commands(arguments: JsonObject) -> tuple[str, ...]:
    """Return the commands that the arguments name: one, or several of a numbered batch."""
    named = (value for key, value in arguments.items() if _COMMAND.fullmatch(fold_name(key)))
    return tuple(dict.fromkeys(str(value) for value in named))
