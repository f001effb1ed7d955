"""A host that does one of each thing Toolyard does, and says so the moment each was acknowledged.

Run as a program: ``python -m tests.crash.host PLACE PORT [POINT:N]``. It is killed with signal 9 when the crash point
POINT is reached for the Nth time. Without one it counts how often each point is reached and tells that in its last
line. ``recover`` in the place of work: ``... PORT POINT:N recover`` only does what a host does at its start.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.crash.scene import MovingClock, Scene
from tests.waiting import wait_until
from toolyard.crashpoint import arm
from toolyard.engine.chats.conversations import Conversations, ConversationUpdate
from toolyard.engine.chats.idempotency import IdempotentRequest, Started, StoredResponse
from toolyard.engine.chats.turns import StoredTurn
from toolyard.engine.history.journal import state_from_envelope
from toolyard.plugins.long_work.callback import CallbackListener
from toolyard.protocol.access import Effect
from toolyard.protocol.records.conversation_record import ConversationContent
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Origin, Outcome
from toolyard.yard.yard import Yard

DUE_S = 60.0
LATER_S = 240.0  # how far ahead the clock of the next host is: all that was to be waited for is over
PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-{old}
+{new}
*** Update File: b.txt
@@
-{old}
+{new}
*** End Patch
"""


def ack(what: str, **said: Any) -> None:
    os.write(1, json.dumps({"what": what, **said}).encode() + b"\n")


class Work:
    def __init__(self, yard: Yard, clock: MovingClock) -> None:
        self.yard, self.clock = yard, clock

    async def all(self) -> None:
        hanging = self.yard.calls.request("Hang", {"n": "hang"})
        hangs = asyncio.create_task(self.settle("Hang", hanging.arguments, call=hanging))
        await wait_until((self.yard.config.home.parent / "notes" / "counter").exists)
        self.settings()
        await self.settle("Count", {"n": "c1"})
        await self.files()
        await self.settle("Count", {"n": "c2"})
        await self.approvals()
        await self.conversations()
        await self.requests()
        await self.schedules()
        await self.tasks()
        together = (self.settle("Count", {"n": f"g{number}"}) for number in range(4))
        await asyncio.gather(*together, self.task("t8", "call back"), self.task("t9", "early"))
        self.yard.calls.cancel(hanging.id)
        await hangs

    async def settle(self, tool: str, arguments: dict[str, Any], *, call: Any = None, chat: bool = False) -> Outcome:
        call = call or self.yard.calls.request(tool, arguments, origin=Origin.CHAT if chat else Origin.PYTHON)
        outcome = await self.yard.calls.settle(call)
        ack("call", id=call.id, state=state_from_envelope(outcome.envelope), n=arguments.get("n"))
        return outcome

    def settings(self) -> None:
        plugins, trust = self.yard.plugins.plugins, self.yard.plugins.trust
        plugin = plugins.get("Count")
        if plugin is None:
            raise LookupError("Count")
        trust.allow(trust.review(plugin, ()), at="now")
        ack("trusted", folder=str(plugin.folder))
        hang = plugins.get("Slow")
        if hang is None:
            raise LookupError("Slow")
        plugins.disable(hang)
        ack("disabled")
        plugins.enable(hang)
        ack("enabled")

    async def files(self) -> None:
        """Every file holds nothing but the number of the step that it is at."""
        for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
            await self.wrote("Write", {"path": name, "content": "1\n"}, **{name: 1})
        for step in (1, 2):
            old, new = str(step), str(step + 1)
            await self.wrote("Edit", {"path": "c.txt", "old_string": old, "new_string": new}, **{"c.txt": step + 1})
            patch = PATCH.format(old=old, new=new)
            await self.wrote("ApplyPatch", {"patch": patch}, **{"a.txt": step + 1, "b.txt": step + 1})
        for step, (old, new) in enumerate((("d.txt", "e.txt"), ("e.txt", "f.txt")), 1):
            arguments = {"command": "MoveFile", "sourcePath": old, "destinationPath": new}
            await self.wrote("FileOperator", arguments, moved=step)
        for step, name in ((1, "f.txt"), (2, "c.txt")):
            outcome = await self.settle("FileOperator", {"command": "DeleteFile", "filePath": name})
            require(outcome)
            ack("deleted", step=step)
        for _ in range(2):
            call = self.yard.calls.request("Write", {"path": "g.txt", "content": "1\n"})
            require(await self.yard.calls.settle(call))
            ack("file", steps={"g.txt": 1})
            await self.yard.calls.undo(call.id)
            ack("undone")

    async def wrote(self, tool: str, arguments: dict[str, Any], **steps: int) -> None:
        require(await self.settle(tool, arguments))
        ack("file", steps=steps)

    async def approvals(self) -> None:
        rule = await self.yard.state.approvals.add_rule("Write", "", Effect.DENY, by="owner")
        ack("rule", id=rule.id, state="active")
        for name, allowed in (("a1", True), ("a2", False), ("a3", True)):
            asking = asyncio.create_task(self.settle("Count", {"n": name}, chat=True))
            pending = await self.pending()
            ack("approval", id=pending, state="pending")
            state = await self.yard.state.approvals.answer(pending, allowed=allowed, by="owner", always=name == "a3")
            ack("approval", id=pending, state=str(state))
            await asking
        rule = await self.yard.state.approvals.add_rule("Edit", "", Effect.DENY, by="owner")
        ack("rule", id=rule.id, state="active")
        await self.yard.state.approvals.revoke(rule.id)
        ack("rule", id=rule.id, state="revoked")

    async def conversations(self) -> None:
        kept = Conversations(self.yard.state.store, self.clock)
        for version in (0, 1):
            content = ConversationContent(messages=({"content": str(version)},))
            record = await kept.put("key:me", "one", ConversationUpdate(content=content, version=version))
            ack("conversation", id=record.record_id if record else "", state="active")
        ((record, *_),) = await kept.page("key:me", limit=2)
        await kept.delete("key:me", "one")
        ack("conversation", id=record.record_id, state="deleted")

    async def requests(self) -> None:
        """Idempotent requests, of which the last one still runs when the host has ended."""
        for name in ("i1", "i2", "i3", "i4"):
            asked = IdempotentRequest(caller="key:me", key=name, fingerprint="f", call="call_1")
            started = await self.yard.state.idempotency.begin(asked)
            if not isinstance(started, Started):
                raise TypeError(name)
            ack("idempotency", id=asked.id, state="running")
            if name in ("i1", "i2"):
                await self.yard.state.idempotency.finish(started, StoredResponse(status=200, body=b"{}"))
                ack("idempotency", id=asked.id, state="finished")
            elif name == "i3":
                await self.yard.state.idempotency.release(started)
                ack("idempotency", id=asked.id, state="released")
        turn = StoredTurn(id="turn_1", caller="key:me", request="f", chat="c", created=self.clock.now().timestamp())
        await self.yard.state.turns.keep(await self.yard.state.turns.keep(turn))

    async def pending(self) -> str:
        while True:
            _, seq = await self.yard.state.store.event_span()
            if found := await self.yard.state.approvals.page(("pending",), limit=1):
                return found[0].id
            await self.yard.state.store.next_event(seq)

    async def schedules(self) -> None:
        at = (self.clock.now() + timedelta(seconds=DUE_S)).isoformat(timespec="seconds")
        kept = []
        for name in ("s1", "s2", "s3", "s4", "s5"):
            record = await self.yard.state.schedules.submit(self.yard.calls.request("Count", {"n": name}), at=at)
            ack("schedule", id=record.id, state="scheduled")
            kept.append(record.id)
        for id_ in kept[:2]:
            await self.yard.state.schedules.run_by_hand(id_)
            ack("schedule", id=id_, state="running")
        await self.yard.state.schedules.cancel(kept[2])
        ack("schedule", id=kept[2], state="cancelled")
        self.clock.ahead_s += DUE_S + 5
        for id_ in await self.yard.state.schedules.run_due():
            ack("schedule", id=id_, state="running")
        await self.yard.state.schedules.drain()
        for id_ in (*kept[:2], *kept[3:]):
            ack("schedule", id=id_, state="done")

    async def tasks(self) -> None:
        for name, then in (("t1", "call back"), ("t2", "early")):
            await self.ended(await self.task(name, then))
        for name in ("t3", "t4"):
            id_ = await self.task(name, "wait")
            await self.yard.state.tasks.cancel(id_)
            ack("task", id=id_, state="cancelled")
        await self.task("t5", "wait")  # it is still at work when the host has ended
        for name, then in (("t6", "call back"), ("t7", "call back")):
            await self.ended(await self.task(name, then))

    async def task(self, name: str, then: str) -> str:
        outcome = await self.settle("Slow", {"n": name, "then": then})
        data: Any = outcome.envelope.data
        id_ = str(data["tasks"][0]["id"])
        ack("task", id=id_, state="waiting_callback")
        return id_

    async def ended(self, id_: str) -> None:
        async with asyncio.timeout(60):
            ack("task", id=id_, state=(await self.yard.state.tasks.wait(id_)).state.value)


def require(outcome: Outcome) -> None:
    if outcome.envelope.error:
        raise RuntimeError(outcome.envelope.text)


async def recover(yard: Yard) -> None:
    report = await yard.state.recover()
    await yard.plugins.adopt(report.left)
    for task in await yard.state.tasks.page(Query(states=("waiting_callback",)), limit=100):
        if task.arguments.get("then") == "wait":
            await yard.state.tasks.cancel(task.id)
            ack("task", id=task.id, state="cancelled")
        else:
            async with asyncio.timeout(60):
                ack("task", id=task.id, state=(await yard.state.tasks.wait(task.id)).state.value)


async def main(scene: Scene, *, recovers: bool) -> None:
    clock = MovingClock(LATER_S if recovers else 0.0)
    async with scene.yard(clock) as yard:
        listener = CallbackListener(yard.plugins.receive_callback)
        await listener.open(scene.port)
        ack("boot", owner=yard.boot.name, prefix=yard.plugins.host.children.numbers.prefix)
        await (recover(yard) if recovers else Work(yard, clock).all())
        await listener.close()
    ack("closed")


def kill_at(point: str, number: int) -> None:
    left, guard = [number], threading.Lock()

    def hook(name: str) -> None:
        if name == point:
            with guard:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    arm(hook)


if __name__ == "__main__":
    where, port, *rest = sys.argv[1:]
    hits: Counter[str] = Counter()
    if rest and rest[0]:
        word, _, nth = rest[0].partition(":")
        kill_at(word, int(nth))
    else:
        arm(lambda name: hits.update((name,)))
    asyncio.run(main(Scene(Path(where), int(port)), recovers=rest[1:] == ["recover"]))
    ack("points", hits=hits)
