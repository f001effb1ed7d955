"""A program that its confinement stopped says so, and how its owner allows more."""

from pathlib import Path

import pytest

from tests.plugins.yards import PluginYard
from tests.waiting import wait_for_value
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.plugins.advice import AccessDenial, find_denial
from toolyard.plugins.long_work import asynchronous
from toolyard.protocol.access import ConfinementLevel
from toolyard.protocol.records.task_record import KIND, Task, TaskState
from toolyard.protocol.store import Query

pytestmark = [
    pytest.mark.requirement("confinement:denied"),
    pytest.mark.skipif(
        measure_confinement(Profile()).level is ConfinementLevel.NONE, reason="this machine confines nothing"
    ),
]
FILES, NETWORK = AccessDenial.FILES, AccessDenial.NETWORK
FETCHER = """
import json, urllib.request
try:
    urllib.request.urlopen("http://192.0.2.1/", timeout=5)
except OSError as error:
    print(json.dumps({"status": "error", "error": f"could not fetch it: {error}"}))
"""
WORKER = """
import os
print('{"status": "success", "result": "Submitted: {{VCP_ASYNC_RESULT::Worker::job}}"}', flush=True)
os.listdir(os.environ["PROJECT_BASE_PATH"])
"""
READER = """
import json, os
try:
    os.listdir(os.environ["PROJECT_BASE_PATH"])
except OSError as error:
    print(json.dumps({"status": "error", "error": str(error)}))
"""


@pytest.mark.parametrize(
    ("text", "limited", "denial"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/home/x/file'", True, FILES),
        ("Error: EACCES: permission denied, open '/home/x/file'", False, FILES),
        ("OSError: [Errno 30] Read-only file system: '/home/x'", False, FILES),
        ("mkdir: cannot create directory: Operation not permitted", False, FILES),
        ("<urlopen error [Errno 101] Network is unreachable>", True, NETWORK),
        ("connect ENETUNREACH 192.0.2.1:443", True, NETWORK),
        ("getaddrinfo EAI_AGAIN api.example.com", True, NETWORK),
        ("curl: (6) Could not resolve host: api.example.com", True, NETWORK),
        ("<urlopen error [Errno 13] Permission denied>", True, NETWORK),
        ("Toolyard's proxy: the plugin may not connect to example.com:443", True, NETWORK),
        ("connect ENETUNREACH 192.0.2.1:443", False, None),
        ("the file does not exist", True, None),
    ],
)
def test_signs_of_missing_access_are_read_from_what_a_program_printed(
    text: str, limited: bool, denial: AccessDenial | None
) -> None:
    assert find_denial(("nothing", text), limited_network=limited) is denial


async def test_a_plugin_whose_network_is_closed_says_how_it_is_opened(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Fetcher", FETCHER, permissions={"network": []})
        yards.add("Listed", FETCHER, permissions={"network": ["example.com"]})
        for name in ("Fetcher", "Listed"):
            text = (await yards.call(name)).envelope.text
            assert "permissions.network in its manifest names those it may reach" in text
            assert f"toolyard plugin allow {name} --access wide" in text


async def test_a_plugin_that_reads_what_it_may_not_says_how_it_may(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Reader", READER, permissions={"network": []})
        text = (await yards.call("Reader")).envelope.text
    assert "something that its access does not include" in text
    assert "toolyard plugin allow Reader --access wide" in text


async def test_an_asynchronous_plugin_that_its_access_stopped_says_so_in_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "CALLBACK_GRACE_S", 0.1)
    async with PluginYard(tmp_path) as yards:
        yards.add("Worker", WORKER, pluginType="asynchronous", permissions={"network": []})
        assert (await yards.call("Worker")).envelope.error is None

        async def read_task() -> Task:
            (record,) = await yards.yard.state.store.find(KIND, Query(), limit=2)
            return Task.from_record(record)

        task = await wait_for_value(read_task, lambda one: one.is_ended)
    assert task.state is TaskState.FAILED
    assert "ended without a callback. Its stderr ends with: PermissionError" in task.message
    assert "something that its access does not include" in task.message
    assert "toolyard plugin allow Worker --access wide" in task.message
