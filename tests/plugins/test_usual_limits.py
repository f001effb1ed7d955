"""A plugin that declares no limits has those of the settings."""

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.children import LINUX
from tests.plugins.yards import PluginYard
from tests.waiting import wait_until
from toolyard.plugins.process.warm.warm_starter import WarmStarter
from toolyard.protocol.tool import Outcome

pytestmark = [
    pytest.mark.requirement("plugin:usual-limits", "s:S-88"),
    pytest.mark.skipif(not LINUX, reason="limits of other processes are set on Linux only"),
]
MIB = 2**20
SETTINGS = "plugin_memory_mib = 300\nplugin_cpu_minutes = 7\nplugin_file_mib = 3\n"
TELLS = """
import json, resource
names = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_CPU", "RLIMIT_FSIZE")
told = {name: resource.getrlimit(getattr(resource, name)) for name in names}
print(json.dumps({"status": "success", "result": json.dumps(told)}))
"""
GREEDY = """
kept = [bytearray(64 * 2**20) for _ in range(20)]
print('{"status": "success", "result": "it has 1.2 GiB"}')
"""
WRITER = """
import os
with open(os.path.join(os.environ["HOME"], "large"), "wb") as file:
    for _ in range(20): file.write(bytes(2**20))
print('{"status": "success", "result": "it has written 20 MiB"}')
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(SETTINGS)
    return tmp_path


def read_limits(outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(outcome.envelope.text)
    return told


async def test_what_a_manifest_does_not_say_the_settings_do(place: Path) -> None:
    none = [resource.RLIM_INFINITY] * 2
    async with PluginYard(place) as yards:
        yards.add("Silent", TELLS)
        yards.add("Cold", TELLS, warmStart=False)
        yards.add("Own", TELLS, limits={"memoryMb": 2000, "cpuSeconds": 9, "fileSizeMb": 5})
        usual = {"RLIMIT_DATA": [300 * MIB] * 2, "RLIMIT_CPU": [420, 421], "RLIMIT_FSIZE": [3 * MIB] * 2}
        for name in ("Silent", "Cold"):
            assert read_limits(await yards.call(name)) == {"RLIMIT_AS": none, **usual}
        starter = yards.yard.plugins.host.starter
        assert isinstance(starter, WarmStarter)
        await wait_until(lambda: bool(starter.servers.spares))
        assert read_limits(await yards.call("Silent")) == {"RLIMIT_AS": none, **usual}
        own = {"RLIMIT_AS": [2000 * MIB] * 2, "RLIMIT_CPU": [9, 10], "RLIMIT_FSIZE": [5 * MIB] * 2}
        assert read_limits(await yards.call("Own")) == {"RLIMIT_DATA": none, **own}


async def test_a_plugin_that_takes_more_than_the_settings_allow_is_stopped(place: Path) -> None:
    async with PluginYard(place) as yards:
        yards.add("Greedy", GREEDY)
        yards.add("Writer", WRITER)
        greedy, writer = await asyncio.gather(yards.call("Greedy"), yards.call("Writer"))
    assert "MemoryError" in greedy.envelope.text
    assert "a larger file than it may" in writer.envelope.text or "File too large" in writer.envelope.text
