"""The page of an installation of VCPToolBox: the review, and the one decision on its plugins."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import untranslated
from tests.console.visit import PHONE, visiting
from tests.vcp.conftest import SHOW, add_plugin, make_tree

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:vcp")]


def make_installation(place: Path) -> Path:
    tree = make_tree(place)
    add_plugin(tree, "Snake", "import no_such_package_here\n")
    (tree / "agent_map.json").write_text('{"Nova": "Nova.txt", "Gone": "Gone.txt"}', encoding="utf-8")
    return tree


async def test_an_installation_is_reviewed_and_its_plugins_allowed_with_one_yes(
    browser: Browser, tmp_path: Path
) -> None:
    tree = make_installation(tmp_path)
    async with hosting(tmp_path, "--vcp", str(tree)) as host, visiting(browser, host) as visit:
        await visit.go("/vcp")
        page = visit.page
        await expect(page.get_by_role("heading", name="4 plugins wait for your decision")).to_be_visible()
        await expect(page.get_by_text("reads every file of the project")).to_be_visible()
        await expect(page.get_by_role("list", name="Plugins").get_by_role("link", name="Show")).to_be_visible()
        await expect(page.get_by_text("the Python package no_such_package_here is not installed")).to_be_visible()
        await expect(page.get_by_text(f"{tree}/Agent/Gone.txt does not exist")).to_be_visible()
        await expect(page.get_by_text(f"vcp install {tree}")).to_be_visible()
        assert [*await layout_faults(page), *await access_faults(page)] == []
        (tree / "Plugin/Show/main.py").write_text(f"{SHOW}\n# changed\n", encoding="utf-8")
        visit.allowed.append("409")
        button = page.get_by_role("button", name="Allow these 4 plugins")
        async with page.expect_response("**/v1/installation"):
            await button.click()
        await expect(page.get_by_text("It has changed since it was shown. Look at it again.")).to_be_visible()
        await button.click()
        await expect(page.get_by_text("Every plugin that can run has been decided on.")).to_be_visible()
        assert (await host.call("Show"))["status"] == "success"
        assert visit.wrong() == []


async def test_a_phone_shows_the_review_whole_and_its_words_are_translated(browser: Browser, tmp_path: Path) -> None:
    tree = make_installation(tmp_path)
    async with (
        hosting(tmp_path, "--vcp", str(tree)) as host,
        visiting(browser, host, size=PHONE, lang="pseudo") as visit,
    ):
        await visit.go("/vcp")
        await expect(visit.page.get_by_text(str(tree)).first).to_be_visible()
        assert await layout_faults(visit.page, phone=True) == []
        assert await untranslated(visit.page) == []
        assert visit.wrong() == []


async def test_without_an_installation_the_page_says_how_to_use_one(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        await visit.go("/vcp")
        await expect(visit.page.get_by_text("No installation is used in place")).to_be_visible()
        assert visit.wrong() == []
