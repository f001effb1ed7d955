"""What the client matrix needs: a server of its own process, a provider that fails in round two, and the clients."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.clients.install import HERE, copy_node_script, install_python_client
from tests.gateway.upstream import DONE, Provider, Script, chunk, completion, provider, says
from tests.plugins.folders import make_plugin
from tests.waiting import wait_until

DRIVERS: Final = HERE / "drivers"
CLIENTS: Final = {
    "openai-python": "openai_python.py",
    "openai-node": "openai_node.mjs",
    "llm": "llm_command.py",
    "langchain": "langchain_openai_chat.py",
    "pydantic-ai": "pydantic_ai_agent.py",
    "ai-sdk": "ai_sdk.mjs",
    "litellm": "litellm_completion.py",
}
ANSWER: Final = "It is counted."
USAGE: Final = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
FOREVER: Final = 1000
PATIENCE_S: Final = 300
TALLY: Final = """import json, sys
case = json.loads(sys.stdin.read())["case"]
with open({effects!r}, "a") as file:
    file.write(case + "\\n")
print(json.dumps({{"status": "success", "result": "Counted."}}))
"""


@dataclass(frozen=True)
class Case:
    """One chat whose provider fails ``times`` times in round two."""

    name: str  # what the client says, and what the tool writes down
    fault: str
    times: int
    is_streamed: bool


@dataclass
class RoundTwoFaults:
    """A model that asks for the tool in round one and fails in round two, as the case says."""

    cases: dict[str, Case] = field(default_factory=dict)
    rounds: Counter[tuple[str, int]] = field(default_factory=Counter)  # requests of a case by round

    def answer(self, body: dict[str, Any]) -> Script:
        case = self.cases[_user_text(body)]
        number = 2 if any(message["role"] == "tool" for message in body["messages"]) else 1
        self.rounds[case.name, number] += 1
        is_streamed = bool(body.get("stream"))
        if number == 1:
            return _asks_for_tool(case, is_streamed=is_streamed)
        if self.rounds[case.name, 2] <= case.times:
            return fails(case.fault, is_streamed=is_streamed)
        has_usage = not is_streamed or (body.get("stream_options") or {}).get("include_usage")
        return says(ANSWER, stream=is_streamed, usage=USAGE if has_usage else None)


def _user_text(body: dict[str, Any]) -> str:
    content = next(message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return text.strip()


def _asks_for_tool(case: Case, *, is_streamed: bool) -> Script:
    function = {"name": "Tally", "arguments": json.dumps({"case": case.name})}
    call = {"id": "call_1", "type": "function", "function": function}
    if is_streamed:
        first = chunk({"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]})
        return Script([first, chunk({}, "tool_calls"), DONE])
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return Script([completion(message, "tool_calls", USAGE)], kind="application/json")


def fails(fault: str, *, is_streamed: bool) -> Script:
    """Return an error status, a connection that closes without an answer, or one that closes in the middle of it."""
    if fault == "closed":
        return Script(then="drop")
    if fault == "cut":
        whole = says(ANSWER, stream=is_streamed)
        return Script([whole.pieces[0][:40]], kind=whole.kind, then="cut")
    error = {"error": {"message": f"The provider says {fault}.", "type": "server_error", "code": None}}
    return Script([json.dumps(error).encode()], status=int(fault), kind="application/json")


@dataclass
class Toolyard:
    """``toolyard serve`` as a person starts it, with the tool Tally and a log that can be read."""

    url: str
    home: Path
    effects: Path
    log: Path
    faults: RoundTwoFaults

    @property
    def key(self) -> str:
        return (self.home / "key").read_text().strip()

    def count_effects(self, case: Case) -> int:
        written = self.effects.read_text().splitlines() if self.effects.exists() else []
        return written.count(case.name)

    async def get(self, path: str) -> dict[str, Any]:
        """Return what the server tells at ``path``, with the id of this request as ``request_id``."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with aiohttp.ClientSession(headers=headers) as client, client.get(self.url + path) as response:
            assert response.ok, await response.text()
            return {**await response.json(), "request_id": response.headers["X-Request-Id"]}

    async def chat_statuses(self) -> list[int]:
        """Return the status of every chat request that was answered so far."""
        request = (await self.get("/v1/session"))["request_id"]  # the log has what came before it first
        await wait_until(lambda: request in self.log.read_text(), within_s=PATIENCE_S)
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line["status"] for line in lines if line.get("path") == "/v1/chat/completions"]


@asynccontextmanager
async def serving_tally(folder: Path) -> AsyncIterator[Toolyard]:
    faults, effects = RoundTwoFaults(), folder / "effects" / "tally.txt"
    for place in (folder / "project", effects.parent):
        place.mkdir()
    plugin = make_plugin(folder / "given", "Tally", permissions={"write": [str(effects.parent)]})
    (plugin / "main.py").write_text(TALLY.format(effects=str(effects)))
    async with provider(faults.answer) as upstream:
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "toolyard", "serve", "--port", "0", "--home", str(folder / "home")),
                *("--project", str(folder / "project"), "--plugins", str(folder / "given"), "--trust"),
                env={**os.environ, **_settings(upstream)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                line = (await process.stdout.readline()).decode()
            yield Toolyard(line.split()[-1], folder / "home", effects, folder / "log", faults)
        finally:
            process.kill()
            await process.communicate()


def _settings(upstream: Provider) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": upstream.url,
        "OPENAI_API_KEY": "sk-of-the-provider",
        "TOOLYARD_APPROVAL_MODE": "auto",
    }


@dataclass
class Client:
    """A client in a process of its own, which asks one chat after the other."""

    process: asyncio.subprocess.Process

    async def ask(self, server: Toolyard, case: Case) -> dict[str, str]:
        """Return what the user of the client sees: ``text``, or ``error`` and ``message``."""
        asked = {"url": f"{server.url}/v1", "key": server.key, "text": case.name, "is_streamed": case.is_streamed}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            line = await self.process.stdout.readline()
        assert line, "the client has ended"
        answer: dict[str, str] = json.loads(line)
        return answer


@asynccontextmanager
async def starting_client(name: str, log: Path) -> AsyncIterator[Client]:
    """Start a client with its default settings; what it prints goes to ``log``."""
    script = CLIENTS[name]
    command = _node_command(script) if script.endswith(".mjs") else (install_python_client(name), DRIVERS / script)
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={"PATH": os.environ["PATH"], "HOME": str(log.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=2**20,
        )
    try:
        yield Client(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _node_command(script: str) -> tuple[str, Path]:
    copy_node_script(DRIVERS / "driver.mjs")
    return "node", copy_node_script(DRIVERS / script)
