"""The plugins of a real tree under load: each call is answered as when it is alone, where VCPToolBox loses some.

A call is lost when it is answered otherwise than alone: with another status, or without the plugin's own words because
the host gave up on it. The tree is given by TOOLYARD_VCP_TREE, with its npm packages installed; in the soak.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.vcp.calls import CALLS, EXCEPTIONS, NOT_LOADED
from tests.vcp.comparison import SETTINGS, copy_tree
from tests.vcp.test_bridge_real import CALLS as IN_PROCESS_CALLS
from tests.vcp.test_bridge_real import IN_PROCESS
from toolyard.config import load_config
from toolyard.yard.yard import Yard

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")
AT_ONCE: Final = (8, 32)
ROUNDS: Final = 2
_HOST: Final = Path(__file__).with_name("ask_vcptoolbox.js")
# The second of two at the same time may find what the first has made; records are there once VCPToolBox's process is.
_NOT_REPEATABLE: Final = frozenset({"ThoughtClusterManager", *EXCEPTIONS})
Ask = tuple[str, dict[str, Any]]
CALLED: Final[tuple[Ask, ...]] = (
    *((name, arguments) for name, arguments in CALLS.items() if name not in _NOT_REPEATABLE),
    *((name, arguments) for name, arguments in IN_PROCESS_CALLS if name not in NOT_LOADED),
)


def make_tree(tree: Path, copy: Path) -> Path:
    copy_tree(tree, copy)
    for manifest in copy.glob("Plugin/*/plugin-manifest.json.block"):
        if json.loads(manifest.read_text("utf-8-sig"))["pluginType"] in IN_PROCESS:
            manifest.rename(manifest.with_name("plugin-manifest.json"))
    (copy / "config.env").write_text(SETTINGS, encoding="utf-8")
    return copy


def ask_theirs(tree: Path, place: Path, calls: Sequence[Ask], at_once: int) -> list[str]:
    file = place / f"theirs-{at_once}.json"
    asked = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    done = subprocess.run(
        ["node", str(_HOST), str(tree), str(file), str(at_once)], input=asked, text=True, check=False, timeout=900,
        env={**environment, "HOME": str(place)},
    )  # fmt: skip
    if done.returncode:
        return ["its process ended"] * len(calls)
    return [_describe(one["status"], one.get("error", "")) for one in json.loads(file.read_text(encoding="utf-8"))]


async def ask_ours(tree: Path, place: Path, loads: Sequence[tuple[Sequence[Ask], int]]) -> list[list[str]]:
    (place / "home").mkdir()
    (place / "project").mkdir()
    lines = f"vcp = {json.dumps(str(tree))}\ntrusted_folders = [{json.dumps(str(tree / 'Plugin'))}]\n"
    (place / "home/config.toml").write_text(f"{lines}built_in = {{ FileOperator = false }}\n", encoding="utf-8")
    async with Yard(load_config(place / "project", place / "home")) as yard:

        async def ask(call: Ask, slots: asyncio.Semaphore) -> str:
            async with slots:
                envelope = (await yard.calls.settle(yard.calls.request(*call))).envelope
            reason = envelope.context.get("reason")
            return _describe("error" if envelope.error else "success", f"{reason}" if reason else "")

        found = []
        for calls, at_once in loads:
            slots = asyncio.Semaphore(at_once)
            found.append(await asyncio.gather(*(ask(call, slots) for call in calls)))
        return found


def _describe(status: str, error: str) -> str:
    """The status, and whether the host itself gave up on the call."""
    lost = ("timed out", "did not provide a valid", "exited with code", "timeout", "busy", "crashed", "cancelled")
    return f"{status}: {mark}" if (mark := next((one for one in lost if one in error), "")) else status


def list_lost(calls: Sequence[Ask], alone: Sequence[str], loaded: Sequence[str]) -> list[str]:
    expected = dict(zip(map(repr, calls), alone, strict=True))
    rounds = [call for _ in range(ROUNDS) for call in calls]
    return [
        f"{call[0]}: {expected[repr(call)]} alone, {found} under load"
        for call, found in zip(rounds, loaded, strict=True)
        if found != expected[repr(call)]
    ]


@pytest.mark.requirement("vcp:load")
@pytest.mark.skipif(
    not TREE or not shutil.which("node"), reason="TOOLYARD_VCP_TREE names no VCPToolBox to compare with"
)
async def test_no_call_is_lost_when_many_run_at_once(tmp_path: Path) -> None:
    theirs, ours = (make_tree(Path(TREE), tmp_path / name) for name in ("theirs", "ours"))
    rounds = [call for _ in range(ROUNDS) for call in CALLED]
    alone, *loaded = await ask_ours(ours, tmp_path, [(CALLED, 1), *((rounds, at_once) for at_once in AT_ONCE)])
    lost = {at_once: list_lost(CALLED, alone, found) for at_once, found in zip(AT_ONCE, loaded, strict=True)}
    there = ask_theirs(theirs, tmp_path, CALLED, 1)
    for at_once in AT_ONCE:
        found = list_lost(CALLED, there, ask_theirs(theirs, tmp_path, rounds, at_once))
        sys.stdout.write(f"{len(rounds)} calls, {at_once} at once: lost {lost[at_once]}, in VCPToolBox {found}\n")
    assert lost == {at_once: [] for at_once in AT_ONCE}
