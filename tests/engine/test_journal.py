"""The journal: every call and its end are stored and found, and events keep their order."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings

from tests import postgres
from tests.fakes import FakeClock
from toolyard.config import load_config
from toolyard.engine.history.journal import MAX_STORED
from toolyard.engine.history.stored_events import GAP, read_feed
from toolyard.errors import StorageError
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Event, NewEvent, PageCursor, Query, Record, Store
from toolyard.protocol.tool import Origin, Outcome
from toolyard.storage.sqlite import SqliteStore
from toolyard.yard.yard import Yard

SECRET = "sk-very-secret-1234567890"


@pytest.fixture
async def yard(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    async with Yard(load_config(project, tmp_path / "home")) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as opened:
        yield opened


@pytest.mark.requirement("caller:identity", "s:S-91")
async def test_every_call_is_kept_with_caller_masked_arguments_envelope_and_timings(yard: Yard, project: Path) -> None:
    (project / "a.txt").write_text(f"the key is {SECRET}\n")
    good = yard.calls.request("Read", {"path": "a.txt"}, caller="key:1", origin=Origin.HTTP)
    bad = yard.calls.request("Read", {"path": "b.txt", "password": "open sesame", "encoding": SECRET}, caller="key:2")
    for call in (good, bad):
        await yard.calls.settle(call)
    entry = await yard.state.journal.get(good.id)
    assert entry is not None
    assert (entry["tool"], entry["state"], entry["caller"], entry["origin"]) == ("Read", "success", "key:1", "http")
    assert isinstance(entry["time_ms"], float)
    assert entry["arguments"] == {"path": "a.txt"}
    assert isinstance(entry["started"], float)
    assert isinstance(entry["ended"], float)
    assert entry["started"] <= entry["ended"]
    envelope = entry["envelope"]
    assert isinstance(envelope, dict)
    data = envelope["data"]
    assert isinstance(data, dict)
    assert data["content"] == "1\tthe key is [masked]"
    entry = await yard.state.journal.get(bad.id)
    assert entry is not None
    assert (entry["state"], entry["caller"]) == ("error", "key:2")
    assert entry["arguments"] == {"path": "b.txt", "password": "[masked]", "encoding": "[masked]"}
    stored = (yard.config.home / "state.db").read_bytes() + (yard.config.home / "state.db-wal").read_bytes()
    assert SECRET.encode() not in stored
    assert b"open sesame" not in stored


@pytest.mark.requirement("s:S-91")
async def test_a_secret_that_became_known_while_a_call_ran_is_not_kept_with_its_end(yard: Yard) -> None:
    call = yard.calls.request("Read", {"path": "of-late-known.txt", "limit": 5})
    await yard.state.journal.record_start(call)
    yard.mask.add(["of-late-known"])
    envelope = Envelope(
        status=Status.SUCCESS,
        data={"content": ["of-late-known"]},
        text="Read it.",
        stats={"time_ms": 1.0},
        context={"cwd": ".", "params_input": dict(call.arguments), "api_key": "short"},
    )
    await yard.state.journal.record_end(call, Outcome(envelope=envelope, root="/"))
    entry = await yard.state.journal.get(call.id)
    assert entry is not None
    assert entry["arguments"] == {"path": "[masked].txt", "limit": 5}
    stored = entry["envelope"]
    assert isinstance(stored, dict)
    assert stored["data"] == {"content": ["[masked]"]}
    assert stored["context"] == {"cwd": ".", "params_input": entry["arguments"], "api_key": "[masked]"}


@pytest.mark.requirement("caller:identity")
async def test_a_yard_is_a_caller_of_its_own_and_the_command_line_is_one_for_each_project(
    yard: Yard, project: Path
) -> None:
    (project / "a.txt").write_text("old\n")
    await yard.call("Read", {"path": "a.txt"})
    (record,) = await yard.state.journal.page(Query(), limit=10)
    assert record.caller.startswith("yard:")
    assert (await yard.call("Write", {"path": "a.txt", "content": "new\n"})).status.value == "success"
    other = yard.calls.request("Write", {"path": "a.txt", "content": "newer\n"}, caller="key:9")
    refused = (await yard.calls.settle(other)).envelope
    assert refused.error is not None  # what one caller has read, another has not


@pytest.mark.requirement("p:P6")
async def test_a_result_that_is_too_large_is_kept_without_its_data(yard: Yard, project: Path) -> None:
    (project / "big.txt").write_text("x" * 99 + "\n")
    call = yard.calls.request("Write", {"path": "new.txt", "content": "y\n" * MAX_STORED})
    assert (await yard.calls.settle(call)).envelope.error is None
    entry = await yard.state.journal.get(call.id)
    assert entry is not None
    envelope = entry["envelope"]
    assert isinstance(envelope, dict)
    assert envelope["data"] == {"cut": f"more than {MAX_STORED} bytes"}
    assert (project / "new.txt").stat().st_size == 2 * MAX_STORED


@pytest.mark.requirement("cli:records")
async def test_calls_are_found_by_words_of_their_arguments_and_texts_and_page_by_page(
    yard: Yard, project: Path
) -> None:
    for number in range(7):
        (project / f"文件{number}.txt").write_text("x\n")
        await yard.call("Read", {"path": f"文件{number}.txt"})
    await yard.call("LS", {})
    (found,) = await yard.state.journal.page(Query(text="文件3"), limit=10)
    arguments = found.arguments
    assert arguments == {"path": "文件3.txt"}
    assert len(await yard.state.journal.page(Query(text="read lines"), limit=10)) == 7
    assert len(await yard.state.journal.page(Query(text="listed"), limit=10)) == 1
    seen: list[str] = []
    after: PageCursor | None = None
    while page := await yard.state.journal.page(Query(tool="Read"), limit=3, after=after):
        seen += [record.id for record in page]
        after = PageCursor(at=page[-1].started, id=page[-1].id)
    assert len(seen) == len(set(seen)) == 7


@pytest.mark.requirement("r:R61")
async def test_a_long_journal_is_listed_and_searched_at_once(tmp_path: Path) -> None:
    file, rows = (
        tmp_path / "state.db",
        1_000_000 if settings.default and settings.default.max_examples > 1000 else 50_000,
    )
    store = SqliteStore(file)
    assert await store.event_span() == (1, 0)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(
            """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO records
            (kind, id, state, version, created, updated, caller, tool, key, owner, text, body)
            SELECT 'call', printf('call_%032x', i * 7919), iif(i % 50, 'success', 'error'), 2, i, i, 'key:' || (i % 7),
            'Tool' || (i % 20), '', '', 'text', '{"text": "Read lines"}' FROM n""",
            (rows,),
        )
        db.execute("INSERT INTO words (rowid, said) SELECT number, tool || ' read file' || number FROM records")
    queries = [Query(), Query(states=("error",)), Query(tool="Tool3"), Query(caller="key:1"), Query(since=rows - 50.0)]
    queries += [Query(text=f"file{rows}"), Query(text="nowhere"), Query(text="read", tool="Tool3")]
    async with asyncio.timeout(60):  # each takes some milliseconds
        found = [len(await store.find("call", query, limit=50)) for query in queries]
        middle = await store.find("call", Query(), limit=50, after=PageCursor(at=rows / 2, id=""))
    assert found == [50, 50, 50, 50, 50, 1, 0, 50]
    assert middle[0].created == rows / 2 - 1
    await store.close()


@pytest.mark.requirement("p:P9")
async def test_a_feed_gives_each_event_after_a_cursor_once_and_tells_of_a_gap(store: Store) -> None:
    await store.commit([], [NewEvent(type=f"e{n}", at=float(n)) for n in range(1, 6)])

    async def read(after: int) -> list[tuple[int, str]]:
        return [(event.seq, event.type) async for event in read_feed(store, FakeClock(), after, follow=False)]

    assert await read(2) == [(3, "e3"), (4, "e4"), (5, "e5")]
    assert await read(5) == []
    await store.forget_events(4.0, limit=10)
    assert await read(1) == [(3, GAP), (4, "e4"), (5, "e5")]
    assert await read(3) == [(4, "e4"), (5, "e5")]
    await store.forget_events(9.0, limit=10)
    assert await read(3) == [(5, GAP)]
    assert await read(99) == [(5, GAP)]  # a cursor of another state


@pytest.mark.requirement("p:P9")
async def test_a_feed_goes_on_with_what_comes(store: Store) -> None:
    seen: list[Event] = []

    async def follow() -> None:
        async for event in read_feed(store, FakeClock(), 0):
            seen.append(event)
            if event.type == "last":
                return

    following = asyncio.ensure_future(follow())
    for number in range(20):
        await store.commit([], [NewEvent(type=str(number), at=1.0)])
    await store.commit([], [NewEvent(type="last", at=1.0)])
    await asyncio.wait_for(following, 60)
    assert [event.seq for event in seen] == list(range(1, 22))


@pytest.mark.requirement("r:R62", "p:P10")
async def test_an_end_that_met_a_full_disk_is_recorded_with_the_next_one_and_the_caller_was_told(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = yard.calls.request("Write", {"path": "a.txt", "content": "a"}), yard.calls.request("LS", {})
    await yard.calls.settle(yard.calls.request("LS", {}))
    real = yard.state.store.commit

    async def full(changes: Sequence[Record], events: Sequence[NewEvent] = (), **more: bool) -> bool:
        if changes and changes[0].id == first.id and changes[0].state != "running":
            raise StorageError("the disk is full")
        return await real(changes, events, **more)

    monkeypatch.setattr(yard.state.store, "commit", full)
    assert (await yard.calls.settle(first)).envelope.error is None
    entry = await yard.state.journal.get(first.id)
    assert entry is not None
    assert entry["state"] == "running"
    monkeypatch.setattr(yard.state.store, "commit", real)
    await yard.calls.settle(second)
    for call in (first, second):
        entry = await yard.state.journal.get(call.id)
        assert entry is not None
        assert entry["state"] == "success"


@pytest.mark.requirement("runner:journal", "r:R62")
async def test_a_call_that_reads_is_recorded_with_its_end_and_has_no_result_without_a_record(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, unrecorded = yard.calls.request("LS", {}), yard.calls.request("LS", {})
    real, commits = yard.state.store.commit, list[tuple[str, ...]]()

    async def note(changes: Sequence[Record], events: Sequence[NewEvent] = (), **more: bool) -> bool:
        commits.append(tuple(event.type for event in events))
        return await real(changes, events, **more)

    async def full(*_: object, **__: object) -> bool:
        raise StorageError("the disk is full")

    monkeypatch.setattr(yard.state.store, "commit", note)
    await yard.calls.settle(recorded)
    assert commits == [("call.started", "call.finished")]
    monkeypatch.setattr(yard.state.store, "commit", full)
    with pytest.raises(StorageError):
        await yard.calls.settle(unrecorded)
    monkeypatch.setattr(yard.state.store, "commit", real)
    await yard.calls.settle(yard.calls.request("LS", {}))
    assert await yard.state.journal.get(unrecorded.id) is None


@pytest.mark.requirement("runner:journal", "r:R62")
async def test_a_call_that_ends_while_its_late_start_is_stored_is_recorded_as_ended(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, real, stored, refused = (
        yard.calls.request("LS", {}),
        yard.state.store.commit,
        asyncio.Event(),
        asyncio.Event(),
    )
    await yard.state.journal.record_start(call, deferred=True)

    async def commit(changes: Sequence[Record], events: Sequence[NewEvent] = (), **more: bool) -> bool:
        """Let the journal learn that the start is stored just before it learns that the end is refused."""
        is_stored = await real(changes, events, **more)
        if [event.type for event in events] == ["call.started"]:
            stored.set()
            await refused.wait()
        elif not is_stored:
            refused.set()
            await starting
        return is_stored

    monkeypatch.setattr(yard.state.store, "commit", commit)
    async with asyncio.timeout(60):
        starting = asyncio.create_task(yard.state.journal.record_deferred_start(call))
        await stored.wait()
        context: JsonObject = {"cwd": ".", "params_input": {}}
        ended = Envelope(status=Status.SUCCESS, data={}, text="Listed it.", stats={"time_ms": 1.0}, context=context)
        await yard.state.journal.record_end(call, Outcome(envelope=ended, root="/"))
    assert refused.is_set()
    entry = await yard.state.journal.get(call.id)
    assert entry is not None
    assert (entry["state"], entry["text"]) == ("success", "Listed it.")


@pytest.mark.requirement("cli:records")
async def test_a_call_with_a_very_long_integer_runs_and_is_recorded_exactly(yard: Yard) -> None:
    call = yard.calls.request("LS", {"limit": 10**30})
    await yard.calls.settle(call)
    entry = await yard.state.journal.get(call.id)
    assert entry is not None
    assert entry["arguments"] == {"limit": 10**30}
