"""The console as an app: it can be installed, opens without its server, and is never older than the server."""

import base64
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.async_api import Browser, expect

import toolyard
from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.proxying import ProxiedHost
from tests.console.test_subpath import proxied
from tests.console.visit import DESKTOP, PHONE, Visit, visiting
from tests.waiting import wait_for_value
from toolyard.web.server.listener import list_lan_addresses

pytestmark = pytest.mark.asyncio(loop_scope="session")
ICONS = Path(__file__).parent.parent.parent / "console" / "public"
FULL_BLEED = {"maskable-512": 512, "apple-touch-icon": 180}  # systems cut their own shape out of them
LOST = ["ERR_CONNECTION_REFUSED", "ERR_FAILED", "WebSocket", "Failed to load resource", "502"]
READY = "navigator.serviceWorker.ready.then((one) => one.active.scriptURL + ' ' + one.scope)"
STORED = """async () => {
  const stored = {};
  for (const name of await caches.keys())
    stored[name] = (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname).sort();
  return stored;
}"""
# A build that gives the worker up.
ENDING = """self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.registration.unregister()));"""
GONE = "navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)"
LAN = [address for address in list_lan_addresses() if ":" not in address]
WITH_LAN = pytest.mark.skipif(not LAN, reason="this machine has no IPv4 address in a network")


async def find_install_faults(visit: Visit) -> list[str]:
    """What Chromium holds against installing the page, without what is about this way of running Chromium."""
    session = await visit.context.new_cdp_session(visit.page)
    found = (await session.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    return [one["errorId"] for one in found if one["errorId"] != "in-incognito"]


async def read_manifest(visit: Visit) -> tuple[str, dict[str, Any]]:
    """The address and the content of the manifest, in which Chromium finds no fault."""
    session = await visit.context.new_cdp_session(visit.page)
    found = await session.send("Page.getAppManifest")
    assert found["errors"] == []
    return found["url"], json.loads(found["data"])


@pytest.mark.requirement("phone:install")
async def test_the_console_can_be_installed_with_its_icons_colours_and_language(
    whole_browser: Browser, filled: Host
) -> None:
    for lang, theme, name in (("en", "light", "Approvals"), ("zh", "dark", "审批")):
        async with visiting(whole_browser, filled, size=PHONE, lang=lang, theme=theme, with_worker=True) as visit:
            await visit.go("/chat")
            assert await visit.page.evaluate(READY) == f"{filled.url}/service-worker.js {filled.url}/"
            await wait_for_value(partial(find_install_faults, visit), lambda found: not found)
            address, manifest = await read_manifest(visit)
            assert urljoin(address, manifest["start_url"]) == urljoin(address, manifest["scope"]) == f"{filled.url}/"
            assert (manifest["display"], manifest["shortcuts"][1]["name"]) == ("standalone", name)
            for icon in manifest["icons"]:
                size = await visit.page.evaluate(
                    "(src) => new Promise((done, failed) => { const image = new Image(); image.onerror = failed;"
                    " image.onload = () => done(`${image.width}x${image.height}`); image.src = src; })",
                    urljoin(address, icon["src"]),
                )
                assert size == icon["sizes"]
            assert {icon.get("purpose", "any") for icon in manifest["icons"]} == {"any", "maskable"}
            shown = await visit.page.evaluate(
                "[...document.querySelectorAll('meta[name=theme-color]')]"
                ".filter((one) => matchMedia(one.media).matches).map((one) => {"
                " const probe = document.body.appendChild(document.createElement('i'));"
                " probe.style.color = one.content; const colour = getComputedStyle(probe).color;"
                " probe.remove(); return colour; })"
            )
            top = await visit.page.evaluate("getComputedStyle(document.querySelector('.top')).backgroundColor")
            assert shown == [top]
            assert visit.wrong() == []


@pytest.mark.requirement("phone:install")
async def test_the_icons_are_pictures_of_the_drawing(browser: Browser) -> None:
    script = (Path(__file__).parent / "pictures.js").read_text()
    drawing = (ICONS / "icon.svg").read_text()
    for name, size in {"icon-192": 192, "icon-512": 512, **FULL_BLEED}.items():
        page = await browser.new_page(viewport={"width": size, "height": size})
        ground = "#2f5bd8" if name in FULL_BLEED else "transparent"
        style = f"* {{ margin: 0; background: {ground} }} svg {{ display: block; width: {size}px }}"
        await page.set_content(f"<style>{style}</style>{drawing}")
        seen = await page.screenshot(omit_background=name not in FULL_BLEED)
        kept = ICONS / "install" / f"{name}.png"
        if "TOOLYARD_NEW_PICTURES" in os.environ:
            kept.write_bytes(seen)
        pair = [base64.b64encode(one).decode() for one in (kept.read_bytes(), seen)]
        assert (name, await page.evaluate(script, pair) < 0.01) == (name, True)
        await page.close()


@pytest.mark.requirement("phone:offline")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_without_its_server_the_console_opens_says_so_and_comes_back_by_itself(
    browser: Browser, fresh: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, fresh, size=size, lang="zh" if size == PHONE else "en", with_worker=True) as visit:
        visit.allowed += LOST
        await fresh.call("LS", path=".")
        await visit.go("/activity")
        await visit.page.evaluate(READY)
        for path in ("/tools", "/status", "/activity?state=success"):
            await visit.go(path)  # now through the worker
        stored = await visit.page.evaluate(STORED)
        [files] = stored.values()
        assert "/console/index.html" in files
        assert [file for file in files if not file.startswith("/console/")] == []
        await fresh.stop()
        await visit.page.reload()
        title = "无法连接服务器" if size == PHONE else "The server cannot be reached"
        await expect(visit.page.get_by_role("heading", name=title)).to_be_visible()
        assert await layout_faults(visit.page, phone=size == PHONE) == []
        assert await access_faults(visit.page) == []
        assert await visit.page.evaluate(STORED) == stored
        answer = await visit.page.evaluate("fetch('/v1/tools').then((one) => one.status, () => 'nothing')")
        assert answer == "nothing"
        await fresh.start()
        await expect(visit.page.locator("main [data-row]")).to_have_count(1)
        assert visit.page.url == f"{fresh.url}/activity?state=success"
        assert visit.wrong() == []


@pytest.mark.requirement("phone:offline")
async def test_the_stored_page_has_the_policy_of_the_console_and_the_worker_a_stricter_one(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh, with_worker=True) as visit:
        await visit.go("/chat")
        await visit.page.evaluate(READY)
        policies = await visit.page.evaluate(
            "async () => [await caches.match('/console/index.html'), await fetch('/'),"
            " await fetch('/service-worker.js')]"
            ".map((one) => one.headers.get('content-security-policy'))"
        )
        assert policies[0] == policies[1]
        assert "connect-src 'self'" in policies[2]
        assert "script-src" not in policies[2]
        assert policies[2].endswith("trusted-types 'none'")
        refused = await visit.page.evaluate(
            "navigator.serviceWorker.register('/service-worker.js').then(() => 'taken', (error) => error.name)"
        )
        assert refused == "TypeError"  # only the policy may name a worker


@asynccontextmanager
async def hosting_copy(folder: Path) -> AsyncIterator[tuple[Host, Path]]:
    """A server that runs from a copy of the program, and the console in it."""
    program = Path(toolyard.__file__).parent
    shutil.copytree(program, folder / "program" / "toolyard", ignore=shutil.ignore_patterns("__pycache__"))
    async with hosting(folder, settings={"PYTHONPATH": str(folder / "program")}) as host:
        yield host, folder / "program" / "toolyard" / "web" / "console"


def upgrade(console: Path) -> str:
    """Give the console another build, which changes one script; the path of its files."""
    build = json.loads((console / "build.json").read_text("utf-8"))
    (console / "build.json").write_text(json.dumps(build | {"files": "newer"}), encoding="utf-8")
    with (console / "assets/index.js").open("a", encoding="utf-8") as script:
        script.write("document.documentElement.dataset.newer = '';")
    return f"/console/assets/{hashlib.sha256((console / 'build.json').read_bytes()).hexdigest()[:12]}/"


@pytest.mark.requirement("phone:upgrade")
async def test_after_an_upgrade_the_new_console_is_offered_shown_and_stored_alone(
    browser: Browser, tmp_path: Path
) -> None:
    async with hosting_copy(tmp_path) as (host, console), visiting(browser, host, with_worker=True) as visit:
        visit.allowed += LOST
        await visit.go("/status")
        await visit.page.evaluate(READY)
        [before] = (await visit.page.evaluate(STORED)).values()
        await host.stop()
        await expect(visit.page.locator(".banner")).to_contain_text("Reconnecting")
        other = await visit.context.new_page()
        visit.watch(other)
        await other.goto(f"{host.url}/tools")  # the old page, without a server
        await expect(other.get_by_role("heading", name="The server cannot be reached")).to_be_visible()
        files = upgrade(console)
        await host.start()
        running = f"html[data-newer] script[src^='{files}']"
        await expect(other.locator(running)).to_have_count(1)
        await expect(other.locator("main .page")).to_be_visible()
        await expect(visit.page.locator(".banner")).to_contain_text("newer console")
        await visit.page.get_by_role("button", name="Reload").click()
        await expect(visit.page.locator(running)).to_have_count(1)

        async def is_stored() -> bool:
            stored = list((await visit.page.evaluate(STORED)).values())
            return len(stored) == 1 and f"{files}index.js" in stored[0]

        await wait_for_value(is_stored)
        [after] = (await visit.page.evaluate(STORED)).values()
        assert len(after) == len(before)
        await other.close()
        await visit.page.goto(f"{host.url}/console/icon.svg")  # a page that asks for nothing more
        await host.stop()
        (console / "service-worker.js").write_text(ENDING)
        await host.start()
        await visit.context.clear_cookies()  # also without a session
        await visit.page.evaluate("navigator.serviceWorker.getRegistration().then((one) => one?.update())")
        await wait_for_value(lambda: visit.page.evaluate(GONE))
        assert visit.wrong() == []


@pytest.mark.requirement("phone:install", "phone:offline", "proxy:subpath")
async def test_below_a_path_the_app_keeps_to_it_and_opens_while_the_proxy_reaches_nobody(
    whole_browser: Browser, tmp_path: Path
) -> None:
    async with (
        proxied(tmp_path, removes=True, names_host=False) as (chat, host),
        visiting(whole_browser, host, size=PHONE, with_worker=True) as visit,
    ):
        visit.allowed += LOST
        await visit.go("/tools/Edit")  # deeper than the page itself
        assert await visit.page.evaluate(READY) == f"{host.url}/service-worker.js {host.url}/"
        address, manifest = await read_manifest(visit)
        assert urljoin(address, manifest["start_url"]) == f"{host.url}/"
        assert await find_install_faults(visit) == []
        await chat.host.stop()
        await visit.page.goto(f"{host.url}/tools/Edit")
        await expect(visit.page.get_by_role("heading", name="The server cannot be reached")).to_be_visible()
        [files] = (await visit.page.evaluate(STORED)).values()
        assert {urlsplit(file).path.startswith("/yard/console/") for file in files} == {True}
        await chat.host.start()
        await expect(visit.page.get_by_role("heading", name="Edit")).to_be_visible()
        assert visit.wrong() == []


@WITH_LAN
@pytest.mark.requirement("phone:install")
async def test_where_it_cannot_be_installed_the_settings_say_why_and_what_to_do(
    browser: Browser, tmp_path: Path
) -> None:
    async with hosting(tmp_path, "--host", "0.0.0.0", "--allow-remote") as host:
        outside = ProxiedHost(host.home, host.project, host.port, address=f"http://{LAN[0]}:{host.port}")
        async with visiting(browser, outside, size=PHONE) as visit:
            visit.allowed += ["Cross-Origin-Opener-Policy header has been ignored"]  # so is HTTP from elsewhere
            await visit.go("/settings?tab=looks")
            entry = visit.page.locator(".settings-install")
            await expect(entry).to_contain_text("plain HTTP")
            await expect(entry).to_contain_text("toolyard help tls")
            assert await layout_faults(visit.page, phone=True) == []
            assert visit.wrong() == []
        async with visiting(browser, host, lang="zh") as visit:
            await visit.page.add_init_script(
                "navigator.serviceWorker.register = () => Promise.reject(new DOMException('', 'SecurityError'))"
            )
            await visit.go("/settings?tab=looks")
            await expect(visit.page.locator(".settings-install")).to_contain_text("不信任服务器的证书")
            assert visit.wrong() == []
        async with visiting(browser, host) as visit:
            await visit.go("/settings?tab=looks")
            entry = visit.page.locator(".settings-install")
            await expect(entry).to_contain_text("browser's menu")
            await visit.page.evaluate(
                "const offer = new Event('beforeinstallprompt', {cancelable: true});"
                "offer.prompt = async () => { window.asked = true; window.dispatchEvent(new Event('appinstalled')); };"
                "window.dispatchEvent(offer); window.held = offer.defaultPrevented;"
            )
            assert await visit.page.evaluate("window.held")  # the browser does not ask on its own
            await entry.get_by_role("button", name="Install").click()
            await expect(entry).to_contain_text("Installed")
            assert await visit.page.evaluate("window.asked")
            assert visit.wrong() == []
