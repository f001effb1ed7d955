"""What tests use in place of the real thing: a clock that is moved by hand, a journal that can be read, odd tools."""

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Checkpoint, Outcome, Result, Risk, ToolCall, ToolSpec


def number_batch(items: Iterable[Mapping[str, Json]]) -> JsonObject:
    """Write several calls' arguments as one numbered batch: the inverse of ``split_batch``."""
    return {f"{key}{number}": value for number, item in enumerate(items, 1) for key, value in item.items()}


@contextmanager
def bounded_work(seconds: float = 60) -> Iterator[None]:
    """What takes about a second in here may take so many, of this process's own work: a machine that is slow or has
    other work is no failure. What grows with the square or worse would take far longer."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@dataclass
class FakeClock:
    wall: datetime = datetime(2026, 11, 15, 9, 30, 0, tzinfo=UTC)
    seconds: float = 1000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds


@dataclass
class ListJournal:
    started_calls: list[ToolCall] = field(default_factory=list)
    finished_calls: list[tuple[ToolCall, Outcome]] = field(default_factory=list)

    async def record_start(self, call: ToolCall, *, deferred: bool = False) -> None:
        self.started_calls.append(call)

    async def record_deferred_start(self, call: ToolCall) -> None:
        pass

    async def confirm(self, call: ToolCall) -> None:
        pass

    async def record_end(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        self.finished_calls.append((call, outcome))
        return outcome


TEXT_PARAMETER: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "additionalProperties": False,
}
Work = Callable[[ToolCall, Checkpoint], Awaitable[Result]]


@dataclass
class FakeTool:
    """A tool whose work is a function."""

    work: Work
    name: str = "Fake"
    parameters: JsonObject = field(default_factory=lambda: dict(TEXT_PARAMETER))
    risk: Risk = Risk.READ
    timeout_s: float = 60.0
    splits_batches: bool = False

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="A fake.",
            parameters=self.parameters,
            risk=self.risk,
            timeout_s=self.timeout_s,
            splits_batches=self.splits_batches,
        )

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await self.work(call, checkpoint)


async def says(call: ToolCall, checkpoint: Checkpoint) -> Result:
    """Answers with its ``text`` argument."""
    return Result(data={"said": call.arguments.get("text", "")}, text="Said it.")


@dataclass
class Endless:
    """Runs until it is stopped; ``stopped`` tells that it was."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("unreachable")


def free_port() -> int:
    """A port of this machine that nobody gets by chance until it is used: below those that the system gives away."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is no free port")
