"""The pages about clients: their programs run as they are written, against a server as a person starts it."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.install import install_node_clients, install_node_program, install_python_client
from tests.gateway.upstream import DONE, Provider, Script, chunk, completion, provider, says
from tests.web.server_process import ServerProcess, start_server

PAGES: Final = Path(__file__).parents[2] / "docs/clients"
SOAK: Final = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
LISTED: Final = "> ✓ LS: Listed 2 entries in '.'."
PLAIN: Final = "I have no tools."
CALCULATED: Final = "83810205"
LISTS: Final = {"name": "LS", "arguments": '{"path": "."}'}
CALCULATES: Final = {"name": "SciCalculator", "arguments": '{"expression": "12345 * 6789"}'}
CREATES: Final = {"name": "Write", "arguments": '{"path": "hello.txt", "content": "Hello."}'}
PATIENCE_S: Final = 180
ASK_PLAIN: Final = """
hello = [{"role": "user", "content": "Hello."}]
print(plain.chat.completions.create(model="scripted", messages=hello).choices[0].message.content)
"""


def answer(body: dict[str, Any]) -> Script:
    """A model that lists the project, calculates or writes when it is offered a tool for that, and repeats what it
    said."""
    is_streamed, last = bool(body.get("stream")), body["messages"][-1]
    if last["role"] == "tool":
        return says(f"The tool said: {last['content'].split(chr(10))[0]}", stream=is_streamed)
    said = json.dumps(body["messages"])
    wanted = CALCULATES if "12345" in said else CREATES if "hello.txt" in said else LISTS
    if not any(tool["function"]["name"] == wanted["name"] for tool in body.get("tools", ())):
        return says(PLAIN, stream=is_streamed)
    call = {"id": "call_1", "type": "function", "function": wanted}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if is_streamed:
        first = chunk({**message, "tool_calls": [{"index": 0, **call}]})
        return Script([first, chunk({}, "tool_calls"), DONE])
    return Script([completion(message, "tool_calls")], kind="application/json")


@asynccontextmanager
async def serving(place: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ServerProcess, Provider]]:
    (place / "project/src").mkdir(parents=True)
    (place / "project/README.md").write_text("# My project\n")
    async with provider(answer) as upstream:
        monkeypatch.setenv("OPENAI_BASE_URL", upstream.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider")
        async with start_server(place) as server:
            yield server, upstream


def read_blocks(page: str, language: str, server: ServerProcess) -> list[str]:
    """The code of a page, with the address and the key of ``server`` and a model of its provider."""
    text = (PAGES / f"{page}.md").read_text("utf-8").replace("http://127.0.0.1:6005", server.url)
    text = re.sub(r'(?<=")(Bearer )?KEY(?=")', rf"\g<1>{server.key}", text).replace('"NAME', '"scripted')
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


async def run_program(server: ServerProcess, *command: str | Path, given: str) -> str:
    """Return what a program prints that is given on stdin; the folder of ``toolyard`` is on its PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=server.project,
        env={**os.environ, "PATH": path, "TOOLYARD_HOME": str(server.home)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate(given.encode())
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.requirement("clients:pages")
async def test_the_programs_of_the_page_about_the_openai_sdk_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, upstream):
        first, responses, off, own = read_blocks("openai-sdk", "python", server)
        printed = await run_program(server, sys.executable, "-", given=first + responses + off + ASK_PLAIN + own)
        assert re.search(r"^\[.*'mcp_call'.*'message'\] ", printed, re.MULTILINE)
        assert LISTED in printed
        assert printed.endswith(f"{PLAIN}\nThe tool said: Listed 2 entries in '.'.\n")
        assert [bool(body.get("tools")) for body in upstream.bodies] == [False, False, True, True]


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
async def test_the_commands_of_the_page_about_curl_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, _):
        *commands, stream = read_blocks("curl", "text", server)
        assert "curl -N" in stream  # has no end
        key, *rest = [command.replace("curl ", "curl --silent --show-error ") for command in commands]
        printed = [await run_program(server, "bash", "-e", given=key + command) for command in rest]
        asked, read, requested = [json.loads(text) for text in printed]
        assert LISTED in asked["choices"][0]["message"]["content"]
        assert read["data"]["content"] == "1\t# My project"
        assert requested["details"]["message"] == "Listed 3 entries in '.'."  # request.txt too


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_programs_for_langchain_and_node_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, _):
        chat, _, plain = read_blocks("langchain", "python", server)
        shown = 'print(plain.invoke("Hello.").content)\n'
        printed = await run_program(server, install_python_client("langchain"), "-", given=chat + plain + shown)
        assert LISTED in printed
        assert printed.endswith(f"{PLAIN}\n")
        assert LISTED in await run_script(server, *read_blocks("openai-sdk", "js", server))


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_programs_for_the_agents_sdk_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, upstream):
        first, both, asked = read_blocks("openai-agents", "python", server)
        python = await asyncio.to_thread(install_python_client, "openai-agents")
        printed = await run_program(server, python, "-", given=first + both)
        assert printed.startswith('LS {"path":"."}\nThe tool said: Listed 2 entries in')
        assert {"LS", "favourite_colour"} <= {tool["function"]["name"] for tool in upstream.bodies[-1]["tools"]}
        printed = await run_program(server, python, "-", given=first + asked)
        assert 'Write {"path":"hello.txt","content":"Hello."}\nThe tool said: ' in printed
        assert (server.project / "hello.txt").read_text() == "Hello."


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_programs_for_the_anthropic_sdk_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, _):
        first, asked, off = read_blocks("anthropic", "python", server)
        shown = "for one in (off, plain.messages.create(model='scripted', max_tokens=9, messages=hello)):\n"
        shown += "    print(one.content[0].text)\n"
        python = await asyncio.to_thread(install_python_client, "anthropic")
        printed = await run_program(server, python, "-", given=first + asked + off + shown)
        assert printed.startswith(LISTED)
        assert "['text', 'mcp_tool_use', 'mcp_tool_result', 'text']" in printed
        assert printed.endswith(f"{PLAIN}\n{PLAIN}\n")
        assert LISTED in await run_script(server, *read_blocks("anthropic", "js", server))


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_programs_for_the_ai_sdk_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, upstream):
        responses, messages, both, asked = read_blocks("ai-sdk", "js", server)
        assert (await run_script(server, responses)).startswith("mcp.LS { path: '.' }")
        assert LISTED in await run_script(server, messages)
        assert "The tool said: Listed 2 entries" in await run_script(server, both)
        assert {"LS", "favouriteColour"} <= {tool["function"]["name"] for tool in upstream.bodies[-1]["tools"]}
        printed = await run_script(server, asked)
        assert printed.startswith("mcp.Write { path: 'hello.txt', content: 'Hello.' }\nThe tool said: ")
        assert (server.project / "hello.txt").read_text() == "Hello."


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_commands_for_codex_run_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, monkeypatch) as (server, upstream):
        (settings,) = read_blocks("codex", "toml", server)
        key, stdio, http, ask = read_blocks("codex", "text", server)
        bin_folder = (await asyncio.to_thread(install_node_program, "codex")).parent
        monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        config = tmp_path / "user/.codex/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(settings, "utf-8")
        asked = key + ask.replace("codex exec", "codex exec --skip-git-repo-check")
        assert CALCULATED in await run_program(server, "bash", "-e", given=asked)
        offered = {tool["function"]["name"] for tool in upstream.bodies[-1]["tools"]}
        assert {"SciCalculator", "exec_command"} <= offered
        off = asked.replace("codex exec", "codex exec -m scripted")
        assert PLAIN in await run_program(server, "bash", "-e", given=off)
        listed = await run_program(server, "bash", "-e", given=stdio + "codex mcp list\ncodex mcp remove toolyard\n")
        assert "--project /path/to/project mcp serve" in listed
        assert f"{server.url}/mcp" in await run_program(server, "bash", "-e", given=http + "codex mcp list\n")


@pytest.mark.requirement("clients:pages")
@pytest.mark.skipif(not SOAK, reason="installs clients from their registries: only in soak")
async def test_the_commands_for_claude_code_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (server, upstream):
        texts = read_blocks("claude-code", "text", server)
        variables, ask = next(one for one in texts if "ANTHROPIC_BASE_URL" in one), texts[-1]
        program = await asyncio.to_thread(install_node_program, "claude-code")
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        exports = "".join(line for line in variables.splitlines(keepends=True) if line.startswith("export"))
        asked = exports + re.sub("NAME", "scripted", ask)
        for how in ("", "export ENABLE_TOOL_SEARCH=false\n"):
            assert CALCULATED in await run_program(server, "bash", "-e", given=how + asked)
            offered = {tool["function"]["name"] for tool in upstream.bodies[-1]["tools"]}
            assert {"SciCalculator", "Bash"} <= offered
        header = 'export ANTHROPIC_CUSTOM_HEADERS="X-Toolyard-Offer: native"\n'
        plain = asked.replace("+tools", "")
        assert CALCULATED in await run_program(server, "bash", "-e", given=header + plain)
        assert PLAIN in await run_program(server, "bash", "-e", given=plain)


async def run_script(server: ServerProcess, code: str) -> str:
    """Return what a program prints that has the packages of ``package.json``."""
    script = await asyncio.to_thread(install_node_clients) / "page.mjs"
    script.write_text(code, "utf-8")
    return await run_program(server, "node", script, given="")


@pytest.mark.requirement("clients:pages")
@pytest.mark.parametrize("page", sorted(page.stem for page in PAGES.glob("*.md") if "README" not in page.stem))
def test_each_page_says_how_to_try_a_tool_and_how_to_switch_the_tools_off(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text("utf-8")
    assert re.search(r"`(> )?✓ (LS|SciCalculator): |gets `83810205` from the tool|从工具得到 `83810205`", text)
    english = r"switch(es)? (them|Toolyard's) off|Toolyard's are off|takes the tools away"
    chinese = r"关闭(它们|工具| Toolyard 的工具)|Toolyard 的(工具)?已关闭|移除这些工具"
    assert re.search(chinese if page.endswith(".zh-CN") else english, text, re.IGNORECASE)
