"""Chat through the real server: its key, its edge, its plugins."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.gateway.serving import StreamedAnswer, request
from tests.gateway.test_terminal import terminal
from tests.gateway.upstream import Answers, Provider, Script, provider, replies, says, streamed
from tests.waiting import wait_for_value
from toolyard.config import load_config
from toolyard.web.server.lifecycle import Server, ServerOptions

HI: Any = [{"role": "user", "content": "Hi"}]


def settings_for(upstream: Provider, *more: str) -> str:
    return "\n".join((f'upstream_url = "{upstream.url}"', 'upstream_key = "sk-the-key"', *more))


@asynccontextmanager
async def server(place: Path, answers: Answers, *more: str) -> AsyncIterator[Server]:
    (place / "project").mkdir(parents=True)
    (place / "project/a.md").write_text("# Heading\n")
    (place / "home").mkdir()
    async with provider(answers) as upstream:
        (place / "home/config.toml").write_text(settings_for(upstream, *more))
        running = Server(load_config(place / "project", place / "home"), ServerOptions(port=0))
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
                    answer = await client.chat.completions.create(model="m", messages=HI)
                    text = answer.choices[0].message.content
                    assert text == "I look.\n\n> ✓ Read: Read lines 1-1 of 1 of 'a.md'.\n\nIt is a heading."
                    toured = await client.chat.completions.create(
                        model="tour", messages=[{"role": "user", "content": "2 * 21 ="}]
                    )
                    assert "42" in str(toured.choices[0].message.content)
                else:
                    with pytest.raises(openai.AuthenticationError):
                        await client.chat.completions.create(model="m", messages=HI)


@pytest.mark.requirement("action:reaches-clients", "chat:vcp-route")
async def test_a_special_action_of_a_call_reaches_the_client_of_a_chat_and_not_the_model(tmp_path: Path) -> None:
    draw = request("FileOperator", command="CreateCanvas", fileName="a.md", content="x")
    asked: list[str] = []

    def answer(body: dict[str, Any]) -> Script:
        asked.append(json.dumps(body))
        return says("Done." if len(asked) % 2 == 0 else draw, stream=bool(body.get("stream")))

    async with (
        server(tmp_path, answer, 'approval_mode = "auto"') as running,
        aiohttp.ClientSession() as client,
    ):

        async def chat(path: str, *, stream: bool = True, show: str = "") -> bytes:
            body = {"model": "m", "messages": HI, "stream": stream}
            headers = {"Authorization": f"Bearer {running.key}", **({"X-Toolyard-Show": show} if show else {})}
            async with client.post(f"{running.url}/v1/{path}/completions", json=body, headers=headers) as response:
                return await response.read()

        vcp = StreamedAnswer.from_bytes(await chat("chatvcp")).events
        whole = json.loads(await chat("chatvcp", stream=False))
        drawn = StreamedAnswer.from_bytes(await chat("chat", show="events")).events
        plain = await chat("chat")
    told = [one for event in vcp for one in event.get("special_actions", [])]
    ended = [event["toolyard"] for event in drawn if event.get("toolyard", {}).get("type") == "call.finished"]
    for name, actions in (("a.md", told), ("a(1).md", whole["special_actions"]), ("a(2).md", ended)):
        payload = {"filePath": str(tmp_path / "project/canvas" / name)}
        assert [(one["tool"], one["_specialAction"], one["payload"]) for one in actions] == [
            ("FileOperator", "create_canvas", payload)
        ]
    assert b"_specialAction" not in plain
    assert (len(asked), [one for one in asked if "create_canvas" in one or "_specialAction" in one]) == (8, [])


@pytest.mark.requirement("cli:chat")
async def test_the_terminal_finds_the_server_of_its_home(tmp_path: Path) -> None:
    async with server(tmp_path, replies("Hello from the provider.")) as running, terminal(tmp_path) as console:
        await console.until(f"scripted at {running.url}")
        console.type("hello\n")
        await console.until("Hello from the provider.")
        console.type("write a file\n/model tour\n")
        await console.until("Hello from the provider.")
        console.type("write a file\n")
        await console.until("is waiting for your approval")
        await console.until("[y/N]")
        console.type("y\n")
        await console.until("✓ Write")
    assert (tmp_path / "project/tour/hello.md").exists()


@pytest.mark.requirement("chat:upstream", "r:R92")
async def test_another_provider_answers_once_the_settings_name_it_and_a_chat_that_runs_keeps_its_own(
    tmp_path: Path,
) -> None:
    look = streamed(f"I look.\n{request('Read', path='a.md')}\n", size=20)
    requested, goes_on = asyncio.Event(), asyncio.Event()

    def old(body: dict[str, Any]) -> Script:
        if len(body["messages"]) > 1 or not body["stream"]:
            return says("The old one ends it.", stream=body["stream"])
        requested.set()
        return Script(look, waits=goes_on)

    async with server(tmp_path, old) as running, provider(replies("The new one.")) as new:
        headers = {"Authorization": f"Bearer {running.key}"}
        async with aiohttp.ClientSession(running.url, headers=headers) as session, asyncio.timeout(60):

            async def chat(model: str, *, stream: bool) -> str:
                body = {"model": model, "messages": HI, "stream": stream}
                async with session.post("/v1/chat/completions", json=body) as response:
                    return (await response.read()).decode()

            begun = asyncio.create_task(chat("m", stream=True))
            await requested.wait()
            named = f'[upstreams.far]\nurl = "{new.url}"\nkey = "sk-far"\nmodels = ["far-one"]\n'
            (tmp_path / "home/config.toml").write_text(settings_for(new, named))
            await wait_for_value(lambda: chat("m", stream=False), lambda text: "The new one." in text)
            assert "The new one." in await chat("far-one", stream=False)
            async with session.get("/v1/models") as response:
                assert "far-one" in {model["id"] for model in (await response.json())["data"]}
            assert not begun.done()
            goes_on.set()
            heard = StreamedAnswer.from_bytes((await begun).encode())
        assert heard.text.endswith("The old one ends it.")
        assert (heard.done, heard.errors) == (1, [])
        assert {*new.keys} == {"Bearer sk-the-key", "Bearer sk-far"}
