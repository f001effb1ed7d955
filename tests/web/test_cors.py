"""Pages of other origins: programs with a key are served, preflights answered, errors readable, cookies never taken."""

import io

import aiohttp
import pytest

from tests.web.conftest import HttpResponse, RunningServer
from toolyard.web.security.access import MAX_PER_ADDRESS
from toolyard.web.security.cors import is_app_origin
from toolyard.web.security.scope import Scope

PROGRAMS = (
    "null",
    "file://",
    "app://obsidian.md",
    "tauri://localhost",
    "http://tauri.localhost",
    "https://tauri.localhost",
    "capacitor://localhost",
    "ionic://localhost",
    "vscode-webview://1a2b3c",
    "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
    "moz-extension://6a3d3c6e-2b38-4a3c-8a4b-2c9d6c8c5b1e",
    "safari-web-extension://6A3D3C6E-2B38-4A3C-8A4B-2C9D6C8C5B1E",
)
EVIL = "https://evil.example"
CHAT = {"model": "tour", "messages": [{"role": "user", "content": "Hello"}]}


def page_headers(origin: str) -> dict[str, str]:
    """The headers that a browser adds for a page of another origin."""
    return {"Origin": origin, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}


async def ask_preflight(
    running: RunningServer, origin: str, path: str = "/v1/chat/completions", **more: str
) -> HttpResponse:
    headers = {**page_headers(origin), "Access-Control-Request-Method": "POST", **more}
    return await running.request("OPTIONS", path, key=None, headers=headers)


@pytest.mark.requirement("cors:programs", "cors:readable")
@pytest.mark.parametrize("origin", PROGRAMS)
async def test_a_program_with_a_key_is_served_and_may_read_the_answer(
    running_server: RunningServer, origin: str
) -> None:
    write = {"path": "a.txt", "content": "x"}
    written = await running_server.post("/v1/tools/Write", write, headers=page_headers(origin))
    assert (written.status, written.json["status"]) == (200, "success")
    models = await running_server.get("/v1/models", headers=page_headers(origin))
    whole = await running_server.post("/v1/chat/completions", CHAT, headers=page_headers(origin))
    streamed = await running_server.post("/v1/chat/completions", {**CHAT, "stream": True}, headers=page_headers(origin))
    assert streamed.body.endswith(b"data: [DONE]\n\n")
    for answer in (written, models, whole, streamed):
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, origin)
        assert answer.headers["Access-Control-Expose-Headers"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "origin" in answer.headers["Vary"].lower()


@pytest.mark.requirement("cors:programs", "s:S-43")
@pytest.mark.parametrize("origin", [*PROGRAMS, EVIL])
async def test_a_session_cookie_counts_for_pages_of_this_server_alone(
    running_server: RunningServer, origin: str
) -> None:
    signed_in = await running_server.request("POST", "/login", key=None, data={"key": running_server.key})
    cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
    csrf = (await running_server.get("/v1/session", key=None, headers=cookie)).json["csrf"]
    session = {**cookie, "X-CSRF-Token": csrf}
    write = {"path": "a.txt", "content": "x"}
    refused = await running_server.post("/v1/tools/Write", write, key=None, headers={**session, **page_headers(origin)})
    assert (refused.status, (running_server.project / "a.txt").exists()) == (403 if origin == EVIL else 401, False)
    read = await running_server.get("/v1/session", key=None, headers={**session, **page_headers(origin)})
    assert (read.status, b"csrf" in read.body) == (401, False)
    own = {**session, "Origin": running_server.url, "Sec-Fetch-Site": "same-origin"}
    assert (await running_server.post("/v1/tools/Write", write, key=None, headers=own)).status == 200


@pytest.mark.requirement("cors:programs", "s:S-43")
async def test_what_needs_no_key_is_for_a_program_as_for_any_page_of_others(running_server: RunningServer) -> None:
    """Else any page with a sandboxed frame could sign a browser in, or read what the server tells about itself."""
    sent = await running_server.request(
        "POST", "/login", key=None, data={"key": running_server.key}, headers=page_headers("null")
    )
    assert (sent.status, "Set-Cookie" in sent.headers) == (403, False)
    called = await running_server.post("/plugin-callback/~x/Video/1", {}, key=None, headers=page_headers("null"))
    assert called.status == 403
    for path in ("/login", "/healthz", "/readyz?verbose"):
        read = await running_server.get(path, key=None, headers=page_headers("null"))
        assert (read.status, "Access-Control-Allow-Origin" in read.headers) == (200, False)
        assert "Access-Control-Allow-Origin" not in (await ask_preflight(running_server, "null", path)).headers


@pytest.mark.requirement("cors:programs", "s:S-43")
@pytest.mark.parametrize(
    "origin",
    [
        EVIL,
        "http://127.0.0.1:1",
        "http://localhost",
        "https://tauri.localhost.evil.example",
        "http://tauri.localhost:8000",
        "HTTPS://evil.example",
        "ws://evil.example",
        "null, https://evil.example",
        "app://a, https://evil.example",
        "app://a b",
        "://",
        "1app://a",
        "null.example",
        "file:",
    ],
)
async def test_other_origins_are_refused_with_a_key_too(running_server: RunningServer, origin: str) -> None:
    write = {"path": "a.txt", "content": "x"}
    refused = await running_server.post("/v1/tools/Write", write, headers=page_headers(origin))
    assert (refused.status, "Access-Control-Allow-Origin" in refused.headers) == (403, False)
    request = await ask_preflight(running_server, origin)
    assert (request.status, "Access-Control-Allow-Origin" in request.headers) == (401, False)
    assert not is_app_origin(origin)


@pytest.mark.requirement("cors:preflight")
@pytest.mark.parametrize("origin", PROGRAMS)
async def test_a_preflight_allows_what_a_request_with_a_key_sends(running_server: RunningServer, origin: str) -> None:
    sent = (
        "accept, authorization,content-type, x-stainless-lang, x-stainless-retry-count, X-Toolyard-Chat, "
        "Idempotency-Key, mcp-session-id, mcp-protocol-version, last-event-id, openai-organization, user-agent, x-title"
    )
    headers = {"Access-Control-Request-Headers": f"{sent}, x-csrf-token, x-forwarded-for, cookie, x-unknown, *"}
    request = await ask_preflight(running_server, origin, **headers)
    assert (request.status, request.body, request.headers["Access-Control-Allow-Origin"]) == (204, b"", origin)
    allowed = request.headers["Access-Control-Allow-Headers"].split(", ")
    assert allowed == [name.strip().lower() for name in sent.split(",")]
    assert {"GET", "POST", "PUT", "PATCH", "DELETE"} == set(request.headers["Access-Control-Allow-Methods"].split(", "))
    assert "Access-Control-Allow-Credentials" not in request.headers
    assert "Access-Control-Allow-Private-Network" not in request.headers
    private = await ask_preflight(running_server, origin, **{"Access-Control-Request-Private-Network": "true"})
    assert private.headers["Access-Control-Allow-Private-Network"] == "true"


@pytest.mark.requirement("cors:preflight")
async def test_a_preflight_is_answered_when_the_request_itself_will_be_refused(
    running_server: RunningServer,
) -> None:
    """A browser shows a page nothing of a request whose preflight failed, so the refusal must come with the request."""
    for number in range(MAX_PER_ADDRESS):
        await running_server.get("/v1/models", key=f"wrong-{number}")
    assert (await ask_preflight(running_server, "null")).status == 204
    running_server.server.drain.refuses_work = True
    assert (await ask_preflight(running_server, "null")).status == 204
    ended = await running_server.post("/v1/chat/completions", CHAT, headers=page_headers("null"))
    assert (ended.status, ended.headers["Access-Control-Allow-Origin"]) == (503, "null")


@pytest.mark.requirement("cors:readable")
async def test_errors_can_be_read_by_the_page_of_a_program(running_server: RunningServer) -> None:
    origin, path = page_headers("app://chat"), "/v1/chat/completions"
    json = {**origin, "Content-Type": "application/json"}
    weak = running_server.make_key(Scope.TOOLS)
    answers = [
        await running_server.post(path, CHAT, key=None, headers=origin),
        await running_server.post(path, CHAT, key="wrong", headers=origin),
        await running_server.post(path, CHAT, key=weak, headers=origin),
        await running_server.get("/v1/nothing", headers=origin),
        await running_server.request("POST", "/v1/tools/LS", data=io.BytesIO(b" " * (8 * 2**20 + 1)), headers=json),
        await running_server.request("POST", path, data=b"x", headers=origin),
        await running_server.post(path, {}, headers=origin),
        await running_server.get("/v1/models", headers={**origin, "Host": "evil.example"}),
    ]
    answers += [await running_server.post(path, CHAT, key="wrong", headers=origin) for _ in range(MAX_PER_ADDRESS)]
    seen = [answer.status for answer in answers]
    assert seen == [401, 401, 403, 404, 413, 415, 400, 421, *[401] * (MAX_PER_ADDRESS - 1), 429]
    assert answers[-1].headers["Retry-After"]
    for answer in answers:
        assert answer.headers["Access-Control-Allow-Origin"] == "app://chat"
        assert answer.headers["Access-Control-Expose-Headers"] == "*"
        assert answer.json["error"]["message"]


@pytest.mark.requirement("s:S-42", "cors:programs")
async def test_a_program_reaches_the_server_by_its_own_names_only(running_server: RunningServer) -> None:
    headers = {**page_headers("null"), "Host": "evil.example"}
    assert (await running_server.get("/v1/models", headers=headers)).status == 421
    request = await running_server.request("OPTIONS", "/v1/models", key=None, headers=headers)
    assert request.status == 421


@pytest.mark.requirement("s:S-44")
@pytest.mark.parametrize("origin", PROGRAMS)
async def test_a_websocket_from_a_program_is_refused_at_the_handshake(
    running_server: RunningServer, origin: str
) -> None:
    ticket = (await running_server.post("/ws-ticket")).json["ticket"]
    for headers, query in (({"Authorization": f"Bearer {running_server.key}"}, ""), ({}, f"?ticket={ticket}")):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await running_server.client.ws_connect(
                f"{running_server.url}/ws{query}", headers={**headers, "Origin": origin}
            )
        assert refused.value.status == 403
