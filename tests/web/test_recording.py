"""Recordings: everybody who follows gets every piece once, and what is kept is bounded."""

import asyncio

import pytest

from tests.waiting import run_loop_once
from toolyard.engine.idempotency import MAX_RESPONSE
from toolyard.web.recording import MAX_BEHIND, Recording

pytestmark = pytest.mark.requirement("http:idempotency")


async def read_all(recording: Recording) -> bytes:
    return b"".join([piece async for piece in recording.follow()])


async def test_followers_get_every_piece_whenever_they_come() -> None:
    recording = Recording()
    early = asyncio.create_task(read_all(recording))
    await recording.put(b"a")
    between = asyncio.create_task(read_all(recording))
    await recording.put(b"b")
    recording.end(b"c")
    assert [await early, await between, await read_all(recording)] == [b"abc"] * 3
    assert recording.to_bytes() == b"abc"


async def test_a_follower_that_reads_nothing_holds_up_nobody_while_all_is_kept() -> None:
    recording = Recording()
    idle = recording.follow()
    await anext(idle)
    for _ in range(4):
        await recording.put(b"x" * (MAX_RESPONSE // 4))
    recording.end()
    assert len(await read_all(recording)) == MAX_RESPONSE
    assert recording.is_whole
    await idle.aclose()


async def test_a_long_answer_waits_for_its_slowest_follower_and_keeps_only_what_that_one_needs() -> None:
    recording, piece = Recording(), b"x" * MAX_BEHIND
    slow = recording.follow()
    await anext(slow)
    for _ in range(MAX_RESPONSE // MAX_BEHIND):
        await recording.put(piece)
    putting = asyncio.create_task(recording.put(piece))
    for _ in range(MAX_RESPONSE // MAX_BEHIND - 1):
        assert await anext(slow) == piece
        await run_loop_once()
        assert not putting.done()
    await anext(slow)
    await putting
    assert not recording.is_whole
    assert len(recording.to_bytes()) <= MAX_BEHIND
    recording.end(b"end")
    assert [len(one) async for one in slow] == [MAX_BEHIND, 3]


async def test_a_long_answer_that_nobody_follows_goes_on_and_keeps_nothing() -> None:
    recording = Recording()
    follower = recording.follow()
    await anext(follower)
    await recording.put(b"x" * MAX_RESPONSE)
    putting = asyncio.create_task(recording.put(b"x" * MAX_BEHIND))
    await run_loop_once()
    assert not putting.done()
    await follower.aclose()
    await putting
    assert (recording.to_bytes(), recording.has_beginning) == (b"", False)
