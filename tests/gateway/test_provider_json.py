"""JSON as providers write it, read like the official client reads it."""

import json
from typing import Any

import orjson
import pytest

from toolyard.gateway.providers.provider_json import (
    MAX_ODD_PARTS,
    MAX_PARTS,
    MAX_UNSTREAMED_PARTS,
    StreamRepair,
    parse_provider_json,
    repair_provider_json,
)

pytestmark = pytest.mark.requirement("clients:provider-json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, "x", null]}', {"a": [1, "x", None]}),
        ('{"a": [NaN, -Infinity, Infinity, 1.5]}', {"a": [None, None, None, 1.5]}),
        ("[1e999]", [None]),
        ("[18446744073709551616, -9223372036854775809]", [2**64, -(2**63) - 1]),
        ("[123456789012345678901234567890, NaN]", [123456789012345678901234567890, None]),
        (r'"\ud83d\ude00"', "😀"),
        (r'"a\ud83d"', "a�"),
        (r'{"\ude00": "\ude00b"}', {"�": "�b"}),
        ('\ufeff{"a": 1}', {"a": 1}),
    ],
)
def test_what_the_official_client_reads_is_read(text: str, value: Any) -> None:
    assert parse_provider_json(text.encode()) == value
    strict = repair_provider_json(text.encode().replace(b"1e999", b"null").removeprefix(b"\xef\xbb\xbf"))
    assert json.loads(strict, parse_constant=pytest.fail) == value
    orjson.loads(strict)


@pytest.mark.parametrize("text", ["", "{", "<html>", "{'a': 1}", '{"a": NAN}', "[" * 100_000, "[NaN" + "]" * 9])
def test_what_is_no_json_is_refused_before_and_after_repair(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 its words are those of the reader
        parse_provider_json(text.encode())
    with pytest.raises(ValueError):  # noqa: PT011
        parse_provider_json(repair_provider_json(text.encode()))


def test_strict_json_stays_the_same_bytes() -> None:
    for data in (b'{"a":  "NaN, Infinity"}', rb'{"a": "\ud83d\ude00"}', b"[1.50, 12345678901234567890123]"):
        assert repair_provider_json(data) == data
        assert StreamRepair().repair_event(b"data: " + data) == b"data: " + data


def test_a_value_of_too_many_parts_is_refused_before_it_is_read() -> None:
    values = b"[" + b"0," * MAX_PARTS + b"0]"
    with pytest.raises(ValueError, match="more than 200,000 values"):
        parse_provider_json(values)
    assert len(parse_provider_json(values, most=MAX_UNSTREAMED_PARTS)) == MAX_PARTS + 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="more than 700,000 values"):
        parse_provider_json(b"[" + b"0," * MAX_UNSTREAMED_PARTS + b"0]", most=MAX_UNSTREAMED_PARTS)
    with pytest.raises(ValueError, match="not strict JSON and has more than 50,000 values"):
        parse_provider_json(b"[" + b"0," * MAX_ODD_PARTS + b"NaN]")


def test_a_long_answer_that_is_not_strict_is_repaired_without_reading_it_whole() -> None:
    values = b"[" + rb'"\ud83d\ude00 NaN, \"Infinity", -Infinity,' * 100_000 + rb'"\ude00"]'
    made = parse_provider_json(repair_provider_json(values), most=MAX_UNSTREAMED_PARTS)
    assert made == ['😀 NaN, "Infinity', None] * 100_000 + ["\ufffd"]
    event_ = StreamRepair().repair_event(b"data: " + values)
    assert event_ == b"data: " + repair_provider_json(values)


def event(index: int = 0, **delta: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": index, "delta": delta}]}).encode()


def texts(events: list[bytes], index: int = 0, key: str = "content") -> str:
    """As a client with a strict reader puts them together."""
    chunks = [orjson.loads(one.removeprefix(b"data: ")) for one in events]
    choices = (choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index)
    return "".join(choice["delta"].get(key, "") for choice in choices)


def test_a_pair_that_is_split_over_two_events_becomes_its_character() -> None:
    repair = StreamRepair()
    events = [
        event(content="a\ud83d"),
        event(1, content="b\ud83d"),
        event(reasoning_content="c"),
        event(content="\ude00d"),
        event(1, content="\ude01"),
        event(content="e"),
    ]
    made = [repair.repair_event(one) for one in events]
    assert (texts(made), texts(made, 1), texts(made, key="reasoning_content")) == ("a😀de", "b😁", "c")
    assert made[-1] is events[-1]  # nothing waits any more, so nothing is read twice


def test_a_half_whose_other_half_never_comes_is_marked_and_loses_nothing_else() -> None:
    repair = StreamRepair()
    made = [repair.repair_event(one) for one in (event(content="a\ud83d"), event(content=""), event(content="b"))]
    assert texts(made) == "a\ufffdb"
    assert repair.repair_event(b"data: [DONE]") == b"data: [DONE]"


def test_the_other_lines_of_an_event_stay() -> None:
    made = StreamRepair().repair_event(b'event: x\nid: 7\ndata: {"a":\ndata: NaN}')
    assert made == b'event: x\nid: 7\ndata: {"a":null}'
