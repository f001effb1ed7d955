"""Start-up time of commands, against the interpreter with click and asyncio and against the promised limit."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUNS = 15
LIMIT_MS = 250
TOOLYARD = str(Path(sys.executable).with_name("toolyard"))
BASE = "python, click and asyncio"


def main() -> None:
    with tempfile.TemporaryDirectory() as place, _serve(Path(place)) as served:
        alone = [TOOLYARD, "--home", f"{place}/alone", "--project", f"{place}/project"]
        commands = {
            "python -c pass (the floor)": [sys.executable, "-c", "pass"],
            BASE: [sys.executable, "-c", "import click, asyncio"],
            "toolyard --version": [TOOLYARD, "--version"],
            "toolyard call LS": [*alone, "call", "LS"],
            "toolyard call LS, server": [*served, "call", "LS"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):  # interleaved, so that a busy moment hits all alike
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
                times[name].append((time.perf_counter() - started) * 1000)
    base = statistics.median(times[BASE])
    print(f"{'start-up':<28} {'p50 ms':>8} {'x base':>8} {f'of {LIMIT_MS} ms':>10}")
    for name, measured in times.items():
        middle = statistics.median(measured)
        print(f"{name:<28} {middle:>8.0f} {middle / base:>8.2f} {middle / LIMIT_MS:>9.0%}")


@contextmanager
def _serve(place: Path) -> Iterator[list[str]]:
    """Run a server, and give the command that finds it."""
    (place / "project").mkdir()
    command = [TOOLYARD, "--home", str(place / "served"), "--project", str(place / "project")]
    with subprocess.Popen(
        [*command, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            if server.stdout is None or not server.stdout.readline():  # its first line, once it serves
                raise RuntimeError("the server did not start")
            yield command
        finally:
            server.terminate()
