"""The page of prompts: what is in files, names that nothing fills, and a trial of a system message."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import untranslated
from tests.console.visit import PHONE, visiting

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:prompts")]


async def test_prompts_are_listed_and_a_system_message_is_tried(browser: Browser, fresh: Host) -> None:
    folder = Path((await fresh.api("GET", "/v1/prompts"))["folders"][0])
    async with visiting(browser, fresh) as visit:
        await visit.go("/prompts")
        await expect(visit.page.get_by_text("There are no prompts yet")).to_be_visible()
        folder.mkdir()
        (folder / "style.md").write_text("---\nmodel: gpt-5\n---\nBe {{how}}.")
        (folder / "variables.toml").write_text('how = "short"\nbad = 1\n')
        await visit.page.get_by_role("button", name="Reload").click()
        row = visit.page.get_by_role("listitem").filter(has_text="{{style}}")
        await expect(row).to_contain_text("gpt-5")
        await expect(visit.page.get_by_text("'bad' is no text: put it in quotes")).to_be_visible()
        await visit.page.get_by_role("textbox", name="System message").fill("{{style}} {{Nobody}}")
        await visit.page.get_by_role("button", name="Show what the model gets").click()
        await expect(visit.page.get_by_text("Be short. {{Nobody}}")).to_be_visible()
        await visit.page.get_by_role("button", name="Reload").click()
        await expect(visit.page.get_by_role("listitem").filter(has_text="{{Nobody}}")).to_be_visible()
        assert [*await layout_faults(visit.page), *await access_faults(visit.page)] == []
        assert visit.wrong() == []


async def test_a_phone_shows_the_page_whole_and_its_words_are_translated(browser: Browser, fresh: Host) -> None:
    folder = Path((await fresh.api("GET", "/v1/prompts"))["folders"][0])
    folder.mkdir(exist_ok=True)
    (folder / "a-long-name-of-a-prompt.md").write_text("---\nmodel: gpt-5\ndescription: who\n---\nText")
    (folder / "variables.toml").write_text("bad = 1\n")
    async with visiting(browser, fresh, size=PHONE, lang="pseudo") as visit:
        await visit.go("/prompts")
        await expect(visit.page.get_by_text("a-long-name-of-a-prompt}}")).to_be_visible()
        assert await layout_faults(visit.page, phone=True) == []
        assert await untranslated(visit.page) == []
        assert visit.wrong() == []
