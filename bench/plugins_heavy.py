"""A plugin whose imports take seconds (sympy, scipy), warm against a bare spawn of the same program.

Measured with a script that has the imports of VCPToolBox's SciCalculator, or with that plugin itself when
``BENCH_SCICALCULATOR`` names its folder. ``BENCH_PYTHON`` names an interpreter that has sympy and scipy, unless ours
has them; where none has, the measurement is skipped and says so.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.plugins import bare, hosted, promise
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdStarter
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.warm.warm_starter import WarmStarter

STAND_IN = """
import ast, json, math, operator, re, statistics, sys
import sympy
from sympy import sympify, integrate, diff, latex
from scipy import stats
from scipy.integrate import quad
from numpy import inf, nan

told = json.load(sys.stdin)
print(json.dumps({"status": "success", "result": str(sympify(told["expression"]).evalf())}))
"""
EXPRESSIONS = ("2 * (3 + 4) ** 2", "sin(pi / 6) + sqrt(2)", "exp(1) - log(100)", "cosh(1) / 7 + 2 ** 0.5")
ROUNDS = 3  # of each expression
PAUSE_S = 0.2  # a model's turn takes longer


async def measure(launch: Launch) -> None:
    children = Children()
    warm = WarmStarter(children, ColdStarter(children))
    try:
        await _measure(launch, children, warm)
    finally:
        await warm.close()
        await children.close()


async def _measure(launch: Launch, children: Children, warm: WarmStarter) -> None:
    await _until_warm(warm, launch, children)
    times: dict[str, list[float]] = {"bare spawn": [], "toolyard, warm": []}
    for expression in EXPRESSIONS * ROUNDS:
        stdin = json.dumps({"expression": expression}).encode()
        started = time.perf_counter()
        expected = await bare(launch, stdin)
        times["bare spawn"].append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE_S)
        started = time.perf_counter()
        assert await hosted(children, warm, launch, stdin) == expected
        times["toolyard, warm"].append((time.perf_counter() - started) * 1000)
    medians = {name: statistics.median(each) for name, each in times.items()}
    print(f"\n{'sympy and scipy':<24} {'p50 ms':>8}")
    for name, middle in medians.items():
        print(f"{name:<24} {middle:>8.1f}")
    promise("warm p50 / bare spawn", medians["toolyard, warm"] / medians["bare spawn"], "<=", 0.1)


def _launch(folder: Path, python: str) -> Launch:
    real = os.environ.get("BENCH_SCICALCULATOR")
    script = Path(real) / "calculator.py" if real else folder / "calculator.py"
    if not real:
        script.write_text(STAND_IN, encoding="utf-8")
    environment = {"PATH": os.defpath, "PYTHONIOENCODING": "utf-8"}
    return Launch(argv=(python, script.name), cwd=script.parent, profile=None, environment=environment, warm=True)


async def _until_warm(warm: WarmStarter, launch: Launch, children: Children) -> None:
    key = warm.launch_key(launch, {})
    await hosted(children, warm, launch, b'{"expression": "1"}')
    async with asyncio.timeout(60):
        while not warm.servers.is_ready(key):
            if warm.servers.unfit_reason(key):
                raise RuntimeError(f"it is not forked: {warm.servers.unfit_reason(key)}")
            await asyncio.sleep(0.1)


def main() -> None:
    python = os.environ.get("BENCH_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import sympy, scipy"], capture_output=True, check=False).returncode:
        print("\nsympy and scipy: skipped, they are not installed here (BENCH_PYTHON names a Python that has them)")
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(_launch(Path(folder), python)))
