"""Chat through the real server: its key, its edge, its plugins."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.serving import request
from tests.gateway.test_terminal import terminal
from tests.gateway.upstream import Answers, provider, replies
from toolyard.config import load
from toolyard.web.server import Options, Server

HI: Any = [{"role": "user", "content": "Hi"}]


@asynccontextmanager
async def server(place: Path, answers: Answers) -> AsyncIterator[Server]:
    (place / "project").mkdir(parents=True)
    (place / "project/a.md").write_text("# Heading\n")
    config = load(place / "project", place / "home")
    async with provider(answers) as upstream:
        values = {**config.values, "upstream_url": upstream.url, "upstream_key": "sk-the-key"}
        running = Server(dataclasses.replace(config, values=values), Options(port=0))
        await running.start()
        try:
            yield running
        finally:
            await running.stop()


@pytest.mark.requirement("chat:completions", "chat:loop", "chat:tour")
async def test_a_chat_with_tools_and_the_guide_go_through_it(tmp_path: Path) -> None:
    look = f"I look.\n{request('Read', path='a.md')}\n"
    async with server(tmp_path, replies(look, "It is a heading.")) as running:
        for key, status in ((running.key, 200), ("wrong", 401)):
            client = openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0)
            async with client:
                if status == 200:
                    said = await client.chat.completions.create(model="m", messages=HI)
                    text = said.choices[0].message.content
                    assert text == "I look.\n\n> ✓ Read: Read lines 1-1 of 1 of 'a.md'.\n\nIt is a heading."
                    toured = await client.chat.completions.create(
                        model="tour", messages=[{"role": "user", "content": "2 * 21 ="}]
                    )
                    assert "42" in str(toured.choices[0].message.content)
                else:
                    with pytest.raises(openai.AuthenticationError):
                        await client.chat.completions.create(model="m", messages=HI)


@pytest.mark.requirement("cli:chat")
async def test_the_terminal_finds_the_server_of_its_home(tmp_path: Path) -> None:
    async with server(tmp_path, replies("Hello from the provider.")) as running, terminal(tmp_path) as shown:
        await shown.until(f"scripted at {running.url}")
        shown.type("hello\n")
        await shown.until("Hello from the provider.")
        shown.type("write a file\n/model tour\n")
        await shown.until("Hello from the provider.")
        shown.type("write a file\n")
        await shown.until("Write waits for your approval")
        shown.type("y\n")
        await shown.until("✓ Write")
    assert (tmp_path / "project/tour/hello.md").exists()
