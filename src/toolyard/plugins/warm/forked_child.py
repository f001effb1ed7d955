"""A child of a fork server: the server reports its exit, or the host sees it when the server has died."""

import asyncio
import contextlib
import os
import signal


class ForkedChild:
    def __init__(self, pid: int, pipes: tuple[int, int, int]) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = self._loop.create_future()

    async def wait(self) -> int:
        """Wait until it has ended. Return its exit code, or minus the number of the signal that ended it."""
        return await asyncio.shield(self._exit)

    def set_exit_code(self, code: int) -> None:
        if not self._exit.done():
            self._exit.set_result(code)

    def watch_exit(self) -> None:
        """Watch for the exit here: the server is dead, and this is a child of the host."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:
            self.set_exit_code(-signal.SIGKILL)
        else:
            self._loop.add_reader(pidfd, self._on_exit, pidfd)

    def _on_exit(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        code = -int(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # Children was first, and it waits only for what it has killed
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            if ended:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self.set_exit_code(code)
