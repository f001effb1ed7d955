"""What the client matrix needs: a server of its own process, with a provider whose model does what a case says."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.clients.install import HERE
from tests.clients.model import Case, Model
from tests.clients.relay import relaying
from tests.gateway.native_providers import SETTINGS, Protocol
from tests.gateway.upstream import provider
from tests.plugins.folders import make_plugin
from tests.waiting import wait_until

DRIVERS: Final = HERE / "drivers"
COUNTED: Final = "Counted."
PATIENCE_S: Final = 300
TALLY: Final = """import json, sys
case = json.loads(sys.stdin.read())["case"]
with open({effects!r}, "a") as file:
    file.write(case + "\\n")
print(json.dumps({{"status": "success", "result": {counted!r}}}))
"""


@dataclass
class Toolyard:
    """``toolyard serve`` as a person starts it, with the tool Tally and a log that can be read."""

    url: str
    home: Path
    effects: Path
    log: Path
    model: Model

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
        await wait_until(lambda: any(request in line for line in self._read_log()), within_s=PATIENCE_S)
        lines = [json.loads(line) for line in self._read_log() if line.startswith("{")]
        return [line["status"] for line in lines if line.get("path") == path]

    def _read_log(self) -> list[str]:
        """Return the whole lines of the log; the newest may still be being written."""
        return self.log.read_text().rpartition("\n")[0].splitlines()

    async def waiting(self) -> list[dict[str, Any]]:
        """Return the approvals that nobody has answered."""
        rows: list[dict[str, Any]] = (await self.request("GET", "/v1/approvals?state=pending"))["data"]
        return rows


@asynccontextmanager
async def serving_tally(
    folder: Path, *, approval_mode: str = "auto", protocol: Protocol = "chat"
) -> AsyncIterator[Toolyard]:
    """Serve with a provider that speaks ``protocol``."""
    effects = folder / "effects" / "tally.txt"
    for place in (folder / "project", effects.parent):
        place.mkdir()
    plugin = make_plugin(folder / "given", "Tally", permissions={"write": [str(effects.parent)]})
    (plugin / "main.py").write_text(TALLY.format(effects=str(effects), counted=COUNTED))
    async with relaying() as relay, provider((model := Model(protocol, relay)).answer) as upstream:
        settings = {
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-of-the-provider",
            "TOOLYARD_UPSTREAM_PROTOCOL": SETTINGS[protocol],
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
            yield Toolyard(url, folder / "home", effects, folder / "log", model)
        finally:
            process.kill()
            await process.communicate()
