"""Argument checks: made before an approval is asked for; a rule from an answer is no wider than what was shown."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.yards import ECHO, PluginYard, confirm_read
from toolyard.engine.rules import PermissionRequest
from toolyard.protocol.access import ApprovalState, Effect, Mode
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.tool import Origin, Outcome, Risk, ToolCall, ToolSpec
from toolyard.yard.yard import Yard

SENDER: dict[str, Any] = {
    "capabilities": {
        "invocationCommands": [
            {
                "commandIdentifier": name,
                "description": f"{name}s.",
                "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
            }
            for name in ("Send", "Erase")
        ]
    }
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as made:
        made.add("Sender", **SENDER)
        yield made


async def settle(yard: Yard, tool: str, origin: Origin = Origin.CHAT, **arguments: Any) -> Outcome:
    async with asyncio.timeout(60):
        return await yard.calls.settle(yard.calls.request(tool, arguments, origin=origin))


async def pending(yard: Yard) -> Approval:
    async with asyncio.timeout(60):
        while True:
            _, seq = await yard.state.store.event_span()
            if found := await yard.state.approvals.page((ApprovalState.PENDING,), limit=1):
                return found[0]
            await yard.state.store.next_event(seq)


@pytest.mark.requirement("approval:checked-first")
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("Write", {"content": "x"}, "missing parameter 'path'"),
        ("FileOperator", {"filePath1": "a", "content1": "x", "filePath2": "b"}, "Item 1 of the batch"),
        (
            "FileOperator",
            {"command1": "WriteFile", "filePath1": "a", "content1": "x", "command2": "DeleteFile"},
            "Item 2 of the batch: DeleteFile needs the missing parameter 'filePath'.",
        ),
        ("FileOperator", {"command": "Explode"}, "Unknown action: Explode"),
        ("FileOperator", {"command": "WriteFile", "filePath": "a"}, "'content'"),
        ("Sender", {"command": "Send"}, "missing parameter 'to'"),
        ("Sender", {"command": "Erase", "to": 7}, "'to': expected a string"),
    ],
)
async def test_nobody_is_asked_about_a_call_that_could_not_begin(
    host: PluginYard, tool: str, arguments: dict[str, Any], said: str
) -> None:
    outcome = await settle(host.yard, tool, **arguments)
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM
    assert said in outcome.envelope.error.message
    assert await host.yard.state.approvals.page(limit=10) == []
    assert list((host.place / "project").iterdir()) == []


@pytest.mark.requirement("approval:checked-first")
async def test_a_plugin_that_may_not_run_is_told_so_before_anybody_is_asked(tmp_path: Path) -> None:
    async with PluginYard(tmp_path, trusted=False) as host:
        host.add("Sender", **SENDER)
        outcome = await settle(host.yard, "Sender", command="Send", to="me")
        assert outcome.envelope.error is not None
        assert "cannot run" in outcome.envelope.error.message
        assert await host.yard.state.approvals.page(limit=10) == []


@pytest.mark.requirement("approval:checked-first", "s:S-29")
async def test_a_batch_with_a_bad_item_is_not_scheduled_either(host: PluginYard) -> None:
    call = host.yard.calls.request(
        "FileOperator", {"command1": "DeleteFile", "filePath1": "a", "command2": "WriteFile"}, origin=Origin.CHAT
    )
    async with asyncio.timeout(60):
        outcome = await host.yard.calls.submit(call, at="2099-01-01-10:00")
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM
    assert await host.yard.state.approvals.page(limit=10) == []


@pytest.mark.requirement("plugin:risk:confirmed", "approval:who")
async def test_a_plugin_that_calls_itself_harmless_asks_until_its_owner_confirmed_it(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as host:
        folder = host.add("Reader", risk="read")
        waiting = asyncio.ensure_future(settle(host.yard, "Reader", text="x"))
        asked = await pending(host.yard)
        assert (asked.tool, asked.because) == ("Reader", "execute")
        await host.yard.state.approvals.answer(asked.id, allowed=False, by="me")
        assert (await waiting).envelope.error is not None
        confirm_read(host.yard, "Reader")
        assert (await settle(host.yard, "Reader", text="x")).envelope.error is None
        assert (await settle(host.yard, "EchoPlugin", text="x")).envelope.error is None  # it is shipped
        (folder / "main.py").write_text(f"{ECHO}\n# changed\n")
        changed = await settle(host.yard, "Reader", text="x")
        assert changed.envelope.error is not None
        assert "has changed" in changed.envelope.error.message
        waiting = asyncio.ensure_future(settle(host.yard, "Reader", text="x"))
        await host.yard.state.approvals.answer((await pending(host.yard)).id, allowed=True, by="me")
        assert (await waiting).envelope.error is None


@pytest.mark.requirement("s:S-96")
@pytest.mark.parametrize("arguments", [{"to": "me"}, {"command": "", "to": "me"}, {"to1": "me", "to2": "you"}])
async def test_always_for_a_call_that_names_no_command_makes_no_rule_for_all_of_them(
    host: PluginYard, arguments: dict[str, Any]
) -> None:
    yard = host.yard
    waiting = asyncio.ensure_future(settle(yard, "Sender", **arguments))
    asked = await pending(yard)
    assert asked.always_offered is False
    assert await yard.state.approvals.answer(asked.id, allowed=True, by="me", always=True) is ApprovalState.ALLOWED
    await waiting
    assert await yard.state.approvals.rules() == []
    erasing = asyncio.ensure_future(settle(yard, "Sender", command="Erase", to="all"))
    assert await yard.state.approvals.answer((await pending(yard)).id, allowed=False, by="me") is ApprovalState.DENIED
    assert (await erasing).envelope.error is not None


@pytest.mark.requirement("s:S-96")
@pytest.mark.parametrize(
    ("takes", "arguments", "fits"),
    [
        ((), {"path": "a"}, True),
        (("command", "path"), {"command": "Send"}, True),
        (("command", "path"), {"path1": "a", "path2": "b"}, False),
        (("command", "path"), {"command1": "Send", "command2": "Erase"}, False),
        (("Command",), {}, False),
        ((), {"command": ""}, False),
    ],
)
def test_one_rule_says_what_is_asked_only_when_it_names_the_one_command(
    takes: tuple[str, ...], arguments: dict[str, Any], fits: bool
) -> None:
    parameters: Any = {"type": "object", "properties": {name: {} for name in takes}}
    spec = ToolSpec(name="Tool", description="", parameters=parameters, risk=Risk.WRITE)
    call = ToolCall(id="call_1", tool="Tool", arguments=arguments, origin=Origin.CHAT)
    assert PermissionRequest(call=call, spec=spec).fits_one_rule is fits


@pytest.mark.requirement("s:S-15")
@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.ASK])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"path": "docs/ci/x.yml", "content": "x"}),
        ("FileOperator", {"command": "WriteFile", "filePath": "docs/ci/x.yml", "content": "x"}),
        ("FileOperator", {"command": "CopyFile", "sourcePath": "x.yml", "destinationPath": "docs/ci"}),
        ("Sender", {"command": "Send", "to": "docs/ci/x.yml"}),
    ],
)
async def test_a_link_to_a_protected_place_is_that_place_in_every_mode_and_for_every_rule(
    host: PluginYard, mode: Mode, tool: str, arguments: dict[str, Any]
) -> None:
    project, yard = host.place / "project", host.yard
    link_to_workflows(project)
    yard.state.approvals.mode = mode
    await yard.state.approvals.add_rule(tool, "", Effect.ALLOW, by="me")
    waiting = asyncio.ensure_future(settle(yard, tool, **arguments))
    asked = await pending(yard)
    assert (asked.because, asked.protected, asked.always_offered) == ("protected", True, False)
    assert list((project / ".github" / "workflows").iterdir()) == []
    await yard.state.approvals.answer(asked.id, allowed=True, by="me")
    assert (await waiting).envelope.error is None
    assert tool == "Sender" or (project / ".github" / "workflows" / "x.yml").exists()


@pytest.mark.requirement("s:S-15")
async def test_a_batch_that_makes_its_own_way_to_a_protected_place_does_not_write_there(host: PluginYard) -> None:
    project = host.place / "project"
    link_to_workflows(project)
    host.yard.state.approvals.mode = Mode.AUTO
    outcome = await settle(
        host.yard, "FileOperator", command1="MoveFile", sourcePath1="docs", destinationPath1="moved",
        command2="WriteFile", filePath2="moved/ci/x.yml", content2="x",
    )  # fmt: skip
    assert outcome.envelope.status is Status.PARTIAL
    assert outcome.batch[1].outcome.envelope.error is not None
    assert "nobody was asked" in outcome.batch[1].outcome.envelope.error.message
    assert list((project / ".github" / "workflows").iterdir()) == []


@pytest.mark.requirement("s:S-15", "s:S-29")
def test_a_yes_from_before_a_path_led_to_a_protected_place_is_none_for_it_now() -> None:
    call = ToolCall(id="call_1", tool="Write", arguments={"path": "docs/ci/x.yml"}, origin=Origin.SCHEDULE)
    spec = ToolSpec(name="Write", description="", parameters={}, risk=Risk.WRITE)
    before, now = (PermissionRequest(call=call, spec=spec, touches_protected=touches) for touches in (False, True))
    assert before.digest != now.digest


def link_to_workflows(project: Path) -> None:
    (project / "x.yml").write_text("x")
    (project / "docs").mkdir()
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / "docs" / "ci").symlink_to(project / ".github" / "workflows")
