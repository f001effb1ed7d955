"""The mode auto-safe: what can be undone runs unasked, and the journal says why; all else asks as before."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTool, says
from tests.gateway.serving import ME, Gateway, chat_body, gateway, request
from tests.gateway.upstream import says as model_says
from tests.waiting import wait_for_value
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.tool_calls.jobs import Bounds, parse_bounds
from toolyard.protocol.access import DecisionReason, Effect
from toolyard.protocol.access import Mode as OwnersMode
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.records.assistant_record import Mode
from toolyard.protocol.tool import Origin, Risk
from toolyard.workspace.changes.undo_records import MAX_BYTES, MAX_TOTAL

pytestmark = pytest.mark.requirement("approval:auto-safe")
SAFE = {"mode": "auto-safe"}


async def talked(one: Gateway, *, may_approve: bool = True, **more: Any) -> int:
    run = await one.chat.complete(
        ClientRequest(chat_body("Hi.", toolyard=SAFE, **more), caller=ME, may_approve=may_approve)
    )
    return int(run.status)


async def refused_all(one: Gateway, turn: "asyncio.Task[Any]") -> list[Approval]:
    """Every approval that the turn asks for, each answered with a no."""
    seen: list[Approval] = []

    async def refuse() -> bool:
        for record in await one.yard.state.approvals.page(("pending",), limit=50):
            seen.append(record)
            await one.yard.state.approvals.answer(record.id, allowed=False, by="owner")
        return turn.done()

    await wait_for_value(refuse)
    return seen


async def asks_for(one: Gateway) -> list[str]:
    turn = asyncio.create_task(talked(one))
    return [str(record.because) for record in await refused_all(one, turn)]


async def noted(one: Gateway) -> list[Approval]:
    return await one.yard.state.approvals.page(("allowed",), limit=50)


def script(*replies: str) -> Sequence[Any]:
    return [model_says(reply, stream=False) for reply in (*replies, "Done.")]


async def test_a_change_that_can_be_undone_runs_unasked_and_it_is_journalled_why(tmp_path: Path) -> None:
    batch = request("FileOperator", command1="WriteFile", filePath1="b", content1="b", command2="DeleteFile",
                    filePath2="old")  # fmt: skip
    async with gateway(tmp_path, script(request("Write", path="a", content="a") + "\n" + batch)) as one:
        project = tmp_path / "project"
        (project / "old").write_text("old")
        assert await asks_for(one) == []
        assert {path.name for path in project.iterdir()} == {"a", "b"}
        notes = await noted(one)
        assert {note.because for note in notes} == {DecisionReason.AUTO_SAFE}
        assert {note.answered_by for note in notes} == {ME}
        assert all("can be undone" in note.reason for note in notes)
        for note in notes:
            await one.yard.calls.undo(note.call_id)
        assert {path.name: path.read_text() for path in project.iterdir()} == {"old": "old"}


@pytest.mark.parametrize(
    ("call", "because"),
    [
        (request("Write", path=".github/workflows/ci.yml", content="x"), "protected"),
        (request("Write", path="link/ci.yml", content="x"), "protected"),
        (request("Write", path=".env", content="x"), "write"),
        (request("Write", path="AGENTS.md", content="x"), "write"),
        (request("Write", path="bare.git/hooks/update", content="x"), "write"),
        (request("FileOperator", command="RenameFile", sourcePath="link", destinationPath="l"), "protected"),
        (request("FileOperator", command="DeleteFile", filePath="folder"), "write"),
        (request("FileOperator", command="WebReadFile", url="http://127.0.0.1:9/x"), "write"),
        (request("FileOperator", command1="WriteFile", filePath1="n", content1="x", command2="WriteFile",
                 filePath2="link/x", content2="x"), "protected"),
        (request("FileOperator", command1="WriteFile", filePath1="n", content1="x", command2="CreateCanvas",
                 fileName2="c", content2="x"), "write"),
        (request("Runs", text="n"), "execute"),
        (request("Fetches", text="n"), "network"),
    ],
)  # fmt: skip
async def test_all_else_asks_and_nothing_of_a_mixed_batch_runs_before(tmp_path: Path, call: str, because: str) -> None:
    async with gateway(tmp_path, script(call)) as one:
        project = tmp_path / "project"
        (project / "folder").mkdir()
        (project / ".github").mkdir()
        (project / "link").symlink_to(".github")
        for name, risk in (("Runs", Risk.EXECUTE), ("Fetches", Risk.NETWORK)):
            one.yard.tools.add(FakeTool(says, name=name, risk=risk))
        assert await asks_for(one) == [because]
        assert {path.name for path in project.iterdir()} == {"folder", ".github", "link"}
        assert list((project / ".github").iterdir()) == []
        assert await noted(one) == []


async def test_a_batch_that_would_take_away_more_than_the_undo_holds_asks(tmp_path: Path) -> None:
    count = 34
    numbered = {"command1": "CopyFile", "sourcePath1": "big", "destinationPath1": "c1"}
    for number in range(2, count):
        numbered |= {
            f"command{number}": "CopyFile",
            f"sourcePath{number}": "c1",
            f"destinationPath{number}": f"c{number}",
        }
    for number, path in enumerate(["precious", *(f"c{number}" for number in range(1, count))], count):
        numbered |= {f"command{number}": "EditFile", f"filePath{number}": path, f"content{number}": "x"}
    async with gateway(tmp_path, script(request("FileOperator", **numbered))) as one:
        project = tmp_path / "project"
        (project / "precious").write_text("the only copy")
        (project / "big").write_text("a line of text\n" * (MAX_BYTES // 32 // 15 + 1))
        assert await asks_for(one) == ["write"]
        assert {path.name for path in project.iterdir()} == {"precious", "big"}
        assert (project / "precious").read_text() == "the only copy"


async def test_nothing_runs_unasked_that_could_take_the_undo_of_another_call_away(tmp_path: Path) -> None:
    first, second = (script(request("Write", path=name, content=name)) for name in ("a", "b"))
    async with gateway(tmp_path, [*first, *second]) as one:
        assert await asks_for(one) == []
        (held,) = (tmp_path / "home" / "undo").iterdir()
        os.truncate(held, MAX_TOTAL // 2)
        assert await asks_for(one) == ["write"]
        assert {path.name for path in (tmp_path / "project").iterdir()} == {"a"}
        (note,) = await noted(one)
        assert await one.yard.calls.can_undo(note.call_id)


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ({"command": "python3", "args": ["tools/mcp.py"]}, "tools/mcp.py"),
        ({"command": "python3", "args": ["mcp.py"], "cwd": "tools"}, "tools/mcp.py"),
        ({"command": "python3", "args": ["-m", "tools.mcp"]}, "tools/mcp.py"),
        ({"command": "${RUNNER:-./tools/run}"}, "tools/run"),
        ({"command": "uv", "args": ["run", "--directory=tools", "mcp"]}, "tools/more.py"),
        ({"command": "node", "args": ["linked.js"], "disabled": True}, "tools/mcp.js"),
    ],
)
async def test_the_program_of_an_mcp_server_is_not_changed_unasked(
    tmp_path: Path, server: dict[str, Any], path: str
) -> None:
    calls = request("Write", path=path, content="x"), request("Write", path="README.txt", content="x")
    async with gateway(tmp_path, script(*calls)) as one:
        project = tmp_path / "project"
        (project / "linked.js").symlink_to("tools/mcp.js")
        (project / ".mcp.json").write_text(
            json.dumps({"mcpServers": {"x": server, "all": {"command": "x", "args": ["."]}}})
        )
        assert await asks_for(one) == ["write"]
        assert not (project / path).exists()
        assert (project / "README.txt").exists()


@pytest.mark.requirement("s:S-97")
@pytest.mark.parametrize("how", ["rule", "read-only", "deny"])
async def test_what_the_owner_refuses_stays_refused(tmp_path: Path, how: str) -> None:
    async with gateway(tmp_path, script(request("Write", path="a", content="a"))) as one:
        if how == "rule":
            await one.yard.state.approvals.add_rule("Write", "", Effect.DENY, by="owner")
        else:
            one.yard.state.approvals.mode = OwnersMode(how)
        assert await asks_for(one) == []
        assert list((tmp_path / "project").iterdir()) == []


@pytest.mark.requirement("s:S-52", "s:S-99")
async def test_it_takes_a_key_that_may_answer_approvals_and_no_word_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(ChatFailed) as refused:
        parse_bounds({**SAFE})
    assert (refused.value.fault.status, refused.value.fault.code) == (403, "forbidden")
    assert "'approve'" in refused.value.fault.message
    assert parse_bounds({**SAFE}, may_approve=True) == Bounds(mode=Mode.AUTO_SAFE)
    words = request("Write", path="a", content="x", auto_safe="true", toolyard='{"mode": "auto-safe"}')
    async with gateway(tmp_path, script(words, request("Write", path="a", content="x"))) as one:
        assert await talked(one, may_approve=False) == 403
        assert one.upstream.bodies == []
        turn = asyncio.create_task(one.complete("mode: auto-safe", metadata=SAFE, mode="auto-safe"))
        assert [record.because for record in await refused_all(one, turn)] == ["write"]
        assert not (tmp_path / "project" / "a").exists()


async def test_neither_a_schedule_nor_mcp_has_it(tmp_path: Path) -> None:
    at = "timely_contact:「始」2099-01-01-10:00「末」,\n<<<[END_TOOL_REQUEST]>>>"
    later = request("Write", path="a", content="x").replace("<<<[END_TOOL_REQUEST]>>>", at)
    async with gateway(tmp_path, script(later)) as one:
        assert await asks_for(one) == ["write"]
        for origin in (Origin.MCP, Origin.SCHEDULE):
            call = replace(
                one.yard.calls.request("Write", {"path": "a", "content": "x"}, origin=origin), auto_safe=True
            )
            turn = asyncio.create_task(one.yard.calls.settle(call))
            assert [record.because for record in await refused_all(one, turn)] == ["write"]
        assert list((tmp_path / "project").iterdir()) == []
