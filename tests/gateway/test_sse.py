"""Server-sent events, cut anyhow."""

import pytest

from toolyard.gateway.sse import MAX_EVENT, Events, data_of

pytestmark = pytest.mark.requirement("r:R73")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_however_their_bytes_are_cut(end: str) -> None:
    text = f"data: 一{end}{end}: comment{end}{end}event: x{end}data: a{end}data: b{end}{end}{end}data: [DONE]{end}{end}"
    raw = text.encode()
    whole = Events().feed(raw + b"x")
    assert [data_of(event) for event in whole] == ["一".encode(), None, b"a\nb", b"[DONE]"]
    for cut in range(len(raw)):
        events = Events()
        assert events.feed(raw[:cut]) + events.feed(raw[cut:] + b"x") == whole


def test_what_has_no_end_is_told_apart() -> None:
    events = Events()
    assert events.feed(b"data: 1\n\ndata: 2") == [b"data: 1"]
    assert events.finish() == b"data: 2"
    assert events.finish() == b""


def test_an_event_without_end_is_refused_before_it_fills_the_memory() -> None:
    events = Events()
    events.feed(b"x" * MAX_EVENT)
    with pytest.raises(ValueError, match="more than"):
        events.feed(b"x")
