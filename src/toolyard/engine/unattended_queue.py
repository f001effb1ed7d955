"""The queue of unattended calls: one at a time, from the moment it is judged until it has ended.

What one of them does can be undone as the files were when it was judged, so no other one may change them meanwhile. A
call that is not let through waits for a person and holds up nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable


class UnattendedQueue:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._runs = ""  # the call whose turn it is

    async def admit(self, call_id: str, judge: Callable[[], Awaitable[bool]]) -> bool:
        """Wait for the call's turn and judge it; return whether it may run. An admitted call ends with ``release``."""
        await self._turn.acquire()
        try:
            admitted = await judge()
        except BaseException:
            self._turn.release()
            raise
        if admitted:
            self._runs = call_id
        else:
            self._turn.release()
        return admitted

    def release(self, call_id: str) -> None:
        if self._runs == call_id:
            self._runs = ""
            self._turn.release()
