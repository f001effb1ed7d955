"""Rules: which of them decides, what is counted, and how long those of a chat hold."""

import asyncio
from typing import Any

import pytest

from tests.engine.held_store import HeldStore
from tests.fakes import FakeClock
from tests.waiting import wait_for_value
from toolyard.engine.rules import MAX_FOR_CHATS, PermissionRequest, Rules, RuleUses, new_rule
from toolyard.protocol.access import DecisionReason, Effect, Mode
from toolyard.protocol.envelope import Failure
from toolyard.protocol.records.approval_record import RULE
from toolyard.protocol.records.audit_record import Actor
from toolyard.protocol.tool import Origin, Risk, ToolCall, ToolSpec
from toolyard.storage.memory_store import MemoryStore

ME = Actor(name="me")

pytestmark = pytest.mark.requirement("approval:who")


def ask(
    risk: Risk = Risk.WRITE, *, chat: str = "", caller: str = "key:1", protected: bool = False, **arguments: Any
) -> PermissionRequest:
    call = ToolCall(id="call_1", tool="Tool", arguments=arguments, caller=caller, origin=Origin.CHAT, chat=chat)
    spec = ToolSpec(name="Tool", description="", parameters={}, risk=risk)
    return PermissionRequest(call=call, spec=spec, touches_protected=protected)


@pytest.fixture
def rules() -> Rules:
    return Rules(MemoryStore(), FakeClock())


@pytest.mark.parametrize(
    ("mode", "asked", "effect", "because"),
    [
        (Mode.ASK, ask(Risk.READ), Effect.ALLOW, DecisionReason.READ),
        (Mode.ASK, ask(Risk.WRITE), None, DecisionReason.WRITE),
        (Mode.ASK, ask(Risk.EXECUTE), None, DecisionReason.EXECUTE),
        (Mode.ASK, ask(Risk.NETWORK), None, DecisionReason.NETWORK),
        (Mode.ASK, ask(protected=True), None, DecisionReason.PROTECTED),
        (Mode.AUTO, ask(), Effect.ALLOW, DecisionReason.MODE),
        (Mode.AUTO, ask(protected=True), None, DecisionReason.PROTECTED),
        (Mode.READ_ONLY, ask(Risk.READ), Effect.ALLOW, DecisionReason.READ),
        (Mode.READ_ONLY, ask(), Effect.DENY, DecisionReason.MODE),
        (Mode.DENY, ask(Risk.READ), Effect.DENY, DecisionReason.MODE),
    ],
)
async def test_a_mode_says_what_it_decides_and_why(
    rules: Rules, mode: Mode, asked: PermissionRequest, effect: Effect | None, because: DecisionReason
) -> None:
    verdict = await rules.decide(asked, mode)
    assert (verdict.effect, verdict.because) == (effect, because)
    assert verdict.describe("Tool", mode).endswith(".")


def ask_plugin(plugin_id: str, *, hides: bool = False) -> PermissionRequest:
    call = ToolCall(id="call_1", tool="Tool", caller="key:1", origin=Origin.CHAT, chat="chat_1")
    spec = ToolSpec(
        name="Tool", description="", parameters={}, risk=Risk.EXECUTE, plugin_id=plugin_id, hides_plugins=hides
    )
    return PermissionRequest(call=call, spec=spec)


@pytest.mark.requirement("plugin:same-name:rules")
@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("chat", ["", "chat_1"])
async def test_a_rule_for_a_plugin_does_not_hold_for_another_one_of_its_name(
    rules: Rules, effect: Effect, chat: str
) -> None:
    rule = new_rule("Tool", "", effect, by="me", at=1.0, plugin="shipped:Tool", caller="key:1", chat=chat)
    if chat:
        rules.add_for_chat(rule)
    else:
        await rules.add(rule, ME)
    assert (await rules.decide(ask_plugin("shipped:Tool"), Mode.ASK)).effect is effect
    assert (await rules.decide(ask_plugin("home:Tool", hides=True), Mode.ASK)).effect is None
    assert (await rules.decide(ask_plugin(""), Mode.ASK)).effect is None


@pytest.mark.requirement("plugin:same-name:rules")
async def test_a_rule_that_names_no_plugin_allows_none_that_hides_another(rules: Rules) -> None:
    await rules.add(new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0), ME)
    assert (await rules.decide(ask_plugin("home:Tool"), Mode.ASK)).effect is Effect.ALLOW
    assert (await rules.decide(ask_plugin("home:Tool", hides=True), Mode.ASK)).effect is None
    await rules.add(new_rule("Tool", "", Effect.DENY, by="me", at=1.0), ME)
    assert (await rules.decide(ask_plugin("home:Tool", hides=True), Mode.ASK)).effect is Effect.DENY


async def test_the_rule_that_decided_is_named_and_counted(rules: Rules) -> None:
    allowing = new_rule("Tool", "make", Effect.ALLOW, by="me", at=1.0)
    denying = new_rule("Tool", "drop", Effect.DENY, by="me", at=2.0)
    await rules.add(allowing, ME)
    await rules.add(denying, ME)
    for asked, decided in ((ask(command="make"), allowing), (ask(command1="make", command2="drop"), denying)):
        verdict = await rules.decide(asked, Mode.ASK)
        assert [rule.id for rule in verdict.rules] == [decided.id]
        rules.count(verdict)
    assert (await rules.decide(ask(command1="make", command2="other"), Mode.ASK)).effect is None
    assert [rule.hits for rule in await rules.list_all()] == [1, 1]


async def test_how_often_a_rule_decided_outlives_the_process_and_is_one_write_for_many_calls() -> None:
    store, clock = MemoryStore(), FakeClock()
    before = Rules(store, clock)
    rule = new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0)
    await before.add(rule, ME)
    for _ in range(3):
        before.count(await before.decide(ask(), Mode.ASK))
    written = await store.get(RULE, rule.id)
    assert written is not None
    assert (written.version, written.body.get("hits")) == (1, None)
    clock.advance(60)
    before.count(await before.decide(ask(), Mode.ASK))
    used = clock.now().timestamp()
    await before.close()
    after = Rules(store, FakeClock())
    (kept,) = await after.list_all()
    assert (kept.version, kept.hits, kept.last_used) == (2, 4, used)
    after.count(await after.decide(ask(), Mode.ASK))
    assert after.with_uses(kept).hits == 5
    await after.close()
    await before.close()
    assert [rule.hits for rule in await before.list_all()] == [5]


async def test_counts_are_kept_by_themselves_and_two_hosts_lose_none_of_them() -> None:
    store = MemoryStore()
    rule = new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0)
    await Rules(store, FakeClock()).add(rule, ME)
    hosts = [RuleUses(store, save_s=0.001) for _ in range(2)]
    for number in range(20):
        for host in hosts:
            host.count(rule, float(number))
    await wait_for_value(lambda: _uses(store, rule.id), lambda uses: uses == (40, 19.0))
    for host in hosts:
        await host.close()


async def test_what_is_counted_while_counts_are_saved_is_saved_next() -> None:
    store = HeldStore()
    one, two = (new_rule("Tool", name, Effect.ALLOW, by="me", at=1.0) for name in ("make", "drop"))
    await store.commit([one.to_record(), two.to_record()])
    uses = RuleUses(store, save_s=0.001)
    store.hold("active", kept=True)
    uses.count(one, 1.0)
    async with asyncio.timeout(60):
        await store.held.wait()
        uses.count(one, 2.0)
        uses.count(two, 3.0)
        store.go.set()
    await wait_for_value(lambda: _uses(store, one.id), lambda counted: counted == (2, 2.0))
    await wait_for_value(lambda: _uses(store, two.id), lambda counted: counted == (1, 3.0))
    await uses.close()


async def _uses(store: MemoryStore, id_: str) -> tuple[Any, ...]:
    rule = await store.get(RULE, id_)
    assert rule is not None
    return (rule.body["hits"], rule.body["last_used"]) if "hits" in rule.body else ()


async def test_a_rule_that_is_used_meanwhile_can_be_revoked(rules: Rules) -> None:
    rule = new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0)
    await rules.add(rule, ME)
    rules.count(await rules.decide(ask(), Mode.ASK))
    _, revoked = await asyncio.gather(rules.close(), rules.revoke(rule.id, ME))
    assert revoked
    assert (await rules.decide(ask(), Mode.ASK)).effect is None


async def test_a_rule_of_a_chat_is_for_that_chat_of_that_caller(rules: Rules) -> None:
    rules.add_for_chat(new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0, caller="key:1", chat="talk"))
    assert (await rules.decide(ask(chat="talk"), Mode.ASK)).effect is Effect.ALLOW
    for other in (ask(chat="other"), ask(chat="talk", caller="key:2"), ask(), ask(chat="talk", protected=True)):
        assert (await rules.decide(other, Mode.ASK)).effect is None


async def test_only_so_many_rules_of_chats_are_kept(rules: Rules) -> None:
    made = [
        new_rule("Tool", "", Effect.ALLOW, by="me", at=1.0, caller="key:1", chat=f"talk{number}")
        for number in range(MAX_FOR_CHATS + 1)
    ]
    for rule in made:
        rules.add_for_chat(rule)
    assert [rule.id for rule in await rules.list_all()] == [rule.id for rule in made[1:]]
    assert await rules.revoke(made[1].id, ME)
    assert not await rules.revoke(made[0].id, ME)


async def test_there_are_never_more_rules_than_are_looked_at(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.engine.rules.MAX_RULES", 3)
    await rules.add(new_rule("Tool", "", Effect.DENY, by="me", at=0), ME)
    for number in (1, 2):
        await rules.add(new_rule("Tool", "", Effect.ALLOW, by="other", at=number), ME)
    with pytest.raises(Failure, match="3 rules already"):
        await rules.add(new_rule("Tool", "", Effect.ALLOW, by="other", at=3), ME)
    assert (await rules.decide(ask(), Mode.ASK)).effect is Effect.DENY
    await rules.revoke((await rules.list_all())[0].id, ME)
    await rules.add(new_rule("Other", "", Effect.ALLOW, by="other", at=4), ME)


def ask_exactly(**arguments: Any) -> PermissionRequest:
    call = ToolCall(id="call_1", tool="Tool", arguments=arguments, caller="key:1", origin=Origin.CHAT, chat="chat_1")
    spec = ToolSpec(
        name="Tool", description="", parameters={}, risk=Risk.EXECUTE, exact_approval=True, ask_always_with=("session",)
    )
    return PermissionRequest(call=call, spec=spec)


@pytest.mark.requirement("approval:exact")
async def test_a_tool_with_exact_approval_asks_in_every_mode_that_lets_it_run(rules: Rules) -> None:
    for mode, effect in [
        (Mode.ASK, None),
        (Mode.AUTO, None),
        (Mode.READ_ONLY, Effect.DENY),
        (Mode.DENY, Effect.DENY),
    ]:
        assert (await rules.decide(ask_exactly(command="ls"), mode)).effect is effect


@pytest.mark.requirement("approval:exact")
async def test_a_rule_for_such_a_tool_is_about_exactly_one_set_of_arguments(rules: Rules) -> None:
    asked = ask_exactly(command="ls", folder="src")
    assert asked.fits_one_rule
    for command in ("", "ls", asked.commands[0].upper()):
        await rules.add(new_rule("Tool", command, Effect.ALLOW, by="me", at=0), ME)
    assert (await rules.decide(asked, Mode.AUTO)).effect is None
    await rules.add(new_rule("Tool", asked.commands[0], Effect.ALLOW, by="me", at=0), ME)
    assert (await rules.decide(asked, Mode.ASK)).effect is Effect.ALLOW
    assert (await rules.decide(ask_exactly(folder="src", command="ls"), Mode.ASK)).effect is Effect.ALLOW
    for other in ({"command": "ls"}, {"command": "ls ", "folder": "src"}, {"command": '{"command": "ls"}'}):
        assert (await rules.decide(ask_exactly(**other), Mode.AUTO)).effect is None


@pytest.mark.requirement("approval:exact")
@pytest.mark.parametrize("name", ["session", "Session", "SES_SION"])
async def test_no_rule_allows_it_with_an_argument_that_always_asks(rules: Rules, name: str) -> None:
    asked = ask_exactly(command="ls", **{name: ""})
    assert not asked.fits_one_rule
    await rules.add(new_rule("Tool", asked.commands[0], Effect.ALLOW, by="me", at=0), ME)
    assert (await rules.decide(asked, Mode.AUTO)).effect is None
    await rules.add(new_rule("Tool", "", Effect.DENY, by="me", at=0), ME)
    assert (await rules.decide(asked, Mode.AUTO)).effect is Effect.DENY


@pytest.mark.requirement("approval:exact")
def test_arguments_that_are_too_long_for_a_rule_always_ask() -> None:
    assert not ask_exactly(command="x" * 20_000).fits_one_rule
