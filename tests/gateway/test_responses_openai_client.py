"""The official client of OpenAI as a judge of Responses."""

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.response_events import check_response
from tests.gateway.serving import gateway, request
from tests.gateway.upstream import DONE, Script, chunk, replies, streamed

BLOCK = request(text="hello")
WEATHER: Any = {"type": "function", "name": "weather", "parameters": {}, "strict": False}


def create(client: openai.AsyncOpenAI) -> Any:
    """Its types know nothing of answers that depend on values."""
    return client.responses.create


@pytest.mark.requirement("responses:create", "responses:own_tools")
async def test_it_reads_whole_answers_and_streams_with_tools_in_between(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    async with (
        gateway(tmp_path, replies(BLOCK, "Done.", f"So.\n{BLOCK}", "Done.", usage=usage), served=True) as one,
        one.client() as client,
    ):
        answer = await create(client)(model="m", input="Hi")
        check_response(answer.to_dict(mode="json"))
        assert [item.type for item in answer.output] == ["mcp_call", "message"]
        assert (answer.output[0].name, answer.output[0].output) == ("Say", 'Said it.\n{"said":"hello"}')
        assert (answer.output_text, answer.status, answer.usage.total_tokens) == ("Done.", "completed", 6)
        async with client.responses.stream(model="m", input="Hi again") as stream:
            kinds = [event.type async for event in stream]
            last = await stream.get_final_response()
    assert kinds[-1] == "response.completed"
    assert [item.type for item in last.output] == ["message", "mcp_call", "message"]
    assert last.output_text == "So.\nDone."


@pytest.mark.requirement("responses:errors")
async def test_it_sees_errors_as_errors(tmp_path: Path) -> None:
    bad = Script(
        [b'{"error": {"message": "no such model", "code": "model_not_found"}}'], status=404, kind="application/json"
    )
    cut = Script(streamed("Hello there.")[:3], then="cut")
    async with gateway(tmp_path, [bad, cut], served=True) as one, one.client() as client:
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await create(client)(model="m", input="Hi", stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in await create(client)(model="m", input="Hi", stream=True):
                pass


@pytest.mark.requirement("responses:client_tools")
async def test_its_own_tools_come_back_to_it(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"X"}'}}
    script = Script([chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), DONE])
    async with gateway(tmp_path, [script], served=True) as one, one.client() as client:
        answer = await create(client)(model="m", input="Hi", tools=[WEATHER])
        output = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
        await create(client)(model="m", input=[*answer.output, output], tools=[WEATHER])
        sent = one.upstream.bodies[1]["messages"]
    assert (answer.output[0].type, answer.output[0].name, answer.output[0].call_id) == (
        "function_call",
        "weather",
        "c1",
    )
    assert sent[0]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"X"}'}
    assert sent[1] == {"role": "tool", "tool_call_id": "c1", "content": "rain"}
