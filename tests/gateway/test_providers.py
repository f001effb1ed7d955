"""Providers as they are: what the official client reads straight from them, a client of the gateway reads too."""

import asyncio
import gzip
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.serving import ME, QUICK, Gateway, StreamedAnswer, chat_body, gateway
from tests.gateway.upstream import DONE, Script, chunk, completion, provider, says, streamed
from tests.waiting import wait_until
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.providers import answer
from toolyard.gateway.providers.answer import MAX_BATCH, MAX_UNSTREAMED, HttpAnswer
from toolyard.gateway.providers.upstream import HttpUpstream
from toolyard.gateway.reply.chunks import Chunk
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.sse import MAX_EVENT

HI: Any = [{"role": "user", "content": "Hi"}]
KINDS = ["text/event-stream", "text/plain", "application/octet-stream", "application/json", "application/x-ndjson", ""]


async def read_stream(client: openai.AsyncOpenAI) -> str:
    create: Any = client.chat.completions.create
    stream = await create(model="m", messages=HI, stream=True)
    return "".join([choice.delta.content or "" async for event in stream for choice in event.choices])


async def read_both(one: Gateway) -> tuple[str, str]:
    """The text of a stream as the official client reads it from the provider, and as it reads it from the gateway."""
    async with (
        openai.AsyncOpenAI(base_url=one.upstream.url, api_key="x", max_retries=0, timeout=60) as direct,
        one.client() as client,
    ):
        return await read_stream(direct), await read_stream(client)


@pytest.mark.requirement("clients:providers")
@pytest.mark.parametrize("status", [200, 201, 299])
@pytest.mark.parametrize("kind", KINDS)
async def test_events_are_read_whatever_they_are_called(tmp_path: Path, kind: str, status: int) -> None:
    script = Script(streamed("Hello, 世界."), kind=kind, status=status)
    async with gateway(tmp_path, [script], served=True) as one:
        assert await read_both(one) == ("Hello, 世界.", "Hello, 世界.")


@pytest.mark.requirement("clients:providers")
@pytest.mark.parametrize("begin", [b"", b"\n\n", b": hello\n\n", b"\xef\xbb\xbf", b"id: 1\n", b"event: x\n"])
async def test_events_are_known_by_how_they_begin(tmp_path: Path, begin: bytes) -> None:
    raw = begin + b"".join(streamed("Hello."))
    for size in (1, 5, len(raw)):
        pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
        async with gateway(tmp_path / str(size), [Script(pieces, kind="")]) as one:
            heard = await one.stream()
            assert (heard.text, heard.finishes, heard.done, heard.errors) == ("Hello.", ["stop"], 1, [])


@pytest.mark.requirement("clients:providers")
@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("kind", KINDS)
async def test_json_in_one_piece_is_read_whatever_it_is_called(tmp_path: Path, kind: str, status: int) -> None:
    body = b"\n " + completion({"role": "assistant", "content": "Hello."})
    pieces = [body[:1], body[1:9], body[9:]]
    async with gateway(tmp_path, [Script(pieces, kind=kind, status=status)]) as one:
        heard = await one.stream()
        assert (heard.text, heard.finishes, heard.done, heard.errors) == ("Hello.", ["stop"], 1, [])
        assert (await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).body == body


@pytest.mark.requirement("clients:providers")
async def test_a_whole_answer_keeps_what_it_says_of_its_choices_as_a_stream(tmp_path: Path) -> None:
    body = json.loads(completion({"role": "assistant", "content": "Hello."}))
    body["choices"][0]["logprobs"] = {"content": [{"token": "Hello.", "logprob": -0.5}]}
    async with gateway(tmp_path, [Script([json.dumps(body).encode()], kind="application/json")]) as one:
        heard = await one.stream()
    logprobs = [choice.get("logprobs") for event in heard.events for choice in event["choices"]]
    assert body["choices"][0]["logprobs"] in logprobs


@pytest.mark.requirement("clients:providers")
@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/event-stream", ""])
async def test_what_is_neither_is_quoted_in_the_error(tmp_path: Path, kind: str) -> None:
    for number, text in enumerate((b"The service sleeps.", b"The service\n\nsleeps.\n\n", b"<p>The service</p>")):
        async with gateway(tmp_path / str(number), [Script([text], kind=kind)]) as one:
            heard = await one.stream()
            assert "no chat completion" in heard.errors[0]["message"]
            assert "The service" in heard.errors[0]["message"]


@pytest.mark.requirement("clients:provider-json", "clients:providers")
async def test_odd_json_reaches_strict_clients_as_json(tmp_path: Path) -> None:
    def raw(event: str) -> bytes:
        return b"data: " + event.encode() + b"\n\n"

    shell = '"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"'
    logprobs = '{"content": [{"token": "x", "logprob": -Infinity, "bytes": null, "top_logprobs": []}]}'
    pieces = [
        raw(rf'{{{shell}, "choices": [{{"index": 0, "delta": {{"content": "a\ud83d"}}}}]}}'),
        raw(rf'{{{shell}, "choices": [{{"index": 0, "delta": {{"content": "\ude00b"}}}}]}}'),
        raw(f'{{{shell}, "choices": [{{"index": 0, "delta": {{"content": "c"}}, "logprobs": {logprobs}}}]}}'),
        raw(f'{{{shell}, "choices": [], "seed": 123456789012345678901234567890}}'),
        chunk({}, "stop"),
        DONE,
    ]
    async with gateway(tmp_path, [Script(pieces)], served=True) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
        assert run.pieces is not None
        sent = b"".join([piece async for piece in run.pieces])
        heard = StreamedAnswer.from_bytes(sent)
        assert (heard.text, heard.finishes, heard.errors) == ("a😀bc", ["stop"], [])
        assert b"Infinity" not in sent
        assert b'"logprob":null' in sent
        assert b"123456789012345678901234567890" in sent
        direct, through = await read_both(one)
        assert (direct.encode("utf-16", "surrogatepass").decode("utf-16"), through) == ("a😀bc", "a😀bc")


@pytest.mark.requirement("clients:provider-json", "clients:providers")
async def test_odd_json_of_a_whole_answer_reaches_strict_clients_as_json(tmp_path: Path) -> None:
    body = completion({"role": "assistant", "content": "x"}).replace(
        b'"x"', rb'"\ud83d\ude00\ud83d", "seed": 123456789012345678901234567890, "score": NaN'
    )
    async with gateway(tmp_path, [Script([body], kind="application/json")], served=True) as one:
        sent = (await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).body
        message = json.loads(sent, parse_constant=pytest.fail)["choices"][0]["message"]
        assert message == {
            "role": "assistant", "content": "😀\ufffd", "seed": 123456789012345678901234567890, "score": None,
        }  # fmt: skip
        async with one.client() as client:
            create: Any = client.chat.completions.create
            assert (await create(model="m", messages=HI)).choices[0].message.content == "😀\ufffd"


@pytest.mark.requirement("clients:not-lost")
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_what_came_before_a_connection_broke_is_delivered_before_the_error(tmp_path: Path, encoding: str) -> None:
    raw = b"".join(streamed("Hello there.", size=3)[:4]) + b'data: {"choi'
    if encoding:
        packer = zlib.compressobj(wbits=31)
        raw = packer.compress(raw) + packer.flush(zlib.Z_SYNC_FLUSH)
    script = Script([raw], then="cut", headers={"Content-Encoding": encoding} if encoding else {})
    async with gateway(tmp_path, [script]) as one:
        for _ in range(20):  # whether the end comes with the bytes or after them is up to the machine
            heard = await one.stream()
            assert heard.text == "Hello the"
            assert [error["code"] for error in heard.errors] == ["upstream_cut_off"]


@pytest.mark.requirement("clients:not-lost")
async def test_a_reader_that_is_late_finds_all_that_came_before_the_connection_broke() -> None:
    pieces = streamed("Hello there.", size=3)[:4]
    async with provider([Script([b"".join(pieces)], then="cut")]) as one:
        upstream = HttpUpstream("late", one.url, None, QUICK)
        answer = await upstream.ask(b'{"stream": true}', stream=True, retry=False)
        assert isinstance(answer, HttpAnswer)
        await wait_until(lambda: answer._response.content.exception() is not None)
        assert await answer.events() == [piece.strip() for piece in pieces]
        with pytest.raises(ChatFailed, match="broke off"):
            await answer.events()
        answer.close()
        await upstream.close()


@pytest.mark.requirement("clients:not-lost", "clients:bounded")
async def test_what_came_before_an_event_without_end_is_delivered_before_the_error(tmp_path: Path) -> None:
    pieces = [b"".join(streamed("Hello.")[:2]), b"data: ", *[b"x" * 2**20] * (MAX_EVENT // 2**20 + 1)]
    async with gateway(tmp_path, [Script(pieces, then="hang")]) as one:
        heard = await one.stream()
        assert (heard.text, heard.errors[0]["code"]) == ("Hello.", "upstream_invalid_answer")
        assert "more than 8388608 bytes" in heard.errors[0]["message"]
        async with asyncio.timeout(60):
            await one.upstream.gone.wait()


@pytest.mark.requirement("clients:bounded")
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw", "members"])
@pytest.mark.parametrize("size", [1, 1000])
async def test_an_answer_that_is_compressed_although_nobody_asked_is_read(
    tmp_path: Path, encoding: str, size: int
) -> None:
    raw = b"".join(streamed("Hello, 世界. " * 50))
    packed = {
        "gzip": gzip.compress(raw),
        "deflate": zlib.compress(raw),
        "raw": zlib.compress(raw)[2:-4],
        "members": gzip.compress(raw[:700]) + gzip.compress(b"") + gzip.compress(raw[700:]) + b"trailing",
    }[encoding]
    name = {"raw": "deflate", "members": "gzip"}.get(encoding, encoding)
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    async with gateway(tmp_path, [Script(pieces, headers={"Content-Encoding": name})]) as one:
        heard = await one.stream()
        assert (heard.text, heard.finishes, heard.errors) == ("Hello, 世界. " * 50, ["stop"], [])


@pytest.mark.requirement("clients:bounded")
async def test_a_compressed_answer_that_is_broken_or_of_another_kind_is_an_error(tmp_path: Path) -> None:
    body = completion({"role": "assistant", "content": "Hello."})
    for number, (encoding, data, error) in enumerate(
        [
            ("gzip", gzip.compress(body)[:-9], "compressed answer is not complete"),
            ("gzip", b"\x1f\x8bnonsense", "compressed answer that cannot be read"),
            ("br", body, "compressed as 'br', which nobody asked for"),
        ]
    ):
        script = Script([data], kind="application/json", headers={"Content-Encoding": encoding})
        async with gateway(tmp_path / str(number), [script]) as one:
            assert error in (await one.complete())["error"]["message"]


@pytest.mark.requirement("clients:bounded")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_small_answer_that_becomes_a_huge_one_is_stopped_in_small_steps(
    tmp_path: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    packer = zlib.compressobj(9, wbits=31)
    packed = [packer.compress(piece) for piece in (b'{"choices": [{"message": {"content": "', *[b"x" * 2**20] * 256)]
    steps: list[int] = []
    plain = answer.Decompressor.step

    def step(self: answer.Decompressor) -> bytes:
        data = plain(self)
        steps.append(len(data))
        return data

    monkeypatch.setattr(answer.Decompressor, "step", step)
    script = Script([b"".join(packed)], kind="application/json", headers={"Content-Encoding": "gzip"}, then="hang")
    async with gateway(tmp_path, [script]) as one:
        error = (await one.stream()).errors[0] if stream else (await one.complete())["error"]
        assert "more than 33554432 bytes" in error["message"]
    assert max(steps) <= answer.STEP
    assert sum(steps) <= MAX_UNSTREAMED + 2 * answer.STEP


@pytest.mark.requirement("clients:bounded")
async def test_very_many_events_at_once_are_given_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    take = StreamedReply.take

    def counted(self: StreamedReply, events: list[bytes]) -> list[Chunk]:
        batches.append(len(events))
        return take(self, events)

    monkeypatch.setattr(StreamedReply, "take", counted)
    many = b"data: {}\n\n" * 20_000
    async with gateway(tmp_path, [Script([many, *streamed("Hello.")])]) as one:
        assert (await one.stream()).text == "Hello."
    assert max(batches) <= MAX_BATCH
    assert sum(batches) > 20_000


@pytest.mark.requirement("clients:bounded")
@pytest.mark.parametrize("kind", ["huge", "bomb", "many", "deep"])
async def test_a_list_of_models_is_bounded(tmp_path: Path, kind: str) -> None:
    body = {
        "huge": b'{"data": [' + b" " * (5 * 2**20) + b"]}",
        "bomb": gzip.compress(b'{"data": [' + b" " * (64 * 2**20) + b"]}"),
        "many": b'{"data": [' + b"{}," * 1_000_000 + b"{}]}",
        "deep": b'{"data": [{"id": "x", "y": ' + b"[" * 900 + b"]" * 900 + b"}]}",
    }[kind]
    headers = {"Content-Encoding": "gzip"} if kind == "bomb" else {}
    async with gateway(tmp_path, [says("Hi.")], served=True) as one, one.client() as client:
        one.upstream.models = Script([body], kind="application/json", headers=headers)
        assert [model.id async for model in await client.models.list()] == ["tour"]
        assert "list of models" in one.chat.contacts()[""].error
        one.upstream.models = replace(one.upstream.models, pieces=[b'{"data": [{"id": "fine"}]}'], headers={})
        assert [model.id async for model in await client.models.list()] == ["fine", "tour"]


@pytest.mark.requirement("clients:bounded")
async def test_an_answer_of_too_many_values_is_refused_before_it_is_read(tmp_path: Path) -> None:
    body = completion({"role": "assistant", "content": "x"}).replace(b'"x"', b"[" + b"{}," * 200_000 + b"{}]")
    async with gateway(tmp_path, [Script([body], kind="application/json")]) as one:
        assert (await one.stream()).errors[0]["code"] == "upstream_invalid_answer"
