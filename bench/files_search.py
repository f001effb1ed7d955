"""Glob and Grep against find and ripgrep themselves, on a tree of 20,000 files."""

import asyncio
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.json import Json
from toolyard.protocol.tool import Tool, ToolCall
from toolyard.tools.glob import Glob
from toolyard.tools.grep import Grep
from toolyard.workspace.search.ripgrep import find_ripgrep
from toolyard.workspace.workspace import Workspace

RUNS = 15
FILES = 20_000
_ENDINGS = (".py", ".js", ".md", ".txt", ".json")
_RULES = "__pycache__/\n*.py[cod]\n*.log\nbuild/\ndist/\n*.egg-info/\n.venv/\nnode_modules/\n/site\n.coverage.*\n"

Row = tuple[str, float, str, float]  # what, its milliseconds, the peer, its milliseconds


@contextmanager
def made_tree() -> Iterator[Path]:
    """20,000 files of 4 kB in 420 folders, 4,000 of them ``.py``, 20 with the word NEEDLE."""
    words = [f"word{number}" for number in range(500)]
    chance = random.Random(1)  # noqa: S311 the same tree every time, no secret
    bodies = ["".join(" ".join(chance.choices(words, k=9)) + "\n" for _ in range(60)) for _ in range(97)]
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        (tree / ".gitignore").write_text(_RULES)
        for number in range(FILES):
            folder = tree / f"package{number // 1000:02}/module{number // 50 % 20:02}"
            if number % 50 == 0:
                folder.mkdir(parents=True)
            needle = "the NEEDLE is here\n" if number % 1000 == 0 else ""
            (folder / f"file_{number % 50:03}{_ENDINGS[number % 5]}").write_text(bodies[number % 97] + needle)
        yield tree


def rows(tree: Path) -> list[Row]:
    """Medians, each measured beside its peer, so that a busy moment hits both."""
    rg = find_ripgrep() or "rg"
    workspace = Workspace(tree)
    grep = Grep(workspace, fallback_encodings=[])
    slow = Grep(workspace, fallback_encodings=[], find_ripgrep=lambda: None)
    by_find = ("find -name", ["find", ".", "-name", "*.py"])
    cases: list[tuple[str, Tool, dict[str, Json], tuple[str, list[str]]]] = [
        ("Glob **/*.py", Glob(workspace), {"pattern": "**/*.py"}, by_find),
        ("Glob **/*.py", Glob(workspace), {"pattern": "**/*.py"}, ("rg --files", [rg, "--files", "-g", "**/*.py"])),
        ("Grep, 20 hits", grep, {"pattern": "NEEDLE"}, ("rg --json", [rg, "--json", "NEEDLE", "./"])),
        ("Grep, none", grep, {"pattern": "NOTHING"}, ("rg --json", [rg, "--json", "NOTHING", "./"])),
        ("Grep, 200,000 hits", grep, {"pattern": "word12"}, ("rg --json", [rg, "--json", "word12", "./"])),
        (
            "Grep, 20 hits in *.py",
            grep,
            {"pattern": "NEEDLE", "glob": "*.py"},
            ("rg --json -g", [rg, "--json", "-g", "*.py", "NEEDLE", "./"]),
        ),
        ("Grep without rg, 20 hits", slow, {"pattern": "NEEDLE"}, ("rg --json", [rg, "--json", "NEEDLE", "./"])),
        ("Grep without rg, none", slow, {"pattern": "NOTHING"}, ("rg --json", [rg, "--json", "NOTHING", "./"])),
    ]
    try:
        with asyncio.Runner() as loop:
            return [_row(loop, tree, name, tool, wanted, *peer) for name, tool, wanted, peer in cases]
    finally:
        workspace.close()


def _row(
    loop: asyncio.Runner, tree: Path, name: str, tool: Tool, wanted: dict[str, Json], peer: str, command: list[str]
) -> Row:
    call = ToolCall(id="bench", tool=tool.spec.name, arguments=accept_arguments(tool.spec, wanted))
    ours, theirs = [], []
    for _ in range(RUNS):
        started = time.perf_counter()
        loop.run(tool.run(call, lambda: None))
        between = time.perf_counter()
        subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, check=False)
        ours.append(between - started)
        theirs.append(time.perf_counter() - between)
    return name, statistics.median(ours) * 1000, peer, statistics.median(theirs) * 1000


def main() -> None:
    with made_tree() as tree:
        found = rows(tree)
    print(f"{'search, ' + format(FILES, ',') + ' files':<28} {'p50 ms':>8} {'peer':<14} {'p50 ms':>8} {'ratio':>6}")
    for name, ours, peer, theirs in found:
        print(f"{name:<28} {ours:>8.1f} {peer:<14} {theirs:>8.1f} {ours / theirs:>6.2f}")
