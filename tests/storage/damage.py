"""State files with something in them, and damage to a chosen part of one."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from toolyard.protocol.store import Event, NewEvent, Query, Record
from toolyard.storage.sqlite import SqliteStore

MANY = 400  # more than one page of every index


async def fill(file: Path) -> None:
    store = SqliteStore(file)
    made = [
        Record(
            kind="thing", id=f"thing_{n}", state="open", created=n, updated=n, tool=f"Tool{n}",
            key=f"key{n}", code=f"CODE{n}", caller=f"caller{n}", owner=f"owner{n}" if n % 3 == 0 else "", due=float(n),
            text=f"forest word{n}", body={"n": n},
        )
        for n in range(MANY)
    ]  # fmt: skip
    await asyncio.gather(*(store.commit([one], [NewEvent(type="made", at=1.0)]) for one in made))
    await store.close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = DELETE")


async def read_all(file: Path) -> tuple[list[Record], list[Record], list[Record], list[Event]]:
    """Everything in a file, by way of several indexes."""
    store = SqliteStore(file)
    try:
        return (
            await store.find("thing", Query(), limit=MANY),
            await store.find("thing", Query(due_until=float(MANY)), limit=MANY),
            await store.find("thing", Query(text="forest"), limit=MANY),
            await store.events(0, limit=MANY),
        )
    finally:
        await store.close()


def damage(file: Path, part: str) -> None:
    """Overwrite the content of one page of a table or an index."""
    with closing(sqlite3.connect(file)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        pages = [
            number
            for (number,) in db.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (part,)
            )
        ]
    content = bytearray(file.read_bytes())
    start = (pages[len(pages) // 2] - 1) * size
    content[start + size // 2 : start + size] = bytes(size // 2)
    file.write_bytes(content)
