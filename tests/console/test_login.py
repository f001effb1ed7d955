"""Getting in: the login page in a browser, and coming back to where one wanted to go."""

from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Error, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.visit import DESKTOP, PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.requirement("console:login")
async def test_whoever_is_not_signed_in_signs_in_and_comes_to_the_place_they_wanted(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled, signed_in=False) as visit:
        visit.allowed += ["response 401", "status of 401"]
        await visit.page.goto(f"{filled.url}/activity?state=error")
        await visit.page.get_by_label("Key").fill(filled.key)
        await visit.page.get_by_role("button", name="Sign in").click()
        await visit.page.wait_for_url(f"{filled.url}/activity?state=error")
        await expect(visit.page.get_by_role("heading", name="Activity")).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("console:login")
async def test_signing_in_never_leads_to_another_server(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, signed_in=False) as visit:
        for goal in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"):
            came = await visit.context.request.post(
                f"{filled.url}/login", form={"key": filled.key, "next": goal}, max_redirects=0
            )
            assert (goal, came.status, came.headers["location"]) == (goal, 303, "/")


@pytest.mark.requirement("console:login", "console:languages")
@pytest.mark.parametrize(("lang", "said"), [("en", "invalid"), ("zh", "无效")], ids=["en", "zh"])
async def test_every_wrong_key_gets_the_same_words_in_the_language_of_the_browser(
    browser: Browser, filled: Host, lang: str, said: str
) -> None:
    async with visiting(browser, filled, signed_in=False, lang=lang, size=PHONE) as visit:
        visit.allowed += ["401"]
        seen = set()
        for key in ("x", "ty-" + "A" * 43):
            await visit.page.goto(f"{filled.url}/login")
            await visit.page.locator("input[name=key]").fill(key)
            await visit.page.locator("form button").last.click()
            seen.add(await visit.page.get_by_role("alert").inner_text())
        assert len(seen) == 1
        assert said in seen.pop()
        assert await layout_faults(visit.page, phone=True) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:login")
async def test_the_page_says_where_the_key_is_and_which_version_this_is(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, signed_in=False, size=DESKTOP) as visit:
        await visit.page.goto(f"{filled.url}/login")
        text = await visit.page.locator("main").inner_text()
        assert "toolyard config show --key" in text
        assert "Toolyard 0." in text or "Toolyard 1." in text


@pytest.mark.requirement("console:offline", "console:login")
async def test_a_session_that_ends_leads_to_the_login_and_back_to_the_same_place(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["401", "WebSocket"]
        await visit.go("/status")
        await visit.context.clear_cookies()
        with suppress(Error):  # the page may have asked first, and be on its way
            await visit.page.evaluate("document.querySelector('a[href=\"/tasks\"]')?.click()")
        await visit.page.wait_for_url("**/login?next=**")
        [goal] = parse_qs(urlsplit(visit.page.url).query)["next"]
        assert goal in ("/tasks", "/status")
        await visit.page.get_by_label("Key").fill(filled.key)
        await visit.page.get_by_role("button", name="Sign in").click()
        await visit.page.wait_for_url(f"{filled.url}{goal}")


@pytest.mark.requirement("console:login")
async def test_a_page_whose_script_is_refused_after_the_session_leads_to_the_login(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["401", "WebSocket"]
        await visit.page.route("**/assets/*/tasks.js", lambda route: route.fulfill(status=401))  # never loaded ahead
        await visit.go("/status")
        await visit.context.clear_cookies()
        with suppress(Error):  # the page may have asked first, and be on its way
            await visit.page.evaluate("document.querySelector('a[href=\"/tasks\"]')?.click()")
        await visit.page.wait_for_url("**/login?next=**")
        assert visit.wrong() == []


@pytest.mark.requirement("console:login")
async def test_the_key_can_be_seen_while_it_is_typed_and_the_page_says_where_it_is(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled, signed_in=False, size=PHONE) as visit:
        await visit.page.goto(f"{filled.url}/login")
        field, show = visit.page.get_by_label("Key", exact=True), visit.page.get_by_role("button", name="Show the key")
        await expect(visit.page.locator("main")).to_contain_text("In a file on the server")
        await expect(visit.page.locator("h1 svg")).to_be_visible()
        await field.fill("half a key")
        await expect(field).to_have_attribute("type", "password")
        await show.click()
        await expect(field).to_have_attribute("type", "text")
        await expect(field).to_be_focused()
        await show.click()
        await expect(field).to_have_attribute("type", "password")
        assert await layout_faults(visit.page, phone=True) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []
