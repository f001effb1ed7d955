"""What Claude Code does beside its turns: it counts tokens, and in auto mode lets its provider judge its own calls."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.clients.harness import Toolyard, serving_tally
from tests.clients.install import install_node_program
from tests.clients.model import ANSWER, Case
from tests.gateway.native_providers import Protocol

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
PATIENCE_S = 300
CREATES = "python3 -c \"open('made.txt', 'w')\""  # nothing that it takes for harmless by itself

pytestmark = pytest.mark.skipif(not SOAK, reason="installs Claude Code from its registry: only in soak")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home of the user, which is the folder that it works in, too."""
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


async def run_claude(server: Toolyard, folder: Path, *words: str) -> tuple[int | None, str]:
    """Run it in print mode; return its status and what it printed."""
    program = await asyncio.to_thread(install_node_program, "claude-code")
    process = await asyncio.create_subprocess_exec(
        str(program),
        *("--model", "scripted+tools", *words),
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": server.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


@pytest.mark.requirement("anthropic:claude-code")
@pytest.mark.parametrize("protocol", ["messages", "chat"])
async def test_its_auto_mode_gets_the_verdicts_of_a_provider_that_gives_any(
    tmp_path: Path, user: Path, protocol: Protocol
) -> None:
    async with serving_tally(tmp_path, protocol=protocol) as server:
        call = ("Bash", {"command": CREATES, "description": "Make a file"})
        case = server.model.cases["[auto]"] = Case("[auto]", is_streamed=True, own_call=call)
        status, printed = await run_claude(server, user, "-p", "[auto] Count.", "--permission-mode", "auto")
        assert ANSWER in printed
        assert (user / "made.txt").exists() == (status == 0) == (protocol == "messages")
        assert ("doesn't pass it through" in printed) == (protocol == "chat")
        assert server.count_effects(case) == 1


@pytest.mark.requirement("anthropic:tokens", "anthropic:claude-code")
async def test_its_list_of_what_fills_the_context_counts_tokens(tmp_path: Path, user: Path) -> None:
    async with serving_tally(tmp_path) as server:
        status, printed = await run_claude(server, user, "-p", "/context")
        assert (status, "System prompt" in printed) == (0, True)
        counted = await server.statuses("/v1/messages/count_tokens")
        assert counted
        assert {*counted} == {200}
