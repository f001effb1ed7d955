"""Settings, keys, the file and the doctor."""

from contextlib import suppress

import pytest
from playwright.async_api import Browser, Error, Response, expect

from tests.console.hosting import Host
from tests.console.visit import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRET = "sk-canary-5f2d9c71"


@pytest.mark.requirement("console:settings")
async def test_a_setting_says_where_it_comes_from_and_a_saved_one_is_in_the_file(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.go("/settings")
        field = visit.page.get_by_label("plugins_at_once")
        await expect(field).to_have_value("8")
        await field.fill("3")
        await visit.page.get_by_role("button", name="Save").click()
        one = visit.page.locator(".settings-one", has=field)
        await expect(one).to_contain_text("from file")
        await expect(one).to_contain_text("default: 8")
        assert "plugins_at_once = 3" in (fresh.home / "config.toml").read_text()
        await one.get_by_role("button", name="Use the default").click()
        await expect(one).not_to_contain_text("from file")
        assert "plugins_at_once" not in (fresh.home / "config.toml").read_text()
        assert visit.wrong() == []


@pytest.mark.requirement("console:settings")
async def test_a_wrong_value_is_refused_beside_its_field_and_nothing_is_written(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        visit.allowed += ["422", "400"]
        await visit.go("/settings")
        field = visit.page.get_by_label("plugins_at_once")
        await field.fill("-4")
        await visit.page.get_by_role("button", name="Save").click()
        await expect(visit.page.locator(".settings-one", has=field).get_by_role("alert")).to_contain_text(
            "plugins_at_once"
        )
        assert not (fresh.home / "config.toml").exists() or "-4" not in (fresh.home / "config.toml").read_text()
        assert visit.wrong() == []


@pytest.mark.requirement("console:settings")
async def test_the_file_is_checked_as_a_whole_and_shows_what_would_change_before_it_is_saved(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh) as visit:
        visit.allowed += ["422"]
        await visit.go("/settings?tab=raw")
        text, save = visit.page.locator("main textarea"), visit.page.get_by_role("button", name="Save")
        await text.fill('approval_mode = "read-only"\nplugins_at_once = "many"\n')
        await visit.page.get_by_role("button", name="Check").click()
        await expect(visit.page.locator("main .notice.bad")).to_contain_text("2:")
        await expect(save).to_be_disabled()
        await text.fill('approval_mode = "read-only"\n')
        await visit.page.get_by_role("button", name="Check").click()
        await expect(visit.page.locator(".settings-diff")).to_contain_text('+approval_mode = "read-only"')
        await save.click()
        await expect(visit.page.locator(".toast")).to_be_visible()
        assert (fresh.home / "config.toml").read_text() == 'approval_mode = "read-only"\n'
        assert visit.wrong() == []


@pytest.mark.requirement("console:settings")
async def test_a_key_is_shown_once_and_a_revoked_one_opens_nothing(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.go("/settings?tab=keys")
        await visit.page.get_by_role("button", name="New key").first.click()
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Make the key").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("name")
        await dialog.get_by_label("Name").fill("手机")
        await dialog.get_by_role("button", name="Make the key").click()
        text = await dialog.locator(".settings-made code").inner_text()
        assert text.startswith("ty-")
        await dialog.get_by_role("button", name="I have copied it").click()
        await visit.page.reload()
        await visit.settle()
        assert text not in await visit.page.content()
        row = visit.page.locator("main [data-row]", has_text="手机")
        await row.get_by_role("button", name="Revoke").click()
        await dialog.get_by_role("button", name="Revoke").click()
        await expect(row).to_have_count(0)
        came = await visit.context.request.get(f"{fresh.url}/v1/models", headers={"Authorization": f"Bearer {text}"})
        assert came.status == 401
        assert visit.wrong() == []


@pytest.mark.requirement("console:settings")
async def test_no_secret_of_the_settings_reaches_the_browser(browser: Browser, fresh: Host) -> None:
    await fresh.api(
        "PATCH", "/v1/settings", {"values": {"upstream_key": SECRET, "upstream_url": "http://127.0.0.1:9/v1"}}
    )
    async with visiting(browser, fresh) as visit:
        bodies: list[str] = []

        async def keep(response: Response) -> None:
            if response.status == 200:
                with suppress(Error):  # the page has moved on before its body was read
                    bodies.append(await response.text())

        visit.page.on("response", keep)
        for path in ("/settings", "/settings?tab=raw", "/status", "/settings?tab=doctor"):
            await visit.go(path)
            assert SECRET not in await visit.page.content()
        assert bodies
        assert not any(SECRET in body for body in bodies)


@pytest.mark.requirement("console:settings")
async def test_the_doctor_says_what_this_machine_offers(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        await visit.go("/settings?tab=doctor")
        await expect(visit.page.locator(".settings-checks")).to_contain_text("ripgrep")
        assert visit.wrong() == []


@pytest.mark.requirement("console:status")
async def test_the_status_page_shows_health_load_and_what_failed(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        await visit.go("/status")
        for name in ("Database", "Free disk", "Queue", "Model provider", "Plugins", "Memory"):
            await expect(visit.page.get_by_role("region", name=name)).to_be_visible()
        await expect(visit.page.locator("main")).to_contain_text("NOT_FOUND")
        await visit.page.get_by_role("cell", name="Edit").get_by_role("link").click()
        await visit.page.wait_for_url("**/tools/Edit")
        assert visit.wrong() == []
