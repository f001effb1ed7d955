"""Glob and Grep on a project, with or without ripgrep."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tests.fakes import ListJournal
from tests.workspace.nobody import NOBODY, require_shared_checkout
from tests.workspace.vectors import put
from toolyard.engine.clock import SystemClock
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.mask import Mask
from toolyard.protocol.tool import ToolCall
from toolyard.tools.glob import Glob
from toolyard.tools.grep import Grep
from toolyard.workspace.search.ripgrep import find_ripgrep
from toolyard.workspace.workspace import Workspace

VECTORS = json.loads((Path(__file__).with_name("search_vectors.json")).read_text("utf-8"))
LONG = "x" * 3000 + "TODO" + "y" * 3000  # a line of the tree "basic"


def find_no_ripgrep() -> None:
    """No ripgrep is installed."""


class Searches:
    def __init__(
        self, root: Path, *, find_ripgrep: Callable[[], str | None] = find_ripgrep, time_cap_s: float = 60.0
    ) -> None:
        self.workspace = Workspace(root)
        grep = Grep(
            self.workspace, fallback_encodings=["gb18030"], find_ripgrep=find_ripgrep, time_cap_s=time_cap_s
        )  # fmt: skip
        self.runner = Runner(
            Registry([Glob(self.workspace, time_cap_s=time_cap_s), grep]),
            root=str(root),
            clock=SystemClock(),
            journal=ListJournal(),
            mask=Mask([]),
        )

    def glob(self, pattern: str, **arguments: Any) -> Envelope:
        return asyncio.run(self.runner.settle(_call("Glob", pattern, arguments))).envelope

    def grep(self, pattern: str, **arguments: Any) -> Envelope:
        return asyncio.run(self.runner.settle(_call("Grep", pattern, arguments))).envelope

    async def start_grep(self, pattern: str) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.runner.settle(_call("Grep", pattern, {})))


def _call(tool: str, pattern: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(id="c1", tool=tool, arguments={"pattern": pattern, **arguments})


def make_tree(root: Path, tree: str) -> None:
    """One of the trees of the vectors."""
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/TODO\n")
    put(root, VECTORS["trees"][tree])
    if tree == "basic":
        (root / "long.txt").write_text(f"{LONG}\n")


def paths(envelope: Envelope) -> list[str]:
    return cast("list[str]", envelope.data["paths"])


def matches(envelope: Envelope) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", envelope.data["matches"])


def places(envelope: Envelope) -> list[tuple[str, int]]:
    return [(match["file"], match["line"]) for match in matches(envelope)]


_CHILD = """
import json, os, sys
from pathlib import Path
from tests.tools.searches import Searches
searches = Searches(Path(sys.argv[1]))
searches.glob("**/*")
searches.grep("(?<=x)y", glob="*")
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
print(json.dumps([searches.glob("**/*").to_dict(), searches.grep("TODO").to_dict()]))
"""


def search_as_nobody(root: Path) -> tuple[Envelope, Envelope]:
    """``**/*`` and ``TODO``, by a user whom the system refuses something, also when the tests run as root."""
    require_shared_checkout()
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(root), str(NOBODY)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    glob, grep = map(Envelope.from_dict, json.loads(done.stdout))
    return glob, grep
