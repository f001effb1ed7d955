"""The first steps: a model that answers, one question that needs a tool, language and place; or none of them."""

import time

import pytest
from playwright.async_api import Browser, expect

from tests.console.flows import Steps
from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.openai_provider import KEY, REFUSAL, openai_provider
from tests.console.visit import DESKTOP, PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.requirement("console:first-minute", "console:first-run")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_the_first_minute_leads_to_an_answer_of_a_real_model_that_used_a_tool(
    browser: Browser, fresh: Host, size: tuple[int, int]
) -> None:
    (fresh.project / "plan.md").write_text("# Plan\n")
    async with openai_provider() as provider, visiting(browser, fresh, size=size) as visit:
        page, steps = visit.page, Steps(visit.page, at_most=7)
        began = time.monotonic()
        await steps.open("/chat")
        await steps.press(page.get_by_role("link", name="First steps"))
        await steps.press(page.get_by_role("button", name="vLLM"))
        await steps.fill(page.get_by_label("Base URL", exact=True), provider.url)  # the preset with its port changed
        await steps.fill(page.get_by_label("Key", exact=True), KEY)
        await steps.press(page.get_by_role("button", name="Connect"))
        await steps.press(page.get_by_role("button", name="Ask", exact=True))
        await expect(page.locator(".welcome-try")).to_contain_text("It works: the model used a tool and answered")
        assert time.monotonic() - began < 60
        steps.check()
        await expect(page.locator(".welcome-calls")).to_contain_text("LS")
        await expect(page.locator(".welcome-answer")).to_have_text("There is one file: plan.md.")
        await expect(page.locator(".welcome-answer strong")).to_have_text("plan.md")
        await expect(page.get_by_label("Model for new chats")).to_have_value("star-1")
        assert provider.asked == ["star-1", "star-1"]
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        assert KEY not in await page.content()
        assert visit.wrong() == []
    written = (fresh.home / "config.toml").read_text()
    assert f'[upstreams.local]\nurl = "{provider.url}"\nkey = "{KEY}"' in written
    assert 'default_model = "local/star-1"' in written


@pytest.mark.requirement("console:first-run")
async def test_what_a_provider_says_is_shown_and_the_last_step_names_zone_folder_and_this_home(
    browser: Browser, fresh: Host
) -> None:
    async with openai_provider() as provider, visiting(browser, fresh) as visit:
        page = visit.page
        await visit.go("/welcome")
        connect, said = page.get_by_role("button", name="Connect"), page.get_by_role("note")
        url, key = page.get_by_label("Base URL", exact=True), page.get_by_label("Key", exact=True)
        await connect.click()
        await expect(page.locator(".problem")).to_have_text("Enter the URL first.")
        await page.get_by_role("button", name="Ollama").click()
        await expect(url).to_have_value("http://127.0.0.1:11434/v1")
        await expect(key).to_have_attribute("placeholder", "not needed")
        await page.get_by_role("button", name="Moonshot").click()
        await page.get_by_role("button", name="Use the address outside China").click()
        await expect(url).to_have_value("https://api.moonshot.ai/v1")
        await url.fill("http://127.0.0.1:9/v1")
        await connect.click()
        await expect(said).to_contain_text("it cannot be reached: Connection refused")
        await expect(said).to_contain_text("start the model server, and check its port")
        await url.fill(provider.url)
        await expect(said).to_have_count(0)
        await connect.click()
        await expect(said).to_contain_text(f"it answered 401 (invalid_api_key): {REFUSAL}")
        await expect(said).to_contain_text("This provider needs a key")
        await page.get_by_role("link", name="Chat").first.click()
        await page.go_back()
        await expect(url).to_have_value(provider.url)  # what was typed is kept
        await key.fill(KEY)
        await connect.click()
        await page.wait_for_url("**/welcome?step=2")
        await expect(page.get_by_label("Model for new chats").locator("option")).to_have_text(
            ["star-1", "星辰-大", "star-<i>", "tour"]  # and not the one for embeddings
        )
        await page.get_by_role("button", name="Skip", exact=True).click()

        zone = page.get_by_label("Time zone", exact=True)
        await zone.fill("Mars/Base")
        await expect(page.locator(".problem")).to_have_text("Unknown time zone.")
        await zone.fill("Europe/Lisbon")
        await page.get_by_text("中文").click()
        await expect(page.get_by_role("heading", name="语言与环境")).to_be_visible()
        await page.get_by_text("English").click()
        await expect(page.locator(".welcome-folder")).to_contain_text(str(fresh.project))
        await expect(page.locator("pre")).to_have_text(f"toolyard serve --project FOLDER --home {fresh.home}")
        assert await access_faults(page) == []
        await page.get_by_role("button", name="Start chatting").click()
        await page.wait_for_url("**/chat")
        await visit.settle()
        await expect(page.get_by_role("link", name="First steps")).to_have_count(0)
        assert visit.wrong() == []
    assert 'time_zone = "Europe/Lisbon"' in (fresh.home / "config.toml").read_text()
    status = await fresh.api("GET", "/v1/status")
    assert (status["first_run"], status["time_zone"]) == (False, "Europe/Lisbon")
    plan = await fresh.api("POST", "/v1/schedules/preview", {"cron": "0 9 * * *"})
    assert plan["zone"] == "Europe/Lisbon"  # without a restart


@pytest.mark.requirement("console:first-run", "console:first-run:kept")
async def test_an_address_needs_no_scheme_and_the_first_steps_go_on_where_they_were_left(
    browser: Browser, fresh: Host
) -> None:
    async with openai_provider() as provider, visiting(browser, fresh) as visit:
        page = visit.page
        await visit.go("/welcome")
        url, key = page.get_by_label("Base URL", exact=True), page.get_by_label("Key", exact=True)
        for wrong in ("my server", "ftp://127.0.0.1/v1"):
            await url.fill(wrong)
            await url.press("Enter")
            await expect(page.locator(".problem")).to_have_text(
                "This is not an address. Write it like https://api.example.org/v1 or 127.0.0.1:11434/v1."
            )
        await url.fill(provider.url.removeprefix("http://"))
        await key.fill(KEY)
        await key.press("Enter")
        await page.wait_for_url("**/welcome?step=2")
        await page.get_by_role("button", name="Ask", exact=True).click()
        answer = page.locator(".welcome-answer")
        await expect(answer).to_have_text("There is one file: plan.md.")
        await page.locator(".welcome-calls a").click()  # to look at the call
        await page.wait_for_url("**/activity?call=*")
        await visit.go("/chat")
        await page.get_by_role("link", name="First steps").click()
        await expect(answer).to_have_text("There is one file: plan.md.")
        await page.reload()
        await expect(answer).to_have_text("There is one file: plan.md.")
        await page.get_by_role("button", name="Next").click()
        zone = page.get_by_label("Time zone", exact=True)
        await zone.fill("Europe/Lisbon")
        await page.get_by_role("button", name="Back").click()
        await expect(answer).to_be_visible()
        await page.get_by_role("link", name="Language and place").click()
        await expect(zone).to_have_value("Europe/Lisbon")

        other = await visit.context.new_page()
        visit.watch(other)
        await other.goto(f"{fresh.url}/welcome")
        await expect(other.get_by_role("heading", name="Language and place")).to_be_visible()
        await expect(other.locator(".welcome-steps li.past")).to_have_text(["Model done", "First question done"])
        await page.get_by_role("button", name="Start chatting").click()
        await page.wait_for_url("**/chat")
        await other.goto(f"{fresh.url}/welcome")
        await expect(other.get_by_role("heading", name="Model", exact=True)).to_be_visible()  # from the beginning
        await expect(other.locator(".welcome-steps li.past")).to_have_count(0)
        assert visit.wrong() == []
    assert f'url = "{provider.url}"' in (fresh.home / "config.toml").read_text()


@pytest.mark.requirement("console:first-run", "console:first-run:kept")
async def test_a_provider_without_models_for_chats_is_told_and_none_of_its_models_is_chosen(
    browser: Browser, fresh: Host
) -> None:
    async with openai_provider(["text-embedding-small", "rerank-1"]) as provider, visiting(browser, fresh) as visit:
        page = visit.page
        await visit.go("/welcome")
        await page.get_by_label("Base URL", exact=True).fill(provider.url)
        await page.get_by_label("Key", exact=True).fill(KEY)
        await page.get_by_role("button", name="Connect").click()
        await page.wait_for_url("**/welcome?step=2")
        await expect(page.get_by_role("note")).to_contain_text("lists no model that can chat")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator(".welcome-try")).to_contain_text("It works: the guide used tools and answered")
        assert visit.wrong() == []
    assert "default_model" not in (fresh.home / "config.toml").read_text()


@pytest.mark.requirement("console:first-run", "console:url-state")
async def test_each_step_and_all_of_them_can_be_skipped_and_nothing_is_written(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh, size=PHONE) as visit:
        page = visit.page
        await visit.go("/welcome")
        skip = page.get_by_role("button", name="Skip", exact=True)
        await skip.click()
        await page.wait_for_url("**/welcome?step=2")
        await skip.click()
        await page.wait_for_url("**/welcome?step=3")
        await expect(page.get_by_role("heading", name="Language and place")).to_be_visible()
        assert await layout_faults(page, phone=True) == []
        steps = page.locator(".welcome-steps li")
        await expect(steps.first).to_contain_text("skipped")
        await expect(steps.locator(".icon")).to_have_count(0)  # a step that was passed by has no tick
        await page.get_by_role("button", name="Back").click()
        await page.reload()
        await expect(page.get_by_role("heading", name="First question")).to_be_visible()
        await page.get_by_role("button", name="Ask", exact=True).click()  # the built-in guide uses tools too
        await expect(page.locator(".welcome-calls")).to_contain_text("LS")
        await expect(page.locator(".welcome-try")).to_contain_text("It works: the guide used tools and answered")
        await expect(page.locator(".welcome-answer")).to_contain_text("nothing")  # no raw list of an empty folder
        assert await layout_faults(page, phone=True) == []
        assert (await fresh.api("GET", "/v1/status"))["first_run"] is True
        await page.get_by_role("link", name="Model").click()
        await page.get_by_label("Base URL", exact=True).fill("half an addre")
        await page.get_by_role("button", name="Skip all").click()
        await page.wait_for_url("**/chat")
        await page.reload()  # no question about what was given up
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
        for path, title in (("/welcome", "Owner only"), ("/providers", "Owner only")):
            await visit.go(path)
            await expect(visit.page.get_by_role("heading", name=title)).to_be_visible()
            await visit.page.get_by_role("button", name="Go to chat").click()
            await visit.page.wait_for_url("**/chat")
        assert visit.wrong() == []
