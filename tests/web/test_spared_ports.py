"""Tasks in a network of their own, whose server is killed and started again: they still call back."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import free_port
from tests.plugins.folders import make_plugin
from tests.waiting import wait_for_value, wait_until
from tests.web.server_process import ServerProcess, start_server
from toolyard.confinement.level import can_enter_namespaces
from toolyard.process_numbers import process_start_time

pytestmark = [
    pytest.mark.requirement("network:restart"),
    pytest.mark.skipif(not can_enter_namespaces(), reason="this system allows no network of its own"),
    pytest.mark.skipif(not shutil.which("curl"), reason="the plugin calls back with curl"),
]
# It waits until it may call back, and does that with curl, which nobody here wrote; it also asks the host it declared.
LATE = """
import json, os, subprocess, time
own = os.environ["HOME"]
def ask(*words):
    done = subprocess.run(["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", *words],
                          capture_output=True, text=True)
    return done.stdout + done.stderr
open(own + "/pid", "w").write(str(os.getpid()))
print(json.dumps({"status": "success", "result": "Wait for {{VCP_ASYNC_RESULT::Late::r1}}."}), flush=True)
while not os.path.exists(own + "/go"):
    time.sleep(0.05)
asked = [ask("--noproxy", "", address) for address in json.load(open(own + "/go"))]
body = json.dumps({"requestId": "r1", "status": "Succeed", "message": "done", "asked": asked})
said = ask("-H", "Content-Type: application/json", "-d", body, os.environ["CALLBACK_BASE_URL"] + "/Late/r1")
open(own + "/said", "w").write(said)
"""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """The address of a server on this machine, which is no part of Toolyard."""
    port = free_port()
    words = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path), str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield f"http://127.0.0.1:{port}/"
        process.kill()


async def start_task(server: ServerProcess) -> int:
    """Start the task; return the pid of its process."""
    status, envelope = await server.request("POST", "/v1/tools/Late", {"prompt": "x"})
    assert (status, envelope["status"], envelope["context"]["confinement"]) == (200, "success", "full")
    return int((server.home / "plugin-data/Late/pid").read_text())


async def wait_for_task(server: ServerProcess) -> dict[str, object]:
    async def get_task() -> dict[str, object]:
        return dict((await server.request("GET", "/v1/tasks/Late::r1"))[1])

    task = await wait_for_value(get_task, lambda task: task["state"] != "waiting_callback")
    assert task is not None
    return task


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
async def test_a_task_without_a_network_calls_back_to_the_next_server(tmp_path: Path, number: signal.Signals) -> None:
    folder = make_plugin(tmp_path / "given", "Late", pluginType="asynchronous", permissions={"network": []})
    (folder / "main.py").write_text(LATE)
    words = ("--plugins", str(tmp_path / "given"), "--trust", "--port", str(free_port()))
    async with start_server(tmp_path, *words) as first:
        pid = await start_task(first)
        first.signal(number)
        await first.wait_for_end()
    own = tmp_path / "home/plugin-data/Late"
    assert process_start_time(pid) != 0
    async with start_server(tmp_path, *words) as second:
        (own / "go").write_text("[]")
        task = await wait_for_task(second)
        assert task["state"] == "succeeded"
        await wait_until(lambda: (own / "said").exists() and (own / "said").read_text() == "200")
    await wait_until(lambda: process_start_time(pid) == 0)


async def test_a_callback_waits_while_the_server_starts_again_and_declared_hosts_stay_reachable(
    tmp_path: Path, web: str
) -> None:
    hosts = [web.split("/")[2]]
    folder = make_plugin(tmp_path / "given", "Late", pluginType="asynchronous", permissions={"network": hosts})
    (folder / "main.py").write_text(LATE)
    words = ("--plugins", str(tmp_path / "given"), "--trust", "--port", str(free_port()))
    async with start_server(tmp_path, *words) as first:
        await start_task(first)
        first.signal(signal.SIGKILL)
        await first.wait_for_end()
    own = tmp_path / "home/plugin-data/Late"
    (own / "go").write_text(json.dumps([web, "http://192.0.2.1/"]))
    async with start_server(tmp_path, *words) as second:
        task = await wait_for_task(second)
    assert task["state"] == "succeeded"
    result = task["result"]
    assert isinstance(result, dict)
    assert result["asked"] == ["200", "403"], "a proxy of the same hosts is still there, and closed for others"
