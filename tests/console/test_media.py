"""Links to media in a real browser: a page of another server shows what a tool gave."""

import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web
from markdown_it import MarkdownIt
from playwright.async_api import Browser

from tests.gateway.test_served import settings_for
from tests.gateway.upstream import provider, replies
from tests.web.conftest import run_server
from toolyard.protocol.content import Media
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
STRICT = {"Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Opener-Policy": "same-origin"}
_SIZE = """(path) => new Promise((done) => {
  const image = new Image();
  image.onload = () => done([image.naturalWidth, image.naturalHeight]);
  image.onerror = () => done("refused");
  image.src = path;
})"""


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + b"\x20\x90\x40" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(seconds: int) -> bytes:
    samples = b"\0\0" * 8000 * seconds
    head = struct.pack("<4sIHHIIHH4sI", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", len(samples))
    return b"RIFF" + struct.pack("<I", len(head) + len(samples) + 4) + b"WAVE" + head + samples


@asynccontextmanager
async def other_site() -> AsyncIterator[str]:
    """An empty page of another site, which embeds nothing that does not allow it."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>Chat</title>", content_type="text/html", headers=STRICT)

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://localhost:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.requirement("media:route")
async def test_a_page_of_another_server_shows_the_picture_and_plays_the_sound(browser: Browser, tmp_path: Path) -> None:
    async with run_server(tmp_path) as running, other_site() as site:
        picture = await running.server.links.publish(Media("image/png", png(320, 200)))
        sound = await running.server.links.publish(Media("audio/wav", wav(3)))
        page = await browser.new_page()
        try:
            await page.goto(site)
            assert await page.evaluate(_SIZE, picture) == [320, 200]
            assert await page.evaluate(_SIZE, picture[:-1] + ("0" if picture[-1] != "0" else "1")) == "refused"
            assert await page.evaluate(_SIZE, f"{running.url}/console/favicon.svg") == "refused"  # of the console
            seconds = await page.evaluate(
                """(path) => new Promise((done, fail) => {
                  const audio = new Audio(path);
                  audio.onseeked = () => done([audio.duration, audio.currentTime]);
                  audio.onloadedmetadata = () => { audio.currentTime = 2; };
                  audio.onerror = () => fail(audio.error.message);
                })""",
                sound,
            )
            assert seconds == [3, 2]
        finally:
            await page.close()


@pytest.mark.requirement("media:markdown", "media:back", "memory:rounds")
async def test_a_picture_in_an_answer_to_the_official_client_is_drawn_by_a_page_that_renders_markdown(
    browser: Browser, tmp_path: Path
) -> None:
    look = f"I look.\n{format_request('Read', {'path': 'a.png'})}"
    async with (
        provider(replies(look, "A green picture.", "You are welcome.")) as upstream,
        run_server(tmp_path, settings=settings_for(upstream)) as running,
        other_site() as site,
    ):
        (running.project / "a.png").write_bytes(png(600, 400) + b"x" * 20_000)
        said: list[Any] = [{"role": "user", "content": "What is in a.png?"}]
        client = openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key, max_retries=0)
        async with client:
            answer = await client.chat.completions.create(model="m", messages=said)
            text = str(answer.choices[0].message.content)
            said += [{"role": "assistant", "content": text}, {"role": "user", "content": "Thanks."}]
            await client.chat.completions.create(model="m", messages=said)
        page = await browser.new_page()
        try:
            await page.goto(site)
            await page.set_content(MarkdownIt().render(text))
            await page.wait_for_function("document.images[0].naturalWidth === 600")
            assert (await page.inner_text("blockquote")).startswith("✓ Read: Read 'a.png' (image/png, ")
        finally:
            await page.close()
    sent = str(upstream.bodies[-1]["messages"])
    assert "Read 'a.png' (image/png" in sent
    assert "> ✓" not in sent
    assert running.url not in sent


@pytest.mark.requirement("media:route")
async def test_a_link_that_is_opened_by_itself_is_drawn_or_played(browser: Browser, tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        page = await browser.new_page()
        try:
            await page.goto(await running.server.links.publish(Media("image/png", png(320, 200))))
            assert await page.evaluate("[document.images[0].naturalWidth, self.origin]") == [320, "null"]
            await page.goto(await running.server.links.publish(Media("audio/wav", wav(3))))
            await page.wait_for_function("document.querySelector('video').duration === 3")
        finally:
            await page.close()
