"""Pictures that a reply names elsewhere: fetched by the server for a person, and only what can be shown."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp.test_utils
import pytest
from aiohttp import web

from tests.web.conftest import RunningServer, run_server
from toolyard.web.routes.chat import replies
from toolyard.web.security.scope import Scope
from toolyard.workspace.safe_fetch import SafeFetch

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HUGE = DOT[:16] + (60_000).to_bytes(4, "big") * 2 + DOT[24:]  # says that it has 60,000 times 60,000 pixels
pytestmark = pytest.mark.requirement("s:S-62")


@pytest.fixture
async def media_server() -> AsyncIterator[str]:
    """Another server: a picture, one that is too large, a page that says it is a picture, and a way to all of them."""
    bodies = {"dot": DOT, "huge": HUGE, "page": b"<script>alert(1)</script>", "drawing": b"<svg onload='alert(1)'/>"}

    async def answer(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == "moved":
            raise web.HTTPFound("/dot")
        if name not in bodies:
            raise web.HTTPNotFound
        return web.Response(body=bodies[name], content_type="image/png")

    app = web.Application()
    app.router.add_get("/{name}", answer)
    async with aiohttp.test_utils.TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
async def trusting_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningServer]:
    """A server that takes this machine for a public one."""
    real = replies.router
    monkeypatch.setattr(replies, "router", lambda: real(SafeFetch(allowed=lambda _: True)))
    async with run_server(tmp_path) as running:
        yield running


async def test_a_picture_is_fetched_and_sent_as_what_it_is(trusting_server: RunningServer, media_server: str) -> None:
    for name in ("dot", "moved"):
        response = await trusting_server.post(
            "/v1/reply/media", {"url": f"{media_server}/{name}"}, key=trusting_server.make_key(Scope.CHAT)
        )
        assert (response.status, response.headers["Content-Type"], response.body) == (200, "image/png", DOT)
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_what_is_no_picture_or_too_large_or_away_is_refused_with_the_reason(
    trusting_server: RunningServer, media_server: str
) -> None:
    for name, output in {"page": "not image", "drawing": "not image", "huge": "not image", "none": "404"}.items():
        response = await trusting_server.post("/v1/reply/media", {"url": f"{media_server}/{name}"})
        assert (response.status, output in response.json["error"]["message"]) == (502, True), response.json
    response = await trusting_server.post("/v1/reply/media", {"url": f"{media_server}/dot", "kind": "video"})
    assert (response.status, response.json["error"]["message"]) == (502, "the content is not video that can be shown")


@pytest.mark.requirement("s:S-70")
async def test_no_private_address_is_asked_and_no_other_scheme(
    running_server: RunningServer, media_server: str
) -> None:
    for url in (
        f"{media_server}/dot",
        running_server.url + "/healthz",
        "http://[::1]/x.png",
        "file:///etc/passwd",
        "x",
    ):
        response = await running_server.post("/v1/reply/media", {"url": url})
        assert response.status == 400, response.json
    key = running_server.make_key(Scope.APPROVE)
    assert (await running_server.post("/v1/reply/media", {"url": "https://a.example/x"}, key=key)).status == 403
