"""A power cut: of the state, only what was synced is sure to be there, and that is all that was promised.

Two halves make the proof. That a lasting commit is synced before it is answered shows ``test_failing_disk``: with a
kernel that refuses to sync, none is answered. Here the files are taken as they were when a commit was answered, and
what was written to the log after that is cut off, torn or turned to dust: a disk may keep any part of it.
"""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.crash.scene import SOAK
from toolyard.protocol.store import NewEvent, Query, Record
from toolyard.storage.sqlite import SqliteStore

COMMITS = 42
PAGE = 4096
_HEADER, _FRAME = 32, 24 + PAGE  # of the log
TEARS = 20 if SOAK else 1
LARGE = 1_100_000  # bytes that cannot be compressed; four of them, and the log is folded into the file, begun anew


@pytest.fixture(autouse=True)
def checkpoints_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.storage.sqlite.CHECKPOINT_PAGES", 1000)


@dataclass(frozen=True, slots=True)
class Answered:
    """The files when a commit was answered, and the promises that had been made by then."""

    folder: Path
    synced: int  # bytes of the log that a lasting commit has forced to the disk
    promised: frozenset[str]


def end_of(log: bytes) -> int:
    """Where the log ends: behind it may stand what is left of an older one."""
    end = _HEADER
    while len(log) >= end + _FRAME and log[end + 8 : end + 16] == log[16:24]:
        end += _FRAME
    return end


def name_of(number: int) -> str:
    """Every third is not lasting, as in the journal."""
    return f"{'loose' if number % 3 == 0 else 'lasting'}-{number}"


async def answered(place: Path) -> list[Answered]:
    """A store at work, with a copy of its files after every answer."""
    store = SqliteStore(place / "live" / "state.db")
    taken: list[Answered] = []
    promised: frozenset[str] = frozenset()
    header, synced = b"", 0
    for number in range(COMMITS):
        name = name_of(number)
        made = Record(
            kind="thing",
            id=name,
            state="open",
            created=1,
            updated=1,
            body={"text": random.Random(number).randbytes(LARGE if number % 8 == 7 else 9).hex()},
        )
        lasting = name.startswith("lasting")
        assert await store.commit([made], [NewEvent(type=name, at=1.0)], lasting=lasting)
        copy = place / str(number)
        shutil.copytree(place / "live", copy)
        log = (copy / "state.db-wal").read_bytes()
        if log[:_HEADER] != header:
            header, synced = log[:_HEADER], 0
        if lasting:
            promised |= {name}
            synced = end_of(log)
        taken.append(Answered(copy, synced, promised))
    await store.close()
    return taken


async def check(folder: Path, promised: frozenset[str]) -> None:
    with closing(sqlite3.connect(folder / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store = SqliteStore(folder / "state.db")
    found = {record.id for record in await store.find("thing", Query(), limit=1000)}
    events = await store.events(0, limit=1000)
    await store.close()
    assert promised <= found
    assert {event.type for event in events} == found, "a record and its event are stored together"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.requirement("r:R08", "p:P1")
async def test_after_a_power_cut_every_lasting_commit_is_there_and_the_rest_is_whole_or_gone(tmp_path: Path) -> None:
    taken = await answered(tmp_path)
    dice = random.Random(20)  # the same cuts every time
    cut = tmp_path / "cut"
    cuts = begun_anew = 0
    for before, after in pairwise(taken):
        old, log = ((moment.folder / "state.db-wal").read_bytes() for moment in (before, after))
        synced = before.synced
        if old[:_HEADER] != log[:_HEADER]:  # a new log: what the old one held is in the file, which was synced first
            synced, begun_anew = 0, begun_anew + 1
        for _ in range(TEARS):
            shutil.copytree(after.folder, cut)
            kept = dice.randint(synced, end_of(log))
            dust = dice.randbytes(dice.randint(0, min(8192, len(log) - kept)))
            (cut / "state.db-wal").write_bytes(log[:kept] + dust)
            (cut / "state.db-shm").unlink(missing_ok=True)  # it is memory, and gone
            await check(cut, before.promised)
            shutil.rmtree(cut)
            cuts += 1
    assert begun_anew > 0
    assert cuts == (COMMITS - 1) * TEARS


@pytest.mark.requirement("r:R08", "p:P1")
async def test_after_a_power_cut_while_the_log_is_folded_in_nothing_is_lost(tmp_path: Path) -> None:
    """The file may then hold any part of what was written to it since it was last synced; the log still has it all."""
    taken = await answered(tmp_path)
    dice = random.Random(21)
    cut = tmp_path / "cut"
    torn = 0
    for before, after in pairwise(taken):
        old, new = ((moment.folder / "state.db").read_bytes() for moment in (before, after))
        if old == new:
            continue
        for _ in range(TEARS):
            shutil.copytree(before.folder, cut)
            pages = [
                (new if dice.random() < 0.5 else old)[at : at + PAGE] or new[at : at + PAGE]
                for at in range(0, len(new), PAGE)
            ]
            (cut / "state.db").write_bytes(b"".join(pages))
            (cut / "state.db-shm").unlink(missing_ok=True)
            await check(cut, before.promised)
            shutil.rmtree(cut)
            torn += 1
    assert torn > 0
