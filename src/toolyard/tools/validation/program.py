"""A checker that is a program of its own."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.confinement.contained_process import contain_process
from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.finding import MAX_SECONDS, Unchecked

_POLL_S = 0.05  # how often a waiting check looks at its checkpoint


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    out: str
    err: str


def run_program(command: Sequence[str], given: str, checkpoint: Checkpoint) -> ProgramOutput:
    """Run ``command`` with ``given`` on its stdin. It is killed when its time is over or the checkpoint raises.

    Whatever it has started ends with it.
    """
    with tempfile.TemporaryFile() as stdin:  # not a pipe: of one, a shell reads a byte at a time
        stdin.write(given.encode())
        stdin.seek(0)
        with contain_process(
            Profile(read=(*list_program_trees(command[0]), *map(os.path.realpath, filter(os.path.isabs, command[1:])))),
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env={"LC_ALL": "C.UTF-8"},
            starts_others=False,
        ) as process:  # fmt: skip
            out, err = _wait(process, checkpoint)
    if process.returncode < 0:
        raise Unchecked("its checker crashed")
    return ProgramOutput(out.decode(errors="replace"), err.decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    for _ in range(round(MAX_SECONDS / _POLL_S)):
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            checkpoint()
    raise Unchecked(f"its checker needed more than {MAX_SECONDS:g} s")
