"""The network of a confined plugin, with real programs: what it reaches, and what it does not."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.plugins.yards import PluginYard
from tests.programs import find_program
from tests.waiting import wait_for_value
from toolyard.confinement.level import can_enter_namespaces
from toolyard.protocol.records.task_record import TaskState

pytestmark = pytest.mark.skipif(not can_enter_namespaces(), reason="this system allows no network of its own")

# It asks curl, which nobody here wrote, for each address, and tries plain sockets.
CLIENT = """
import json, socket, subprocess, sys
said = json.load(sys.stdin)
def ask(*words):
    done = subprocess.run(["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", *words],
                          capture_output=True, text=True)
    return done.stdout
def open_socket(kind, address):
    try:
        with socket.socket(socket.AF_INET, kind) as opened:
            opened.settimeout(5)
            opened.connect(address)
            opened.send(b"x")
    except OSError as error:
        return error.strerror or type(error).__name__
    return "open"
port = int(said["port"])
print(json.dumps({"status": "success", "result": {
    "declared": ask(f"http://localhost:{port}/"),
    "by_proxy": ask("--noproxy", "", f"http://127.0.0.1:{port}/"),
    "other_port": ask("--noproxy", "", f"http://127.0.0.1:{port + 1}/"),
    "other_host": ask("http://example.com/"),
    "tcp": open_socket(socket.SOCK_STREAM, ("192.0.2.1", 80)),
    "udp": open_socket(socket.SOCK_DGRAM, ("192.0.2.1", 53)),
}}))
"""
CALLER = """
import json, os, sys, urllib.request
json.loads(sys.stdin.read() or "{}")
message = "Wait for {{VCP_ASYNC_RESULT::Late::r1}}."
print(json.dumps({"status": "success", "result": {"requestId": "r1"}, "messageForAI": message}), flush=True)
body = json.dumps({"requestId": "r1", "status": "Succeed", "message": "done"}).encode()
address = os.environ["CALLBACK_BASE_URL"] + "/Late/r1"
urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": "application/json"}))
"""


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.requirement("network:own-network")
@pytest.mark.parametrize("calls", [1, 3], ids=["cold", "warm"])
async def test_a_plugin_with_a_list_of_hosts_reaches_these_and_nothing_else(
    tmp_path: Path, port: int, calls: int
) -> None:
    find_program("curl")
    async with PluginYard(tmp_path) as yards:
        yards.add("Client", CLIENT, permissions={"network": [f"localhost:{port}", f"127.0.0.1:{port}"]})
        outcome = await yards.call("Client", port=str(port))
        for _ in range(calls - 1):
            outcome = await yards.call("Client", port=str(port))
    assert outcome.envelope.data == {
        "declared": "200",
        "by_proxy": "200",
        "other_port": "403",
        "other_host": "403",
        "tcp": "Network is unreachable",
        "udp": "Network is unreachable",
    }
    assert outcome.envelope.context["confinement"] == "full"


@pytest.mark.requirement("network:own-network")
async def test_a_plugin_without_a_network_has_no_sockets(tmp_path: Path, port: int) -> None:
    find_program("curl")
    async with PluginYard(tmp_path) as yards:
        yards.add("Client", CLIENT, permissions={"network": []})
        outcome = await yards.call("Client", port=str(port))
    assert set(outcome.envelope.data.values()) == {"000", "Permission denied"}


@pytest.mark.requirement("network:own-network")
async def test_an_asynchronous_plugin_without_a_network_still_calls_back(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Late", CALLER, pluginType="asynchronous", permissions={"network": []})
        outcome = await yards.call("Late")
        assert outcome.envelope.data["requestId"] == "r1"

        task = await wait_for_value(
            lambda: yards.yard.state.tasks.get("Late::r1"), lambda task: task is not None and task.is_ended
        )
    assert task is not None
    assert task.state is TaskState.SUCCEEDED
