"""What stays in sight: the end of a conversation whatever grows in it, and what went wrong until somebody closes it."""

import json

import pytest
from playwright.async_api import Browser, Route, expect

from tests.console.hosting import Host
from tests.console.talking import Talking
from tests.console.visit import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
# Something shrinks, which pulls the view up, and something else has grown before the page hears of that.
SHRINK_AND_GROW = """async () => {
  const [inner, block] = [document.querySelector('.chat-inner'), document.createElement('div')];
  const heard = () => new Promise((done) => {
    new ResizeObserver((_, own) => { own.disconnect(); setTimeout(done); }).observe(inner);
  });
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  block.style.height = '900px';
  inner.append(block);
  await drawn();
  await drawn();
  block.style.height = '700px';
  await heard();
  block.style.height = '1100px';
  await drawn();
  await drawn();
}"""
AT_THE_END = """() => {
  const view = document.querySelector('.chat-scroll');
  return view.scrollHeight - view.scrollTop - view.clientHeight < 2;
}"""


@pytest.mark.requirement("console:chat:stream")
async def test_the_view_stays_at_the_end_while_something_shrinks_and_something_grows(
    browser: Browser, chat: Talking
) -> None:
    place = await chat.keep("\n\n".join(f"Paragraph {number}" for number in range(60)), title="long")
    async with visiting(browser, chat.host) as visit:
        await visit.go(place)
        await expect(visit.page.get_by_text("Paragraph 59")).to_be_visible()
        await visit.page.wait_for_function(AT_THE_END)
        await visit.page.evaluate(SHRINK_AND_GROW)
        await visit.page.wait_for_function(AT_THE_END)
        assert visit.wrong() == []


@pytest.mark.requirement("console:shell")
async def test_what_went_wrong_stays_until_somebody_closes_it(browser: Browser, filled: Host) -> None:
    told = "it runs right now: try again when it has ended"

    async def refuse(route: Route) -> None:
        body = json.dumps({"error": {"message": told, "type": "conflict_error", "code": "conflict"}})
        await route.fulfill(status=409, content_type="application/json", body=body)

    async with visiting(browser, filled) as visit:
        visit.allowed += ["409"]
        await visit.page.clock.install()
        await visit.page.route("**/v1/schedules/*/pause", refuse)
        await visit.go("/schedule")
        await visit.page.get_by_role("button", name="Pause: LS").click()
        toast = visit.page.locator(".toast").filter(has_text=told)
        await expect(toast).to_be_visible()
        await visit.page.clock.fast_forward(60_000)
        await expect(toast).to_be_visible()
        await toast.get_by_role("button", name="Dismiss").click()
        await expect(toast).to_have_count(0)
        assert visit.wrong() == []
