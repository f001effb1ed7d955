"""Approvals: which calls ask, and how answers count."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.held_store import HeldStore, cancelled
from tests.fakes import FakeClock
from tests.waiting import wait_for_value
from toolyard.engine.approvals import Approvals
from toolyard.engine.rules import PermissionRequest
from toolyard.errors import StorageError
from toolyard.protocol.access import ApprovalState, Effect, Mode
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.approval_record import Approval, HiddenText
from toolyard.protocol.store import NewEvent, Record
from toolyard.protocol.tool import Origin, Risk, ToolCall, ToolSpec
from toolyard.storage.memory_store import MemoryStore


def ask(
    origin: Origin = Origin.CHAT,
    risk: Risk = Risk.WRITE,
    *,
    protected: bool = False,
    caller: str = "key:1",
    **arguments: Any,
) -> PermissionRequest:
    call = ToolCall(id="call_1", tool="Tool", arguments=arguments or {"x": 1}, caller=caller, origin=origin)
    spec = ToolSpec(name="Tool", description="", parameters={}, risk=risk)
    return PermissionRequest(call=call, spec=spec, touches_protected=protected)


class Bench:
    """Approvals on a store and a clock that tests can see."""

    def __init__(self, mode: Mode = Mode.ASK, store: MemoryStore | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), FakeClock()
        self.approvals = Approvals(self.store, self.clock, mode=mode, owner="boot", timeout_s=300)

    async def pending(self) -> Approval:
        async with asyncio.timeout(60):
            while True:
                _, seq = await self.store.event_span()  # before the look: what comes in between wakes it
                if found := await self.approvals.page((ApprovalState.PENDING,), limit=1):
                    return found[0]
                await self.store.next_event(seq)

    async def denied(self, asked: PermissionRequest) -> Failure:
        with pytest.raises(Failure) as refused:
            async with asyncio.timeout(60):
                await self.approvals.require(asked)
        assert refused.value.reason is Reason.DENIED
        return refused.value


@pytest.mark.requirement("approval:who")
@pytest.mark.parametrize("origin", [Origin.CLI, Origin.PYTHON, Origin.HTTP])
@pytest.mark.parametrize("risk", list(Risk))
async def test_calls_from_the_command_line_python_and_http_run_without_asking(origin: Origin, risk: Risk) -> None:
    async with asyncio.timeout(60):
        assert await Bench().approvals.require(ask(origin, risk))


@pytest.mark.requirement("approval:who")
@pytest.mark.parametrize("origin", [Origin.CHAT, Origin.MCP, Origin.SCHEDULE])
async def test_calls_from_chat_mcp_and_schedules_read_freely_and_ask_for_the_rest(origin: Origin) -> None:
    bench = Bench()
    assert await bench.approvals.require(ask(origin, Risk.READ))
    for risk in (Risk.WRITE, Risk.EXECUTE, Risk.NETWORK):
        waiting = asyncio.ensure_future(bench.approvals.require(ask(origin, risk)))
        pending = await bench.pending()
        assert not waiting.done()
        assert await bench.approvals.answer(pending.id, allowed=True, by="me") is ApprovalState.ALLOWED
        assert await asyncio.wait_for(waiting, 60)


@pytest.mark.requirement("approval:refused")
async def test_a_refusal_tells_the_model_why_and_not_to_try_again() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.denied(ask()))
    await bench.approvals.answer((await bench.pending()).id, allowed=False, by="me", reason="not on Sundays")
    failure = await waiting
    assert "not on Sundays" in failure.message
    assert failure.code.value == "ACCESS_DENIED"


@pytest.mark.requirement("r:R100")
async def test_an_approval_nobody_answers_is_denied_at_its_limit() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.denied(ask()))
    pending = await bench.pending()
    bench.clock.advance(301)
    failure = await waiting
    assert "Nobody approved" in failure.message
    stored = await bench.store.get("approval", pending.id)
    assert stored is not None
    assert stored.state == ApprovalState.EXPIRED
    assert await bench.approvals.answer(pending.id, allowed=True, by="late") is ApprovalState.EXPIRED


@pytest.mark.requirement("r:R102")
async def test_of_two_answers_the_first_wins_and_both_see_it() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.denied(ask()))
    pending = await bench.pending()
    answers = await asyncio.gather(
        bench.approvals.answer(pending.id, allowed=False, by="one"),
        bench.approvals.answer(pending.id, allowed=True, by="two"),
    )
    assert set(answers) == {ApprovalState.DENIED}
    await waiting
    events = [event.type for event in await bench.store.events(0, limit=10)]
    assert events == ["approval.requested", "approval.denied"]


@pytest.mark.requirement("r:R103", "s:S-95")
async def test_an_approval_is_good_for_exactly_the_call_that_was_approved() -> None:
    bench = Bench()
    first = ask(path="a.txt")
    waiting = asyncio.ensure_future(bench.approvals.require(first))
    await bench.approvals.answer((await bench.pending()).id, allowed=True, by="me")
    digest = await waiting
    assert await bench.approvals.require(first, approved=digest) == digest
    others = [
        ask(path="b.txt"),
        ask(path="a.txt", caller="key:2"),
        replace(first, fingerprint="changed"),
        replace(first, call=replace(first.call, tool="Other")),
    ]
    for other in others:
        asking = asyncio.ensure_future(bench.approvals.require(other, approved=digest))
        assert (await bench.pending()).digest != digest
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.requirement("s:S-98", "s:S-91")
async def test_what_is_masked_can_be_revealed_while_the_call_waits_and_is_stored_nowhere() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.approvals.require(ask(access_token="rm -rf /")))
    pending = await bench.pending()
    assert pending.arguments == {"access_token": "[masked, 8 characters]"}
    assert pending.hidden == (HiddenText(at="/access_token", characters=8),)
    assert bench.approvals.reveal(pending.id) == {"access_token": "rm -rf /"}
    assert "rm -rf" not in repr((pending, await bench.store.events(0, limit=10)))
    await bench.approvals.answer(pending.id, allowed=True, by="me")
    await waiting
    assert bench.approvals.reveal(pending.id) is None


@pytest.mark.requirement("s:S-96", "s:S-91")
async def test_a_command_with_a_secret_in_it_is_masked_and_makes_no_rule() -> None:
    store, clock = MemoryStore(), FakeClock()
    approvals = Approvals(store, clock, mode=Mode.ASK, owner="boot", mask=Mask(["sk-12345678"]))
    waiting = asyncio.ensure_future(approvals.require(ask(command="curl sk-12345678")))
    (pending,) = await wait_for_value(lambda: approvals.page((ApprovalState.PENDING,), limit=1))
    assert "sk-12345678" not in repr((pending, await store.events(0, limit=10)))
    assert pending.always_offered is False
    await approvals.answer(pending.id, allowed=True, by="me", always=True)
    await waiting
    assert await approvals.rules() == []


@pytest.mark.requirement("s:S-97")
async def test_a_rule_that_denies_beats_one_that_allows_which_beats_the_mode() -> None:
    bench = Bench(Mode.DENY)
    await bench.denied(ask(risk=Risk.READ))
    await bench.approvals.add_rule("Tool", "", Effect.ALLOW, by="me")
    assert await bench.approvals.require(ask())
    await bench.approvals.add_rule("Tool", "", Effect.DENY, by="me")
    await bench.denied(ask())


@pytest.mark.requirement("r:R104")
async def test_a_remembered_rule_holds_after_a_restart_until_it_is_revoked() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.approvals.require(ask(command="Send")))
    await bench.approvals.answer((await bench.pending()).id, allowed=True, by="me", always=True)
    await waiting
    again = Bench(store=bench.store)
    assert await again.approvals.require(ask(command="Send", to="x"))
    other = asyncio.ensure_future(again.approvals.require(ask(command="Delete")))
    await again.pending()
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    (rule,) = await again.approvals.rules()
    assert await again.approvals.revoke(rule.id)
    assert not await again.approvals.revoke(rule.id)
    asking = asyncio.ensure_future(bench.approvals.require(ask(command="Send")))
    await bench.pending()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.requirement("s:S-96", "s:S-15")
async def test_what_touches_a_protected_place_asks_in_every_mode_and_offers_no_rule() -> None:
    bench = Bench(Mode.AUTO)
    assert await bench.approvals.require(ask())
    await bench.approvals.add_rule("Tool", "", Effect.ALLOW, by="me")
    waiting = asyncio.ensure_future(bench.approvals.require(ask(protected=True)))
    pending = await bench.pending()
    assert pending.always_offered is False
    await bench.approvals.answer(pending.id, allowed=True, by="me", always=True)
    await waiting
    assert len(await bench.approvals.rules()) == 1


@pytest.mark.requirement("s:S-15", "approval:who")
async def test_looking_at_a_protected_place_asks_nobody() -> None:
    bench = Bench()
    async with asyncio.timeout(60):
        assert await bench.approvals.require(ask(risk=Risk.READ, protected=True))
        looking = ask(protected=True, command="ReadFile")
        spec = replace(looking.spec, reading_commands=("ReadFile",))
        assert await bench.approvals.require(replace(looking, spec=spec))


@pytest.mark.requirement("approval:who")
async def test_read_only_mode_reads_and_refuses_the_rest_without_asking() -> None:
    bench = Bench(Mode.READ_ONLY)
    assert await bench.approvals.require(ask(risk=Risk.READ))
    await bench.denied(ask(risk=Risk.WRITE))
    assert await bench.approvals.page(limit=10) == []


@pytest.mark.requirement("r:R101")
async def test_a_pending_approval_whose_call_ends_cannot_be_answered_any_more() -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.approvals.require(ask()))
    pending = await bench.pending()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await bench.approvals.answer(pending.id, allowed=True, by="me") is ApprovalState.INTERRUPTED
    assert await bench.approvals.answer("approval_unknown", allowed=True, by="me") is None


@pytest.mark.requirement("r:R101")
@pytest.mark.parametrize("kept", [False, True])
async def test_a_call_that_ends_while_its_question_is_written_leaves_no_question(*, kept: bool) -> None:
    store = HeldStore()
    bench = Bench(store=store)
    store.hold(ApprovalState.PENDING, kept=kept)
    await cancelled(asyncio.ensure_future(bench.approvals.require(ask())), store)
    assert [one.state for one in await bench.approvals.page(limit=5)] == [ApprovalState.INTERRUPTED]


@pytest.mark.requirement("r:R101")
@pytest.mark.parametrize("lasts", [False, True])
async def test_a_question_whose_store_fails_is_withdrawn_where_that_can_be_done(
    monkeypatch: pytest.MonkeyPatch, *, lasts: bool
) -> None:
    bench = Bench()
    waiting = asyncio.ensure_future(bench.approvals.require(ask()))
    pending, get = await bench.pending(), bench.store.get
    faults = iter([True, lasts])

    async def fails(kind: str, id_: str) -> Record | None:
        if next(faults, False):
            raise StorageError("the disk does not answer")
        return await get(kind, id_)

    monkeypatch.setattr(bench.store, "get", fails)
    await bench.store.commit([], [NewEvent(type="other", at=0)])  # it looks again
    with pytest.raises(StorageError):
        await asyncio.wait_for(waiting, 60)
    stored = await bench.store.get("approval", pending.id)
    assert stored is not None
    assert stored.state == (ApprovalState.PENDING if lasts else ApprovalState.INTERRUPTED)


@pytest.mark.requirement("approval:who")
async def test_whoever_sees_an_answer_for_a_chat_finds_its_rule_even_if_the_answering_was_cut_off() -> None:
    store = HeldStore()
    bench = Bench(store=store)
    asked = ask()
    asked = replace(asked, call=replace(asked.call, chat="talk"))
    waiting = asyncio.ensure_future(bench.approvals.require(asked))
    pending = await bench.pending()
    store.hold(ApprovalState.ALLOWED, kept=True)
    answering = asyncio.ensure_future(bench.approvals.answer(pending.id, allowed=True, by="me", for_chat=True))
    await asyncio.wait_for(waiting, 60)  # it has seen the answer, which is not told yet to whoever gave it
    judging = asyncio.ensure_future(bench.approvals.judge(asked))
    await cancelled(answering, store)
    verdict = await asyncio.wait_for(judging, 60)
    assert verdict.effect is Effect.ALLOW


@pytest.mark.requirement("s:S-05")
async def test_ids_of_approvals_are_random() -> None:
    bench = Bench()
    rules = [await bench.approvals.add_rule("T", "", Effect.DENY, by="me") for _ in range(50)]
    assert len({rule.id for rule in rules}) == 50
    assert all(len(rule.id.removeprefix("rule_")) == 32 for rule in rules)
