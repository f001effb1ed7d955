"""A program that searches for us, in a process of its own that ends with the search.

It starts inside a folder that is already open, by the folder's descriptor and not by its name, so that a folder renamed
or swapped for a link meanwhile changes nothing. It inherits no environment and no other descriptors. Whatever happens,
``stop`` leaves no process behind.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO

try:
    from resource import RLIMIT_DATA, prlimit
except ImportError:  # not on this system: then only time bounds the child
    prlimit = None  # type: ignore[assignment]

MAX_MEMORY = 2 * 1024**3  # a line of 1 GB has to fit, and the host has to survive
_CHUNK = 256 * 1024
_WAIT_MS = 50  # how long to wait for output before looking at the checkpoint again
_GRACE_S = 1.0
_STEP_INSIDE = "import os, sys; os.fchdir(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"


class SearchProcess:
    def __init__(self, command: Sequence[str | bytes], folder: int, *, stdin: int | IO[bytes] | None = None) -> None:
        """Start ``command`` in the open ``folder``. Raises OSError when it cannot be started."""
        place = f"/proc/self/fd/{folder}"
        by_name = os.path.isdir(place)
        if not by_name:  # no such files, as on macOS: a small program steps inside and becomes the command
            command = [sys.executable, "-I", "-S", "-c", _STEP_INSIDE, str(folder), *command]
        self._process = subprocess.Popen(  # noqa: S603 the command is ours; what a caller wrote is in its arguments
            command,
            cwd=place if by_name else None,
            pass_fds=() if by_name else (folder,),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            start_new_session=True,
        )
        self._pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe]
        if prlimit is not None:
            with suppress(OSError):  # it may be over already
                prlimit(self._process.pid, RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))

    def read_output(self, check: Callable[[], None], note: Callable[[bytes], None]) -> Iterator[bytes]:
        """Yield the program's output as it comes; its stderr goes to ``note``."""
        out, err = (pipe.fileno() for pipe in self._pipes)
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(err, select.POLLIN)
        alive = 2
        while alive:
            check()
            for fd, _ in poll.poll(_WAIT_MS):
                chunk = os.read(fd, _CHUNK)
                if not chunk:
                    poll.unregister(fd)
                    alive -= 1
                elif fd == err:
                    note(chunk)
                else:
                    yield chunk

    def wait(self) -> int:
        """Its exit code, negative when a signal ended it. The output must have been read to the end."""
        return self._process.wait()

    def stop(self) -> None:
        """End it now, with all that it may have started."""
        if self._process.poll() is None:  # else its number may already be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # the system itself may hold it, on a dead network drive
                self._process.wait(_GRACE_S)
        for pipe in self._pipes:
            pipe.close()
