"""The records of idempotent requests: each starts once, and what it came to is kept for its repeats."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import postgres
from tests.engine.test_recovery import Host, name_of_dead_process
from tests.fakes import FakeClock
from toolyard.engine.chats.idempotency import (
    IDEMPOTENCY,
    KEPT_S,
    MAX_RESPONSE,
    RESPONSE,
    Conflict,
    Finished,
    Idempotency,
    IdempotentRequest,
    InProgress,
    Interrupted,
    Started,
    StoredResponse,
    hash_request,
)
from toolyard.engine.ownership import identify_process
from toolyard.engine.retention import Retention
from toolyard.errors import StorageError
from toolyard.protocol.store import Query, Record, Store
from toolyard.storage.memory_store import MemoryStore

ASKED = IdempotentRequest(caller="key:1", key="k", fingerprint="f", call="call_1")
ANSWER = StoredResponse(status=200, headers={"x-call-id": "call_1"}, body='{"a": "中\\u0000"}'.encode())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as opened:
        yield opened


def on(store: Store, owner: str = "me", clock: FakeClock | None = None) -> Idempotency:
    return Idempotency(store, clock or FakeClock(), owner=owner)


async def start(requests: Idempotency, asked: IdempotentRequest = ASKED) -> Started:
    begun = await requests.begin(asked)
    assert isinstance(begun, Started)
    return begun


@pytest.mark.requirement("http:idempotency")
async def test_a_request_starts_once_and_its_answer_is_kept(store: Store) -> None:
    requests = on(store)
    started = await start(requests)
    assert await requests.begin(ASKED) == InProgress()
    assert await requests.finish(started, ANSWER)
    assert await requests.begin(ASKED) == Finished(ANSWER)
    assert await on(store, "another host").begin(replace(ASKED, call="call_2")) == Finished(ANSWER)


@pytest.mark.requirement("http:idempotency")
async def test_bytes_that_are_no_text_come_back_as_they_were(store: Store) -> None:
    requests = on(store)
    answer = StoredResponse(status=200, body=b"data: \xff\x00\n\n", is_stream=True)
    await requests.finish(await start(requests), answer)
    assert await requests.begin(ASKED) == Finished(answer)


@pytest.mark.requirement("http:idempotency")
async def test_of_many_at_the_same_moment_on_several_hosts_one_starts(store: Store) -> None:
    hosts = [on(store, f"host {number}") for number in range(4)]
    begun = await asyncio.gather(*(host.begin(ASKED) for host in hosts for _ in range(5)))
    assert sum(isinstance(one, Started) for one in begun) == 1
    assert sum(one == InProgress() for one in begun) == 19


@pytest.mark.requirement("http:idempotency")
async def test_the_key_of_another_request_is_refused_and_callers_have_keys_of_their_own(store: Store) -> None:
    requests = on(store)
    started = await start(requests)
    other = replace(ASKED, fingerprint="g")
    assert await requests.begin(other) == Conflict()
    await requests.finish(started, ANSWER)
    assert await requests.begin(other) == Conflict()
    await start(requests, replace(ASKED, key="l"))
    await start(requests, replace(ASKED, caller="key:2"))


@pytest.mark.requirement("http:idempotency")
def test_a_fingerprint_tells_routes_and_bodies_apart() -> None:
    prints = {hash_request(*one) for one in (("a", b"b"), ("a", b"c"), ("c", b"b"), ("ab", b""), ("", b"ab"))}
    assert len(prints) == 5


@pytest.mark.requirement("http:idempotency")
async def test_a_request_that_is_released_starts_anew_also_with_another_body(store: Store) -> None:
    requests = on(store)
    assert await requests.release(await start(requests))
    again = await start(requests, replace(ASKED, fingerprint="g"))
    await requests.finish(again, ANSWER)
    assert await requests.begin(ASKED) == Conflict()


@pytest.mark.requirement("http:idempotency")
async def test_of_an_answer_that_is_too_large_only_its_end_is_kept(store: Store) -> None:
    requests = on(store)
    await requests.finish(await start(requests), replace(ANSWER, body=b"x" * (MAX_RESPONSE + 1)))
    assert await requests.begin(ASKED) == Finished(None)
    other = replace(ASKED, key="l")
    await requests.finish(await start(requests, other), replace(ANSWER, body=None))
    assert await requests.begin(other) == Finished(None)
    largest = replace(ASKED, key="m")
    await requests.finish(await start(requests, largest), replace(ANSWER, body=b"x" * MAX_RESPONSE))
    assert await requests.begin(largest) == Finished(replace(ANSWER, body=b"x" * MAX_RESPONSE))
    assert await store.count(RESPONSE, Query()) == 1


@pytest.mark.requirement("http:idempotency", "p:P10")
async def test_what_a_dead_host_had_begun_is_interrupted_and_never_starts_again(store: Store) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name)
    await start(dead.idempotency)
    await start(living.idempotency, replace(ASKED, key="mine"))
    assert await living.idempotency.begin(ASKED) == InProgress()
    assert (await living.recovery.recover()).requests == 1
    assert (await living.recovery.recover()).requests == 0
    for _ in range(2):
        begun = await living.idempotency.begin(ASKED)
        assert isinstance(begun, Interrupted)
        assert begun.record.call == "call_1"
    assert await living.idempotency.begin(replace(ASKED, key="mine")) == InProgress()


@pytest.mark.requirement("http:idempotency", "p:P10")
async def test_a_host_that_was_taken_for_dead_does_not_overwrite_the_first_end(store: Store) -> None:
    slow, other = on(store, "slow"), on(store, "other")
    started = await start(slow)
    assert await other.settle_orphans(lambda _: False) == 1
    assert not await slow.finish(started, ANSWER)
    assert isinstance(await slow.begin(ASKED), Interrupted)


@pytest.mark.requirement("http:idempotency", "p:P10")
async def test_a_request_whose_answer_could_not_be_stored_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    requests = on(store)
    started = await start(requests)

    async def refuse(*_: object, **__: object) -> bool:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", refuse)
        with pytest.raises(StorageError):
            await requests.finish(started, ANSWER)
        with pytest.raises(StorageError):
            await requests.begin(replace(ASKED, key="another"))
    assert isinstance(await requests.begin(ASKED), Interrupted)
    await start(requests, replace(ASKED, key="another"))


@pytest.mark.requirement("http:idempotency")
async def test_a_key_is_remembered_for_a_day_from_its_answer(store: Store) -> None:
    clock = FakeClock()
    requests = on(store, clock=clock)
    started = await start(requests)
    clock.advance(2 * KEPT_S)
    assert await requests.begin(ASKED) == InProgress(), "what runs is never forgotten"
    await requests.finish(started, ANSWER)
    clock.advance(KEPT_S - 1)
    await Retention(store, clock).sweep()
    assert await requests.begin(ASKED) == Finished(ANSWER)
    clock.advance(1)
    again = await start(requests, replace(ASKED, fingerprint="g"))
    await requests.finish(again, replace(ANSWER, body=None))
    assert await requests.begin(replace(ASKED, fingerprint="g")) == Finished(None), "not the answer of the day before"
    clock.advance(KEPT_S + 1)
    await Retention(store, clock).sweep()
    assert [await store.count(kind, Query()) for kind in (IDEMPOTENCY, RESPONSE)] == [0, 0]


@pytest.mark.requirement("http:idempotency", "r:R99")
async def test_answers_go_when_the_state_is_too_large_and_their_keys_stay(store: Store) -> None:
    clock = FakeClock()
    requests = on(store, clock=clock)
    await requests.finish(await start(requests), ANSWER)
    clock.advance(2 * 3600)

    async def used() -> int:
        return 2

    await Retention(store, clock, used=used, max_bytes=1).sweep()
    assert await requests.begin(ASKED) == Finished(None)


@pytest.mark.requirement("http:idempotency")
async def test_the_calls_of_a_request_are_found_by_its_call_or_by_its_chat(store: Store) -> None:
    clock = FakeClock()
    requests = on(store, clock=clock)
    by_call = (await start(requests)).record
    by_chat = (await start(requests, replace(ASKED, key="chat", call="", chat="chat_1"))).record
    assert await requests.find_calls(by_call) == []
    assert await requests.find_calls(by_chat) == []
    now = clock.now().timestamp()
    made = [
        Record(kind="call", id=f"call_{name}", state="success", created=now + at, updated=now + at, caller=caller,
               body={"chat": chat})
        for name, at, caller, chat in (
            ("1", 0.0, "key:1", None), ("a", 0.2, "key:1", "chat_1"), ("b", 0.1, "key:1", "chat_1"),
            ("c", 0.1, "key:2", "chat_1"), ("d", 0.1, "key:1", "chat_2"), ("old", -1.0, "key:1", "chat_1"),
            ("later", 9.0, "key:1", "chat_1"),
        )
    ]  # fmt: skip
    await store.commit(made)
    clock.advance(1)
    assert [call.id for call in await requests.find_calls(by_call)] == ["call_1"]
    assert [call.id for call in await requests.find_calls(by_chat)] == ["call_b", "call_a"]
