"""Approvals: what a person sees before they decide, and what becomes of their answer."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.console.hosting import hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import Desk, active, attacks, modelled, stored, untranslated
from tests.console.test_offline import LOST
from tests.console.visit import PHONE, Visit, visiting

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:approvals")]
# Presses the button that gets the focus by itself at that very moment, as a person does who was typing.
HASTY = "addEventListener('focusin', (event) => { if (event.target.matches?.('button.danger')) event.target.click(); })"
# Long arguments scroll in their own box, which leaves room for the rest.
SCROLLS = """() => {
  const box = document.querySelector('.apr-arguments');
  return box.scrollHeight > box.clientHeight && box.clientHeight < innerHeight / 2;
}"""
SECRET = "sk-that-nobody-sees"
HIDDEN = {"path": "notes/\u202etxt.exe", "content": "a\u200bb \u2066c\u2069\nsecond line\u00ad"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with modelled() as model:
        place = tmp_path_factory.mktemp("asked")
        async with hosting(place, settings={"OPENAI_BASE_URL": model.provider.url, "OPENAI_API_KEY": SECRET}) as host:
            yield Desk(host, model)


@pytest_asyncio.fixture(loop_scope="session")
async def desk(opened: Desk) -> AsyncIterator[Desk]:
    """A server whose model asks for what a test wants; nothing waits before or after."""
    yield opened
    await opened.clear()


def card(page: Page, name: str = "Write") -> Locator:
    return page.get_by_role("article", name=name)


async def ready(page: Page, *, cards: int = 1) -> None:
    """Until all of each card is there (one that grows holds up the others), and a press counts."""
    await expect(page.get_by_role("button", name="Allow once", disabled=False)).to_have_count(cards)
    await page.clock.run_for(600)


async def visit_inbox(visit: Visit) -> None:
    await visit.page.clock.install()
    await visit.go("/approvals")


@pytest.mark.requirement("s:S-98")
async def test_a_card_shows_all_that_is_asked_and_a_hasty_enter_answers_nothing(browser: Browser, desk: Desk) -> None:
    async with visiting(browser, desk.host) as visit:
        page, one = visit.page, card(visit.page)
        await visit.context.add_init_script(HASTY)
        await visit_inbox(visit)
        reply = await desk.ask("hidden", "Write", said="look at \u202ethis", **HIDDEN)
        deny = one.get_by_role("button", name="Deny", exact=True)
        await expect(deny).to_be_focused()
        for text in ("⟦U+202E⟧txt.exe", "a⟦U+200B⟧b ⟦U+2066⟧c⟦U+2069⟧", "second line⟦U+00AD⟧", "look at ⟦U+202E⟧this"):
            await expect(one).to_contain_text(text)
        await expect(one.get_by_role("note")).to_contain_text("invisible characters")
        await expect(one).to_contain_text("It changes files.")
        await expect(one).to_contain_text(re.compile(r"auto-denied in [1-4] min"))
        await expect(one.locator(".patch-path")).to_contain_text("⟦U+202E⟧")
        assert not re.search("[\u200b\u202e\u2066\u00ad]", await one.inner_text())
        assert await layout_faults(page) == []
        assert await access_faults(page) == []
        assert len(await desk.pending()) == 1  # the press at the moment of the focus did nothing
        await ready(page)
        await expect(deny).to_be_focused()
        await page.keyboard.press("Enter")
        ended = page.locator(".apr-ended")
        await expect(ended).to_contain_text("denied")
        await expect(ended).to_contain_text("by owner")
        assert "was refused" in await reply or "was refused" in desk.model.sent_text()
        assert visit.wrong() == []


@pytest.mark.requirement("s:S-98")
async def test_what_is_masked_says_how_long_it_is_and_its_owner_reveals_it(browser: Browser, desk: Desk) -> None:
    made = await desk.host.api("POST", "/v1/keys", {"name": "Bea", "scopes": ["approve"]})
    async with (
        visiting(browser, desk.host) as visit,
        visiting(browser, desk.host, signed_in=False) as other,
    ):
        await other.context.request.post(f"{desk.host.url}/login", form={"key": made["key"]})
        await desk.ask("masked", "Write", path="a.txt", content=f"KEY={SECRET}")
        await visit.go("/approvals")
        await other.go("/approvals")
        for page in (visit.page, other.page):
            await expect(card(page)).to_contain_text("KEY=[masked, 19 characters]")
            await expect(card(page).get_by_role("note")).to_contain_text("Masked here: content (19 characters).")
            assert SECRET not in await page.content()
        await expect(card(other.page).get_by_role("button", name="Reveal")).to_have_count(0)
        await card(visit.page).get_by_role("button", name="Reveal").click()
        await expect(card(visit.page)).to_contain_text(f"KEY={SECRET}")
        await expect(card(visit.page).get_by_role("button", name="Reveal")).to_have_count(0)
        assert await access_faults(visit.page) == []
        assert await layout_faults(visit.page) == []
        assert visit.wrong() == []


async def test_what_one_person_answers_the_others_see_with_who_and_why(browser: Browser, desk: Desk) -> None:
    made = await desk.host.api("POST", "/v1/keys", {"name": "Ada", "scopes": ["admin"]})
    async with (
        visiting(browser, desk.host) as first,
        visiting(browser, desk.host, signed_in=False) as second,
    ):
        await second.context.request.post(f"{desk.host.url}/login", form={"key": made["key"]})
        for visit in (first, second):
            await visit_inbox(visit)
        reply = await desk.ask("note", "Write", path="a.txt", content="a")
        await ready(second.page)
        await expect(card(first.page)).to_be_visible()
        await card(second.page).get_by_role("button", name="Deny with a reason").click()
        dialog = second.page.get_by_role("dialog")
        await dialog.get_by_role("textbox").fill("Use the folder drafts instead.")
        await dialog.get_by_role("button", name="Deny").click()
        ended = first.page.locator(".apr-ended")
        await expect(ended).to_contain_text("by Ada")
        await expect(ended).to_contain_text("Use the folder drafts instead.")
        await expect(card(first.page).get_by_role("button")).to_have_count(0)
        await reply
        assert "Use the folder drafts instead." in desk.model.sent_text()
        await first.page.get_by_role("tab", name="History").click()
        await first.page.locator("main [data-row]").first.click()
        await expect(first.page.get_by_role("dialog")).to_contain_text("Use the folder drafts instead.")
        await expect(first.page).to_have_url(re.compile(r"tab=history&open=approval_"))
        await first.page.reload()
        await expect(first.page.get_by_role("dialog")).to_contain_text("a.txt")
        assert first.wrong() == second.wrong() == []


async def due_now(desk: Desk) -> None:
    """No time is left for what waits."""
    async with stored(desk.host.home) as store:
        record = await store.get("approval", (await desk.pending())[0]["id"])
        assert record is not None
        assert await store.commit([replace(record, due=time.time())])


async def test_time_runs_out_in_sight_and_nobody_is_the_one_who_answered(browser: Browser, desk: Desk) -> None:
    async with visiting(browser, desk.host) as visit:
        await desk.ask("late", "Write", path="late.txt", content="a")
        expires = (await desk.pending())[0]["expires"]
        await visit.page.clock.install(time=expires - 20)  # to the page it is later than to the server, which waits on
        await visit.go("/approvals")
        await expect(card(visit.page).locator(".apr-left.soon")).to_be_visible()
        await due_now(desk)
        ended = visit.page.locator(".apr-ended")
        await expect(ended).to_contain_text("expired")
        await expect(ended).to_contain_text("no answer in time")
        assert not (desk.host.project / "late.txt").exists()
        assert visit.wrong() == []


async def test_always_keeps_the_rule_that_was_shown_until_it_is_revoked(browser: Browser, desk: Desk) -> None:
    async with visiting(browser, desk.host) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        visit.allowed += LOST
        await visit_inbox(visit)
        reply = await desk.ask("always", "Write", path="rule.txt", content="1")
        await ready(page)
        await card(page).get_by_role("button", name="Always allow").click()
        await expect(dialog).to_contain_text(re.compile(r"Matches \d+ of the last \d+ calls?"))
        shown = await dialog.locator(".apr-rule-text code").inner_text()
        await dialog.get_by_role("button", name="Save rule and allow").click()
        await expect(page.locator(".apr-ended")).to_contain_text("allowed")
        await reply
        assert (desk.host.project / "rule.txt").read_text() == "1"
        rules = (await desk.host.api("GET", "/v1/approvals/rules"))["data"]
        assert [(one["tool"], one["command"], one["effect"]) for one in rules] == [(shown, "", "allow")]
        for content in ("2", "3"):  # the second after a restart
            await desk.model.ask(desk.host, f"again{content}", "Write", path=f"rule{content}.txt", content=content)
            assert (desk.host.project / f"rule{content}.txt").read_text() == content
            if content == "2":
                await desk.host.stop()
                await desk.host.start()
        await page.get_by_role("tab", name="Rules").click()
        rule = page.locator(".apr-rules li", has_text="Write")
        await expect(rule).to_contain_text(re.compile("used (once|2 times)"))  # it was killed before it kept the count
        await rule.get_by_role("button", name="Revoke").click()
        await dialog.get_by_role("button", name="Revoke").click()
        await expect(rule).to_have_count(0)
        await page.get_by_role("tab", name="Inbox").click()
        await desk.ask("asks", "Write", path="rule.txt", content="4")
        await expect(page.locator(".apr-card")).to_contain_text("rule.txt")  # beside the one that was answered
        assert (desk.host.project / "rule.txt").read_text() == "1"
        assert visit.wrong() == []


async def test_identical_calls_are_answered_together_and_others_are_only_refused_together(
    browser: Browser, desk: Desk
) -> None:
    async with visiting(browser, desk.host) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit_inbox(visit)
        same = [await desk.ask(f"same{number}", "Write", path="same.txt", content="x") for number in range(2)]
        await desk.ask("other", "Write", path="other.txt", content="y")
        await expect(card(page)).to_have_count(3)
        await expect(page.get_by_role("tab", name="Inbox")).to_contain_text("3")
        await expect(card(page).first).to_contain_text("same.txt")  # the oldest first
        await expect(card(page).nth(2).get_by_role("button", name="Allow all")).to_have_count(0)
        await ready(page, cards=3)
        await card(page).first.get_by_role("button", name="Allow all 2").click()
        await asyncio.gather(*same)
        assert (desk.host.project / "same.txt").read_text() == "x"
        await expect(page.locator(".apr-ended")).to_have_count(2)
        await desk.ask("more", "Write", path="more.txt", content="z")
        await expect(page.locator(".apr-card", has_text="more.txt")).to_be_visible()
        await page.get_by_role("button", name="Deny all 2").click()
        await dialog.get_by_role("button", name="Deny all 2").click()
        await expect(page.locator("main .empty")).to_contain_text("Nothing is waiting for you")
        assert await desk.pending() == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:layout", "console:languages", "console:accessible")
async def test_on_a_phone_the_answers_are_at_hand_and_long_arguments_scroll_in_the_card(
    browser: Browser, desk: Desk
) -> None:
    await desk.ask("long", "Write", path="long.txt", content="\n".join(f"line {n} " + "word " * 40 for n in range(300)))
    for lang, theme in (("zh", "dark"), ("pseudo", "light")):
        async with visiting(browser, desk.host, size=PHONE, theme=theme, lang=lang) as visit:
            await visit.go("/approvals")
            one = card(visit.page)
            await expect(one.locator(".patch-lines")).to_be_visible()
            for button in (one.locator(".apr-main button").first, one.locator(".apr-main button").last):
                await expect(button).to_be_in_viewport(ratio=1)
            box = one.locator(".apr-arguments")
            await visit.page.wait_for_function(SCROLLS)
            await expect(box).to_contain_text("line 299")
            await box.evaluate("box => { box.scrollTop = box.scrollHeight }")
            assert await layout_faults(visit.page, phone=True) == []
            assert await access_faults(visit.page) == []
            if lang == "pseudo":
                assert await untranslated(visit.page) == []
                await desk.clear()
                await expect(visit.page.locator(".apr-all button")).to_be_visible()  # to clear what was answered
                assert await layout_faults(visit.page, phone=True) == []
                title, sound = (visit.page.locator(".head h1"), visit.page.locator(".head > button").last)
                tops = [await one.evaluate("(one) => one.getBoundingClientRect()") for one in (title, sound)]
                assert tops[1]["top"] < tops[0]["bottom"], "the last button is on a line of its own"
            assert visit.wrong() == []


@pytest.mark.requirement("console:layout", "console:languages", "console:accessible")
async def test_answers_and_rules_fit_a_phone_in_any_language(browser: Browser, desk: Desk) -> None:
    await desk.ask("past", "Write", path="past.txt", content="1")
    await desk.clear()
    past = (await desk.host.api("GET", "/v1/approvals"))["data"][0]["id"]
    rule = await desk.host.api("POST", "/v1/approvals/rules", {"tool": "LS", "command": "", "effect": "deny"})
    async with visiting(browser, desk.host, size=PHONE, theme="dark", lang="pseudo") as visit:
        for query in ("?tab=history", f"?tab=history&open={past}", "?tab=rules"):
            await visit.go(f"/approvals{query}")
            assert await layout_faults(visit.page, phone=True) == [], query
            assert await access_faults(visit.page) == [], query
            assert await untranslated(visit.page) == [], query
        assert visit.wrong() == []
    await desk.host.api("DELETE", f"/v1/approvals/rules/{rule['id']}")


@pytest.mark.requirement("console:approvals")
async def test_an_answered_approval_names_its_file_and_keeps_its_changes_and_its_chat(
    browser: Browser, desk: Desk
) -> None:
    reply = await desk.ask("kept", "Write", path="kept.txt", content="as it was written")
    asked = (await desk.pending())[0]["id"]
    await desk.host.api("POST", f"/v1/approvals/{asked}/allow", {})
    await reply
    rule = await desk.host.api("POST", "/v1/approvals/rules", {"tool": "LS", "command": "", "effect": "deny"})
    async with visiting(browser, desk.host) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.go("/approvals?tab=history")
        row = page.locator("main [data-row]").first
        await expect(row).to_contain_text("Write kept.txt")
        await row.click()
        await expect(dialog.get_by_role("heading").first).to_have_text("Write · kept.txt")
        await expect(dialog.locator(".patch")).to_contain_text("as it was written")
        await expect(dialog.get_by_role("link", name="Open chat")).to_have_attribute("href", re.compile("/chat"))
        assert await access_faults(page) == []
        await visit.go("/approvals?tab=rules")
        await expect(page.locator(".apr-rules li")).to_contain_text("LS")
        await expect(page.locator(".apr-rules li")).not_to_contain_text("all commands")  # it has none
        assert visit.wrong() == []
    await desk.host.api("DELETE", f"/v1/approvals/rules/{rule['id']}")


@pytest.mark.requirement("console:inert")
async def test_a_hostile_call_is_only_text(browser: Browser, desk: Desk) -> None:
    texts = [text for text in attacks() if "「" not in text]
    async with visiting(browser, desk.host) as visit:
        await visit.go("/approvals")
        for at, text in enumerate(texts):
            desk.model.ask(desk.host, f"attack{at}", "Write", said=text, path=f"{at} {text}"[:200], content=text)
        await expect(visit.page.get_by_role("tab", name="Inbox")).to_contain_text(str(len(texts)))
        while await (more := visit.page.get_by_role("button", name=re.compile(r"^\+ \d+$"))).count():
            await more.click()
        await expect(card(visit.page)).to_have_count(len(texts))
        await visit.settle()
        shown = await visit.page.locator("main").inner_text()
        assert all(text.split("\n")[0].strip() in shown for text in texts)
        assert await active(visit.page) == []
        await desk.clear()
        await expect(visit.page.locator(".apr-ended")).to_have_count(len(texts))
        assert await active(visit.page) == []
        assert visit.wrong() == []
