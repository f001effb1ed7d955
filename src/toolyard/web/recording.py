"""A recording: the pieces of a streamed response while it is produced, for followers from its beginning.

Up to ``MAX_RESPONSE`` bytes all of it is kept, and slow followers hold nothing up. Of a longer response only what a
follower has yet to read is kept, and the producer waits while the slowest is ``MAX_BEHIND`` bytes behind; once the
beginning is dropped, no further follower can join.
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
    at: int = 0  # number of the piece to read next


class Recording:
    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._first = 0  # number of the oldest piece that is kept
        self._size = 0  # bytes of those that are kept
        self._followers: set[_Follower] = set()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._ended = False
        self.is_whole = True  # False: it is too long to be kept

    @property
    def has_beginning(self) -> bool:
        """True while a new follower gets all of it."""
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
        """Return all pieces joined; only while the recording is whole."""
        return b"".join(self._pieces)

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """Yield an empty piece first, then every piece from the first to the last."""
        follower = _Follower()
        self._followers.add(follower)
        try:
            yield b""  # from here on it counts as a follower, until it is closed
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
        """Drop the pieces that all followers have read, once the recording is no longer whole."""
        if self.is_whole:
            return
        read = min((follower.at for follower in self._followers), default=self._first + len(self._pieces))
        while self._first < read:
            self._size -= len(self._pieces.popleft())
            self._first += 1
        self._room.set()
