"""Replies of any shape."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.reply.chunks import Chunk, Head, add_usage, to_events
from toolyard.gateway.reply.model_reply import ReplyContext
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.sse import END, Events, event_of
from toolyard.gateway.tool_calls.native_calls import Ownership, call_name, list_client_tools

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def fields(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of the fields that are expected, of which any may be anything."""
    return VALUES | st.fixed_dictionaries({}, optional={name: value | VALUES for name, value in known.items()})


FUNCTION = fields(name=st.sampled_from(["Say", "theirs"]), arguments=st.text(max_size=9))
CALL = fields(index=st.integers(-1, 3), id=st.text(max_size=3), function=FUNCTION)
DELTA = fields(content=st.text(max_size=9), role=st.just("assistant"), tool_calls=st.lists(CALL, max_size=3))
CHOICE = fields(
    index=st.just(0), delta=DELTA, message=DELTA, finish_reason=st.sampled_from(["stop", "tool_calls", None])
)
CHUNK = fields(id=st.text(max_size=3), choices=st.lists(CHOICE, max_size=2), usage=VALUES, error=st.none())


def written(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.raw + END if chunk.raw else event_of(chunk.data) for chunk in chunks)


def make_reply(
    request_filter: RequestFilter, *, number: int = 1, theirs: frozenset[str] = frozenset(), looks: bool = True
) -> StreamedReply:
    context = ReplyContext(
        head=Head("x", 1, "m"),
        request_filter=request_filter,
        provider="p",
        round=number,
        owners=Ownership(theirs),
        looks=looks,
    )
    return StreamedReply(context)


@pytest.mark.requirement("r:R74")
@given(st.lists(CHUNK, max_size=6), st.booleans(), st.integers(1, 2))
def test_whatever_a_provider_sends_is_passed_on_or_a_fault(chunks: list[Any], hides: bool, number: int) -> None:
    request_filter = RequestFilter(hides=hides)
    reply = make_reply(request_filter, number=number, theirs=frozenset({"theirs"}))
    sent = [chunk for chunk in chunks for chunk in reply.take([b"data: " + orjson.dumps(chunk)])]
    raw = written([*sent, *reply.end(), *reply.take_held()])
    assert all(event.startswith(b"data: {") for event in Events().feed(raw))
    assert all(isinstance(call_name(call), str) for call in reply.calls)
    assert isinstance(reply.total_usage(), dict)


@pytest.mark.requirement("r:R74")
@given(CHUNK)
def test_whatever_comes_whole_is_events_or_a_fault(body: Any) -> None:
    with contextlib.suppress(ChatFailed):
        assert all(event.startswith(b"data: ") for event in to_events("p", orjson.dumps(body)))
    list_client_tools({"tools": body, "functions": body})


@pytest.mark.requirement("chat:completions")
def test_usages_are_added_field_by_field() -> None:
    one = {"total_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}, "cost": 0.5, "note": "a"}
    two = {"total_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2, "new": 1}, "cost": 0.25, "note": "b"}
    assert add_usage(one, two) == {  # type: ignore[arg-type]
        "total_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3, "new": 1}, "cost": 0.75, "note": "b",
    }  # fmt: skip
    assert add_usage({}, two) == two  # type: ignore[arg-type]


def _event(**choice: Any) -> bytes:
    return b"data: " + orjson.dumps({"choices": [choice]})


@pytest.mark.requirement("r:R70")
def test_a_last_chunk_that_does_not_say_which_answer_it_ends_ends_the_first() -> None:
    reply = make_reply(RequestFilter(hides=True), looks=False)
    reply.take([_event(index=0, delta={"content": "a"}), _event(delta={}, finish_reason="stop")])
    assert (reply.failure, reply.finish) == (None, "stop")


@pytest.mark.requirement("chat:completions")
def test_what_is_no_text_in_the_last_chunk_goes_on_with_it() -> None:
    reply = make_reply(RequestFilter(hides=True))
    parts = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    sent = reply.take([_event(index=0, delta={"content": parts}, finish_reason="stop")])
    assert orjson.loads(written(sent).removeprefix(b"data: "))["choices"][0]["delta"]["content"] == parts
