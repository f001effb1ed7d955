"""ImageGen against a loopback server that speaks the provider's protocol."""

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import Asked, Reply, Said, run, serving

pytestmark = pytest.mark.requirement("shipped:image")


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


HEADER = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
PNG = (
    b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", HEADER) + _chunk(b"IDAT", zlib.compress(b"\0\1\2\3")) + _chunk(b"IEND", b"")
)
INLINE = Reply({"created": 1, "data": [{"b64_json": base64.b64encode(PNG).decode()}]})


def ask(base: str, args: dict[str, Any], home: Path, **settings: str) -> Said:
    return run(
        "ImageGen",
        args,
        home,
        {"IMAGE_API_KEY": "sk-test", "IMAGE_API_BASE": base, "IMAGE_TIMEOUT_S": "20", **settings},
    )


def failure(said: Said) -> str:
    assert (said.answer["status"], said.code) == ("error", 1), said.answer
    return str(said.answer["error"])


def test_the_answer_is_a_text_and_the_picture_itself(tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        said = ask(f"{provider.url}/v1", {"prompt": "一只猫", "resolution": "512x512"}, tmp_path, IMAGE_MODEL="m1")
        asked = provider.next()
    assert (said.answer["status"], said.code) == ("success", 0)
    text, image = said.answer["result"]["content"]
    assert text["type"] == "text"
    assert "The picture was generated" in text["text"]
    assert "一只猫" in text["text"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
    }
    assert asked.path == "/v1/images/generations"
    assert asked.headers["Authorization"] == "Bearer sk-test"
    assert asked.json == {"model": "m1", "prompt": "一只猫", "size": "512x512", "n": 1}


@pytest.mark.parametrize(
    "args",
    [
        {"prompt": "cat", "resolution": "640x480"},
        {"Prompt": "cat", "size": "640x480"},
        {"PROMPT": "cat", "Size": "640*480"},
        {"text": "cat", "image_size": "640×480"},
        {"描述": "cat", "分辨率": " 640 x 480 "},
    ],
)
def test_parameters_are_taken_under_their_synonyms_and_in_any_case(args: dict[str, Any], tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        assert ask(provider.url, args, tmp_path).code == 0
        body = provider.next().json
    assert (body["prompt"], body["size"]) == ("cat", "640x480")


def test_a_picture_given_as_an_address_is_downloaded_without_the_key(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.path == "/picture":
            return Reply(PNG, headers={"Content-Type": "application/octet-stream"})
        return Reply({"data": [{"url": f"http://{asked.headers['Host']}/picture"}]})

    with serving(answer) as provider:
        said = ask(provider.url, {"prompt": "cat"}, tmp_path)
        provider.next()
        download = provider.next()
    assert said.answer["result"]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "Authorization" not in download.headers


def test_doubao_and_siliconflow_get_requests_in_their_own_words(tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        ask(provider.url, {"prompt": "cat", "seed": "5"}, tmp_path, IMAGE_PROVIDER="doubao", VOLCENGINE_API_KEY="x")
        doubao = provider.next().json
        ask(provider.url, {"prompt": "cat", "n": "2", "negative_prompt": "dog"}, tmp_path, IMAGE_PROVIDER="siliconflow")
        silicon = provider.next().json
    assert doubao["model"].startswith("doubao-")
    assert (doubao["response_format"], doubao["seed"], doubao["size"]) == ("b64_json", 5, "1024x1024")
    assert (silicon["image_size"], silicon["batch_size"], silicon["negative_prompt"]) == ("1024x1024", 2, "dog")


def test_a_picture_to_change_is_sent_as_a_form(tmp_path: Path) -> None:
    uri = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    with serving(lambda _: INLINE) as provider:
        assert ask(provider.url, {"prompt": "add a hat", "image": uri}, tmp_path).code == 0
        asked = provider.next()
    assert asked.path == "/images/edits"
    assert asked.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert PNG in asked.body
    assert b'name="prompt"\r\n\r\nadd a hat' in asked.body


def test_the_picture_is_kept_in_the_home_of_the_plugin(tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        said = ask(provider.url, {"prompt": "cat"}, tmp_path)
    (kept,) = (tmp_path / "ImageGen").iterdir()
    assert kept.read_bytes() == PNG
    assert said.answer["result"]["details"]["files"] == [str(kept)]


def test_a_home_that_cannot_be_written_costs_no_picture(tmp_path: Path) -> None:
    (tmp_path / "ImageGen").write_text("in the way", "utf-8")
    with serving(lambda _: INLINE) as provider:
        said = ask(provider.url, {"prompt": "cat"}, tmp_path)
    assert said.answer["result"]["content"][1]["type"] == "image_url"
    assert "could not keep" in said.stderr


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, ("HTTP 401", "IMAGE_API_KEY", "the provider's words")),
        (429, {"Retry-After": "7"}, ("HTTP 429", "in 7 s", "the provider's words")),
        (404, {}, ("HTTP 404", "IMAGE_MODEL")),
        (400, {}, ("HTTP 400", "the provider's words")),
        (500, {}, ("HTTP 500", "try again later")),
        (302, {"Location": "http://127.0.0.1:9/elsewhere"}, ("HTTP 302",)),
    ],
)
def test_a_refusal_of_the_provider_is_told_with_what_to_do(
    status: int, headers: dict[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    said_there = {"error": {"message": "the provider's words"}}
    with serving(lambda _: Reply(said_there, status, headers)) as provider:
        told = failure(ask(provider.url, {"prompt": "cat"}, tmp_path))
    assert all(word in told for word in words), told
    assert "sk-test" not in told


def test_a_missing_key_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        told = failure(ask(provider.url, {"prompt": "cat"}, tmp_path, IMAGE_API_KEY=""))
        assert provider.asked.empty()
    assert "IMAGE_API_KEY" in told
    assert "config.env" in told


def test_a_provider_that_is_silent_or_away_is_told(tmp_path: Path) -> None:
    import threading

    release = threading.Event()

    def slow(_: Asked) -> Reply:
        release.wait(30)
        return INLINE

    with serving(slow) as provider:
        told = failure(ask(provider.url, {"prompt": "cat"}, tmp_path, IMAGE_TIMEOUT_S="0.5"))
        release.set()
    assert "IMAGE_TIMEOUT_S" in told
    assert "cannot be reached" in failure(ask("http://127.0.0.1:9", {"prompt": "cat"}, tmp_path))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"<html>", "is not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "sent no picture"),
        (b'{"data":[{}]}', "b64_json"),
        (b'{"data":[{"b64_json":"aGVsbG8gd29ybGQ="}]}', "sent no picture"),
        (b'{"data":[{"url":"file:///etc/passwd"}]}', "Only http"),
    ],
)
def test_an_answer_without_a_picture_is_an_error(body: bytes, word: str, tmp_path: Path) -> None:
    with serving(lambda _: Reply(body)) as provider:
        assert word in failure(ask(provider.url, {"prompt": "cat"}, tmp_path))


def test_a_picture_over_the_cap_is_refused(tmp_path: Path) -> None:
    big = base64.b64encode(PNG + b"\0" * 300_000).decode()
    with serving(lambda _: Reply({"data": [{"b64_json": big}]})) as provider:
        assert "IMAGE_MAX_MB" in failure(ask(provider.url, {"prompt": "cat"}, tmp_path, IMAGE_MAX_MB="0.1"))


@pytest.mark.parametrize(
    ("args", "settings", "word"),
    [
        ({}, {}, "prompt"),
        ({"prompt": "cat", "size": "huge"}, {}, "1024x1024"),
        ({"prompt": "cat", "n": "9"}, {}, "from 1 to 4"),
        ({"prompt": "cat", "image": "http://10.0.0.1/x.png"}, {}, "data:image"),
        ({"prompt": "cat"}, {"IMAGE_PROVIDER": "nobody"}, "volcengine"),
        ({"prompt": "cat"}, {"IMAGE_TIMEOUT_S": "soon"}, "IMAGE_TIMEOUT_S"),
    ],
)
def test_a_bad_request_or_setting_is_told(
    args: dict[str, Any], settings: dict[str, str], word: str, tmp_path: Path
) -> None:
    assert word in failure(ask("http://127.0.0.1:9", args, tmp_path, **settings))


def test_stdin_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    assert "JSON" in failure(run("ImageGen", b"hello", tmp_path))
    assert "JSON" in failure(run("ImageGen", json.dumps([1]).encode(), tmp_path))
