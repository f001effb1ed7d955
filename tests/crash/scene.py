"""The place of a crash: a project, a home, three plugins that leave traces, and a host that works until it dies."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes import free_port
from tests.plugins.folders import make_plugin
from toolyard.config import load_config
from toolyard.engine.clock import SystemClock
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
LIMIT_S = 180.0  # for a host to end, on a busy machine
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}

COUNT = """
said=$(cat)
case "$said" in *}) printf '%s\\n' "$said" >> ../../notes/counter;; esac  # a host that died said nothing, or half
echo '{"status": "success", "result": "counted"}'
"""
HANG = COUNT.replace("echo", "sleep 600; echo")
SLOW = """
import json, os, socket, sys, time
text = sys.stdin.read()
said = json.loads(text)
name, then = said["n"], said["then"]
def append(file, line):
    fd = os.open("../../notes/" + file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode() + b"\\n")
    os.close(fd)
def call_back():
    base = os.environ["CALLBACK_BASE_URL"].removeprefix("http://")
    where, _, path = base.partition("/")
    port = int(where.partition(":")[2])
    body = json.dumps({"status": "Succeed", "n": name}).encode()
    head = "POST /%s/Slow/%s HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n"
    for _ in range(4000):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as talk:
                talk.sendall((head % (path, name, len(body))).encode() + body)
                answer = talk.makefile("rb").readline().split()
            if len(answer) > 1:
                append("callbacks", json.dumps([name, int(answer[1])]))
                return
        except OSError:
            pass
        time.sleep(0.05)
append("counter", text)
if then == "early":
    call_back()
print(json.dumps({"status": "success", "result": "{{VCP_ASYNC_RESULT::Slow::%s}}" % name}), flush=True)
if then == "call back":
    call_back()
for _ in range(1200 if then == "wait" else 0):
    time.sleep(0.1)
"""


@dataclass
class MovingClock(SystemClock):
    """The real clock, plus as much as it was moved by."""

    ahead_s: float = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_s)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a host ended, and what it had acknowledged by then."""

    code: int
    acks: list[dict[str, Any]]
    errors: str

    @property
    def killed(self) -> bool:
        return self.code == -9

    def of(self, what: str) -> list[dict[str, Any]]:
        return [ack for ack in self.acks if ack["what"] == what]


@dataclass(frozen=True, slots=True)
class Scene:
    place: Path
    port: int = field(default_factory=free_port)

    @property
    def project(self) -> Path:
        return self.place / "project"

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def database(self) -> Path:
        return self.home / "state.db"

    def lay_out(self) -> "Scene":
        self.project.mkdir(parents=True)
        (self.place / "notes").mkdir()
        permissions = {"network": "any", "write": [str(self.place / "notes")]}
        for name, code, kind in (("Count", COUNT, "synchronous"), ("Hang", HANG, "synchronous")):
            folder = make_plugin(
                self.place / "given", name, pluginType=kind, entryPoint={"type": "any", "command": "sh main.sh"},
                communication={"protocol": "stdio", "timeout": 600_000}, permissions=permissions,
            )  # fmt: skip
            (folder / "main.sh").write_text(code)
        folder = make_plugin(
            self.place / "given", "Slow", pluginType="asynchronous",
            entryPoint={"type": "python", "command": "python -I -S main.py"},
            communication={"protocol": "stdio", "timeout": 600_000}, permissions=permissions,
        )  # fmt: skip
        (folder / "main.py").write_text(SLOW)
        return self

    def yard(self, clock: MovingClock) -> Yard:
        """A Yard whose asynchronous children outlive it, and call back at an address that stays the same."""
        config = load_config(self.project, self.home, plugin_folders=[self.place / "given"], trusts_given=True)
        return Yard(config, clock=clock, outside=HostOptions(callback_base=self._base, outlives=True))

    def lines(self, name: str) -> list[Any]:
        """What the plugins wrote down in a file, one JSON text a line."""
        file = self.place / "notes" / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A host that works here; see ``host`` for its arguments."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.crash.host", str(self.place), str(self.port), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT,
        )  # fmt: skip

    def run(self, *arguments: str) -> Ended:
        return ended(self.start(*arguments))

    async def _base(self) -> str:
        return f"http://127.0.0.1:{self.port}/plugin-callback/~"


def ended(host: "subprocess.Popen[str]", before: str = "") -> Ended:
    """Wait for the end of a host; ``before`` is what was read of it already."""
    with host:
        try:
            out, errors = host.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            host.kill()
            raise
    lines = (before + out).split("\n")[:-1]  # a line without its end was not said
    acks: list[Mapping[str, Any]] = [json.loads(line) for line in lines]
    return Ended(host.returncode, [dict(ack) for ack in acks], errors)
