"""The ``CallToolResult`` of the Model Context Protocol."""

from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read, write
from toolyard.dialects.mcp_messages import drop_unfit, encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import ToolCall

CALL = ToolCall(id="call_1", tool="Glob")


@pytest.mark.requirement("dialect:mcp:result", "dialect:mcp:error")
def test_a_success_has_content_and_beside_it_the_envelope() -> None:
    result = outcome("Found 1 path.", {"paths": ["a"], "truncated": False})
    assert encode(CALL, result) == {
        "content": [{"type": "text", "text": "Found 1 path.\na"}],
        "isError": False,
        "_meta": {
            "toolyard/envelope": {
                "status": "success",
                "data": {"paths": ["a"], "truncated": False},
                "text": "Found 1 path.",
                "stats": {"time_ms": 3},
                "context": {"cwd": ".", "params_input": {}},
            }
        },
    }


@pytest.mark.requirement("dialect:mcp:error", "dialect:mcp:result")
def test_an_error_is_an_error_with_its_code_and_text_as_content() -> None:
    result = failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist.", hint="Use LS."))
    message = encode(CALL, result)
    assert message["content"] == [{"type": "text", "text": "NOT_FOUND: 'a' does not exist. Use LS."}]
    assert message["isError"]
    assert message["_meta"]["toolyard/envelope"]["error"] == {"code": "NOT_FOUND", "message": "'a' does not exist."}


@pytest.mark.requirement("dialect:mcp:error")
def test_a_partial_result_is_no_error() -> None:
    message = encode(CALL, outcome("Dry-run only, no actual write performed.", {"applied": False}))
    assert (message["_meta"]["toolyard/envelope"]["status"], message["isError"]) == ("partial", False)


@pytest.mark.requirement("dialect:mcp:result")
def test_only_what_an_mcp_server_sent_is_structured_content() -> None:
    sent = {"temperature": 7}
    message = encode(CALL, outcome("Cold.", {"temperature": 7}, mcp={"structured_content": sent}))
    assert message["structuredContent"] == sent
    drop_unfit(message, only_objects=True)
    assert message["structuredContent"] == sent
    scalar = encode(CALL, outcome("7", {"result": 7}, mcp={"structured_content": 7}))
    drop_unfit(scalar, only_objects=True)
    assert "structuredContent" not in scalar


@pytest.mark.requirement("dialect:mcp:result")
def test_an_envelope_larger_than_any_result_is_left_out() -> None:
    message = encode(CALL, outcome("Found.", {"paths": [], "more": "x" * 2**20}))
    drop_unfit(message, only_objects=False)
    assert message["_meta"] == {}


@pytest.mark.requirement("dialect:mcp:result")
@pytest.mark.parametrize(
    ("media", "block"),
    [
        (Media("image/png", b"\0\1"), {"type": "image", "data": "AAE=", "mimeType": "image/png"}),
        (Media("audio/wav", b"\0\1", "a.wav"), {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"}),
        (
            Media("video/mp4", b"\0\1", "片 1.mp4"),
            {
                "type": "resource",
                "resource": {
                    "uri": "toolyard://content/%E7%89%87%201.mp4",
                    "mimeType": "video/mp4",
                    "blob": "AAE=",
                },
            },
        ),
        (
            Media("application/pdf", b"\0\1"),
            {
                "type": "resource",
                "resource": {"uri": "toolyard://content/media", "mimeType": "application/pdf", "blob": "AAE="},
            },
        ),
    ],
    ids=lambda value: value.mime if isinstance(value, Media) else "",
)
def test_media_are_blocks_of_their_kind(media: Media, block: dict[str, Any]) -> None:
    assert encode(CALL, outcome("Read it.", parts=(Text("Read it."), media)))["content"] == [
        {"type": "text", "text": "Read it."},
        block,
    ]


@pytest.mark.requirement("dialect:mcp:result")
def test_a_batch_has_its_items_by_their_numbers() -> None:
    items = (
        read(outcome("Read 'a'.", parts=(Text("1\ta"), Media("image/png", b"\0\1")))),
        write(outcome("Wrote 'b'.", {"applied": True})),
    )
    assert encode(CALL, outcome("Batch.", {"results": []}, batch=items))["content"] == [
        {"type": "text", "text": "(1)\n1\ta"},
        {"type": "image", "data": "AAE=", "mimeType": "image/png"},
        {"type": "text", "text": "(2)\nWrote 'b'."},
    ]
