"""What a model provider does wrong, and what the client then sees: an error and the end, never a hang or a guess."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import ME, QUICK, chat_body, gateway, request
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says, streamed
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.providers.answer import Limits

BLOCK = request(text="hello")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"


@pytest.fixture(autouse=True)
async def bounded() -> AsyncIterator[None]:
    """Nothing here may hang."""
    async with asyncio.timeout(300 if SOAK else 180):
        yield


@pytest.mark.requirement("r:R70", "r:R71", "s:S-26")
async def test_a_stream_cut_at_any_byte_runs_nothing_and_never_looks_finished(tmp_path: Path) -> None:
    pieces = streamed(f"I will.\n{BLOCK}\nSo.", size=9)
    stream_bytes = b"".join(pieces)
    ends = stream_bytes.index(b'"finish_reason": "stop"')  # from here on the reply has said that it is over
    ended = stream_bytes.index(b"\n\n", ends)
    cuts = (
        range(len(stream_bytes))
        if SOAK
        else [*range(0, len(stream_bytes), 61), ends, *range(ended - 2, ended + 4), len(stream_bytes)]
    )
    script = Script()
    async with gateway(tmp_path, lambda _: replies("Done.")({"stream": True}) if one.ran else script) as one:
        for cut in cuts:
            script.pieces, script.then = [stream_bytes[:cut]], "cut"
            one.ran.clear()
            heard = await one.stream()
            if cut < ended + 2:
                assert (one.ran, heard.finishes, heard.done) == ([], [], 0), cut
                assert [error["code"] for error in heard.errors] == ["upstream_cut_off"], cut
            else:
                assert (len(one.ran), heard.finishes, heard.done, heard.errors) == (1, ["stop"], 1, []), cut


@pytest.mark.requirement("r:R70")
async def test_an_end_without_finish_or_done_is_no_end(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(streamed(BLOCK)[:-2])]) as one:
        heard = await one.stream()
        assert (one.ran, heard.finishes, heard.done) == ([], [], 0)
        assert "broke off" in heard.errors[0]["message"]


@pytest.mark.requirement("r:R70")
@pytest.mark.parametrize("ended", [True, False])
async def test_of_several_answers_the_last_to_finish_ends_the_reply(tmp_path: Path, ended: bool) -> None:
    one_of = [chunk({"content": "A"}), chunk({"content": "B"}), chunk({}, "stop"), chunk({"content": "B"})]
    other = [piece.replace(b'"index": 0', b'"index": 1') for piece in (one_of[1], one_of[3], one_of[2])]
    pieces = [one_of[0], other[0], one_of[2], other[1], *([other[2]] if ended else [])]
    async with gateway(tmp_path, [Script(pieces)]) as one:
        heard = await one.stream(n=2)
        assert (heard.text, heard.done) == ("ABB", int(ended))
        assert [error["code"] for error in heard.errors] == ([] if ended else ["upstream_cut_off"])


@pytest.mark.requirement("r:R71")
@pytest.mark.parametrize("missing", ["done", "finish", "twice"])
async def test_either_finish_or_done_is_an_end(tmp_path: Path, missing: str) -> None:
    pieces = streamed(BLOCK)
    left = {"done": pieces[:-1], "finish": [*pieces[:-2], DONE], "twice": [*pieces, DONE, chunk({"content": "x"})]}
    async with gateway(tmp_path, [Script(left[missing]), says("Done.")]) as one:
        heard = await one.stream()
        assert (len(one.ran), heard.finishes, heard.done) == (1, ["stop"], 1)


@pytest.mark.requirement("r:R73")
async def test_text_split_at_every_byte_gives_what_no_stream_gives(tmp_path: Path) -> None:
    text = f"先看。\n{BLOCK}\n好。"
    raw = b"".join(streamed(text, size=3))
    async with gateway(tmp_path / "whole", replies(text, "完。")) as one:
        expected = (await one.complete())["choices"][0]["message"]["content"]
    sizes = [1, 2, 3] if not SOAK else [*range(1, 40)]
    for size in sizes:
        pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
        async with gateway(tmp_path / str(size), [Script(pieces), says("完。")]) as one:
            heard = await one.stream()
            assert (heard.text, len(one.ran)) == (expected, 1)


@pytest.mark.requirement("r:R72")
@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_before_the_first_byte_is_tried_again(tmp_path: Path, status: int, stream: bool) -> None:
    refusal = Script([b'{"error": {"message": "busy"}}'], status=status, kind="application/json")
    async with gateway(tmp_path, [refusal, refusal, says("Hi.", stream=stream)]) as one:
        text = (await one.stream()).text if stream else (await one.complete())["choices"][0]["message"]["content"]
        assert (text, len(one.upstream.bodies)) == ("Hi.", 3)


@pytest.mark.requirement("r:R72")
async def test_retry_after_is_honoured_and_a_long_one_is_left_to_the_client(tmp_path: Path) -> None:
    busy = Script([b"{}"], status=429, kind="application/json", headers={"Retry-After": "1"})
    async with gateway(tmp_path / "short", [busy, says("Hi.", stream=False)]) as one:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await one.complete()
        assert loop.time() - began >= 1
    busy = replace(busy, headers={"Retry-After": "3600"})
    async with gateway(tmp_path / "long", [busy]) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))
        assert (run.status, run.headers["Retry-After"], len(one.upstream.bodies)) == (429, "3600", 1)
    busy = replace(busy, headers={"Retry-After": "五"})  # no header can carry it
    async with gateway(tmp_path / "odd", [busy]) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))
        assert (run.status, run.headers) == (429, {})


@pytest.mark.requirement("r:R72")
async def test_a_provider_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with gateway(tmp_path, [], settings={"upstream_url": url}) as one:
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
    assert (run.status, json.loads(run.body)["error"]["code"]) == (502, "upstream_unreachable")


@pytest.mark.requirement("r:R74")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 404])
async def test_html_is_a_clear_error(tmp_path: Path, stream: bool, status: int) -> None:
    page = Script([b"<html><body>Not here</body></html>"], status=status, kind="text/html")
    async with gateway(tmp_path, [page]) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=stream), caller=ME))
        body = b"".join([piece async for piece in run.pieces]) if run.pieces else run.body
    assert b"Not here" in body
    assert b'"error"' in body


@pytest.mark.requirement("r:R74", "chat:upstream")
@pytest.mark.parametrize(
    ("status", "expected"), [(400, 400), (404, 404), (413, 413), (401, 502), (403, 502), (302, 502)]
)
async def test_the_providers_own_error_is_kept(tmp_path: Path, status: int, expected: int) -> None:
    own = {"message": "that is wrong", "type": "x", "code": "y", "odd": 1}
    script = Script([json.dumps({"error": own}).encode()], status=status, kind="application/json")
    async with gateway(tmp_path, [replace(script, headers={"Location": "/elsewhere"})]) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
        error = json.loads(run.body)["error"]
        shown = error.pop("toolyard")["message"]
        assert (run.status, error, len(one.upstream.bodies)) == (expected, own, 1)
        assert shown.startswith(f"The model provider 'upstream' answered {status} (y): that is wrong")


ODD_CHUNKS: dict[str, Any] = {
    "empty choices": b'data: {"id": "1", "choices": [], "prompt_filter_results": []}\n\n',
    "null content": chunk({"role": "assistant", "content": None}),
    "null delta": b'data: {"id": "1", "choices": [{"index": 0, "delta": null, "finish_reason": null}]}\n\n',
    "reasoning": chunk({"reasoning_content": BLOCK}),
    "comment": b": PROCESSING\n\n",
    "usage early": b'data: {"id": "1", "choices": [], "usage": {"total_tokens": 3}}\n\n',
}


@pytest.mark.requirement("r:R74", "s:S-24")
@pytest.mark.parametrize("name", ODD_CHUNKS)
async def test_odd_chunks_pass_through(tmp_path: Path, name: str) -> None:
    pieces = [ODD_CHUNKS[name], *streamed("Hi.", usage={"total_tokens": 9})]
    async with gateway(tmp_path, [Script(pieces)]) as one:
        heard = await one.stream()
        assert (heard.text, heard.finishes, heard.done, heard.errors, one.ran) == ("Hi.", ["stop"], 1, [], [])
    assert [event["usage"] for event in heard.events if "usage" in event][-1] == {"total_tokens": 9}


@pytest.mark.requirement("r:R74")
@pytest.mark.parametrize("message", [{"role": "assistant", "content": None}, {"reasoning_content": "hm"}, {}, None])
async def test_odd_whole_answers_pass_through(tmp_path: Path, message: Any) -> None:
    body = completion(message)
    async with gateway(tmp_path, [Script([body], kind="application/json")]) as one:
        assert (await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).body == body
    empty = b'{"id": "1", "choices": []}'
    async with gateway(tmp_path / "empty", [Script([empty], kind="application/json")]) as one:
        assert (await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).body == empty


@pytest.mark.requirement("r:R74", "s:S-24")
@pytest.mark.parametrize("stream", [True, False])
async def test_text_that_comes_in_parts_is_read_and_not_lost(tmp_path: Path, stream: bool) -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": BLOCK}]}
    contents = [[thought, {"type": "text", "text": text}] for text in (f"I look.\n{BLOCK}", "Done.")]

    def script(parts: list[dict[str, Any]]) -> Script:
        if stream:
            return Script([chunk({"role": "assistant", "content": parts}), chunk({}, "stop"), DONE])
        return Script([completion({"role": "assistant", "content": parts})], kind="application/json")

    async with gateway(tmp_path, [script(parts) for parts in contents]) as one:
        if stream:
            heard = [event["choices"][0]["delta"].get("content") for event in (await one.stream()).events]
            assert heard == ["I look.\n", "\n> ✓ Say: Said it.\n\n", contents[1], None]
        else:
            answer = (await one.complete())["choices"][0]["message"]["content"]
            assert answer == "I look.\n\n> ✓ Say: Said it.\n\nDone."
        assert len(one.ran) == 1
        assert one.upstream.bodies[1]["messages"][1]["content"] == f"I look.\n{BLOCK}"


@pytest.mark.requirement("r:R74")
async def test_a_whole_answer_to_a_request_for_a_stream_is_streamed(tmp_path: Path) -> None:
    first, second = (says(text, stream=False) for text in (f"I look.\n{BLOCK}", "Done."))
    async with gateway(tmp_path, [first, second]) as one:
        heard = await one.stream()
        assert (heard.text, heard.finishes, heard.done, len(one.ran)) == (
            "I look.\n\n> ✓ Say: Said it.\n\nDone.", ["stop"], 1, 1,
        )  # fmt: skip


async def rounds_of_the_loop(seconds: float) -> int:
    """How often the event loop wakes while nothing is to be done. Who spins wakes it thousands of times."""
    selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    select, rounds = selector.select, 0

    def counted(timeout: float | None = None) -> Any:
        nonlocal rounds
        rounds += 1
        return select(timeout)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(selector, "select", counted)
        await asyncio.sleep(seconds)
    return rounds


@pytest.mark.requirement("r:R74", "r:R74b", "r:R70")
@pytest.mark.parametrize(
    "event", [b"data: {broken\n\n", b"data: [1]\n\n", b'data: {"error": {"message": "overloaded"}}\n\n']
)
async def test_an_error_in_mid_stream_is_one_error_and_the_end(tmp_path: Path, event: bytes) -> None:
    async with gateway(tmp_path, [Script([*streamed(BLOCK)[:-2], event], then="hang")]) as one:
        heard = await one.stream()
        assert (len(heard.errors), heard.finishes, heard.done, one.ran) == (1, [], 0, [])
        assert await rounds_of_the_loop(0.2) < 100  # nobody spins
        async with asyncio.timeout(60):
            await one.upstream.gone.wait()


@pytest.mark.requirement("r:R75")
def test_the_limits_are_those_that_are_promised() -> None:
    assert (Limits().connect_s, Limits().first_byte_s, Limits().idle_s) == (10, 120, 60)


@pytest.mark.requirement("r:R75")
async def test_a_silent_provider_meets_the_limit(tmp_path: Path) -> None:
    quick = replace(QUICK, first_byte_s=0.2, whole_s=0.2)
    async with gateway(tmp_path / "first", [Script(late_s=300)], limits=quick) as one:
        for stream in (True, False):
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=stream), caller=ME))
            assert (run.status, json.loads(run.body)["error"]["code"]) == (504, "upstream_timeout")
        assert len(one.upstream.bodies) <= 2  # none was sent again
    quick = replace(QUICK, idle_s=0.2)
    async with gateway(tmp_path / "idle", [Script(streamed("Hi. " * 5)[:3], then="hang")], limits=quick) as one:
        heard = await one.stream()
        assert (heard.errors[0]["code"], heard.done) == ("upstream_timeout", 0)
        assert "silent for 0.2 s" in heard.errors[0]["message"]


@pytest.mark.requirement("r:R75")
async def test_bytes_that_drip_are_no_events(tmp_path: Path) -> None:
    drip = [bytes([byte]) for byte in streamed("Hello.")[1]]
    async with gateway(
        tmp_path, [Script([streamed("x")[0], *drip], pause_s=0.05)], limits=replace(QUICK, idle_s=0.5)
    ) as one:
        assert (await one.stream()).errors[0]["code"] == "upstream_timeout"


@pytest.mark.requirement("r:R75")
async def test_an_address_that_takes_no_connection_meets_the_limit(tmp_path: Path) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with socket.create_connection(address), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(address)
            url = f"http://127.0.0.1:{address[1]}"
            limits = replace(QUICK, connect_s=0.3, first_byte_s=5, tries=1)
            async with gateway(tmp_path, [], settings={"upstream_url": url}, limits=limits) as one:
                run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
    assert (run.status, json.loads(run.body)["error"]["code"]) in (
        (504, "upstream_timeout"),
        (502, "upstream_unreachable"),
    )
