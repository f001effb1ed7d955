"""Commands beside a server that no longer answers: they say so and end, and Ctrl-C always ends them."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from tests.web.server_process import run_command, start_server
from toolyard.cli.commands.call import CallRequest, call_through_server
from toolyard.cli.common_options import CommonOptions
from toolyard.config import Config
from toolyard.errors import ServerUnreachable
from toolyard.protocol.tool import ToolCall
from toolyard.web.server.running_server import CallResponse, Presence, ServerClient

WAIT_S = 60


@pytest.mark.requirement("cli:exit:unreachable", "cli:call", "cli:chat")
async def test_a_suspended_server_is_told_by_every_command_that_needs_it(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        server.signal(signal.SIGSTOP)
        ends = await asyncio.gather(
            run_command(tmp_path, "call", "LS"),
            run_command(tmp_path, "call", "LS", "path=."),
            run_command(tmp_path, "call", "LS", "--detach"),
            run_command(tmp_path, "chat"),
            run_command(tmp_path, "login"),
        )
        assert [code for code, _, _ in ends] == [4] * 5, ends
        for code, out, err in ends:
            assert (code, out, server.url in err, "restart it, or stop it and try again" in err) == (4, "", True, True)
        code, out, _ = await run_command(tmp_path, "doctor", "--json")
        [check] = [one for one in json.loads(out) if one["name"] == "server"]
        assert (code, check["health"]) == (1, "fail")
        assert f"kill -CONT {server.process.pid}" in check["fix"]
        server.signal(signal.SIGCONT)
        assert (await run_command(tmp_path, "call", "LS"))[0] == 0
        [check] = [
            one for one in json.loads((await run_command(tmp_path, "doctor", "--json"))[1]) if one["name"] == "server"
        ]
        assert check["health"] == "ok"


class _StallingServer:
    """Answers requests for a sign of life until it got another request, and nothing from then on."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._held.append(client)
                self.requests.append(client.recv(65536).split(b" HTTP")[0])
                if len(self.requests) == 1:
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def close(self) -> None:
        for one in (self._listener, *self._held):
            one.close()


@pytest.fixture
def stalling_server() -> Iterator[_StallingServer]:
    server = _StallingServer()
    yield server
    server.close()


@pytest.mark.requirement("cli:exit:unreachable")
def test_a_call_that_was_sent_before_the_server_fell_silent_is_named_and_not_repeated(
    stalling_server: _StallingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.web.server.running_server._SILENT_S", 0.01)
    monkeypatch.setattr("toolyard.web.server.running_server._STALLED_S", 0.1)
    client = ServerClient(Presence(stalling_server.address, 1, 1, "/"), "key")
    call = ToolCall(id="call_1", tool="Write", arguments={}, caller="cli")
    with pytest.raises(ServerUnreachable, match=r"call_1 was sent and may still run .* `toolyard journal show call_1`"):
        client.call(call, caller="cli")
    assert [one.split(b"?")[0] for one in stalling_server.requests] == [
        b"GET /healthz",
        b"POST /v1/tools/Write",
        b"GET /healthz",
    ]


@pytest.mark.requirement("cli:exit:unreachable", "runner:cancel")
@pytest.mark.parametrize("unreachable", [True, False])
async def test_ctrl_c_ends_a_call_that_the_server_does_not_cancel(unreachable: bool) -> None:
    never, first = threading.Event(), threading.Semaphore(1)

    class Suspended:
        def check(self) -> None: ...

        def call(self, *_: Any, **__: Any) -> CallResponse:
            signal.raise_signal(signal.SIGINT)
            never.wait()
            raise AssertionError

        def cancel(self, _: str) -> None:
            if unreachable:
                raise ServerUnreachable("it does not answer")
            if first.acquire(blocking=False):
                signal.raise_signal(signal.SIGINT)
            never.wait()

    with pytest.raises(ServerUnreachable, match=r"may still run or have run; see `toolyard journal show call_"):
        async with asyncio.timeout(WAIT_S):
            await call_through_server(
                cast("ServerClient", Suspended()),
                CallRequest(CommonOptions(quiet=True), "Slow", {}, (), "envelope", shown=False, force=False),
                cast("Config", None),
                lambda _text, _code: None,
                wait=True,
            )
    never.set()
