"""Wan2.1VideoGen against a loopback provider and a loopback host that takes callbacks."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import PATIENCE, Asked, Reply, Said, manifest, receipt, run, serving, started

pytestmark = pytest.mark.requirement("shipped:video")
NAME = "Wan2.1VideoGen"
URL = "https://videos.example/v.mp4"
DONE = {"status": "Succeed", "results": {"videos": [{"url": URL}]}}
TAKEN = Reply({"status": "success"})
SUBMIT = {"command": "submit", "mode": "t2v", "prompt": "一只猫在海边", "resolution": "1280x720"}


def provider_of(*standings: dict[str, Any] | Reply) -> Callable[[Asked], Reply]:
    """Submits give an id; each status request gives the next standing, the last one for ever."""
    left = list(standings)
    lock = threading.Lock()

    def answer(asked: Asked) -> Reply:
        if asked.path == "/v1/video/submit":
            return Reply({"requestId": "req-abc"})
        assert asked.path == "/v1/video/status"
        assert asked.json == {"requestId": "req-abc"}
        with lock:
            now = left.pop(0) if len(left) > 1 else left[0]
        return now if isinstance(now, Reply) else Reply(now)

    return answer


def settings(provider: str, host: str = "", **more: str) -> dict[str, str]:
    found = {
        "SILICONFLOW_API_KEY": "sk-test", "SILICONFLOW_API_BASE": f"{provider}/v1", "POLL_INTERVAL_S": "0.05",
        "POLL_LIMIT_S": "300", "CALLBACK_RETRY_S": "0.02", "PLUGIN_NAME_FOR_CALLBACK": NAME,
    }  # fmt: skip
    return found | ({"CALLBACK_BASE_URL": f"{host}/plugin-callback/~token"} if host else {}) | more


def failure(said: Said) -> str:
    assert (said.answer["status"], said.code) == ("error", 1), said.answer
    return str(said.answer["error"])


def test_the_manifest_has_the_shape_of_the_handbook() -> None:
    found = manifest("VideoGen")
    assert (found["name"], found["displayName"], found["pluginType"]) == (NAME, "视频生成器 (Wan2.1)", "asynchronous")
    assert found["entryPoint"]["command"] == "python video_handler.py"
    assert found["communication"] == {"protocol": "stdio", "timeout": 1800000}
    submit, query = found["capabilities"]["invocationCommands"]
    assert (submit["command"], query["command"]) == ("submit", "query")
    assert "{{{{VCP_ASYNC_RESULT::Wan2.1VideoGen::{req_id_submit}}}}}" in submit["description"]
    assert found["webSocketPush"] == {
        "enabled": True,
        "messageType": "video_generation_status",
        "usePluginResultAsMessage": True,
        "targetClientType": "VCPLog",
    }


def test_a_task_is_submitted_polled_and_called_back(tmp_path: Path) -> None:
    polled = provider_of({"status": "InQueue"}, {"status": "InProgress"}, DONE)
    with serving(polled) as provider, serving(lambda _: TAKEN) as host:
        with started("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url)) as child:
            first = receipt(child)
            called = host.next()
            assert child.wait(PATIENCE) == 0
            assert child.stdout is not None
            assert child.stdout.read() == b""
        submitted = provider.next()
        asked = [provider.next().path for _ in range(3)]
    assert first == {
        "status": "success",
        "result": (
            "文生视频任务 (ID: req-abc) 已成功提交。\n"
            "这是一个动态上下文占位符，当任务完成时，它会被自动替换为实际结果。\n"
            "请在你的回复中包含以下占位符原文：{{VCP_ASYNC_RESULT::Wan2.1VideoGen::req-abc}}"
        ),
    }
    assert submitted.headers["Authorization"] == "Bearer sk-test"
    assert submitted.json == {
        "model": "Wan-AI/Wan2.1-T2V-14B-Turbo",
        "prompt": "一只猫在海边",
        "image_size": "1280x720",
    }
    assert asked == ["/v1/video/status"] * 3
    assert called.path == "/plugin-callback/~token/Wan2.1VideoGen/req-abc"
    body = called.json
    assert (body["requestId"], body["status"], body["pluginName"], body["videoUrl"]) == (
        "req-abc",
        "Succeed",
        NAME,
        URL,
    )
    assert URL in body["message"]


def test_the_receipt_comes_before_the_first_poll(tmp_path: Path) -> None:
    with serving(provider_of(DONE)) as provider, serving(lambda _: TAKEN) as host:
        extra = settings(provider.url, host.url, POLL_INTERVAL_S="600", POLL_LIMIT_S="1200")
        with started("VideoGen", SUBMIT, tmp_path, extra) as child:
            assert receipt(child)["status"] == "success"
            assert child.poll() is None
        assert host.asked.empty()


@pytest.mark.parametrize(
    ("standing", "reason"),
    [
        ({"status": "Failed", "reason": "unsafe prompt"}, "unsafe prompt"),
        ({"status": "Succeed", "results": {"videos": []}}, "returned no address of the video"),
        (Reply({"message": "no such key"}, 401), "SILICONFLOW_API_KEY"),
    ],
)
def test_a_task_that_fails_is_called_back_as_failed(
    standing: dict[str, Any] | Reply, reason: str, tmp_path: Path
) -> None:
    with serving(provider_of(standing)) as provider, serving(lambda _: TAKEN) as host:
        said = run("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url))
        body = host.next().json
    assert said.code == 0
    assert body["status"] == "Failed"
    assert reason in body["message"]


def test_a_fault_that_passes_is_polled_through(tmp_path: Path) -> None:
    faults = [Reply({"message": "busy"}, 503), Reply(b"<html>"), Reply({"message": "slow down"}, 429)]
    with serving(provider_of(*faults, DONE)) as provider, serving(lambda _: TAKEN) as host:
        run("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url))
        assert host.next().json["status"] == "Succeed"


def test_a_task_that_never_ends_is_called_back_as_a_polling_timeout(tmp_path: Path) -> None:
    with serving(provider_of({"status": "InProgress"})) as provider, serving(lambda _: TAKEN) as host:
        run("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url, POLL_LIMIT_S="1"))
        body = host.next().json
    assert body["status"] == "PollingTimeout"
    assert "InProgress" in body["message"]


def test_the_callback_is_tried_again_until_the_host_takes_it(tmp_path: Path) -> None:
    answers = [Reply({}, 503), Reply({}, 500), Reply({}, 429), Reply({}, 502), TAKEN]
    with serving(provider_of(DONE)) as provider, serving(lambda _: answers.pop(0)) as host:
        said = run("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url))
        tries = [host.next().json for _ in range(5)]
    assert said.code == 0
    assert all(body == tries[0] for body in tries)


@pytest.mark.parametrize(("status", "tries"), [(503, 5), (409, 1)])
def test_a_host_that_never_takes_it_ends_the_plugin_with_a_failure(status: int, tries: int, tmp_path: Path) -> None:
    with serving(provider_of(DONE)) as provider, serving(lambda _: Reply({}, status)) as host:
        said = run("VideoGen", SUBMIT, tmp_path, settings(provider.url, host.url))
        assert host.asked.qsize() == tries
    assert said.code == 1
    assert f"HTTP {status}" in said.stderr


def test_a_picture_becomes_a_video_by_the_other_model(tmp_path: Path) -> None:
    asked_for = {"prompt": "wave", "image_url": "https://example.com/a.png", "Size": "square"}
    with serving(provider_of(DONE)) as provider, serving(lambda _: TAKEN) as host:
        said = run("VideoGen", asked_for, tmp_path, settings(provider.url, host.url, Image2VideoModelName="my/i2v"))
        body = provider.next().json
    assert "图生视频任务" in said.answer["result"]
    assert body == {"model": "my/i2v", "prompt": "wave", "image_size": "960x960", "image": "https://example.com/a.png"}


def test_without_a_callback_address_nothing_is_polled(tmp_path: Path) -> None:
    with serving(provider_of(DONE)) as provider:
        said = run("VideoGen", SUBMIT, tmp_path, settings(provider.url))
        assert provider.asked.qsize() == 1
    assert "query" in said.answer["result"]
    assert "VCP_ASYNC_RESULT" not in said.answer["result"]


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (DONE, URL),
        ({"status": "InQueue"}, "is queued"),
        ({"status": "InProgress"}, "is being made"),
        ({"status": "Failed", "reason": "unsafe"}, "unsafe"),
    ],
)
def test_a_query_tells_where_the_task_stands(standing: dict[str, Any], words: str, tmp_path: Path) -> None:
    with serving(provider_of(standing)) as provider:
        said = run("VideoGen", {"command": "query", "request_id": "req-abc"}, tmp_path, settings(provider.url))
    assert said.code == 0
    assert words in said.answer["result"]
    assert "VCP_ASYNC_RESULT" not in said.answer["result"]


@pytest.mark.parametrize(
    ("args", "extra", "word"),
    [
        ({"command": "submit"}, {}, "prompt"),
        ({"command": "submit", "mode": "i2v", "prompt": "x"}, {}, "image_url"),
        ({"command": "submit", "mode": "3d", "prompt": "x"}, {}, "t2v"),
        ({"command": "submit", "prompt": "x", "size": "1x1"}, {}, "1280x720"),
        ({"command": "query"}, {}, "request_id"),
        ({"command": "dance"}, {}, "submit or query"),
        (SUBMIT, {"SILICONFLOW_API_KEY": ""}, "config.env"),
        (SUBMIT, {"POLL_INTERVAL_S": "often"}, "POLL_INTERVAL_S"),
        (SUBMIT, {"SILICONFLOW_API_BASE": "http://127.0.0.1:9/v1"}, "cannot be reached"),
    ],
)
def test_a_bad_request_or_setting_is_told(
    args: dict[str, Any], extra: dict[str, str], word: str, tmp_path: Path
) -> None:
    assert word in failure(run("VideoGen", args, tmp_path, settings("http://127.0.0.1:9", **extra)))


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (401, "SILICONFLOW_API_KEY"),
        (403, "may not use this model"),
        (429, "try again later"),
        (500, "internal error of the provider"),
    ],
)
def test_a_refused_submit_is_told_with_what_to_do(status: int, word: str, tmp_path: Path) -> None:
    with serving(lambda _: Reply({"message": "their words"}, status)) as provider:
        told = failure(run("VideoGen", SUBMIT, tmp_path, settings(provider.url)))
    assert word in told
    assert "their words" in told
    assert "sk-test" not in told
