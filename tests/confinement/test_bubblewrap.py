"""Processes of their own by the real bubblewrap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.yards import PluginYard
from toolyard.confinement import landlock, level
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.confinement.start import can_use_bubblewrap, start_process
from toolyard.protocol.access import ConfinementLevel

needs_bubblewrap = pytest.mark.skipif(
    not can_use_bubblewrap(), reason="bubblewrap is not installed (Debian: apt install bubblewrap) or may not work here"
)
LIST_PROCESSES = """
import json, os, sys
sys.stdin.read()
pids = [name for name in os.listdir("/proc") if name.isdigit()]
print(json.dumps({"status": "success", "result": {"processes": len(pids)}}))
"""


@needs_bubblewrap
@pytest.mark.requirement("confinement:own-processes")
def test_a_program_sees_no_processes_but_its_own() -> None:
    profile = Profile(read=list_program_trees(sys.executable), own_processes=True)
    script = "import os; print(os.path.exists('/proc/%d'), len([n for n in os.listdir('/proc') if n.isdigit()]) < 5)"
    started = start_process(
        profile, [sys.executable, "-I", "-c", script % os.getpid()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    out, _ = started.process.communicate(timeout=60)
    assert started.channel is not None
    started.channel.close()
    assert out.split() == [b"False", b"True"]


@needs_bubblewrap
@pytest.mark.requirement("confinement:own-processes")
async def test_the_setting_gives_plugins_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLYARD_BUBBLEWRAP", "true")
    async with PluginYard(tmp_path) as yards:
        yards.add("Lister", LIST_PROCESSES)
        outcome = await yards.call("Lister")
    processes = outcome.envelope.data["processes"]
    assert isinstance(processes, int)
    assert processes < 5
    assert outcome.envelope.context["confinement"] == "full"


@needs_bubblewrap
@pytest.mark.requirement("confinement:own-processes")
def test_on_an_older_kernel_it_makes_up_for_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "interface_version", lambda: landlock.VERSION_SCOPES - 1)
    level.list_missing_everywhere.cache_clear()
    try:
        assert measure_confinement(Profile()).level is ConfinementLevel.FILES
        assert measure_confinement(Profile(own_processes=True)).level is ConfinementLevel.FULL
    finally:
        level.list_missing_everywhere.cache_clear()


@pytest.mark.requirement("confinement:own-processes")
def test_without_bubblewrap_the_level_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "can_use_bubblewrap", lambda: False)
    level.list_missing_everywhere.cache_clear()
    try:
        missing = measure_confinement(Profile(own_processes=True)).missing
    finally:
        level.list_missing_everywhere.cache_clear()
    assert "bubblewrap is not installed, or this system does not let it work" in missing
