"""The ``role: "tool"`` message of the OpenAI chat format."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read
from toolyard.blocking import BlockingYard
from toolyard.dialects.openai import encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure
from toolyard.protocol.tool import Outcome, ToolCall

pytestmark = pytest.mark.requirement("dialect:openai")

CALL = ToolCall(id="call_abc", tool="Read")
BODY = b"\0\1\2\xff"
BASE64 = base64.b64encode(BODY).decode()


def test_a_result_is_a_tool_message_bound_to_its_call_with_the_envelope_as_json_text() -> None:
    result = outcome("已读取。", {"content": '1\t"中"'}, path="a.txt", parts=(Text("已读取。"),))
    message = encode(CALL, result)
    text = (
        '{"status": "success", "data": {"content": "1\\t\\"中\\""}, "text": "已读取。", "stats": {"time_ms": 3}, '
        '"context": {"cwd": ".", "params_input": {}, "path_resolved": "a.txt"}}'
    )
    assert message == {"role": "tool", "tool_call_id": "call_abc", "content": text}
    assert Envelope.from_dict(json.loads(text)) == result.envelope


def test_a_failure_is_told_in_the_same_way() -> None:
    result = failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist."))
    message = encode(CALL, result)
    assert message == {"role": "tool", "tool_call_id": "call_abc", "content": json.dumps(result.envelope.to_dict())}


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
def test_media_follow_the_envelope_as_content_parts(media: Media, part: dict[str, Any]) -> None:
    result = outcome("Read it.", parts=(Text("Read it."), media))
    assert encode(CALL, result)["content"] == [
        {"type": "text", "text": json.dumps(result.envelope.to_dict())},
        part,
    ]


def test_the_media_of_a_batch_follow_in_its_order() -> None:
    items = (
        read(outcome("Read 'a'.", parts=(Text("Read 'a'."), Media("image/png", b"a")))),
        read(outcome("Read 'b'.")),
        read(outcome("Read 'c'.", parts=(Media("image/gif", b"c"),))),
    )
    result: Outcome = outcome("Batch of 3.", {"results": []}, batch=items)
    assert encode(CALL, result)["content"] == [
        {"type": "text", "text": json.dumps(result.envelope.to_dict())},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,Yw=="}},
    ]


@pytest.mark.requirement("truncation:before-dialects", "envelope:context:params-cut")
def test_the_envelope_in_the_message_is_the_shown_one(yard: BlockingYard) -> None:
    sent = {"path": "x" * 5000}
    message = yard.call("LS", {**sent}, dialect="openai")
    envelope = Envelope.from_dict(json.loads(message["content"]))
    assert envelope.context["params_input"] == {"path": "x" * 4096 + "… [cut: 5000 bytes in all]"}
    assert yard.call("LS", {**sent}).context["params_input"] == sent


@pytest.mark.requirement("content:media")
def test_two_images_read_in_one_batch_are_both_in_the_message(yard: BlockingYard, project: Path) -> None:
    for name in ("a", "b"):
        (project / name).write_bytes(b"GIF89a" + name.encode())
    content = yard.call("Read", {"path1": "a", "path2": "b"}, dialect="openai")["content"]
    assert content[1:] == [
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{base64.b64encode(body).decode()}"}}
        for body in (b"GIF89aa", b"GIF89ab")
    ]
