"""Conversations: each belongs to one caller, changes by compare-and-set, and stays until it is deleted."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests import postgres
from tests.fakes import FakeClock
from toolyard.engine.chats.conversations import MAX_BYTES, Conversations, ConversationUpdate, FoundConversation
from toolyard.engine.retention import KEPT_S, Retention
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.conversation_record import CONVERSATION, MESSAGES, TEXT, ConversationContent
from toolyard.protocol.store import PageCursor, Query, Record
from toolyard.storage.memory_store import MemoryStore

KINDS = (CONVERSATION, MESSAGES, TEXT)
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
        title="A",
        model="tour",
        content=ConversationContent(
            messages=(
                HELLO,
                {"own": {"of": ["the client"]}},
            ),
            settings={"x": 1},
        ),
    )
    record = await conversations.put(ME, "one", draft)
    assert record is not None
    read = await conversations.get(ME, "one")
    assert read is not None
    conversation, content = read
    assert (conversation.id, conversation.version, conversation.messages) == ("one", 1, 2)
    assert content == draft.content
    assert record == conversation
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
    assert (read[0].title, read[0].version) == ("second", 2)


@pytest.mark.requirement("http:conversations")
@pytest.mark.parametrize("deleted", [False, True])
async def test_one_that_changes_while_it_is_read_is_read_as_it_is_then(
    conversations: Conversations, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, *, deleted: bool
) -> None:
    await conversations.put(
        ME, "one", ConversationUpdate(title="first", content=ConversationContent(messages=(HELLO,)))
    )
    real, changes = store.get, iter([True])

    async def slow(kind: str, id_: str) -> Record | None:
        if kind == MESSAGES and next(changes, False):
            if deleted:
                await conversations.delete(ME, "one")
            else:
                await conversations.put(
                    ME,
                    "one",
                    ConversationUpdate(
                        title="second",
                        content=ConversationContent(
                            messages=(
                                HELLO,
                                HELLO,
                            )
                        ),
                        version=1,
                    ),
                )
        return await real(kind, id_)

    monkeypatch.setattr(store, "get", slow)
    read = await conversations.get(ME, "one")
    content = None if read is None else (read[0].title, read[0].version, read[1].messages)
    assert content == (None if deleted else ("second", 2, (HELLO, HELLO)))


@pytest.mark.requirement("http:conversations")
async def test_an_id_is_one_callers_alone(conversations: Conversations) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="mine"))
    assert await conversations.get(OTHER, "one") is None
    assert not await conversations.delete(OTHER, "one")
    assert await conversations.put(OTHER, "one", ConversationUpdate(title="theirs"))
    assert [one.conversation.title for one in await conversations.page(ME, limit=9)] == ["mine"]


@pytest.mark.requirement("http:conversations")
async def test_pages_and_words_are_found(conversations: Conversations, clock: FakeClock) -> None:
    for number in range(5):
        parts: JsonObject = {"content": [{"type": "text", "text": f"about whales{number}"}]}
        await conversations.put(
            ME, f"c{number}", ConversationUpdate(title=f"title{number}", content=ConversationContent(messages=(parts,)))
        )
        clock.advance(1)
    assert await _list(conversations, limit=3) == ["c4", "c3", "c2", "c1", "c0"]
    assert await _list(conversations, "whales2") == ["c2"]
    assert await _list(conversations, "title3") == ["c3"]
    assert await _list(conversations, "about", limit=2) == ["c4", "c3", "c2", "c1", "c0"]


@pytest.mark.requirement("http:conversations:pinned")
async def test_pinned_ones_come_first_on_every_page_and_stay_pinned_when_they_go_on(
    conversations: Conversations, clock: FakeClock
) -> None:
    for number in range(6):
        await conversations.put(ME, f"c{number}", ConversationUpdate(title=f"title{number}"))
        clock.advance(1)
    for id_ in ("c1", "c3", "c4"):
        assert await conversations.change(ME, id_, pinned=True)
    assert await conversations.change(ME, "c4", pinned=False)
    changed = await conversations.put(ME, "c1", ConversationUpdate(title="more words", leaf="m2", version=2))
    assert changed is not None
    assert (changed.pinned, changed.version, changed.leaf) == (True, 3, "m2")
    for limit in (1, 2, 3, 9):
        assert await _list(conversations, limit=limit) == ["c3", "c1", "c5", "c4", "c2", "c0"]
    assert await _list(conversations, "title") == ["c5", "c4", "c3", "c2", "c0"]
    assert await conversations.change(OTHER, "c1", pinned=False) is None


@pytest.mark.requirement("http:conversations:pinned")
async def test_a_new_title_or_branch_changes_neither_the_messages_nor_the_age(
    conversations: Conversations, store: MemoryStore, clock: FakeClock
) -> None:
    content = ConversationContent(messages=(HELLO,))
    first = await conversations.put(ME, "one", ConversationUpdate(title="old name", content=content))
    clock.advance(60)
    renamed = await conversations.change(ME, "one", title="new name", leaf="m7")
    assert first is not None
    assert renamed == replace(first, version=2, title="new name", leaf="m7")
    assert await conversations.change(ME, "one", title="new name") == renamed
    assert await conversations.get(ME, "one") == (renamed, content)
    assert await _list(conversations, "new hello") == ["one"]
    assert await _list(conversations, "old") == []
    assert [event.data["version"] for event in await store.events(0, limit=9)] == [1, 2]


@pytest.mark.requirement("http:conversations:activity")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_the_last_active_comes_first_and_pages_fit_whatever_moves_between_them(
    kind: str, clock: FakeClock, tmp_path: Path
) -> None:
    async with postgres.store_in(kind, tmp_path / "state.db") as opened:
        conversations = Conversations(opened, clock)
        for number in range(9):
            await _say(conversations, f"c{number}", clock)
        await _say(conversations, "c2", clock)
        await _say(conversations, "c0", clock)
        for id_ in ("c4", "c1"):
            await conversations.change(ME, id_, pinned=True)
        await _say(conversations, "c1", clock)
        asked = await conversations.get(ME, "c3")
        assert asked is not None
        settings = replace(asked[1], settings={"mode": "ask"})  # which is no activity
        kept = await conversations.put(
            ME, "c3", ConversationUpdate(title="title", content=settings, version=asked[0].version)
        )
        assert kept is not None
        assert kept.updated == asked[0].updated
        order = ["c1", "c4", "c0", "c2", "c8", "c7", "c6", "c5", "c3"]
        for limit in (1, 2, 3, 20):
            assert await _list(conversations, limit=limit) == order
        by_activity = ["c1", "c0", "c2", "c8", "c7", "c6", "c5", "c4", "c3"]
        for limit in (1, 2, 20):
            assert await _list(conversations, "hello", limit=limit) == by_activity

        first = await conversations.page(ME, limit=1)
        await conversations.change(ME, "c1", pinned=False)  # the one that the cursor stands for
        second = await conversations.page(ME, limit=2, after=first[-1].place)
        assert _ids([*first, *second]) == ["c1", "c4", "c1"]  # it was active last of all those that are not pinned
        await _say(conversations, "c6", clock)
        await conversations.delete(ME, "c1")
        rest = await conversations.page(ME, limit=20, after=second[-1].place)
        assert _ids(rest) == ["c0", "c2", "c8", "c7", "c5", "c3"]  # c6 has moved up, and none is there twice
        assert await _list(conversations) == ["c4", "c6", "c0", "c2", "c8", "c7", "c5", "c3"]


async def _say(conversations: Conversations, id_: str, clock: FakeClock) -> None:
    """Add a message to a conversation."""
    stored = await conversations.get(ME, id_)
    messages, version = (stored[1].messages, stored[0].version) if stored else ((), 0)
    content = ConversationContent(messages=(*messages, HELLO))
    clock.advance(1)
    assert await conversations.put(ME, id_, ConversationUpdate(title="title", content=content, version=version))


def _ids(found: Sequence[FoundConversation]) -> list[str]:
    return [one.conversation.id for one in found]


REPLY: JsonObject = {
    "id": "r1",
    "role": "assistant",
    "parent": "q1",
    "pieces": [
        {"kind": "thinking", "text": "ponder"},
        {"kind": "text", "text": "The <b>Große</b> Straße is\n\nlong. " + "x " * 300 + "它的中文名字叫长街。"},
        {"kind": "call", "tool": "Read", "text": "output"},
    ],
}


@pytest.mark.requirement("http:conversations:search")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_words_of_every_branch_are_found_with_the_text_around_them(
    kind: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with postgres.store_in(kind, tmp_path / "state.db") as store:
        conversations = Conversations(store, clock)
        messages: tuple[JsonObject, ...] = (
            {"id": "q1", "role": "user", "text": "Tell me of concatenated cats"},
            REPLY,
            {"id": "r2", "role": "assistant", "parent": "q1", "pieces": [{"kind": "text", "text": "Another branch."}]},
            {"role": "user", "content": [{"type": "text", "text": "parts of OpenAI"}, {"type": "image_url"}]},
            {"id": 7, "text": 5, "pieces": "none"},
        )
        await conversations.put(
            ME, "one", ConversationUpdate(title="Streets", content=ConversationContent(messages=messages))
        )
        await conversations.put(OTHER, "two", ConversationUpdate(title="cats"))

        async def hit(search: str) -> tuple[str, str] | None:
            found = await conversations.page(ME, search, limit=9)
            return (found[0].message_id, found[0].snippet) if found else None

        assert await hit("CAT") == ("q1", "Tell me of concatenated cats")
        assert await hit("another bran") == ("r2", "Another branch.")
        assert await hit("openai") == ("", "parts of OpenAI")
        assert await hit("streets") == ("", "")  # in the title alone
        assert await hit("große") == ("r1", "The <b>Große</b> Straße is long." + " x" * 83 + "…")
        assert await hit("中文名字") == ("r1", "…" + "x " * 18 + "它的中文名字叫长街。")
        assert await hit("streets 长街") is not None  # its words need not stand in one message
        for missing in ("ponder", "output", "dogs", "文中", "cat dogs"):
            assert await hit(missing) is None, missing
        assert await hit("") == ("", "")  # no search
        await conversations.delete(ME, "one")
        assert await hit("cat") is None


@pytest.mark.requirement("http:conversations:search")
async def test_of_a_very_long_conversation_the_newest_messages_are_searched(conversations: Conversations) -> None:
    messages: tuple[JsonObject, ...] = tuple({"id": f"m{n}", "text": f"unique{n} " + "长文" * 4000} for n in range(60))
    await conversations.put(ME, "one", ConversationUpdate(content=ConversationContent(messages=messages)))
    assert await _list(conversations, "unique59 长文") == ["one"]
    assert await _list(conversations, "unique20") == ["one"]
    assert await _list(conversations, "unique0") == []


@pytest.mark.requirement("http:conversations:search")
async def test_conversations_of_an_older_version_are_searched_too(
    conversations: Conversations, store: MemoryStore, clock: FakeClock
) -> None:
    for name in ("one", "two"):
        await conversations.put(
            ME, name, ConversationUpdate(title=name, content=ConversationContent(messages=(HELLO,)))
        )
    clock.advance(1)
    await store.commit([replace(one, state="deleted") for one in await _all(store, TEXT) if one.key == "one"])
    await store.remove(TEXT, clock.now().timestamp(), states=["deleted"], limit=9)  # as if there had never been one
    assert len(await _all(store, TEXT)) == 1
    found = await asyncio.gather(*(_list(conversations, "hello one") for _ in range(3)))
    assert found == [["one"]] * 3


@pytest.mark.requirement("http:conversations")
async def test_only_what_is_deleted_is_forgotten_and_its_words_at_once(
    conversations: Conversations, store: MemoryStore, clock: FakeClock
) -> None:
    await conversations.put(ME, "kept", ConversationUpdate(content=ConversationContent(messages=(HELLO,))))
    await conversations.put(ME, "gone", ConversationUpdate(content=ConversationContent(messages=(HELLO,))))
    assert await conversations.delete(ME, "gone")
    assert not await conversations.delete(ME, "gone")
    assert await conversations.get(ME, "gone") is None
    left = [await store.get(kind, one.id) for kind in KINDS for one in await _all(store, kind)]
    assert sum("hello" in repr(record) for record in left) == 2  # the text and the messages of the one that is kept
    clock.advance(KEPT_S + 1)
    await Retention(store, clock).sweep()
    assert [[one.key for one in await _all(store, kind)] for kind in KINDS] == [["kept"]] * len(KINDS)


@pytest.mark.requirement("http:conversations")
async def test_a_deleted_id_can_be_used_again(conversations: Conversations) -> None:
    await conversations.put(ME, "one", ConversationUpdate(title="old"))
    await conversations.delete(ME, "one")
    record = await conversations.put(ME, "one", ConversationUpdate(title="new"))
    assert record is not None
    read = await conversations.get(ME, "one")
    assert read is not None
    assert (read[0].title, read[0].version) == ("new", record.version)


@pytest.mark.requirement("http:conversations")
async def test_what_is_too_large_is_refused(conversations: Conversations) -> None:
    with pytest.raises(Failure, match="bytes at most"):
        await conversations.put(
            ME, "one", ConversationUpdate(content=ConversationContent(messages=({"content": "x" * MAX_BYTES},)))
        )
    assert await conversations.get(ME, "one") is None


@pytest.mark.requirement("http:conversations")
async def test_one_caller_keeps_a_bounded_number_and_may_go_on_with_each(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.engine.chats.conversations.MAX_PER_CALLER", 2)
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
    await conversations.put(
        ME, "one", ConversationUpdate(title="my title", content=ConversationContent(messages=(HELLO,)))
    )
    await conversations.delete(ME, "one")
    events = repr(await store.events(0, limit=9))
    assert ("conversation.deleted" in events, "title" in events, "hello" in events) == (True, False, False)


async def _list(conversations: Conversations, search: str = "", *, limit: int = 9) -> list[str]:
    """Return the ids of all pages."""
    ids: list[str] = []
    after: PageCursor | None = None
    while found := await conversations.page(ME, search, limit=limit, after=after):
        ids += [one.conversation.id for one in found]
        after = found[-1].place
    return ids


async def _all(store: MemoryStore, kind: str) -> list[Record]:
    return await store.find(kind, Query(), limit=100)
