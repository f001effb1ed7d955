"""What only a shared store has to bear: other hosts, a server that goes away, addresses that are wrong."""

import asyncio
import contextlib
import itertools
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tests import postgres
from toolyard.errors import StorageError
from toolyard.protocol.store import Event, NewEvent, Query, Record
from toolyard.storage import postgres as store_module
from toolyard.storage import postgres_server, postgres_writer
from toolyard.storage.postgres import PostgresStore
from toolyard.storage.postgres_schema import latest_format

pytestmark = pytest.mark.requirement("store:twins")

# A host: commits records with an event each until it is told to end, and says of each when it is kept.
HOST = """
import asyncio, sys
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage.postgres import PostgresStore

async def main(url, name, number):
    store = await PostgresStore.open(url)
    async def write(n):
        made = Record(kind="thing", id=f"{name}{n}", state="open", created=1.0, updated=1.0)
        assert await store.commit([made], [NewEvent(type=made.id, at=1.0)])
        print(made.id, flush=True)
    for n in range(0, number, 10):
        await asyncio.gather(*map(write, range(n, n + 10)))
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database() as url:
        yield url


@pytest.fixture
async def new_database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


@pytest.fixture
async def server() -> AsyncIterator[postgres.Server]:
    """One that the test may stop."""
    with tempfile.TemporaryDirectory(prefix="toolyard-pg-") as folder:
        one = postgres.Server(Path(folder))
        await asyncio.to_thread(one.start)
        yield one
        await asyncio.to_thread(one.stop, signal.SIGQUIT)


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(url)
    try:
        yield store
    finally:
        await store.close()


def record(id_: str = "a") -> Record:
    return Record(kind="thing", id=id_, state="open", created=1.0, updated=1.0)


async def follow(store: PostgresStore, number: int) -> list[Event]:
    """Events as a client gets them: each page right after the one before."""
    found: list[Event] = []
    while len(found) < number:
        await store.next_event(len(found))
        page = await store.events(len(found), limit=7)
        assert [event.seq for event in page] == list(range(len(found) + 1, len(found) + len(page) + 1))
        found += page
    return found


async def host(url: str, name: str, number: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, url, name, str(number), stdout=asyncio.subprocess.PIPE
    )


@pytest.mark.requirement("p:P9")
async def test_readers_see_the_events_of_all_hosts_in_one_order_without_holes(database: str) -> None:
    async with asyncio.timeout(60), opened(database) as one, opened(database) as other:
        hosts = [await host(database, name, 100) for name in "xy"]
        mine = [one.commit([record(f"{n}")], [NewEvent(type=f"{n}", at=1.0)]) for n in range(50)]
        first, second, kept = await asyncio.gather(follow(one, 250), follow(other, 250), asyncio.gather(*mine))
        assert all(kept)
        assert [await child.wait() for child in hosts] == [0, 0]
    assert first == second
    written = {f"{name}{n}" for name in "xy" for n in range(100)} | {f"{n}" for n in range(50)}
    assert sorted(event.type for event in first) == sorted(written)


@pytest.mark.requirement("p:P9")
async def test_a_host_that_is_killed_leaves_what_it_was_told_is_kept_and_no_hole(database: str) -> None:
    async with asyncio.timeout(60), opened(database) as store:
        victim = await host(database, "x", 100_000)
        await follow(store, 30)
        victim.kill()
        assert victim.stdout is not None
        told = (await victim.stdout.read()).decode().split()
        await victim.wait()
        assert await store.commit([record("after")], [NewEvent(type="after", at=1.0)])
        events = await follow(store, (await store.event_span())[1])
        stored = {one.id for one in await store.find("thing", Query(), limit=1_000_000)}
    assert len(told) >= 20
    assert set(told) <= stored == {event.type for event in events}


async def test_one_of_two_hosts_that_change_a_record_wins(database: str) -> None:
    async with opened(database) as one, opened(database) as other:
        assert await one.commit([record(f"{n}") for n in range(40)])
        read = await one.find("thing", Query(), limit=40)
        turn = itertools.cycle([one, other])
        changes = [(a, replace(a, state=s)) for a in read for s in ("first", "second")]
        won = await asyncio.gather(*(next(turn).commit([new]) for _, new in changes))
        stored = {r.id: r.state for r in await other.find("thing", Query(), limit=40)}
    winners = [new for (_, new), one_won in zip(changes, won, strict=True) if one_won]
    assert {new.id: new.state for new in winners} == stored
    assert len(winners) == 40


@pytest.mark.requirement("p:P9")
async def test_an_event_of_one_host_wakes_the_others(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "POLL_S", 600)  # only the bell can wake anybody
    async with asyncio.timeout(60), opened(database) as one, opened(database) as other:
        await one.commit([], [NewEvent(type="x", at=1.0)])
        await other.next_event(0)
        waiting = asyncio.ensure_future(other.next_event(1))
        await listening(database)
        assert not waiting.done()
        await one.commit([], [NewEvent(type="x", at=1.0)])
        await waiting


async def test_an_event_is_noticed_although_the_bell_does_not_ring(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writer, "CHANNEL", "nobody_listens")
    async with asyncio.timeout(60), opened(database) as one, opened(database) as other:
        waiting = asyncio.ensure_future(other.next_event(0))
        await listening(database)
        await one.commit([], [NewEvent(type="x", at=1.0)])
        await waiting


async def listening(url: str) -> None:
    """Until somebody listens to that database."""
    db = await asyncpg.connect(url)
    sql = """SELECT count(*), pg_sleep(0.01) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN %'"""
    while not await db.fetchval(sql):
        pass
    await db.close()


@pytest.mark.requirement("p:P9")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_of_the_server_loses_nothing_and_repeats_nothing(
    server: postgres.Server, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "POLL_S", 600)  # the bell has to be mended too
    async with asyncio.timeout(240), opened(server.url()) as store:
        over = asyncio.Event()

        async def write(name: str) -> list[str]:
            kept = []
            for n in itertools.count():
                if over.is_set():
                    break
                assert await store.commit([record(f"{name}{n}")], [NewEvent(type=f"{name}{n}", at=1.0)])
                kept.append(f"{name}{n}")
            return kept

        writers = [asyncio.ensure_future(write(name)) for name in "pqrst"]
        await follow(store, 20)
        for _ in range(2):
            await asyncio.to_thread(server.stop, how)
            await asyncio.to_thread(server.start)
            await store.next_event((await store.event_span())[1])
        over.set()
        kept = sorted(itertools.chain(*await asyncio.gather(*writers)))
        events = await follow(store, (await store.event_span())[1])
    assert sorted(event.type for event in events) == kept


@pytest.mark.parametrize("kept", [True, False])
async def test_a_commit_whose_answer_is_lost_is_told_truly(database: str, kept: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"postgresql://tests@/{_name(database)}?host={folder}"
        listener = await asyncio.start_unix_server(Cutter(database, kept=kept).serve, Path(folder) / ".s.PGSQL.5432")
        async with asyncio.timeout(60), listener, opened(url) as store:
            assert await store.commit([record()], [NewEvent(type="x", at=1.0)])
            stored = await store.get("thing", "a")
            assert stored is not None
            assert stored.version == 1
            assert await store.event_span() == (1, 1)
            assert not await store.commit([record()])


class Cutter:
    """Stands between a store and its server, and cuts the first COMMIT: before it arrives, or before it is answered."""

    def __init__(self, url: str, *, kept: bool) -> None:
        self._socket = f"{_socket(url)}/.s.PGSQL.5432"
        self._kept = kept
        self._cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_unix_connection(self._socket)
        back = asyncio.ensure_future(self._pass(answers, writer))
        while data := await reader.read(65536):
            if b"COMMIT" in data and not self._cut:
                self._cut = True
                back.cancel()
                await asyncio.wait([back])
                if self._kept:
                    requests.write(data)
                    await answers.read(1)
                break
            requests.write(data)
        requests.close()
        await asyncio.wait([back])
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


async def test_hosts_that_start_at_once_make_the_tables_once(new_database: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(new_database) for _ in range(6)))
    db = await asyncpg.connect(new_database)
    assert await db.fetchval("SELECT array_agg(version) FROM toolyard.format") == [latest_format()]
    await db.close()
    for store in stores:
        assert await store.event_span() == (1, 0)
        await store.close()


async def test_a_newer_format_is_refused(new_database: str) -> None:
    async with opened(new_database):
        pass
    db = await asyncpg.connect(new_database)
    await db.execute("UPDATE toolyard.format SET version = 99")
    await db.close()
    with pytest.raises(
        StorageError, match=rf"newer Toolyard .format 99, this one knows {latest_format()}.: use that version"
    ):
        await PostgresStore.open(new_database)


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("postgresql://u:secret@127.0.0.1:1/x", "start it, or correct the host and port"),
        ("postgresql://u:secret@no-such-host.invalid/x", "start it, or correct the host and port"),
        ("mysql://u:secret@h/x", "write postgresql://user@host:5432/name"),
        ("postgresql://u:secret@h:many/x", "write postgresql://user@host:5432/name"),
        ("postgresql://u:secret@[h/x", "write postgresql://user@host:5432/name"),
        ("", "createdb"),
    ],
)
async def test_a_wrong_address_is_told_with_its_fix_and_without_its_password(
    url: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "invalid" in url:
        monkeypatch.setattr(postgres_server, "_CONNECT_S", 5.0)  # whoever knows names may be silent here
    with pytest.raises(StorageError, match=fix) as told:
        await PostgresStore.open(url or postgres.shared_server().replace("/postgres?", "/no_such?"))
    assert "secret" not in str(told.value)


async def test_a_user_without_rights_is_told_which(new_database: str) -> None:
    db = await asyncpg.connect(new_database)
    with contextlib.suppress(asyncpg.DuplicateObjectError):
        await db.execute("CREATE ROLE guest LOGIN")
    await db.close()
    with pytest.raises(StorageError, match="GRANT it CREATE on the database"):
        await PostgresStore.open(new_database.replace("tests@", "guest@"))


async def test_a_host_that_freezes_inside_a_transaction_does_not_stop_the_others(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = re.sub(r"(idle_in_transaction_session_timeout = )'\w+'", r"\1'200ms'", postgres_server._SESSION)
    monkeypatch.setattr(postgres_server, "_SESSION", short)
    async with asyncio.timeout(60), opened(database) as frozen, opened(database) as other:
        holds, thawed = asyncio.Event(), asyncio.Event()

        async def freeze(db: "asyncpg.pool.PoolConnectionProxy") -> None:
            if not holds.is_set():
                await db.execute("BEGIN; UPDATE toolyard.last_event SET seq = seq + 1")
                holds.set()
                await thawed.wait()

        freezing = asyncio.ensure_future(frozen._server.run(freeze))
        await holds.wait()
        assert await other.commit([], [NewEvent(type="x", at=1.0)])
        assert await other.event_span() == (1, 1)
        thawed.set()
        await freezing


async def test_lasting_commits_last_although_the_database_is_set_to_lose_them(new_database: str) -> None:
    db = await asyncpg.connect(new_database)
    await db.execute(f"ALTER DATABASE {_name(new_database)} SET synchronous_commit = off")
    await db.close()
    async with opened(new_database) as store:
        await store.commit([record()], lasting=False)
        assert await store._server.run(lambda db: db.fetchval("SHOW synchronous_commit")) == "on"


@pytest.mark.parametrize("text", ["\x00", "a\x00b\x1a0\x1a1\x1a", "\x1a\x00" * 3])
async def test_characters_that_the_server_cannot_hold_come_back_as_they_were(database: str, text: str) -> None:
    odd = replace(record(text), state=text, caller=text, tool=text, key=text, owner=text, text=text, body={text: text})
    async with opened(database) as store:
        assert await store.commit([odd], [NewEvent(type=text, at=1.0, data={text: text})])
        assert await store.get("thing", text) == replace(odd, version=1)
        query = Query(states=(text,), caller=text, tool=text, key=text, owner=text)
        assert await store.count("thing", query) == 1
        assert [(event.type, event.data) for event in await store.events(0, limit=1)] == [(text, {text: text})]


async def test_words_of_any_length_can_be_stored_and_found(database: str) -> None:
    async with opened(database) as store:
        assert await store.commit([replace(record(), text="𝔘é" * 2000)])
        assert await store.count("thing", Query(text="𝔘é" * 1000)) == 1


def _name(url: str) -> str:
    return urlsplit(url).path[1:]


def _socket(url: str) -> str:
    return parse_qs(urlsplit(url).query)["host"][0]
