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

from tests.clients.install import install_node_clients, install_python_client
from tests.gateway.upstream import DONE, Provider, Script, chunk, completion, provider, says
from tests.web.server_process import ServerProcess, start_server

PAGES: Final = Path(__file__).parents[2] / "docs/clients"
SOAK: Final = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
LISTED: Final = "> ✓ LS: Listed 2 entries in '.'."
PLAIN: Final = "I have no tools."
PATIENCE_S: Final = 180
ASK_PLAIN: Final = """
hello = [{"role": "user", "content": "Hello."}]
print(plain.chat.completions.create(model="scripted", messages=hello).choices[0].message.content)
"""


def answer(body: dict[str, Any]) -> Script:
    """A model that lists the project when it is offered a tool for that, and repeats what the tool said."""
    is_streamed, last = bool(body.get("stream")), body["messages"][-1]
    if last["role"] == "tool":
        return says(f"The tool said: {json.loads(last['content'])['text']}", stream=is_streamed)
    if not any(tool["function"]["name"] == "LS" for tool in body.get("tools", ())):
        return says(PLAIN, stream=is_streamed)
    call = {"id": "call_1", "type": "function", "function": {"name": "LS", "arguments": '{"path": "."}'}}
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
        first, off, own = read_blocks("openai-sdk", "python", server)
        printed = await run_program(server, sys.executable, "-", given=first + off + ASK_PLAIN + own)
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
        script = install_node_clients() / "page.mjs"
        script.write_text(read_blocks("openai-sdk", "js", server)[0], "utf-8")
        assert LISTED in await run_program(server, "node", script, given="")


@pytest.mark.requirement("clients:pages")
@pytest.mark.parametrize("page", sorted(page.stem for page in PAGES.glob("*.md") if "README" not in page.stem))
def test_each_page_says_how_to_try_a_tool_and_how_to_switch_the_tools_off(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text("utf-8")
    assert re.search(r"`(> )?✓ (LS|SciCalculator): |gets `83810205` from the tool|从工具得到 `83810205`", text)
    english = r"switch(es)? (them|Toolyard's) off|Toolyard's are off|takes the tools away"
    chinese = r"关闭(它们|工具| Toolyard 的工具)|Toolyard 的(工具)?已关闭|移除这些工具"
    assert re.search(chinese if page.endswith(".zh-CN") else english, text, re.IGNORECASE)
