"""The audit page: who allowed what, when and from where, and how each run was confined."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import untranslated
from tests.console.visit import PHONE, visiting
from toolyard.web import routes

WORDS = Path(__file__).parent.parent.parent / "console" / "src" / "pages" / "audit" / "words.ts"
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:audit")]


async def test_decisions_and_runs_are_shown_with_who_and_from_where_and_found_by_action_and_text(
    browser: Browser, fresh: Host
) -> None:
    await fresh.api("POST", "/v1/keys", {"name": "phone", "scopes": ["chat"]})
    await fresh.call("LS", path=".")
    await fresh.call("SciCalculator", expression="1+1")
    async with visiting(browser, fresh) as visit:
        await visit.go("/settings")
        await visit.page.get_by_role("link", name="Audit trail").click()
        await visit.settle()
        rows = visit.page.locator(".audit-row")
        created = rows.filter(has_text="Key created")
        await expect(created).to_contain_text("owner")
        await expect(created).to_contain_text("API key")
        await expect(created).to_contain_text("127.0.0.1")
        await expect(created).to_contain_text("phone")
        ran = rows.filter(has_text="SciCalculator")
        await expect(ran).to_contain_text("success")
        await expect(ran).to_contain_text("confined")
        assert [*await layout_faults(visit.page), *await access_faults(visit.page)] == []

        await visit.page.get_by_label("Action").select_option(label="Keys")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Key created")
        await visit.page.get_by_label("Action").select_option(label="Runs only")
        await expect(rows).to_have_count(2)
        await visit.page.get_by_label("Search entries").fill("scicalc")
        await expect(rows).to_have_count(1)
        await visit.page.reload()
        await expect(rows).to_have_count(1)
        await rows.get_by_role("link", name="SciCalculator").click()
        await expect(visit.page.get_by_role("dialog")).to_contain_text("SciCalculator")
        assert visit.wrong() == []


async def test_a_phone_shows_every_entry_whole_and_the_words_are_translated(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, size=PHONE, lang="pseudo") as visit:
        await visit.go("/audit")
        await expect(visit.page.locator(".audit-row").first).to_be_visible()
        assert await layout_faults(visit.page, phone=True) == []
        assert await untranslated(visit.page) == []
        assert visit.wrong() == []


def _list_actions() -> set[str]:
    sources = [file.read_text("utf-8") for file in Path(routes.__path__[0]).rglob("*.py")]
    return {action for text in sources for action in re.findall(r'audit=(?:Audited\()?"([\w.]+)"', text)}


@pytest.mark.requirement("craft:words")
async def test_every_action_has_a_word_in_both_languages_and_facts_are_no_words_of_the_program(
    browser: Browser, filled: Host
) -> None:
    words = WORDS.read_text("utf-8")
    actions = _list_actions()
    assert len(actions) > 20
    assert [action for action in actions if words.count(f'"{action}":') != 2] == []
    await filled.api("POST", "/v1/login-links")
    async with visiting(browser, filled, lang="zh") as visit:
        await visit.go("/audit")
        await expect(visit.page.locator(".audit-row").filter(has_text="创建登录链接")).not_to_have_count(0)
        shown = await visit.page.locator(".audit-row").all_inner_texts()
        assert [text for text in shown if re.search(r"\b[a-z]+_[a-z]+", text)] == []
        assert visit.wrong() == []
