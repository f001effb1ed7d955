"""The built-in guide."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import ME, Gateway, StreamedAnswer, gateway
from tests.gateway.upstream import replies
from tests.waiting import run_loop_once, wait_for_value
from toolyard.engine.step_limiter import AT_ONCE
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.tour_model import Tour, write_reply
from toolyard.protocol.access import ApprovalState, Mode
from toolyard.protocol.replies.reply_values import Reply
from toolyard.protocol.reply import parse_reply

pytestmark = pytest.mark.requirement("chat:tour")
ALONE = {"upstream_url": None, "upstream_key": None}
NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


async def ask(one: Gateway, *texts: str, **more: Any) -> StreamedAnswer:
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    body: Any = {"model": "any", "messages": messages, "stream": True, **more}
    run = await one.chat.complete(ClientRequest(body, caller=ME))
    assert run.pieces is not None
    return StreamedAnswer.from_bytes(b"".join([piece async for piece in run.pieces]))


async def test_without_a_provider_it_answers_and_is_listed(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("x"), settings=ALONE) as one:
        first, second = await ask(one, "Hello"), await ask(one, "Hello")
        assert first.events == second.events
        assert len(first.events) > 50
        assert "built-in guide" in first.text
        assert [model["id"] for model in await one.chat.models()] == ["tour"]
        assert "我是" in (await ask(one, "你好")).text
    async with gateway(tmp_path / "with", replies("From the provider.")) as one:
        assert (await ask(one, "Hello")).text == "From the provider."
        assert "built-in guide" in (await ask(one, "Hello", model="tour")).text
        assert [model["id"] for model in await one.chat.models()] == ["scripted", "tour"]


async def test_very_many_who_listen_at_once_take_turns() -> None:
    tour, body = Tour(lambda: NOW), b'{"messages": [{"role": "user", "content": "Hello"}]}'
    answers = [await tour.ask(body, stream=True, retry=False) for _ in range(3 * AT_ONCE)]
    heard = 0

    async def listen(number: int) -> None:
        nonlocal heard
        while await answers[number].events():
            heard += 1

    tasks = [asyncio.create_task(listen(number)) for number in range(len(answers))]
    seen = list[int]()
    async with asyncio.timeout(60):
        while not all(task.done() for task in tasks):
            before = heard
            await run_loop_once()
            seen.append(heard - before)
        await asyncio.gather(*tasks)
    assert 0 < max(seen) <= AT_ONCE
    assert heard % len(answers) == 0


async def test_it_really_calls_tools(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/notes.md").write_text("# Notes\n")
    async with gateway(tmp_path, replies("x"), settings=ALONE) as one:
        files = (await ask(one, "Which files are here?")).text
        assert "- `notes.md`" in files
        assert "{" not in files  # for people, not for programs
        assert "84" in (await ask(one, "What is 12 * (3 + 4)?")).text
        assert "84" in (await ask(one, "请算 12 * (3 + 4)")).text
        everything = await ask(one, "Show me everything", toolyard={"show": "events"})
        updates = [event["toolyard"] for event in everything.events if "toolyard" in event]
        ended = {one["tool"]: one for one in updates if one["type"] == "call.finished"}
        assert {tool: one["state"] for tool, one in ended.items()} == dict.fromkeys(
            ("LS", "SciCalculator", "Plotter"), "success"
        )
        assert ended["Plotter"]["media"][0]["image_url"]["url"].startswith("data:image/png")
        assert re.search(r"⏲ SciCalculator", (await ask(one, "Schedule it for later")).text)


async def test_it_asks_for_approval_before_it_writes(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("x"), settings={**ALONE, "approval_mode": Mode.ASK}) as one:
        asking = asyncio.create_task(ask(one, "Write a file"))
        pending = await wait_for_value(lambda: one.yard.state.approvals.page((ApprovalState.PENDING,), limit=1))
        assert not (tmp_path / "project/tour").exists()
        await one.yard.state.approvals.answer(pending[0].id, allowed=True, by="test")
        assert "Created" in (await asking).text
    assert (tmp_path / "project/tour/hello.md").read_text().startswith("# Hello")


@pytest.mark.requirement("placeholder:async", "chat:placeholders")
async def test_it_starts_a_task_and_tells_its_result_later(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("x"), settings={**ALONE, "approval_mode": Mode.AUTO}) as one:
        first = await ask(one, "Make a background animation")
        placeholder = re.search(r"\{\{VCP_ASYNC_RESULT::Timelapse::([\w-]+)\}\}", first.text)
        assert placeholder is not None
        async with asyncio.timeout(60):
            task = await one.yard.state.tasks.find_for_caller("Timelapse", placeholder[1], ME)
            assert task is not None
            await one.yard.state.tasks.wait(task.id)
        later = await ask(one, "Make a background animation", first.text, "Is it done?")
    assert "The task says:" in later.text
    assert "GIF" in later.text or "gif" in later.text


@pytest.mark.parametrize(
    ("question", "functions"),
    [
        ("Plot sin(x) and cos(x)/2", "sin(x); cos(x)/2"),
        ("绘制 sin(x) 和 cos(x)/2 的曲线图", "sin(x); cos(x)/2"),
        ("Plot x^2", "x^2"),
        ("Draw a picture", "sin(x); cos(x)/2"),
    ],
)
def test_it_plots_every_curve_that_was_asked_for(question: str, functions: str) -> None:
    assert f"functions:「始」{functions}「末」" in write_reply(question, None, "", NOW).text


@pytest.mark.parametrize("heard", ["Give me a structured reply", "给我一个结构化回复"])
def test_its_structured_reply_is_one(heard: str) -> None:
    reply = parse_reply(write_reply(heard, None, "", NOW).text)
    assert isinstance(reply, Reply)
    assert not reply.problems
    assert {attachment.type for attachment in reply.attachments.values()} == {"mermaid", "latex", "code", "table"}
