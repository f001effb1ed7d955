"""Runs shipped plugins as plain child processes, and the loopback servers they talk to."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PLUGINS = Path(__file__).parents[2] / "plugins"
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a child printed before it ended."""

    answer: dict[str, Any]
    code: int
    stderr: str


def manifest(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PLUGINS / folder / "plugin-manifest.json").read_text("utf-8"))
    return found


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The minimal environment of a plugin."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "SYSTEMROOT") if key in os.environ}
    return {**kept, "HOME": str(home), "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}


def command(folder: str) -> list[str]:
    """The command line of the manifest, with our interpreter for ``python``."""
    program, *arguments = str(manifest(folder)["entryPoint"]["command"]).split()
    assert program == "python"
    return [sys.executable, *arguments]


def run(folder: str, stdin: Any, home: Path, extra: Mapping[str, str] | None = None) -> Said:
    """One call from stdin to exit."""
    sent = stdin if isinstance(stdin, bytes) else json.dumps(stdin, ensure_ascii=False).encode()
    done = subprocess.run(
        command(folder),
        input=sent,
        cwd=PLUGINS / folder,
        env=environment(home, extra),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    stderr = done.stderr.decode("utf-8", "replace")
    assert done.stdout, stderr
    return Said(json.loads(done.stdout), done.returncode, stderr)


@contextmanager
def started(folder: str, stdin: Any, home: Path, extra: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """An asynchronous child: its stdin is sent and closed, the rest is up to the test."""
    child = subprocess.Popen(
        command(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PLUGINS / folder,
        env=environment(home, extra),
    )
    try:
        assert child.stdin is not None
        child.stdin.write(json.dumps(stdin).encode())
        child.stdin.close()
        yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdout, child.stderr):
            assert pipe is not None
            pipe.close()


def receipt(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The first line of stdout."""
    assert child.stdout is not None
    found: dict[str, Any] = json.loads(child.stdout.readline())
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """One request a loopback server got."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(frozen=True, slots=True)
class Reply:
    """What it answers; a dict becomes JSON."""

    body: dict[str, Any] | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Answering = Callable[[Asked], Reply]


@dataclass(frozen=True, slots=True)
class Server:
    """A real HTTP server on loopback, and what it was asked, in order."""

    url: str
    asked: "queue.Queue[Asked]"

    def next(self) -> Asked:
        return self.asked.get(timeout=PATIENCE)


@contextmanager
def serving(answer: Answering) -> Iterator[Server]:
    """Answers every request with what the function says."""
    asked: queue.Queue[Asked] = queue.Queue()

    class Answers(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Asked(self.path, dict(self.headers.items()), body)
            reply = answer(request)
            asked.put(request)  # first: who has the answer may count the requests
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(raw)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET = _answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Server(f"http://127.0.0.1:{server.server_port}", asked)
        finally:
            server.shutdown()
            thread.join()
