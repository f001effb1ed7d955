"""Authentication: keys, scopes, sessions, tickets, and the limit of failed attempts."""

import ast
import hmac
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from tests.fakes import FakeClock
from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.server_paths import CONSOLE_PAGES, SERVICE_WORKER
from toolyard.web.app import make_api
from toolyard.web.routing import Routes
from toolyard.web.security import access, keys, middleware, sessions
from toolyard.web.security.access import MAX_ADDRESSES, MAX_PER_ADDRESS, MAX_TOTAL, AttemptLimiter
from toolyard.web.security.scope import AccessRules, Scope
from toolyard.web.server.lifecycle import ServerOptions


def list_routes(running: RunningServer) -> list[tuple[str, str]]:
    """Every route of the server as method and a path that leads to it."""
    app = make_api(running.yard, running.server._make_parts(running.server._make_reloader()))
    result = [
        (method, re.sub(r"\{[^}]+\}", "x", path))
        for path, operations in app.openapi()["paths"].items()
        for method in map(str.upper, operations)
    ]
    assert len(result) > 30
    return result


def read_cookie(answer: HttpResponse) -> str:
    return answer.headers["Set-Cookie"].partition(";")[0]


async def sign_in(running: RunningServer, **fields: str) -> HttpResponse:
    return await running.request("POST", "/login", key=None, data=fields)


@pytest.mark.requirement("s:S-40", "http:auth")
async def test_every_route_without_the_key_answers_401_but_the_open_ones(running_server: RunningServer) -> None:
    for method, path in list_routes(running_server):
        if not running_server.rules.find(path).is_public:
            response = await running_server.request(method, path, key=None)
            assert (method, path, response.status) == (method, path, 401)
            assert response.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/healthz", "/readyz", "/login", "/login.css", "/login.js"):
        assert (await running_server.get(path, key=None)).status == 200
    assert (await running_server.post("/plugin-callback/~x/Video/1", {}, key=None)).status == 401
    assert (await running_server.get("/v1/nothing", key=None)).status == 401
    assert (await running_server.post("/mcp", {}, key=None)).status == 401


@pytest.mark.requirement("s:S-40")
async def test_routes_that_nobody_named_need_admin(running_server: RunningServer) -> None:
    find = running_server.rules.find
    assert find("/v1/invented").scopes == {Scope.ADMIN}
    assert find("/v1/toolsmith").scopes == {Scope.ADMIN}
    assert find("/v1/tools/LS").scopes == {Scope.TOOLS, Scope.ADMIN}
    assert [find(path).is_known for path in ("/", "/actvity", "/v1/tools")] == [True, False, True]


@pytest.mark.requirement("s:S-40")
def test_a_route_without_a_scope_needs_admin_and_the_most_exact_rule_counts() -> None:
    async def answer() -> None:
        """Do nothing."""

    routes = Routes("/v1/things", tag="things", scope=Scope.CHAT)
    routes.get("/secret", scope=Scope.ADMIN)(answer)
    closed = Routes(tag="others")
    closed.get("/v1/others/{id}")(answer)
    rules = AccessRules([routes.rules, closed.rules])
    wanted = {
        "/v1/things": {Scope.CHAT, Scope.ADMIN},
        "/v1/things/1": {Scope.CHAT, Scope.ADMIN},
        "/v1/things/secret": {Scope.ADMIN},
        "/v1/thingsandmore": {Scope.ADMIN},
        "/v1/others/1": {Scope.ADMIN},
    }
    assert {path: rules.find(path).scopes for path in wanted} == wanted


@pytest.mark.requirement("s:S-40", "http:key")
async def test_the_key_is_made_once_and_kept_for_the_owner_only(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        first = running.key
        assert running.server.is_first_start
        assert (running.home / "key").read_text().strip() == first
        assert (running.home / "key").stat().st_mode & 0o777 == 0o600
        assert len(first) >= 43
    async with run_server(tmp_path) as again:
        assert again.key == first
        assert not again.server.is_first_start


ALLOWED = {
    Scope.CHAT: {"/v1/models"},
    Scope.TOOLS: {"/v1/tools", "/v1/tasks", "/v1/schedules", "/v1/calls"},
    Scope.APPROVE: {"/v1/approvals", "/v1/approvals/rules"},
    Scope.NODE: set(),
    Scope.ADMIN: {"/v1/models", "/v1/tools", "/v1/tasks", "/v1/schedules", "/v1/calls", "/v1/approvals",
                  "/v1/approvals/rules", "/v1/keys", "/v1/nodes", "/metrics"},
}  # fmt: skip


@pytest.mark.requirement("s:S-52")
@pytest.mark.parametrize("scope", Scope)
async def test_a_key_gets_where_its_scope_leads_and_nowhere_else(running_server: RunningServer, scope: Scope) -> None:
    key = running_server.make_key(scope)
    for path in sorted(ALLOWED[Scope.ADMIN]):
        response = await running_server.get(path, key=key)
        assert (path, response.status) == (path, 200 if path in ALLOWED[scope] else 403)
    assert (await running_server.get("/v1/session", key=key)).json["scopes"] == [scope.value]


@pytest.mark.requirement("s:S-52")
async def test_a_key_sees_only_what_it_did_itself(running_server: RunningServer) -> None:
    one, other = running_server.make_key(Scope.TOOLS), running_server.make_key(Scope.TOOLS)
    call_id = (await running_server.post("/v1/tools/LS", {}, key=one)).headers["x-call-id"]
    at = {"tool": "LS", "arguments": {}, "at": "2099-01-01-10:00"}
    schedule = (await running_server.post("/v1/schedules", at, key=one)).json["id"]
    for key, status, count in ((one, 200, 1), (other, 404, 0), ("", 200, 1)):
        for place, id_ in (("calls", call_id), ("schedules", schedule)):
            assert (await running_server.get(f"/v1/{place}/{id_}", key=key)).status == status
            assert len((await running_server.get(f"/v1/{place}", key=key)).json["data"]) == count
    assert (await running_server.post(f"/v1/schedules/{schedule}/cancel", key=other)).status == 404
    assert (await running_server.get("/v1/calls?caller=key:owner", key=one)).json["data"][0]["id"] == call_id


@pytest.mark.requirement("s:S-52", "http:key")
async def test_keys_are_made_listed_and_removed_by_an_admin(running_server: RunningServer) -> None:
    made = await running_server.post("/v1/keys", {"name": "phone", "scopes": ["approve"]})
    assert made.status == 201
    key, id_ = made.json["key"], made.json["id"]
    assert (await running_server.get("/v1/approvals", key=key)).status == 200
    listed = await running_server.get("/v1/keys")
    assert [one["name"] for one in listed.json["data"]] == ["the owner", "phone"]
    stored = (running_server.home / "keys.json").read_text()
    assert key not in stored + listed.body.decode()
    assert (running_server.home / "keys.json").stat().st_mode & 0o777 == 0o600
    assert (await running_server.request("DELETE", f"/v1/keys/{id_}")).status == 200
    assert (await running_server.get("/v1/approvals", key=key)).status == 401
    assert (await running_server.request("DELETE", f"/v1/keys/{id_}")).status == 404
    assert (await running_server.request("DELETE", "/v1/keys/owner")).status == 409
    for wrong in ({"name": "x", "scopes": []}, {"name": "x", "scopes": ["root"]}, {"name": "", "scopes": ["chat"]}):
        assert (await running_server.post("/v1/keys", wrong)).status == 422


@pytest.mark.requirement("s:S-46")
def test_keys_are_compared_in_constant_time_on_their_hashes() -> None:
    for module in (access, middleware, keys):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        secret = re.compile(r"\b(digest|hashed|csrf|text|key|token|ticket)\b")
        compared = [
            ast.unparse(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        ]
        assert [one for one in compared if secret.search(one)] == []
    source = Path(str(keys.__file__)).read_text("utf-8")
    assert "hmac.compare_digest(key.digest, hashed)" in source


@pytest.mark.requirement("s:S-46")
def test_every_key_is_compared_whichever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = keys.Keys(tmp_path, "owner-key", lambda: 0.0)
    texts = [known.add("more", [Scope.CHAT], 0.0)[1] for _ in range(3)]
    compared: list[str] = []
    genuine = hmac.compare_digest

    def counted(left: str, right: str) -> bool:
        compared.append(left)
        return genuine(left, right)

    monkeypatch.setattr("toolyard.web.security.keys.hmac.compare_digest", counted)
    for text in ("owner-key", *texts, "wrong"):
        compared.clear()
        assert (known.find(text) is None) == (text == "wrong")
        assert len(compared) == 4


@pytest.mark.requirement("s:S-46")
def test_what_another_process_does_to_the_keys_is_seen_soon_and_what_this_one_does_at_once(
    tmp_path: Path, clock: FakeClock
) -> None:
    ours = keys.Keys(tmp_path, "owner-key", clock.monotonic)
    theirs = keys.Keys(tmp_path, "owner-key", clock.monotonic)
    key, text = ours.add("more", [Scope.CHAT], 0.0)
    result = ours.find(text)
    assert result is not None
    assert (result.id, ours.exists(key.id)) == (key.id, True)
    assert theirs.remove(key.id)
    clock.advance(keys.FRESH_S)
    assert (ours.find(text), ours.exists(key.id)) == (None, False)
    _, text = ours.add("again", [Scope.CHAT], 0.0)
    assert ours.remove(ours.all()[1].id)
    assert ours.find(text) is None
    assert [one.id for one in ours.all()] == [keys.OWNER]


@pytest.mark.requirement("s:S-47")
async def test_wrong_keys_on_any_route_lead_to_waiting(tmp_path: Path, clock: FakeClock) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, clock=clock)) as running:
        routes = list_routes(running)
        for method, path in routes:
            if running.rules.find(path).is_public:
                continue
            statuses = [
                (await running.request(method, path, key=f"wrong-{n}")).status for n in range(MAX_PER_ADDRESS + 2)
            ]
            assert (method, path, statuses) == (method, path, [401] * MAX_PER_ADDRESS + [429] * 2)
            assert (await running.get("/v1/tools")).status == 200  # a right key is never locked out
            refused = await running.get("/v1/tools", key="wrong")
            assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
            clock.advance(1000)


@pytest.mark.requirement("s:S-47")
async def test_a_right_session_link_or_ticket_opens_whatever_wrong_keys_came_before(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        session = {"Cookie": read_cookie(await sign_in(running, key=running.key))}
        link = running.server.access.make_login_link()
        ticket = (await running.post("/ws-ticket")).json["ticket"]
        for number in range(MAX_PER_ADDRESS):
            await running.get("/v1/tools", key=f"wrong-{number}")
        assert (await running.get("/v1/session", key=None, headers=session)).status == 200
        async with running.client.ws_connect(f"{running.url}/ws?ticket={ticket}") as socket:
            assert not socket.closed
        assert (await sign_in(running, link=link)).status == 303
        assert (await running.get("/v1/tools", key="wrong")).status == 429


@pytest.mark.requirement("s:S-47")
async def test_wrong_logins_cookies_and_tickets_count_too(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        for _ in range(MAX_PER_ADDRESS // 2):
            assert (await sign_in(running, key="wrong")).status == 401
            assert (await running.get("/", key=None, headers={"Cookie": f"toolyard_{running.port}=x"})).status == 401
        assert (await sign_in(running, key="wrong")).status == 429
        assert (await sign_in(running, key=running.key)).status == 303


@pytest.mark.requirement("s:S-47")
def test_waiting_grows_with_each_failure_and_ends(clock: FakeClock) -> None:
    failures = AttemptLimiter(clock.monotonic)
    for _ in range(MAX_PER_ADDRESS - 1):
        failures.count_failure("a")
    assert failures.wait_s("a") == 0
    waits = []
    for _ in range(9):
        failures.count_failure("a")
        waits.append(failures.wait_s("a"))
        clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.advance(61)
    failures.count_failure("a")
    assert failures.wait_s("a") == 0
    assert failures.wait_s("b") == 0


@pytest.mark.requirement("s:S-47")
def test_failures_from_many_addresses_make_everybody_wait_a_little(clock: FakeClock) -> None:
    failures = AttemptLimiter(clock.monotonic)
    for number in range(MAX_TOTAL + 20):
        failures.count_failure(f"10.0.0.{number}")
    assert 1 <= failures.wait_s("somebody else") <= 5
    for number in range(MAX_ADDRESSES + 100):
        failures.count_failure(f"address {number}")
    assert len(failures._attempts) <= MAX_ADDRESSES


@pytest.mark.requirement("s:S-49", "http:browser-session")
async def test_a_session_is_a_random_id_that_ends_when_its_browser_signs_out(running_server: RunningServer) -> None:
    signed_in = await sign_in(running_server, key=running_server.key)
    assert (signed_in.status, signed_in.headers["Location"]) == (303, "/")
    attributes = signed_in.headers["Set-Cookie"].lower()
    assert "samesite=strict" in attributes
    assert "httponly" in attributes
    assert running_server.key not in signed_in.headers["Set-Cookie"]
    other = await sign_in(running_server, key=running_server.key)
    assert read_cookie(other) != read_cookie(signed_in)
    headers = {"Cookie": read_cookie(signed_in)}
    session = await running_server.get("/v1/session", key=None, headers=headers)
    assert (session.status, session.json["key"]) == (200, "owner")
    unsafe = {**headers, "X-CSRF-Token": session.json["csrf"]}
    assert (await running_server.post("/logout", key=None, headers=unsafe)).status == 200
    assert (await running_server.get("/v1/session", key=None, headers=headers)).status == 401


@pytest.mark.requirement("s:S-43", "http:browser-session")
async def test_a_session_changes_nothing_without_its_token(running_server: RunningServer) -> None:
    cookie = {"Cookie": read_cookie(await sign_in(running_server, key=running_server.key))}
    csrf = (await running_server.get("/v1/session", key=None, headers=cookie)).json["csrf"]
    write = {"path": "a.txt", "content": "x"}
    for token in ({}, {"X-CSRF-Token": "wrong"}, {"X-CSRF-Token": ""}):
        response = await running_server.post("/v1/tools/Write", write, key=None, headers={**cookie, **token})
        assert response.status == 403
    assert not (running_server.project / "a.txt").exists()
    response = await running_server.post("/v1/tools/Write", write, key=None, headers={**cookie, "X-CSRF-Token": csrf})
    assert response.json["status"] == "success"


@pytest.mark.requirement("http:browser-session", "s:S-50")
async def test_a_login_link_fills_the_page_in_and_signs_in_once_when_it_is_sent(running_server: RunningServer) -> None:
    link = running_server.server.make_login_link()
    name = link.partition("link=")[2]
    for _ in range(3):  # looking at it does not use it up
        page = await running_server.get(link.removeprefix(running_server.url), key=None)
        assert page.status == 200
        assert f'value="{name}"' in page.body.decode()
        assert "Set-Cookie" not in page.headers
    assert (await sign_in(running_server, link=name)).status == 303
    assert (await sign_in(running_server, link=name)).status == 401
    assert (await running_server.get('/login?link="><script>', key=None)).body.count(b"<script") == 0


@pytest.mark.requirement("http:browser-session", "s:S-49")
async def test_sessions_links_and_tickets_end_with_time(tmp_path: Path, clock: FakeClock) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, clock=clock)) as running:
        entrance = running.server.access
        link, session = entrance.make_login_link(), entrance.sign_in(key=running.key, address="a")
        ticket = entrance.make_ticket(entrance.authenticate_session(session, "a"))
        clock.advance(access.TICKET_S + 1)
        with pytest.raises(Exception, match="ticket"):
            entrance.authenticate_ticket(ticket, "a")
        clock.advance(access.LINK_S)
        with pytest.raises(Exception, match="link"):
            entrance.sign_in(link=link, address="a")
        assert entrance.authenticate_session(session, "a").is_admin
        clock.advance(sessions.SESSION_S)
        with pytest.raises(Exception, match="session has expired"):
            entrance.authenticate_session(session, "a")


@pytest.mark.requirement("http:browser-session")
async def test_a_restart_signs_nobody_out_and_another_key_everybody(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        session = running.server.access.sign_in(key=running.key, address="a")
        assert session not in (running.home / "sessions.json").read_text()
    async with run_server(tmp_path) as running:
        result = running.server.access.authenticate_session(session, "a")
        assert (result.key_id, bool(result.csrf)) == ("owner", True)
    (tmp_path / "home" / "key").unlink()
    async with run_server(tmp_path) as running:
        with pytest.raises(Exception, match="session has expired"):
            running.server.access.authenticate_session(session, "a")


@pytest.mark.requirement("s:S-51")
async def test_every_page_keeps_itself_to_itself(running_server: RunningServer) -> None:
    for path, key in (("/", ""), ("/docs", ""), ("/login", None), ("/", None), ("/v1/nothing", ""), ("/healthz", None)):
        headers = (await running_server.get(path, key=key)).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe-inline" not in headers["Content-Security-Policy"]
        assert headers["Content-Security-Policy"].endswith("; trusted-types dompurify service-worker")
        assert "require-trusted-types-for 'script'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == ("same-origin" if path == "/login" else "no-referrer")
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.requirement("s:S-40")
async def test_a_browser_without_a_session_is_led_to_the_login_page(running_server: RunningServer) -> None:
    response = await running_server.get("/", key=None, headers={"Accept": "text/html"})
    assert (response.status, b'href="/login?next=%2F"' in response.body) == (401, True)


@pytest.mark.requirement("s:S-40", "s:S-52", "console:root")
async def test_a_mistyped_address_gives_every_key_the_same_page_and_opens_nothing(
    running_server: RunningServer,
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml"}
    owners = await running_server.get("/actvity", headers=browser)
    assert (owners.status, owners.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    for scope in Scope:
        key = running_server.make_key(scope)
        for path in ("/actvity", "/keys", "/docs/v1", "/login/x", "/..%2fkey"):
            response = await running_server.get(path, key=key, headers=browser)
            assert (path, response.status, response.body) == (path, 404, owners.body)
    key = running_server.make_key(Scope.CHAT)
    for path in ("/metrics", "/v1/keys", "/v1/nothing", "/v1/tools"):
        assert (path, (await running_server.get(path, key=key, headers=browser)).status) == (path, 403)
    assert (await running_server.get("/actvity", key=key)).status == 403
    assert (await running_server.request("POST", "/actvity", key=key, headers=browser)).status == 403
    assert (await running_server.get("/actvity", key=None, headers=browser)).status == 401


@pytest.mark.requirement("http:errors")
@pytest.mark.parametrize(
    ("method", "path", "said"),
    [("GET", "/v1/tols", (404, "Not Found: GET /v1/tols.")), ("PUT", "/v1/tools", (405, "Method Not Allowed: PUT"))],
)
async def test_a_program_at_a_mistyped_address_is_told_where_it_was_and_where_to_look(
    running_server: RunningServer, method: str, path: str, said: tuple[int, str]
) -> None:
    result = await running_server.request(method, path)
    message = result.json["error"]["message"]
    assert (result.status, said[1] in message, "/docs" in message) == (said[0], True, True)


@pytest.mark.requirement("http:errors")
async def test_who_asks_in_a_way_that_a_path_does_not_take_is_told_all_that_it_takes(
    running_server: RunningServer,
) -> None:
    response = await running_server.request("PUT", "/v1/tools/LS")
    assert (response.status, response.headers["Allow"]) == (405, "GET, POST")


@pytest.mark.requirement("s:S-40")
async def test_every_route_of_the_app_is_known_to_the_walk(running_server: RunningServer) -> None:
    """Routes missing from the OpenAPI document are missing on purpose."""
    console = {f"{page}{rest}" for page in CONSOLE_PAGES for rest in ("", "/{name:path}")}
    published = {f"{start}pw={{key}}/{kind}/{{path:path}}" for start in ("/", "//") for kind in ("images", "files")}
    hidden = {
        "/login.css",
        "/login.js",
        "/docs.css",
        SERVICE_WORKER,
        "/openapi.json",
        "/plugin-callback/{rest:path}",
        "/console/{path:path}",
        "/console/messages.zh.json",
        *console,
        *published,
    }
    app = make_api(
        running_server.yard,
        running_server.server._make_parts(running_server.server._make_reloader()),
    )
    view = set(app.openapi()["paths"])
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes if route.path_format not in view} <= hidden
