"""The official client of OpenAI as a judge."""

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.upstream import DONE, Script, chunk, replies, streamed

BLOCK = request(text="hello")
HI: Any = [{"role": "user", "content": "Hi"}]


def create(client: openai.AsyncOpenAI) -> Any:
    """Its types know nothing of answers that depend on values."""
    return client.chat.completions.create


@pytest.mark.requirement("chat:completions")
async def test_it_reads_whole_answers_and_streams_with_tools_in_between(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    async with (
        gateway(tmp_path, replies(BLOCK, "Done.", BLOCK, "Done.", usage=usage), served=True) as one,
        one.client() as client,
    ):
        answer = await create(client)(model="m", messages=HI)
        assert (answer.choices[0].message.content, answer.usage.total_tokens) == ("> ✓ Say: Said it.\n\nDone.", 6)
        text, finish, tokens = "", [], 0
        stream = await create(client)(
            model="m",
            messages=HI,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"toolyard": {"chat": "c"}},
        )
        async for event in stream:
            for choice in event.choices:
                text += choice.delta.content or ""
                finish += [choice.finish_reason] if choice.finish_reason else []
            tokens += event.usage.total_tokens if event.usage else 0
        assert (text, finish, tokens) == ("> ✓ Say: Said it.\n\nDone.", ["stop"], 6)
        assert [model.id async for model in await client.models.list()] == ["scripted", "tour"]


@pytest.mark.requirement("chat:completions", "r:R70")
async def test_it_sees_errors_as_errors(tmp_path: Path) -> None:
    bad = Script(
        [b'{"error": {"message": "no such model", "code": "model_not_found"}}'], status=404, kind="application/json"
    )
    cut = Script(streamed("Hello there.")[:3], then="cut")
    async with gateway(tmp_path, [bad, cut], served=True) as one, one.client() as client:
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await create(client)(model="m", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):  # at once when the cut comes with the first bytes
            async for _ in await create(client)(model="m", messages=HI, stream=True):
                pass


@pytest.mark.requirement("chat:native")
async def test_its_own_tools_come_back_to_it(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"X"}'}}
    script = Script([chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), DONE])
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    async with gateway(tmp_path, [script], served=True) as one, one.client() as client:
        stream = await create(client)(model="m", messages=HI, tools=tools, stream=True)
        events = [event async for event in stream]
    assert events[0].choices[0].delta.tool_calls[0].function.name == "weather"
    assert events[-1].choices[0].finish_reason == "tool_calls"
