"""The console below a path, behind a proxy that removes the path or not, or that names not even the host."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.proxying import ProxiedHost, passing_on
from tests.console.talking import Talking, drawn, say, talking
from tests.console.visit import Visit, visiting
from tests.waiting import wait_for_value
from toolyard.server_paths import CONSOLE_PAGES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("proxy:subpath")]
DRAWING = "Look:\n\n```mermaid\ngraph LR\n A --> B\n```\n"


@asynccontextmanager
async def proxied(folder: Path, *, removes: bool, names_host: bool) -> AsyncIterator[tuple[Talking, ProxiedHost]]:
    async with (
        talking(folder) as chat,
        passing_on(chat.host.url, "/yard", removes=removes, names_host=names_host) as address,
    ):
        (chat.host.home / "config.toml").write_text(f'public_url = "{address}/yard"\n')
        await wait_for_value(lambda: serves_public_url(chat.host, f"{address}/yard"))
        yield chat, ProxiedHost(chat.host.home, chat.host.project, chat.host.port, address=f"{address}/yard")


async def serves_public_url(host: Host, url: str) -> bool:
    return bool((await host.api("GET", "/openapi.json")).get("servers") == [{"url": url}])


@pytest.mark.parametrize(
    ("removes", "names_host"), [(False, True), (True, True), (True, False)], ids=["kept", "removed", "host not named"]
)
async def test_the_whole_console_works_below_a_path(
    browser: Browser, tmp_path: Path, removes: bool, names_host: bool
) -> None:
    async with (
        proxied(tmp_path, removes=removes, names_host=names_host) as (chat, host),
        visiting(browser, host, signed_in=False) as visit,
    ):
        visit.allowed += ["response 401", "status of 401"]
        await visit.page.goto(f"{host.url}/activity?state=error")
        await visit.page.get_by_label("Key").fill(host.key)
        await visit.page.get_by_role("button", name="Sign in").click()
        await visit.page.wait_for_url(f"{host.url}/activity?state=error")
        for page in CONSOLE_PAGES:
            await visit.go(page)
            await require_links_below(visit)
        await visit.page.locator("a[href$='/yard/activity']").first.click()
        await visit.page.wait_for_url(f"{host.url}/activity*")
        await chat.host.call("LS", path=".")
        await expect(visit.page.locator("main [data-row]")).to_have_count(1)  # by the WebSocket
        chat.answers("Draw.", DRAWING)
        await visit.go("/chat")
        reply = await say(visit, "Draw.")
        await drawn(reply)
        await expect(reply.locator("figure.mermaid svg[role=img]")).to_be_visible()
        await visit.page.reload()  # at the address of the conversation, one step deeper
        await expect(visit.page.get_by_role("article", name="Assistant")).to_contain_text("Look:")
        await visit.page.go_back()
        await visit.page.locator("a[href$='/yard/status']").first.click()
        await visit.page.wait_for_url(f"{host.url}/status")
        assert visit.wrong() == []


async def require_links_below(visit: Visit) -> None:
    """Every link and image leads below the path, also when it is opened in another tab."""
    own = await visit.page.evaluate(
        "[...document.querySelectorAll('a[href], img[src]')].map((one) => one.href ?? one.src)"
        ".filter((url) => url.startsWith(location.origin))"
    )
    assert own
    assert [url for url in own if not url.startswith(f"{visit.host.url}/")] == []
