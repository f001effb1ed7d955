"""What real plugins need of the machine works without declaring it."""

import json
import sys
from pathlib import Path

import pytest

from tests.plugins.yards import PluginYard

pytestmark = pytest.mark.requirement("confinement:files")

POOL = """
import json, multiprocessing
from concurrent.futures import ProcessPoolExecutor
fork = multiprocessing.get_context("fork")  # from Python 3.14 on the default needs a Unix socket
with fork.Pool(2) as pool, ProcessPoolExecutor(2, fork) as executor:
    sums = [*pool.map(abs, [-1, -2]), *executor.map(abs, [-3])]
print(json.dumps({"status": "success", "result": str(sums)}))
"""
OTHER_PROGRAM = """
import errno, json, os, subprocess
program = os.environ["TOOL"]
done = subprocess.run([program], capture_output=True, text=True)
try:
    open(program, "ab").close()
    written = "written"
except OSError as error:  # under root the file system is read-only
    assert error.errno in (errno.EACCES, errno.EROFS)
    written = "kept"
print(json.dumps({"status": "success", "result": f"{done.stdout.strip()} {written}{done.stderr}"}))
"""
TEMPORARY = """
import json, pathlib, sqlite3, subprocess, tempfile
with tempfile.TemporaryDirectory() as folder:
    sqlite3.connect(f"{folder}/one.db").execute("create table one (two)").connection.commit()
    subprocess.run(["sh", "-c", "x=$(mktemp); echo hi > $x; rm $x"], check=True)
pathlib.Path.home().joinpath("kept").write_text("x")
print(json.dumps({"status": "success", "result": "done"}))
"""


async def test_several_processes_share_their_locks(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Pool", POOL)
        assert (await yards.call("Pool")).envelope.text == "[1, 2, 3]"


async def test_a_program_that_its_settings_name_is_started_and_never_written(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        tool = tmp_path / "tool" / "bin" / "tool"
        for folder in (tool.parent, tmp_path / "tool" / "lib"):
            folder.mkdir(parents=True)
        (tmp_path / "tool" / "lib" / "words").write_text("ran")
        tool.write_text('#!/bin/sh\ncat "$(dirname "$0")/../lib/words"\n')
        tool.chmod(0o755)
        yards.add("Other", OTHER_PROGRAM, config=f"TOOL={tool}")
        assert (await yards.call("Other")).envelope.text == "ran kept"


async def test_temporary_files_a_home_and_other_programs_are_there(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Temporary", TEMPORARY)
        assert (await yards.call("Temporary")).envelope.text == "done"


async def test_an_environment_of_its_own_does_not_open_other_folders(tmp_path: Path) -> None:
    """It may write its own folder, and so the file by which a virtual environment names its Python."""
    secret = tmp_path / "secrets" / "key"
    secret.parent.mkdir()
    secret.write_text("secret")
    code = f"import json; print(json.dumps({{'status': 'success', 'result': open({str(secret)!r}).read()}}))"
    async with PluginYard(tmp_path) as yards:
        folder = yards.add("Own", code)
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
        (folder / ".venv" / "pyvenv.cfg").write_text(f"home = {secret.parent}\n")
        outcome = await yards.call("Own")
        assert "Permission denied" in json.dumps(outcome.envelope.data)
