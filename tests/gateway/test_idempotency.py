"""``Idempotency-Key`` on chats: a turn runs once, however often its request is sent and whoever leaves meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.fakes import FakeTool
from tests.fakes import says as says_it
from tests.gateway.serving import StreamedAnswer, chat_body, request
from tests.gateway.upstream import DONE, Answers, Provider, Script, chunk, provider, replies, says, streamed
from tests.waiting import wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.engine.chats.idempotency import MAX_RESPONSE
from toolyard.gateway.chats import Chat
from toolyard.gateway.sse import KEEP_ALIVE
from toolyard.gateway.turns.turn_log import TurnLog
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.web import idempotency
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:idempotency")
BLOCK = request(text="hello")


@dataclass
class Work:
    """A tool that counts its runs, and ends when it is let go."""

    runs: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.runs.append(call.id)
        self.started.set()
        await self.go.wait()
        return Result(data={}, text="Worked.")


@dataclass
class Client:
    """A plain HTTP client of a whole server, which shows every byte."""

    server: RunningServer
    provider: Provider
    work: Work
    said: list[str]  # the calls of the tool Say

    @property
    def chat(self) -> Chat:
        return self.server.server.chat

    @property
    def logs(self) -> list[TurnLog]:
        """The logs of the requests that run."""
        return [log for log in self.chat._logs.running() if log.names.key]

    def sdk(self, **more: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key=self.server.key, **more)

    async def open(
        self, key: str, body: JsonObject, headers: Mapping[str, str] = {}, *, path: str = "chat", who: str = ""
    ) -> aiohttp.ClientResponse:
        sent = {"Authorization": f"Bearer {who or self.server.key}", "Idempotency-Key": key, **headers}
        return await self.server.client.post(f"{self.server.url}/v1/{path}/completions", json=body, headers=sent)

    async def send(self, key: str, body: JsonObject, **more: Any) -> tuple[int, bytes, Mapping[str, str]]:
        response = await self.open(key, body, **more)
        raw = await response.read()
        return response.status, raw.replace(KEEP_ALIVE, b""), response.headers


@asynccontextmanager
async def client(place: Path, answers: Answers) -> AsyncIterator[Client]:
    async with provider(answers) as upstream:
        settings = f'upstream_url = "{upstream.url}"\nupstream_key = "sk-the-key"\n'
        async with run_server(place, settings=settings) as server, asyncio.timeout(60):
            work, bodies = Work(), list[str]()

            async def say(call: ToolCall, checkpoint: Checkpoint) -> Result:
                bodies.append(call.id)
                return await says_it(call, checkpoint)

            server.yard.tools.add(FakeTool(work, name="Work"))
            server.yard.tools.add(FakeTool(say, name="Say"))
            yield Client(server, upstream, work, bodies)


def content(body: bytes) -> str:
    return str(json.loads(body)["choices"][0]["message"]["content"])


@pytest.mark.parametrize("path", ["chat", "chatvcp"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_repeat_gets_the_very_bytes_of_the_first_answer(tmp_path: Path, stream: bool, path: str) -> None:
    async with client(tmp_path, replies(BLOCK, "Done.")) as me:
        body = chat_body("Hi.", stream=stream)
        first = await me.send("k", body, path=path)
        again = await me.send("k", body, path=path)
        assert (first[0], again[0], again[1]) == (200, 200, first[1])
        assert (len(me.said), len(me.provider.bodies)) == (1, 2)
        names = ("Content-Type", "X-Toolyard-Chat")
        assert [again[2][name] for name in names] == [first[2][name] for name in names]
        assert (first[2].get("Idempotency-Replayed"), again[2]["Idempotency-Replayed"]) == (None, "true")
        if stream:
            assert (StreamedAnswer.from_bytes(again[1]).text.endswith("Done."), again[1].endswith(DONE)) == (True, True)


@pytest.mark.parametrize("stream", [False, True])
async def test_two_keys_are_two_turns_although_their_bodies_are_the_same(tmp_path: Path, stream: bool) -> None:
    retry = {"x-stainless-retry-count": "1"}
    async with client(tmp_path, replies(BLOCK, "One.", BLOCK, "Two.", BLOCK, "Three.")) as me:
        body = chat_body("Hi.", stream=stream)
        other = me.server.make_key(Scope.CHAT)
        answers = [
            await me.send(key, body, headers=retry, who=who) for key, who in (("a", ""), ("b", ""), ("a", other))
        ]
        assert (len(me.said), len({answer[1] for answer in answers})) == (3, 3)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_goes_on_when_its_client_leaves_and_repeats_join_it(tmp_path: Path, stream: bool) -> None:
    async with client(tmp_path, replies(f"I begin.\n{request('Work')}", "Done.")) as me:
        body = chat_body("Hi.", stream=stream)
        asking = asyncio.create_task(me.send("k", body))
        await me.work.started.wait()
        (log,) = me.logs
        asking.cancel()
        await wait_until(lambda: not log._readers)
        joining = [asyncio.create_task(me.send("k", body)) for _ in range(2)]
        await wait_until(lambda: len(log._readers) == 2)
        me.work.go.set()
        joined = [await one for one in joining]
        assert {answer[0] for answer in joined} == {200}
        assert joined[0][1] == joined[1][1] == (await me.send("k", body))[1]
        assert (len(me.work.runs), len(me.provider.bodies)) == (1, 2)
        text = StreamedAnswer.from_bytes(joined[0][1]).text if stream else content(joined[0][1])
        assert text == "I begin.\n\n> ✓ Work: Worked.\n\nDone."


async def test_a_stream_is_joined_from_its_first_event_and_then_live(tmp_path: Path) -> None:
    async with client(tmp_path, replies(f"I begin.\n{request('Work')}", "Done.")) as me:
        body = chat_body("Hi.", stream=True)
        first = await me.open("k", body)
        await me.work.started.wait()
        second = await me.open("k", body)
        seen = b""
        while b"begin" not in seen:
            seen += await second.content.readany()
        assert not me.work.go.is_set()
        me.work.go.set()
        heard = (seen + await second.read(), await first.read())
        assert len({one.replace(KEEP_ALIVE, b"") for one in heard}) == 1


async def test_the_key_of_another_chat_is_a_422_that_openais_client_understands(tmp_path: Path) -> None:
    async with client(tmp_path, replies("One.")) as me, me.sdk(max_retries=0) as openai_client:
        create: Any = openai_client.chat.completions.create
        messages = [{"role": "user", "content": "Hi."}]
        headers = {"Idempotency-Key": "k"}
        assert (await create(model="m", messages=messages, extra_headers=headers)).choices[0].message.content == "One."
        for more in ({"stream": True}, {"temperature": 1}):
            with pytest.raises(openai.UnprocessableEntityError) as caught:
                await create(model="m", messages=messages, extra_headers=headers, **more)
            assert (caught.value.code, caught.value.type) == ("idempotency_key_reused", "invalid_request_error")
        assert len(me.provider.bodies) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
async def test_a_key_that_makes_no_sense_is_a_400_and_nothing_is_asked(tmp_path: Path, key: str) -> None:
    async with client(tmp_path, replies("One.")) as me:
        status, body, _ = await me.send(key, chat_body("Hi."))
        assert (status, json.loads(body)["error"]["code"]) == (400, "invalid_idempotency_key")
        assert me.provider.bodies == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_fails_before_any_tool_ran_leaves_the_key_free(tmp_path: Path, stream: bool) -> None:
    broken = Script([b"{}"], status=400, kind="application/json")
    async with client(tmp_path, [broken, says("Done.", stream=stream)]) as me:
        body = chat_body("Hi.", stream=stream)
        assert (await me.send("k", body))[0] == 400
        status, answer, headers = await me.send("k", body)
        assert (status, b"Done." in answer.replace(b'"}', b""), "Idempotency-Replayed" in headers) == (200, True, False)
        assert (await me.send("k", body))[1] == answer


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_after_a_tool_has_run_is_the_answer_of_every_repeat(tmp_path: Path, stream: bool) -> None:
    broken = Script([b"{}"], status=400, kind="application/json")
    async with client(tmp_path, [says(BLOCK, stream=stream), broken, says("No.", stream=stream)]) as me:
        body = chat_body("Hi.", stream=stream)
        first = await me.send("k", body)
        assert b"tools_have_run" in first[1]
        again = await me.send("k", body)
        assert (again[0], again[1], len(me.said)) == (first[0], first[1], 1)
        assert stream or again[2]["x-should-retry"] == "false"


async def test_an_sdk_that_times_out_and_asks_again_by_itself_joins_the_turn(tmp_path: Path) -> None:
    async with (
        client(tmp_path, replies(request("Work"), "Done.")) as me,
        me.sdk(timeout=1.5, max_retries=5) as sdk,
    ):
        create: Any = sdk.chat.completions.create
        messages = [{"role": "user", "content": "Hi."}]
        asking = asyncio.create_task(create(model="m", messages=messages, extra_headers={"Idempotency-Key": "k"}))
        await me.work.started.wait()
        (log,) = me.logs
        await wait_until(lambda: not log._readers)  # it has timed out,
        await wait_until(lambda: len(log._readers) == 1)  # and come back
        me.work.go.set()
        text = (await asking).choices[0].message.content
        assert (text, len(me.work.runs)) == ("> ✓ Work: Worked.\n\nDone.", 1)


async def test_a_whole_answer_that_waits_for_approval_comes_early_and_the_same_key_attaches(tmp_path: Path) -> None:
    block = request("Write", path="a.txt", content="x")
    async with client(tmp_path, replies(f"I write.\n{block}\n", "Done.")) as me:
        me.chat.rules = replace(me.chat.rules, approval_wait_s=0.05)
        body = chat_body("Hi.")
        early = json.loads((await me.send("k", body))[1])
        (waiting,) = early["toolyard"]["approvals"]
        assert (early["toolyard"]["type"], waiting["tool"]) == ("approval_required", "Write")
        assert json.loads((await me.send("k", body))[1])["toolyard"] == early["toolyard"]  # it still waits
        await me.server.yard.state.approvals.answer(waiting["id"], allowed=True, by="me")
        text = content((await me.send("k", body))[1])
        while "Done." not in text:
            text = content((await me.send("k", body))[1])
        (tmp_path / "project/a.txt").unlink()
        assert content((await me.send("k", body))[1]) == text
        assert (len(me.provider.bodies), (tmp_path / "project/a.txt").exists()) == (2, False)


@pytest.mark.requirement("chat:abandoned")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_nobody_waits_for_any_more_ends_after_the_limit(tmp_path: Path, stream: bool) -> None:
    async with client(tmp_path, replies(request("Work"), "Never.")) as me:
        me.chat.rules = replace(me.chat.rules, followed_s=0.2)
        body = chat_body("Hi.", stream=stream)
        asking = asyncio.create_task(me.send("k", body))
        await me.work.started.wait()
        asking.cancel()
        await wait_until(lambda: not me.logs)
        status, answer, headers = await me.send("k", body)
        error = json.loads(answer)["error"]
        assert (status, error["code"], headers["x-should-retry"]) == (400, "interrupted", "false")
        assert f"{me.work.runs[0]} (Work, cancelled)" in error["message"]
        assert len(me.work.runs) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_ends_tells_every_client_that_the_turn_was_interrupted(
    tmp_path: Path, stream: bool
) -> None:
    async with client(tmp_path, replies(f"I begin.\n{request('Work')}", "Never.")) as me:
        body = chat_body("Hi.", stream=stream)
        asking = [asyncio.create_task(me.send("k", body)) for _ in range(2)]
        await me.work.started.wait()
        (log,) = me.logs
        await wait_until(lambda: len(log._readers) == 2)
        await me.chat.stop_running(60)
        for status, answer, _ in [await one for one in asking]:
            error = StreamedAnswer.from_bytes(answer).errors[0] if stream else json.loads(answer)["error"]
            assert (status, error["code"]) == (200 if stream else 400, "interrupted")
            assert me.work.runs[0] in error["message"]
            assert not answer.endswith(DONE)
        assert (await me.send("k", body))[0] == 400


async def test_an_interrupted_turn_stays_interrupted(tmp_path: Path) -> None:
    async with client(tmp_path, replies(request("Work"), "Never.")) as me:
        body = chat_body("Hi.", requestId="r1")
        asking = asyncio.create_task(me.send("k", body))
        await me.work.started.wait()
        assert me.chat.interrupt(caller="key:owner", request_id="r1")
        first = await asking
        assert json.loads(first[1])["toolyard"] == {"type": "interrupted"}
        assert (await me.send("k", body))[1] == first[1]


async def test_a_named_chat_with_a_key_is_joined_and_replayed_too(tmp_path: Path) -> None:
    async with client(tmp_path, replies(f"I begin.\n{request('Work')}", "Done.")) as me:
        body = chat_body("Hi.", stream=True, toolyard={"chat": "c"})
        asking = [asyncio.create_task(me.send("k", body)) for _ in range(2)]
        await me.work.started.wait()
        me.work.go.set()
        heard = [await one for one in asking]
        assert heard[0][1] == heard[1][1] == (await me.send("k", body))[1]
        assert (StreamedAnswer.from_bytes(heard[0][1]).done, len(me.work.runs)) == (1, 1)
        busy = await me.send("l", chat_body("Hi.", toolyard={"chat": "not an id"}))
        assert busy[0] == 400


async def test_an_answer_that_is_too_large_reaches_its_client_and_a_repeat_is_told_so(tmp_path: Path) -> None:
    line = "All work and no play. " * 3000 + "\n"
    piece = chunk({"content": line}, system_fingerprint=line)
    pieces = [piece] * (MAX_RESPONSE // len(piece) + 3)
    async with client(tmp_path, [Script([*pieces, chunk({}, "stop"), DONE])]) as me:
        body = chat_body("Hi.", stream=True)
        first = await me.send("k", body)
        assert (StreamedAnswer.from_bytes(first[1]).text == line * len(pieces), len(first[1]) > MAX_RESPONSE) == (
            True,
            True,
        )
        status, answer, headers = await me.send("k", body)
        assert (status, json.loads(answer)["error"]["code"]) == (400, "response_not_kept")
        assert (headers["x-should-retry"], len(me.provider.bodies)) == ("false", 1)


async def test_no_more_run_at_once_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_RUNS", 1)
    async with client(tmp_path, replies(request("Work"), "Done.")) as me:
        asking = asyncio.create_task(me.send("k", chat_body("Hi.")))
        await me.work.started.wait()
        status, answer, headers = await me.send("l", chat_body("Hi."))
        assert (status, json.loads(answer)["error"]["code"]) == (503, "too_many_running")
        assert int(headers["Retry-After"]) > 0
        me.work.go.set()
        assert (await asking)[0] == 200


async def test_a_stream_that_breaks_off_is_replayed_as_it_was(tmp_path: Path) -> None:
    cut = Script(streamed("Hello there.")[:3], then="cut")
    async with client(tmp_path, [cut, says("No.")]) as me:
        body = chat_body("Hi.", stream=True)
        first = await me.send("k", body)
        assert [error["code"] for error in StreamedAnswer.from_bytes(first[1]).errors] == ["upstream_cut_off"]
        assert (await me.send("k", body))[1] == first[1]
        assert len(me.provider.bodies) == 1
