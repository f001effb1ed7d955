"""Pictures, sounds and films of a plugin reach the clients that show tool work, by their MIME type."""

import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import ME, Gateway, StreamedAnswer, chat_body, gateway, request
from tests.gateway.test_turn import native
from tests.gateway.upstream import Answers, replies, says
from tests.plugins.folders import make_plugin
from toolyard.gateway import vcp_blocks as media
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.turns.display import Show
from toolyard.gateway.vcp_blocks import remove_media
from toolyard.protocol.access import Mode

pytestmark = pytest.mark.requirement("chat:media")

MEDIA = {
    "image/png": b"\x89PNG\r\n\x1a\n" + bytes(24),
    "audio/mpeg": b"ID3\x03" + bytes(60),
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt " + bytes(28),
    "video/mp4": b"\0\0\0\x18ftypisom" + bytes(40),
    "video/webm": b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm" + bytes(20),
}
ELEMENTS = {"image": '<img src="{}">', "audio": '<audio controls src="{}"></audio>'}
ELEMENTS["video"] = '<video controls src="{}"></video>'
BLOCK = request("Player")
MARKED = BLOCK.replace("tool_name", "ink:「始」mark_history「末」,\ntool_name")


def uri_of(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


@asynccontextmanager
async def playing(place: Path, script: Answers, *uris: str) -> AsyncIterator[Gateway]:
    """A gateway with a plugin that answers as 000 §3 says: every medium is an ``image_url``."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": "Here it is."}]
    parts += [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
    plugin = make_plugin(place / "plugins", "Player")
    answer = json.dumps({"status": "success", "result": {"content": parts}})
    (plugin / "answer.json").write_text(answer, "utf-8")
    (plugin / "main.py").write_text("print(open('answer.json').read())", "utf-8")
    settings = {"approval_mode": Mode.AUTO}
    async with gateway(place, script, plugins=(place / "plugins",), settings=settings) as one:
        yield one


async def heard_by_vcp_client(one: Gateway) -> str:
    run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME, show=Show.RAW))
    assert run.pieces is not None
    return StreamedAnswer.from_bytes(b"".join([piece async for piece in run.pieces])).text


@pytest.mark.parametrize("mime", MEDIA)
@pytest.mark.parametrize("is_native", [False, True])
async def test_a_vcp_client_gets_the_element_that_plays_it(tmp_path: Path, mime: str, is_native: bool) -> None:
    uri = uri_of(mime, MEDIA[mime])
    first = native(("p", "Player", {})) if is_native else says(BLOCK)
    async with playing(tmp_path, [first, says("Done.")], uri) as one:
        text = await heard_by_vcp_client(one)
    block = re.search(r"\[\[VCP调用结果信息汇总:(.*?)VCP调用结果结束\]\]", text, re.DOTALL)
    assert block
    assert f"\n{ELEMENTS[mime.partition('/')[0]].format(uri)}\n" in block[1]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("show", ["hidden", "summary", "events"])
async def test_a_marked_call_brings_its_media_in_every_form(tmp_path: Path, show: str, stream: bool) -> None:
    uris = [uri_of(mime, data) for mime, data in MEDIA.items()]
    async with playing(tmp_path, replies(MARKED, "Done."), *uris) as one:
        options = {"show": show}
        if stream:
            text = (await one.stream(toolyard=options)).text
        else:
            text = (await one.complete(toolyard=options))["choices"][0]["message"]["content"]
    assert [uri for uri in uris if uri not in text] == []
    assert text.endswith("Done.")


async def test_a_call_that_is_not_marked_brings_none_into_a_summary(tmp_path: Path) -> None:
    async with playing(tmp_path, replies(BLOCK, "Done."), uri_of("audio/wav", MEDIA["audio/wav"])) as one:
        assert "base64" not in (await one.stream()).text


async def test_what_is_too_large_is_counted_and_the_rest_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MOST", 1000)
    small, large = uri_of("image/png", MEDIA["image/png"]), uri_of("video/mp4", MEDIA["video/mp4"] + bytes(2000))
    async with playing(tmp_path, replies(BLOCK, "Done.", BLOCK, "Done."), large, small) as one:
        text = await heard_by_vcp_client(one)
        events = (await one.stream(toolyard={"show": "events"})).events
    assert small in text
    assert large not in text
    assert "(1 media too large to be sent)" in text
    (ended,) = [one["toolyard"] for one in events if one.get("toolyard", {}).get("type") == "call.finished"]
    assert [part["image_url"]["url"] for part in ended["media"]] == [small]
    assert ended["media_left_out"] == 1


async def test_a_model_does_not_get_back_the_bytes_that_a_client_kept_in_its_history(tmp_path: Path) -> None:
    uris = [uri_of(mime, data) for mime, data in MEDIA.items()]
    async with playing(tmp_path, replies(BLOCK, "Done.", "Again."), *uris) as one:
        text = await heard_by_vcp_client(one)
        body = chat_body("And?")
        body["messages"] = [{"role": "assistant", "content": text}, *one.upstream.bodies[0]["messages"]]
        await one.chat.complete(ClientRequest(body, caller=ME, show=Show.RAW))
        sent = one.upstream.bodies[-1]["messages"][0]["content"]
    assert "base64" not in sent
    assert all(f"({mime})" in sent for mime in MEDIA)
    assert "Here it is." in sent
    assert sent.endswith("Done.")


@pytest.mark.parametrize(
    "text",
    [
        'Use <img src="data:image/png;base64," and more',
        '<img src="https://example.org/a.png">',
        '<script src="data:text/javascript;base64,AAAA"></script>',
        "data:image/png;base64,AAAA",
    ],
)
def test_other_texts_of_a_history_stay_as_they_are(text: str) -> None:
    assert remove_media(text) == text
