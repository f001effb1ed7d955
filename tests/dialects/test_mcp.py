"""The ``CallToolResult`` of the Model Context Protocol."""

from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read, write
from toolyard.dialects.mcp_messages import encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Failure


@pytest.mark.requirement("dialect:mcp:result", "dialect:mcp:error")
def test_a_success_has_content_the_envelope_and_no_error() -> None:
    result = outcome("Found 1 path.", {"paths": ["a"], "truncated": False})
    assert encode(result) == {
        "content": [{"type": "text", "text": "Found 1 path."}, {"type": "text", "text": '[\n  "a"\n]'}],
        "structuredContent": {
            "status": "success",
            "data": {"paths": ["a"], "truncated": False},
            "text": "Found 1 path.",
            "stats": {"time_ms": 3},
            "context": {"cwd": ".", "params_input": {}},
        },
        "isError": False,
    }


@pytest.mark.requirement("dialect:mcp:error", "dialect:mcp:result")
def test_an_error_is_an_error_with_its_text_as_content() -> None:
    result = failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist.", hint="Use LS."))
    assert encode(result) == {
        "content": [{"type": "text", "text": "'a' does not exist. Use LS."}],
        "structuredContent": {
            "status": "error",
            "data": {},
            "text": "'a' does not exist. Use LS.",
            "error": {"code": "NOT_FOUND", "message": "'a' does not exist."},
            "stats": {"time_ms": 3},
            "context": {"cwd": ".", "params_input": {}},
        },
        "isError": True,
    }


@pytest.mark.requirement("dialect:mcp:error")
def test_a_partial_result_is_no_error() -> None:
    result = outcome("Dry-run only, no actual write performed.", {"applied": False})
    message = encode(result)
    assert (message["structuredContent"]["status"], message["isError"]) == ("partial", False)


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
    assert encode(outcome("Read it.", parts=(Text("Read it."), media)))["content"] == [
        {"type": "text", "text": "Read it."},
        block,
    ]


@pytest.mark.requirement("dialect:mcp:result")
def test_a_batch_is_flattened_into_one_content() -> None:
    items = (
        read(outcome("Read 'a'.", parts=(Text("1\ta"), Media("image/png", b"\0\1")))),
        write(outcome("Wrote 'b'.", {"applied": True})),
    )
    assert encode(outcome("Batch.", {"results": []}, batch=items))["content"] == [
        {"type": "text", "text": "Batch Operations Summary:\n- Wrote 'b'."},
        {"type": "text", "text": "1\ta"},
        {"type": "image", "data": "AAE=", "mimeType": "image/png"},
    ]


@pytest.mark.requirement("dialect:mcp:result")
def test_what_was_read_and_the_rest_of_the_data_stand_in_the_content_too() -> None:
    texts = [part["text"] for part in encode(outcome("Read it.", {"content": "1\ta\n", "eol": "\n"}))["content"]]
    assert texts == ["Read it.", "1\ta\n", '{"eol": "\\n"}']
