"""The model of the client matrix: it does what the case of a chat says, behind a provider of any protocol."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.clients.relay import Relay
from tests.gateway.native_providers import Protocol, Reply, ToolUse, to_script
from tests.gateway.upstream import Script

ANSWER: Final = "It is counted."
SIGNATURE: Final = "c2lnbmVkIGJ5/+=="
FOREVER: Final = 1000
LOST: Final = "lost"  # a fault: the connection between the client and the server breaks
ALLOWED: Final = {"type": "evaluated", "outcome": "not_flagged"}
LAST: Final = 0  # the number of the round after all calls


@dataclass(frozen=True)
class Case:
    """One chat: what the model does in it, and how often its provider fails in the last round."""

    name: str  # in brackets; what the client says, and what the tool writes down
    is_streamed: bool
    fault: str = ""
    times: int = 0
    has_tally: bool = True  # the model counts with the server's tool
    own_call: tuple[str, Mapping[str, Any]] | None = None  # and then makes this call of the client's
    reasoning: str = ""  # before each call
    is_allowed: bool | None = None  # what the client answers when it is asked whether a call may run

    @property
    def calls(self) -> list[tuple[str, Mapping[str, Any]]]:
        tally: list[tuple[str, Mapping[str, Any]]] = [("Tally", {"case": self.name})] if self.has_tally else []
        return tally + ([self.own_call] if self.own_call else [])


@dataclass
class Model:
    """A model that makes one call a round, and fails in the round after them, as the case says."""

    protocol: Protocol
    relay: Relay
    cases: dict[str, Case] = field(default_factory=dict)
    rounds: Counter[tuple[str, int]] = field(default_factory=Counter)  # requests of a case by round
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)  # the last request of each case
    results: dict[str, list[str]] = field(default_factory=dict)  # what the tools said, in the last round

    def answer(self, body: dict[str, Any]) -> Script:
        is_streamed = bool(body.get("stream"))
        said = json.dumps(body)
        case = next((case for name, case in self.cases.items() if name in said), None)
        if case is None or not body.get("tools"):  # a side request of a terminal
            return to_script(Reply(text='{"title": "A chat"}'), self.protocol, stream=is_streamed)
        results, calls = list_results(body, self.protocol), case.calls
        number = len(results) + 1 if len(results) < len(calls) else LAST
        self.rounds[case.name, number] += 1
        self.bodies[case.name] = body
        if number != LAST:
            called = (ToolUse(*calls[number - 1], f"call_{number}"),)
            judged = {"type": "available", "tool_uses": {one.id: ALLOWED for one in called}}
            checked = {"safeguard_results": [{"type": "dangerous_tool_use", "status": judged}]}
            more = checked if body.get("safeguards") else {}  # it is Claude Code's auto mode that asks for it
            reply = Reply(reasoning=case.reasoning, signature=SIGNATURE, calls=called, more=more)
            script = to_script(reply, self.protocol, stream=is_streamed)
            own_id = f"rs_{sum(self.rounds.values())}".encode()  # no provider gives one twice
            return replace(script, pieces=[piece.replace(b"rs_1", own_id) for piece in script.pieces])
        self.results[case.name] = results
        if self.rounds[case.name, LAST] <= case.times:
            if case.fault != LOST:
                return self._fail(case.fault, is_streamed=is_streamed)
            self.relay.cut()
        return to_script(Reply(text=ANSWER), self.protocol, stream=is_streamed)

    def _fail(self, fault: str, *, is_streamed: bool) -> Script:
        """Return an error status, a connection that closes without an answer, or one that closes in the middle."""
        if fault == "closed":
            return Script(then="drop")
        if fault == "cut":
            whole = to_script(Reply(text=ANSWER), self.protocol, stream=is_streamed)
            return Script([whole.pieces[0][:40]], kind=whole.kind, then="cut")
        return to_script(Reply(status=int(fault), error=f"The provider says {fault}."), self.protocol)

    def offered(self, case: Case) -> list[str]:
        """Return the names of the tools in the last request of ``case``."""
        tools = self.bodies[case.name].get("tools", ())
        return [(tool["function"] if self.protocol == "chat" else tool).get("name", "") for tool in tools]


def list_results(body: dict[str, Any], protocol: Protocol) -> list[str]:
    """Return what the tools said so far, in the order of a request to a provider."""
    if protocol == "responses":
        return [str(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    if protocol == "chat":
        return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    return [str(block["content"]) for block in blocks if block["type"] == "tool_result"]
