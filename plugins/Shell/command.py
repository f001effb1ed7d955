"""One command: started in a shell, read while it runs, stopped at its limits."""

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from output import CommandOutput, LineReporter

POLL_S = 0.1
DRAIN_S = 0.2  # for what a process in the background holds back after the shell has ended
GRACE_S = 1.0
CHUNK = 64 * 1024
MAX_STATE = 1024 * 1024
Environment = dict[str, str]


@dataclass(frozen=True)
class CommandRun:
    output: CommandOutput
    seconds: float
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    flooded: bool = False
    state: tuple[str, Environment] | None = None  # the folder and the exported variables at its end


def run_command(
    command: str, folder: Path, environment: Environment, timeout_s: float, *, keeps_state: bool
) -> CommandRun:
    """Run a command to its end or to its limits. Raises OSError."""
    shell = shutil.which("bash") or "/bin/sh"
    output, began = CommandOutput(), time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        state_file = Path(place) / "state"
        script = f"{_write_trap(state_file)}\n{command}" if keeps_state else command
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 that is its purpose, after an approval
                [shell, "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=writer,
                stderr=writer, process_group=0,
            )  # fmt: skip
        finally:
            os.close(writer)
        try:
            over = _read_output(process, reader, output, began + timeout_s)
        finally:
            os.close(reader)
        if over or output.is_flooded:
            _stop(process)
        code = process.wait()
        return CommandRun(
            output=output,
            seconds=time.monotonic() - began,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=over,
            flooded=output.is_flooded,
            state=_read_state(state_file) if keeps_state and not over and not output.is_flooded else None,
        )


def _write_trap(state_file: Path) -> str:
    """Return the line that lets the shell write its folder and its exported variables when it ends."""
    env = shutil.which("env") or "/usr/bin/env"
    step = f"{{ printf '%s\\0' \"$(pwd -P)\"; {shlex.quote(env)} -0; }} > {shlex.quote(str(state_file))}"
    return f"trap {shlex.quote(step)} EXIT"


def _read_state(state_file: Path) -> tuple[str, Environment] | None:
    try:
        with state_file.open("rb") as file:
            raw = file.read(MAX_STATE + 1)
    except OSError:
        return None
    folder, *pairs = raw.decode(errors="surrogateescape").split("\0")
    if len(raw) > MAX_STATE or not folder.startswith("/"):
        return None
    return folder, {name: value for name, found, value in (pair.partition("=") for pair in pairs) if found}


def _read_output(process: "subprocess.Popen[bytes]", reader: int, output: CommandOutput, end: float) -> bool:
    """Read until the command has ended; return whether its time was over before that."""
    os.set_blocking(reader, False)
    reporter, ended_at = LineReporter(), 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while not output.is_flooded:
            now = time.monotonic()
            if now >= end and not ended_at:
                reporter.flush()
                return True
            if ended_at and now >= ended_at + DRAIN_S:
                break
            if selector.select(min(POLL_S, max(0.0, end - now))):
                chunk = os.read(reader, CHUNK)
                if not chunk:
                    break
                output.add(chunk)
                reporter.add(chunk)
            reporter.flush_if_due()
            if not ended_at and process.poll() is not None:
                ended_at = time.monotonic()
    reporter.flush()
    try:
        process.wait(0 if output.is_flooded else max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return not output.is_flooded
    return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(GRACE_S)
        except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            continue
