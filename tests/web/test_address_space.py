"""A server whose address space is limited (ulimit -v) refuses calls, but neither hangs nor dies."""

import _thread
import asyncio
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin
from tests.web.server_process import ServerProcess, start_server
from toolyard import threads
from toolyard.process_memory import RESERVE

pytestmark = [
    pytest.mark.requirement("server:address-space"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how much is left"),
]
ECHO = 'import json, sys\nprint(json.dumps({"status": "success", "result": json.load(sys.stdin)["text"]}))'
LIMITED = ("sh", "-c", 'ulimit -S -v 1000000; exec "$@"', "sh")  # far more than it takes, so that it knows of a limit
SHORT = "the server is short of memory"


def set_free_bytes(server: ServerProcess, free: int) -> None:
    """Set what a server may still take."""
    pid = server.process.pid
    used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (used + free, resource.RLIM_INFINITY))


async def call_many(server: ServerProcess) -> list[dict[str, Any]]:
    """Call plugins and built-in tools, all at once."""
    calls = [
        ("Echo", {"text": "hi"}),
        ("Cold", {"text": "hi"}),
        ("Read", {"path": "a.txt"}),
        ("Grep", {"pattern": "x"}),
    ]
    async with asyncio.timeout(120):
        requests = (server.request("POST", f"/v1/tools/{tool}", arguments) for tool, arguments in calls * 10)
        return [envelope for _, envelope in await asyncio.gather(*requests)]


@pytest.mark.parametrize("free", [RESERVE // 4, RESERVE + 2**20, RESERVE + 24 * 2**20])
async def test_every_call_ends_when_the_address_space_of_the_server_does(tmp_path: Path, free: int) -> None:
    (make_plugin(tmp_path / "given", "Echo") / "main.py").write_text(ECHO)
    (make_plugin(tmp_path / "given", "Cold", warmStart=False) / "main.py").write_text(ECHO)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("x" * 99 + "\n" + "y" * 2**20)
    options = ("--plugins", str(tmp_path / "given"), "--trust")
    async with start_server(tmp_path, *options, wrapper=LIMITED) as server:
        assert all(envelope.get("error") is None for envelope in await call_many(server))
        set_free_bytes(server, free)
        failed = [envelope["error"]["message"] for envelope in await call_many(server) if envelope.get("error")]
        assert all(SHORT in message or "this machine is at a limit" in message for message in failed)
        assert len(failed) == 40 or free > RESERVE
        set_free_bytes(server, 2**30)
        assert all(envelope.get("error") is None for envelope in await call_many(server))
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 60) == 0


def test_a_thread_that_ends_without_a_word_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", lambda _run, _arguments: None)  # its memory was refused
    with pytest.raises(OSError, match="Cannot allocate memory"):
        threads.run_in_new_thread(lambda: None)


def test_a_thread_that_does_not_start_is_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        threads.run_in_new_thread(lambda: None)


def test_work_in_a_new_thread_tells_its_result_or_its_error() -> None:
    assert threads.run_in_new_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        threads.run_in_new_thread(lambda: 1 // 0)
