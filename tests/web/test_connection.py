"""How answers leave: what is written together goes out together."""

import asyncio

import pytest

from toolyard.web.connection import MAX_HELD, Gathered

pytestmark = pytest.mark.requirement("chat:completions")


class Noted(asyncio.Transport):
    """A transport that notes what is done to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.done: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data))

    def close(self) -> None:
        self.done.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.done


async def test_what_is_written_in_one_round_of_the_loop_is_sent_once_and_in_order() -> None:
    noted = Noted()
    gathered = Gathered(noted, asyncio.get_running_loop())
    gathered.write(b"head ")
    gathered.write(b"body")
    assert noted.done == []
    await asyncio.sleep(0)
    assert noted.done == [b"head body"]
    gathered.write(b" more")
    await asyncio.sleep(0)
    assert noted.done == [b"head body", b" more"]
    gathered.write(b"the end")
    gathered.flush()
    assert noted.done[2:] == [b"the end"]


async def test_a_lot_is_sent_at_once_and_nothing_is_lost_when_it_closes() -> None:
    noted = Noted()
    gathered = Gathered(noted, asyncio.get_running_loop())
    gathered.write(b"x" * MAX_HELD)
    assert noted.done == [b"x" * MAX_HELD]
    gathered.write(b"the end")
    gathered.close()
    assert noted.done[1:] == [b"the end", b"closed"]
    assert gathered.is_closing()
    assert gathered.get_extra_info("peername") == ("127.0.0.1", 1)
    await asyncio.sleep(0)
    assert len(noted.done) == 3
