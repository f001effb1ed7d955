"""What the client matrix needs: a server of its own process, and a provider that does what the case of a chat says."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.clients.install import HERE
from tests.clients.relay import Relay, relaying
from tests.gateway.upstream import DONE, Script, chunk, completion, provider, says
from tests.plugins.folders import make_plugin
from tests.waiting import wait_until

DRIVERS: Final = HERE / "drivers"
ANSWER: Final = "It is counted."
COUNTED: Final = "Counted."
USAGE: Final = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
FOREVER: Final = 1000
LAST: Final = 0  # the number of the round after all calls
LOST: Final = "lost"  # a fault: the connection between the client and the server breaks
PATIENCE_S: Final = 300
TALLY: Final = """import json, sys
case = json.loads(sys.stdin.read())["case"]
with open({effects!r}, "a") as file:
    file.write(case + "\\n")
print(json.dumps({{"status": "success", "result": {counted!r}}}))
"""


@dataclass(frozen=True)
class Case:
    """One chat: what the model does in it, and how often its provider fails in the last round."""

    name: str  # in brackets; what the client says, and what the tool writes down
    is_streamed: bool
    fault: str = ""
    times: int = 0
    has_tally: bool = True  # the model counts with the server's tool
    own_call: tuple[str, Mapping[str, Any]] | None = None  # and then makes this call of the client's


@dataclass
class LastRoundFaults:
    """A model that makes one call a round, and fails in the round after them, as the case says."""

    relay: Relay
    cases: dict[str, Case] = field(default_factory=dict)
    rounds: Counter[tuple[str, int]] = field(default_factory=Counter)  # requests of a case by round
    offered: dict[str, list[str]] = field(default_factory=dict)  # the names of the tools in round one
    results: dict[str, list[str]] = field(default_factory=dict)  # what the tools said, in the last round

    def answer(self, body: dict[str, Any]) -> Script:
        is_streamed = bool(body.get("stream"))
        if (case := self._find_case(body)) is None:
            return says('{"title": "A chat"}', stream=is_streamed)  # a side request of a terminal
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        calls: list[tuple[str, Mapping[str, Any]]] = [("Tally", {"case": case.name})] if case.has_tally else []
        calls += [case.own_call] if case.own_call else []
        number = len(results) + 1 if len(results) < len(calls) else LAST
        self.rounds[case.name, number] += 1
        if not results:
            self.offered[case.name] = [tool["function"]["name"] for tool in body.get("tools", ())]
        if number != LAST:
            return _makes_call(*calls[number - 1], f"call_{number}", is_streamed=is_streamed)
        self.results[case.name] = results
        if self.rounds[case.name, LAST] <= case.times:
            if case.fault != LOST:
                return fails(case.fault, is_streamed=is_streamed)
            self.relay.cut()
        has_usage = not is_streamed or (body.get("stream_options") or {}).get("include_usage")
        return says(ANSWER, stream=is_streamed, usage=USAGE if has_usage else None)

    def _find_case(self, body: dict[str, Any]) -> Case | None:
        said = json.dumps([message["content"] for message in body["messages"] if message["role"] == "user"])
        return next((case for name, case in self.cases.items() if name in said), None)


def _makes_call(name: str, arguments: Mapping[str, Any], id_: str, *, is_streamed: bool) -> Script:
    call = {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    if is_streamed:
        first = chunk({"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]})
        return Script([first, chunk({}, "tool_calls"), DONE])
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return Script([completion(message, "tool_calls", USAGE)], kind="application/json")


def fails(fault: str, *, is_streamed: bool) -> Script:
    """Return an error status, a connection that closes without an answer, or one that closes in the middle of it."""
    if fault == "closed":
        return Script(then="drop")
    if fault == "cut":
        whole = says(ANSWER, stream=is_streamed)
        return Script([whole.pieces[0][:40]], kind=whole.kind, then="cut")
    error = {"error": {"message": f"The provider says {fault}.", "type": "server_error", "code": None}}
    return Script([json.dumps(error).encode()], status=int(fault), kind="application/json")


@dataclass
class Toolyard:
    """``toolyard serve`` as a person starts it, with the tool Tally and a log that can be read."""

    url: str
    home: Path
    effects: Path
    log: Path
    faults: LastRoundFaults

    @property
    def key(self) -> str:
        return (self.home / "key").read_text().strip()

    def count_effects(self, case: Case) -> int:
        written = self.effects.read_text().splitlines() if self.effects.exists() else []
        return written.count(case.name)

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return what the server says, with the id of this request as ``request_id``."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request(method, self.url + path, json=body) as response,
        ):
            assert response.ok, await response.text()
            return {**await response.json(), "request_id": response.headers["X-Request-Id"]}

    async def statuses(self, path: str) -> list[int]:
        """Return the status of every request for ``path`` that was answered so far."""
        request = (await self.request("GET", "/v1/session"))["request_id"]  # the log has what came before it first
        await wait_until(lambda: request in self.log.read_text(), within_s=PATIENCE_S)
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line["status"] for line in lines if line.get("path") == path]

    async def waiting(self) -> list[dict[str, Any]]:
        """Return the approvals that nobody has answered."""
        rows: list[dict[str, Any]] = (await self.request("GET", "/v1/approvals?state=pending"))["data"]
        return rows


@asynccontextmanager
async def serving_tally(folder: Path, *, approval_mode: str = "auto") -> AsyncIterator[Toolyard]:
    effects = folder / "effects" / "tally.txt"
    for place in (folder / "project", effects.parent):
        place.mkdir()
    plugin = make_plugin(folder / "given", "Tally", permissions={"write": [str(effects.parent)]})
    (plugin / "main.py").write_text(TALLY.format(effects=str(effects), counted=COUNTED))
    async with relaying() as relay, provider((faults := LastRoundFaults(relay)).answer) as upstream:
        settings = {
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-of-the-provider",
            "TOOLYARD_APPROVAL_MODE": approval_mode,
            "TOOLYARD_ALLOWED_HOSTS": relay.host,
        }
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "toolyard", "serve", "--port", "0", "--home", str(folder / "home")),
                *("--project", str(folder / "project"), "--plugins", str(folder / "given"), "--trust"),
                env={**os.environ, **settings},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                url = (await process.stdout.readline()).decode().split()[-1]
            relay.port = int(url.rpartition(":")[2])
            yield Toolyard(url, folder / "home", effects, folder / "log", faults)
        finally:
            process.kill()
            await process.communicate()
