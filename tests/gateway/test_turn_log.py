"""The log of a turn: its rules are those that its module says, and readers of an idempotent request lose nothing."""

import asyncio
from unittest.mock import Mock

import pytest

from tests.gateway.serving import ME
from tests.waiting import run_loop_once
from toolyard.engine.chats.idempotency import MAX_RESPONSE
from toolyard.gateway.protocols.chat import ChatRendering
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.turns import turn_log
from toolyard.gateway.turns.rendering import render_whole, write_stream
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_events import Delta, Ended, Ending
from toolyard.gateway.turns.turn_log import MAX_BEHIND, MAX_LOG, Change, LogNames, Repeat, State, TurnLog
from toolyard.gateway.turns.turn_plan import ChatRecord

pytestmark = pytest.mark.requirement("http:idempotency")
EVENT = 1024  # bytes
END = Ended(Ending.DONE)
STREAM = ChatRendering(is_streamed=True)


def make_log() -> TurnLog:
    turn = Mock(spec=Turn)
    turn.record = ChatRecord(id="c", caller=ME, model="m", started=0.0)
    turn.head, turn.request, turn.calls_run = Head("c", 0, "m"), Mock(streams=True), []
    turn.continues = False
    return TurnLog(turn, LogNames(key="k"), patience_s=60.0)


def write(log: TurnLog, size: int) -> None:
    """Write so many bytes, as a turn does that never waits."""
    for _ in range(size // EVENT):
        log.append(Delta([Chunk({}, b"x" * EVENT)]))


async def read_all(log: TurnLog) -> bytes:
    return b"".join([piece async for piece in write_stream(STREAM.open_stream(log), log, log.read(log.begun))])


@pytest.mark.requirement("repeat:retry")
def test_the_tables_of_the_module_are_its_rules() -> None:
    changes = [Change.READER_CAME, Change.READERS_LEFT, Change.PATIENCE_OVER, Change.DONE, Change.STOPPED]
    changes += [Change.FAILED, Change.DELIVERED]
    lines = (turn_log.__doc__ or "").split("\n")
    starts = [line.split() for line in lines if line.split()[:1] and line.split()[0] in State.__members__]
    head = next(line for line in lines if line.startswith("    state     ") and "a reader" in line)
    columns = [head.index(word) for word in ("a reader", "the last", "patience", "it ends", "it is", "it fails")]
    columns.append(head.rindex("a reader"))
    described: dict[State, dict[Change, State]] = {}
    for line in lines:
        if line[4:].split(" ")[0] not in State.__members__ or State[line.split()[0]] in described:
            continue
        words = {at: line[at:].split()[0] for at in columns if line[at : at + 1].strip()}
        described[State[line.split()[0]]] = {
            change: State[words[at]] for change, at in zip(changes, columns, strict=True) if at in words
        }
    assert described == turn_log._NEXT
    repeats = {State[words[0]]: (words[1], words[2]) for words in starts[len(State) :]}
    verbs = {Repeat.JOIN: "joins", Repeat.CONTINUE: "continues", Repeat.BEGIN: "begins"}
    ruled = {state: (verbs[one], verbs[other]) for state, (one, other) in turn_log._REPEATED.items()}
    assert {state: tuple(word.strip(",") for word in words) for state, words in repeats.items()} == ruled


async def test_readers_get_every_event_whenever_they_come() -> None:
    log = make_log()
    early = asyncio.create_task(read_all(log))
    log.append(Delta([Chunk({}, b"a")]))
    between = asyncio.create_task(read_all(log))
    await run_loop_once()
    log.append(Delta([Chunk({}, b"b")]))
    stored = render_whole(STREAM, log, END).body
    log.append(END)
    log.end()
    assert [await early, await between, await read_all(log)] == [b"a\n\nb\n\ndata: [DONE]\n\n"] * 3
    assert stored == await early


async def test_a_reader_of_a_key_that_reads_nothing_holds_up_nobody_while_all_is_kept() -> None:
    log = make_log()
    idle = log.read(0)
    write(log, MAX_RESPONSE - EVENT)
    assert not log.is_far_ahead
    assert len(await asyncio.wait_for(log.read(0).next(), 60)) == MAX_RESPONSE // EVENT - 1
    assert log.is_whole
    idle.close()
    log.end()


async def test_a_long_answer_waits_for_its_slowest_reader_who_loses_nothing() -> None:
    log = make_log()
    slow = log.read(0)
    write(log, MAX_LOG + MAX_BEHIND)
    assert (log.is_far_ahead, log.is_whole) == (True, True)
    room = asyncio.create_task(log.wait_for_readers())
    assert len(await slow.next()) == (MAX_LOG + MAX_BEHIND) // EVENT
    await run_loop_once()
    assert not room.done(), "it may still be on its way to the client"
    more = asyncio.create_task(slow.next())
    await room
    write(log, EVENT)
    await more
    assert (log.size <= MAX_LOG, log.is_whole) == (True, False)
    assert render_whole(STREAM, log, END).body is None
    slow.close()
    log.end()


async def test_a_long_answer_that_nobody_reads_goes_on() -> None:
    log = make_log()
    reader = log.read(0)
    write(log, 2 * MAX_LOG)
    room = asyncio.create_task(log.wait_for_readers())
    await run_loop_once()
    assert not room.done()
    reader.close()
    await room
    write(log, EVENT)
    assert (log.size <= MAX_LOG, log.is_whole) == (True, False)
    log.end()
