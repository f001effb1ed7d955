"""The walk of an owner who comes from VCPToolBox, typed from docs/vcp.md: from the folder to an entry in a diary.

With TOOLYARD_VCP_TREE the installation is a copy of that one as it is switched on there, in the soak; without, a small
one of ours.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.fakes import free_port
from tests.gateway.upstream import Provider, provider, replies
from tests.vcp.comparison import copy_whole_tree
from tests.vcp.tree import Tree
from toolyard.protocol.requests.scanner import format_request

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")
PAGE = (Path(__file__).parents[2] / "docs/vcp.md").read_text("utf-8")
WALK_S = 180.0
DIARY = """
const fs = require("fs"), path = require("path");
module.exports = {
  async processToolCall(args) {
    const folder = path.join(process.env.PROJECT_BASE_PATH, "dailynote", /\\[(.+)\\]/.exec(args.maid)[1]);
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, `${args.Date}.txt`), args.Content);
    return { message: "saved" };
  },
};
"""
NOTE = {"command": "create", "Date": "2026-01-02", "Content": "[10:00] the yard\nTag: a, b"}

pytestmark = pytest.mark.requirement("docs:vcp-walk")


def list_lines() -> list[str]:
    """The lines that the page says to type until the first chat has ended."""
    section = PAGE.split("## What is used in place")[0]
    return [line for block in re.findall(r"```text\n(.*?)```", section, re.S) for line in block.splitlines()]


def add_agent(root: Path, url: str) -> None:
    with (root / "config.env").open("a", encoding="utf-8") as settings:
        settings.write(
            f"\nAPI_URL={url}\nAPI_Key=sk-of-the-provider\nKey=the-key-of-clients\nVarTrade='keeper of days'\n"
        )
    (root / "Agent").mkdir(exist_ok=True)
    (root / "Agent/Nova.txt").write_text("You are the {{VarTrade}}.\n{{VCPDailyNote}}", encoding="utf-8")
    (root / "agent_map.json").write_text('{"Nova": "Nova.txt"}', encoding="utf-8")


async def type_line(line: str, environment: dict[str, str], place: Path) -> str:
    process = await asyncio.create_subprocess_shell(
        line,
        env=environment,
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, f"{line}: {printed.decode()}"
    return printed.decode()


async def walk(root: Path, place: Path, model: Provider) -> None:
    add_agent(root, model.url.removesuffix("/v1"))
    port = free_port()
    program = place / "bin/toolyard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m toolyard "$@"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(place), "LANG": "C.UTF-8"}
    check, allow, serve, chat, waiting, answer = (
        line.replace("/path/to/VCPToolBox", str(root)).replace("127.0.0.1:6005", f"127.0.0.1:{port}")
        for line in list_lines()
    )
    assert "DailyNote" in await type_line(check, environment, place)
    assert "Approved" in await type_line(f"{allow} --yes", environment, place)  # the answer to its question
    server = await asyncio.create_subprocess_exec(
        *shlex.split(serve), env={**environment, "TOOLYARD_PORT": str(port)}, cwd=place, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        while b"Open this link" not in await server.stdout.readline():
            pass
        reply = asyncio.create_task(
            type_line(chat.replace("KEY", "the-key-of-clients").replace("MODEL", "scripted"), environment, place)
        )
        while not (found := re.search(r"approval_\w+", await type_line(waiting, environment, place))):
            assert not reply.done(), reply.result()
        await type_line(answer.replace("ID", found[0]), environment, place)
        assert "It is noted." in await reply
    finally:
        server.terminate()
        await server.communicate()


@pytest.mark.parametrize("is_real", [False, True])
async def test_an_owner_comes_from_the_folder_to_a_diary_in_three_minutes(tmp_path: Path, is_real: bool) -> None:
    if is_real and (not TREE or not shutil.which("node")):
        pytest.skip("TOOLYARD_VCP_TREE names no VCPToolBox")
    if is_real:
        root = copy_whole_tree(Path(TREE), tmp_path / "VCP")
    else:
        tree = Tree(tmp_path, trusted=False)
        (tree.home / "config.toml").unlink()
        tree.add("DailyNote", DIARY)
        root = tree.root
    asks = format_request("DailyNote", NOTE, "[Walk]Nova")
    async with provider(replies(asks, "It is noted.")) as model, asyncio.timeout(WALK_S):
        await walk(root, tmp_path, model)
    prompts = [json.dumps(body["messages"], ensure_ascii=False) for body in model.bodies]
    assert "You are the keeper of days." in prompts[0]
    assert "{{" not in prompts[0]
    (note,) = (root / "dailynote/Walk").glob("2026*.txt")
    assert "the yard" in note.read_text(encoding="utf-8")
