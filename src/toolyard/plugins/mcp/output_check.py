"""Check answers of MCP servers against their declared output schemas, in a process that can be killed.

A foreign schema can keep any checker busy for ever: by a pattern, or by references that double at each step. So only a
plain one is evaluated in this process: a tree of the keywords in ``_PLAIN``, none of which takes longer than the value
is large, and only while schema and value are small. Most are, and a check elsewhere costs as much as a tenth of a call
(bench row "mcp"). For all others there is one process, started by the first check; it has ``CPU_S`` of processor time
for each. A server whose check was ended for that has its results refused for ``REST_S``, so that it cannot hold up
those of the others.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.plugins.process.launch import ChildProcess, Launch
from toolyard.plugins.process.pipes import PipeReader
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest import Limits

if TYPE_CHECKING:
    from toolyard.plugins.process.children import Children
    from toolyard.plugins.process.launch import Starter

CPU_S: Final = 2.0
ANSWER_S: Final = 30.0  # for one check, however slow the machine is; its processor time has a limit of its own
REST_S: Final = 60.0
_MAX_MEMORY = 2 * 2**30
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MAIN = Path(__file__).with_name("output_check_main.py")
_TOO_LONG = f"checking it against its output schema takes more than {CPU_S:g} s of processor time"


_PLAIN_WORK: Final = 2**24  # characters of the schema times characters of the value: milliseconds
_NOTES = frozenset(("$schema", "title", "description", "default", "examples", "required", "type"))
_LIMITS = frozenset(("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"))
_PLAIN = _NOTES | _LIMITS | {"properties", "items", "additionalProperties"}


@lru_cache(maxsize=256)
def _is_plain(schema: str) -> bool:
    """Return whether the time of a check is bounded by the sizes of schema and value."""
    pending: list[Json] = [json.loads(schema)]
    while pending:
        part = pending.pop()
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict) or not part.keys() <= _PLAIN or part.get("$schema", _DIALECT) != _DIALECT:
            return False
        properties = part.get("properties", {})
        if not isinstance(properties, dict):
            return False
        pending += [*properties.values(), part.get("items", True), part.get("additionalProperties", True)]
    return True


class OutputChecker:
    """The checker of one event loop. ``close`` it at the end."""

    def __init__(
        self, processes: "Callable[[], tuple[Children, Starter]]", monotonic: Callable[[], float], folder: Path
    ) -> None:
        self._processes, self._monotonic, self._folder = processes, monotonic, folder
        self._lock = asyncio.Lock()
        self._child: _CheckerProcess | None = None
        self._rests_until: dict[str, float] = {}

    async def find_problem(self, server: str, schema_text: str, value: Json) -> str:
        """Return why a value does not fit the output schema, as JSON, of a tool of ``server``; empty when it does."""
        value_text = json.dumps(value)
        if len(schema_text) * len(value_text) <= _PLAIN_WORK and _is_plain(schema_text):
            from toolyard.plugins.mcp.output_check_main import find_problem  # slow to load, seldom needed

            return find_problem(schema_text.encode(), value_text.encode())
        question = f"{schema_text}\n{value_text}\n".encode()
        async with self._lock:
            if self._monotonic() < self._rests_until.get(server, 0.0):
                return f"{_TOO_LONG}; the results of this server are not checked for {REST_S:g} s"
            answer = await self._ask(question)
            if answer is None:
                self._rests_until[server] = self._monotonic() + REST_S
                return _TOO_LONG
            return answer

    def close(self) -> None:
        """End the process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    async def _ask(self, question: bytes) -> str | None:
        """Return the answer of the process; None when it ended, or was ended, without one."""
        answered = False
        try:
            if self._child is None:
                self._child = await _start(*self._processes(), self._folder)
            async with asyncio.timeout(ANSWER_S):
                line = await self._child.ask(question)
            answered = bool(line)
            return str(json.loads(line)) if line else None
        except TimeoutError:
            return None
        finally:
            if not answered:  # it has ended, or is still at it: the next check gets another one
                self.close()


class _CheckerProcess:
    """The checking process, and the streams to it."""

    def __init__(self, child: ChildProcess, children: "Children") -> None:
        self._child, self._children = child, children
        self._stdin = os.fdopen(child.stdin, "wb", buffering=0)
        self._stdout = os.fdopen(child.stdout, "rb", buffering=0)
        self._errors = PipeReader(child.stderr, lambda _: None)
        self._reader = asyncio.StreamReader()
        self._hearing: asyncio.ReadTransport | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, question: bytes) -> bytes:
        """Return a line, empty when the process has ended."""
        loop = asyncio.get_running_loop()
        try:
            if self._hearing is None:
                protocol = asyncio.StreamReaderProtocol(self._reader)
                self._hearing, _ = await loop.connect_read_pipe(lambda: protocol, self._stdout)
            if self._writer is None:
                saying, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, self._stdin)
                self._writer = asyncio.StreamWriter(saying, flow, None, loop)
            self._writer.write(question)
            await self._writer.drain()
            return await self._reader.readline()
        except OSError:
            return b""

    def close(self) -> None:
        self._children.end(self._child.pid)
        (self._writer or self._stdin).close()
        (self._hearing or self._stdout).close()
        self._errors.close()


@lru_cache(maxsize=1)
def _profile() -> Profile:
    return Profile(read=(*list_program_trees(sys.executable), os.path.realpath(_MAIN)))


async def _start(children: "Children", starter: "Starter", folder: Path) -> _CheckerProcess:
    argv = (sys.executable, "-I", str(_MAIN), str(CPU_S))
    limits = Limits(memory_bytes=_MAX_MEMORY)
    return _CheckerProcess(
        await starter.spawn(Launch(argv=argv, cwd=folder, profile=_profile(), environment={}, limits=limits), {}),
        children,
    )
