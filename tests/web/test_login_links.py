"""Login links of a running server: for which key they sign in, and their QR code."""

import aiohttp
import pytest

from tests.web.conftest import RunningServer
from toolyard.server_paths import CONSOLE_PAGES
from toolyard.web.qr_matrix import BORDER
from toolyard.web.security.scope import Scope

REMOTE = "https://yard.example.org"


@pytest.mark.requirement("phone:sign-in")
async def test_a_link_is_for_the_key_that_was_named_and_ends_with_it(running_server: RunningServer) -> None:
    running_server.make_key(Scope.APPROVE)
    access = running_server.server.access
    phone = access.keys.all()[-1]
    for body, scopes in ((None, access.keys.all()[0].scopes), ({"key": phone.id}, phone.scopes)):
        made = (await running_server.post("/v1/login-links", body)).json
        session = access.sign_in(link=made["url"].partition("link=")[2], address="a")
        assert access.authenticate_session(session, "a").scopes == scopes
    made = (await running_server.post("/v1/login-links", {"key": phone.id})).json
    access.keys.remove(phone.id)
    with pytest.raises(Exception, match="already been used or has expired"):
        access.sign_in(link=made["url"].partition("link=")[2], address="a")
    assert (await running_server.post("/v1/login-links", {"key": phone.id})).status == 404


@pytest.mark.requirement("phone:sign-in")
async def test_only_an_admin_makes_links_and_without_a_way_in_there_is_no_code(running_server: RunningServer) -> None:
    refused = await running_server.post("/v1/login-links", {}, key=running_server.make_key(Scope.APPROVE, Scope.TOOLS))
    assert refused.status == 403
    made = (await running_server.post("/v1/login-links", {})).json
    assert (made["remote_url"], made["remote_qr"]) == (None, None)


@pytest.mark.requirement("phone:sign-in")
async def test_the_code_has_a_row_for_each_line_of_modules_and_a_border(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(running_server.server), "remote_url", REMOTE)
    made = (await running_server.post("/v1/login-links", {})).json
    assert made["remote_url"].startswith(f"{REMOTE}/login?link=")
    rows = made["remote_qr"]
    assert {len(row) for row in rows} == {len(rows)}
    assert set("".join(rows)) == {"0", "1"}
    assert set("".join([*rows[:BORDER], *rows[-BORDER:]])) == {"0"}
    assert rows[BORDER].startswith("0" * BORDER + "1111111")  # the corner that scanners look for


@pytest.mark.requirement("phone:install", "phone:offline")
async def test_what_a_browser_loads_without_a_session_is_public_and_nothing_else_is(
    running_server: RunningServer,
) -> None:
    worker = await running_server.get("/service-worker.js", key=None)
    assert (worker.status, worker.headers["Cache-Control"]) == (200, "no-cache")
    assert worker.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "|".join(page.removeprefix("/") for page in CONSOLE_PAGES).encode() in worker.body
    for name, kind in (("zh.webmanifest", "application/manifest+json"), ("icon-192.png", "image/png")):
        file = await running_server.get(f"/console/install/{name}", key=None)
        assert (file.status, file.headers["Content-Type"]) == (200, kind)
    for path in ("install/../index.html", "install/%2e%2e/index.html", "install/..%2findex.html", "icon.svg"):
        assert (path, (await running_server.get(f"/console/{path}", key=None)).status) in ((path, 401), (path, 404))


@pytest.mark.requirement("phone:sign-in")
async def test_the_page_says_that_a_used_link_works_once_and_how_to_get_another(running_server: RunningServer) -> None:
    link = (await running_server.post("/v1/login-links", {})).json["url"].partition("link=")[2]
    page = ""
    async with aiohttp.ClientSession() as browser:
        for status in (303, 401):
            form = {"link": link, "next": "/", "lang": "en"}
            async with browser.post(f"{running_server.url}/login", data=form, allow_redirects=False) as response:
                assert response.status == status
                page = await response.text()
    assert "a link works once. Get a new one with “toolyard login”" in page
