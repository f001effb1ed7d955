"""HTTPS of the server: certificates from files, self-signed ones, plain HTTP on the same port, and a phone's link."""

import asyncio
import json
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.fakes import FakeClock
from tests.web.conftest import RunningServer, run_server
from tests.web.server_process import run_command, start_server
from tests.web.test_serve import ASYNC, add_plugin, plugin_options
from toolyard.cli.commands.login import render_qr_code
from toolyard.config import load_config
from toolyard.errors import ToolyardError, UsageError
from toolyard.web.server.certificate import (
    RENEW_DAYS,
    VALID_DAYS,
    CertificateNames,
    Tls,
    TlsOptions,
    ensure_certificate,
    read_fingerprint,
)
from toolyard.web.server.lifecycle import Server, ServerOptions
from toolyard.web.server.listener import HttpsOnly, list_lan_addresses

WITH_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
WITH_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
WITH_ZBAR = pytest.mark.skipif(shutil.which("zbarimg") is None, reason="zbarimg is not installed")
LAN = [address for address in list_lan_addresses() if ":" not in address]
WITH_LAN = pytest.mark.skipif(not LAN, reason="this machine has no IPv4 address in a network")
SELF_SIGNED = TlsOptions(self_signed=True)


def make_certificate(folder: Path, name: str = "given", host: str = "localhost") -> TlsOptions:
    """Make a certificate with OpenSSL, as an operator would."""
    folder.mkdir(exist_ok=True)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = f"subjectAltName=DNS:{host},IP:127.0.0.1"
    words += ["-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={host}", "-addext", names]
    subprocess.run(words, check=True, capture_output=True)
    return TlsOptions(certificate=certificate, key=key)


def show_certificate(file: Path, *what: str) -> str:
    """What OpenSSL says about a certificate."""
    words = ["openssl", "x509", "-in", str(file), "-noout", *what]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@asynccontextmanager
async def https_server(place: Path, tls: TlsOptions = SELF_SIGNED, **more: Any) -> AsyncIterator[RunningServer]:
    async with run_server(place, ServerOptions(port=0, grace_s=2.0, ping_s=600.0, tls=tls, **more)) as running:
        yield running


def trust(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


async def ask_curl(*words: str) -> tuple[int, str]:
    """Ask with curl; its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "--max-time", "60", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@WITH_CURL
@WITH_OPENSSL
@pytest.mark.requirement("tls:files")
async def test_a_certificate_of_the_operator_is_served_and_browsers_are_told_to_stay(tmp_path: Path) -> None:
    tls = make_certificate(tmp_path / "tls")
    async with https_server(tmp_path, tls) as running:
        assert running.url.startswith("https://127.0.0.1:")
        code, out = await ask_curl("-i", "--cacert", str(tls.certificate), f"https://localhost:{running.port}/healthz")
        assert (code, out.split()[1]) == (0, "200")
        assert "strict-transport-security: max-age=15552000" in out.lower()
    printed = show_certificate(tls.certificate or Path(), "-fingerprint", "-sha256")
    assert printed.strip().partition("=")[2] == read_fingerprint(tls.certificate or Path())


@WITH_CURL
@pytest.mark.requirement("tls:self-signed")
async def test_a_self_signed_certificate_is_kept_in_the_home_and_names_this_machine(tmp_path: Path) -> None:
    async with https_server(tmp_path) as running:
        certificate, key = running.home / "tls/certificate.pem", running.home / "tls/key.pem"
        assert key.stat().st_mode & 0o777 == 0o600
        assert (running.home / "tls").stat().st_mode & 0o777 == 0o700
        to = ("--connect-to", f"::127.0.0.1:{running.port}")
        for host in ("localhost", "127.0.0.1", "[::1]"):
            url = f"https://{host}:{running.port}/healthz"
            code, out = await ask_curl("-i", "--cacert", str(certificate), *to, url)
            assert (host, code, out.split()[1]) == (host, 0, "200")
            assert "strict-transport-security" not in out.lower()
        code, _ = await ask_curl("--cacert", str(certificate), *to, "https://other.example.org")
        assert code == 60  # another name is not covered
        assert running.server.tls is not None
        first = running.server.tls.fingerprint
    async with https_server(tmp_path) as again:
        assert again.server.tls is not None
        assert again.server.tls.fingerprint == first


@WITH_OPENSSL
@pytest.mark.requirement("tls:renewal")
def test_a_self_signed_certificate_is_renewed_before_it_ends_and_for_new_names(tmp_path: Path) -> None:
    now, names = FakeClock().now(), CertificateNames(("localhost",), ("127.0.0.1",))

    def fingerprint(at: datetime, given: CertificateNames = names) -> str:
        return read_fingerprint(ensure_certificate(tmp_path, given, at)[0])

    first, key = fingerprint(now), (tmp_path / "tls/key.pem").read_bytes()
    assert fingerprint(now + timedelta(days=VALID_DAYS - RENEW_DAYS - 1)) == first
    renewed = fingerprint(now + timedelta(days=VALID_DAYS - RENEW_DAYS))
    assert renewed != first
    moved = fingerprint(now + timedelta(days=VALID_DAYS), CertificateNames(("localhost",), ("127.0.0.1", "10.0.0.7")))
    assert moved != renewed
    assert (tmp_path / "tls/key.pem").read_bytes() == key
    text = show_certificate(tmp_path / "tls/certificate.pem", "-text")
    assert "IP Address:10.0.0.7" in text
    assert "CA:FALSE" in text
    assert "TLS Web Server Authentication" in text


@WITH_OPENSSL
@pytest.mark.requirement("tls:renewal")
async def test_a_changed_certificate_is_used_without_a_restart_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    tls, other = make_certificate(tmp_path / "tls"), make_certificate(tmp_path / "tls", "other")
    assert tls.certificate and tls.key and other.certificate and other.key  # noqa: PT018
    async with https_server(tmp_path, tls) as running:
        used = running.server.tls
        assert used is not None

        def served() -> str:
            return ssl.get_server_certificate(("127.0.0.1", running.port), timeout=60)

        before = await asyncio.to_thread(served)
        tls.certificate.write_bytes(other.certificate.read_bytes())  # the key is not there yet
        with pytest.raises(ToolyardError, match="the key is not that of the certificate"):
            used.refresh()
        assert await asyncio.to_thread(served) == before
        tls.key.write_bytes(other.key.read_bytes())
        used.refresh()
        assert await asyncio.to_thread(served) != before
        assert used.fingerprint == read_fingerprint(other.certificate)


@pytest.mark.requirement("tls:session")
async def test_the_cookie_of_a_session_over_https_is_secure_and_sockets_are_encrypted(tmp_path: Path) -> None:
    async with https_server(tmp_path) as running:
        context = trust(running.home / "tls/certificate.pem")
        link = running.server.make_login_link()
        assert link.startswith("https://127.0.0.1:")
        form = {"link": link.partition("link=")[2]}
        headers = {"Origin": running.url}
        answer = await running.post("/login", data=form, headers=headers, key=None, ssl=context)
        assert answer.status == 303
        assert "; Secure" in answer.headers["Set-Cookie"]
        ticket = (await running.post("/ws-ticket", ssl=context)).json["ticket"]
        address = f"wss://127.0.0.1:{running.port}/ws?cursor=0&ticket={ticket}"
        async with running.client.ws_connect(address, ssl=context) as events:
            assert (await running.post("/v1/tools/LS", {}, ssl=context)).status == 200
            async with asyncio.timeout(60):
                assert (await events.receive()).type == aiohttp.WSMsgType.TEXT


@pytest.mark.requirement("tls:plain")
async def test_programs_on_this_machine_need_no_certificate(tmp_path: Path) -> None:
    folder = add_plugin(tmp_path, "Slow", ASYNC, pluginType="asynchronous")
    async with start_server(tmp_path, "--tls-self-signed", *plugin_options(tmp_path)) as server:
        assert server.url.startswith("https://")
        code, out, err = await run_command(tmp_path, "call", "LS")
        assert (code, json.loads(out)["status"], err) == (0, "success", "")
        (folder / "go").touch()
        code, out, err = await run_command(tmp_path, "call", "Slow")
        assert "the film is ready" in out, err
        server.signal(signal.SIGTERM)
        assert (await server.wait_for_end())[0] == 0


async def ask_from(address: str, method: str, scheme: str = "http", kind: str = "http") -> list[Message]:
    """The messages of a request from another address, which is answered with 200 if it is let through."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nobody reads")

    scope: Scope = {
        "type": kind,
        "scheme": scheme,
        "method": method,
        "client": (address, 5),
        "server": ("192.0.2.1", 6005),
        "headers": [(b"host", b"yard.example.org:6005")],
        "raw_path": b"/chat",
        "query_string": b"a=%C3%A4",
    }
    await HttpsOnly(app, sends_hsts=True)(scope, receive, send)
    return sent


@pytest.mark.requirement("tls:plain")
async def test_other_machines_are_sent_to_https() -> None:
    page = (await ask_from("192.0.2.9", "GET"))[0]
    assert page["status"] == 307
    assert (b"location", b"https://yard.example.org:6005/chat?a=%C3%A4") in page["headers"]
    refused = await ask_from("192.0.2.9", "POST")
    assert refused[0]["status"] == 426
    assert json.loads(refused[1]["body"])["error"]["code"] == "https_required"
    socket = await ask_from("192.0.2.9", "", "ws", "websocket")
    assert (socket[0]["type"], socket[0]["status"]) == ("websocket.http.response.start", 426)
    for own in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.1"):
        assert (await ask_from(own, "POST"))[0]["status"] == 200
    encrypted = (await ask_from("192.0.2.9", "POST", "https"))[0]
    assert (encrypted["status"], len(encrypted["headers"])) == (200, 1)


@pytest.mark.requirement("tls:plain")
async def test_a_client_that_sends_garbage_or_nothing_harms_nobody(tmp_path: Path) -> None:
    async with https_server(tmp_path) as running:
        silent = await asyncio.open_connection("127.0.0.1", running.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"\x16\x03\x01\x00\x08nonsense")
        async with asyncio.timeout(60):
            await reader.read()  # refused with an alert, and closed
        assert (await running.get("/healthz", ssl=trust(running.home / "tls/certificate.pem"))).status == 200
        for one in (writer, silent[1]):
            one.close()


@WITH_OPENSSL
@pytest.mark.requirement("tls:errors")
def test_a_certificate_that_cannot_be_used_is_named_before_anything_starts(tmp_path: Path) -> None:
    config = load_config(tmp_path, tmp_path / "home")
    tls, other = make_certificate(tmp_path / "tls"), make_certificate(tmp_path / "tls", "other")
    mixed = TlsOptions(certificate=tls.certificate, key=other.key)
    for options, sentence in (
        (mixed, "the key is not that of the certificate"),
        (TlsOptions(certificate=tls.certificate, key=tmp_path / "none"), "cannot read"),
        (TlsOptions(certificate=tls.key, key=tls.key), "both must be PEM files"),
    ):
        with pytest.raises(ToolyardError, match=sentence):
            Tls(config, options, "127.0.0.1", FakeClock().now)


@pytest.mark.requirement("tls:errors")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (TlsOptions(certificate=Path("/a.pem")), "set both --tls-cert and --tls-key"),
        (TlsOptions(certificate=Path("/a"), key=Path("/b"), self_signed=True), "choose one certificate"),
    ],
)
async def test_half_a_certificate_or_two_are_refused(tmp_path: Path, options: TlsOptions, sentence: str) -> None:
    server = Server(load_config(tmp_path, tmp_path / "home"), ServerOptions(port=0, tls=options))
    with pytest.raises(UsageError, match=sentence):
        await server.start()


@pytest.mark.requirement("tls:self-signed")
async def test_the_settings_choose_the_certificate_too(tmp_path: Path) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=2.0), "tls_self_signed = true\n") as running:
        assert running.url.startswith("https://")
        assert (running.home / "tls/certificate.pem").exists()


@WITH_LAN
@pytest.mark.requirement("tls:phone")
async def test_a_phone_is_told_its_url_and_gets_in_by_the_address_of_the_network(tmp_path: Path) -> None:
    words = ("--host", "0.0.0.0", "--allow-remote", "--tls-self-signed", "--qr")
    async with start_server(tmp_path, *words) as server:
        url = next(line for line in server.lines if line.startswith("Other machines")).rpartition(" ")[2]
        assert url == f"https://{LAN[0]}:{server.url.rpartition(':')[2]}"
        assert any("SHA-256 fingerprint: " in line for line in server.lines)
        context = trust(server.home / "tls/certificate.pem")
        async with aiohttp.ClientSession() as client, client.get(f"{url}/login", ssl=context) as answer:
            assert answer.status == 200
        code, out, _ = await run_command(tmp_path, "login", "--json")
        assert (code, json.loads(out)["remote_url"].partition("/login")[0]) == (0, url)


@pytest.mark.requirement("tls:phone")
async def test_a_code_that_no_phone_could_use_is_refused(tmp_path: Path) -> None:
    code, _, err = await run_command(tmp_path, "serve", "--port", "0", "--qr")
    assert (code, "--host 0.0.0.0 --allow-remote" in err) == (2, True)
    code, _, err = await run_command(tmp_path, "login")
    assert (code, "no server runs on this home" in err) == (4, True)


@pytest.mark.requirement("tls:phone")
async def test_a_link_of_a_running_server_signs_in_once(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        code, out, _ = await run_command(tmp_path, "login")
        assert (code, out.startswith(f"{server.url}/login?link=")) == (0, True)
        form, headers = {"link": out.strip().partition("link=")[2]}, {"Origin": server.url}
        async with aiohttp.ClientSession() as client:
            for status in (303, 401):
                sent = client.post(f"{server.url}/login", data=form, headers=headers, allow_redirects=False)
                async with sent as answer:
                    assert answer.status == status
        code, _, err = await run_command(tmp_path, "login", "--qr")
        assert (code, "no phone can reach this server" in err) == (1, True)


def paint(code: str, scale: int = 6) -> bytes:
    """A QR code of a terminal as a picture in the PGM format: what its lines look like on the screen."""
    halves = {" ": (255, 255), "▀": (0, 255), "▄": (255, 0), "█": (0, 0)}
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in code.splitlines()]
    rows = [[halves[sign][half] for sign in line] for line in lines for half in (0, 1)]
    pixels = [value for row in rows for _ in range(scale) for value in row for _ in range(scale)]
    return f"P5 {len(rows[0]) * scale} {len(rows) * scale} 255\n".encode() + bytes(pixels)


@WITH_ZBAR
@pytest.mark.requirement("tls:phone")
def test_the_code_in_the_terminal_can_be_read_by_a_scanner(tmp_path: Path) -> None:
    link = f"https://192.168.100.200:6005/login?link={'aZ09-_' * 7}x"
    (tmp_path / "code.pgm").write_bytes(paint(render_qr_code(link)))
    words = ["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", str(tmp_path / "code.pgm")]
    read = subprocess.run(words, check=True, capture_output=True, text=True)
    assert read.stdout.strip() == link


@pytest.mark.requirement("tls:phone")
def test_the_code_is_dark_on_light_and_has_a_quiet_zone() -> None:
    lines = render_qr_code("https://yard.example.org/").splitlines()
    assert all(line.startswith("\x1b[38;5;16;48;5;231m") and line.endswith("\x1b[0m") for line in lines)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert len({len(line) for line in plain}) == 1
    assert all(line.startswith("    ") and line.endswith("    ") for line in plain)
    assert plain[0].strip() == plain[1].strip() == ""
