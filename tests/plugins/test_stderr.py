"""The part of stderr that is kept, per call and per plugin."""

import tracemalloc
from datetime import UTC, datetime

import pytest

from toolyard.plugins.process.process_output import HEAD, TAIL, StderrLog, StderrRing

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def _ring(*chunks: bytes) -> StderrRing:
    ring = StderrRing()
    for chunk in chunks:
        ring.feed(chunk)
    return ring


@pytest.mark.requirement("r:R15")
@pytest.mark.parametrize("chunk", [1000, 65536, 10**9])
def test_head_and_tail_are_kept_and_the_middle_is_counted(chunk: int) -> None:
    content = b"H" * HEAD + b"M" * 1_000_000 + b"T" * TAIL
    ring = _ring(*(content[at : at + chunk] for at in range(0, len(content), chunk)))
    assert (ring.head, ring.tail) == ("H" * HEAD, "T" * TAIL)
    assert (ring.total, ring.dropped_bytes) == (len(content), 1_000_000)
    assert "[... 1000000 bytes not kept ...]" in ring.text


@pytest.mark.requirement("r:R15")
def test_a_short_stderr_is_kept_whole() -> None:
    ring = _ring(b"one\n", b"caf\xe9\n")
    assert (ring.text, ring.dropped_bytes, ring.last_text(3)) == ("one\ncaf\ufffd\n", 0, "f\ufffd\n")


@pytest.mark.requirement("r:R15")
def test_the_log_of_a_plugin_keeps_its_last_calls_within_its_size() -> None:
    log = StderrLog(size=10)
    log.add("silent", NOON, _ring())
    for number in range(5):
        log.add(f"call-{number}", NOON, _ring(b"four"))
    assert [(entry.call_id, entry.text, entry.at) for entry in log.entries] == [
        ("call-3", "four", NOON),
        ("call-4", "four", NOON),
    ]
    log.add("long", NOON, _ring(b"0123456789abcdef"))
    assert [entry.text for entry in log.entries] == ["6789abcdef"]


@pytest.mark.requirement("r:R15")
def test_what_is_kept_takes_no_more_memory_however_much_is_printed() -> None:
    ring, chunk = StderrRing(), b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(512):
            ring.feed(chunk)
        assert tracemalloc.get_traced_memory()[1] < 4 * (HEAD + 2 * TAIL)
    finally:
        tracemalloc.stop()
    assert ring.total == 512 * 65536
