"""Rounds after the first: what is asked for, what is kept of earlier ones, and how the last one ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.drawing import asks_natively
from tests.gateway.serving import ME, chat_body, gateway, request
from tests.gateway.upstream import DONE, Script, chunk, completion, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.turns.dialogue import MAX_ROUNDS
from toolyard.provider_settings import ProviderOptions

BLOCK = request(text="again")
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
NAMED = {"type": "function", "function": {"name": "Say"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}
TWO_ROUNDS = {"upstream_options": ProviderOptions(tool_rounds=2)}


def call_then(*answers: Callable[[dict[str, Any]], Script]) -> Callable[[dict[str, Any]], Script]:
    """A model that calls Say, and answers in later rounds as told."""

    def answer(body: dict[str, Any]) -> Script:
        replies_so_far = sum(message["role"] == "assistant" for message in body["messages"])
        return asks_natively(body, "Say") if not replies_so_far else answers[replies_so_far - 1](body)

    return answer


def ends(text: str) -> Callable[[dict[str, Any]], Script]:
    return lambda body: says(text, stream=bool(body.get("stream")))


@pytest.mark.requirement("chat:tool-choice")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("field", "value", "later"),
    [
        ("tool_choice", "required", None),
        ("tool_choice", NAMED, None),
        ("tool_choice", ALLOWED, {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}),
        ("tool_choice", "auto", "auto"),
        ("function_call", {"name": "Say"}, None),
    ],
    ids=["required", "named", "allowed", "auto", "function"],
)
async def test_a_call_that_the_model_had_to_make_is_not_asked_for_again(
    tmp_path: Path, field: str, value: Any, later: Any, stream: bool
) -> None:
    async with gateway(tmp_path, call_then(ends("Done."))) as one:
        if stream:
            assert (await one.stream(**{field: value})).text.endswith("Done.")
        else:
            await one.complete(**{field: value})
        first, second = one.upstream.bodies
        assert (first[field], second.get(field), len(one.ran)) == (value, later, 1)
        assert second["tools"] == first["tools"]


@pytest.mark.requirement("r:R78")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("how", ["native", "text"])
async def test_after_the_last_round_the_model_is_asked_for_its_answer_without_tools(
    tmp_path: Path, how: str, stream: bool
) -> None:
    def model(body: dict[str, Any]) -> Script:
        if "Call no more tools" in str(body["messages"][-1]["content"]):
            return says("I have said it twice.", stream=stream, usage={"total_tokens": 7})
        return asks_natively(body, "Say") if how == "native" else says(BLOCK, stream=stream)

    async with gateway(tmp_path, model, settings=TWO_ROUNDS) as one:
        if stream:
            heard = await one.stream()
            end, text, finishes = heard.events[-1], heard.text, heard.finishes
        else:
            end = await one.complete()
            text, finishes = end["choices"][0]["message"]["content"], [end["choices"][0]["finish_reason"]]
        assert (finishes, end["toolyard"], len(one.ran)) == (["stop"], {"type": "round_limit"}, 2)
        assert text.endswith("I have said it twice.")
        assert end["usage"]["total_tokens"] == 7
        *_, before, last = one.upstream.bodies
        assert (before.get("tool_choice"), last["tool_choice"], last["tools"]) == (None, "none", before["tools"])
        assert "last of 2 rounds" in str(last["messages"][-1]["content"])
        roles = [message["role"] for message in last["messages"]]
        assert roles == ["user", *(["assistant", "tool"] * 2 if how == "native" else ["assistant", "user"] * 2)] + (
            ["user"] if how == "native" else []
        )


@pytest.mark.requirement("r:R78")
async def test_the_last_round_keeps_the_clients_own_tools_and_speaks_chinese(tmp_path: Path) -> None:
    async with gateway(
        tmp_path, call_then(lambda body: asks_natively(body, "Say"), ends("好。")), settings=TWO_ROUNDS
    ) as one:
        await one.complete("请一直说", tools=[WEATHER], toolyard={"offer": "native"}, tool_choice="required")
        last = one.upstream.bodies[-1]
        assert (last["tools"], "tool_choice" in last) == ([WEATHER], False)
        assert "请不要再调用工具" in last["messages"][-1]["content"]


@pytest.mark.requirement("r:R78")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_provider_that_cannot_answer_without_tools_ends_the_turn_with_the_note(
    tmp_path: Path, stream: bool
) -> None:
    refused = Script([b'{"error": {"message": "tool_choice is not supported"}}'], status=400, kind="application/json")
    async with gateway(
        tmp_path, call_then(lambda body: asks_natively(body, "Say"), lambda _: refused), settings=TWO_ROUNDS
    ) as one:
        text = (await one.stream()).text if stream else json.dumps(await one.complete())
        assert "Toolyard stopped here" in text
        assert len(one.ran) == 2


@pytest.mark.requirement("r:R78")
async def test_the_next_turn_knows_the_answer_that_was_given_at_the_limit(tmp_path: Path) -> None:
    model = call_then(lambda body: asks_natively(body, "Say"), ends("That is all."), ends("Yes."))
    async with gateway(tmp_path, model, settings=TWO_ROUNDS) as one:
        answer = (await one.complete())["choices"][0]["message"]["content"]
        history = [*chat_body("Hi.")["messages"], {"role": "assistant", "content": answer}]  # type: ignore[misc]
        await one.chat.complete(
            ClientRequest({"messages": [*history, {"role": "user", "content": "Sure?"}]}, caller=ME)
        )
        assert one.upstream.bodies[-1]["messages"][-2] == {"role": "assistant", "content": "That is all."}


OVERFLOWS: dict[str, tuple[int, dict[str, Any]]] = {
    "openai": (400, {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}),
    "llama.cpp": (400, {"message": "too large", "type": "exceed_context_size_error", "code": 400}),
    "vllm": (400, {"message": "This model's maximum context length is 8 tokens (2 in the functions)", "code": 400}),
    "sent as an answer": (200, {"message": "prompt is too long", "code": None}),
}


@pytest.mark.requirement("chat:overflow")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", OVERFLOWS)
async def test_a_conversation_that_grows_too_long_in_any_round_is_told_by_openais_code(
    tmp_path: Path, name: str, stream: bool
) -> None:
    status, error = OVERFLOWS[name]
    refused = Script([json.dumps({"error": error}).encode()], status=status, kind="application/json")

    async def error_of(answers: Any, place: str) -> dict[str, Any]:
        async with gateway(tmp_path / place, answers) as one:
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=stream), caller=ME))
            raw = run.body if run.pieces is None else b"".join([piece async for piece in run.pieces])
            assert len(one.upstream.bodies) == (2 if place == "later" else 1)
            line = raw if run.pieces is None else raw[raw.rindex(b"data: ") + 6 :]
            found: dict[str, Any] = json.loads(line)["error"]
            return found

    first = await error_of([refused], "first")
    later = await error_of(call_then(lambda _: refused), "later")
    assert (first["code"], later["code"]) == ("context_length_exceeded",) * 2
    assert error["message"] in later["message"]
    assert "start a new chat" in later["message"]
    assert "Tools have already run in this turn" in later["message"]


@pytest.mark.requirement("chat:earlier-reasoning")
async def test_reasoning_of_earlier_rounds_is_in_an_answer_in_one_piece_as_it_is_in_a_stream(tmp_path: Path) -> None:
    def model(body: dict[str, Any]) -> Script:
        thoughts = [{"type": "reasoning.text", "text": f"{len(body['messages'])}"}]
        if body["messages"][-1]["role"] == "user":
            return asks_natively(body, "Say", text="I say it.", reasoning="First I say it.")
        last = {"content": "Done.", "reasoning_content": "Now I am done.", "reasoning_details": thoughts}
        if body.get("stream"):
            return Script([chunk(last), chunk({}, "stop"), DONE])
        return Script([completion({"role": "assistant", **last})], kind="application/json")

    async with gateway(tmp_path, model) as one:
        message = (await one.complete())["choices"][0]["message"]
        assert message["reasoning_content"] == "First I say it.\n\nNow I am done."
        assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "3"}]
        assert "tool_calls" not in message
        assert message["content"].endswith("Done.")
        heard = await one.stream()
        deltas = [choice["delta"] for event in heard.events for choice in event.get("choices", [])]
        assert [delta["reasoning_content"] for delta in deltas if "reasoning_content" in delta] == [
            "First I say it.",
            "Now I am done.",
        ]


@pytest.mark.requirement("chat:earlier-reasoning")
async def test_reasoning_stays_when_the_turn_ends_at_its_limit(tmp_path: Path) -> None:
    async with gateway(tmp_path, lambda body: asks_natively(body, "Say", reasoning="Hm.")) as one:
        answer = await one.complete()
        assert answer["choices"][0]["message"]["reasoning_content"] == "\n\n".join(["Hm."] * (MAX_ROUNDS + 1))
