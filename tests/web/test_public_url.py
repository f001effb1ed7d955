"""A server behind a proxy: ``public_url`` alone makes it reachable, on a host name or below a path."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from yarl import URL

from tests.web.conftest import RunningServer, run_server
from tests.web.server_process import start_server
from tests.web.test_media import PNG
from toolyard.server_paths import OWN_PATHS
from toolyard.web.security.request_head import PublicAddress
from toolyard.web.server.lifecycle import ServerOptions

PUBLIC = "https://example.org/yard"
HOST = {"Host": "example.org"}
PAGE = {"Accept": "text/html"}


@pytest.fixture
async def proxied(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with run_server(tmp_path, settings=f'public_url = "{PUBLIC}/"') as running:
        yield running


@pytest.mark.requirement("config:public-url")
def test_requests_to_the_address_have_its_host_with_or_without_the_default_port() -> None:
    assert PublicAddress.from_url(PUBLIC).hosts == {"example.org", "example.org:443"}
    assert PublicAddress.from_url("http://10.0.0.5:6005").hosts == {"10.0.0.5:6005"}
    assert PublicAddress.from_url("http://[::1]").hosts == {"[::1]", "[::1]:80"}


@pytest.mark.requirement("config:public-url")
async def test_no_path_of_the_server_itself_can_be_that_of_its_public_address(proxied: RunningServer) -> None:
    paths = (await proxied.get("/openapi.json")).json["paths"]
    assert {path.split("/")[1] for path in paths} - {""} <= OWN_PATHS | {"pw={key}"}


@pytest.mark.requirement("proxy:subpath")
@pytest.mark.parametrize("prefix", ["/yard", ""], ids=["kept", "removed"])
async def test_every_kind_of_route_is_found_whether_the_proxy_removes_the_path_or_not(
    proxied: RunningServer, prefix: str
) -> None:
    link = urlsplit(await proxied.server.links.publish(PNG))
    assert link.path.startswith("/yard/media/")
    media = f"{link.path}?{link.query}".removeprefix("/yard")
    for path in ("/healthz", "/v1/tools", "/openapi.json", "/chat/any", "/console/early.js", media):
        assert (path, (await proxied.get(prefix + path, headers=HOST)).status) == (path, 200)
    answer = await proxied.post(f"{prefix}/v1/tools/LS", {"path": "."}, headers=HOST)
    assert (answer.status, answer.json["status"]) == (200, "success")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    accept = {"Accept": "application/json, text/event-stream", **HOST}
    assert (await proxied.post(f"{prefix}/mcp", hello, headers=accept)).status == 200
    assert (await proxied.get(f"{prefix}/nowhere", headers=HOST | PAGE)).status == 404


@pytest.mark.requirement("proxy:subpath")
async def test_the_address_without_a_slash_at_its_end_is_the_console_too(proxied: RunningServer) -> None:
    answer = await proxied.get("/yard", headers=HOST | PAGE)
    assert (answer.status, b'content="/yard/"' in answer.body) == (200, True)
    assert (await proxied.get("/yardage", headers=HOST)).status == 404


@pytest.mark.requirement("proxy:subpath")
@pytest.mark.parametrize(
    ("path", "headers", "base"),
    [
        ("/yard/chat/a%2Fb", HOST, b"/yard/"),
        ("/chat/a%2Fb", HOST, b"/yard/"),
        ("/yard/chat/a", {}, b"/yard/"),
        ("/chat/a%2Fb", {}, b"../"),  # the proxy names neither the host nor the path: links are relative
        ("/", {}, b"./"),
    ],
)
async def test_a_page_says_where_the_server_begins(
    proxied: RunningServer, path: str, headers: dict[str, str], base: bytes
) -> None:
    async with proxied.client.get(
        URL(proxied.url + path, encoded=True),
        headers={"Authorization": f"Bearer {proxied.key}", **headers},
    ) as response:
        page = await response.read()
    assert b'<meta name="base" content="' + base + b'"' in page
    assert b'src="' + base + b"console/assets/" in page


@pytest.mark.requirement("config:public-url", "proxy:subpath")
async def test_signing_in_stays_below_the_path_with_a_cookie_for_tls_and_this_path_only(
    proxied: RunningServer,
) -> None:
    asked = await proxied.get("/yard/activity?state=error", key=None, headers=HOST | PAGE)
    assert (asked.status, b"url=/yard/login?next=%2Factivity%3Fstate%3Derror" in asked.body) == (401, True)
    page = await proxied.get("/yard/login?next=/activity", key=None, headers=HOST)
    for part in (b'href="/yard/login.css"', b'action="/yard/login"', b'href="/yard/login?'):
        assert part in page.body
    form = {"key": proxied.key, "next": "/activity?state=error"}
    own = HOST | {"Origin": "https://example.org"}
    signed_in = await proxied.request("POST", "/yard/login", key=None, data=form, headers=own)
    assert (signed_in.status, signed_in.headers["Location"]) == (303, "/yard/activity?state=error")
    cookie = signed_in.headers["Set-Cookie"]
    assert {"path=/yard", "secure", "httponly"} <= {part.strip().lower() for part in cookie.split(";")}
    session = HOST | {"Cookie": cookie.partition(";")[0]}
    csrf = (await proxied.get("/yard/v1/session", key=None, headers=session)).json["csrf"]
    ended = await proxied.post("/yard/logout", {}, key=None, headers=session | own | {"X-CSRF-Token": csrf})
    assert (ended.status, "Path=/yard;" in ended.headers["Set-Cookie"]) == (200, True)


@pytest.mark.requirement("config:public-url")
async def test_the_local_address_still_needs_neither_the_path_nor_tls(proxied: RunningServer) -> None:
    local = {"Origin": proxied.url}
    signed_in = await proxied.request("POST", "/login", key=None, data={"key": proxied.key}, headers=local)
    assert (signed_in.status, signed_in.headers["Location"]) == (303, "./")
    assert "secure" not in signed_in.headers["Set-Cookie"].lower()
    assert "Path=/;" in signed_in.headers["Set-Cookie"]


@pytest.mark.requirement("config:public-url")
async def test_a_page_of_the_public_address_is_the_servers_own_although_the_proxy_passes_on_another_host(
    proxied: RunningServer,
) -> None:
    page = {"Origin": "https://example.org", "Sec-Fetch-Site": "same-origin"}
    signed_in = await proxied.request("POST", "/login", key=None, data={"key": proxied.key}, headers=page)
    assert (signed_in.status, "secure" in signed_in.headers["Set-Cookie"].lower()) == (303, True)
    cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
    async with proxied.client.ws_connect(f"{proxied.url}/ws", headers=page | cookie) as socket:
        assert not socket.closed
    for origin in ("https://evil.example", "http://example.org", "https://example.org:8443"):
        refused = await proxied.request("POST", "/login", key=None, data={"key": "x"}, headers={"Origin": origin})
        assert (origin, refused.status) == (origin, 403)


@pytest.mark.requirement("config:public-url")
async def test_links_that_the_server_gives_out_begin_with_the_public_address(proxied: RunningServer) -> None:
    assert proxied.server.make_login_link().startswith(f"{PUBLIC}/login?link=")
    assert (await proxied.get("/openapi.json")).json["servers"] == [{"url": PUBLIC}]
    assert await proxied.server._get_callback_base() == f"{proxied.url}/plugin-callback/~"  # on the same machine


@pytest.mark.requirement("config:public-url")
async def test_the_command_prints_the_public_address_and_a_sign_in_link_there(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(f'public_url = "{PUBLIC}"')
    async with start_server(tmp_path) as server:
        assert server.url.startswith("http://127.0.0.1:")  # where it listens
        assert f"People reach it at {PUBLIC}" in server.lines
        assert f" {PUBLIC}/login?link=" in server.lines[-1]


@pytest.mark.requirement("proxy:subpath")
async def test_without_public_url_the_path_that_a_trusted_proxy_removed_is_in_links(tmp_path: Path) -> None:
    settings = 'trusted_proxies = ["127.0.0.1"]\nallowed_hosts = ["example.org"]'
    sent = {"X-Forwarded-Prefix": "/yard", "X-Forwarded-Host": "example.org", "X-Forwarded-Proto": "https"}
    async with run_server(tmp_path, settings=settings) as running:
        form = {"key": running.key}
        own = sent | {"Origin": "https://example.org"}
        signed_in = await running.request("POST", "/login", key=None, data=form, headers=own)
        assert (signed_in.status, signed_in.headers["Location"]) == (303, "/yard/")
        assert "Path=/yard;" in signed_in.headers["Set-Cookie"]
        assert b'content="/yard/"' in (await running.get("/chat", headers=sent)).body
    async with run_server(tmp_path / "untrusting", ServerOptions(port=0)) as running:
        assert b'content="/"' in (await running.get("/chat", headers={"X-Forwarded-Prefix": "/yard"})).body


@pytest.mark.requirement("proxy:samples")
async def test_a_stream_asks_nginx_not_to_hold_it_back(running_server: RunningServer) -> None:
    body = {"model": "tour", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    answer = await running_server.post("/v1/chat/completions", body)
    assert (answer.status, answer.headers["X-Accel-Buffering"]) == (200, "no")
    assert "X-Accel-Buffering" not in (await running_server.get("/v1/tools")).headers
