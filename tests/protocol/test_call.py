"""Tool calls, and several of them written as one numbered batch (001 §4.2)."""

from dataclasses import FrozenInstanceError, fields
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import bounded_work, number_batch
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Origin, ToolCall, fold_name, split_batch

NAMES = ("command", "directoryPath", "filePath", "content", "encoding")


@pytest.mark.requirement("call:fields")
def test_a_call_carries_its_id_tool_arguments_signer_and_caller() -> None:
    call = ToolCall(id="call_1", tool="Read", arguments={"path": "a"}, maid="小克", caller="cli:/srv/app")
    assert {field.name: getattr(call, field.name) for field in fields(call)} == {
        "id": "call_1",
        "tool": "Read",
        "use_id": "",
        "arguments": {"path": "a"},
        "maid": "小克",
        "caller": "cli:/srv/app",
        "origin": Origin.PYTHON,
        "timeout_s": None,
        "force": False,
        "avoids_protected": False,
        "auto_safe": False,
        "approved": "",
        "chat": "",
        "retry_of": "",
        "unreadable": "",
        "metadata": {},
    }


@pytest.mark.requirement("call:fields")
def test_a_call_that_exists_does_not_change() -> None:
    call = ToolCall(id="call_1", tool="Read")
    with pytest.raises(FrozenInstanceError):
        call.tool = "Write"  # type: ignore[misc]


@pytest.mark.requirement("batch:split")
def test_the_seeds_batch_is_two_calls_with_their_own_parameters() -> None:
    """The JSON of 001 §4.2."""
    arguments: JsonObject = {
        "command1": "ListDirectory",
        "directoryPath1": "/home/user/docs",
        "command2": "ReadFile",
        "filePath2": "/home/user/docs/report.txt",
    }
    assert split_batch(arguments, NAMES) == [
        {"command": "ListDirectory", "directoryPath": "/home/user/docs"},
        {"command": "ReadFile", "filePath": "/home/user/docs/report.txt"},
    ]


@pytest.mark.requirement("batch:split", "params:case")
def test_numbered_names_are_known_without_case_and_separators_and_keep_their_writing() -> None:
    assert split_batch({"FILE_PATH1": "a", "file-path2": "b", "FilePath3": "c"}, NAMES) == [
        {"FILE_PATH": "a"},
        {"file-path": "b"},
        {"FilePath": "c"},
    ]


@pytest.mark.requirement("batch:split")
def test_what_has_no_number_belongs_to_every_call_unless_the_call_has_its_own() -> None:
    arguments: JsonObject = {
        "maid": "Nova",
        "encoding": "utf-8",
        "filePath1": "a",
        "filePath2": "b",
        "encoding2": "gbk",
    }
    assert split_batch(arguments, NAMES) == [
        {"maid": "Nova", "encoding": "utf-8", "filePath": "a"},
        {"maid": "Nova", "encoding": "gbk", "filePath": "b"},
    ]


@pytest.mark.requirement("batch:split")
def test_a_name_that_itself_ends_in_digits_can_be_numbered() -> None:
    assert split_batch({"sha2561": "a", "sha2562": "b"}, ["sha256"]) == [{"sha256": "a"}, {"sha256": "b"}]


@pytest.mark.requirement("batch:order")
def test_call_10_comes_after_call_2() -> None:
    shuffled: JsonObject = {f"command{number}": number for number in (10, 2, 1, 9, 3, 8, 4, 7, 5, 6)}
    assert split_batch(shuffled, NAMES) == [{"command": number} for number in range(1, 11)]


@pytest.mark.requirement("batch:gaps")
@pytest.mark.parametrize(
    ("numbers", "last", "missing"),
    [([2], 2, 1), ([1, 3], 3, 2), ([1, 2, 4, 5], 5, 3), ([7, 1, 2], 7, 3), ([999_999], 999_999, 1)],
)
def test_a_gap_is_refused_and_named(numbers: list[int], last: int, missing: int) -> None:
    with pytest.raises(Failure) as refusal:
        split_batch({f"command{number}": "ReadFile" for number in numbers}, NAMES)
    assert refusal.value.code is ErrorCode.INVALID_PARAM
    assert refusal.value.message == f"The batch has arguments numbered {last} but none numbered {missing}."


@pytest.mark.requirement("batch:gaps")
def test_a_call_without_a_parameter_does_not_get_its_neighbours() -> None:
    arguments: JsonObject = {"command1": "A", "command2": "B", "command3": "C", "filePath1": "a", "filePath3": "c"}
    assert split_batch(arguments, NAMES) == [
        {"command": "A", "filePath": "a"},
        {"command": "B"},
        {"command": "C", "filePath": "c"},
    ]


@pytest.mark.requirement("batch:single")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": "ReadFile", "filePath": "a1"},
        {"size1": 1, "utf8": True},  # no parameter is called size or utf
        {"filePath0": "a"},  # batches count from 1
        {"filePath01": "a"},
        {"filePath1x": "a"},
        {"1": "a", "": "b"},
        {"filePath①": "a", "filePath１": "b", "filePath²": "c"},  # digits, but not of a number as it is written here
    ],
)
def test_a_call_without_numbered_parameters_is_no_batch(arguments: JsonObject) -> None:
    assert split_batch(arguments, NAMES) is None


@pytest.mark.requirement("batch:single")
def test_a_parameter_whose_own_name_ends_in_a_digit_is_not_a_numbered_one() -> None:
    names = ("sha", "sha1", "sha256", "path")
    assert split_batch({"sha1": "a", "SHA-256": "b"}, names) is None
    assert split_batch({"sha1": "a", "path1": "b"}, names) == [{"sha1": "a", "path": "b"}]


@pytest.mark.requirement("batch:single")
@pytest.mark.parametrize("key", ["filePath" + "1" * 5000, "1" * 200_000 + "x", "filePath1000000"], ids=len)
def test_an_endless_number_is_a_name_and_costs_no_time(key: str) -> None:
    with bounded_work():
        assert split_batch({key: "a"}, NAMES) is None


@pytest.mark.requirement("batch:split", "batch:order")
def test_calls_are_numbered_from_1() -> None:
    assert number_batch([{"command": "A", "filePath": "a"}, {"command": "B"}]) == {
        "command1": "A",
        "filePath1": "a",
        "command2": "B",
    }
    assert number_batch([]) == {}


# A known name that is another known name with a number is never read as a numbered one, so none ends in a digit here.
WORDS = st.text(min_size=1, max_size=8).filter(lambda name: fold_name(name)[-1:] not in {*"0123456789", ""})
VALUES: st.SearchStrategy[Json] = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Json]]]:
    names = draw(st.lists(WORDS, min_size=1, max_size=5, unique_by=fold_name))
    item: st.SearchStrategy[dict[str, Json]] = st.dictionaries(st.sampled_from(names), VALUES, min_size=1)
    return names, draw(st.lists(item, min_size=1, max_size=25))


@pytest.mark.requirement("batch:split", "batch:order")
@settings(max_examples=100, deadline=None)
@given(batch=batches(), random=st.randoms(use_true_random=False))
def test_a_batch_that_was_numbered_splits_into_the_same_calls_in_any_order_of_its_arguments(
    batch: tuple[list[str], list[dict[str, Json]]], random: Random
) -> None:
    names, items = batch
    arguments = list(number_batch(items).items())
    random.shuffle(arguments)
    assert split_batch(dict(arguments), names) == items


@pytest.mark.requirement("batch:gaps")
@settings(max_examples=50, deadline=None)
@given(size=st.integers(2, 30), data=st.data())
def test_a_batch_with_any_inner_call_missing_is_refused(size: int, data: st.DataObject) -> None:
    lost = data.draw(st.integers(1, size - 1))
    arguments = number_batch([{"command": number} for number in range(1, size + 1)])
    del arguments[f"command{lost}"]
    with pytest.raises(Failure, match=f"none numbered {lost}\\."):
        split_batch(arguments, NAMES)
