"""Pictures, sounds and films of tools in the chat: they play from their own bytes, and small ones are kept."""

import base64
import io
import json
import struct
import wave
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import write_plugin
from tests.console.talking import confirm_read, ended, reloaded, say, talking
from tests.console.visit import PHONE, visiting
from tests.shipped.test_image import PNG
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
# A film that this very browser has made: of a canvas that changes.
RECORD = """async () => {
  const canvas = document.createElement('canvas'), drawn = canvas.getContext('2d'), parts = [];
  canvas.width = 320; canvas.height = 180;
  const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: 'video/webm' });
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const stopped = new Promise((done) => (recorder.onstop = done));
  recorder.start();
  for (let step = 0; step < 12; step++) {
    drawn.fillStyle = `hsl(${step * 30} 80% 50%)`; drawn.fillRect(0, 0, 320, 180);
    await new Promise((wake) => setTimeout(wake, 50));
  }
  recorder.stop(); await stopped;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(''));
}"""
# Plays what an element has, muted, until it has come some way.
PLAY = """async (element) => {
  element.muted = true;
  await element.play();
  while (element.currentTime < 0.05 && !element.ended && !element.error) await new Promise(requestAnimationFrame);
  const came = element.currentTime; element.pause();
  return [came > 0, element.error ? element.error.message : null];
}"""
PLAYER = "print(open('answer.json').read())"
FILM = b"\0\0\0\x18ftypisom" + bytes(5_000_000)  # nobody plays it


def sound(seconds: float) -> bytes:
    """A tone of 440 Hz, roughly."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(
            b"".join(struct.pack("<h", 8000 if at % 18 < 9 else -8000) for at in range(int(8000 * seconds)))
        )
    return made.getvalue()


async def recorded(browser: Browser, host: Host) -> bytes:
    page = await browser.new_page()
    try:
        await page.goto(f"{host.url}/healthz")
        return base64.b64decode(await page.evaluate(RECORD))
    finally:
        await page.close()


def answer_with(folder: Path, *media: tuple[str, bytes]) -> None:
    """What the plugin says: each medium as an ``image_url``, whatever its kind (000 §3)."""
    uris = [f"data:{mime};base64,{base64.b64encode(data).decode()}" for mime, data in media]
    parts = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
    told = {"status": "success", "result": {"content": [{"type": "text", "text": "Listen and look."}, *parts]}}
    (folder / "answer.json").write_text(json.dumps(told), "utf-8")


async def plays(page: Page, name: str) -> None:
    for element in await page.locator(name).all():
        assert await element.evaluate(PLAY) == [True, None]


@pytest.mark.requirement("chat:media", "console:chat:parts")
async def test_sounds_and_films_of_a_tool_play_in_the_chat_and_are_there_again(
    browser: Browser, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    async with talking(tmp_path, *write_plugin(given, "Player", PLAYER, risk="read")) as chat:
        await confirm_read(chat, "Player")
        film = await recorded(browser, chat.host)
        answer_with(given / "Player", ("image/png", PNG), ("audio/wav", sound(1)), ("video/webm", film))
        chat.answers("Play it.", format_request("Player", {"command": "Go"}), "It plays.")
        async with visiting(browser, chat.host) as visit:
            await visit.go("/chat")
            reply = await say(visit, "Play it.")
            await ended(reply)
            media = reply.locator(".chat-media")
            for kind in ("img", "audio", "video"):
                await expect(media.locator(kind)).to_have_count(1)
            await expect(media.get_by_label("Media from Player")).to_have_count(2)
            await plays(visit.page, ".chat-media audio")
            await plays(visit.page, ".chat-media video")
            assert await media.locator("video").evaluate("(one) => [one.videoWidth, one.videoHeight]") == [320, 180]
            assert await layout_faults(visit.page) == []
            assert await access_faults(visit.page) == []
            await reloaded(visit)
            await expect(visit.page.locator(".chat-media audio, .chat-media video")).to_have_count(2)
            await plays(visit.page, ".chat-media video")
            await visit.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
            assert await layout_faults(visit.page) == []
            assert visit.wrong() == []


@pytest.mark.requirement("chat:media", "console:chat:parts")
async def test_a_sound_too_large_to_keep_plays_while_the_window_is_open(browser: Browser, tmp_path: Path) -> None:
    given = tmp_path / "given"
    async with talking(tmp_path, *write_plugin(given, "Player", PLAYER, risk="read")) as chat:
        await confirm_read(chat, "Player")
        answer_with(given / "Player", ("audio/wav", sound(100)), ("audio/wav", sound(1)), ("video/mp4", FILM))
        chat.answers("Play it.", format_request("Player", {"command": "Go"}), "It plays.")
        async with visiting(browser, chat.host) as visit:
            await visit.go("/chat")
            reply = await say(visit, "Play it.")
            await ended(reply)
            await expect(reply.locator(".chat-media audio")).to_have_count(2)
            await plays(visit.page, ".chat-media audio")
            await expect(reply.locator(".chat-media")).to_contain_text("1 media file is too large to show here.")
            await reloaded(visit)
            media = visit.page.locator(".chat-media")
            await expect(media.locator("audio")).to_have_count(1)
            await expect(media).to_contain_text("2 media files are too large to show here.")
            assert visit.wrong() == []
