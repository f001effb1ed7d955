"""The tokens that a model pays for a result, in the three forms in which it reads one, through a real server."""

import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import orjson
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.serving import request
from tests.gateway.upstream import Provider, Script, completion, provider, says
from tests.plugins.folders import make_plugin
from tests.tokens import count_tokens
from toolyard.config import load_config
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.web.server.lifecycle import Server, ServerOptions

pytestmark = pytest.mark.requirement("results:tokens")

FORMS = ("native", "block", "mcp")
CODE = "def main():\n" + "".join(f"    result_{n} = compute(value_{n}, factor={n % 7})\n" for n in range(299))
WRITTEN = "def main():\n" + "".join(f"    result_{n} = compute(value_{n}, factor={n % 7})\n" for n in range(145))
FILES = {
    "app.py": CODE,
    **{
        f"src/part_{part}.py": "".join(f"def do_{n}():\n    # TODO: handle case {n} properly\n" for n in range(4))
        for part in range(5)
    },
    **{f"many/component_{n:02}.py": "x" * n * 37 for n in range(50)},
}
EDITS = [
    {"old_string": f"result_{n} = compute(value_{n}, factor={n % 7})", "new_string": f"total_{n} = add(value_{n})"}
    for n in range(10, 60, 10)
]
SAID = "It rains in Bergen, as on most days, and it will go on until tomorrow night."
ROWS = {"rows": [{"id": n, "name": f"Person {n}", "score": n * 1.5, "tags": ["a", "b"]} for n in range(30)], "all": 30}
ANSWERS = {
    "Says": {"status": "success", "result": SAID},
    "Rows": {"status": "success", "result": ROWS},
    "Fails": {"status": "error", "error": "The city is not known."},
}


@dataclass(frozen=True)
class Case:
    tool: str
    arguments: dict[str, Any]
    most: Callable[[Path], float]  # tokens; given the project
    has: str  # what a model needs of it


def _read_grep(project: Path) -> str:
    command = ["grep", "-rn", "TODO", "src"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True, timeout=60).stdout


def _list_names(project: Path) -> str:
    return "\n".join(sorted(f"many/{path.name}" for path in (project / "many").iterdir()))


COMPACT = orjson.dumps(ROWS).decode()
NEAR = {"path": "app.py", "old_string": "result_7 = computed(value_8)", "new_string": "x"}
CASES = {
    "a file of 2,000 tokens written": Case("Write", {"path": "new.py", "content": WRITTEN}, lambda _: 40, "new.py"),
    "one line edited": Case(
        "Edit", {"path": "app.py", "old_string": "value_7,", "new_string": "it,"}, lambda _: 45, "1 place"
    ),
    "five edits": Case("MultiEdit", {"path": "app.py", "edits": EDITS}, lambda _: 80, "5 edits"),
    "300 lines read": Case("Read", {"path": "app.py"}, lambda _: 1.18 * count_tokens(CODE), "\n300\t    result_298"),
    "20 hits": Case(
        "Grep", {"pattern": "TODO", "path": "src"}, lambda root: 1.12 * count_tokens(_read_grep(root)), "case 3"
    ),
    "a folder of 50": Case("LS", {"path": "many"}, lambda _: 500, "component_49.py\t1813"),
    "50 paths": Case(
        "Glob", {"pattern": "many/*"}, lambda root: 1.12 * count_tokens(_list_names(root)), "many/component_49.py"
    ),
    "a plugin's error": Case("Fails", {}, lambda _: 40, "EXECUTION_ERROR: The city is not known."),
    "a missing file": Case("Read", {"path": "src/none.py"}, lambda _: 60, "NOT_FOUND: 'src/none.py' does not exist."),
    "a missing argument": Case("Edit", {"path": "app.py"}, lambda _: 80, "'old_string'"),
    "a text that is not there": Case("Edit", NEAR, lambda _: 110, "INVALID_PARAM: old_string"),
    "a refused path": Case("Read", {"path": "../../etc/passwd"}, lambda _: 110, "ACCESS_DENIED: "),
    "a plugin's text": Case("Says", {}, lambda _: count_tokens(SAID) + 15, SAID),
    "a plugin's data": Case("Rows", {}, lambda _: 1.1 * count_tokens(COMPACT) + 20, COMPACT),
}


@pytest.mark.parametrize("form", FORMS)
async def test_what_a_model_reads_of_a_result_costs_hardly_more_than_it_says(tmp_path: Path, form: str) -> None:
    project = tmp_path / "project"
    async with scene(tmp_path) as (running, upstream, calls), connect(running) as client:
        for name, case in CASES.items():
            write_files(project)
            if form == "mcp":
                text = await read_by_mcp(client, case)
            else:
                text = await read_in_chat(running, upstream, calls, case, native=form == "native")
            assert case.has in text, name
            assert count_tokens(text) <= case.most(project), (name, text[:2000])
            assert not text.startswith("{") or name == "a plugin's data", "plain text"


@pytest.mark.requirement("results:language")
@pytest.mark.parametrize("native", [True, False])
async def test_in_a_chinese_conversation_a_result_is_chinese(tmp_path: Path, native: bool) -> None:
    write_files(tmp_path / "project")
    async with scene(tmp_path) as (running, upstream, calls):
        for case, said in (
            (CASES["a missing file"], "NOT_FOUND: “src/none.py”不存在。请检查路径，或用 LS 列出它所在的文件夹。"),
            (CASES["one line edited"], "已编辑“app.py”：替换了 1 处。"),
            (CASES["a plugin's text"], SAID),
        ):
            text = await read_in_chat(running, upstream, calls, case, native=native, question="请帮我看一下这个文件")
            assert text.endswith(said)


@asynccontextmanager
async def scene(place: Path) -> AsyncIterator[tuple[Server, Provider, list[Case]]]:
    """A server, its model, and the case that this asks for in a first round."""
    cases: list[Case] = []

    def answer(body: dict[str, Any]) -> Script:
        last = body["messages"][-1]
        if last["role"] == "tool" or last["content"].startswith(PAYLOAD):
            return says("Done.", stream=False)
        (case,) = cases
        if "tools" not in body:
            texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in case.arguments.items()}
            return says(request(case.tool, **texts), stream=False)
        function = {"name": case.tool, "arguments": json.dumps(case.arguments)}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return Script([completion(message, "tool_calls")], kind="application/json")

    (place / "project").mkdir(exist_ok=True)
    (place / "home").mkdir()
    for name, result in ANSWERS.items():
        made = make_plugin(place / "plugins", name)
        (made / "main.py").write_text(f"import json\nprint(json.dumps({result!r}))\n")
    async with provider(answer) as upstream:
        settings = f'upstream_url = "{upstream.url}"\nupstream_key = "sk"\napproval_mode = "auto"\n'
        (place / "home/config.toml").write_text(settings)
        config = load_config(place / "project", place / "home", plugin_folders=(place / "plugins",), trusts_given=True)
        running = Server(config, ServerOptions(port=0))
        await running.start()
        try:
            yield running, upstream, cases
        finally:
            await running.stop()


def write_files(project: Path) -> None:
    (project / "new.py").unlink(missing_ok=True)
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


async def read_in_chat(
    running: Server, upstream: Provider, calls: list[Case], case: Case, *, native: bool, question: str = "Go."
) -> str:
    calls[:] = [case]
    offer = {"offer": "native" if native else "text"}
    body = {"model": "m", "messages": [{"role": "user", "content": question}], "toolyard": offer}
    headers = {"Authorization": f"Bearer {running.key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{running.url}/v1/chat/completions", json=body) as response,
    ):
        assert response.status == 200, await response.text()
    return str(upstream.bodies[-1]["messages"][-1]["content"])


@asynccontextmanager
async def connect(running: Server) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {running.key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{running.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def read_by_mcp(client: Client, case: Case) -> str:
    result = await client.call_tool(case.tool, case.arguments)
    assert result.structured_content is None
    (content,) = result.content
    return str(getattr(content, "text", ""))
