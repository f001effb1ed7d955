"""Conversations: each belongs to one caller, changes by compare-and-set, and stays until it is deleted."""

import pytest

from tests.fakes import FakeClock
from toolyard.engine.conversations import KIND, MAX_BYTES, MESSAGES, Conversations, ConversationUpdate, to_json
from toolyard.engine.retention import KEPT_S, Retention
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor, Query, Record
from toolyard.storage.memory import MemoryStore

ME, OTHER = "key:me", "key:other"
HELLO: JsonObject = {"role": "user", "content": "hello there"}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def conversations(store: MemoryStore, clock: FakeClock) -> Conversations:
    return Conversations(store, clock)


@pytest.mark.requirement("http:conversations")
async def test_what_was_put_is_read_as_it_was(conversations: Conversations, store: MemoryStore) -> None:
    draft = ConversationUpdate(
        title="A", model="tour", messages=[HELLO, {"own": {"of": ["the client"]}}], settings={"x": 1}
    )
    record = await conversations.put(ME, "one", draft)
    assert record is not None
    read = await conversations.get(ME, "one")
    assert read is not None
    assert (read["id"], read["messages"], read["settings"], read["version"]) == ("one", draft.messages, {"x": 1}, 1)
    assert to_json(record)["messages"] == 2
    assert [(event.type, event.data["version"]) for event in await store.events(0, limit=9)] == [
        ("conversation.changed", 1)
    ]


@pytest.mark.requirement("http:conversations")
async def test_of_two_windows_the_second_is_told(conversations: Conversations) -> None:
    assert await conversations.put(ME, "one", ConversationUpdate(title="first"))
    assert await conversations.put(ME, "one", ConversationUpdate(title="new as well")) is None
    assert await conversations.put(ME, "one", ConversationUpdate(title="second", version=1))
    assert await conversations.put(ME, "one", ConversationUpdate(title="late", version=1)) is None
    read = await conversations.get(ME, "one")
    assert read is not None
    assert (read["title"], read["version"]) == ("second", 2)


@pytest.mark.requirement("http:conversations")
@pytest.mark.parametrize("deleted", [False, True])
async def test_one_that_changes_while_it_is_read_is_read_as_it_is_then(
    conversations: Conversations, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, *, deleted: bool
) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="first", messages=[HELLO]))
    real, changes = store.get, iter([True])

    async def slow(kind: str, id_: str) -> Record | None:
        if kind == MESSAGES and next(changes, False):
            if deleted:
                await conversations.delete(ME, "one")
            else:
                await conversations.put(
                    ME, "one", ConversationUpdate(title="second", messages=[HELLO, HELLO], version=1)
                )
        return await real(kind, id_)

    monkeypatch.setattr(store, "get", slow)
    read = await conversations.get(ME, "one")
    content = None if read is None else (read["title"], read["version"], read["messages"])
    assert content == (None if deleted else ("second", 2, [HELLO, HELLO]))


@pytest.mark.requirement("http:conversations")
async def test_an_id_is_one_callers_alone(conversations: Conversations) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="mine"))
    assert await conversations.get(OTHER, "one") is None
    assert not await conversations.delete(OTHER, "one")
    assert await conversations.put(OTHER, "one", ConversationUpdate(title="theirs"))
    assert [to_json(one)["title"] for one in await conversations.page(ME, "", limit=9)] == ["mine"]


@pytest.mark.requirement("http:conversations")
async def test_pages_and_words_are_found(conversations: Conversations, clock: FakeClock) -> None:
    for number in range(5):
        parts: JsonObject = {"content": [{"type": "text", "text": f"about whales{number}"}]}
        await conversations.put(ME, f"c{number}", ConversationUpdate(title=f"title{number}", messages=[parts]))
        clock.advance(1)
    first = await conversations.page(ME, "", limit=3)
    rest = await conversations.page(ME, "", limit=3, after=PageCursor(created=first[-1].created, id=first[-1].id))
    assert [one.key for one in (*first, *rest)] == ["c4", "c3", "c2", "c1", "c0"]
    assert [one.key for one in await conversations.page(ME, "whales2", limit=9)] == ["c2"]
    assert [one.key for one in await conversations.page(ME, "title3", limit=9)] == ["c3"]


@pytest.mark.requirement("http:conversations")
async def test_only_what_is_deleted_is_forgotten_and_its_words_at_once(
    conversations: Conversations, store: MemoryStore, clock: FakeClock
) -> None:
    await conversations.put(ME, "kept", ConversationUpdate(messages=[HELLO]))
    await conversations.put(ME, "gone", ConversationUpdate(messages=[HELLO]))
    assert await conversations.delete(ME, "gone")
    assert not await conversations.delete(ME, "gone")
    assert await conversations.get(ME, "gone") is None
    left = [await store.get(kind, one.id) for kind in (KIND, MESSAGES) for one in await _all(store, kind)]
    assert sum("hello" in repr(record) for record in left) == 2  # the words and the messages of the one that is kept
    clock.advance(KEPT_S + 1)
    await Retention(store, clock).sweep()
    assert [[one.key for one in await _all(store, kind)] for kind in (KIND, MESSAGES)] == [["kept"], ["kept"]]


@pytest.mark.requirement("http:conversations")
async def test_a_deleted_id_can_be_used_again(conversations: Conversations) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="old"))
    await conversations.delete(ME, "one")
    record = await conversations.put(ME, "one", ConversationUpdate(title="new"))
    assert record is not None
    read = await conversations.get(ME, "one")
    assert read is not None
    assert (read["title"], read["version"]) == ("new", record.version)


@pytest.mark.requirement("http:conversations")
async def test_what_is_too_large_is_refused(conversations: Conversations) -> None:
    with pytest.raises(Failure, match="bytes at most"):
        await conversations.put(ME, "one", ConversationUpdate(messages=[{"content": "x" * MAX_BYTES}]))
    assert await conversations.get(ME, "one") is None


@pytest.mark.requirement("http:conversations")
async def test_one_caller_keeps_a_bounded_number_and_may_go_on_with_each(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.engine.conversations.MAX_PER_CALLER", 2)
    for name in ("one", "two"):
        await conversations.put(ME, name, ConversationUpdate(title=name))
    with pytest.raises(Failure, match="2 conversations already"):
        await conversations.put(ME, "three", ConversationUpdate(title="three"))
    assert await conversations.put(ME, "one", ConversationUpdate(title="more", version=1))
    assert await conversations.put(OTHER, "three", ConversationUpdate(title="theirs"))
    await conversations.delete(ME, "two")
    assert await conversations.put(ME, "three", ConversationUpdate(title="three"))


@pytest.mark.requirement("http:conversations")
async def test_an_event_tells_nothing_of_what_is_in_a_conversation(
    conversations: Conversations, store: MemoryStore
) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="my title", messages=[HELLO]))
    await conversations.delete(ME, "one")
    events = repr(await store.events(0, limit=9))
    assert ("conversation.deleted" in events, "title" in events, "hello" in events) == (True, False, False)


async def _all(store: MemoryStore, kind: str) -> list[Record]:

    return await store.find(kind, Query(), limit=100)
