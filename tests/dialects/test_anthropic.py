"""The ``tool_result`` block of Anthropic's Messages format."""

import base64
from pathlib import Path

import pytest

from tests.dialects.outcomes import failed, outcome
from toolyard.blocking import BlockingYard
from toolyard.dialects.anthropic import encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import ToolCall

pytestmark = pytest.mark.requirement("dialect:anthropic")

CALL = ToolCall(id="call_abc", use_id="toolu_1", tool="Read")
BODY = b"\0\1\2\xff"
BASE64 = base64.b64encode(BODY).decode()


def test_a_result_is_a_block_bound_to_its_call_with_the_text_that_a_model_reads() -> None:
    result = outcome("已读取。", {"content": '1\t"中"'}, path="a.txt", parts=(Text("已读取。"), Text('1\t"中"')))
    assert encode(CALL, result, "en") == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": '已读取。\n1\t"中"',
        "is_error": False,
    }


def test_a_failure_is_marked_as_an_error() -> None:
    result = failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist."))
    assert encode(CALL, result, "en") == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "NOT_FOUND: 'a' does not exist.",
        "is_error": True,
    }


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"])
def test_media_that_models_read_follow_the_text_as_blocks(mime: str) -> None:
    result = outcome("Read it.", parts=(Text("Read it."), Media(mime, BODY, "a")))
    kind = "document" if mime == "application/pdf" else "image"
    assert encode(CALL, result, "en")["content"] == [
        {"type": "text", "text": "Read it."},
        {"type": kind, "source": {"type": "base64", "media_type": mime, "data": BASE64}},
    ]


@pytest.mark.parametrize("mime", ["image/tiff", "audio/wav", "video/mp4", "font/woff2"])
def test_media_that_models_cannot_read_are_left_out(mime: str) -> None:
    result = outcome("Read it.", parts=(Text("Read it."), Media(mime, BODY)))
    assert encode(CALL, result, "en")["content"] == "Read it."


@pytest.mark.requirement("content:media")
def test_a_picture_that_was_read_is_in_the_block(yard: BlockingYard, project: Path) -> None:
    (project / "a.gif").write_bytes(b"GIF89a")
    content = yard.call("Read", {"path": "a.gif"}, dialect="anthropic")["content"]
    source = {"type": "base64", "media_type": "image/gif", "data": base64.b64encode(b"GIF89a").decode()}
    assert content[1:] == [{"type": "image", "source": source}]
