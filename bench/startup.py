"""How long a command takes to start, against the interpreter alone and the promised limit."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
LIMIT_MS = 250
TOOLYARD = str(Path(sys.executable).with_name("toolyard"))
COMMANDS = {
    "python -c pass (the floor)": [sys.executable, "-c", "pass"],
    "python, click and asyncio": [sys.executable, "-c", "import click, asyncio"],
    "toolyard --version": [TOOLYARD, "--version"],
    "toolyard call LS": [TOOLYARD, "call", "LS"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(RUNS):  # interleaved, so that a busy moment hits all alike
            for name, command in COMMANDS.items():
                started = time.perf_counter()
                subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
                times[name].append((time.perf_counter() - started) * 1000)
    floor = statistics.median(times["python -c pass (the floor)"])
    print(f"{'start-up':<28} {'p50 ms':>8} {'x floor':>8} {f'of {LIMIT_MS} ms':>10}")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:<28} {middle:>8.0f} {middle / floor:>8.1f} {middle / LIMIT_MS:>9.0%}")
