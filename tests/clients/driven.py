"""The clients of the matrix: programs that nobody here wrote, each behind a driver in a process of its own."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.clients.harness import DRIVERS, PATIENCE_S, Toolyard
from tests.clients.install import copy_node_script, install_node_program, install_python_client
from tests.clients.model import Case
from tests.gateway.native_providers import PATHS, Protocol

RECALL: Final = ("Recall", {"about": "colour"})
RECALLED: Final = "violet for colour"


@dataclass(frozen=True)
class Driven:
    """A client: what it speaks, where its driver and its packages are, and what it can do."""

    script: str
    protocol: Protocol = "chat"
    packages: str = ""  # the environment of ``install.PYTHON_CLIENTS``, or the tests' own
    program: str = ""  # of ``install.NODE_PROGRAMS``, which the driver starts
    root: str = "/v1"  # what its base URL ends with
    is_always_streamed: bool = False
    kept_reasoning: int = 2  # rounds whose reasoning is kept, by it or, beside our tools, by the server
    status: int = 200  # of a request that is answered well
    decides: bool = False  # it can be asked whether a call of the server may run
    own_call: tuple[str, Mapping[str, Any]] | None = RECALL  # of a tool that it runs itself, which says ``RECALLED``

    @property
    def path(self) -> str:
        """Where it sends its chats to."""
        return PATHS[self.protocol]


CODEX: Final = Driven(
    "codex_exec.py",
    "responses",
    program="codex",
    is_always_streamed=True,
    own_call=("exec_command", {"cmd": f"echo {RECALLED}"}),
)
CLIENTS: Final = {
    "openai-python": Driven("openai_python.py", own_call=None),
    "openai-node": Driven("openai_node.mjs", own_call=None),
    "llm": Driven("llm_command.py", packages="llm", own_call=None),
    "langchain": Driven("langchain_openai_chat.py", packages="langchain", own_call=None),
    "pydantic-ai": Driven("pydantic_ai_agent.py", packages="pydantic-ai", own_call=None),
    "ai-sdk": Driven("ai_sdk.mjs", own_call=None),
    "litellm": Driven("litellm_completion.py", packages="litellm", own_call=None),
    "openai-python-responses": Driven("openai_python_responses.py", "responses", decides=True),
    "openai-node-responses": Driven("openai_node_responses.mjs", "responses", decides=True),
    "openai-agents": Driven("openai_agents_runner.py", "responses", "openai-agents", decides=True),
    "pydantic-ai-responses": Driven("pydantic_ai_responses.py", "responses", "pydantic-ai", kept_reasoning=1),
    "langchain-responses": Driven("langchain_responses_chat.py", "responses", "langchain", decides=True),
    "ai-sdk-openai": Driven("ai_sdk_openai.mjs", "responses", decides=True),
    "codex": CODEX,
    "codex-socket": replace(CODEX, script="codex_exec_socket.py", status=101),
    "anthropic-python": Driven("anthropic_python.py", "messages", "anthropic", root=""),
    "anthropic-node": Driven("anthropic_node.mjs", "messages", root=""),
    "pydantic-ai-anthropic": Driven("pydantic_ai_anthropic.py", "messages", "pydantic-ai", root=""),
    "langchain-anthropic": Driven("langchain_anthropic_chat.py", "messages", "langchain", root=""),
    "ai-sdk-anthropic": Driven("ai_sdk_anthropic.mjs", "messages"),
    "claude-code": Driven(
        "claude_print.py",
        "messages",
        program="claude-code",
        root="",
        is_always_streamed=True,
        own_call=("Bash", {"command": f"echo {RECALLED}", "description": "Say what it recalls"}),
    ),
}
WAYS: Final = [
    (name, way) for name, one in CLIENTS.items() for way in (False, True) if way or not one.is_always_streamed
]


@dataclass
class Client:
    """A client in a process of its own, which asks one chat after the other."""

    name: str
    process: asyncio.subprocess.Process
    about: Driven = field(init=False)

    def __post_init__(self) -> None:
        self.about = CLIENTS[self.name]

    async def ask(self, server: Toolyard, case: Case, *, url: str = "") -> dict[str, str]:
        """Return what the user of the client sees: ``text``, or ``error`` and ``message``."""
        asked = {
            "url": (url or server.url) + self.about.root,
            "key": server.key,
            "text": case.name,
            "is_streamed": case.is_streamed,
            "has_tool": case.own_call is not None,
            "is_allowed": case.is_allowed,
        }
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
    about = CLIENTS[name]
    environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    if about.program:
        environment["PROGRAM"] = str(install_node_program(about.program))
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *_make_command(about),
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=2**20,
        )
    try:
        yield Client(name, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _make_command(about: Driven) -> tuple[str | Path, Path]:
    if about.script.endswith(".mjs"):
        copy_node_script(DRIVERS / "driver.mjs")
        return "node", copy_node_script(DRIVERS / about.script)
    python = install_python_client(about.packages) if about.packages else Path(sys.executable)
    return python, DRIVERS / about.script
