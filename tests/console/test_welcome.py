"""The first steps: a model that answers, language and time, the folder, one call; or none of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.visit import PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
KEY = "sk-canary-77aa01c2"


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """A model provider that knows its key."""

    async def models(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            error = {"message": "Incorrect API key: you are not <b>known</b> here.", "code": "invalid_api_key"}
            return web.json_response({"error": error}, status=401)
        listed = [{"id": name, "object": "model"} for name in ("star-1", "星辰-大", "star-<i>")]
        return web.json_response({"object": "list", "data": listed})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.mark.requirement("console:first-run")
async def test_the_steps_set_a_model_that_answers_the_time_zone_and_run_the_echo(browser: Browser, fresh: Host) -> None:
    async with provider() as address, visiting(browser, fresh) as visit:
        page = visit.page
        await visit.go("/chat")
        await page.get_by_role("link", name="First steps").click()
        test, forward = page.get_by_role("button", name="Test"), page.get_by_role("button", name="Next", exact=True)
        said, url, key = (
            page.get_by_role("note"),
            page.get_by_label("Base URL", exact=True),
            page.get_by_label("Key", exact=True),
        )
        await expect(forward).to_be_disabled()
        await test.click()
        await expect(page.locator(".problem")).to_have_text("Enter the URL first.")
        await url.fill("http://127.0.0.1:9/v1")
        await test.click()
        await expect(said).to_contain_text("it cannot be reached: Connection refused")
        await url.fill(address)
        await expect(said).to_have_count(0)
        await test.click()
        await expect(said).to_contain_text("Incorrect API key: you are not <b>known</b> here.")
        await key.fill(KEY)
        await test.click()
        await expect(said).to_contain_text("3 models found")
        await expect(said.locator("code")).to_have_text(["star-1", "星辰-大", "star-<i>"])
        assert await access_faults(page) == []
        await forward.click()

        zone = page.get_by_label("Time zone", exact=True)
        await zone.fill("Mars/Base")
        await expect(page.locator(".problem")).to_have_text("Unknown time zone.")
        await expect(forward).to_be_disabled()
        await zone.fill("Europe/Lisbon")
        await page.get_by_text("中文").click()
        await expect(page.get_by_role("heading", name="语言与时区")).to_be_visible()
        await page.get_by_text("English").click()
        await forward.click()

        await expect(page.locator(".welcome-folder")).to_contain_text(str(fresh.project))
        await expect(page.locator(".welcome-steps .past")).to_contain_text(
            ["Model done", "Language and time zone done"]
        )
        await forward.click()
        await page.get_by_role("button", name="Run EchoPlugin").click()
        await expect(page.locator(".welcome-tick")).to_be_visible()
        await expect(page.locator(".welcome-echo")).to_contain_text("Echo: Hello, Toolyard!")
        assert await access_faults(page) == []
        assert KEY not in await page.content()
        await page.get_by_role("button", name="Start chatting").click()
        await page.wait_for_url("**/chat")
        await visit.settle()
        await expect(page.get_by_role("link", name="First steps")).to_have_count(0)
        assert visit.wrong() == []
    written = (fresh.home / "config.toml").read_text()
    assert f'upstream_url = "{address}"' in written
    assert 'time_zone = "Europe/Lisbon"' in written
    assert (await fresh.api("GET", "/v1/status"))["first_run"] is False


@pytest.mark.requirement("console:first-run", "console:url-state")
async def test_each_step_and_all_of_them_can_be_skipped_and_nothing_is_written(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh, size=PHONE) as visit:
        page = visit.page
        await visit.go("/welcome")
        skip = page.get_by_role("button", name="Skip", exact=True)
        for number, name in ((2, "Language and time zone"), (3, "Workspace"), (4, "First call")):
            await skip.click()
            await page.wait_for_url(f"**/welcome?step={number}")
            await expect(page.get_by_role("heading", name=name)).to_be_visible()
            assert await layout_faults(page, phone=True) == []
        steps = page.locator(".welcome-steps li")
        await expect(steps.first).to_contain_text("skipped")
        await expect(steps.locator(".icon")).to_have_count(0)  # a step that was passed by has no tick
        await page.go_back()
        await expect(page.get_by_role("heading", name="Workspace")).to_be_visible()
        await page.get_by_role("button", name="Back").click()
        await page.reload()
        await expect(page.get_by_role("heading", name="Language and time zone")).to_be_visible()
        assert (await fresh.api("GET", "/v1/status"))["first_run"] is True
        await page.get_by_role("button", name="Skip all").click()
        await page.wait_for_url("**/chat")
        await visit.settle()
        await expect(page.get_by_role("link", name="First steps")).to_have_count(0)
        assert visit.wrong() == []
    assert (await fresh.api("GET", "/v1/status"))["first_run"] is False
    assert not (fresh.home / "config.toml").exists()


@pytest.mark.requirement("console:first-run")
async def test_a_key_that_is_not_the_owners_is_sent_to_the_chat(browser: Browser, filled: Host) -> None:
    made = await filled.api("POST", "/v1/keys", {"name": "guest", "scopes": ["chat", "tools"]})
    async with visiting(browser, filled, signed_in=False) as visit:
        await visit.context.request.post(f"{filled.url}/login", form={"key": made["key"]})
        await visit.go("/welcome")
        await expect(visit.page.get_by_role("heading", name="Owner only")).to_be_visible()
        await visit.page.get_by_role("button", name="Go to chat").click()
        await visit.page.wait_for_url("**/chat")
        assert visit.wrong() == []
