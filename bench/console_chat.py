"""The chat of the console: how soon Stop is seen to have stopped a reply, and how smoothly a long one scrolls."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.talking import Talking, assistant, keep, say, slowly, user
from tests.console.visit import visiting

MESSAGES = 2000
SCROLL_MS = 4000
_WORDS = "\n\n".join(f"Paragraph {number}: the quick brown fox 跳过 the lazy dog." for number in range(400))
# From the press itself to the frame after the one that has the new state in it.
_STOP = """() => new Promise((done) => {
  const stop = document.querySelector('.chat-send.stop');
  let began = 0;
  stop.addEventListener('click', (event) => { began = event.timeStamp; }, { capture: true, once: true });
  const watch = new MutationObserver(() => {
    const facts = [...document.querySelectorAll('.chat-facts')].at(-1);
    if (!began || !/Stopped/.test(facts?.textContent ?? '')) return;
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watch.observe(document.body, { subtree: true, childList: true, characterData: true });
  stop.click();
})"""
# As a person does who looks for something: up through all of it and down again, a screen every few frames.
_SCROLL = """(lasts) => new Promise((done) => {
  const view = document.querySelector('.chat-scroll'), gaps = [];
  const began = performance.now();
  let last = began, step = -80;
  const next = (now) => {
    gaps.push(now - last);
    last = now;
    view.scrollTop += step;
    if (view.scrollTop <= 0 || view.scrollTop + view.clientHeight >= view.scrollHeight - 1) step = -step;
    if (now - began < lasts) requestAnimationFrame(next);
    else done([gaps.length / (now - began) * 1000, Math.max(...gaps)]);
  };
  requestAnimationFrame(next);
})"""


async def stops_ms(browser: Browser, chat: Talking, rounds: int) -> list[float]:
    """From the press on Stop, while a reply is being written, to the reply shown as stopped."""
    took = []
    for number in range(rounds):
        words = chat.answers(f"Write much, {number}.", slowly(_WORDS, size=10, pause_s=0.01))
        async with visiting(browser, chat.host) as visit:
            await visit.go("/chat")
            reply = await say(visit, words)
            await expect(reply).to_contain_text("Paragraph 3")
            took.append(float(await visit.page.evaluate(_STOP)))
    return took


async def scrolled(browser: Browser, host: Host) -> tuple[float, float]:
    """Frames per second, and the longest frame in milliseconds."""
    messages: list[dict[str, Any]] = []
    for number in range(MESSAGES // 2):
        text = "word " * 200_000 if number == 990 else f"Answer **{number}** with `code`.\n\n- one\n- two"
        messages += [user(f"question {number}"), assistant({"kind": "text", "text": text})]
    path = await keep(host, messages)
    async with visiting(browser, host) as visit:
        await visit.go(path)
        await expect(visit.page.get_by_text(f"question {MESSAGES // 2 - 1}", exact=True)).to_be_visible()
        frames, longest = await visit.page.evaluate(_SCROLL, SCROLL_MS)
        return float(frames), float(longest)
