"""What holds after every fault: the invariants I1 to I10 of the reliability design, but for I9, which needs a server.

``settled`` starts the next host on a scene, as often as it takes, and ``broken`` says what does not hold there.
"""

import asyncio
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import orjson

from tests.crash.host import LATER_S
from tests.crash.scene import Ended, MovingClock, Scene
from tests.waiting import wait_until
from toolyard import process_numbers
from toolyard.engine.ownership import is_owner_alive
from toolyard.plugins.long_work.callback import CallbackListener
from toolyard.protocol.store import Query
from toolyard.storage.sqlite_rows import expand_body

ORPHANS_S = 15.0  # R02 has 2 s; the machine of a test may be busy
_OPEN = {"call": {"running"}, "task": {"waiting_callback"}, "approval": {"pending"}, "schedule": {"running"}}
_UNTOLD = {"idempotency": {"running"}}  # no event tells of them
_NEVER_ENDED = {"schedule": {"scheduled"}, "rule": {"active", "revoked"}, "result": {"kept"}, "backend": {"kept"}}
_TERMINAL = re.compile(
    r"call\.finished|task\.(?!started|progress).*|approval\.(?!requested|rule).*|schedule\.(?!added|running).*"
)


class Row(NamedTuple):
    kind: str
    id: str
    state: str
    owner: str
    body: dict[str, Any]


class Stored(NamedTuple):
    """The state as it is on the disk, read past Toolyard."""

    rows: list[Row]
    events: list[tuple[int, str, dict[str, Any]]]
    integrity: str

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row.kind == kind]


def read(scene: Scene) -> Stored:
    if not scene.database.exists():
        return Stored([], [], "ok")
    with closing(sqlite3.connect(scene.database)) as db:
        (integrity,) = db.execute("PRAGMA integrity_check").fetchone()
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        rows = db.execute("SELECT kind, id, state, owner, body FROM records") if "records" in tables else ()
        events = db.execute("SELECT seq, type, data FROM events ORDER BY seq") if "events" in tables else ()
        return Stored(
            [
                Row(kind, id_, state, owner, orjson.loads(expand_body(body, id_)))
                for kind, id_, state, owner, body in rows
            ],
            [(seq, type_, orjson.loads(data)) for seq, type_, data in events],
            str(integrity),
        )


async def orphans_die(scene: Scene, ended: Ended) -> None:
    """R02: what the dead host started is dead too, but for asynchronous children after their receipt."""
    spared = {row.body["process"]["pid"] for row in read(scene).of("task") if row.body.get("process")}
    await wait_until(lambda: _alive(ended) <= spared, within_s=ORPHANS_S)


def _alive(ended: Ended) -> set[int]:
    """The processes that carry a number of a host."""
    return {
        one.pid for boot in ended.of("boot") for one in process_numbers.find_processes(boot["prefix"]) if not one.zombie
    }


async def settled(scene: Scene) -> None:
    """Another host, as its start has it; it takes up what goes on, and ends everything that can be ended."""
    async with scene.yard(MovingClock(LATER_S)) as yard:
        report = await yard.state.recover()
        await yard.plugins.adopt(report.left)
        listener = CallbackListener(yard.plugins.receive_callback)
        await listener.open(scene.port)
        try:
            for task in await yard.state.tasks.page(Query(states=("waiting_callback",)), limit=100):
                if task.arguments.get("then") == "wait":  # R03b: every old row can be ended
                    await yard.state.tasks.cancel(task.id)
                else:
                    async with asyncio.timeout(60):
                        await yard.state.tasks.wait(task.id)
        finally:
            await listener.close()
        assert (await yard.state.recover()).settled == 0, "a second look finds nothing"


async def hold(scene: Scene, *hosts: Ended) -> None:
    """Everything that a crash must leave behind, after one more start."""
    await orphans_die(scene, hosts[-1])
    assert read(scene).integrity == "ok"
    before = _resources()
    await settled(scene)
    for host in hosts:
        await wait_until(lambda host=host: not _alive(host))  # type: ignore[misc] # I6
    await wait_until(lambda: _within(_resources(), before))  # I10
    stored = read(scene)
    acks = [ack for host in hosts for ack in host.acks]
    assert list(broken(scene, stored, acks)) == []


def broken(scene: Scene, stored: Stored, acks: Sequence[dict[str, Any]]) -> Iterator[str]:
    if stored.integrity != "ok":
        yield f"I1 {stored.integrity}"
    yield from _acknowledged(stored, acks)
    yield from _callbacks(scene, stored)
    yield from _owned(stored)
    yield from _ends(stored)
    numbers = [seq for seq, _, _ in stored.events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"I5 events are numbered {numbers}"
    yield from _files(scene, acks)
    yield from _runs(scene, stored, acks)


def _acknowledged(stored: Stored, acks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """I2, P1: what was said to be so is so, or was changed by what came after it."""
    rows = {(row.kind, row.id): row.state for row in stored.rows}
    final = {"succeeded", "failed", "cancelled", "success", "error", "partial", "allowed", "denied", "revoked", "done",
             "deleted", "finished", "released"}  # fmt: skip
    for ack in acks:
        if ack["what"] in ("call", "task", "schedule", "approval", "rule", "conversation", "idempotency"):
            state = rows.get((ack["what"], ack["id"]))
            if state is None or (ack["state"] in final and state != ack["state"]):
                yield f"I2 {ack} was acknowledged, and is {state}"


def _callbacks(scene: Scene, stored: Stored) -> Iterator[str]:
    """P1, P8: a callback that was answered 200 ended its task, with what it said."""
    results = {row.body["task_id"]: (row.state, row.body["result"]) for row in stored.of("task")}
    for name, status in scene.lines("callbacks"):
        if status == 200 and results.get(name) != ("succeeded", {"status": "Succeed", "n": name}):
            yield f"P1 the callback of {name} was taken, and its task is {results.get(name)}"
        if status not in (200, 409):
            yield f"P8 the callback of {name} was answered {status}"


def _owned(stored: Stored) -> Iterator[str]:
    """I3, P3, P10: nothing runs for a host that is gone; what was cut off says that nobody knows how far it came."""
    for row in stored.rows:
        if row.state in (_OPEN | _UNTOLD).get(row.kind, ()) and not is_owner_alive(row.owner):
            yield f"I3 {row.kind} {row.id} is {row.state}, and {row.owner} is gone"
        if row.kind == "call" and row.state == "interrupted" and "not known" not in str(row.body.get("text")):
            yield f"P10 {row.id} was cut off and says {row.body.get('text')}"


def _ends(stored: Stored) -> Iterator[str]:
    """I4: what has ended was told to have ended, once; what has not was not."""
    told = Counter(data.get("id") for _, type_, data in stored.events if _TERMINAL.fullmatch(type_))
    for row in stored.rows:
        if row.kind in _OPEN:
            ended = row.state not in _OPEN[row.kind] | _NEVER_ENDED.get(row.kind, set())
            if told[row.id] != ended:
                yield f"I4 {row.kind} {row.id} is {row.state} and was told to have ended {told[row.id]} times"


def _files(scene: Scene, acks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """I7, P7: no draft is left, and each file is at the step that was acknowledged, or at the one after it."""
    for file in scene.project.rglob("*"):
        if file.name.startswith(".toolyard-") or file.name.endswith(".tmp"):
            yield f"I7 {file} was left behind"
    steps: Counter[str] = Counter()
    for ack in acks:
        if ack["what"] == "file":
            steps.update({name: step - steps[name] for name, step in ack["steps"].items()})
    deleted = sum(ack["what"] == "deleted" for ack in acks)
    found = {file.name: file.read_text() for file in scene.project.iterdir() if file.is_file()}
    for name in ("a.txt", "b.txt", *(("c.txt",) if deleted == 0 else ())):
        at = int(found.get(name, "0"))
        if at not in (steps[name], steps[name] + 1) and not (name == "c.txt" and at == 0 and steps[name] == 3):
            yield f"P7 {name} is at step {at}, and step {steps[name]} was acknowledged"
    if found.get("a.txt") != found.get("b.txt") and steps["b.txt"]:
        yield "P7 half of a patch was done"
    if steps["d.txt"] and deleted == 0 and not {"d.txt", "e.txt", "f.txt"} & set(found) and steps["moved"] < 2:
        yield "P7 a file was lost on its way"
    allowed = (scene.home / "trust.json").read_text() if (scene.home / "trust.json").exists() else "{}"
    for ack in acks:
        if ack["what"] == "trusted" and ack["folder"] not in orjson.loads(allowed)["plugins"]:
            yield "P1 a permission was acknowledged and is gone"


def _runs(scene: Scene, stored: Stored, acks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """I8, P2: no call ran twice, none without a record, and each that is told to have succeeded ran once."""
    ran = Counter(line["n"] for line in scene.lines("counter"))
    recorded: dict[str, str] = {}
    for row in stored.of("call"):
        name = row.body["arguments"].get("n")
        if name is not None:
            if name in recorded:
                yield f"P2 {name} was called twice"
            recorded[name] = row.state
    for name, times in ran.items():
        if times != 1 or name not in recorded:
            yield f"I8 {name} ran {times} times, and is recorded as {recorded.get(name)}"
    for name, state in recorded.items():
        if state == "success" and ran[name] != 1:
            yield f"I8 {name} is recorded as a success and ran {ran[name]} times"
    for ack in acks:
        if ack["what"] == "call" and ack["n"] is not None and ack["state"] == "success" and ran[ack["n"]] != 1:
            yield f"P2 {ack['n']} was acknowledged and ran {ran[ack['n']]} times"


class _Resources(NamedTuple):
    descriptors: int
    threads: int
    resident: int


def _resources() -> _Resources:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    threads = sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())
    return _Resources(len(os.listdir("/proc/self/fd")), threads, pages * os.sysconf("SC_PAGE_SIZE"))


def _within(now: _Resources, before: _Resources) -> bool:
    """No descriptor or thread more than before, and not 64 MiB of memory."""
    return (
        now.descriptors <= before.descriptors
        and now.threads <= before.threads
        and now.resident < before.resident + 64 * 2**20
    )
