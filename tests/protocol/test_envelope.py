"""The envelope of seed 002: what is valid, what is refused, and what it looks like in JSON."""

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.blocking import BlockingYard
from toolyard.dialects import encode
from toolyard.errors import InvalidEnvelope
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Envelope, ErrorCode, Extras, Fault, Status, is_partial
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Outcome, ToolCall

FAULT = {"code": "NOT_FOUND", "message": "File 'src/main.py' does not exist."}  # 002 §3.3


def written(**changes: Any) -> dict[str, Any]:
    """The JSON of a valid envelope with some of its keys changed."""
    context = {"cwd": ".", "params_input": {}}
    return {"status": "success", "data": {}, "text": "Done.", "stats": {"time_ms": 1}, "context": context} | changes


def read(**changes: Any) -> Envelope:
    return Envelope.from_dict(written(**changes))


def built(**changes: Any) -> Envelope:
    valid: dict[str, Any] = written() | {"status": Status.SUCCESS}
    return Envelope(**(valid | changes))


def problems_of(value: object) -> tuple[str, ...]:
    with pytest.raises(InvalidEnvelope) as refusal:
        Envelope.from_dict(value)
    return refusal.value.problems


def problems_when_built(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidEnvelope) as refusal:
        built(**changes)
    return refusal.value.problems


# --- Keys ---


@pytest.mark.requirement("envelope:keys", "envelope:error:written")
def test_a_success_is_written_with_five_keys_in_order() -> None:
    assert list(read().to_dict()) == ["status", "data", "text", "stats", "context"]


@pytest.mark.requirement("envelope:keys", "envelope:error:written")
def test_an_error_is_written_with_six_keys_in_order() -> None:
    shuffled = dict(reversed(written(status="error", error=FAULT).items()))
    assert list(Envelope.from_dict(shuffled).to_dict()) == ["status", "data", "text", "error", "stats", "context"]


@pytest.mark.requirement("envelope:keys")
@pytest.mark.parametrize("key", ["message", "Status", "result", "parts", "", 1, None])
def test_any_other_top_level_key_is_refused(key: object) -> None:
    problem = f"unknown top-level key {key!r} (allowed: status, data, text, error, stats, context)"
    assert problems_of(dict([*written().items(), (key, "x")])) == (problem,)


@pytest.mark.requirement("envelope:keys")
@pytest.mark.parametrize("key", ["status", "data", "text", "stats", "context"])
def test_every_key_but_error_must_be_there(key: str) -> None:
    value = written()
    del value[key]
    assert problems_of(value) == (f"missing key {key!r}",)


@pytest.mark.requirement("envelope:keys")
@pytest.mark.parametrize("value", [None, [], "success", 0, [written()]])
def test_a_value_that_is_no_object_is_no_envelope(value: object) -> None:
    assert problems_of(value) == (f"expected an object, got {type(value).__name__}",)


@pytest.mark.requirement("envelope:keys", "envelope:status:closed", "envelope:data-object")
def test_every_problem_is_said_at_once() -> None:
    assert problems_of({"status": "done", "data": None, "text": 5, "error": "bad", "extra": 1, "context": {}}) == (
        "unknown top-level key 'extra' (allowed: status, data, text, error, stats, context)",
        "missing key 'stats'",
        "status is 'done', expected success, partial or error",
        "data must be an object",
        "text must be a string",
        "error must be an object of code and message",
    )


# --- Error ---


@pytest.mark.requirement("envelope:error:written")
@pytest.mark.parametrize("status", ["success", "partial"])
def test_a_null_error_is_read_and_not_written_again(status: str) -> None:
    assert read(status=status, error=None).to_dict() == written(status=status)


@pytest.mark.requirement("envelope:error:shape")
def test_an_error_envelope_carries_its_code_and_message() -> None:
    envelope = read(status="error", error=FAULT)
    assert envelope.error == Fault(ErrorCode.NOT_FOUND, "File 'src/main.py' does not exist.")
    assert envelope.to_dict() == written(status="error", error=FAULT)


@pytest.mark.requirement("envelope:error:shape", "code:closed")
@pytest.mark.parametrize(
    "error",
    [
        "Error: no such file",  # the legacy form that 002 §3.3 forbids
        "",
        False,
        0,
        [],
        {},
        {"code": "NOT_FOUND"},
        {"message": "x"},
        {"code": "NOT_FOUND", "message": None},
        {"code": "NOT_FOUND", "message": "x", "hint": "y"},
        {"code": "NOT_FOUND", "message": ""},
        {"code": "NOT_FOUND", "message": "\ud800"},
        {"code": "ENOENT", "message": "x"},
        {"code": "not_found", "message": "x"},
        {"code": ["NOT_FOUND"], "message": "x"},
        {"code": None, "message": "x"},
    ],
)
def test_an_error_that_is_not_a_code_of_the_set_and_a_message_is_refused(error: object) -> None:
    assert len(problems_of(written(status="error", error=error))) == 1


@pytest.mark.requirement("envelope:error:shape")
def test_an_error_envelope_cannot_be_built_without_an_error() -> None:
    problem = "error must be there exactly when status is error"
    assert problems_when_built(status=Status.ERROR) == (problem,)
    assert problems_of(written(status="error")) == (problem,)
    assert problems_of(written(status="error", error=None)) == (problem,)


@pytest.mark.requirement("envelope:error:shape", "envelope:status:success")
@pytest.mark.parametrize("status", [Status.SUCCESS, Status.PARTIAL])
def test_only_an_error_envelope_can_have_an_error(status: Status) -> None:
    problem = "error must be there exactly when status is error"
    assert problems_when_built(status=status, error=Fault(ErrorCode.TIMEOUT, "x")) == (problem,)
    assert problems_of(written(status=status.value, error=FAULT)) == (problem,)


# --- Data ---


@pytest.mark.requirement("envelope:data-object")
@pytest.mark.parametrize("data", [None, [], [{}], "", "{}", 0, True])
def test_data_that_is_no_object_is_refused_when_built_and_when_read(data: object) -> None:
    assert problems_of(written(data=data)) == ("data must be an object",)
    assert problems_when_built(data=data) == ("data must be an object",)


class Opaque:
    pass


@pytest.mark.requirement("envelope:data-object", "envelope:round-trip")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "data.x is nan, which JSON cannot write"),
        (float("-inf"), "data.x is -inf, which JSON cannot write"),
        ("a\ud800b", "data.x holds an unpaired surrogate, which no UTF-8 text can carry"),
        (b"bytes", "data.x is a bytes, which is not JSON"),
        ({1, 2}, "data.x is a set, which is not JSON"),
        (Opaque(), "data.x is a Opaque, which is not JSON"),
        (MappingProxyType({"a": 1}), "data.x is a mappingproxy, which is not JSON"),
        ([{"y": object}], "data.x[0].y is a type, which is not JSON"),
        ({5: "five"}, "data.x has the key 5, which is not a text that JSON can write"),
        ({"\udfff": 1}, "data.x has the key '\\udfff', which is not a text that JSON can write"),
        pytest.param(10**5000, "data.x is an integer of more than 4096 bits", id="huge"),
        ([-(10**5000)], "data.x[0] is an integer of more than 4096 bits"),
    ],
)
def test_data_that_json_cannot_carry_is_refused(value: object, problem: str) -> None:
    assert problems_when_built(data={"x": value}) == (problem,)


def nested(depth: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.requirement("envelope:data-object", "envelope:round-trip")
def test_data_is_nested_at_most_200_deep() -> None:
    assert built(data=nested(199)).data == nested(199)
    assert problems_when_built(data=nested(200)) == (f"data{'.x' * 200} is nested deeper than 200 levels",)
    assert len(problems_when_built(data=nested(100_000))) == 1


@pytest.mark.requirement("envelope:data-object", "envelope:round-trip")
def test_a_level_of_a_list_counts_like_one_of_an_object() -> None:
    data: JsonObject = {"x": json.loads("[" * 199 + "]" * 199)}
    assert built(data=data).data == data
    assert len(problems_when_built(data={"x": [data["x"]]})) == 1


@pytest.mark.requirement("envelope:data-object", "envelope:round-trip")
def test_the_longest_integer_has_4096_bits() -> None:
    assert built(data={"x": 2**4096 - 1}).data == {"x": 2**4096 - 1}
    assert problems_when_built(data={"x": 2**4096}) == ("data.x is an integer of more than 4096 bits",)


@pytest.mark.requirement("envelope:data-object")
def test_data_that_contains_itself_is_refused() -> None:
    data: JsonObject = {}
    data["x"] = [data, data]
    assert len(problems_when_built(data=data)) == 1


# --- Status ---


@pytest.mark.requirement("envelope:status:closed")
@pytest.mark.parametrize("status", ["done", "Success", "SUCCESS", "", "success ", None, True, 0, ["success"], {}])
def test_any_other_status_is_refused(status: object) -> None:
    assert problems_of(written(status=status)) == (f"status is {status!r}, expected success, partial or error",)


@pytest.mark.requirement("envelope:status:closed")
def test_the_statuses_are_success_partial_and_error() -> None:
    assert [status.value for status in Status] == ["success", "partial", "error"]


FAILED_ITEM = {"item": "b.txt", "code": "PERMISSION_DENIED", "message": "The system refused to open 'b.txt'."}
NOT_WHOLE = [
    pytest.param({"truncated": True}, "Results truncated to first 100 items. Use 'limit' for more.", id="truncated"),
    pytest.param({"fallback": "python"}, "ripgrep not available, used slower Python search instead.", id="slower path"),
    pytest.param({"applied": False}, "Dry-run only, no actual write performed.", id="dry run"),
    pytest.param(
        {"failed_items": [FAILED_ITEM]}, "3 files processed, 1 failed due to permission error.", id="failed items"
    ),
]


@pytest.mark.requirement(
    "envelope:status:success",
    "envelope:status:truncated",
    "envelope:status:fallback",
    "envelope:status:dry-run",
    "items:some-failed",
)
@pytest.mark.parametrize(("data", "text"), NOT_WHOLE)
def test_a_result_that_is_not_whole_is_partial_and_never_success(data: JsonObject, text: str) -> None:
    """The four cases and sentences of 002 §3.2."""
    assert is_partial(data)
    assert read(status="partial", data=data, text=text).to_dict() == written(status="partial", data=data, text=text)
    assert problems_when_built(data=data, text=text) == (
        "status is success although data says truncated, fallback, applied=false or failed_items: that is partial",
    )


@pytest.mark.requirement("envelope:status:success")
@pytest.mark.parametrize("data", [{}, {"truncated": False}, {"applied": True}, {"failed_items": []}, {"entries": []}])
def test_a_whole_result_is_a_success(data: JsonObject) -> None:
    assert not is_partial(data)
    assert read(data=data).to_dict() == written(data=data)


@pytest.mark.requirement("envelope:status:truncated", "envelope:status:dry-run")
@pytest.mark.parametrize("flag", ["truncated", "applied"])
@pytest.mark.parametrize("value", [None, 0, 1, "true", "false", []])
def test_the_flags_of_data_are_true_or_false_and_nothing_like_it(flag: str, value: object) -> None:
    assert problems_of(written(status="partial", data={flag: value})) == (f"data.{flag} must be true or false",)


@pytest.mark.requirement("items:some-failed")
@pytest.mark.parametrize(
    ("failed", "problem"),
    [
        (None, "data.failed_items must be a list"),
        ({"item": "a"}, "data.failed_items must be a list"),
        (["b.txt"], "data.failed_items[0] must have item, code and message"),
        ([FAILED_ITEM, {"item": "a", "code": "TIMEOUT"}], "data.failed_items[1] must have item, code and message"),
    ],
)
def test_failed_items_are_objects_of_item_code_and_message(failed: object, problem: str) -> None:
    assert problems_of(written(status="partial", data={"failed_items": failed})) == (problem,)


@pytest.mark.requirement("items:some-failed", "code:closed")
def test_a_failed_item_has_a_code_of_the_closed_set() -> None:
    (problem,) = problems_of(written(status="partial", data={"failed_items": [FAILED_ITEM | {"code": "EACCES"}]}))
    assert problem.startswith("data.failed_items[0].code is 'EACCES', expected one of NOT_FOUND, ACCESS_DENIED,")


# --- Text ---


@pytest.mark.requirement("envelope:text")
@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_an_envelope_says_something(text: str) -> None:
    assert problems_of(written(text=text)) == ("text is empty: it must say what was done",)


@pytest.mark.requirement("envelope:text")
@pytest.mark.parametrize("text", [None, 5, ["Done."], {"text": "Done."}])
def test_text_is_a_string(text: object) -> None:
    assert problems_of(written(text=text)) == ("text must be a string",)
    assert problems_when_built(text=text) == ("text must be a string",)


@pytest.mark.requirement("envelope:text", "envelope:status:truncated")
def test_the_text_of_a_cut_listing_says_what_was_done_why_it_is_partial_and_what_to_do(
    yard: BlockingYard, project: Path
) -> None:
    for name in ("a", "b", "c"):
        (project / name).touch()
    done, why, after = yard.call("LS", {"limit": 2}).text.partition(" (truncated: 1-2 of 3).")
    assert (done, why, after[:13]) == ("Listed 2 entries in '.'", " (truncated: 1-2 of 3).", " Use offset=2")


@pytest.mark.requirement("envelope:text")
def test_the_text_of_an_error_begins_with_its_message_and_goes_on_with_what_to_do(yard: BlockingYard) -> None:
    envelope = yard.call("Read", {"path": "missing.txt"})
    assert envelope.error is not None
    assert envelope.text.startswith(envelope.error.message + " ")
    assert "LS" in envelope.text.removeprefix(envelope.error.message)


# --- Stats ---


@pytest.mark.requirement("envelope:stats:time")
@pytest.mark.parametrize("time_ms", [0, 0.0, 1, 150, 0.25, 1e300, 10**400])
def test_a_time_is_a_number_of_at_least_0(time_ms: float) -> None:
    assert read(stats={"time_ms": time_ms}).stats == {"time_ms": time_ms}


@pytest.mark.requirement("envelope:stats:time")
@pytest.mark.parametrize("stats", [{}, {"time_ms": -1}, {"time_ms": -0.5}])
def test_a_missing_or_negative_time_is_refused(stats: object) -> None:
    assert problems_of(written(stats=stats)) == ("stats.time_ms must be a number of at least 0",)


@pytest.mark.requirement("envelope:stats:time")
@pytest.mark.parametrize(
    "time_ms", ["150", None, True, [], float("nan"), float("inf"), pytest.param(10**5000, id="huge")]
)
def test_a_time_that_is_no_finite_number_is_refused(time_ms: object) -> None:
    assert any("time_ms" in problem for problem in problems_of(written(stats={"time_ms": time_ms})))


@pytest.mark.requirement("envelope:stats:values")
def test_stats_hold_numbers_and_strings() -> None:
    stats = {"time_ms": 1.5, "total_entries": 500, "tool": "ripgrep", "share": -0.5}
    assert read(stats=stats).to_dict() == written(stats=stats)


@pytest.mark.requirement("envelope:stats:values")
@pytest.mark.parametrize("value", [None, True, False, [], [1], {}, {"a": 1}])
def test_anything_else_in_stats_is_refused(value: object) -> None:
    assert problems_of(written(stats={"time_ms": 1, "x": value})) == ("stats.x must be a number or a string",)


@pytest.mark.requirement("envelope:stats:values")
def test_stats_may_be_any_mapping_and_are_written_as_an_object() -> None:
    assert built(stats=MappingProxyType({"time_ms": 1})).to_dict() == written()


@pytest.mark.requirement("envelope:stats:values", "envelope:context:cwd")
@pytest.mark.parametrize("key", ["stats", "context"])
@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_stats_and_context_are_objects(key: str, value: object) -> None:
    assert problems_of(written(**{key: value})) == (f"{key} must be an object",)
    assert problems_when_built(**{key: value}) == (f"{key} must be an object",)


# --- Context ---


def context(**changes: Any) -> dict[str, Any]:
    return {"cwd": ".", "params_input": {}} | changes


@pytest.mark.requirement("envelope:context:cwd")
@pytest.mark.parametrize("cwd", [".", "src", "packages/app", "..x", "a..b/c"])
def test_cwd_is_relative_to_the_project_root(cwd: str) -> None:
    assert read(context=context(cwd=cwd)).context == context(cwd=cwd)


@pytest.mark.requirement("envelope:context:cwd")
def test_cwd_must_be_there() -> None:
    problem = "context.cwd must be a POSIX path relative to the project root"
    assert problems_of(written(context={"params_input": {}})) == (problem,)


@pytest.mark.requirement("envelope:context:cwd", "envelope:context:path-resolved")
@pytest.mark.parametrize("key", ["cwd", "path_resolved"])
@pytest.mark.parametrize("path", ["", "/", "/home/user/project", "..", "../x", "src/../..", "src/..", None, 5, ["src"]])
def test_an_absolute_or_climbing_path_in_context_is_refused(key: str, path: object) -> None:
    problem = f"context.{key} must be a POSIX path relative to the project root"
    assert problems_of(written(context=context(**{key: path}))) == (problem,)


@pytest.mark.requirement("envelope:context:params-input")
def test_params_input_must_be_there() -> None:
    problem = "context.params_input is missing: it holds what the caller sent"
    assert problems_of(written(context={"cwd": "."})) == (problem,)


@pytest.mark.requirement("envelope:context:params-input")
@pytest.mark.parametrize("params", [None, [], "raw text", 0, {"a": [1, {"b": None}]}])
def test_params_input_is_whatever_the_caller_sent(params: Json) -> None:
    assert read(context=context(params_input=params)).context == context(params_input=params)


@pytest.mark.requirement("envelope:context:params-input")
def test_params_input_keeps_the_callers_names_order_and_types(yard: BlockingYard) -> None:
    sent: JsonObject = {"Limit": "5", "include-hidden": "yes", "PATH": ".", "offset": 0.0}
    envelope = yard.call("LS", sent)
    assert envelope.status is Status.SUCCESS
    assert json.dumps(envelope.context["params_input"]) == json.dumps(sent)


@pytest.mark.requirement("envelope:context:params-masked")
def test_a_secret_the_caller_sent_is_masked(yard: BlockingYard) -> None:
    envelope = yard.call("LS", {"path": ".", "apiKey": "sk-1234567890"})
    assert envelope.context["params_input"] == {"path": ".", "apiKey": "[masked]"}
    assert "sk-1234567890" not in json.dumps(envelope.to_dict())


@pytest.mark.requirement("envelope:context:path-resolved", "envelope:data-paths", "envelope:context:cwd")
def test_paths_are_posix_and_relative_to_the_root_however_they_were_asked_for(
    yard: BlockingYard, project: Path
) -> None:
    (project / "src" / "utils").mkdir(parents=True)
    (project / "src" / "main.py").touch()
    envelope = yard.call("LS", {"path": str(project / "src" / "utils" / "..")})
    assert [envelope.context["cwd"], envelope.context["path_resolved"]] == [".", "src"]
    entries = cast("list[dict[str, Json]]", envelope.data["entries"])
    assert [entry["path"] for entry in entries] == ["src/utils/", "src/main.py"]


@pytest.mark.requirement("envelope:context:reason")
@pytest.mark.parametrize("reason", ["STALE", "NOT_FOUND_IN_FILE", "E2BIG", None])
def test_a_reason_is_upper_snake_case(reason: str | None) -> None:
    value = written(status="error", error=FAULT, context=context(reason=reason))
    assert Envelope.from_dict(value).to_dict() == value


@pytest.mark.requirement("envelope:context:reason")
@pytest.mark.parametrize("reason", ["", "stale", "NotFound", "NOT FOUND", "2BIG", "STALE\n", 5, ["STALE"]])
def test_any_other_reason_is_refused(reason: object) -> None:
    value = written(status="error", error=FAULT, context=context(reason=reason))
    assert problems_of(value) == ("context.reason must be UPPER_SNAKE_CASE",)


@pytest.mark.requirement("truncation:skip")
@pytest.mark.parametrize("skip", [None, 1, "true"])
def test_truncation_skip_is_true_or_false(skip: object) -> None:
    value = written(context=context(truncation_skip=skip))
    assert problems_of(value) == ("context.truncation_skip must be true or false",)


# --- Whole envelopes ---


@pytest.mark.requirement("envelope:beside")
def test_what_travels_beside_an_envelope_is_not_in_its_json() -> None:
    envelope = read()
    extras = Extras(
        parts=(Text("beside"), Media("image/png", b"beside")),
        action="beside",
        payload={"beside": 1},
        before="beside",
        after="beside",
    )
    outcome = Outcome(envelope=envelope, root="/beside", arguments={"beside": 1}, extras=extras)
    assert encode("envelope", ToolCall(id="1", tool="Read"), outcome, uuid="u") == written()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)
STATS = st.dictionaries(
    st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), max_size=3
)


@pytest.mark.requirement("envelope:round-trip")
@settings(max_examples=150, deadline=None)
@given(
    data=OBJECTS,
    params=JSON_VALUES,
    stats=STATS,
    time_ms=st.floats(min_value=0, allow_infinity=False, allow_nan=False) | st.integers(min_value=0),
    text=st.text(min_size=1).filter(str.strip),
    fault=st.none() | st.builds(Fault, st.sampled_from(ErrorCode), st.text(min_size=1)),
)
def test_an_envelope_written_to_json_text_and_read_back_is_the_same(
    data: JsonObject, params: Json, stats: dict[str, Any], time_ms: float, text: str, fault: Fault | None
) -> None:
    envelope = built(
        status=Status.ERROR if fault else Status.PARTIAL,
        data={f"x{name}": value for name, value in data.items()},
        text=text,
        error=fault,
        stats={**stats, "time_ms": time_ms},
        context=context(params_input=params),
    )
    for ascii_only in (True, False):
        line = json.dumps(envelope.to_dict(), ensure_ascii=ascii_only, allow_nan=False).encode()
        assert Envelope.from_dict(json.loads(line)) == envelope


SEED_LISTING: dict[str, Any] = json.loads(
    r"""
{
  "status": "partial",
  "data": {
    "entries": [
      { "path": "src/main.py", "type": "file" },
      { "path": "src/utils/", "type": "dir" }
    ],
    "truncated": true
  },
  "text": "Listed 2 entries in 'src' (truncated from 500 total). Consider using 'search_code' for deeper lookup or increasing 'limit'.",
  "error": null,
  "stats": {
    "time_ms": 150,
    "total_entries": 500
  },
  "context": {
    "cwd": ".",
    "params_input": { "path": "src", "limit": 2 },
    "path_resolved": "src"
  }
}
"""  # noqa: E501 the seed's own line
)


@pytest.mark.requirement("envelope:seed-example", "envelope:error:written")
def test_the_seeds_listing_is_read_whole_and_written_without_its_null() -> None:
    """002 §5; docs/envelope.md differs in one thing: ``error`` is written only when the status is ``error``."""
    expected = {key: value for key, value in SEED_LISTING.items() if key != "error"}
    assert Envelope.from_dict(SEED_LISTING).to_dict() == expected


@pytest.mark.requirement("envelope:seed-example", "envelope:context:path-resolved")
def test_ls_answers_the_seeds_call_in_the_seeds_shape(yard: BlockingYard, project: Path) -> None:
    """002 §5; docs/tools.md adds size and mtime to entries, hidden and ignored to stats, and truncation_skip."""
    (project / "src" / "utils").mkdir(parents=True)
    for name in ["main.py", *(f"more{number}.py" for number in range(498))]:
        (project / "src" / name).touch()
    answer = yard.call("LS", {"path": "src", "limit": 2}).to_dict()
    entries = [{"path": entry["path"], "type": entry["type"]} for entry in answer["data"]["entries"]]
    assert {
        **answer,
        "data": {**answer["data"], "entries": sorted(entries, key=lambda entry: entry["path"])},
        "text": answer["text"].split(" (truncated")[0],
        "stats": {"time_ms": 150, "total_entries": answer["stats"]["total_entries"]},
        "context": {key: value for key, value in answer["context"].items() if key != "truncation_skip"},
    } == {
        **{key: value for key, value in SEED_LISTING.items() if key != "error"},
        "text": SEED_LISTING["text"].split(" (truncated")[0],
    }
