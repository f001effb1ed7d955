"""The security middleware: hosts, origins, bodies, proxies, and the request log."""

import asyncio
import io
import json
import logging
import threading
from pathlib import Path

import aiohttp
import pytest

from tests.waiting import run_loop_once, wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.config import load_config
from toolyard.engine.step_limiter import StepLimiter
from toolyard.errors import ConfigError
from toolyard.web.security.cors import is_allowed_origin
from toolyard.web.security.request_head import RequestHead, make_host_policy
from toolyard.web.server.connection import BoundedHttpProtocol
from toolyard.web.server.lifecycle import ServerOptions
from toolyard.web.server.logs import JsonFormatter, QueuedLog, escape_unprintable

EVIL = "https://evil.example"


@pytest.mark.requirement("s:S-42")
@pytest.mark.parametrize(
    "host",
    ["evil.com", "127.0.0.1.nip.io", "127.0.0.1", "127.0.0.1:1", "localhost:80@evil.com", "", "[::1", "x" * 5000],
)
async def test_a_host_that_is_not_ours_is_misdirected(running_server: RunningServer, host: str) -> None:
    for path in ("/healthz", "/v1/tools", "/login", "/mcp"):
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {running_server.key}\r\n\r\n"
        assert (await running_server.send_raw(head.encode()))[0] == 421


@pytest.mark.requirement("s:S-42")
async def test_a_request_or_a_websocket_without_a_good_host_is_refused(running_server: RunningServer) -> None:
    assert (await running_server.send_raw(b"GET /healthz HTTP/1.0\r\n\r\n"))[0] == 421
    two = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\nHost: evil.com\r\n\r\n"
    assert (await running_server.send_raw(two.encode()))[0] in (400, 421)
    socket = (
        f"GET /ws HTTP/1.1\r\nHost: evil.com\r\nAuthorization: Bearer {running_server.key}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert (await running_server.send_raw(socket.encode()))[0] == 421
    for host in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        head = f"GET /healthz HTTP/1.1\r\nHost: {host}:{running_server.port}\r\n\r\n"
        assert (await running_server.send_raw(head.encode()))[0] == 200


@pytest.mark.requirement("s:S-42")
async def test_hosts_of_the_settings_are_ours(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings='allowed_hosts = ["yard.example.org"]') as running:
        assert (await running.get("/healthz", headers={"Host": "Yard.example.org"})).status == 200
        assert (await running.get("/healthz", headers={"Host": "yard.example.org:80"})).status == 421


@pytest.mark.requirement("s:S-42", "s:S-43", "s:S-48")
@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ('allowed_hosts = ["http://yard.example.org"]', "not a host"),
        ('allowed_hosts = ["*"]', "not a host"),
        ('allowed_origins = ["*"]', "not an origin"),
        ('allowed_origins = ["https://a.example/path"]', "not an origin"),
        ('trusted_proxies = ["everybody"]', "not an address or a network"),
    ],
)
def test_a_setting_that_would_let_in_anybody_or_nobody_is_refused(tmp_path: Path, setting: str, hint: str) -> None:
    (tmp_path / "config.toml").write_text(setting)
    with pytest.raises(ConfigError, match=hint):
        load_config(tmp_path, tmp_path)


@pytest.mark.requirement("s:S-43")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": EVIL},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_pages_of_others_change_nothing(running_server: RunningServer, headers: dict[str, str]) -> None:
    write = {"path": "a.txt", "content": "x"}
    assert (await running_server.post("/v1/tools/Write", write, headers=headers)).status == 403
    sent = await running_server.request("POST", "/login", key=None, data={"key": running_server.key}, headers=headers)
    assert sent.status == 403
    assert not (running_server.project / "a.txt").exists()


@pytest.mark.requirement("s:S-43")
async def test_pages_of_our_own_and_of_allowed_origins_may(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=f'allowed_origins = ["{EVIL}"]') as running:
        own = await running.post("/v1/tools/LS", {}, headers={"Origin": running.url, "Sec-Fetch-Site": "same-origin"})
        assert (own.status, "Access-Control-Allow-Origin" in own.headers) == (200, False)
        guest = await running.post("/v1/tools/LS", {}, headers={"Origin": EVIL, "Sec-Fetch-Site": "cross-site"})
        assert (guest.status, guest.headers["Access-Control-Allow-Origin"]) == (200, EVIL)
        request = await running.request("OPTIONS", "/v1/tools/LS", key=None, headers={"Origin": EVIL})
        assert (request.status, request.headers["Access-Control-Allow-Origin"]) == (204, EVIL)
        other = await running.request("OPTIONS", "/v1/tools/LS", key=None, headers={"Origin": "https://other.example"})
        assert (other.status, "Access-Control-Allow-Origin" in other.headers) == (401, False)


@pytest.mark.requirement("s:S-43")
def test_an_allowed_origin_may_be_written_with_capitals() -> None:
    near = make_host_policy("127.0.0.1", 6005, origins=["https://Chat.Example.org"])
    sent = [(b"origin", b"https://chat.example.org")]
    head = RequestHead(method="POST", path="/", query="", headers=sent, address="127.0.0.1", scheme="http")
    assert is_allowed_origin(head, near)


@pytest.mark.requirement("s:S-43")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_json_must_be_called_json(running_server: RunningServer, kind: str) -> None:
    body = b'{"path": "a.txt", "content": "x"}'
    response = await running_server.request("POST", "/v1/tools/Write", data=body, headers={"Content-Type": kind})
    assert (response.status, (running_server.project / "a.txt").exists()) == (415, False)


@pytest.mark.requirement("s:S-43")
async def test_a_get_changes_nothing(running_server: RunningServer) -> None:
    await running_server.post("/v1/tools/LS", {})
    before = await running_server.yard.state.store.event_span()
    for path in (
        "/v1/tools/LS",
        "/v1/calls",
        "/login?key=x",
        "/logout",
        "/ws-ticket",
        "/v1/keys",
        "/plugin-callback/~a/b/c",
    ):
        await running_server.get(path)
    assert await running_server.yard.state.store.event_span() == before


@pytest.mark.requirement("s:S-44")
async def test_a_websocket_from_a_foreign_page_is_refused_at_the_handshake(running_server: RunningServer) -> None:
    headers = {"Authorization": f"Bearer {running_server.key}", "Origin": EVIL}
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await running_server.client.ws_connect(f"{running_server.url}/ws", headers=headers)
    assert refused.value.status == 403
    async with running_server.client.ws_connect(
        f"{running_server.url}/ws", headers={**headers, "Origin": running_server.url}
    ) as socket:
        assert not socket.closed


@pytest.mark.requirement("s:S-04")
async def test_nobody_without_a_key_gets_to_send_a_body(running_server: RunningServer) -> None:
    """The head alone is answered: the body that it announces never comes."""
    for path in ("/v1/tools/LS", "/v1/chat/completions", "/plugin-callback/~x/Video/1"):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {300 * 2**20}\r\n\r\n"
        )
        assert (path, (await running_server.send_raw(head.encode()))[0]) == (path, 401)


@pytest.mark.requirement("s:S-04")
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(running_server: RunningServer) -> None:
    head = (
        f"POST /v1/tools/LS HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\n"
        f"Authorization: Bearer {running_server.key}\r\nContent-Type: application/json\r\n"
    )
    assert (await running_server.send_raw(f"{head}Content-Length: {8 * 2**20 + 1}\r\n\r\n".encode()))[0] == 413
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    endless = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 9
    assert (await running_server.send_raw(endless))[0] == 413


@pytest.mark.requirement("s:S-04")
async def test_a_body_that_never_comes_meets_the_limit(tmp_path: Path) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, body_s=0.2)) as running:
        head = (
            f"POST /v1/tools/LS HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nAuthorization: Bearer {running.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
        )
        assert (await running.send_raw(head.encode()))[0] == 408


@pytest.mark.requirement("s:S-48")
async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(tmp_path: Path) -> None:
    async with run_server(tmp_path / "plain") as running:
        for number in range(30):
            await running.get("/v1/tools", key="wrong", headers={"X-Forwarded-For": f"10.0.0.{number}"})
        assert (await running.get("/v1/tools", key="wrong", headers={"X-Forwarded-For": "10.1.1.1"})).status == 429
    async with run_server(tmp_path / "proxied", settings='trusted_proxies = ["127.0.0.0/8"]') as running:
        for _ in range(30):
            await running.get("/v1/tools", key="wrong", headers={"X-Forwarded-For": "10.9.9.9, 10.0.0.1, 127.0.0.2"})
        assert (await running.get("/v1/tools", key="wrong", headers={"X-Forwarded-For": "10.0.0.1"})).status == 429
        assert (await running.get("/v1/tools", key="wrong", headers={"X-Forwarded-For": "10.9.9.9"})).status == 401
        https = {"X-Forwarded-Proto": "https"}
        signed = await running.request("POST", "/login", key=None, data={"key": running.key}, headers=https)
        assert "secure" in signed.headers["Set-Cookie"].lower()


@pytest.mark.requirement("s:S-45", "s:S-53")
async def test_the_log_is_json_without_keys_queries_or_hidden_characters(running_server: RunningServer) -> None:
    stream = io.StringIO()
    log = QueuedLog(stream, JsonFormatter())
    logger = logging.getLogger("toolyard.web")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        await running_server.get(f"/v1/tools?api_key={running_server.key}")
        await running_server.get("/v1/tools/%0a%5bINFO%5d%20approved%1b%5d0%3b%e2%80%ae")
        await running_server.post("/plugin-callback/~secret-token/Video/1", {}, key=None)
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        log.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["status"] for line in lines] == [200, 404, 401]
    assert lines[1]["path"] == "/v1/tools/\\u000a[INFO] approved\\u001b]0;\\u202e"
    assert all(line["request"].startswith("req_") and line["at"] for line in lines)
    for secret in (running_server.key, "secret-token", "\x1b", "\u202e", "api_key"):
        assert secret not in stream.getvalue()


@pytest.mark.requirement("s:S-53")
def test_characters_that_do_not_show_themselves_are_written_as_numbers() -> None:
    hidden = "\n\r\t\0\x1b\x7f\x85\u200b\u200f\u2028\u202e\u2066\ufeff\ud800"
    assert all(one not in escape_unprintable(f"a{one}b") for one in hidden)
    assert escape_unprintable("日本語 Ünïcödé 🙂") == "日本語 Ünïcödé 🙂"


@pytest.mark.requirement("s:S-45")
def test_the_log_masks_what_it_is_told_to_mask() -> None:
    formatter = JsonFormatter(lambda text: text.replace("hunter22", "[masked]"))
    record = logging.makeLogRecord({"name": "x", "msg": "key hunter22", "levelname": "INFO"})
    record.fields = {"path": "/hunter22", "status": 200}
    assert "hunter22" not in formatter.format(record)


class StuckDisk(io.StringIO):
    """A disk that writes nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.free = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        self.free.wait(180)
        return super().write(text)


@pytest.mark.requirement("r:R65")
async def test_a_stuck_log_disk_drops_the_oldest_lines_and_holds_up_no_call(running_server: RunningServer) -> None:
    disk = StuckDisk()
    log = QueuedLog(disk, JsonFormatter(), most=5)
    logger = logging.getLogger("toolyard.web")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        async with asyncio.timeout(60):
            for _ in range(20):
                assert (await running_server.get("/v1/tools")).status == 200
        assert log.dropped >= 10
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        disk.free.set()
        log.close()
    lines = [json.loads(line) for line in disk.getvalue().splitlines()]
    assert any("log lines were dropped" in line["message"] for line in lines)
    assert len(lines) < 20


@pytest.mark.requirement("p:P6")
async def test_a_head_that_never_ends_is_closed_by_its_size(running_server: RunningServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running_server.port)
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\nX: ".encode())
    async with asyncio.timeout(60):
        try:
            while not reader.at_eof() and not reader._buffer:  # type: ignore[attr-defined]
                writer.write(b"x" * 4096)
                await writer.drain()
                await run_loop_once()
            answer = await reader.read()
        except ConnectionError:
            answer = b"HTTP/1.1 431"  # it was closed while more of it was sent
    writer.close()
    assert answer.startswith(b"HTTP/1.1 431")
    assert (await running_server.get("/healthz")).status == 200


@pytest.mark.requirement("p:P6")
@pytest.mark.parametrize("begun", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_does_not_come_is_closed_after_its_time(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(BoundedHttpProtocol, "head_s", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", running_server.port)
    writer.write(begun)
    async with asyncio.timeout(60):
        assert (await reader.read()).startswith(b"HTTP/1.1 408")
    writer.close()


@pytest.mark.requirement("p:P6")
async def test_the_second_request_of_a_connection_has_a_time_and_a_size_too(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running_server.port)
    whole = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\n\r\n".encode()
    async with asyncio.timeout(60):
        for _ in range(3):
            writer.write(whole)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
        monkeypatch.setattr(BoundedHttpProtocol, "head_s", 0.2)
        writer.write(b"GET /hea")
        assert (await reader.read()).startswith(b"HTTP/1.1 408")
    writer.close()


@pytest.mark.requirement("http:errors")
@pytest.mark.parametrize("path", ["/v1/tools/LS", "/v1/chat/completions", "/v1/schedules"])
async def test_a_client_that_leaves_before_its_body_is_whole_is_no_bug(
    running_server: RunningServer, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    caplog.set_level(logging.INFO, "toolyard.web")
    _, writer = await asyncio.open_connection("127.0.0.1", running_server.port)
    writer.write(
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\nContent-Length: 9\r\n"
        f"Authorization: Bearer {running_server.key}\r\nContent-Type: application/json\r\n\r\n{{".encode()
    )
    await writer.drain()
    async with asyncio.timeout(60):
        await wait_until(lambda: running_server.server.drain.running_count)
        writer.close()
        await running_server.server.drain.wait_idle()
    result = [record for record in caplog.records if getattr(record, "fields", {}).get("path") == path]
    assert [record.__dict__["fields"]["status"] in (400, 499) for record in result] == [True]
    assert "a bug in Toolyard" not in caplog.text


@pytest.mark.requirement("http:probes")
async def test_who_watches_the_server_does_not_wait_behind_a_burst(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, waiting = asyncio.Event(), asyncio.Event()

    async def wait_for_turn(_: StepLimiter) -> None:
        waiting.set()
        await turn.wait()

    monkeypatch.setattr(StepLimiter, "step", wait_for_turn)
    async with asyncio.timeout(60):
        listing = asyncio.create_task(running_server.get("/v1/tools"))
        await waiting.wait()
        assert [(await running_server.get(path)).status for path in ("/healthz", "/readyz")] == [200, 200]
        assert not listing.done()
        turn.set()
        assert (await listing).status == 200
