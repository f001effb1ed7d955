"""The card of an approval where it is not on its page: in the chat that asked, and at an address of its own."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.console.flows import Steps
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import active, send_chat, untranslated
from tests.console.talking import KEY, Talking, ended, say
from tests.console.visit import DESKTOP, PHONE, Visit, visiting
from tests.waiting import wait_for_value
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
TINY = (320, 568)


def asking(chat: Talking, words: str, *calls: dict[str, str], tool: str = "Write") -> str:
    """Words after which the model makes these calls, one round each, and is content."""
    return chat.answers(words, *(format_request(tool, one) for one in calls), "That was **all**.")


def card(page: Page | Locator) -> Locator:
    return page.locator(".apr-card")


def button(place: Page | Locator, name: str) -> Locator:
    return place.get_by_role("button", name=name, exact=True)


async def pending(chat: Talking, path: str) -> dict[str, Any]:
    """The approval of the call that would write this file, once it waits."""

    async def find() -> dict[str, Any]:
        listed: list[dict[str, Any]] = (await chat.host.api("GET", "/v1/approvals?state=pending"))["data"]
        return next((one for one in listed if path in str(one)), {})

    return await wait_for_value(find, bool, within_s=60)


async def ask_elsewhere(chat: Talking, words: str, path: str) -> tuple[str, "asyncio.Task[str]"]:
    """A chat of another client that waits for a person; the id of its approval."""
    asking(chat, words, {"path": path, "content": "from afar\n"})
    running = asyncio.create_task(send_chat(chat.host, words, path.replace("/", "-").partition(".")[0]))
    return (await pending(chat, path))["id"], running


async def order_of_parts(place: Locator) -> list[str]:
    parts: list[str] = await place.locator(".apr-part").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    return parts


@pytest.mark.requirement("console:approvals:card")
async def test_the_card_in_a_chat_is_the_one_of_the_page_and_each_answer_is_seen_in_both(
    browser: Browser, chat: Talking
) -> None:
    hidden = {"path": "card/\u202etxt.md", "content": f"one\u200b\nKEY={KEY}\n"}
    again = {"path": "card/two.md", "content": "two\n"}
    words = asking(chat, "Card, please.", hidden, again, {**again, "path": "card/three.md"})
    async with visiting(browser, chat.host) as visit, visiting(browser, chat.host) as other:
        await other.go("/approvals")
        await visit.go("/chat")
        reply = await say(visit, words)
        for place in (reply, other.page):
            one = card(place).filter(has_text="card/")
            await expect(one.locator(".patch-path")).to_contain_text("card/⟦U+202E⟧txt.md")
            await expect(one.locator(".apr-arguments")).to_contain_text("one⟦U+200B⟧")
            await expect(one.get_by_role("note").first).to_contain_text("Masked here: content (16 characters).")
            await expect(one.locator(".apr-scope")).to_contain_text("For this chat, or always:")
            await expect(one.locator(".apr-scope code")).to_have_text("Write")
            await expect(one.locator(".apr-left")).to_contain_text("auto-denied in")
            assert (await order_of_parts(one))[:2] == ["Changes", "Arguments"]
        await button(reply, "Reveal").click()
        await expect(reply.locator(".apr-arguments")).to_contain_text(f"KEY={KEY}")
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        await button(reply, "Deny with a reason…").click()
        dialog = visit.page.get_by_role("dialog")
        await dialog.get_by_role("textbox").fill("Not with that name.")
        await button(dialog, "Deny").click()
        gone = other.page.locator(".apr-ended").filter(has_text="Not with that name.")
        await expect(gone).to_contain_text("denied")

        one = card(other.page).filter(has_text="card/two.md")
        await button(one, "Allow for this chat").click()
        await expect(reply.locator(".chat-call-line .chip")).to_have_text(["denied", "success", "success"])
        await ended(reply)
        await expect(card(reply)).to_have_count(0)
        await reply.get_by_role("button", name="Write · Show details").first.click()
        await expect(reply.locator(".chat-call-body")).to_contain_text("by owner")
        await reply.get_by_role("link", name="Approval", exact=True).click()
        await expect(visit.page.get_by_role("article")).to_contain_text("Not with that name.")
        assert "Not with that name." in str(chat.provider.bodies)
        assert (chat.host.project / "card" / "three.md").read_text() == "two\n", "the chat asked once more"
        visit.allowed += ["409"]
        assert visit.wrong() == other.wrong() == []


@pytest.mark.requirement("console:approvals:together", "console:layout", "console:accessible")
@pytest.mark.parametrize(("place", "size"), [("chat", DESKTOP), ("chat", PHONE), ("approvals", PHONE)])
async def test_different_calls_that_wait_together_are_allowed_or_denied_with_one_press(
    browser: Browser, chat: Talking, place: str, size: tuple[int, int]
) -> None:
    for effect, names in (("Deny", ("one", "two")), ("Allow", ("one", "two", "three"))):
        paths = [f"together/{effect}-{place}-{size[0]}-{name}.md" for name in names]
        requests = [format_request("Write", {"path": path, "content": f"in {path}\n"}) for path in paths]
        words = chat.answers(f"{effect} {place} {size[0]} together.", "\n".join(requests), "That was **all**.")
        async with visiting(browser, chat.host, size=size) as visit, visiting(browser, chat.host, size=size) as other:
            page = visit.page
            await visit.go("/chat")
            reply = await say(visit, words)
            for path in paths:
                await pending(chat, path)
            if place == "approvals":
                page = other.page
                await other.go("/approvals")
            together = page.get_by_role("group", name=f"{len(paths)} calls are waiting together.")
            await expect(button(together, f"Allow all {len(paths)}")).to_be_enabled()
            if place == "approvals":
                await expect(together).to_contain_text(f"Write · {paths[0]}")
            assert await layout_faults(page, phone=size == PHONE) == []
            assert await access_faults(page) == []
            await button(together, f"{effect} all {len(paths)}").click()
            await ended(reply)
            state = "denied" if effect == "Deny" else "success"
            await expect(reply.locator(".chat-call-line .chip")).to_have_text([state] * len(paths))
            await expect(together).to_have_count(0)
            there = [(chat.host.project / path).exists() for path in paths]
            assert there == [effect == "Allow"] * len(paths)
            assert visit.wrong() == other.wrong() == []


@pytest.mark.requirement("console:approvals:together")
async def test_nothing_is_allowed_with_others_before_all_of_it_is_shown(browser: Browser, chat: Talking) -> None:
    paths = ["unseen/one.md", "unseen/two.md"]
    requests = [format_request("Write", {"path": path, "content": "x\n"}) for path in paths]
    words = chat.answers("Unseen together.", "\n".join(requests), "That was **all**.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        shown, hold = asyncio.Event(), asyncio.Event()

        async def delay(route: Route) -> None:
            if shown.is_set():
                await hold.wait()
            shown.set()
            await route.continue_()

        await visit.page.route(re.compile(r"/v1/approvals/[^/?]+$"), delay)
        reply = await say(visit, words)
        together = reply.get_by_role("group", name="2 calls are waiting together.")
        await expect(card(reply)).to_have_count(1)
        await expect(button(card(reply), "Allow once")).to_be_enabled()
        await expect(button(together, "Allow all 2")).to_be_disabled()
        hold.set()
        await button(together, "Allow all 2").click()
        await ended(reply)
        assert all((chat.host.project / path).exists() for path in paths)
        assert visit.wrong() == []


@pytest.mark.requirement("console:approvals:scroll")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("place", ["chat", "approvals"])
async def test_wheel_and_finger_move_the_page_where_the_changes_and_the_arguments_end(
    browser: Browser, chat: Talking, size: tuple[int, int], place: str
) -> None:
    content = "\n".join(f"line {n}" for n in range(200))
    path = f"scroll/{place}-{size[0]}.md"
    words = asking(chat, f"Scroll in {place} at {size[0]}, please.", {"path": path, "content": content})
    async with visiting(browser, chat.host, size=size) as visit:
        page = visit.page
        await visit.go("/chat")
        await say(visit, words)
        await pending(chat, path)
        if place == "approvals":
            await visit.go("/approvals")
        one = card(page).filter(has_text=path)
        await expect(button(one, "Allow once")).to_be_enabled()
        # Room below the card, so that the page can move on from wherever it is.
        await one.evaluate("(card) => card.parentElement.append(document.createElement('p'))")
        await one.locator("xpath=following-sibling::p").evaluate("(room) => { room.style.height = '2000px' }")
        for part in (".apr-patch", ".apr-arguments"):
            box = one.locator(part)
            for rest in ("box.scrollHeight", "0"):  # at its end the page goes on, at its beginning it goes back
                await box.evaluate(f"(box) => {{ box.scrollIntoView({{block: 'center'}}); box.scrollTop = {rest} }}")
                before, step = await top_of(one), -200 if rest == "0" else 200

                async def turn(box: Locator = box, before: float = before, step: int = step) -> bool:
                    await scroll_over(visit, box, step, touch=size == PHONE)
                    return (before - await top_of(one)) * step > 0

                # Lines that come into view may be higher than was guessed: then the box itself goes on for a bit.
                await wait_for_value(turn, within_s=30)
        await button(one, "Deny").click()
        assert visit.wrong() == []


async def top_of(node: Locator) -> float:
    return float(await node.evaluate("(node) => node.getBoundingClientRect().top"))


async def scroll_over(visit: Visit, box: Locator, distance: int, *, touch: bool) -> None:
    """Turn the wheel, or move a finger, over the middle of a box."""
    at = await box.bounding_box()
    assert at is not None
    x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    if not touch:
        await visit.page.mouse.move(x, y)
        await visit.page.mouse.wheel(0, distance)
        return
    device = await visit.context.new_cdp_session(visit.page)
    for event, down in (("touchStart", 0), *(("touchMove", part * distance / 8) for part in range(1, 9))):
        at_finger = [{"x": x, "y": y - down}]
        await device.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": at_finger})
    await device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.requirement("console:approvals:card", "console:layout", "console:languages", "console:accessible")
async def test_the_card_in_a_chat_fits_small_phones_in_any_language(browser: Browser, chat: Talking) -> None:
    content = "\n".join(f"line {n} " + "word " * 30 for n in range(80))
    words = asking(chat, "Small card, please.", {"path": "small/a-rather-long-name-of-a-file.md", "content": content})
    place = ""
    for size, lang, theme in ((TINY, "en", "light"), (TINY, "zh", "dark"), (PHONE, "pseudo", "light")):
        async with visiting(browser, chat.host, size=size, lang=lang, theme=theme) as visit:
            if not place:
                await visit.go("/chat")
                await say(visit, words)
                await visit.page.wait_for_url("**/chat/*")
                place = visit.page.url.removeprefix(chat.host.url)
            else:
                await visit.go(place)
            await expect(card(visit.page).locator(".patch-lines")).to_be_visible()
            assert await layout_faults(visit.page, phone=True) == [], (size, lang)
            assert await access_faults(visit.page) == [], (size, lang)
            for answer in await card(visit.page).locator(".apr-main button").all():
                await expect(answer).to_be_in_viewport(ratio=1)
            if lang == "pseudo":
                assert await untranslated(visit.page) == []
                await card(visit.page).locator(".apr-main button").first.click()
                await ended(visit.page.locator(".chat-message.assistant"))
            assert visit.wrong() == []


async def finish(visit: Visit, chat: Talking, path: str, running: "asyncio.Task[str]") -> None:
    """Until the call has run, and the page says who allowed it."""
    await expect(visit.page.get_by_role("article")).to_contain_text("by owner")
    assert "That was **all**." in await running
    assert (chat.host.project / path).read_text() == "from afar\n"


@pytest.mark.requirement("console:flow:approve", "console:approvals:link")
async def test_a_link_to_an_approval_is_answered_on_a_phone_in_two_taps(browser: Browser, chat: Talking) -> None:
    id_, running = await ask_elsewhere(chat, "From afar.", "afar/one.md")
    async with visiting(browser, chat.host, size=PHONE) as visit:
        steps = Steps(visit.page, at_most=2)
        await steps.open(f"/approvals/{id_}")
        await expect(card(visit.page)).to_contain_text("from afar")
        await expect(button(visit.page, "Deny")).to_be_focused()
        await expect(button(visit.page, "Allow once")).to_be_in_viewport(ratio=1)
        assert await layout_faults(visit.page, phone=True) == []
        assert await access_faults(visit.page) == []
        await steps.press(button(visit.page, "Allow once"))
        await finish(visit, chat, "afar/one.md", running)
        steps.check()
        assert await layout_faults(visit.page, phone=True) == []
        await visit.page.reload()
        await expect(visit.page.get_by_role("note")).to_contain_text("already answered")
        await expect(button(visit.page, "Allow once")).to_have_count(0)
        visit.allowed.append("404")
        await visit.go("/approvals/approval_that_never_was")
        await expect(visit.page.locator("main")).to_contain_text("Approval not found")
        assert await active(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:flow:approve", "console:approvals:link")
async def test_a_link_to_an_approval_leads_there_after_signing_in_and_tells_what_another_answered(
    browser: Browser, chat: Talking
) -> None:
    id_, running = await ask_elsewhere(chat, "From afar again.", "afar/two.md")
    async with visiting(browser, chat.host, size=PHONE, signed_in=False) as visit, visiting(browser, chat.host) as desk:
        visit.allowed.append("401")
        await desk.go(f"/approvals/{id_}")
        steps = Steps(visit.page, at_most=4)
        await steps.open(f"/approvals/{id_}")
        await steps.fill(visit.page.locator("input[name=key]"), chat.host.key)
        await steps.press(visit.page.get_by_role("button", name="Sign in"))
        await expect(visit.page).to_have_url(f"{chat.host.url}/approvals/{id_}")
        await steps.press(button(visit.page, "Allow once"))
        await finish(visit, chat, "afar/two.md", running)
        steps.check()
        await expect(desk.page.get_by_role("article")).to_contain_text("by owner")
        await expect(button(desk.page, "Allow once")).to_have_count(0)
        assert visit.wrong() == desk.wrong() == []


# As the system does when somebody presses it: there is no notification area here.
PRESS = """async () => {
  const [notification] = await self.registration.getNotifications();
  self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
}"""
NOTIFICATIONS = """() => navigator.serviceWorker.ready.then((one) => one.getNotifications()).then(
  (all) => all.map((one) => [one.title, one.data.path]))"""


@pytest.mark.requirement("phone:notifications")
async def test_a_notification_on_a_phone_leads_to_its_approval(whole_browser: Browser, chat: Talking) -> None:
    async with visiting(whole_browser, chat.host, size=PHONE, with_worker=True) as visit:
        await visit.context.grant_permissions(["notifications", "clipboard-read", "clipboard-write"])
        await visit.page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => true })")
        await visit.go("/approvals")
        await button(visit.page, "Browser notifications").click()
        await visit.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        await visit.go("/chat")
        approval, running = await ask_elsewhere(chat, "Notify me.", "notified.md")
        found = await wait_for_value(lambda: visit.page.evaluate(NOTIFICATIONS), bool, within_s=60)
        assert [path for _, path in found] == [f"/approvals/{approval}"]
        assert "Write" in found[0][0]
        (worker,) = visit.context.service_workers
        await worker.evaluate(PRESS)
        await visit.page.wait_for_url(f"**/approvals/{approval}")
        await button(card(visit.page), "Deny").click()
        await running
        assert await visit.page.evaluate(NOTIFICATIONS) == []
        assert visit.wrong() == []
