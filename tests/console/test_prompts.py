"""The page of prompts: what is in files, names that nothing fills, and a trial of a system message."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import untranslated
from tests.console.visit import PHONE, visiting

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:prompts")]


def write(home: Path, files: Mapping[str, str]) -> None:
    (home / "prompts").mkdir(exist_ok=True)
    for name, text in files.items():
        (home / "prompts" / name).write_text(text)


async def test_prompts_are_listed_and_a_system_message_is_tried(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.go("/prompts")
        await expect(visit.page.get_by_text("There are no prompts yet")).to_be_visible()
        write(
            fresh.home, {"style.md": "---\nmodel: gpt-5\n---\nBe {{how}}.", "variables.toml": 'how = "short"\nbad = 1'}
        )
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
    header = "---\nmodel: gpt-5\ndescription: who\n---\nText"
    write(fresh.home, {"a-long-name-of-a-prompt.md": header, "variables.toml": "bad = 1"})
    async with visiting(browser, fresh, size=PHONE, lang="pseudo") as visit:
        await visit.go("/prompts")
        await expect(visit.page.get_by_text("a-long-name-of-a-prompt}}")).to_be_visible()
        assert await layout_faults(visit.page, phone=True) == []
        assert await untranslated(visit.page) == []
        assert visit.wrong() == []
