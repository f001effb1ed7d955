"""A plugin that is started warm gives the same result as one that is started cold, whatever it looks at."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.children import LINUX
from tests.plugins.warm_shapes import BESIDE, NODE, SHAPES
from tests.waiting import wait_until
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdChild, ColdStarter
from toolyard.plugins.process.launch import ChildProcess, Launch, Starter
from toolyard.plugins.process.pipes import PipeReader, PipeWriter
from toolyard.plugins.process.warm.warm_starter import WarmStarter

pytestmark = [
    pytest.mark.requirement("plugin:warm:same"),
    pytest.mark.skipif(not LINUX, reason="warm starts need Linux"),
]
STDIN = '{"a": "é"}\nsecond line\n'.encode()
PER_CALL = {"CALL": "first"}
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
ANOTHER = Path("/usr/bin/python3")
TELLING = ("surroundings", "stdin_json", "stdout_unwritable", "exit_functions", "error_chained", "error_own_hook",
           "file_left_open", "object_dies_last", "processes", "asyncio", "local_modules", "native_output")  # fmt: skip

Ran = tuple[int, str, str]


@asynccontextmanager
async def starters() -> AsyncIterator[tuple[Children, ColdStarter, WarmStarter]]:
    children = Children()
    cold = ColdStarter(children)
    warm = WarmStarter(children, cold)
    try:
        yield children, cold, warm
    finally:
        await warm.close()
        await children.close()


async def run(children: Children, child: ChildProcess, stdin: bytes = STDIN) -> Ran:
    """All it prints, to the very end."""
    output: tuple[list[bytes], list[bytes]] = ([], [])
    readers = [PipeReader(child.stdout, output[0].append), PipeReader(child.stderr, output[1].append)]
    writer = PipeWriter(child.stdin, stdin)
    try:
        async with asyncio.timeout(60):
            code = await child.wait()
            for reader in readers:
                await reader.ended.wait()
    finally:
        writer.close()
        for reader in readers:
            reader.close()
        children.end(child.pid)
    out, err = (b"".join(parts).decode("utf-8", "surrogateescape") for parts in output)
    return code, out, err


async def call(children: Children, starter: Starter, launch: Launch, stdin: bytes = STDIN) -> Ran:
    return await run(children, await starter.spawn(launch, PER_CALL), stdin)


def folder_with(folder: Path, name: str, source: str) -> Path:
    for path, text in {**BESIDE, name: source}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    if "calendar" not in source:
        (folder / "calendar.py").unlink()
    return folder


def launch_of(folder: Path, *argv: str) -> Launch:
    environment = {"PATH": os.defpath, "HOME": str(folder), "SOME": "setting", "PYTHONDONTWRITEBYTECODE": "1"}
    return Launch(argv=argv, cwd=folder, profile=None, environment=environment, warm=True, version="1")


async def stand_by(children: Children, warm: WarmStarter, launch: Launch) -> None:
    """Wait until an interpreter is at the gate for the next call."""
    await call(children, warm, launch)
    key = warm.launch_key(launch, PER_CALL)
    await wait_until(lambda: warm.standbys.count_ready(key) > 0)


async def make_warm(children: Children, warm: WarmStarter, launch: Launch) -> bool:
    """The first call starts cold; then wait for what it has made. Whether that is a fork server."""
    await call(children, warm, launch)
    key = warm.launch_key(launch, PER_CALL)
    await wait_until(lambda: warm.servers.is_ready(key) or bool(warm.servers.unfit_reason(key)))
    if not warm.servers.is_ready(key):
        await stand_by(children, warm, launch)
    return warm.servers.is_ready(key)


def left_behind(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class Refuses:
    """A stand-in for the cold starter that refuses: a warm start that falls back is found out."""

    async def close(self) -> None:
        """Nothing was started."""

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ColdChild:
        raise AssertionError("it was started cold")


@pytest.mark.parametrize("name", SHAPES)
async def test_a_python_script_cannot_tell_that_it_was_forked(name: str, tmp_path: Path) -> None:
    await _compare(name, sys.executable, tmp_path)


@pytest.mark.skipif(not ANOTHER.exists(), reason="there is no other Python")
@pytest.mark.parametrize("name", TELLING)
async def test_a_script_of_another_python_cannot_tell(name: str, tmp_path: Path) -> None:
    await _compare(name, str(ANOTHER), tmp_path)


async def _compare(name: str, python: str, tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", SHAPES[name]), python, "main.py", "an", "argument")
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        files = left_behind(tmp_path)
        assert await make_warm(children, warm, launch) is (name != "local_module_shadows")
        (tmp_path / "left").unlink(missing_ok=True)
        warm.cold = Refuses()
        assert await call(children, warm, launch) == expected
        assert left_behind(tmp_path) == files
        if warm.servers.pids:
            assert await call(children, warm, launch) == expected


@pytest.mark.parametrize("name", SHAPES if SOAK else list(SHAPES)[::3])
async def test_a_python_script_cannot_tell_that_its_interpreter_had_waited(name: str, tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", SHAPES[name]), sys.executable, "main.py", "an", "argument")
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        files = left_behind(tmp_path)
        warm.servers.mark_unfit(warm.launch_key(launch, PER_CALL), "for this test")
        await stand_by(children, warm, launch)
        (tmp_path / "left").unlink(missing_ok=True)
        warm.cold = Refuses()
        assert await call(children, warm, launch) == expected
        assert left_behind(tmp_path) == files


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
@pytest.mark.parametrize("name", NODE)
async def test_a_node_script_cannot_tell(name: str, tmp_path: Path) -> None:
    node = str(shutil.which("node"))
    launch = launch_of(folder_with(tmp_path, name, NODE[name]), node, name, "argument")
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        await stand_by(children, warm, launch)
        warm.cold = Refuses()
        assert await call(children, warm, launch) == expected


@pytest.mark.parametrize("words", [["-u"], ["-I"], ["-S", "-B"], ["-OO"], ["-Es"]])
async def test_flags_of_the_interpreter_stay(words: list[str], tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", SHAPES["surroundings"]), sys.executable, *words, "main.py")
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        assert await make_warm(children, warm, launch)
        assert await call(children, warm, launch) == expected


@pytest.mark.parametrize("script", ["./main.py", "sub/../main.py", "sub/main.py", "link.py", "{}/main.py"])
async def test_a_script_can_be_named_in_any_way(script: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "main.py", SHAPES["surroundings"])
    (folder / "sub").mkdir()
    shutil.copy(folder / "main.py", folder / "sub/main.py")
    (folder / "link.py").symlink_to("sub/main.py")
    launch = launch_of(folder, sys.executable, script.format(folder), "x")
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        assert await make_warm(children, warm, launch)
        assert await call(children, warm, launch) == expected


@pytest.mark.parametrize(
    "setting",
    [{"PYTHONUNBUFFERED": "1"}, {"PYTHONIOENCODING": "latin-1:replace"}, {"PYTHONUTF8": "0", "LC_ALL": "C"},
     {"PYTHONPATH": "vendor"}, {"PYTHONSAFEPATH": "1"}, {"PYTHONWARNINGS": "error"}, {"PYTHONHASHSEED": "0"}],
)  # fmt: skip
async def test_settings_of_the_interpreter_stay(setting: dict[str, str], tmp_path: Path) -> None:
    source = (
        SHAPES["surroundings"]
        + "\nimport colorsys\nprint(colorsys.__file__, hash('a') if 'PYTHONHASHSEED' in os.environ else 0)"
    )
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    launch = replace(launch, environment={**launch.environment, **setting})
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        assert await make_warm(children, warm, launch)
        assert await call(children, warm, launch) == expected


async def test_calls_share_nothing(tmp_path: Path) -> None:
    source = (
        "import json, os, random, string, sys, tempfile, uuid\n"
        "import secrets\n"
        "string.count = getattr(string, 'count', 0) + 1\n"
        "os.environ['LEFT'] = os.environ.get('LEFT', '') + 'x'\n"
        "sys.path.append('left')\n"
        "os.chdir('/')\n"
        "print(json.dumps([string.count, os.environ['LEFT'], sys.path.count('left'), os.getpid(),\n"
        "  random.random(), random.Random().random(), next(tempfile._get_candidate_names()), str(uuid.uuid4()),\n"
        "  secrets.token_hex()]))"
    )
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        ran = [json.loads((await call(children, warm, launch))[1]) for _ in range(5)]
    assert [one[:3] for one in ran] == [[1, "x", 1]] * 5
    for column in range(3, 9):
        assert len({one[column] for one in ran}) == 5


async def test_each_call_has_its_own_variables(tmp_path: Path) -> None:
    source = "import os\nprint(os.environ['CALL'], os.getenvb(b'CALL'))"
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        warm.cold = Refuses()
        for value in ("second", "", "é=\udcff "):
            child = await warm.spawn(launch, {"CALL": value})
            output = (await run(children, child))[1]
            assert output == f"{value} {os.fsencode(value)!r}\n"


async def test_changed_code_is_run_at_the_next_call(tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", "print('old')"), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        (tmp_path / "main.py").write_text("print('new one')", encoding="utf-8")
        assert (await call(children, warm, launch))[1] == "new one\n"
        again = replace(launch, version="2")
        assert (await call(children, warm, again))[1] == "new one\n"
        assert await make_warm(children, warm, again)
        assert (await call(children, warm, again))[1] == "new one\n"


async def test_no_result_is_lost_at_any_concurrency(tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", SHAPES["stdin_json"]), sys.executable, "main.py")

    async def once(number: int) -> Ran:
        return await call(children, warm, launch, json.dumps({"n": number}).encode())

    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        for start in range(0, 128, 32):
            ran = await asyncio.gather(*(once(n) for n in range(start, start + 32)))
            assert [json.loads(one[1])["result"]["n"] for one in ran] == list(range(start, start + 32))
