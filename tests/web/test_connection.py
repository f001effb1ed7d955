"""Connections: writes of one loop iteration are sent together, and disconnects are noticed."""

import asyncio

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.gateway.serving import serve
from tests.waiting import run_loop_once, wait_until
from toolyard.web.server.connection import MAX_BUFFERED, BufferedTransport, Disconnection

pytestmark = pytest.mark.requirement("chat:completions")


class RecordingTransport(asyncio.Transport):
    """A transport that notes what is done to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.done: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data))

    def close(self) -> None:
        self.done.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.done


async def test_what_is_written_in_one_round_of_the_loop_is_sent_once_and_in_order() -> None:
    noted = RecordingTransport()
    gathered = BufferedTransport(noted, asyncio.get_running_loop())
    gathered.write(b"head ")
    gathered.write(b"body")
    assert noted.done == []
    await run_loop_once()
    assert noted.done == [b"head body"]
    gathered.write(b" more")
    await run_loop_once()
    assert noted.done == [b"head body", b" more"]
    gathered.write(b"the end")
    gathered.flush()
    assert noted.done[2:] == [b"the end"]


async def test_a_lot_is_sent_at_once_and_nothing_is_lost_when_it_closes() -> None:
    noted = RecordingTransport()
    gathered = BufferedTransport(noted, asyncio.get_running_loop())
    gathered.write(b"x" * MAX_BUFFERED)
    assert noted.done == [b"x" * MAX_BUFFERED]
    gathered.write(b"the end")
    gathered.close()
    assert noted.done[1:] == [b"the end", b"closed"]
    assert gathered.is_closing()
    assert gathered.get_extra_info("peername") == ("127.0.0.1", 1)
    await run_loop_once()
    assert len(noted.done) == 3


def test_who_asks_is_told_once_that_a_client_has_left_also_when_it_had_before() -> None:
    result = list[str]()
    departure = Disconnection()
    departure.set_callback(lambda: result.append("first"))
    departure.set_callback(None)
    departure.set_callback(lambda: result.append("second"))
    assert result == []
    departure.notify()
    assert result == ["second"]
    departure.set_callback(lambda: result.append("late"))
    assert result == ["second", "late"]


async def test_requests_that_come_before_the_answer_to_the_first_are_answered_in_order() -> None:
    first = asyncio.Event()
    paths = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        if scope["path"] == "/0":
            await first.wait()
        await Response(f"{scope['path']}\n")(scope, receive, send)

    async with asyncio.timeout(60), serve(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        request = [f"GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n" for number in range(3)]
        writer.write("".join([*request, "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]).encode())
        await wait_until(lambda: paths)
        first.set()
        answered = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
    assert [line for line in answered.splitlines() if line.startswith("/")] == ["/0", "/1", "/2", "/end"]
    assert paths == ["/0", "/1", "/2", "/end"]
