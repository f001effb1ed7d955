"""A call through the bridge to VCPToolBox's process, beside VCPToolBox's own ``processToolCall`` in the same run.

With ``TOOLYARD_VCP_TREE`` that of a real tree, with the plugins that it has switched on; without, of the small host of
the tests. VCPToolBox's own call is a call of a function: it crosses no process, and nothing of it is recorded.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.vcp.comparison import copy_tree
from tests.vcp.test_bridge_real import IN_PROCESS
from tests.vcp.tree import Tree
from toolyard.config import load_config
from toolyard.yard.yard import Yard

ROUNDS = 400
TURNS = 5
_OWN = Path(__file__).with_name("vcp_own.js")


@dataclass(frozen=True, slots=True)
class Subject:
    """A tree, and the call that is measured."""

    root: Path
    tool: str
    arguments: dict[str, str]


def main() -> None:
    if shutil.which("node") is None:
        print("the bridge is not measured: there is no node")
        return
    with tempfile.TemporaryDirectory() as folder:
        subject = _prepare(Path(folder))
        found = asyncio.run(_measure(subject, Path(folder)))
    print(f"\n{'a plugin of VCPToolBox’s process':<44} {'ms':>8} {'ratio':>7}")
    for name, own, ours in (
        ("its start", found["own start"], found["start"]),
        ("a call through the bridge", found["own"], found["bridge"]),
        ("a call with approval, deadline and journal", found["own"], found["settle"]),
    ):
        print(f"{name:<44} {ours:>8.3f} {ours / own:>7.2f}  beside its own {own:.3f}")


def _prepare(place: Path) -> Subject:
    real = os.environ.get("TOOLYARD_VCP_TREE")
    if not real:
        tree = Tree(place)
        tree.add("Echo")
        return Subject(tree.root, "Echo", {"text": "hello"})
    root = copy_tree(Path(real), place / "VCP")
    for manifest in root.glob("Plugin/*/plugin-manifest.json*"):
        is_on = json.loads(manifest.read_text("utf-8-sig"))["pluginType"] in IN_PROCESS
        manifest.rename(manifest.with_name("plugin-manifest.json" if is_on else "plugin-manifest.json.block"))
    return Subject(root, "BrowserSearch", {"command": "status"})


async def _measure(subject: Subject, place: Path) -> dict[str, float]:
    home, project = place / "bench-home", place / "bench-project"
    for made in (home, project):
        made.mkdir()
    trusted = json.dumps(str(subject.root / "Plugin"))
    (home / "config.toml").write_text(f"vcp = {json.dumps(str(subject.root))}\ntrusted_folders = [{trusted}]\n")
    found: dict[str, list[float]] = {"own": [], "own start": [], "bridge": [], "settle": []}
    async with Yard(load_config(project, home)) as yard:
        assert yard.vcp.bridge is not None
        _ = yard.plugins.plugins  # finding them is no part of the start
        began = time.perf_counter()
        connection = await yard.vcp.bridge.connect()
        start = (time.perf_counter() - began) * 1000

        async def settle() -> None:
            outcome = await yard.calls.settle(yard.calls.request(subject.tool, subject.arguments))
            assert outcome.envelope.error is None, outcome.envelope.error

        for _ in range(TURNS):
            own = await asyncio.to_thread(_ask_own, subject)
            found["own start"].append(own[0])
            found["own"] += own[1]
            found["bridge"] += await _time(lambda: connection.call(subject.tool, subject.arguments))
            found["settle"] += await _time(settle)
    return {"start": start, **{name: statistics.median(times) for name, times in found.items()}}


async def _time(call: Callable[[], Awaitable[object]]) -> list[float]:
    times = []
    for _ in range(ROUNDS // TURNS):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    return times


def _ask_own(subject: Subject) -> tuple[float, list[float]]:
    command = ["node", str(_OWN), str(subject.root), subject.tool, json.dumps(subject.arguments), str(ROUNDS // TURNS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    value = json.loads(done.stdout)
    return value["start"], value["calls"]
