"""Stored turns: what the same request finds of them after a crash, for how long, and on which host."""

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from toolyard.engine.chats.turns import MAX_STORED, REPEATED_S, StoredRound, StoredTurn, Turns, TurnState
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.storage.memory_store import MemoryStore

pytestmark = pytest.mark.requirement("repeat:crash")
CALLS = (("call_1", "Say"), ("", "?"))


def make_turn(clock: FakeClock, text: str = "Hi.") -> StoredTurn:
    reply: JsonObject = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", "usage": {}}
    rounds = (StoredRound(reply=reply, calls=CALLS),)
    return StoredTurn(
        id="turn_1", caller="key:me", request="f", chat="c", created=clock.now().timestamp(), rounds=rounds
    )


def make_turns(store: MemoryStore, clock: FakeClock, owner: str, mask: Mask | None = None) -> Turns:
    return Turns(store, clock, owner=owner, mask=mask or Mask())


async def test_a_turn_is_found_as_it_was_stored_by_its_caller_and_request_alone() -> None:
    store, clock = MemoryStore(), FakeClock()
    stored = await make_turns(store, clock, "dead").keep(make_turn(clock))
    later = make_turns(store, clock, "host/1/1/me")
    assert await later.find("key:me", "f") == stored
    assert (await later.find("key:you", "f"), await later.find("key:me", "g")) == (None, None)


async def test_a_turn_counts_for_ten_minutes_after_its_end_and_while_it_runs_for_ever() -> None:
    store, clock = MemoryStore(), FakeClock()
    turns = make_turns(store, clock, "me")
    turn = await turns.keep(make_turn(clock))
    clock.advance(2 * REPEATED_S)
    assert await turns.find("key:me", "f") == turn
    assert turns.is_running(turn)
    ended = await turns.keep(replace(turn, state=TurnState.FAILED))
    assert not turns.is_running(ended)
    clock.advance(REPEATED_S)
    assert await turns.find("key:me", "f") == ended
    clock.advance(1)
    assert await turns.find("key:me", "f") is None


async def test_a_turn_of_a_dead_host_can_be_continued_from_the_moment_its_death_is_known() -> None:
    store, clock = MemoryStore(), FakeClock()
    await make_turns(store, clock, "dead").keep(make_turn(clock))
    clock.advance(2 * REPEATED_S)  # its tool took long
    turns = make_turns(store, clock, "me")
    assert await turns.settle_orphans(lambda owner: owner == "me") == 1
    found = await turns.find("key:me", "f")
    assert found is not None
    assert (found.state, found.owner, turns.is_running(found)) == (TurnState.FAILED, "", False)


async def test_secrets_are_masked_and_replies_that_are_too_large_are_left_out() -> None:
    store, clock = MemoryStore(), FakeClock()
    turns = make_turns(store, clock, "me", Mask(["sk-a-secret-key"]))
    await turns.keep(make_turn(clock, "the key is sk-a-secret-key"))
    found = await turns.find("key:me", "f")
    assert found is not None
    assert "sk-a-secret" not in str(found.rounds)
    await turns.keep(replace(make_turn(clock, "x" * MAX_STORED), id="turn_2"))
    large = await turns.find("key:me", "f")
    assert large is not None
    assert [(one.reply, one.calls) for one in large.rounds] == [({}, CALLS)]
