"""The samples of the documentation, with Debian's nginx and Caddy, Traefik from PyPI, and a browser in front."""

import asyncio
import io
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from playwright.async_api import async_playwright, expect

from tests.console.browsers import QUIET, chromium
from tests.console.hosting import hosting
from tests.console.proxying import (
    SAMPLES,
    ProxiedHost,
    find_traefik,
    running_caddy,
    running_nginx,
    running_traefik,
    wait_for_port,
)
from tests.console.talking import Held, Talking, _last_user_text, ended, say
from tests.console.visit import visiting
from tests.fakes import free_port
from tests.gateway.upstream import Script, provider, says
from tests.programs import find_program
from toolyard.server_paths import CONSOLE_PAGES

SOAK: Final = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
CLIENT: Final = "127.0.0.2"  # another address of this machine than the proxy's
LARGE: Final = 20 * 2**20

pytestmark = pytest.mark.requirement("proxy:samples")


@dataclass(frozen=True)
class Sample:
    program: str
    file: str
    url: str

    @property
    def host(self) -> str:
        return self.url.split("/")[2]

    @property
    def path(self) -> str:
        return "/yard" if self.url.endswith("/yard") else ""


EVERY: Final = (
    Sample("nginx", "nginx.conf", "https://yard.example.org"),
    Sample("nginx", "nginx-subpath.conf", "https://example.org/yard"),
    Sample("caddy", "Caddyfile", "https://yard.example.org"),
    Sample("caddy", "Caddyfile-subpath", "https://example.org/yard"),
    Sample("traefik", "traefik-routes.yaml", "https://yard.example.org"),
    Sample("traefik", "traefik-routes.yaml", "https://example.org/yard"),
)


class _Local(AbstractResolver):
    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=family or 2, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def proxied(folder: Path, sample: Sample) -> AsyncIterator[tuple[Talking, ProxiedHost, str]]:
    """Give a server, how it is reached through the proxy, and an address that the proxy redirects to TLS."""
    port, plain = free_port(), free_port()
    address = f"https://{sample.host}:{port}{sample.path}"
    scripts: dict[str, list[Script]] = {}

    def answer(body: dict[str, Any]) -> Script:
        return (scripts.get(_last_user_text(body)) or [says("Nothing.")])[0]

    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(provider(answer))
        settings = {
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-test",
            "TOOLYARD_PUBLIC_URL": address,
            "TOOLYARD_TRUSTED_PROXIES": "127.0.0.1",
        }
        host = await stack.enter_async_context(hosting(folder / "yard", settings=settings))
        changes = {"127.0.0.1:6005": f"127.0.0.1:{host.port}"}
        place = folder / "proxy"
        place.mkdir()
        if sample.program == "nginx":
            changes |= {"listen 443": f"listen {port}"} | ({} if sample.path else {"listen 80": f"listen {plain}"})
            await stack.enter_async_context(running_nginx(place, sample.file, changes))
            plain = port  # nginx also redirects what comes to the port of TLS without it
        elif sample.program == "caddy":
            await stack.enter_async_context(running_caddy(place, sample.file, changes, port=port, plain=plain))
        else:
            await stack.enter_async_context(running_traefik(place, changes, port=port, plain=plain))
        await wait_for_port(port)
        through = ProxiedHost(host.home, host.project, host.port, address=address)
        yield Talking(host, upstream, scripts), through, f"http://{sample.host}:{plain}{sample.path}"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.skipif(not SOAK, reason="starts nginx, Caddy and Traefik: only in the soak")
@pytest.mark.parametrize("sample", EVERY, ids=[f"{one.program}{one.path}" for one in EVERY])
async def test_people_and_programs_use_a_server_through_the_sample(tmp_path: Path, sample: Sample) -> None:
    if sample.program == "traefik":
        find_traefik()  # before anything is started
    else:
        find_program(sample.program)
    async with proxied(tmp_path, sample) as (chat, host, plain):
        await use_as_a_person(chat, host, sample)
        await use_as_a_program(chat, host)
        if sample.program != "caddy":  # which redirects to port 443, whatever its own is
            await require_redirect_from_plain_http(host, plain)


async def use_as_a_person(chat: Talking, host: ProxiedHost, sample: Sample) -> None:
    rules = f"--host-resolver-rules=MAP {sample.host} 127.0.0.1"
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=chromium(), args=[*QUIET, rules, "--ignore-certificate-errors"]
        )
        async with visiting(browser, host, signed_in=False) as visit:
            visit.allowed += ["response 401", "status of 401"]
            await visit.page.goto(f"{host.url}/activity")
            await visit.page.get_by_label("Key").fill(host.key)
            await visit.page.get_by_role("button", name="Sign in").click()
            await visit.page.wait_for_url(f"{host.url}/activity")
            [cookie] = await visit.context.cookies(host.url)
            assert (cookie["secure"], cookie["path"]) == (True, sample.path or "/")
            await visit.settle()
            await chat.host.call("LS", path=".")
            await expect(visit.page.locator("main [data-row]")).to_have_count(1)  # by the WebSocket
            for page in CONSOLE_PAGES:
                await visit.go(page)
            pieces = Held("The beginning. ", "The end.", size=5)
            chat.answers("Write slowly.", Script(pieces, pause_s=0.01))
            await visit.go("/chat")
            reply = await say(visit, "Write slowly.")
            await expect(reply).to_contain_text("The begin")  # nothing else comes until it is seen
            pieces.go_on()
            await expect(reply).to_contain_text("The end.")
            await ended(reply)
            await visit.page.reload()
            await expect(visit.page.get_by_role("article", name="Assistant")).to_contain_text("The end.")
            assert visit.wrong() == []
        await browser.close()


async def use_as_a_program(chat: Talking, host: ProxiedHost) -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(resolver=_Local(), ssl=trusting, local_addr=(CLIENT, 0))
    key = {"Authorization": f"Bearer {host.key}"}
    async with aiohttp.ClientSession(connector=connector) as client, asyncio.timeout(180):
        # A client's own forwarding headers do not get through.
        forged = {"X-Forwarded-For": "9.9.9.9", "Forwarded": "for=9.9.9.9;host=evil.example", "Origin": origin(host)}
        form = {"key": host.key}
        async with client.post(f"{host.url}/login", data=form, headers=forged, allow_redirects=False) as signed_in:
            assert signed_in.status == 303
        assert (await chat.host.api("GET", "/v1/audit"))["data"][0]["address"] == CLIENT

        pieces = Held("one two three ", "four", size=4)
        chat.answers("Count.", Script(pieces, pause_s=0.01))
        body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "Count."}]}
        async with client.post(f"{host.url}/v1/chat/completions", json=body, headers=key) as stream:
            seen = b""
            while b"one" not in seen:
                seen += await stream.content.readany()
            pieces.go_on()
            seen += await stream.content.read()
            assert (stream.status, seen.rstrip().endswith(b"[DONE]")) == (200, True)

        chat.provider.answer = lambda call: Script([b'{"object": "list", "data": []}'], kind="application/json")
        large = io.BytesIO(json.dumps({"model": "scripted", "input": "x" * LARGE}).encode())
        json_type = key | {"Content-Type": "application/json"}
        async with client.post(f"{host.url}/v1/embeddings", data=large, headers=json_type) as answer:
            assert (answer.status, len(chat.provider.calls[-1].fields["input"])) == (200, LARGE)

        async with client.ws_connect(f"{host.url}/ws", headers=key) as socket:
            await chat.host.call("LS", path=".")
            assert (await socket.receive_json())["type"].startswith("call.")

        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        accept = key | {"Accept": "application/json, text/event-stream"}
        async with client.post(f"{host.url}/mcp", json=hello, headers=accept) as answer:
            assert (answer.status, "protocolVersion" in await answer.text()) == (200, True)


def origin(host: ProxiedHost) -> str:
    return "/".join(host.url.split("/")[:3])


async def require_redirect_from_plain_http(host: ProxiedHost, plain: str) -> None:
    connector = aiohttp.TCPConnector(resolver=_Local())
    async with (
        aiohttp.ClientSession(connector=connector) as client,
        client.get(f"{plain}/chat", allow_redirects=False) as answer,
    ):
        assert (answer.status in {301, 308}, answer.headers["Location"]) == (True, f"{host.url}/chat")


def test_the_sample_for_traefik_names_what_it_defines() -> None:
    yaml = pytest.importorskip("yaml")
    static = yaml.safe_load((SAMPLES / "traefik.yaml").read_text("utf-8"))
    routes = yaml.safe_load((SAMPLES / "traefik-routes.yaml").read_text("utf-8"))["http"]
    for router in routes["routers"].values():
        assert set(router["entryPoints"]) <= set(static["entryPoints"])
        assert set(router["middlewares"]) <= set(routes["middlewares"])
        assert router["service"] in routes["services"]
        assert router["tls"]["certResolver"] in static["certificatesResolvers"]
