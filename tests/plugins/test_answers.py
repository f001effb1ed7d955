"""Output of a plugin in every dialect: a plugin that prints its argument ``out`` to the letter."""

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.yards import PluginYard
from toolyard.protocol.envelope import Status
from toolyard.protocol.json import Json

SAY = """
import json, sys, time
raw = sys.stdin.read()
args = json.loads(raw) if raw else {"out": '{"status": "error", "error": "no arguments"}'}
sys.stdout.write(args["out"])
sys.stdout.flush()
if "seconds" in args:
    time.sleep(float(args["seconds"]))
"""


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\1\2\3"))
    + _chunk(b"IEND", b"")
)
URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
STORED = f"tool-output/media_{hashlib.sha256(PNG).hexdigest()[:32]}.png"
IMAGE = {"type": "image_url", "image_url": {"url": URI}}
REFERENCE = {"type": "image", "mime": "image/png", "size": len(PNG), "name": STORED.partition("/")[2], "path": STORED}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as opened:
        opened.add("Say", SAY)
        yield opened


async def say(host: PluginYard, dialect: str, out: Any, *, shown: bool = False) -> dict[str, Any]:
    printed = out if isinstance(out, str) else json.dumps(out, ensure_ascii=False)
    call = host.yard.calls.request("Say", {"out": printed})
    return host.yard.results.express(call, await host.yard.calls.settle(call), dialect, shown=shown)


def result(value: Any) -> dict[str, Any]:
    return {"status": "success", "result": value}


@pytest.mark.requirement("plugin:data")
async def test_a_text_is_in_the_data_of_every_dialect(host: PluginYard) -> None:
    out = result("###计算结果：2.718###，请将结果转告用户###")
    assert (await say(host, "envelope", out))["data"] == {"result": out["result"]}
    assert (await say(host, "backend", out))["data"] == {"result": out["result"]}
    assert (await say(host, "mcp", out))["_meta"]["toolyard/envelope"]["data"] == {"result": out["result"]}
    encoded = await say(host, "vcp", out)
    assert encoded["result"]["content"] == [{"type": "text", "text": out["result"]}]


@pytest.mark.requirement("plugin:data:once")
async def test_a_model_reads_a_text_once(host: PluginYard) -> None:
    assert (await say(host, "openai", result("only once")))["content"] == "only once"
    mcp = await say(host, "mcp", result("only once"))
    assert mcp["content"] == [{"type": "text", "text": "only once"}]
    content = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, IMAGE]}
    openai = (await say(host, "openai", result(content)))["content"]
    assert openai[0]["text"] == f"a\nb\n[{REFERENCE['path']}]"
    for structured in ({"a": 1}, [1, 2]):
        openai = (await say(host, "openai", result(structured)))["content"]
        assert openai == json.dumps(structured, separators=(",", ":"))
    partial = await say(host, "openai", {"status": "partial", "result": "half"})
    assert partial["content"].count("half") == 1


@pytest.mark.requirement("plugin:data:once")
async def test_a_text_is_measured_once(host: PluginYard) -> None:
    text = "a line\n" * 6000
    assert (await say(host, "openai", result(text[: 1900 * 7])))["content"] == text[: 1900 * 7]
    assert "the first 2000 of 6000 lines" in (await say(host, "openai", result(text)))["content"]


@pytest.mark.requirement("plugin:data", "media:stored")
async def test_media_are_references_that_can_be_fetched(host: PluginYard) -> None:
    text = {"type": "text", "text": "图片已成功生成！\n- 提示词: 一只猫..."}
    out = result({"content": [text, IMAGE]})
    envelope = await say(host, "envelope", out)
    assert envelope["data"] == {"content": [text, REFERENCE]}
    assert "base64" not in json.dumps({**envelope, "context": {}})
    assert (await say(host, "backend", out))["data"] == {"content": [text, REFERENCE]}
    assert (host.place / "project" / STORED).read_bytes() == PNG
    read = host.yard.calls.request("Read", {"path": STORED})
    fetched = host.yard.results.express(read, await host.yard.calls.settle(read), "vcp")
    assert IMAGE in fetched["result"]["content"]
    encoded = await say(host, "vcp", out)
    assert encoded["result"]["content"] == [text, IMAGE]
    assert "content" not in encoded["result"]["details"]


@pytest.mark.requirement("plugin:data")
async def test_a_project_that_cannot_be_written_costs_the_path_and_not_the_result(host: PluginYard) -> None:
    (host.place / "project/tool-output").write_text("in the way")
    envelope = await say(host, "envelope", result({"content": [IMAGE]}))
    (reference,) = envelope["data"]["content"]
    assert "path" not in reference
    assert "could not be stored" in envelope["context"]["warnings"][0]
    assert (await say(host, "vcp", result({"content": [IMAGE]})))["result"]["content"] == [IMAGE]


@pytest.mark.requirement("plugin:data", "backend:stream")
async def test_a_remote_address_is_a_reference_for_programs_and_a_text_for_models(host: PluginYard) -> None:
    link = {"type": "image_url", "image_url": {"url": "https://a.example/x.png?s=1", "detail": "high"}}
    out = result({"content": [link]})
    assert (await say(host, "backend", out))["data"] == {
        "content": [{"type": "image", "name": "x.png", "url": "https://a.example/x.png?s=1"}]
    }
    assert (await say(host, "vcp", out))["result"]["content"] == [link]
    assert (await say(host, "openai", out))["content"] == "https://a.example/x.png?s=1"


@pytest.mark.requirement("plugin:vcp-v2")
async def test_vcp_v2_passes_through_the_host_unchanged(host: PluginYard) -> None:
    out = {
        "status": "success",
        "result": {"content": [{"type": "text", "text": "Open."}, IMAGE], "details": {"path": "a", "n": [1]}},
        "_specialAction": "create_canvas",
        "payload": {"file": "a"},
    }
    assert await say(host, "vcp", out) == out
    assert (await say(host, "envelope", out))["data"] == {
        "path": "a",
        "n": [1],
        "content": [{"type": "text", "text": "Open."}, REFERENCE],
    }
    failed = {"status": "error", "error": "no", "result": {"content": [IMAGE], "details": {"tried": 2}}}
    assert await say(host, "vcp", failed) == failed
    hint = "Check the arguments against what Say takes, then try again or do without it."
    assert (await say(host, "openai", failed))["content"][0]["text"] == f"EXECUTION_ERROR: no. {hint}"


@pytest.mark.requirement("plugin:older-forms", "envelope:status:legacy-error")
@pytest.mark.parametrize(
    ("out", "status", "text"),
    [
        ({"success": True, "data": {"message": "操作成功描述", "items": []}}, "success", "操作成功描述"),
        ({"success": False, "error": "Unknown action: X"}, "error", "Unknown action: X"),
        ({"error": "Error: boom"}, "error", "Error: boom"),
        ({"status": "ok", "result": "fine"}, "success", "fine"),
        ({"status": "failed", "error": "bad"}, "error", "bad"),
    ],
)
async def test_an_older_form_is_an_answer_with_a_warning(host: PluginYard, out: Json, status: str, text: str) -> None:
    envelope = await say(host, "envelope", out)
    assert envelope["status"] == status
    assert envelope["text"].startswith(text)
    assert status == "success" or envelope["error"] == {"code": "EXECUTION_ERROR", "message": text}
    assert "was read as" in envelope["context"]["warnings"][0] or "older form" in envelope["context"]["warnings"][0]


@pytest.mark.requirement("plugin:older-forms")
async def test_a_word_that_is_no_status_is_named_with_the_allowed_ones(host: PluginYard) -> None:
    envelope = await say(host, "envelope", {"status": "done", "result": "x"})
    assert envelope["text"] == 'Say answered with the status "done". It must be success, partial or error.'


@pytest.mark.requirement("plugin:next-step")
@pytest.mark.parametrize(
    ("out", "text"),
    [
        (
            {"status": "error", "error": "Error: boom"},
            "Error: boom. Check the arguments against what Say takes, then try again or do without it.",
        ),
        ({"status": "error", "error": "文件不存在，请检查路径"}, "文件不存在，请检查路径"),
        ({"status": "error", "error": "No such city. Did you mean Paris?"}, "No such city. Did you mean Paris?"),
        (
            {"status": "error", "data": {}, "text": "It is broken.", "error": {"code": "TIMEOUT", "message": "broken"}},
            "It is broken. Check the arguments against what Say takes, then try again or do without it.",
        ),
        (
            {"status": "partial", "result": "half"},
            "half\n\nThis is not the whole result: narrow the call, or call Say again for what is missing.",
        ),
    ],
)
async def test_a_text_of_an_error_or_a_partial_result_says_what_to_do_next(
    host: PluginYard, out: Json, text: str
) -> None:
    assert (await say(host, "envelope", out))["text"] == text


@pytest.mark.requirement("plugin:setting-hint")
async def test_a_missing_setting_is_named_only_when_the_failure_is_about_it(tmp_path: Path) -> None:
    schema = {"IMAGE_API_KEY": {"type": "string", "required": True}, "VOLCENGINE_API_KEY": "string"}
    async with PluginYard(tmp_path) as host:
        host.add("Say", SAY, configSchema=schema, config="VOLCENGINE_API_KEY=k")
        hint = "It needs settings that its owner has not set: IMAGE_API_KEY."
        for about in ("IMAGE_API_KEY is missing", "No image API key was found.", "请先设置 IMAGE_API_KEY"):
            assert (await say(host, "envelope", {"status": "error", "error": about}))["text"].endswith(hint)
        for other in ("The size must be 1024x1024.", "VOLCENGINE_API_KEY is wrong"):
            assert hint not in (await say(host, "envelope", {"status": "error", "error": other}))["text"]


@pytest.mark.requirement("envelope:context:cwd")
async def test_the_folder_of_the_context_is_where_the_plugin_ran(host: PluginYard) -> None:
    assert (await say(host, "envelope", result("x")))["context"]["cwd"] == "."  # its folder is not in the project
    host.place.joinpath("given/Say").rename(host.place / "given/Away")
    inside = host.place / "project/Plugin"
    inside.mkdir()
    host.place.joinpath("given/Away").rename(inside / "Say")
    host.yard.plugins.trust.trust_folders((inside,))
    host.yard.plugins.plugins.refresh()
    for out, cwd in (
        (result("x"), "Plugin/Say"),
        ({"status": "error", "error": "x"}, "Plugin/Say"),
        ({"status": "success", "data": {}, "text": "Did it.", "context": {"cwd": "packages/app"}}, "packages/app"),
        ({**result("x"), "context": {"cwd": "src"}}, "src"),
        ({"status": "error", "error": "x", "context": {"cwd": "src"}}, "src"),
        ({**result("x"), "context": {"cwd": "/etc"}}, "Plugin/Say"),
        ({**result("x"), "context": {"topic": "weather"}}, "Plugin/Say"),
    ):
        answer = await say(host, "envelope", out)
        assert answer["context"]["cwd"] == cwd
        assert answer["data"].get("context") == ({"topic": "weather"} if "topic" in str(out) else None)


@pytest.mark.requirement("plugin:stdin")
async def test_without_arguments_nothing_is_on_stdin(host: PluginYard) -> None:
    assert (await host.call("Say")).envelope.text.startswith("no arguments")
    signed = await host.call("Say", maid="Nova", out='{"status": "success", "result": "x"}')
    assert signed.envelope.status is Status.SUCCESS


@pytest.mark.requirement("plugin:answered")
async def test_an_answer_counts_although_the_process_does_not_exit(host: PluginYard) -> None:
    outcome = await host.call("Say", out=json.dumps(result("done")), seconds=600)
    assert (outcome.envelope.status, outcome.envelope.text) == (Status.SUCCESS, "done")
    assert "did not exit" in str(outcome.envelope.context["warnings"])


@pytest.mark.requirement("plugin:answered")
async def test_only_without_an_answer_it_is_a_timeout(tmp_path: Path) -> None:
    babble = (
        'import time\nprint(\'{"status": "success", "result": "x"}\', flush=True)\n'
        'while True:\n    print(".", flush=True)\n    time.sleep(0.01)'
    )
    async with PluginYard(tmp_path) as host:
        short = {"protocol": "stdio", "timeout": 3000}
        host.add("Babble", babble, communication=short)
        host.add("Half", SAY, communication=short)
        answered, half = await host.call("Babble"), await host.call("Half", out='{"status": "suc', seconds=600)
    assert (answered.envelope.status, answered.envelope.text) == (Status.SUCCESS, "x")
    assert half.envelope.error is not None
    assert half.envelope.error.code == "TIMEOUT"


@pytest.mark.requirement("python:requests", "plugin:stdin")
async def test_a_plugin_is_told_who_signed(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as host:
        host.add("Echo")
        call = host.yard.calls.request("Echo", {"maid": "Nova", "text": "x"})
        outcome = await host.yard.calls.settle(call)
        assert (call.maid, outcome.envelope.data["heard"]) == ("Nova", {"maid": "Nova", "text": "x"})
