"""The faults of a campaign: each breaks something, waits, and mends it. Whatever runs meanwhile runs on."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from random import Random
from signal import SIGCONT, SIGQUIT, SIGSTOP, SIGTERM

import asyncpg

from tests.campaign.programs import Program
from tests.campaign.world import World
from toolyard.hosts.lease import LEASE_S

Fault = Callable[[World, Random], Awaitable[None]]
_LONG_S = LEASE_S + 3.0  # longer than a lease


async def kill_server(world: World, _: Random) -> None:
    await world.server.end()
    await world.server.start()


async def stop_server(world: World, _: Random) -> None:
    await world.server.end(SIGTERM)
    await world.server.start()


async def pause_server(world: World, chance: Random) -> None:
    await _pause(world.server, chance.uniform(0.5, 4))


async def pause_server_long(world: World, _: Random) -> None:
    await _pause(world.server, _LONG_S)


async def kill_worker(world: World, chance: Random) -> None:
    worker = chance.choice(world.workers)
    await worker.end()
    await worker.start()


async def pause_worker(world: World, chance: Random) -> None:
    await _pause(chance.choice(world.workers), chance.uniform(0.5, 4))


async def pause_worker_long(world: World, chance: Random) -> None:
    await _pause(chance.choice(world.workers), _LONG_S)


async def freeze_database(world: World, chance: Random) -> None:
    world.signal_database(SIGSTOP)
    await asyncio.sleep(chance.choice((1.0, 5.0, 12.0)))
    world.signal_database(SIGCONT)


async def freeze_database_long(world: World, _: Random) -> None:
    """Longer than anybody is patient."""
    world.signal_database(SIGSTOP)
    await asyncio.sleep(26.0)
    world.signal_database(SIGCONT)


async def crash_database(world: World, _: Random) -> None:
    assert world.database is not None
    await asyncio.to_thread(world.database.stop, SIGQUIT)
    await asyncio.to_thread(world.database.start)


async def lock_events(world: World, chance: Random) -> None:
    """Hold the row behind which every event waits."""
    assert world.database is not None
    db = await asyncpg.connect(world.database.url())
    try:
        async with db.transaction():
            await db.execute("SELECT * FROM toolyard.last_event FOR UPDATE")
            await asyncio.sleep(chance.choice((2.0, 6.0, 10.0)))
    finally:
        await db.close()


async def stall_wire(world: World, chance: Random) -> None:
    wire = chance.choice(world.wires)
    wire.stall()
    await asyncio.sleep(chance.choice((2.0, 6.0)))
    wire.heal()


async def stall_wire_long(world: World, chance: Random) -> None:
    wire = chance.choice(world.wires)
    wire.stall()
    await asyncio.sleep(_LONG_S)
    wire.heal()


async def cut_wire(world: World, chance: Random) -> None:
    wire = chance.choice(world.wires)
    wire.cut()
    await asyncio.sleep(chance.uniform(0.2, 3))
    wire.heal()


async def lock_file(world: World, chance: Random) -> None:
    """Hold the lock of the state file, as a backup or a debugger may."""
    db = await asyncio.to_thread(
        sqlite3.connect, world.state, isolation_level=None, check_same_thread=False, timeout=30
    )
    try:
        await asyncio.to_thread(db.execute, "BEGIN IMMEDIATE")
        await asyncio.sleep(chance.uniform(0.5, 4))
        await asyncio.to_thread(db.execute, "ROLLBACK")
    finally:
        await asyncio.to_thread(db.close)


async def _pause(program: Program, seconds: float) -> None:
    program.send(SIGSTOP)
    await asyncio.sleep(seconds)
    program.send(SIGCONT)


ON_FILE: tuple[Fault, ...] = (kill_server, pause_server, lock_file, kill_server, stop_server, pause_server)
ON_POSTGRES: tuple[Fault, ...] = (
    pause_worker_long, lock_events, kill_worker, freeze_database, pause_worker, cut_wire, kill_server, crash_database,
    stall_wire, pause_server, stall_wire_long, pause_server_long, freeze_database_long,
)  # fmt: skip
