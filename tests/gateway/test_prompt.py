"""What placeholders become on their way to the model."""

import re
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.gateway.serving import ME, chat_body, gateway
from tests.gateway.upstream import replies
from tests.plugins.folders import manifest_text
from toolyard.gateway.chat_ports import PromptSources
from toolyard.gateway.chat_prompt import MAX_GROWTH, fill_prompt
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.tool import ToolSpec
from toolyard.protocol.tool_text import write_plugin, write_tool

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


def texts(static: Mapping[str, str] | None = None, *tasks: Task) -> PromptSources:
    async def task(plugin: str, task_id: str, caller: str) -> Task | None:
        return next((one for one in tasks if (one.plugin, one.task_id, one.caller) == (plugin, task_id, caller)), None)

    assert PLUGIN is not None
    specs = [tool_spec(PLUGIN), BUILT_IN]
    return PromptSources(
        specs=lambda: specs,
        version=lambda: 0,
        static=lambda: static or {},
        task=task,
        now=lambda: NOW,
    )


async def system(text: str, static: Mapping[str, str] | None = None, *tasks: Task) -> str:
    made = await fill_prompt([{"role": "system", "content": text}], texts(static, *tasks), ME)
    message = made.messages[0]
    assert isinstance(message, dict)
    return str(message["content"])


@pytest.mark.requirement("placeholder:plugin", "placeholder:plugin-text")
async def test_a_plugins_placeholder_becomes_its_text_and_all_tools_those_of_all() -> None:
    assert PLUGIN is not None
    assert await system("Use {{VCPAlpha}}.") == f"Use {write_plugin(PLUGIN)}."
    assert await system("{{VCPAllTools}}") == f"{write_plugin(PLUGIN)}\n\n---\n\n{write_tool(BUILT_IN)}"
    assert await system("{{VCPSee}} {{VCPNobody}}") == f"{write_tool(BUILT_IN)} {{{{VCPNobody}}}}"


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
    made = await fill_prompt(messages, texts({"W": "x"}), ME)
    assert made.messages is messages
    parts: list[Json] = [{"role": "system", "content": [{"type": "text", "text": "{{Date}}"}, {"type": "image_url"}]}]
    made = await fill_prompt(parts, texts(), ME)
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
    made = await fill_prompt(messages, texts(None, TASK), ME)
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


@pytest.mark.requirement("placeholder:once")
async def test_a_listing_stands_once_in_a_request_and_then_nothing() -> None:
    assert PLUGIN is not None
    texts_ = texts({"Weather": "sunny"})
    messages: list[Json] = [{"role": "system", "content": f"{{{{VCP{name}}}}}" * 2} for name in ("See", "Alpha", "See")]
    made = await fill_prompt([*messages, {"role": "system", "content": "{{Weather}}{{Weather}}"}], texts_, ME)
    assert [message["content"] for message in made.messages if isinstance(message, dict)] == [
        write_tool(BUILT_IN), write_plugin(PLUGIN), "", "sunnysunny",
    ]  # fmt: skip
    assert made.lists_tools
    assert not (await fill_prompt([{"role": "system", "content": "{{Weather}} {{VCPNobody}}"}], texts_, ME)).lists_tools


@pytest.mark.requirement("placeholder:once")
async def test_a_prompt_full_of_listings_takes_neither_memory_nor_time() -> None:
    tracemalloc.start()
    made = await system("{{VCPAllTools}}" * (320 * 1024 // 15))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made == await system("{{VCPAllTools}}")
    assert peak < 16 * 2**20


@pytest.mark.requirement("placeholder:budget")
async def test_a_prompt_that_would_grow_by_more_than_4_mib_is_refused() -> None:
    value = {"Big": "汉" * 2**18}
    growth = 3 * 2**18 - len("{{Big}}")
    fits = MAX_GROWTH // growth
    assert len(await system("{{Big}}" * fits, value)) == fits * 2**18
    with pytest.raises(ChatFailed, match="more than 4 MiB: use fewer") as refused:
        await system("{{Big}}" * (fits + 1), value)
    assert (refused.value.fault.status, refused.value.fault.code) == (400, "prompt_too_long")
    assert len(await system("{{Date}}" * 600_000)) == 8 * 600_000, "what does not grow is not refused"


@pytest.mark.requirement("chat:placeholders")
async def test_a_chat_request_is_filled_before_it_goes_upstream(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        await one.stream(system="Today is {{Date}}. {{VCPAllTools}} {{VCPLS}}")
        sent = one.upstream.bodies[0]["messages"][0]["content"]
        assert re.match(r"Today is \d{4}/", sent)
        assert sent.count("- LS: Lists the folder at path") == 2
        assert "- 科学计算器 SciCalculator (SciCalculator) - 命令: SciCalculatorRequest:" in sent
        run = await one.chat.complete(ClientRequest(chat_body("Hi", system="{{Date}}"), caller=ME))
        record = one.chat.record(run.id, ME)
        assert record is not None
        assert record["rounds"] == [{"sent": one.upstream.bodies[1]}]
        assert one.chat.record(run.id, "another") is None


def own(prompts: Mapping[str, str], unfilled: list[str] | None = None) -> PromptSources:
    return replace(
        texts({"W": "{{team}}"}), own=lambda: prompts, report_unfilled=(unfilled if unfilled is not None else []).extend
    )


async def fill_own(text: str, prompts: Mapping[str, str], unfilled: list[str] | None = None) -> str:
    made = await fill_prompt([{"role": "system", "content": text}], own(prompts, unfilled), ME)
    message = made.messages[0]
    assert isinstance(message, dict)
    return str(message["content"])


@pytest.mark.requirement("prompt:nesting")
async def test_prompts_of_the_owner_are_filled_with_what_they_name() -> None:
    prompts = {"team": "We: {{who}}, {{Date}}. {{W}}", "who": "{{VCPSee}} {{nobody}}", "Date": "mine"}
    filled = await fill_own("{{team}} {{Date}}", prompts)
    assert filled == f"We: {write_tool(BUILT_IN)} {{{{nobody}}}}, 2026/1/5. {{\u200b{{team}}}} 2026/1/5"
    for role in ("user", "assistant"):
        messages: list[Json] = [{"role": role, "content": "{{team}}"}]
        assert (await fill_prompt(messages, own(prompts), ME)).messages is messages


@pytest.mark.requirement("prompt:nesting", "placeholder:budget")
async def test_prompts_that_contain_themselves_end_and_those_that_explode_are_refused() -> None:
    assert await fill_own("{{a}}", {"a": "a {{b}}", "b": "b {{a}} {{b}}"}) == "a b {{a}} {{b}}"
    doubling = {f"p{number}": f"{{{{p{number + 1}}}}}" * 2 for number in range(15)} | {"p15": "x" * 1000}
    for prompts in (doubling, {f"p{number}": f"{{{{p{number + 1}}}}}" for number in range(40)}):
        with pytest.raises(ChatFailed, match="longer by more than"):
            await fill_own("{{p0}}", prompts)


@pytest.mark.requirement("prompt:unfilled")
async def test_names_that_nothing_fills_are_reported_and_stay() -> None:
    unfilled: list[str] = []
    text = "{{Nova}} {{Nova}} {{Date}} {{mermaid:x}} {{ template }} {{agent:小克}} {{VCP_ASYNC_RESULT::A::1}}"
    filled = await fill_own(text, {}, unfilled)
    assert filled == text.replace("{{Date}}", "2026/1/5")
    assert unfilled == ["Nova", "agent:小克", "VCP_ASYNC_RESULT::A::1"]
