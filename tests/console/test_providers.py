"""Model providers: added, tested, edited, disabled and removed in the browser; the default model and the fallbacks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Error, Locator, Page, Response, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.openai_provider import KEY, REFUSAL, OpenAiProvider, openai_provider
from tests.console.talking import Talking
from tests.console.test_shell import foreign_words
from tests.console.visit import DESKTOP, PHONE, visiting
from tests.gateway.test_probe import server as speaking

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """A server for these tests: none of them needs what another one leaves."""
    async with hosting(tmp_path_factory.mktemp("providers")) as host:
        yield host


async def names(host: Host) -> list[str]:
    return [one["id"] for one in (await host.api("GET", "/v1/models"))["data"]]


@pytest.mark.requirement("console:providers", "console:providers:models", "s:S-72")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_a_provider_is_added_from_a_preset_tested_changed_disabled_and_removed(
    browser: Browser, server: Host, size: tuple[int, int]
) -> None:
    async with (
        openai_provider() as provider,
        openai_provider(("other-1",)) as elsewhere,
        visiting(browser, server, size=size) as visit,
    ):
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        came: list[Response] = []
        page.on("response", lambda one: came.append(one))  # noqa: PLW0108 it takes no built-in
        visit.allowed += ["422"]
        await visit.go("/providers")
        await expect(page.get_by_role("heading", name="No provider yet")).to_be_visible()
        await page.get_by_role("button", name="Add provider").click()
        await dialog.get_by_role("button", name="DeepSeek").click()
        await expect(dialog.get_by_label("Base URL")).to_have_value("https://api.deepseek.com/v1")
        await expect(dialog.get_by_label("Name")).to_have_value("deepseek")
        await expect(dialog.get_by_role("link", name="Get a key")).to_have_attribute("rel", "noopener noreferrer")
        await dialog.get_by_label("Base URL").fill(provider.url)
        await dialog.get_by_label("Name").fill("near")
        await dialog.get_by_label("Key", exact=True).fill("sk-canary-wrong")
        await dialog.get_by_role("button", name="Save", exact=True).click()
        await expect(dialog.get_by_role("note")).to_contain_text(f"it answered 401 (invalid_api_key): {REFUSAL}")
        await expect(dialog.get_by_role("note")).to_contain_text("Copy the key again")
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        await dialog.get_by_label("Key", exact=True).fill(KEY)
        await dialog.get_by_role("button", name="Save", exact=True).click()
        await expect(dialog).to_have_count(0)
        card = page.get_by_role("listitem", name="near")
        await expect(card).to_contain_text("responds in")
        assert (await names(server))[0] == "star-1"  # the default, which was chosen from what it lists

        await card.get_by_text("4 models").click()
        await card.get_by_role("listitem").filter(has_text="星辰-大").get_by_role("button", name="Make default").click()
        await expect(page.get_by_label("Default model")).to_have_value("near/星辰-大")
        assert (await names(server))[0] == "星辰-大"
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []

        await _try_to_move(page, card, elsewhere)

        await card.get_by_role("switch", name="In use").click()
        await expect(card).to_contain_text("off")
        assert await names(server) == ["tour"]
        await card.get_by_role("switch", name="In use").click()
        await expect(card.get_by_text("4 models")).to_be_visible()
        await card.get_by_role("button", name="Remove near").click()
        await dialog.get_by_role("button", name="Remove", exact=True).click()
        await expect(page.get_by_role("heading", name="No provider yet")).to_be_visible()
        assert "near" not in (server.home / "config.toml").read_text()
        bodies = await _read_bodies(came)
        assert any("[masked]" in body for body in bodies)
        assert not any(KEY in body for body in bodies)
        assert visit.wrong() == []


@pytest.mark.requirement("console:providers", "protocols:probe")
@pytest.mark.parametrize(("size", "lang"), [(DESKTOP, "en"), (PHONE, "zh")])
async def test_the_protocol_of_a_provider_is_found_out_shown_and_changed(
    browser: Browser, server: Host, size: tuple[int, int], lang: str
) -> None:
    words = {
        "en": ("Add provider", "Base URL", "Save", "Edit", "Protocol", "Test"),
        "zh": ("添加服务", "地址", "保存", "编辑", "协议", "测试"),
    }
    add, url, save, edit, protocol, test = words[lang]
    file = server.home / "config.toml"
    async with (
        speaking("/v1/messages") as (address, _),
        visiting(browser, server, size=size, lang=lang) as visit,
    ):
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/providers")
        await page.get_by_role("button", name=add).first.click()
        await dialog.get_by_role("button", name="Anthropic").click()
        await expect(dialog.get_by_label(protocol)).to_have_value("anthropic")
        await dialog.get_by_role("button", name="DeepSeek").click()
        await expect(dialog.get_by_label(protocol)).to_have_value("")
        await dialog.get_by_label(url).fill(address)
        await dialog.get_by_role("button", name=test, exact=True).click()
        await expect(dialog.get_by_role("note")).to_contain_text("Anthropic Messages")
        assert await access_faults(page) == []
        assert await layout_faults(page, phone=size == PHONE) == []
        assert await foreign_words(page, lang) == []
        await dialog.get_by_role("button", name=save, exact=True).click()
        await expect(dialog).to_have_count(0)
        assert 'protocol = "anthropic"' in file.read_text()
        await page.get_by_role("button", name=edit, exact=True).first.click()
        await expect(dialog.get_by_label(protocol)).to_have_value("anthropic")
        await dialog.get_by_label(protocol).select_option("responses")
        await dialog.get_by_role("button", name=save, exact=True).click()
        told = {"en": "it does not speak the protocol 'responses'", "zh": "它不支持协议“responses”"}
        await expect(dialog.get_by_role("note")).to_contain_text(told[lang])
        await dialog.get_by_label(protocol).select_option("anthropic")
        await dialog.get_by_role("button", name=save, exact=True).click()
        await expect(dialog).to_have_count(0)
        assert visit.wrong() == []
    await server.api("PATCH", "/v1/settings", {"values": {"upstreams": None, "default_model": None}})


async def _try_to_move(page: Page, card: Locator, elsewhere: OpenAiProvider) -> None:
    """Give a stored provider another address without its key; the edit is refused, kept, and discarded."""
    dialog = page.get_by_role("dialog")
    await card.get_by_role("button", name="Edit").click()
    await expect(dialog.get_by_label("Key", exact=True)).to_have_value("")
    await dialog.get_by_label("Base URL").fill(elsewhere.url)
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("the stored key belongs to")
    assert elsewhere.keys == []
    await page.keyboard.press("Escape")
    await expect(card).to_contain_text("unsaved changes")
    await card.get_by_role("button", name="Edit").click()
    await expect(dialog.get_by_label("Base URL")).to_have_value(elsewhere.url)
    await dialog.get_by_role("button", name="Discard").click()
    await expect(card).not_to_contain_text("unsaved changes")


async def _read_bodies(came: Sequence[Response]) -> list[str]:
    bodies: list[str] = []
    for one in came:
        with suppress(Error):  # a response without a body
            bodies.append(await one.text())
    return bodies


@pytest.mark.requirement("console:providers:rename")
@pytest.mark.parametrize(("size", "lang"), [(DESKTOP, "en"), (PHONE, "zh")])
async def test_a_renamed_provider_is_followed_by_all_that_leads_to_it(
    browser: Browser, server: Host, size: tuple[int, int], lang: str
) -> None:
    words = {
        "en": ("Edit", "Name", "Save", "Another provider has this name.", "Renamed to close", "Default model"),
        "zh": ("编辑", "名称", "保存", "已有同名的服务。", "已重命名为 close", "默认模型"),
    }
    keys = {
        "en": ("Remove the stored key", "Save anyway", "No key"),
        "zh": ("移除已保存的密钥", "仍然保存", "无密钥"),
    }
    (edit, name, save, taken, told, default), (remove_key, anyway, no_key) = words[lang], keys[lang]
    async with openai_provider(("a", "b")) as provider, openai_provider(("c",)) as other:
        stored = {"near": {"url": provider.url, "key": KEY}, "far": {"url": other.url, "key": KEY}}
        values = {"upstreams": stored, "default_model": "near/b", "fallbacks": {"near/a": ["far/c"], "c": ["near/b"]}}
        await server.api("PATCH", "/v1/settings", {"values": values})
        kept = {"title": "kept", "model": "near/a", "messages": [], "settings": {}, "version": 0}
        await server.api("PUT", f"/v1/conversations/renamed-{lang}", kept)
        made = await server.api("POST", "/v1/assistants", {"name": "Helper", "model": "near/b"})
        async with visiting(browser, server, size=size, lang=lang) as visit:
            page, dialog = visit.page, visit.page.get_by_role("dialog")
            await visit.go("/providers")
            card = page.get_by_role("listitem", name="near")
            await expect(card.locator("summary")).to_be_visible()
            await card.get_by_role("button", name=edit).click()
            await expect(dialog.get_by_role("textbox", name=name, exact=True)).to_have_value("near")
            await dialog.get_by_role("textbox", name=name, exact=True).fill("far")
            await dialog.get_by_role("button", name=save, exact=True).click()
            await expect(dialog.get_by_role("alert")).to_contain_text(taken)
            await dialog.get_by_role("textbox", name=name, exact=True).fill("close")
            await expect(dialog).to_contain_text("near/")
            assert await access_faults(page) == []
            assert await layout_faults(page, phone=size == PHONE) == []
            await dialog.get_by_role("button", name=save, exact=True).click()
            await expect(page.get_by_text(told)).to_be_visible()
            await expect(page.locator(".providers-card h3")).to_contain_text(["close", "far"])
            await expect(page.get_by_label(default)).to_have_value("close/b")
            await page.get_by_role("listitem", name="far").get_by_role("button", name=edit).click()
            await dialog.get_by_role("checkbox", name=remove_key).check()
            await dialog.get_by_role("button", name=save, exact=True).click()
            await expect(dialog.get_by_role("note")).to_contain_text(REFUSAL)  # it needs one
            await dialog.get_by_role("button", name=anyway).click()
            await expect(page.get_by_role("listitem", name="far")).to_contain_text(no_key)
            assert (server.home / "config.toml").read_text().count(KEY) == 1
            await expect(page.locator(".providers-chain code")).to_have_text(["close/a", "far/c", "c", "close/b"])
            assert await foreign_words(page, lang) == []
            for path, model in ((f"/chat/renamed-{lang}", "a"), ("/chat", "b")):
                await visit.go(path)
                if path == "/chat":
                    await page.locator(".chat-assistant").filter(has_text="Helper").click()
                provider.asked.clear()
                await page.locator(".chat-compose textarea").fill("Hi")
                await page.locator(".chat-compose .chat-send").click()
                await expect(page.locator(".chat-scroll")).to_contain_text("There is one file: plan.md.")
                assert set(provider.asked) == {model}
            assert visit.wrong() == []
        assert set(provider.keys) == {f"Bearer {KEY}"}
        assert (await server.api("GET", "/v1/models/near/a"))["id"] == "near/a"
        await server.api("DELETE", f"/v1/assistants/{made['id']}")
    await server.api("PATCH", "/v1/settings", {"values": {"upstreams": None, "fallbacks": None, "default_model": None}})


@pytest.mark.requirement("console:providers:fallbacks", "console:settings:kept", "console:languages")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_fallbacks_are_put_in_order_and_what_is_typed_outlives_the_page(
    browser: Browser, server: Host, size: tuple[int, int]
) -> None:
    async with openai_provider(("a", "b", "c")) as provider:
        stored = {"one": {"url": provider.url, "key": KEY}}
        await server.api("PATCH", "/v1/settings", {"values": {"upstreams": stored}})
        async with visiting(browser, server, size=size, lang="zh", theme="dark") as visit:
            page, dialog = visit.page, visit.page.get_by_role("dialog")
            await visit.go("/chat")
            await page.get_by_label("模型", exact=True).select_option(label="管理模型服务…")
            await page.wait_for_url("**/providers")
            await expect(page.get_by_text("3 个模型")).to_be_visible()
            await page.get_by_role("button", name="添加备用模型").click()
            await dialog.get_by_label("当这个模型没有响应时").fill("one/a")
            for model in ("one/c", "one/b"):
                await dialog.get_by_label("改用").fill(model)
                await dialog.get_by_role("button", name="添加", exact=True).click()
            await page.keyboard.press("Escape")
            await page.get_by_role("link", name="对话").last.click()
            await page.go_back()
            await page.get_by_role("button", name="继续编辑").click()
            await dialog.get_by_role("button", name="上移 one/b").click()
            assert await access_faults(page) == []
            await dialog.get_by_role("button", name="保存").click()
            await expect(page.locator(".providers-chain code")).to_have_text(["one/a", "one/b", "one/c"])
            assert await foreign_words(page, "zh") == []
            assert await layout_faults(page, phone=size == PHONE) == []
            assert await access_faults(page) == []
            assert visit.wrong() == []
        assert '"one/a" = ["one/b", "one/c"]' in (server.home / "config.toml").read_text()
    await server.api("PATCH", "/v1/settings", {"values": {"upstreams": None, "fallbacks": None, "default_model": None}})


@pytest.mark.requirement("console:providers", "console:languages")
async def test_a_provider_of_the_environment_is_shown_and_says_where_it_is_set(browser: Browser, chat: Talking) -> None:
    async with visiting(browser, chat.host) as visit:
        await visit.go("/providers")
        card = visit.page.locator(".providers-card")
        await expect(card).to_contain_text("Set by the environment variable OPENAI_")
        await expect(card).to_contain_text("1 model")
        await expect(card.get_by_role("button", name="Edit")).to_have_count(0)
        assert visit.wrong() == []
    async with visiting(browser, chat.host, lang="pseudo") as visit:
        await visit.go("/providers")
        await visit.page.locator(".providers-models summary").click()
        assert await foreign_words(visit.page, "pseudo") == []
        await visit.page.get_by_role("button", name="Add provider").click()
        await visit.page.locator("dialog summary").click()
        assert await foreign_words(visit.page, "pseudo") == []


@pytest.mark.requirement("console:providers:away", "console:languages")
async def test_a_chat_keeps_its_model_while_its_provider_is_away_and_says_so(browser: Browser, server: Host) -> None:
    async with openai_provider() as provider:
        stored = {"near": {"url": provider.url, "key": KEY}}
        values = {"upstreams": stored, "default_model": "near/star-1"}
        await server.api("PATCH", "/v1/settings", {"values": values})
        async with visiting(browser, server) as visit:
            await visit.go("/chat")
            models = visit.page.get_by_label("Model", exact=True)
            await expect(models).to_have_value("star-1")
            # What cannot chat is not offered.
            await expect(models.locator("option").filter(has_text="text-embedding")).to_have_count(0)
            await expect(visit.page.get_by_role("button", name="What is this project about?")).to_be_visible()
            assert visit.wrong() == []
    # The lists of models are forgotten when the providers change.
    await server.api("PATCH", "/v1/settings", {"values": {"default_model": "near/星辰-大"}})
    async with visiting(browser, server) as visit:
        page = visit.page
        await visit.go("/chat")
        models = page.get_by_label("Model", exact=True)
        await expect(models).to_have_value("near/星辰-大")
        await expect(models.locator("option:checked")).to_have_text("near/星辰-大 (not reachable)")
        note = page.get_by_role("note").filter(has_text="The provider of near/星辰-大 is not reachable.")
        await expect(note).to_be_visible()
        await note.get_by_role("link", name="Open providers").click()
        await page.wait_for_url("**/providers")
        await server.api("PATCH", "/v1/settings", {"values": {"default_model": None}})
        await visit.go("/chat")
        await expect(page.get_by_role("note")).to_contain_text("Not reachable: near.")
        await expect(models).to_have_value("")
        assert await access_faults(page) == []
        assert visit.wrong() == []
    await server.api("PATCH", "/v1/settings", {"values": {"upstreams": None, "default_model": None}})


@pytest.mark.requirement("console:providers:models", "console:languages")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_very_many_models_are_searched(browser: Browser, server: Host, size: tuple[int, int]) -> None:
    async with openai_provider([f"org/star-{number}" for number in range(200)]) as provider:
        stored = {"near": {"url": provider.url, "key": KEY}}
        await server.api("PATCH", "/v1/settings", {"values": {"upstreams": stored}})
        async with visiting(browser, server, size=size) as visit:
            page, dialog = visit.page, visit.page.get_by_role("dialog")
            await visit.go("/chat")
            await page.get_by_role("button", name="Model: org/star-0").click()
            await dialog.get_by_label("Search models").fill("star 17")
            await expect(dialog.get_by_role("listitem")).to_have_count(12)
            assert await access_faults(page) == []
            assert await layout_faults(page, phone=size == PHONE) == []
            await dialog.get_by_label("Search models").fill("star-177")
            await dialog.get_by_label("Search models").press("Enter")
            await expect(page.get_by_role("button", name="Model: org/star-177")).to_be_visible()
            assert await layout_faults(page, phone=size == PHONE) == []
            assert visit.wrong() == []
    await server.api("PATCH", "/v1/settings", {"values": {"upstreams": None, "default_model": None}})
