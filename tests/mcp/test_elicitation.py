"""The question behind an approval, as a person at an MCP client sees it, and what their reply means."""

from typing import Any

import pytest

from toolyard.mcp import calls
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.records.approval_record import Approval

pytestmark = pytest.mark.requirement("mcp:runner")


def approval(**fields: Any) -> Approval:
    fields = {"arguments": {"path": "a.txt"}, "risk": "write", "always_offered": True, **fields}
    return Approval(
        id="approval_1",
        state=ApprovalState.PENDING,
        created=0,
        updated=0,
        caller="",
        tool="Write",
        call_id="c",
        **fields,
    )


def test_the_question_names_the_tool_its_risk_and_every_argument() -> None:
    text = calls.build_message(approval(arguments={"path": "a.txt", "content": "x" * 5000}))
    assert "may Write run? (risk: write)" in text
    assert "x" * 5000 in text


def test_what_nobody_can_see_is_written_out() -> None:
    text = calls.build_message(approval(arguments={"path": "a\u200b\u202etxt", "name": "文件"}))
    assert "a\\u200b\\u202etxt" in text
    assert "文件" in text


@pytest.mark.requirement("s:S-98")
def test_line_separators_and_blank_letters_are_written_out_too() -> None:
    text = calls.build_message(approval(arguments={"a": "x\u2028y\u3164z\x85"}))
    assert "x\\u2028y\\u3164z\\u0085" in text


@pytest.mark.requirement("s:S-98")
def test_of_very_long_arguments_each_is_named_with_its_beginning_and_its_end() -> None:
    text = calls.build_message(
        approval(arguments={"content": "a" * 50_000 + "END", "edits": ["b" * 3000], "path": ".bashrc"})
    )
    assert "48003 characters are shown only in the console" in text
    assert "aEND" in text
    assert '".bashrc"' in text
    assert len(text) < 10_000


def test_a_protected_path_is_said_and_cannot_be_allowed_for_ever() -> None:
    protected = approval(protected=True, always_offered=False)
    assert "protected path" in calls.build_message(protected)
    assert calls.build_schema(protected)["properties"]["answer"]["enum"] == ["deny", "allow"]
    assert calls.build_schema(approval())["properties"]["answer"]["enum"] == ["deny", "allow", "always"]


@pytest.mark.parametrize(
    ("action", "content", "expected"),
    [
        ("accept", {"answer": "allow"}, (True, False)),
        ("accept", {"answer": "always"}, (True, True)),
        ("accept", {"answer": "deny"}, (False, False)),
        ("accept", {"answer": True}, (False, False)),
        ("accept", {"answer": "Allow"}, (False, False)),
        ("accept", None, (False, False)),
        ("decline", {"answer": "allow"}, (False, False)),
        ("cancel", {"answer": "allow"}, (False, False)),
    ],
)
def test_only_the_exact_word_is_a_yes(action: str, content: object, expected: tuple[bool, bool]) -> None:
    reply = calls.parse_answer(action, content)
    assert (reply.allowed, reply.always) == expected
