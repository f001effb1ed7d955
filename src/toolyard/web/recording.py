"""A recording: the pieces of a streamed answer while they are made, for everybody who follows it from its beginning.

Up to ``MAX_RESPONSE`` bytes all of it is kept, and nobody who is slow holds it up. Of a longer answer only that is kept
which a follower has still to read, and the answer waits while the slowest one is ``MAX_BEHIND`` bytes behind; whoever
comes after the beginning was dropped is too late.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from toolyard.engine.idempotency import MAX_RESPONSE

MAX_BEHIND: Final = 2**20


@dataclass(eq=False, slots=True)
class _Follower:
    at: int = 0  # the number of the piece that it reads next


class Recording:
    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._first = 0  # number of the oldest piece that is kept
        self._size = 0  # bytes of those that are kept
        self._followers: set[_Follower] = set()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._ended = False
        self.is_whole = True  # False: it is longer than what is kept

    @property
    def has_beginning(self) -> bool:
        """Whether somebody who begins to follow it now gets all of it."""
        return self._first == 0

    async def put(self, piece: bytes) -> None:
        """Add a piece; wait when the slowest follower is too far behind."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > MAX_RESPONSE:
            self.is_whole = False
        self._trim()
        self._news.set()
        while not self.is_whole and self._size > MAX_BEHIND and self._followers:
            self._room.clear()
            await self._room.wait()

    def end(self, last: bytes = b"") -> None:
        """Add the last piece, if there is one more."""
        if last:
            self._pieces.append(last)
            self._size += len(last)
        self._ended = True
        self._news.set()

    def to_bytes(self) -> bytes:
        """Return all of it; only while it is whole."""
        return b"".join(self._pieces)

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """Yield nothing at first, and then every piece from the first to the last."""
        follower = _Follower()
        self._followers.add(follower)
        try:
            yield b""  # from here on it is counted, and closing it uncounts it
            while True:
                if follower.at < self._first + len(self._pieces):
                    piece = self._pieces[follower.at - self._first]
                    follower.at += 1
                    self._trim()
                    yield piece
                elif self._ended:
                    return
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            self._followers.discard(follower)
            self._trim()

    def _trim(self) -> None:
        """Forget what everybody has read, once it cannot be kept whole."""
        if self.is_whole:
            return
        read = min((follower.at for follower in self._followers), default=self._first + len(self._pieces))
        while self._first < read:
            self._size -= len(self._pieces.popleft())
            self._first += 1
        self._room.set()
