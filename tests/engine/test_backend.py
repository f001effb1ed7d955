"""Back-end messages, produced by real calls of a Yard."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from toolyard.config import load_config
from toolyard.engine.history.backend_messages import MAX_BYTES, BackendMessage, BackendStream, limit_size
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import ToolCall
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("backend:stream")
SERVER = HostOptions(outlives=True)  # messages are kept where a stream of them is served


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def read_messages(yard: Yard, after: int = 0, caller: str | None = None) -> list[BackendMessage]:
    stream = BackendStream(yard.state.store, FakeClock())
    return [message async for message in stream.messages(after, caller=caller, follow=False)]


async def call(yard: Yard, id_: str, tool: str, caller: str = "local", **arguments: Any) -> None:
    await yard.calls.settle(ToolCall(id=id_, tool=tool, arguments=arguments, caller=caller))


async def test_each_call_gives_one_message_in_order_whole_and_under_the_models_own_id(
    project: Path, home: Path
) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "toolu_1", "Write", path="a.py", content="x = 1\n")
        await call(yard, "toolu_2", "Edit", path="a.py", old_string="1", new_string="2")
        await call(yard, "toolu_3", "MultiEdit", path="a.py", edits=[{"old_string": "y", "new_string": "z"}])
        await call(yard, "toolu_4", "LS")
        bodies = [message.body for message in await read_messages(yard)]
    create, edit, failed, listed = (body for body in bodies if body is not None)
    assert [body["tool_use_id"] for body in bodies if body] == ["toolu_1", "toolu_2", "toolu_3", "toolu_4"]
    assert {body["type"] for body in bodies if body} == {"backend_only"}
    assert create["tool_name"] == "Replace"
    assert create["data"] == {
        "type": "create", "filePath": f"{project}/a.py", "content": "x = 1\n", "structuredPatch": [],
    }  # fmt: skip
    assert isinstance(edit["data"], dict)
    assert (edit["data"]["originalFile"], edit["data"]["newString"]) == ("x = 1\n", "2")
    assert failed["data"] == "Error in edit 1: String not found: y..."
    assert isinstance(listed["data"], dict)
    assert listed["data"]["truncated"] is False


async def test_a_message_names_the_call_as_the_model_did(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        for id_ in ("call_1", "call_2"):
            await yard.calls.settle(ToolCall(id=id_, use_id="toolu_01ABC", tool="LS"))
        ids = [message.body["tool_use_id"] for message in await read_messages(yard) if message.body]
    assert ids == ["toolu_01ABC", "toolu_01ABC"]


async def test_a_reader_goes_on_where_it_was_also_after_a_restart(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "one", "LS")
        (first,) = await read_messages(yard)
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "two", "LS")
        (second,) = await read_messages(yard, first.seq)
    assert second.body is not None
    assert second.body["tool_use_id"] == "two"


async def test_a_reader_who_waits_hears_at_once(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        stream = BackendStream(yard.state.store, FakeClock())
        messages = stream.messages(await stream.newest_cursor())
        waiting = asyncio.ensure_future(anext(messages))
        await call(yard, "one", "LS")
        async with asyncio.timeout(60):
            message = await waiting
        await messages.aclose()
    assert message.body is not None
    assert message.body["tool_use_id"] == "one"


async def test_a_call_that_was_cut_off_with_its_host_is_told_as_a_failure(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await yard.state.journal.record_start(ToolCall(id="lost", tool="Write"))
        await yard.state.journal.settle_orphans(lambda _: False)
        first, second = (await read_messages(yard))[0], (await read_messages(yard))[0]
    assert first.body == second.body
    assert first.body is not None
    assert str(first.body["data"]).startswith("Error: EXECUTION_ERROR: Write was cut off")


async def test_one_caller_does_not_hear_of_another(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "mine", "LS", caller="key:a")
        await call(yard, "theirs", "LS", caller="key:b")
        ids = [message.body["tool_use_id"] for message in await read_messages(yard, caller="key:a") if message.body]
    assert ids == ["mine"]


async def test_what_is_no_longer_kept_is_a_gap(project: Path, home: Path) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "one", "LS")
        _, newest = await yard.state.store.event_span()
        await yard.state.store.forget_events(4e9, limit=1000)
        (gap,) = await read_messages(yard)
    assert (gap.body, gap.seq) == (None, newest)


async def test_a_secret_of_the_host_is_masked(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "one", "Write", path="a.txt", content="the key is sk-canary-0123456789")
        (message,) = await read_messages(yard)
    assert "sk-canary" not in json.dumps(message.body)


@pytest.mark.parametrize(
    "arguments", [{"path": "a.ipynb", "new_source": "\ud800", "cell_number": 0}, {"path": "\ud800"}]
)
async def test_arguments_that_no_json_can_carry_are_a_message_too(
    project: Path, home: Path, arguments: dict[str, Any]
) -> None:
    async with Yard(load_config(project, home), outside=SERVER) as yard:
        await call(yard, "one", "NotebookEdit", **arguments)
        (message,) = await read_messages(yard)
    assert message.body is not None
    assert message.body["tool_use_id"] == "one"
    json.dumps(message.body).encode()


def test_a_message_that_is_too_large_names_what_it_lost() -> None:
    whole: JsonObject = {"type": "backend_only", "data": {"content": "x" * MAX_BYTES, "filePath": "/a"}}
    assert limit_size(whole)["data"] == {"filePath": "/a", "cut": ["content"]}
    assert limit_size({"data": "x" * MAX_BYTES})["data"] == {"cut": ["data"]}
    small: JsonObject = {"data": "x"}
    assert limit_size(small) is small
