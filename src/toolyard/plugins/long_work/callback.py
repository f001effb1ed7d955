"""The loopback listener for callbacks: every process that starts asynchronous children has one.

It takes ``POST /plugin-callback/~TOKEN/{plugin}/{id}`` and nothing else. The token is checked before a byte of the
body is read. Bodies are JSON objects of at most 8 MiB that arrive within 30 s; at most 64 connections at a time, and
each is closed after its one answer.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import h11

from toolyard.crashpoint import crashpoint
from toolyard.protocol.json import Json, json_problem

PATH: Final = "/plugin-callback/"
MAX_BODY: Final = 8 * 2**20
_BODY_S = 30.0
_CONNECTIONS = 64
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class CallbackAddress:
    token: str
    plugin: str
    task_id: str


@dataclass(frozen=True, slots=True)
class CallbackResponse:
    status: HTTPStatus
    body: Json


ReadBody = Callable[[], Awaitable[bytes | CallbackResponse]]
"""Reads the body of a callback, or returns the response that refuses it."""
ReceiveCallback = Callable[[CallbackAddress, ReadBody], Awaitable[CallbackResponse]]
"""Receives a callback: checks its token before ``ReadBody`` is called."""


def parse_callback_path(path: str) -> CallbackAddress | None:
    """Return token, plugin and id of a callback's path; each part is decoded once, after the path was split."""
    parts = path.removeprefix(PATH).split("/")
    if not path.startswith(PATH) or len(parts) != 3 or not parts[0].startswith("~"):
        return None
    token, plugin, task_id = (unquote(part) for part in parts)
    return CallbackAddress(token[1:], plugin, task_id)


class CallbackListener:
    """A listener on 127.0.0.1, while it is open."""

    def __init__(self, receive: ReceiveCallback) -> None:
        self._receive = receive
        self._opening: asyncio.Task[asyncio.Server] | None = None
        self._room = asyncio.Semaphore(_CONNECTIONS)
        self._exchanges: set[asyncio.Task[None]] = set()

    async def open(self, port: int = 0) -> str:
        """Start to listen, once for all callers. Return the base address, which a token follows."""
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(asyncio.start_server(self._handle_connection, "127.0.0.1", port))
        server = await asyncio.shield(self._opening)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}~"

    async def close(self) -> None:
        """Stop listening. Callers without an answer are cut off, and may call the next listener."""
        opening, self._opening = self._opening, None
        if opening is not None:
            await asyncio.wait({opening})
            if not opening.exception():
                opening.result().close()
            for exchange in self._exchanges:
                exchange.cancel()
            await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._exchanges.add(task)
            task.add_done_callback(self._exchanges.discard)
        try:
            if self._opening is not None:  # else it came in the moment of the end
                async with self._room:
                    await self._exchange(_HttpExchange(reader, writer))
        except asyncio.CancelledError:
            pass  # by ``close``, which waits for it
        finally:
            writer.transport.abort()  # nobody else would close what was cut off

    async def _exchange(self, exchange: "_HttpExchange") -> None:
        try:
            async with asyncio.timeout(_BODY_S):
                response = await self._answer(exchange)
        except TimeoutError:
            response = refuse_callback(HTTPStatus.REQUEST_TIMEOUT, "the request took too long")
        except (h11.RemoteProtocolError, ConnectionError) as error:
            response = refuse_callback(HTTPStatus.BAD_REQUEST, f"not a valid HTTP request: {error}")
        await exchange.respond(response)

    async def _answer(self, exchange: "_HttpExchange") -> CallbackResponse:
        request = await exchange.read_request()
        if request is None:
            return refuse_callback(HTTPStatus.BAD_REQUEST, "no request")
        address = parse_callback_path(request.target.decode("ascii", "replace").partition("?")[0])
        if address is None:
            return refuse_callback(HTTPStatus.NOT_FOUND, "this address takes callbacks of plugins only")
        if request.method != b"POST":
            return refuse_callback(HTTPStatus.METHOD_NOT_ALLOWED, "a callback is a POST")
        return await self._receive(address, lambda: _read_body(exchange, dict(request.headers)))


async def _read_body(exchange: "_HttpExchange", headers: dict[bytes, bytes]) -> bytes | CallbackResponse:
    kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
    if kind not in (b"application/json", b"text/json"):
        return refuse_callback(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the result as application/json")
    size = headers.get(b"content-length", b"0")
    body = None if int(size) > MAX_BODY else await exchange.read_body()
    if body is None:
        return refuse_callback(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY} bytes")
    return body


def parse_body(body: bytes) -> tuple[Json, str]:
    """Return the JSON of a callback's body, or the problem with it."""
    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError) as error:
        return None, f"the body is not valid JSON: {error}"
    problem = json_problem(value, "body")
    return (None, problem) if problem else (value, "")


class _HttpExchange:
    """One HTTP request and its response, after which the connection is closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER)

    async def read_request(self) -> h11.Request | None:
        event = await self._next_event()
        return event if isinstance(event, h11.Request) else None

    async def read_body(self) -> bytes | None:
        """Return the whole body; None when it is too large."""
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._writer.write(self._http.send(go_on) or b"")
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                return None
        return bytes(body)

    async def respond(self, response: CallbackResponse) -> None:
        text = json.dumps(response.body, ensure_ascii=False).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(text))), ("connection", "close")]
        try:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                head = h11.Response(status_code=int(response.status), headers=headers)
                parts = (head, h11.Data(data=text), h11.EndOfMessage())
                self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
                await self._writer.drain()
                crashpoint("callback.answered")
            self._writer.close()
            await self._writer.wait_closed()
        except (ConnectionError, h11.LocalProtocolError):
            self._writer.close()  # the caller has gone; the result is stored all the same

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event


def refuse_callback(status: HTTPStatus, message: str) -> CallbackResponse:
    """Return the response to a callback that is not taken, in VCPToolBox's shape."""
    return CallbackResponse(status, {"status": "error", "message": message})
