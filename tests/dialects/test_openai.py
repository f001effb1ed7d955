"""The ``role: "tool"`` message of the OpenAI chat format."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read
from toolyard.blocking import BlockingYard
from toolyard.dialects.openai import encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import Outcome, ToolCall

pytestmark = pytest.mark.requirement("dialect:openai")

CALL = ToolCall(id="call_abc", tool="Read")
BODY = b"\0\1\2\xff"
BASE64 = base64.b64encode(BODY).decode()


def test_a_result_is_a_tool_message_bound_to_its_call_with_the_text_that_a_model_reads() -> None:
    result = outcome("已读取。", {"content": '1\t"中"'}, path="a.txt", parts=(Text("已读取。"), Text('1\t"中"')))
    assert encode(CALL, result, "en") == {
        "role": "tool", "tool_call_id": "call_abc", "content": '已读取。\n1\t"中"',
    }  # fmt: skip


def test_a_failure_is_told_in_the_same_way() -> None:
    message = encode(CALL, failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist.", hint="Use LS.")), "en")
    assert message["content"] == "NOT_FOUND: 'a' does not exist. Use LS."


@pytest.mark.parametrize(
    ("media", "part"),
    [
        (
            Media("image/png", BODY, "a.png"),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}},
        ),
        (Media("audio/wav", BODY), {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}}),
        (Media("audio/mpeg", BODY), {"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}}),
        (Media("video/mp4", BODY), {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{BASE64}"}}),
        (
            Media("application/pdf", BODY, "a.pdf"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{BASE64}"}},
        ),
        (
            Media("font/woff2", BODY, "a.woff2"),
            {"type": "file", "file": {"filename": "a.woff2", "file_data": f"data:font/woff2;base64,{BASE64}"}},
        ),
    ],
    ids=lambda value: value.mime if isinstance(value, Media) else "",
)
def test_media_follow_the_text_as_content_parts(media: Media, part: dict[str, Any]) -> None:
    result = outcome("Read it.", parts=(Text("Read it."), media))
    assert encode(CALL, result, "en")["content"] == [{"type": "text", "text": "Read it."}, part]


def test_the_media_of_a_batch_follow_in_its_order() -> None:
    items = (
        read(outcome("Read 'a'.", parts=(Text("Read 'a'."), Media("image/png", b"a")))),
        read(outcome("Read 'b'.")),
        read(outcome("Read 'c'.", parts=(Media("image/gif", b"c"),))),
    )
    result: Outcome = outcome("Batch of 3.", {"results": []}, batch=items)
    assert encode(CALL, result, "en")["content"] == [
        {"type": "text", "text": "(1)\nRead 'a'.\n(2)\nRead 'b'.\n(3)\nRead 'c'."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,Yw=="}},
    ]


@pytest.mark.requirement("truncation:before-dialects")
def test_the_text_of_the_message_is_that_of_the_shown_result(yard: BlockingYard, project: Path) -> None:
    (project / "a.txt").write_text("line\n" * 300)
    message = yard.call("Read", {f"path{number}": "a.txt" for number in range(1, 40)}, dialect="openai")
    assert message["content"].startswith("⚠️ Output too large, truncated: the preview is the first 2000 of")


@pytest.mark.requirement("content:media")
def test_two_images_read_in_one_batch_are_both_in_the_message(yard: BlockingYard, project: Path) -> None:
    for name in ("a", "b"):
        (project / name).write_bytes(b"GIF89a" + name.encode())
    content = yard.call("Read", {"path1": "a", "path2": "b"}, dialect="openai")["content"]
    assert content[1:] == [
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{base64.b64encode(body).decode()}"}}
        for body in (b"GIF89aa", b"GIF89ab")
    ]
