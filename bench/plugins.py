"""Plugin calls, cold and warm, against a bare spawn and a bare fork server in the same run."""

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from bench.plugins_bare import BareForkServer
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.plugins.package import environment
from toolyard.plugins.process.child import run_child
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdStarter
from toolyard.plugins.process.launch import Launch, Starter
from toolyard.plugins.process.warm.warm_starter import WarmStarter

PYTHON_ECHO = "import json, sys\nprint(json.dumps({'status': 'success', 'result': json.load(sys.stdin)}))\n"
NODE_ECHO = (
    "let told = '';\nprocess.stdin.on('data', (chunk) => (told += chunk));\n"
    "process.stdin.on('end', () => console.log(JSON.stringify({ status: 'success', result: JSON.parse(told) })));\n"
)
ROUNDS = 30  # of one call each way, in turn, so that a busy moment hits all alike
PARALLEL = 8
MANY = 2000
PAUSE_S = 0.2  # between two calls of a plugin on standby: a model's turn takes longer

Way = Callable[[bytes], Awaitable[object]]


async def bare(launch: Launch, stdin: bytes) -> object:
    process = await asyncio.create_subprocess_exec(
        *launch.argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=launch.cwd, env=dict(launch.environment)
    )
    out, _ = await process.communicate(stdin)
    return json.loads(out)["result"]


async def hosted(children: Children, starter: Starter, launch: Launch, stdin: bytes) -> object:
    child = await starter.spawn(launch, {})
    ended = await run_child(child, stdin, children=children, limits=launch.limits)
    return ended.answer and ended.answer.get("result")


async def latencies(ways: dict[str, Way], rounds: int, pause_s: float = 0.0) -> dict[str, float]:
    """The median in milliseconds, one call at a time."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            await asyncio.sleep(pause_s)
            started = time.perf_counter()
            assert await way(json.dumps({"n": number}).encode()) == {"n": number}
            found[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(times) for name, times in found.items()}


async def rate(way: Way, calls: int, at_once: int) -> tuple[float, int]:
    """Calls per second, and how many results were lost."""
    lost = 0
    numbers = iter(range(calls))

    async def work() -> None:
        nonlocal lost
        for number in numbers:
            lost += await way(json.dumps({"n": number}).encode()) != {"n": number}

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return calls / (time.perf_counter() - started), lost


async def rates(ways: dict[str, tuple[Way, int]], rounds: int = 9) -> dict[str, float]:
    """The median of some rounds, in turn, for each way: (what to call, how many times)."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (way, calls) in ways.items():
            found[name].append((await rate(way, calls, PARALLEL))[0])
    return {name: statistics.median(each) for name, each in found.items()}


async def python(folder: Path, children: Children, cold: ColdStarter, warm: WarmStarter) -> None:
    launch = make_launch(folder, sys.executable, "echo.py", PYTHON_ECHO)
    cached = replace(
        launch, environment={**launch.environment, environment.CACHE_VARIABLE: str(folder / environment.CACHE_FOLDER)}
    )
    forks = BareForkServer(folder / "echo.py")
    ways: dict[str, Way] = {
        "bare spawn": lambda stdin: bare(launch, stdin),
        "toolyard, cold": lambda stdin: hosted(children, cold, launch, stdin),
        "toolyard, cold, own cache": lambda stdin: hosted(children, cold, cached, stdin),
        "bare fork server": forks.call,
        "toolyard, warm": lambda stdin: hosted(children, warm, launch, stdin),
    }
    try:
        await until_warm(warm, launch, ways["toolyard, warm"])
        medians = await latencies(ways, ROUNDS)
        counts = (24, 24, 24, 160, 160)
        found = await rates({name: (way, count) for (name, way), count in zip(ways.items(), counts, strict=True)})
        _table("python echo", medians, found)
        promise("cold p50 / bare spawn", medians["toolyard, cold"] / medians["bare spawn"], "<=", 1.15)
        promise("cold rate / bare spawn", found["toolyard, cold"] / found["bare spawn"], ">=", 0.95)
        own_cache = medians["toolyard, cold, own cache"] / medians["toolyard, cold"]
        promise("cold p50, own cache / without", own_cache, "<=", 1.05)
        promise("warm p50 / bare spawn", medians["toolyard, warm"] / medians["bare spawn"], "<=", 0.25)
        promise("warm rate / bare spawn", found["toolyard, warm"] / found["bare spawn"], ">=", 10)
        promise("warm rate / bare fork server", found["toolyard, warm"] / found["bare fork server"], ">=", 0.7)
        speed, lost = await rate(ways["toolyard, warm"], MANY, 32)
        print(f"{MANY} warm calls, 32 at once: {speed:.0f}/s, {lost} results lost")
    finally:
        forks.close()


async def confinement(folder: Path, children: Children, cold: ColdStarter, warm: WarmStarter) -> None:
    """Compare confined calls with unconfined ones."""
    script, python = "confined.py", sys.executable
    plain = make_launch(folder, python, "unconfined.py", PYTHON_ECHO)
    profile = Profile(read=(*list_program_trees(python), str(folder)), write=(str(folder),))
    confined = replace(make_launch(folder, python, script, PYTHON_ECHO), profile=profile)
    ways: dict[str, Way] = {
        "unconfined, cold": lambda stdin: hosted(children, cold, plain, stdin),
        "confined, cold": lambda stdin: hosted(children, cold, confined, stdin),
        "unconfined, warm": lambda stdin: hosted(children, warm, plain, stdin),
        "confined, warm": lambda stdin: hosted(children, warm, confined, stdin),
    }
    await until_warm(warm, plain, ways["unconfined, warm"])
    await until_warm(warm, confined, ways["confined, warm"])
    medians = await latencies(ways, ROUNDS)
    _table(f"confinement ({measure_confinement(profile).level})", medians, {})
    promise("confined / unconfined, warm", medians["confined, warm"] / medians["unconfined, warm"], "<=", 1.1)
    promise("confined - unconfined, cold, ms", medians["confined, cold"] - medians["unconfined, cold"], "<=", 3)


async def node(folder: Path, children: Children, cold: ColdStarter, warm: WarmStarter) -> None:
    launch = make_launch(folder, str(shutil.which("node")), "echo.js", NODE_ECHO)
    ways: dict[str, Way] = {
        "bare spawn": lambda stdin: bare(launch, stdin),
        "toolyard, cold": lambda stdin: hosted(children, cold, launch, stdin),
        "toolyard, standby": lambda stdin: hosted(children, warm, launch, stdin),
    }
    await until_warm(warm, launch, ways["toolyard, standby"])
    medians = await latencies(ways, 12, PAUSE_S)
    _table("node echo", medians, {})
    promise("standby p50 / bare spawn", medians["toolyard, standby"] / medians["bare spawn"], "<=", 0.5)


async def measure(folder: Path) -> None:
    children = Children()
    cold = ColdStarter(children)
    warm = WarmStarter(children, cold)
    try:
        await python(folder, children, cold, warm)
        await confinement(folder, children, cold, warm)
        if shutil.which("node"):
            await node(folder, children, cold, warm)
    finally:
        await warm.close()
        await children.close()


async def until_warm(warm: WarmStarter, launch: Launch, call: Way) -> None:
    key = warm.launch_key(launch, {})
    await call(b'{"n": 0}')
    async with asyncio.timeout(30):
        while not (warm.servers.is_ready(key) or warm.standbys.count_ready(key)):  # noqa: ASYNC110 there is no such event
            await asyncio.sleep(0.02)


def make_launch(folder: Path, program: str, script: str, source: str) -> Launch:
    (folder / script).write_text(source, encoding="utf-8")
    return Launch(argv=(program, script), cwd=folder, profile=None, environment={"PATH": os.defpath}, warm=True)


def _table(title: str, medians: dict[str, float], found: dict[str, float]) -> None:
    print(f"\n{title:<24} {'p50 ms':>8} {f'{PARALLEL} at once /s':>14}")
    for name, middle in medians.items():
        print(f"{name:<24} {middle:>8.1f} {found.get(name, float('nan')):>14.0f}")


def promise(what: str, ratio: float, sign: str, limit: float) -> None:
    kept = ratio <= limit if sign == "<=" else ratio >= limit
    print(f"  {what:<30} {ratio:>6.2f}  {sign} {limit:g} {'' if kept else '  MISSED'}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
