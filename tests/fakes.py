"""What tests use in place of the real thing: a clock that is moved by hand, a journal that can be read, odd tools."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from toolyard.protocol.call import ToolCall
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome, Result
from toolyard.protocol.tool import Checkpoint, Risk, ToolSpec


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

    async def started(self, call: ToolCall) -> None:
        self.started_calls.append(call)

    async def finished(self, call: ToolCall, outcome: Outcome) -> None:
        self.finished_calls.append((call, outcome))


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
