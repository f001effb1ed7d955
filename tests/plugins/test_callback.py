"""The loopback listener for callbacks, over real sockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from tests.waiting import run_loop_once, wait_until
from toolyard.plugins.long_work.callback import (
    MAX_BODY,
    CallbackAddress,
    CallbackListener,
    CallbackResponse,
    ReadBody,
    parse_body,
    parse_callback_path,
    refuse_callback,
)
from toolyard.protocol.json import Json

TOKEN = "good-token"


class Listening:
    def __init__(self) -> None:
        self.taken: list[tuple[CallbackAddress, Json]] = []
        self.listener = CallbackListener(self.receive)
        self.base = ""

    async def receive(self, address: CallbackAddress, read_body: ReadBody) -> CallbackResponse:
        if address.token != TOKEN:
            return CallbackResponse(HTTPStatus.UNAUTHORIZED, {"status": "error"})
        body = await read_body()
        if isinstance(body, CallbackResponse):
            return body
        value, problem = parse_body(body)
        if problem:
            return refuse_callback(HTTPStatus.BAD_REQUEST, problem)
        self.taken.append((address, value))
        return CallbackResponse(HTTPStatus.OK, {"status": "success"})

    async def send(self, raw: bytes) -> tuple[int, Json]:
        """Return the response to these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.base.split(":")[2].split("/")[0]))
        writer.write(raw)
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    async def post(self, path: str, body: bytes = b"{}", headers: str = "") -> tuple[int, Json]:
        return await self.send(
            f"POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body
        )


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    opened = Listening()
    opened.base = await opened.listener.open()
    yield opened
    await opened.listener.close()


PATH = f"/plugin-callback/~{TOKEN}/Video/req-1"


@pytest.mark.requirement("callback:listener", "callback:address")
async def test_a_callback_to_the_base_address_with_token_plugin_and_id_is_taken(listening: Listening) -> None:
    assert listening.base.startswith("http://127.0.0.1:")
    assert listening.base.endswith("/plugin-callback/~")
    body = '{"message": "好"}'.encode()
    assert await listening.post(PATH, body, "Content-Type: application/json; charset=utf-8\r\n") == (
        200,
        {"status": "success"},
    )
    assert listening.taken == [(CallbackAddress(TOKEN, "Video", "req-1"), {"message": "好"})]


@pytest.mark.requirement("r:R56", "s:S-04")
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", "", 400),
        (b"", "", 400),
        (b"[" * 5000 + b"]" * 5000, "", 400),
        (b"[" * 100_000 + b"]" * 100_000, "", 400),
        (b"a=b", "Content-Type: application/x-www-form-urlencoded\r\n", 415),
        (b"{}", "Content-Type: text/plain\r\n", 415),
        (b'{"a": NaN}', "", 400),
    ],
)
async def test_a_body_that_is_no_sound_json_is_refused(
    listening: Listening, body: bytes, headers: str, status: int
) -> None:
    assert (await listening.post(PATH, body, headers))[0] == status
    assert listening.taken == []


@pytest.mark.requirement("r:R56", "s:S-04")
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(listening: Listening) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {300 * 2**20}\r\n\r\n".encode()
    assert (await listening.send(head))[0] == 413
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    endless = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert (await listening.send(endless + chunk * (MAX_BODY // 0x10000 + 2)))[0] == 413
    assert listening.taken == []


@pytest.mark.requirement("s:S-04", "s:S-01")
async def test_a_bad_token_is_refused_from_the_headers_alone(listening: Listening) -> None:
    head = f"POST {PATH.replace(TOKEN, 'bad')} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()
    assert (await listening.send(head))[0] == 401


@pytest.mark.requirement("r:R56")
async def test_a_body_that_never_comes_meets_the_limit(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.plugins.long_work.callback._BODY_S", 0.2)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{{".encode()
    assert (await listening.send(head))[0] == 408


@pytest.mark.requirement("callback:listener", "task:readopted")
async def test_a_caller_without_an_answer_is_cut_off_when_the_listener_closes(listening: Listening) -> None:
    port = int(listening.base.split(":")[2].split("/")[0])
    halves = [f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{{".encode(), b""]
    talks = [await asyncio.open_connection("127.0.0.1", port) for _ in halves]
    for (_, writer), half in zip(talks, halves, strict=True):
        writer.write(half)
    async with asyncio.timeout(60):
        await wait_until(lambda: len(listening.listener._exchanges) >= len(talks))
        await listening.listener.close()
        for reader, writer in talks:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()


@pytest.mark.requirement("callback:listener")
async def test_all_who_ask_at_once_get_one_listener_also_when_one_of_them_gives_up() -> None:
    opened = Listening()
    asking = [asyncio.create_task(opened.listener.open()) for _ in range(3)]
    await run_loop_once()  # each of them has begun
    asking.pop(0).cancel()
    first, second = await asyncio.gather(*asking)
    assert first == second
    await opened.listener.close()


@pytest.mark.requirement("callback:listener")
async def test_nothing_but_callbacks_is_served(listening: Listening) -> None:
    assert (await listening.post("/"))[0] == 404
    assert (await listening.post("/plugin-callback/Video/req-1"))[0] == 404
    assert (await listening.post(f"{PATH}/more"))[0] == 404
    assert (await listening.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode()))[0] == 405
    assert (await listening.send(b"nonsense\r\n\r\n"))[0] == 400
    assert listening.taken == []


@pytest.mark.requirement("s:S-02")
@pytest.mark.parametrize(
    ("path", "plugin", "task_id"),
    [
        ("/plugin-callback/~t/a/x%2f..%2fy", "a", "x/../y"),
        ("/plugin-callback/~t/a/%252f", "a", "%2f"),
        ("/plugin-callback/~t/%2e%2e/b", "..", "b"),
    ],
)
def test_parts_of_a_path_are_decoded_once_and_after_it_was_split(path: str, plugin: str, task_id: str) -> None:
    assert parse_callback_path(path) == CallbackAddress("t", plugin, task_id)
