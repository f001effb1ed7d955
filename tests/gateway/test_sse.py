"""Server-sent events, cut anyhow."""

from typing import Any

import pytest

from toolyard.gateway.sse import MAX_EVENT, MAX_LINES, Events, data_of

pytestmark = pytest.mark.requirement("r:R73")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_however_their_bytes_are_cut(end: str) -> None:
    text = f"data: 一{end}{end}: comment{end}{end}event: x{end}data: a{end}data: b{end}{end}{end}data: [DONE]{end}{end}"
    raw = text.encode()
    complete = Events().feed(raw + b"x")
    assert [data_of(event) for event in complete] == ["一".encode(), None, b"a\nb", b"[DONE]"]
    for cut in range(len(raw)):
        events = Events()
        assert events.feed(raw[:cut]) + events.feed(raw[cut:] + b"x") == complete


def test_what_has_no_end_is_told_apart() -> None:
    events = Events()
    assert events.feed(b"data: 1\n\ndata: 2") == [b"data: 1"]
    assert events.finish() == [b"data: 2"]
    assert events.finish() == []


def test_an_event_without_end_is_refused_before_it_fills_the_memory() -> None:
    events = Events()
    assert events.feed(b"x" * MAX_EVENT) == []
    assert events.problem == ""
    assert events.feed(b"x") == []
    assert "more than 8388608 bytes" in events.problem


@pytest.mark.requirement("clients:not-lost")
def test_events_before_one_that_cannot_be_read_are_given() -> None:
    events = Events()
    assert events.feed(b"data: 1\n\n" + b"x" * (MAX_EVENT + 1)) == [b"data: 1"]
    assert "bytes" in events.problem
    events = Events()
    assert events.feed(b"data: 1\n\n" + b"data:\n" * (MAX_LINES + 1) + b"\ndata: 2\n\n") == [b"data: 1"]
    assert "more than 65536 lines" in events.problem
    events = Events()
    events.feed(b"data:\n" * (MAX_LINES + 1))
    assert events.finish() == []
    assert "lines" in events.problem


class Counted(bytearray):
    """Counts the bytes that are looked at in it."""

    work = 0

    def find(self, sub: Any, start: Any = None, end: Any = None) -> int:
        position = super().find(sub, start, end)
        self.work += (len(self) if position < 0 else position) - (start or 0)
        return position


@pytest.mark.requirement("clients:bounded")
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_event_in_small_pieces_takes_work_in_proportion_to_its_size(size: int) -> None:
    events, event = Events(), b"data: " + b"x" * 100_000
    events._rest = counted = Counted()
    for at in range(0, len(event), size):
        assert events.feed(event[at : at + size]) == []
    assert events.feed(b"\n\n") == [event]
    assert events._rest is counted  # it was never copied to grow
    assert counted.work <= 3 * len(event)
