"""OpenAI's own client in pages of Chromium: programs with a key are served, pages of other servers are not."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import BrowserContext, Frame, Page, async_playwright

from tests.clients.install import HERE, bundle_for_browsers
from tests.console.browsers import QUIET, chromium
from tests.gateway.upstream import Provider, provider, replies
from tests.web.conftest import RunningServer, run_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = '<!doctype html><meta charset="utf-8"><title>A page</title><script src="page.js"></script>'
FRAMED = '<!doctype html><title>A frame</title><iframe sandbox="allow-scripts" src="/page.html"></iframe>'
EXTENSION = {
    "manifest_version": 3,
    "name": "Extension of the tests",
    "version": "1",
    "background": {"service_worker": "worker.js"},
}
PROGRAMS = ("file", "frame", "extension")


@dataclass(frozen=True)
class Pages:
    """A browser with an extension, and a foreign server with the same page."""

    context: BrowserContext
    folder: Path
    foreign_url: str
    extension_url: str

    async def open(self, kind: str) -> Page | Frame:
        """Return a new page, or the frame in it, of a file, a sandboxed frame, the extension or the foreign server."""
        addresses = {
            "file": (self.folder / "page.html").as_uri(),
            "frame": f"{self.foreign_url}/framed.html",
            "extension": f"{self.extension_url}/page.html",
            "foreign": f"{self.foreign_url}/page.html",
        }
        page = await self.context.new_page()
        await page.goto(addresses[kind])
        place = page.frames[1] if kind == "frame" else page
        await place.wait_for_function("'useClient' in globalThis")
        return place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pages(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pages]:
    folder = tmp_path_factory.mktemp("pages")
    bundle_for_browsers(HERE / "browser_page.mjs", folder / "page.js")
    for name, text in (("page.html", PAGE), ("framed.html", FRAMED), ("worker.js", "")):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(EXTENSION), encoding="utf-8")
    loads = (f"--disable-extensions-except={folder}", f"--load-extension={folder}")
    async with _file_server(folder) as foreign_url, async_playwright() as driver:
        context = await driver.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=chromium(),
            args=[*QUIET, *loads],
            ignore_default_args=["--disable-extensions"],
        )
        workers = context.service_workers or [await context.wait_for_event("serviceworker")]
        yield Pages(context, folder, foreign_url, workers[0].url.removesuffix("/worker.js"))
        await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[Provider]:
    async with provider(replies("Hello from here.")) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, upstream: Provider) -> AsyncIterator[RunningServer]:
    settings = f'upstream_url = "{upstream.url}"\nupstream_key = "sk-test"\n'
    async with run_server(tmp_path_factory.mktemp("server"), settings=settings) as running:
        yield running


@asynccontextmanager
async def _file_server(folder: Path) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_static("/", folder)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def use_client(place: Page | Frame, server: RunningServer, use: str, key: str = "") -> Any:
    given = {"url": server.url, "key": key or server.key, "use": use}
    return await place.evaluate("given => useClient(given)", given)


@pytest.mark.requirement("cors:browser")
@pytest.mark.parametrize("kind", PROGRAMS)
async def test_the_client_works_in_the_page_of_a_program(pages: Pages, server: RunningServer, kind: str) -> None:
    place = await pages.open(kind)
    origin = await place.evaluate("origin")
    assert origin == (pages.extension_url if kind == "extension" else "null")
    assert await use_client(place, server, "models") == {"value": ["scripted", "tour"]}
    text, request_id = (await use_client(place, server, "whole"))["value"]
    assert text == "Hello from here."
    assert re.fullmatch("req_[0-9a-f]{16}", request_id), "a header of ours can be read"
    assert await use_client(place, server, "streamed") == {"value": "Hello from here."}
    assert await use_client(place, server, "headers") == {"value": "Hello from here."}


@pytest.mark.requirement("cors:browser", "cors:readable")
@pytest.mark.parametrize("kind", PROGRAMS)
async def test_the_client_tells_the_page_of_a_program_what_was_wrong(
    pages: Pages, server: RunningServer, kind: str
) -> None:
    place = await pages.open(kind)
    refused = await use_client(place, server, "whole", key="wrong")
    assert (refused["error"], refused["status"]) == ("AuthenticationError", 401)
    assert "the key is invalid" in refused["message"]


@pytest.mark.requirement("cors:browser", "s:S-43")
async def test_the_page_of_another_server_gets_nothing_with_a_key(
    pages: Pages, server: RunningServer, upstream: Provider
) -> None:
    place, before = await pages.open("foreign"), len(upstream.bodies)
    for use in ("models", "whole", "streamed"):
        refused = await use_client(place, server, use)
        assert (refused["error"], refused["status"]) == ("APIConnectionError", 0)
    assert len(upstream.bodies) == before


@pytest.mark.requirement("cors:browser", "s:S-43")
@pytest.mark.parametrize("kind", [*PROGRAMS, "foreign"])
async def test_a_browser_that_is_signed_in_opens_nothing_to_other_pages(
    pages: Pages, server: RunningServer, kind: str
) -> None:
    place = await pages.open(kind)
    signed_in = await pages.context.request.post(f"{server.url}/login", form={"key": server.key})
    assert signed_in.ok
    token = (await (await pages.context.request.get(f"{server.url}/v1/session")).json())["csrf"]
    calls = len((await server.get("/v1/calls")).json["data"])
    for asked in ({"method": "GET", "token": ""}, {"method": "POST", "token": ""}, {"method": "POST", "token": token}):
        path = "/v1/tools" if asked["method"] == "GET" else "/v1/tools/LS"
        given = {"url": server.url, "path": path, **asked}
        assert await place.evaluate("given => fetchWithCookies(given)", given) == 0
    assert len((await server.get("/v1/calls")).json["data"]) == calls
