"""Tool rounds in the next request of a conversation whose client sends back nothing but our text."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.drawing import asks_natively
from tests.gateway.serving import ME, Gateway, chat_body, gateway, request
from tests.gateway.upstream import Script, replies, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.requests.scanner import format_request

SAY = request(text="hello")
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
pytestmark = pytest.mark.requirement("memory:rounds")


async def two_turns(
    one: Gateway, *, stream: bool, show: str = "summary", offer: str = "auto", **more: Any
) -> tuple[str, list[Any]]:
    """Talk twice; what the client saw first, and what the model got in the second turn."""
    options = {"show": show, "offer": offer}
    first: dict[str, Any] = chat_body("Say hello.", stream=stream, toolyard=options, **more)
    if stream:
        text = (await one.stream("Say hello.", toolyard=options, **more)).text
    else:
        text = (await one.complete("Say hello.", toolyard=options, **more))["choices"][0]["message"]["content"]
    so_far = len(one.upstream.bodies)
    history = [*first["messages"], {"role": "assistant", "content": text}, {"role": "user", "content": "And?"}]
    run = await one.chat.complete(ClientRequest({**first, "messages": history}, caller=ME))
    if run.pieces is not None:
        assert [piece async for piece in run.pieces]
    return text, one.upstream.bodies[so_far]["messages"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("show", ["summary", "hidden", "events"])
async def test_the_model_knows_what_its_tools_said_and_does_not_see_lines_that_it_never_wrote(
    tmp_path: Path, show: str, stream: bool
) -> None:
    async with gateway(tmp_path, replies(f"I say it.\n{SAY}", "I said hello.", "Nothing.")) as one:
        text, sent = await two_turns(one, stream=stream, show=show)
        call_message, reply = one.upstream.bodies[1]["messages"][1:]
    assert ("> ✓ Say" in text) == (show == "summary")
    assert sent == [
        {"role": "user", "content": "Say hello."},
        call_message,
        reply,
        {"role": "assistant", "content": "I said hello."},
        {"role": "user", "content": "And?"},
    ]
    assert call_message == {"role": "assistant", "content": f"I say it.\n{SAY}"}
    assert reply["content"].startswith(PAYLOAD)


@pytest.mark.requirement("memory:text-form")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("offer", ["native", "auto", "text"])
async def test_native_rounds_stay_native_beside_tools_and_are_text_without(
    tmp_path: Path, offer: str, stream: bool
) -> None:
    def answer(body: dict[str, Any]) -> Script:
        if body["messages"][-1]["content"] == "Say hello.":
            return asks_natively(body, "Say", text="I say it.")
        return says("I said hello.", stream=bool(body.get("stream")))

    async with gateway(tmp_path, answer) as one:
        if offer == "text":
            _, (_, *sent) = await two_turns(one, stream=stream, offer=offer)
            assert sent[1] == {"role": "assistant", "content": f"I say it.\n{format_request('Say', {})}"}
            assert sent[2]["role"] == "user"
            assert sent[2]["content"].startswith(f"{PAYLOAD}\n\nSay:\nSaid it.")
        else:
            tools: dict[str, Any] = {"tools": TOOLS} if offer == "native" else {}  # ours alone, or beside the client's
            _, sent = await two_turns(one, stream=stream, offer=offer, **tools)
            assert sent[1:3] == one.upstream.bodies[1]["messages"][1:]
            assert (sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]) == ("n1", "n1")
        assert sent[3:] == [
            {"role": "assistant", "content": "I said hello."},
            {"role": "user", "content": "And?"},
        ]


@pytest.mark.parametrize("stream", [True, False])
async def test_several_rounds_and_turns_come_back_in_order(tmp_path: Path, stream: bool) -> None:
    script = replies(SAY, SAY, "First.", SAY, "Second.", "Third.")
    async with gateway(tmp_path, script) as one:
        history: list[Any] = []
        for question in ("One?", "Two?", "Three?"):
            history.append({"role": "user", "content": question})
            if stream:
                run = await one.chat.complete(ClientRequest({"messages": list(history), "stream": True}, caller=ME))
                assert run.pieces is not None
                raw = b"".join([piece async for piece in run.pieces])
                chunks = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
                deltas = [choice["delta"] for one in chunks for choice in one["choices"]]
                text = "".join(delta.get("content") or "" for delta in deltas)
            else:
                run = await one.chat.complete(ClientRequest({"messages": list(history)}, caller=ME))
                text = json.loads(run.body)["choices"][0]["message"]["content"]
            history.append({"role": "assistant", "content": text})
        sent = one.upstream.bodies[-1]["messages"]
    roles = "".join(message["role"][0] for message in sent)
    assert roles == "u" + "au" * 2 + "a" + "u" + "au" + "a" + "u"
    assert [sent[at]["content"] for at in (5, 9)] == ["First.", "Second."]


async def test_a_client_that_trims_the_text_between_calls_as_the_console_does_is_recognised(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"I say it.\n{SAY}", "I said hello.", "Yes.")) as one:
        heard = await one.stream("Say hello.", toolyard={"show": "events"})
        assert heard.text != "I say it.\n\nI said hello."
        history: Any = [
            {"role": "user", "content": "Say hello."},
            {"role": "assistant", "content": "I say it.\n\nI said hello."},
        ]
        await one.chat.complete(ClientRequest({"messages": [*history, {"role": "user", "content": "And?"}]}, caller=ME))
        assert [message["role"] for message in one.upstream.bodies[-1]["messages"]] == [
            *("user", "assistant", "user", "assistant", "user")
        ]


async def test_nothing_is_remembered_when_the_setting_is_off_or_the_answer_carries_its_rounds(tmp_path: Path) -> None:
    for place, show, settings in (("off", "summary", {"remember_tool_results": False}), ("raw", "raw", {})):
        async with gateway(tmp_path / place, replies(SAY, "Done.", "Yes."), settings=settings) as one:
            text, sent = await two_turns(one, stream=False, show=show)
            own = text if show == "raw" else "Done."
            assert [message["content"] for message in sent] == ["Say hello.", own, "And?"]


async def test_a_turn_that_broke_off_is_not_remembered(tmp_path: Path) -> None:
    broken = Script([b'{"error": {"message": "down"}}'], status=401, kind="application/json")
    scripts = [says(SAY, stream=False), broken, says("Yes.", stream=False)]
    async with gateway(tmp_path, scripts) as one:
        failed = await one.complete("Say hello.")
        assert failed["error"]["code"] == "tools_have_run"
        history: Any = [
            {"role": "user", "content": "Say hello."},
            {"role": "assistant", "content": "> ✓ Say: Said it."},
        ]
        await one.chat.complete(ClientRequest({"messages": [*history, {"role": "user", "content": "And?"}]}, caller=ME))
        assert one.upstream.bodies[-1]["messages"][:2] == [history[0], {"role": "assistant", "content": "…"}]


async def test_after_the_round_limit_the_model_knows_that_it_was_stopped(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(*[SAY] * 11, "Yes.")) as one:
        _, sent = await two_turns(one, stream=False)
    assert len(sent) == 1 + 2 * 10 + 1 + 1
    assert "Toolyard stopped here" in sent[-2]["content"]
    assert "TOOL_REQUEST" not in sent[-2]["content"]


async def test_a_call_of_the_clients_tool_after_ours_keeps_our_rounds_before_it(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Script:
        done = len(body["messages"])
        return asks_natively(body, "Say" if done == 1 else "weather", text="I look.") if done < 4 else says("Sunny.")

    async with gateway(tmp_path, answer) as one:
        first = await one.complete("Weather?", tools=TOOLS, toolyard={"offer": "native"})
        message = first["choices"][0]["message"]
        assert message["content"].startswith("I look.\n\n> ")
        history = [
            {"role": "user", "content": "Weather?"},
            message,
            {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sun"},
        ]
        body: Any = {**chat_body("x", tools=TOOLS, stream=True), "messages": history}
        run = await one.chat.complete(ClientRequest(body, caller=ME))
        assert run.pieces is not None
        assert [piece async for piece in run.pieces]
        sent = one.upstream.bodies[2]["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "assistant", "tool"]
    assert sent[1:3] == one.upstream.bodies[1]["messages"][1:]
    assert (sent[3]["content"], sent[3]["tool_calls"][0]["function"]["name"]) == ("I look.", "weather")


async def test_another_key_learns_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(SAY, "Done.", "Yes.")) as one:
        text = (await one.complete("Say hello."))["choices"][0]["message"]["content"]
        history: Any = [{"role": "user", "content": "Say hello."}, {"role": "assistant", "content": text}]
        await one.chat.complete(
            ClientRequest({"messages": [*history, {"role": "user", "content": "And?"}]}, caller="key:other")
        )
        sent = one.upstream.bodies[-1]["messages"]
    assert sent[:2] == [history[0], {"role": "assistant", "content": "Done."}]  # without our line about the call
