"""Commits to a shared store until it is killed: ``python -m tests.crash.shared URL POINT:N``. Each is acknowledged."""

import asyncio
import sys

from tests.crash.host import ack, kill_at
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage.postgres import PostgresStore

COMMITS = 8


async def main(url: str) -> None:
    store = await PostgresStore.open(url)

    async def keep(name: str) -> None:
        pair = [Record(kind="thing", id=f"{name}-{half}", state="open", created=1, updated=1) for half in "ab"]
        if await store.commit(pair, [NewEvent(type=name, at=1.0)]):
            ack("stored", name=name)

    for number in range(COMMITS):
        await asyncio.gather(*(keep(f"{number}{letter}") for letter in "xyz"))
    await store.close()


if __name__ == "__main__":
    address, point = sys.argv[1:]
    where, _, nth = point.partition(":")
    kill_at(where, int(nth))
    asyncio.run(main(address))
