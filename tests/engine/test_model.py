"""Random histories of tasks and approvals, with crashes, against a model of a few lines."""

import asyncio
import contextlib
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from tests import postgres
from tests.fakes import FakeClock
from toolyard.engine.approvals import Approvals
from toolyard.engine.background.tasks import CallbackAnswer, Tasks, repeat_arguments
from toolyard.engine.rules import PermissionRequest
from toolyard.errors import StorageError
from toolyard.protocol.access import ApprovalState, Mode
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json
from toolyard.protocol.records.task_record import TaskState, state_from_callback
from toolyard.protocol.store import Query, Store
from toolyard.protocol.tool import Origin, Risk, ToolCall, ToolSpec

BODIES: list[Json] = [{"status": "Succeed"}, {"status": "Failed"}, {"n": 1}]
SPEC = ToolSpec(name="Tool", description="", parameters={}, risk=Risk.WRITE)
WAIT_S = 60.0


class Mortal:
    """A store as one process sees it: after the process is dead nothing of it reaches the store."""

    def __init__(self, store: Store) -> None:
        self._store, self.dead = store, False

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise StorageError("this process is dead")
        return getattr(self._store, name)


class Host:
    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = Mortal(store), name
        clock = FakeClock()
        self.tasks = Tasks(self.store, clock, owner=name)
        self.approvals = Approvals(self.store, clock, mode=Mode.ASK, owner=name)
        self.asking: list[asyncio.Future[str]] = []

    async def crash(self) -> None:
        self.store.dead = True
        for one in self.asking:
            one.cancel()
        await asyncio.gather(*self.asking, return_exceptions=True)


class Histories(RuleBasedStateMachine):
    """What a person, a plugin and a crash may do, in any order."""

    kept_in = "memory"
    tasks: Bundle[tuple[str, str, str]] = Bundle("tasks")  # its id, the token and the plugin's own id
    asked: Bundle[str] = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.store: Store = self.do(self._opened())
        self.boots = 0
        self.host = Host(self.store, "boot0")
        self.model: dict[str, TaskState] = {}
        self.results: dict[str, Json] = {}
        self.approvals: dict[str, ApprovalState] = {}

    def do(self, work: Any) -> Any:
        return self.runner.run(asyncio.wait_for(work, WAIT_S))

    @rule(target=tasks)
    def submit(self) -> tuple[str, str, str]:
        return self._submitted({"n": len(self.model)})

    @rule(target=tasks, task=tasks)
    def retry(self, task: tuple[str, str, str]) -> tuple[str, str, str]:
        stored = self.do(self.host.tasks.get(task[0]))
        return self._submitted(repeat_arguments(stored))

    @rule(task=tasks, body=st.sampled_from(BODIES))
    def callback(self, task: tuple[str, str, str], body: Json) -> None:
        id_, token, own = task
        answer = self.do(self.host.tasks.take_callback(token, "Tool", own, body))
        if self.model[id_] is TaskState.WAITING:
            assert answer is CallbackAnswer.STORED
            self.model[id_], self.results[id_] = state_from_callback(body), body
        else:
            same = id_ in self.results and self.results[id_] == body
            assert answer is (CallbackAnswer.DUPLICATE if same else CallbackAnswer.ALREADY_ENDED)

    @rule(task=tasks)
    def forged_callback(self, task: tuple[str, str, str]) -> None:
        assert self.do(self.host.tasks.take_callback("x" * 43, "Tool", task[2], BODIES[0])) is CallbackAnswer.FORBIDDEN

    @rule(task=tasks)
    def cancel(self, task: tuple[str, str, str]) -> None:
        won = self.do(self.host.tasks.cancel(task[0]))
        assert won == (self.model[task[0]] is TaskState.WAITING)
        if won:
            self.model[task[0]] = TaskState.CANCELLED

    @rule(target=asked)
    def ask(self) -> str:
        return str(self.do(self._ask()))

    @rule(id_=consumes(asked), allowed=st.booleans())
    def approve(self, id_: str, allowed: bool) -> None:
        state = self.do(self.host.approvals.answer(id_, allowed=allowed, by="me"))
        if self.approvals[id_] is ApprovalState.PENDING:
            self.approvals[id_] = ApprovalState.ALLOWED if allowed else ApprovalState.DENIED
        assert state is self.approvals[id_]

    @rule(target=asked)
    def restart(self) -> Any:
        """A crash at rest: what was pending in a chat is taken over, and tasks live on."""
        self.do(self.host.crash())
        self.store = self.do(self._reopened())
        self.boots += 1
        self.host = Host(self.store, f"boot{self.boots}")
        lost = [id_ for id_, state in self.approvals.items() if state is ApprovalState.PENDING]
        taken, interrupted = self.do(self.host.approvals.settle_orphans(self.host.name.__eq__))
        assert {one.id for one in (*taken, *interrupted)} == set(lost)
        self.approvals |= dict.fromkeys((one.id for one in interrupted), ApprovalState.INTERRUPTED)
        return multiple(*lost)  # may still be clicked, some too late

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        found = self.do(self.store.find("task", Query(), limit=1000))
        assert {record.id: record.state for record in found} == self.model
        found = self.do(self.store.find("approval", Query(), limit=1000))
        assert {record.id: record.state for record in found} == self.approvals

    @invariant()
    def each_end_was_told_once_and_events_have_no_hole(self) -> None:
        events = self.do(self.store.events(0, limit=10_000))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        counted = Counter((event.data["id"], event.data.get("state")) for event in events if "state" in event.data)
        ended = {id_: state for id_, state in self.model.items() if state is not TaskState.WAITING}
        answered = {id_: state for id_, state in self.approvals.items() if state is not ApprovalState.PENDING}
        assert counted == Counter(dict.fromkeys({**ended, **answered}.items(), 1))

    def teardown(self) -> None:
        self.do(self.host.crash())
        self.do(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()

    def _submitted(self, arguments: dict[str, Json]) -> tuple[str, str, str]:
        own = f"req-{len(self.model)}"
        call = ToolCall(id=f"call_{own}", tool="Tool", arguments=arguments)
        expected = self.host.tasks.expect(call, timeout_s=1800)
        receipt = f"{{{{VCP_ASYNC_RESULT::Tool::{own}}}}}"
        (task,) = self.do(self.host.tasks.store_receipt(expected, receipt, os.getpid()))
        self.model[task.id] = TaskState.WAITING
        return task.id, expected.token, own

    async def _ask(self) -> str:
        number = len(self.approvals)
        call = ToolCall(id=f"call_{number}", tool="Tool", arguments={"n": number}, origin=Origin.CHAT)
        _, seq = await self.store.event_span()
        waiting = asyncio.ensure_future(self._settled(self.host.approvals, PermissionRequest(call=call, spec=SPEC)))
        self.host.asking.append(waiting)
        await self.store.next_event(seq)
        (event,) = await self.store.events(seq, limit=1)
        id_ = str(event.data["id"])
        self.approvals[id_] = ApprovalState.PENDING
        return id_

    async def _settled(self, approvals: Approvals, ask: PermissionRequest) -> str:
        try:
            return await approvals.require(ask)
        except Failure:
            return "denied"

    async def _opened(self) -> Store:
        self.stack = contextlib.AsyncExitStack()
        file = Path(self.folder.name) / "state.db"
        return await self.stack.enter_async_context(postgres.store_in(self.kept_in, file))

    async def _reopened(self) -> Store:
        if self.kept_in != "sqlite":  # the others are emptied when they are closed
            return self.store
        await self.stack.aclose()
        return await self._opened()


@pytest.mark.requirement("task:states", "p:P8", "r:R101")
@pytest.mark.parametrize(("kept_in", "examples"), [("memory", 100), ("sqlite", 30), ("postgres", 10)])
def test_every_history_ends_as_the_model_says(kept_in: str, examples: int) -> None:
    machine = type(f"In{kept_in.title()}", (Histories,), {"kept_in": kept_in})
    examples = max(examples, settings.default.max_examples // 10 if settings.default else 0)  # more of them in a soak
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=25))
