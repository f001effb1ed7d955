"""``kill -9`` of a real server in the middle of idempotent requests: after its restart no effect happens again."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.crash.scene import SOAK
from tests.gateway.serving import request
from tests.gateway.upstream import Provider, provider, replies
from tests.plugins.folders import make_plugin
from tests.programs import find_program
from tests.waiting import wait_until
from tests.web.server_process import ServerProcess, start_server

pytestmark = pytest.mark.requirement("http:idempotency", "p:P2", "p:P10")
COUNT = """
import json, os, sys, time
said = json.loads(sys.stdin.read() or "{}")
with open("effects", "a") as file:
    file.write("one\\n")
while said.get("waits") and not os.path.exists("go"):
    time.sleep(0.01)
print(json.dumps({"status": "success", "result": "counted"}))
"""
HANG = {"waits": "yes"}


@asynccontextmanager
async def server(
    place: Path, upstream: Provider | None = None, *, program: Sequence[str] = ("toolyard",)
) -> AsyncIterator[ServerProcess]:
    """``toolyard serve`` on ``place``, once more or for the first time; it dies with signal 9."""
    if not (place / "given").exists():
        folder = make_plugin(place / "given", "Count")
        (folder / "main.py").write_text(COUNT)
        (place / "home").mkdir()
        model = f'upstream_url = "{upstream.url}"\nupstream_key = "sk-x"\n' if upstream else ""
        (place / "home/config.toml").write_text(f'approval_mode = "auto"\n{model}')
    async with start_server(place, "--plugins", str(place / "given"), "--trust", program=program) as process:
        yield process


def effects(place: Path) -> int:
    file = place / "given" / "Count" / "effects"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def wait_for_effect(place: Path) -> None:
    await wait_until(lambda: effects(place), within_s=120)


async def curl(
    process: ServerProcess, key: str, arguments: dict[str, str], tool: str = "Count"
) -> tuple[int, str, Any]:
    """Status, head and body of a call, as curl sees them; status 0 when the server goes away."""
    command = [
        find_program("curl"), "--silent", "--include", "-H", f"Authorization: Bearer {process.key}",
        "-H", f"Idempotency-Key: {key}",
        "--json", json.dumps(arguments), f"{process.url}/v1/tools/{tool}",
    ]  # fmt: skip
    child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    out, _ = await child.communicate()
    head, _, body = out.partition(b"\r\n\r\n")
    return (int(head.split()[1]), head.decode().lower(), json.loads(body)) if body else (0, "", None)


async def test_a_call_that_a_kill_cut_off_is_never_run_again(tmp_path: Path) -> None:
    find_program("curl")  # before anything is started
    async with server(tmp_path) as first:
        asking = asyncio.create_task(curl(first, "k", HANG))
        await wait_for_effect(tmp_path)
        done = await curl(first, "done", {})
        first.process.kill()
        assert (await asking)[0] == 0
    async with server(tmp_path) as second:
        status, head, body = await curl(second, "k", HANG)
        assert (status, body["error"]["code"]) == (400, "interrupted")
        assert "x-should-retry: false" in head
        assert (await curl(second, "k", HANG))[2] == body
        calls = (await second.request("GET", "/v1/calls?state=interrupted"))[1]["data"]
        assert f"{calls[0]['id']} (Count, interrupted)" in body["error"]["message"]
        assert (await second.request("GET", f"/v1/calls/{calls[0]['id']}"))[0] == 200
        again = await curl(second, "done", {})
        assert (again[2], "idempotency-replayed: true" in again[1]) == (done[2], True)
        assert (await curl(second, "k", {}))[0] == 422
    assert effects(tmp_path) == 2


@asynccontextmanager
async def sdk(process: ServerProcess) -> AsyncIterator[Any]:
    """OpenAI's own client, which repeats by itself whatever it takes for a passing fault."""
    async with openai.AsyncOpenAI(base_url=f"{process.url}/v1", api_key=process.key, timeout=120) as client:
        yield client.chat.completions.create


async def ask(process: ServerProcess, key: str, *, stream: bool) -> str:
    messages = [{"role": "user", "content": "Hi."}]
    async with sdk(process) as create:
        answer = await create(model="m", messages=messages, stream=stream, extra_headers={"Idempotency-Key": key})
        if not stream:
            return str(answer.choices[0].message.content)
        return "".join([event.choices[0].delta.content or "" async for event in answer if event.choices])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_that_a_kill_cut_off_is_never_run_again_and_a_finished_one_is_replayed(
    tmp_path: Path, stream: bool
) -> None:
    async with provider(replies(request("Count"), "Done.", request("Count", **HANG), "Never.")) as upstream:
        async with server(tmp_path, upstream) as first:
            done = await ask(first, "done", stream=stream)
            assert done.endswith("Done.")
            (tmp_path / "given" / "Count" / "effects").unlink()
            asking = asyncio.create_task(ask(first, "k", stream=stream))
            await wait_for_effect(tmp_path)
            first.process.kill()
            with pytest.raises(openai.APIError):
                await asking
        async with server(tmp_path, upstream) as second:
            with pytest.raises(openai.BadRequestError) as caught:
                await ask(second, "k", stream=stream)
            (call,) = (await second.request("GET", "/v1/calls?state=interrupted"))[1]["data"]
            assert caught.value.code == "interrupted"
            assert f"{call['id']} (Count, interrupted)" in caught.value.message
            assert await ask(second, "done", stream=stream) == done
        assert (effects(tmp_path), len(upstream.bodies)) == (1, 3)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_whose_client_was_killed_goes_on_and_its_repeat_gets_the_answer(
    tmp_path: Path, stream: bool
) -> None:
    async with provider(replies(request("Count", **HANG), "Done.")) as upstream, server(tmp_path, upstream) as process:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}], "stream": stream})
        command = [
            find_program("curl"), "--silent", "--no-buffer", "-H", f"Authorization: Bearer {process.key}",
            "-H", "Idempotency-Key: k", "--json", body, f"{process.url}/v1/chat/completions",
        ]  # fmt: skip
        killed = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        await wait_for_effect(tmp_path)
        killed.kill()
        await killed.communicate()
        repeat = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        (tmp_path / "given/Count/go").touch()
        out, _ = await repeat.communicate()
        assert b"Done." in out
        assert (effects(tmp_path), len(upstream.bodies)) == (1, 2)


POINTS = {  # and whether the effect has happened by then
    "idempotency.started:1": 0,
    "idempotency.before-ended:1": 1,
    "idempotency.ended:1": 1,
    **({"journal.started:1": 0, "journal.finished:1": 1} if SOAK else {}),
}


@pytest.mark.requirement("crash:invariants", "r:R01")
@pytest.mark.parametrize("point", POINTS)
async def test_a_server_that_dies_at_any_moment_of_a_call_runs_it_at_most_once(tmp_path: Path, point: str) -> None:
    async with server(tmp_path, program=("tests.crash.killed_server", point)) as process:
        assert (await curl(process, "k", {}))[0] == 0
        assert (await process.wait_for_end())[0] == -9
    assert effects(tmp_path) == POINTS[point]
    async with server(tmp_path) as process:
        status, head, body = await curl(process, "k", {})
        if point == "idempotency.ended:1":
            assert (status, body["status"], "idempotency-replayed: true" in head) == (200, "success", True)
        else:
            assert (status, body["error"]["code"]) == (400, "interrupted")
    assert effects(tmp_path) == POINTS[point]
