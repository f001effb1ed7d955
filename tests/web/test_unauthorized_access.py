"""Attacks with a restricted key, a stolen link or no key at all are refused."""

import asyncio
import json
from pathlib import Path

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.clients import ERAS, User
from tests.plugins.folders import make_plugin
from tests.web.conftest import RunningServer, run_server
from tests.web.test_access import list_routes, read_cookie, sign_in
from toolyard.protocol.json import MAX_VALUES
from toolyard.web.routes.plugins.plugin_install import MAX_STAGED
from toolyard.web.security.request_body import MAX_FORM
from toolyard.web.security.scope import Scope
from toolyard.web.security.sessions import FILE
from toolyard.web.security.sessions import MAX_PER_KEY as MOST_SESSIONS


@pytest.mark.requirement("s:S-10", "s:S-52")
@pytest.mark.parametrize(
    "before", ["/", "%2f", "//", "/./", "assets//", "draw//", "../", "..%2f", "draw/..//", "%2e%2e/"]
)
async def test_the_files_of_the_console_lead_to_no_other_file(running_server: RunningServer, before: str) -> None:
    running_server.make_key(Scope.CHAT)  # so that there is a file of keys
    expected = running_server.home / "keys.json"
    key = running_server.make_key(Scope.CHAT)
    path = f"/console/{before}{str(expected).lstrip('/')}"
    status, head = await running_server.send_raw(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    )
    assert expected.is_file()
    assert (status, b"application/json" in head) == (404, True)


@pytest.mark.requirement("http:browser-session", "s:S-50")
@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("/tools/天气", "/tools/%E5%A4%A9%E6%B0%94"),
        ("/activity?search=%E5%A4%A9&tool=A", "/activity?search=%E5%A4%A9&tool=A"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/\r\nSet-Cookie: a=b", "/"),
        ("https://evil.example", "/"),
        ("\n//evil.example", "/"),
    ],
)
async def test_a_sign_in_leads_to_any_place_of_this_server_and_to_no_other(
    running_server: RunningServer, wanted: str, place: str
) -> None:
    signed_in = await sign_in(running_server, key=running_server.key, next=wanted)
    cookie = {"Cookie": read_cookie(signed_in)}
    again = await running_server.request("GET", "/login", key=None, headers=cookie, params={"next": wanted})
    assert [(one.status, one.headers["Location"]) for one in (signed_in, again)] == [(303, place)] * 2


@pytest.mark.requirement("http:browser-session", "s:S-52")
async def test_nobody_signs_anybody_else_out_by_signing_in_often(running_server: RunningServer) -> None:
    owner = {"Cookie": read_cookie(await sign_in(running_server, key=running_server.key))}
    small = running_server.make_key(Scope.CHAT)
    first = {"Cookie": read_cookie(await sign_in(running_server, key=small))}
    for _ in range(MOST_SESSIONS):
        await sign_in(running_server, key=small)
    stored = json.loads((running_server.home / FILE).read_text())
    assert len(stored) == MOST_SESSIONS + 1
    assert (await running_server.get("/v1/session", key=None, headers=owner)).status == 200
    assert (await running_server.get("/v1/session", key=None, headers=first)).status == 401
    assert (running_server.home / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("s:S-49")
async def test_signing_in_again_ends_the_session_of_before(running_server: RunningServer) -> None:
    before = {"Cookie": read_cookie(await sign_in(running_server, key=running_server.key))}
    fields = {"key": running_server.key}
    wrong = await running_server.request("POST", "/login", key=None, headers=before, data={"key": "wrong"})
    still = await running_server.get("/v1/session", key=None, headers=before)
    again = await running_server.request("POST", "/login", key=None, headers=before, data=fields)
    now = {"Cookie": read_cookie(again)}
    assert (wrong.status, still.status, again.status) == (401, 200, 303)
    assert (await running_server.get("/v1/session", key=None, headers=now)).status == 200
    assert (await running_server.get("/v1/session", key=None, headers=before)).status == 401


@pytest.mark.requirement("s:S-45", "s:S-52")
async def test_a_ticket_opens_nothing_once_its_key_or_session_is_gone(running_server: RunningServer) -> None:
    access = running_server.server.access
    key, text = access.keys.add("soon gone", [Scope.APPROVE], 0.0)
    ticket = (await running_server.post("/ws-ticket", key=text)).json["ticket"]
    access.keys.remove(key.id)
    cookie = {"Cookie": read_cookie(await sign_in(running_server, key=running_server.key))}
    token = {"X-CSRF-Token": (await running_server.get("/v1/session", key=None, headers=cookie)).json["csrf"]}
    of_session = (await running_server.post("/ws-ticket", key=None, headers=cookie | token)).json["ticket"]
    await running_server.post("/logout", key=None, headers=cookie | token)
    for one in (ticket, of_session):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await running_server.client.ws_connect(f"{running_server.url}/ws?ticket={one}")
        assert refused.value.status == 401


@pytest.mark.requirement("s:S-04")
async def test_whoever_has_no_key_sends_no_more_than_a_login_form(running_server: RunningServer) -> None:
    result = await sign_in(running_server, key="x" * MAX_FORM)
    assert result.status == 413


@pytest.mark.requirement("s:S-43", "http:browser-session")
async def test_no_route_changes_anything_for_a_session_without_its_token(running_server: RunningServer) -> None:
    cookie = {"Cookie": read_cookie(await sign_in(running_server, key=running_server.key))}
    routes = list_routes(running_server)
    unsafe = [one for one in routes if one[0] != "GET" and not running_server.rules.find(one[1]).is_public]
    assert {method for method, _ in unsafe} == {"POST", "PUT", "PATCH", "DELETE"}
    for method, path in unsafe:
        response = await running_server.request(method, path, key=None, headers=cookie, json={})
        assert (method, path, response.status, "X-CSRF-Token" in response.body.decode()) == (method, path, 403, True)


@pytest.mark.requirement("http:plugins", "s:S-83")
async def test_plugins_that_come_at_once_do_not_take_each_others_place(tmp_path: Path) -> None:
    folders = [make_plugin(tmp_path / "elsewhere", name) for name in ("One", "Two")]
    async with run_server(tmp_path) as running:
        for _ in range(MAX_STAGED):
            await running.post("/v1/plugins/install", {"source": str(folders[0])})
        staged = await asyncio.gather(
            *(running.post("/v1/plugins/install", {"source": str(folder)}) for folder in folders)
        )
        places = [f"/v1/plugins/install/{one.json['staged']}/allow" for one in staged]
        prints = [{"fingerprint": one.json["review"]["fingerprint"]} for one in staged]
        allowed = await asyncio.gather(
            *(running.post(place, response) for place, response in zip(places, prints, strict=True)),
            running.post("/v1/plugins/install", {"source": str(folders[0])}),
            running.post(places[0], prints[0]),
        )
    assert sorted(one.status for one in allowed) == [200, 200, 201, 404]
    assert [one.json["state"] for one in allowed if one.status == 200] == ["ready", "ready"]


@pytest.mark.requirement("s:S-52", "s:S-99")
@pytest.mark.parametrize("mode", ERAS)
async def test_an_mcp_client_makes_rules_for_everybody_only_with_a_key_that_may(
    running_server: RunningServer, mode: str
) -> None:
    user = User(answer="always")

    async def write(path: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with asyncio.timeout(180), httpx2.AsyncClient(headers=headers, timeout=120) as http:
            transport = streamable_http_client(f"{running_server.url}/mcp", http_client=http)
            async with Client(transport, mode=mode, elicitation_callback=user) as client:
                assert not (await client.call_tool("Write", {"path": path, "content": "x"})).is_error

    await write("a.txt", running_server.make_key(Scope.TOOLS))
    assert await running_server.yard.state.approvals.rules() == []
    await write("b.txt", running_server.make_key(Scope.TOOLS, Scope.APPROVE))
    (rule,) = await running_server.yard.state.approvals.rules()
    assert (rule.tool, rule.effect) == ("Write", "allow")
    choices = [one.requested_schema["properties"]["answer"]["enum"] for one in user.asked]
    assert choices == [["deny", "allow"], ["deny", "allow", "always"]]


@pytest.mark.requirement("s:S-04")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/tools/Read", '{"path": %s}'),
        ("POST", "/v1/approvals/test", '{"tool": "Write", "arguments": {"path": %s}}'),
        ("POST", "/v1/schedules", '{"tool": "Read", "at": "2099-01-01-10:00", "arguments": {"path": %s}}'),
        ("PUT", "/v1/conversations/one", '{"messages": [{"content": %s}]}'),
    ],
)
async def test_a_small_body_of_very_many_values_is_refused(
    running_server: RunningServer, method: str, path: str, body: str
) -> None:
    many = f"[{'1,' * MAX_VALUES}1]"
    head = {"Content-Type": "application/json"}
    response = await running_server.request(method, path, headers=head, data=body % many)
    assert (response.status, f"more than {MAX_VALUES:,} values" in response.json["error"]["message"]) == (400, True)
    few = await running_server.request(method, path, headers=head, data=body % "[1,1]")
    assert "more than" not in few.body.decode()


@pytest.mark.requirement("s:S-04", "http:conversations")
async def test_a_conversation_has_a_bounded_number_of_messages(running_server: RunningServer) -> None:
    response = await running_server.request("PUT", "/v1/conversations/one", json={"messages": [{}] * 20_001})
    assert response.status == 422
