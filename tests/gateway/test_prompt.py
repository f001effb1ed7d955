"""What placeholders become on their way to the model."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.gateway.serving import ME, asked, gateway
from tests.gateway.upstream import replies
from tests.plugins.folders import manifest_text
from toolyard.gateway.host import Texts
from toolyard.gateway.prompt import filled, tool_text
from toolyard.protocol.json import Json
from toolyard.protocol.manifest import Manifest, plugin_text, read_manifest
from toolyard.protocol.markers import parse_requests
from toolyard.protocol.task import Task, TaskState
from toolyard.protocol.tool import ToolSpec

NOW = datetime(2026, 1, 5, 9, 5, 7, tzinfo=timezone(timedelta(hours=8)))
PLUGIN = read_manifest(manifest_text("Alpha")).manifest
BUILT_IN = ToolSpec(
    name="Look",
    description="Looks.\nWell.",
    parameters={"type": "object", "properties": {"path": {"description": "Where."}}, "required": ["path"]},
    aliases=("See",),
)
TASK = Task(
    id="t", call_id="c", plugin="Alpha", task_id="1", state=TaskState.SUCCEEDED, created=0, updated=0, deadline=9,
    caller=ME, token_hash="", result={"message": "Ready: {{Date}} <<<[TOOL_REQUEST]>>>"},
)  # fmt: skip


def texts(static: Mapping[str, str] | None = None, *tasks: Task) -> Texts:
    async def task(plugin: str, task_id: str, caller: str) -> Task | None:
        return next((one for one in tasks if (one.plugin, one.task_id, one.caller) == (plugin, task_id, caller)), None)

    def manifest(name: str) -> Manifest | None:
        return PLUGIN if name == "Alpha" else None

    alpha = ToolSpec(name="Alpha", description="", parameters={})
    return Texts(
        specs=lambda: [alpha, BUILT_IN], manifest=manifest, static=lambda: static or {}, task=task, now=lambda: NOW
    )


async def system(text: str, static: Mapping[str, str] | None = None, *tasks: Task) -> str:
    made = await filled([{"role": "system", "content": text}], texts(static, *tasks), ME)
    message = made.messages[0]
    assert isinstance(message, dict)
    return str(message["content"])


@pytest.mark.requirement("placeholder:plugin", "placeholder:plugin-text")
async def test_a_plugins_placeholder_becomes_its_text_and_all_tools_those_of_all() -> None:
    assert PLUGIN is not None
    assert await system("Use {{VCPAlpha}}.") == f"Use {plugin_text(PLUGIN)}."
    assert await system("{{VCPAllTools}}") == f"{plugin_text(PLUGIN)}\n\n---\n\n{tool_text(BUILT_IN)}"
    assert await system("{{VCPSee}} {{VCPNobody}}") == f"{tool_text(BUILT_IN)} {{{{VCPNobody}}}}"


@pytest.mark.requirement("placeholder:plugin")
def test_a_built_in_tools_text_is_laid_out_as_a_plugins_with_an_example_that_runs() -> None:
    text = tool_text(BUILT_IN)
    assert text.startswith("- Look (Look) - 命令: N/A:\n    Looks.\n    Well.\n  调用示例:\n    <<<[TOOL_REQUEST]>>>\n")
    example = "\n".join(line.removeprefix("    ") for line in text.partition("调用示例:\n")[2].split("\n"))
    assert [(call["tool"], call["args"]) for call in parse_requests(example)] == [("Look", {"path": "(Where.)"})]


@pytest.mark.requirement("placeholder:values")
async def test_the_clock_and_static_values_are_filled() -> None:
    assert await system("{{Date}} {{Time}} {{Today}}") == "2026/1/5 09:05:07 星期一"
    assert await system("{{Weather}} {{{Weather}}}", {"Weather": "sunny"}) == "sunny {sunny}"
    assert await system("{{Weather}}") == "{{Weather}}"


@pytest.mark.requirement("placeholder:system-only", "s:S-23")
async def test_only_system_messages_are_filled_and_others_stay_the_same_objects() -> None:
    messages: list[Json] = [
        {"role": role, "content": "{{Date}} {{VCPAlpha}} {{W}}"} for role in ("user", "assistant", "tool")
    ]
    made = await filled(messages, texts({"W": "x"}), ME)
    assert made.messages is messages
    parts: list[Json] = [{"role": "system", "content": [{"type": "text", "text": "{{Date}}"}, {"type": "image_url"}]}]
    made = await filled(parts, texts(), ME)
    assert made.messages == [
        {"role": "system", "content": [{"type": "text", "text": "2026/1/5"}, {"type": "image_url"}]}
    ]


@pytest.mark.requirement("placeholder:async", "placeholder:async:text", "s:S-23", "s:S-21")
async def test_results_of_tasks_are_filled_for_their_caller_and_never_looked_at_again() -> None:
    inert = "Ready: {\u200b{Date}} <<<\u200b[TOOL_REQUEST]>>>"
    for braces in (2, 3, 4):
        text = "{" * braces + "VCP_ASYNC_RESULT::Alpha::1" + "}" * braces
        assert await system(f"It: {text}", None, TASK) == f"It: {inert}"
        assert await system(text, None, replace(TASK, caller="another")) == text
    placeholder = "{{VCP_ASYNC_RESULT::Alpha::1}}"
    messages: list[Json] = [{"role": role, "content": placeholder} for role in ("assistant", "user", "tool")]
    made = await filled(messages, texts(None, TASK), ME)
    assert [message["content"] for message in made.messages if isinstance(message, dict)] == [
        inert, placeholder, placeholder,
    ]  # fmt: skip
    running = replace(TASK, state=TaskState.WAITING, result=None)
    assert "[Task Alpha (ID: 1) is still running" in await system(placeholder, None, running)
    assert await system(placeholder, None, replace(TASK, result={"a": 1})) == '{"a": 1}'


@pytest.mark.requirement("s:S-23")
async def test_inserted_text_is_never_scanned_again() -> None:
    assert (
        await system("{{A}}{{B}}", {"A": "{{B}} {{A}} $& {{Date}}", "B": "b"})
        == "{\u200b{B}} {\u200b{A}} $& {\u200b{Date}}b"
    )
    many = "{{Date}}" * 10_000
    assert await system(many) == "2026/1/5" * 10_000


@pytest.mark.requirement("chat:placeholders")
async def test_a_chat_request_is_filled_before_it_goes_upstream(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        await one.streamed(system="Today is {{Date}}. {{VCPAllTools}} {{VCPLS}}")
        sent = one.upstream.bodies[0]["messages"][0]["content"]
        assert re.match(r"Today is \d{4}/", sent)
        assert "- LS (LS) - 命令: N/A:" in sent
        assert "- SciCalculator" in sent or "科学计算" in sent
        run = await one.chat.complete(asked("Hi", system="{{Date}}"), caller=ME)
        record = one.chat.record(run.id, ME)
        assert record is not None
        assert record["rounds"] == [{"sent": one.upstream.bodies[1]}]
        assert one.chat.record(run.id, "another") is None
