"""Early results: calls that wait for an approval, and whose client got a result that says so.

Such a call goes on. The same call, of the same caller with the same arguments, attaches to it within ``KEPT_S``; who
gets its result has it, and the next one like it is a new call. At most ``MAX_KEPT`` are kept; then the oldest ends.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.envelope import Envelope, Fault, Reason, Status, code_of
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.tool import Outcome, ToolCall

ANSWER_S: Final = 35.0  # some clients give up after 45 s, and a call is looked at every 5 s
KEPT_S: Final = 600.0
MAX_KEPT: Final = 100

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class CallRun:
    """A running call; ``question`` is done when it asks for an approval."""

    call: ToolCall
    task: "asyncio.Task[Outcome]"
    question: "asyncio.Future[Approval]"

    @property
    def approval(self) -> Approval | None:
        """The approval that the call asked for, if any."""
        question = self.question
        return question.result() if question.done() and not question.cancelled() else None


class EarlyResults:
    """The runs that were answered early, the oldest first."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._runs: dict[_Key, tuple[CallRun, float]] = {}

    def __contains__(self, run: CallRun) -> bool:
        return any(one.task is run.task for one, _ in self._runs.values())

    def find(self, call: ToolCall) -> CallRun | None:
        """Return the run that this call repeats."""
        now = self._monotonic()
        self._runs = {key: (run, since) for key, (run, since) in self._runs.items() if now - since <= KEPT_S}
        entry = self._runs.get(_call_key(call)) if self._runs else None
        return entry[0] if entry else None

    def keep(self, run: CallRun) -> None:
        """Let the same call attach to this run, counted from its first early answer."""
        if run in self:
            return
        self._runs[_call_key(run.call)] = run, self._monotonic()
        if len(self._runs) > MAX_KEPT:
            oldest, _ = self._runs.pop(next(iter(self._runs)))
            oldest.task.cancel()

    def drop(self, run: CallRun) -> None:
        """Note that somebody got the result."""
        if run in self:
            del self._runs[_call_key(run.call)]


def _call_key(call: ToolCall) -> _Key:
    return call.caller, call.tool, json.dumps(call.arguments, sort_keys=True)


def build_early_outcome(
    run: CallRun, approval: Approval, *, root: str, waited_s: float, address: str, command: str
) -> Outcome:
    """Build the outcome that a client gets while the call waits: what waits, and the ``command`` that allows it."""
    page = f"{address}/approvals/{approval.id}" if address else ""
    message = f"{run.call.tool} has not run yet: it waits for a person's approval."
    where = f"at {page} or with '{command}'" if page else f"with '{command}'"
    hint = (
        f"Ask the user to allow it {where}, then call it again with the same arguments within {KEPT_S / 60:g} minutes: "
        "that call gets the result, and it runs once."
    )
    approval_json: JsonObject = {"id": approval.id, "call_id": run.call.id, "command": command}
    reason = Reason.APPROVAL_REQUIRED
    envelope = Envelope(
        status=Status.ERROR,
        data={"approval": approval_json | ({"url": page} if page else {})},
        text=f"{message} {hint}",
        error=Fault(code_of(reason), message),
        stats={"time_ms": round(waited_s * 1000, 3)},
        context={"cwd": ".", "params_input": approval.arguments, "reason": reason.value},
    )
    return Outcome(envelope=envelope, root=root, arguments=run.call.arguments)
