"""What all dialects have in common."""

import copy
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.outcomes import failed, outcome, read, write
from toolyard.blocking import BlockingYard
from toolyard.cli.commands.call import command
from toolyard.dialects import DIALECTS, encode
from toolyard.errors import UsageError
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Envelope, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Outcome, ToolCall

READ = ToolCall(id="call_1", tool="Read", arguments={"path": "a"})
RICH = outcome(
    "Read 'a'. Look at it.",
    {"entries": [{"path": "a"}], "validation": [{"line": 1, "column": 2, "severity": "error", "message": "x"}]},
    path="a",
    arguments={"path": "a"},
    parts=(Text("Read 'a'."), Media("image/png", b"x", "a.png"), Media("video/mp4", b"y")),
    action="show",
    payload={"a": [1]},
    before="x",
    after="y",
)
FAILED = failed(Failure(Reason.STALE, "It changed.", hint="Read it again.", data={"hash": "ab"}))
BATCH = outcome("Batch of 3.", {"results": [{}, {}, {}]}, batch=(read(RICH), write(RICH), read(FAILED)))


@pytest.mark.requirement("dialect:envelope")
@pytest.mark.parametrize("result", [RICH, FAILED, BATCH])
def test_the_envelope_dialect_is_the_json_of_the_envelope(result: Outcome) -> None:
    assert encode("envelope", READ, result, uuid="u") == result.envelope.to_dict()


@pytest.mark.requirement("dialect:envelope")
def test_a_call_that_names_no_dialect_is_answered_in_the_envelope_dialect(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    places = ["--project", str(tmp_path / "project"), "--home", str(tmp_path / "home")]
    plain = CliRunner().invoke(command, ["LS", *places])
    named = CliRunner().invoke(command, ["LS", "--dialect", "envelope", *places])
    answers = [Envelope.from_dict(json.loads(run.stdout)).to_dict() | {"stats": {}} for run in (plain, named)]
    assert answers[0] == answers[1]


@pytest.mark.requirement("dialect:envelope")
def test_there_are_six_dialects_and_no_other(yard: BlockingYard) -> None:
    assert DIALECTS == ("envelope", "vcp", "backend", "openai", "anthropic", "mcp")
    names = "envelope, vcp, backend, openai, anthropic, mcp"
    with pytest.raises(UsageError, match=f"unknown dialect 'VCP': choose one of {names}"):
        yard.call("LS", dialect="VCP")
    with pytest.raises(ValueError, match="unknown dialect 'xml'"):
        encode("xml", READ, RICH, uuid="u")


@pytest.mark.requirement("dialect:pure")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("result", [RICH, FAILED, BATCH], ids=["rich", "failed", "batch"])
def test_a_dialect_gives_the_same_message_again_and_leaves_its_input_alone(dialect: str, result: Outcome) -> None:
    call_before, result_before = copy.deepcopy(READ), copy.deepcopy(result)
    first = json.dumps(encode(dialect, READ, result, uuid="u"), allow_nan=False)
    assert json.dumps(encode(dialect, READ, result, uuid="u"), allow_nan=False) == first
    assert (READ, result) == (call_before, result_before)


@pytest.mark.requirement("dialect:pure", "dialect:backend:base")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_ids_come_from_outside(dialect: str) -> None:
    one, other = (json.dumps(encode(dialect, READ, RICH, uuid=uuid)) for uuid in ("uuid-1", "uuid-2"))
    assert one.replace("uuid-1", "uuid-2") == other


@pytest.mark.requirement("envelope:error:strict")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"path": "mian.py"}),
        ("Edit", {"path": "main.py", "old_string": "absent", "new_string": ""}),
        ("Nothing", {}),
        ("FileOperator", {"command1": "ReadFile", "filePath1": "main.py", "command2": "ReadFile", "filePath2": "no"}),
    ],
)
def test_no_dialect_has_the_codes_of_sentences_that_only_translators_need(
    yard: BlockingYard, project: Path, dialect: str, shown: bool, tool: str, arguments: JsonObject
) -> None:
    (project / "main.py").write_text("x = 1\n")
    codes = re.compile(r'"(?:message|text|hint)_(?:code|params)\\?"')
    assert codes.search(json.dumps(yard.call(tool, arguments).to_json()))
    written = json.dumps(yard.call(tool, arguments, dialect=dialect, shown=shown))
    assert codes.findall(written.replace("\\", "")) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["items", "results", "entries", "matches", "paths", "info", "validation"])


@pytest.mark.requirement(
    "dialect:pure", "dialect:vcp:content:text", "dialect:vcp:success", "dialect:openai", "dialect:mcp:result"
)
@settings(max_examples=60, deadline=None)
@given(data=st.dictionaries(NAMES | st.text().map("x".__add__), VALUES, max_size=4), text=st.text().filter(str.strip))
def test_any_result_is_written_in_every_dialect_as_json_with_something_to_read(data: JsonObject, text: str) -> None:
    result = outcome(text, data)
    written = {
        dialect: json.loads(json.dumps(encode(dialect, READ, result, uuid="u"), allow_nan=False).encode())
        for dialect in DIALECTS
    }
    expected = result.envelope.to_dict()
    assert (written["envelope"], written["mcp"]["_meta"]["toolyard/envelope"]) == (expected, expected)
    assert written["backend"]["data"] == data
    (part,) = written["mcp"]["content"]
    assert part["text"] == written["openai"]["content"] == written["anthropic"]["content"]
    assert text in part["text"] or json.loads(text) == data
    message = written["vcp"]["result"]["details"].pop("message")
    assert message in text
    assert written["vcp"]["result"]["details"] == data
    assert written["vcp"]["result"]["content"][0] == {"type": "text", "text": text}
