"""A client may narrow what the calls of its chat do; the model hears why one is not done."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.test_native_calls import calls
from tests.gateway.upstream import says
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.tool_calls.jobs import Bounds, parse_bounds
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.assistant_record import Mode

pytestmark = pytest.mark.requirement("chat:loop", "console:chat:parts")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_that_the_chat_may_not_use_is_refused_and_the_others_run(tmp_path: Path, stream: bool) -> None:
    asks = says(f"{request(text='hi')}\n{request('LS', path='.')}", stream=stream)
    async with gateway(tmp_path, [asks, says("Done.", stream=stream)]) as one:
        await (one.stream if stream else one.complete)(toolyard={"tools": ["LS"]})
        assert one.ran == []
        result = str(one.upstream.bodies[1]["messages"][-1])
        assert "This chat may not use Say. The tools it may use: LS." in result
        assert "Listed" in result
        assert "toolyard" not in one.upstream.bodies[0]


async def test_a_chat_that_may_only_look_changes_nothing_and_asks_nobody(tmp_path: Path) -> None:
    write = {"index": 0, "id": "w", "function": {"name": "Write", "arguments": '{"path": "a", "content": "x"}'}}
    look = {"index": 1, "id": "l", "function": {"name": "LS", "arguments": '{"path": "."}'}}
    delete = {"command": "DeleteFile", "filePath": "a"}
    async with gateway(tmp_path, [calls(write, look), says(request("FileOperator", **delete)), says("Done.")]) as one:
        (tmp_path / "project" / "a").write_text("kept")
        await one.stream(toolyard={"mode": "read-only"})
        *_, refused, listed = one.upstream.bodies[1]["messages"]
        assert "may only look" in refused["content"]
        assert listed["content"].startswith("Listed 1 entry")
        assert "may only look" in str(one.upstream.bodies[2]["messages"][-1])
        assert (tmp_path / "project" / "a").read_text() == "kept"
        assert await one.yard.state.approvals.page(limit=10) == []


async def test_a_command_that_only_looks_runs_in_a_chat_that_may_only_look(tmp_path: Path) -> None:
    listing = request("FileOperator", command="ListDirectory", directoryPath=".")
    async with gateway(tmp_path, [says(listing), says("Done.")]) as one:
        (tmp_path / "project" / "here.txt").write_text("")
        await one.stream(toolyard={"mode": "read-only"})
        assert "here.txt" in str(one.upstream.bodies[1]["messages"][-1])


def test_what_a_client_may_say_is_checked() -> None:
    assert parse_bounds({}) == Bounds()
    assert parse_bounds({"tools": ["LS"], "mode": "read-only"}) == Bounds(frozenset({"LS"}), Mode.READ_ONLY)
    names: list[Json] = ["x"] * 1001
    wrongs: list[JsonObject] = [{"mode": "auto"}, {"mode": None}, {"tools": "LS"}, {"tools": [1]}, {"tools": names}]
    for wrong in wrongs:
        with pytest.raises(ChatFailed):
            parse_bounds(wrong)


@pytest.mark.parametrize("options", [5, "x", [], {"tool": ["LS"]}, {"Mode": "read-only"}])
async def test_a_narrowing_that_is_misspelt_is_refused_and_the_model_is_not_asked(
    tmp_path: Path, options: Json
) -> None:
    async with gateway(tmp_path, []) as one:
        refused = await one.complete(toolyard=options)
        assert "'toolyard' is an object of chat, mode, offer, reply, show, tools" in refused["error"]["message"]
        assert one.upstream.bodies == []


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_to_be_json_holds_nothing_else_unless_the_client_chooses(
    tmp_path: Path, stream: bool
) -> None:
    turn = [says(request(text="hi"), stream=stream), says('{"a": 1}', stream=stream)]
    options: dict[str, Any] = {"response_format": {"type": "json_object"}}
    async with gateway(tmp_path, turn * 2) as one:
        texts = []
        for more in (options, options | {"toolyard": {"show": "summary"}}):
            if stream:
                texts.append((await one.stream(**more)).text)
            else:
                texts.append((await one.complete(**more))["choices"][0]["message"]["content"])
    assert texts[0].strip() == '{"a": 1}'
    assert "> ✓ Say" in texts[1]
