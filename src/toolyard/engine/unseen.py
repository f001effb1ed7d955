"""Calls that run without anybody having been asked: one at a time, from the moment it is judged until it has ended.

What one of them does can be undone as the files were when it was judged, so no other one may change them meanwhile. A
call that is not let through waits for a person and holds up nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Unseen:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._runs = ""  # the call whose turn it is

    async def admits(self, call_id: str, judge: Callable[[], Awaitable[bool]]) -> bool:
        """Whether a call may run unseen, once it is its turn; whoever is admitted calls ``over`` in the end."""
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

    def over(self, call_id: str) -> None:
        if self._runs == call_id:
            self._runs = ""
            self._turn.release()
