"""The Chinese console: whatever happens, Toolyard's own sentences are Chinese.

All that users, models and plugins wrote here is Chinese too, so any English sentence on a page is Toolyard's own.
"""

import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.console.seeding import seed, task, write_plugin
from tests.console.talking import Talking, called, talking
from tests.console.test_everybody import OPEN
from tests.console.visit import Visit, visiting
from tests.mcp.test_client import TINY
from toolyard.message import Message
from toolyard.protocol.access import ApprovalState, DecisionReason
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.records.schedule_record import Schedule, ScheduleRun, ScheduleState
from toolyard.protocol.records.task_record import TaskState
from toolyard.protocol.requests.scanner import format_request
from toolyard.server_paths import CONSOLE_PAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
ENGLISH = (Path(__file__).parent / "english.js").read_text()
WORDS = {"displayName": "测试", "description": "测试插件。"}
PRINTS = "import json\nprint(json.dumps({}))\n"
PLUGINS = {
    "Failing": PRINTS.format('{"status": "error", "error": "出错了"}'),
    "Partial": "print('噪声')\n" + PRINTS.format('{"status": "partial", "result": "一部分"}'),
    "Empty": PRINTS.format('{"status": "success", "result": ""}'),
    "Crashing": "raise SystemExit(3)\n",
    "Silent": "",
    "Needing": "import nothing_like_it\n",
}
PLAN = "# 计划\n\n- 第一\n- 第二\n"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Write", {"path": "笔记/计划.md", "content": PLAN}),
    ("Write", {"path": "笔记/计划.md", "content": PLAN}),
    ("Write", {"path": "别的.md", "content": "一\n二\n一\n"}),
    ("Read", {"path": "笔记/计划.md", "limit": 2}),
    ("Read", {"path": "没有.md"}),
    ("Read", {"path": "../外面"}),
    ("Read", {"path": "笔记"}),
    ("Read", {"path": "笔记/计划.md", "start_line": 99}),
    ("Read", {"path1": "笔记/计划.md", "path2": "没有.md"}),
    ("Read", {}),
    ("Edit", {"path": "笔记/计划.md", "old_string": "第一", "new_string": "第一项"}),
    ("Edit", {"path": "笔记/计划.md", "old_string": "没有", "new_string": "有"}),
    ("Edit", {"path": "别的.md", "old_string": "一", "new_string": "三"}),
    ("Edit", {"path": "别的.md", "old_string": "二", "new_string": "四", "dry_run": True}),
    ("MultiEdit", {"path": "别的.md", "edits": [{"old_string": "二", "new_string": "四"}]}),
    ("NotebookEdit", {"path": "没有.ipynb", "new_source": "一"}),
    ("ApplyPatch", {"patch": "无"}),
    ("ApplyPatch", {"patch": "*** Begin Patch\n*** Add File: 新.txt\n+一\n*** End Patch"}),
    ("ApplyPatch", {"patch": "*** Begin Patch\n*** Update File: 新.txt\n@@\n-五\n+六\n*** End Patch"}),
    ("LS", {}),
    ("LS", {"limit": 1}),
    ("Glob", {"pattern": "**/*.md"}),
    ("Glob", {"pattern": "**/*.nothing"}),
    ("Grep", {"pattern": "第一"}),
    ("Grep", {"pattern": "nothing"}),
    ("FileOperator", {"command": "ListDirectory", "path": "."}),
    ("FileOperator", {"command": "ReadFile", "filePath": "新.txt"}),
    ("FileOperator", {"command": "CopyFile", "sourcePath": "新.txt", "destinationPath": "旧.txt"}),
    ("FileOperator", {"command": "DeleteFile", "filePath": "旧.txt"}),
    ("FileOperator", {"command": "没有"}),
    ("WebFetch", {"url": "http://127.0.0.1/"}),
    ("Nothing", {}),
    *((name, {}) for name in PLUGINS),
)


def ended_task(number: int, state: TaskState, message: Message) -> Any:
    return task(number, state, message=message)


def ended_schedule() -> Schedule:
    at = time.time() - 600
    text = Message("The server went down while it ran: what it had done by then is not known.")
    run = ScheduleRun(call_id="call_" + "0" * 32, state=ScheduleState.INTERRUPTED, text=text, at=at)
    return Schedule(
        id="schedule_" + "1" * 32, tool="LS", state=ScheduleState.INTERRUPTED, caller="key:owner", created=at,
        updated=at, scheduled_for="2026-01-05T09:30:00+08:00", at="2026-01-05-09:30", zone="Asia/Shanghai",
        approved="x", runs=(run,),
    )  # fmt: skip


def denied_approval() -> Approval:
    at = time.time() - 600
    return Approval(
        id="approval_" + "2" * 32, tool="Write", state=ApprovalState.DENIED, caller="key:owner", created=at, updated=at,
        call_id="call_" + "2" * 32, risk="write", origin="mcp", arguments={"path": "笔记.md"}, answered=at,
        because=DecisionReason.WRITE, answered_by="key:owner",
        note=Message("the user of the MCP client said no"),
    )  # fmt: skip


TASKS = (
    ended_task(1, TaskState.CANCELLED, Message("It was cancelled.")),
    ended_task(
        2,
        TaskState.INTERRUPTED,
        Message("Its process ended while the server was down: what it had done is not known."),
    ),
    ended_task(3, TaskState.FAILED, Message("Its process ended without a callback.")),
)


@dataclass
class Chinese:
    """A server on which a lot has happened."""

    talk: Talking
    tiny: Path

    async def paths(self) -> list[str]:
        host = self.talk.host
        calls = (await host.api("GET", "/v1/calls?limit=100"))["data"]
        assert len(calls) >= len(CALLS)
        panels = ("/tasks?task=", "/schedule?schedule=", "/approvals/")
        ids = (TASKS[0].id, ended_schedule().id, denied_approval().id)
        return [
            *CONSOLE_PAGES,
            *OPEN,
            *(f"/activity?call={one['id']}&part=output" for one in calls),
            *(f"/tools/{name}?tab={tab}" for name in ("Broken", "Failing") for tab in ("manifest", "config", "logs")),
            *(f"{panel}{id_}" for panel, id_ in zip(panels, ids, strict=True)),
            "/schedule?tab=missed",
            "/activity?state=error",
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def chinese(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chinese]:
    folder = tmp_path_factory.mktemp("chinese")
    given, tiny = folder / "given", folder / "tiny"
    tiny.mkdir()
    (tiny / "description.txt").write_text("重复一段文字。")
    for name, code in PLUGINS.items():
        write_plugin(given, name, code, **WORDS)
    (given / "Broken").mkdir()
    (given / "Broken" / "plugin-manifest.json").write_text('{"name": "Broken", "version" "1"}')
    async with talking(folder, "--plugins", str(given)) as talk:
        host = talk.host
        await seed(host.home, [*TASKS, ended_schedule().to_record(), denied_approval().to_record()])
        for tool, arguments in CALLS:
            await host.call(tool, **arguments)
        entry = {"command": sys.executable, "args": [str(tiny / "tiny.py"), str(tiny)]}
        (tiny / "tiny.py").write_text(TINY.read_text().replace("wait for it", "wait"))
        await host.api("POST", "/v1/mcp/servers", {"mcpServers": {"tiny": entry}})
        looked = await host.api("POST", "/v1/mcp/servers/tiny/look", {})
        await host.api("POST", "/v1/mcp/servers/tiny/allow", {"fingerprint": looked["fingerprint"]})
        yield Chinese(talk, tiny)


async def english(page: Page) -> list[str]:
    """English sentences on a page, once it has its words."""
    return [str(one) for one in await page.evaluate(ENGLISH)]


@pytest.mark.requirement("console:languages:sentences")
async def test_no_page_has_an_english_sentence_whatever_has_happened(browser: Browser, chinese: Chinese) -> None:
    async with visiting(browser, chinese.talk.host, lang="zh") as visit:
        visit.allowed += ["response 404", "status of 404"]  # the tool that there is not
        found: dict[str, list[str]] = {}
        for path in await chinese.paths():
            await visit.go(path)
            found[path] = await english(visit.page)
        assert {path: texts for path, texts in found.items() if texts} == {}
        assert visit.wrong() == []


@pytest.mark.requirement("console:languages:sentences", "messages:codes")
async def test_the_tool_page_says_what_a_call_did_or_why_it_failed_and_what_to_do(
    browser: Browser, chinese: Chinese
) -> None:
    host = chinese.talk.host
    calls = (await host.api("GET", "/v1/calls?limit=100"))["data"]
    async with visiting(browser, host, lang="zh") as visit:
        result = visit.page.locator(".tools-result")
        for call in (one for one in calls if one["tool"] != "Nothing"):
            await visit.go(f"/tools/{call['tool']}?call={call['id']}")
            if call["state"] != "error":
                await visit.page.get_by_role("button", name="运行", exact=True).click()
            await expect(result.locator(".chip").first).to_be_visible()
            assert (call["tool"], call["arguments"], await english(visit.page)) == (call["tool"], call["arguments"], [])
        missing = next(one for one in calls if one["tool"] == "Read" and one["arguments"] == {"path": "没有.md"})
        await visit.go(f"/tools/Read?call={missing['id']}")
        await expect(result).to_contain_text("“没有.md”不存在。")
        await expect(result).to_contain_text("请检查路径，或用 LS 列出它所在的文件夹。")
        assert visit.wrong() == []


@pytest.mark.requirement("console:languages:sentences", "mcp:pinned")
async def test_the_review_of_an_mcp_server_says_what_it_may_reach_and_what_has_changed(
    browser: Browser, chinese: Chinese
) -> None:
    more = [
        {"name": "new", "description": "新", "inputSchema": {"type": "object"}},
        {"name": "odd", "description": "怪", "inputSchema": {"type": "string"}},
        {"name": "echo", "description": "又一个", "inputSchema": {"type": "object"}},
    ]
    (chinese.tiny / "more_tools.json").write_text(json.dumps(more))
    host = chinese.talk.host
    await host.call("mcp__tiny__echo", text="一")
    async with visiting(browser, host, lang="zh") as visit:
        dialog = visit.page.get_by_role("dialog")
        await visit.go("/settings?tab=mcp")
        await visit.page.get_by_role("button", name="审查").click()
        await dialog.get_by_role("button", name="启动一次并查看").click()
        for text in ("它可以访问的范围", "新增 new", "odd：无法读取它的定义", "echo：已有同名的工具"):
            await expect(dialog).to_contain_text(text)
        assert [text for text in await english(visit.page) if not text.startswith("inputSchema.type: ")] == []
        assert visit.wrong() == []


async def tell(visit: Visit, text: str) -> None:
    """Say something in a new conversation."""
    await visit.go("/chat")
    box = visit.page.locator(".chat-compose textarea")
    await box.fill(text)
    await box.press("Enter")


@pytest.mark.requirement("console:languages:sentences", "messages:codes")
async def test_a_chat_says_why_calls_replies_and_tasks_failed(browser: Browser, chinese: Chinese) -> None:
    talk = chinese.talk
    talk.answers("读取", format_request("Read", {"path": "没有.md"}), "没有这个文件。")
    talk.answers("请求块", "<<<[TOOL_REQUEST]>>>\npath:「始」一「末」\n<<<[END_TOOL_REQUEST]>>>", "好的。")
    talk.answers("坏的", '{"think": "想", "content": 5}')
    talk.answers(
        "批量", format_request("Write", {"path1": "一", "content1": "一", "path2": "二", "content2": "二"}), "好的。"
    )
    async with visiting(browser, talk.host, lang="zh") as visit:
        page = visit.page
        for words, calls, shown in (
            ("读取", 1, "“没有.md”不存在。"),
            ("请求块", 1, "请求块没有 tool_name"),
            ("坏的", 0, "“content”必须是文本，而它是数字。"),
        ):
            await tell(visit, words)
            if calls:
                await page.locator(".chat-call-open").click()
            await expect(page.locator(".chat-scroll")).to_contain_text(shown)
            assert (words, await english(page)) == (words, [])
        lost = called("Timelapse", "{{VCP_ASYNC_RESULT::Timelapse::seed00002}}", summary="延时")
        await visit.go(await talk.keep(lost, asked="看看"))
        await expect(page.locator(".chat-task-result")).to_contain_text("无法确定已执行了哪些操作")
        assert await english(page) == []
        await tell(visit, "批量")
        await expect(page.locator(".apr-card")).to_contain_text("运行之前无法得知合在一起的改动")
        assert await english(page) == []
        assert visit.wrong() == []
