"""The contract of every store, run on each of them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import postgres
from tests.waiting import run_loop_once
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store

pytestmark = pytest.mark.requirement("store:twins")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as opened:
        yield opened


def record(id_: str = "a", *, created: float = 1.0, state: str = "open", **rest: object) -> Record:
    return replace(Record(kind="thing", id=id_, state=state, created=created, updated=created), **rest)  # type: ignore[arg-type]


def event(type_: str = "thing.made", at: float = 1.0) -> NewEvent:
    return NewEvent(type=type_, at=at, data={"n": 1})


async def test_what_was_committed_can_be_read_back(store: Store) -> None:
    body = {"text": "中文 $& 𝔘", "list": [1, 2.5, None, True, 2**64, -(10**40)], "inner": {"a": "b"}}
    made = record(caller="me", tool="T", key="k", owner="boot", due=7.5, body=body)
    assert await store.commit([made])
    assert await store.get("thing", "a") == replace(made, version=1)
    assert await store.get("thing", "b") is None
    assert await store.get("other", "a") is None


async def test_a_change_of_a_record_that_was_changed_since_fails_whole(store: Store) -> None:
    await store.commit([record("a"), record("b")])
    first = await store.get("thing", "a")
    assert first is not None
    assert await store.commit([replace(first, state="done")], [event()])
    assert not await store.commit([replace(first, state="lost"), record("c")], [event()])
    stored = await store.get("thing", "a")
    assert stored is not None
    assert (stored.state, stored.version) == ("done", 2)
    assert await store.get("thing", "c") is None
    assert await store.event_span() == (1, 1)


async def test_a_new_record_never_replaces_an_old_one(store: Store) -> None:
    assert await store.commit([record("a")])
    assert not await store.commit([record("a", state="other")])


async def test_of_many_writers_of_one_version_exactly_one_wins(store: Store) -> None:
    await store.commit([record("a")])
    read = await store.get("thing", "a")
    assert read is not None
    won = await asyncio.gather(*(store.commit([replace(read, state=f"s{n}")], [event()]) for n in range(20)))
    assert sum(won) == 1
    assert await store.event_span() == (1, 1)


async def test_events_are_numbered_without_holes_in_the_order_of_their_commits(store: Store) -> None:
    await asyncio.gather(*(store.commit([record(f"r{n}")], [event(f"e{n}"), event(f"f{n}")]) for n in range(25)))
    events = await store.events(0, limit=1000)
    assert [one.seq for one in events] == list(range(1, 51))
    assert all(b.type == "f" + a.type[1:] for a, b in zip(events[::2], events[1::2], strict=True))
    assert [one.seq for one in await store.events(48, limit=1000)] == [49, 50]
    assert [one.seq for one in await store.events(10, limit=3)] == [11, 12, 13]


async def test_forgotten_events_leave_a_visible_span_and_numbers_go_on(store: Store) -> None:
    assert await store.event_span() == (1, 0)
    await store.commit([], [event(at=float(n)) for n in range(1, 6)])
    assert await store.forget_events(before=4.0, limit=2) == 2
    assert await store.event_span() == (3, 5)
    assert await store.forget_events(before=4.0, limit=10) == 1
    assert [one.seq for one in await store.events(0, limit=10)] == [4, 5]
    await store.commit([], [event(at=9.0)])
    assert await store.event_span() == (4, 6)


async def test_waiting_for_the_next_event_ends_when_it_is_there(store: Store) -> None:
    await store.commit([], [event()])
    async with asyncio.timeout(60):
        await store.next_event(0)
        waiting = asyncio.ensure_future(store.next_event(1))
        await run_loop_once()
        assert not waiting.done()
        await store.commit([], [event()])
        await waiting


async def test_records_are_found_newest_first_and_page_by_page(store: Store) -> None:
    await store.commit([record(f"{n:02}", created=float(n // 2)) for n in range(10)])
    found: list[str] = []
    place: PageCursor | None = None
    while page := await store.find("thing", Query(), limit=3, after=place):
        found += [one.id for one in page]
        place = PageCursor(at=page[-1].created, id=page[-1].id)
    assert found == [f"{n:02}" for n in reversed(range(10))]


async def test_records_are_found_by_their_last_change_page_by_page(store: Store) -> None:
    await store.commit([record(f"{n:02}", created=float(n), updated=float(20 - n // 2)) for n in range(10)])
    found: list[str] = []
    place: PageCursor | None = None
    while page := await store.find("thing", Query(by_change=True), limit=3, after=place):
        found += [one.id for one in page]
        place = PageCursor(at=page[-1].updated, id=page[-1].id)
    assert found == ["01", "00", "03", "02", "05", "04", "07", "06", "09", "08"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(states=("open", "shut")), {"a", "b"}),
        (Query(states=("gone",)), {"c"}),
        (Query(caller="me"), {"a", "c"}),
        (Query(tool="T2"), {"b"}),
        (Query(key="k"), {"b"}),
        (Query(owner="boot1"), {"a"}),
        (Query(project="/srv/shop"), {"a", "b"}),
        (Query(project="/srv"), {"b"}),
        (Query(since=2.0), {"b", "c"}),
        (Query(before=2.0), {"a"}),
        (Query(codes=("GONE", "DENIED")), {"b", "c"}),
        (Query(codes=("GONE",), since=1.0, before=2.5), {"b"}),
        (Query(text="hello"), {"a"}),
        (Query(text="WORLD hello"), {"a"}),
        (Query(text="中文"), {"c"}),
        (Query(text="wor hel"), {"a"}),
        (Query(text="ello"), set()),
        (Query(text="中"), {"c"}),
        (Query(text="文"), {"c"}),
        (Query(text="些中文"), {"c"}),
        (Query(text="文中"), set()),
        (Query(text="100% _"), {"b"}),
        (Query(text="'\" OR * : & | !"), {"b"}),
        (Query(text="nowhere"), set()),
        (Query(caller="me", states=("open",)), {"a"}),
    ],
)
async def test_each_condition_of_a_query_holds(store: Store, query: Query, expected: set[str]) -> None:
    await store.commit(
        [
            record("a", created=1.0, caller="me", tool="T1", owner="boot1", project="/srv/shop", text="Hello world"),
            record("b", created=2.0, caller="you", tool="T2", key="k", state="shut", code="GONE", text="100% a_b or"),
            record(
                "c", created=3.0, caller="me", tool="T3", state="gone", code="DENIED", project="/a", text="一些中文"
            ),
        ]
    )
    assert {one.id for one in await store.find("thing", query, limit=10)} == expected
    assert await store.count("thing", query) == len(expected)


async def test_due_records_come_longest_due_first_and_others_not_at_all(store: Store) -> None:
    await store.commit([record("late", due=5.0), record("later", due=9.0), record("never"), record("first", due=1.0)])
    found = await store.find("thing", Query(due_until=5.0), limit=10)
    assert [one.id for one in found] == ["first", "late"]


async def test_old_records_are_removed_within_the_limit_and_only_in_the_named_states(store: Store) -> None:
    await store.commit([record(f"r{n}", created=float(n), state="done" if n % 2 else "open") for n in range(10)])
    assert await store.remove("thing", 6.0, states=["done"], limit=2) == 2
    assert await store.remove("thing", 6.0, states=["done"], limit=10) == 1
    assert await store.count("thing", Query(states=("done",))) == 2
    assert await store.count("thing", Query(states=("open",))) == 5


async def test_a_record_is_found_by_its_words_of_today_and_not_by_those_it_had(store: Store) -> None:
    await store.commit([record("a", text="apple")])
    for text, word in (("pear", "apple"), ("", "pear")):
        read = await store.get("thing", "a")
        assert read is not None
        assert await store.commit([replace(read, text=text)])
        assert await store.count("thing", Query(text=word)) == 0
        assert await store.count("thing", Query(text=text)) == 1


async def test_a_record_is_found_by_its_words_while_somebody_owns_it_and_afterwards(store: Store) -> None:
    await store.commit([record("a", text="apple pie 苹果派", owner="me"), record("b", text="apple", owner="me")])
    for owner in ("me", "you", ""):
        read = await store.get("thing", "a")
        assert read is not None
        assert await store.commit([replace(read, owner=owner)])
        for text in ("pie", "PI app", "苹果"):
            assert [one.id for one in await store.find("thing", Query(text=text), limit=10)] == ["a"], (owner, text)
        assert await store.count("thing", Query(text="apple")) == 2
        assert await store.count("thing", Query(text="pear")) == 0
        assert await store.count("other", Query(text="apple")) == 0


async def test_a_body_that_is_no_json_fails_its_own_commit_and_no_other(store: Store) -> None:
    bad: Any = {"n": {1, 2}}
    with pytest.raises(TypeError):
        await store.commit([record("bad", body=bad)])
    async with asyncio.timeout(60):
        assert await store.commit([record("good")])
