"""The leases of hosts in the shared store, over a connection that is used for nothing else.

A lease is a record that no other work touches, renewed by one statement that commits by itself: so a renewal waits for
no lock of an application's transaction, and an attempt takes at most ``LONGEST_S``. When a lease runs out is decided by
the clock of the database alone.
"""

import asyncio
from typing import Any, Final

import asyncpg

from toolyard.protocol.store import HELD, LEASE, MAX_LEASES, Lease
from toolyard.storage.postgres_server import PASSING, PostgresServer, to_storage_error

_CONNECT_S = 3.0
_COMMAND_S = 3.0
LONGEST_S: Final = _CONNECT_S + _COMMAND_S

# A renewal that a crash of the database takes back is followed by the next one.
_SESSION = {"synchronous_commit": "off", "lock_timeout": "3s", "statement_timeout": "3s"}
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_ACQUIRE = f"""
INSERT INTO toolyard.records AS lease
    (kind, id, state, version, created, updated, caller, tool, key, owner, due, text, body)
VALUES ('{LEASE}', $1, '{HELD}', 1, {_NOW}, {_NOW}, '', '', '', '', {_NOW} + $2::float8, '', '{{"term": 1}}')
ON CONFLICT (kind, id) DO UPDATE SET state = '{HELD}', version = lease.version + 1, updated = {_NOW}, due = {_NOW} + $2,
    body = json_build_object('term', (lease.body ->> 'term')::int + 1)
RETURNING (body ->> 'term')::int, updated
"""  # noqa: S608 no value of anybody is in it
_RENEW = f"""
UPDATE toolyard.records SET version = version + 1, updated = {_NOW}, due = {_NOW} + $3::float8
WHERE kind = '{LEASE}' AND id = $1 AND state = '{HELD}' AND (body ->> 'term')::int = $2 RETURNING updated
"""  # noqa: S608 no value of anybody is in it
_RELEASE = f"DELETE FROM toolyard.records WHERE kind = '{LEASE}' AND id = $1"  # noqa: S608
_HELD = f"""
SELECT id, (body ->> 'term')::int, version, due < {_NOW} FROM toolyard.records
WHERE kind = '{LEASE}' AND state = '{HELD}' LIMIT {MAX_LEASES}
"""  # noqa: S608


class PostgresLeases:
    """The leases in PostgreSQL, for one event loop."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._db: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    async def acquire(self, holder: str, seconds: float) -> tuple[int, float]:
        ((term, now),) = await self._query(_ACQUIRE, holder, seconds)
        return term, now

    async def renew(self, holder: str, term: int, seconds: float) -> float | None:
        rows = await self._query(_RENEW, holder, term, seconds)
        return rows[0][0] if rows else None

    async def release(self, holder: str) -> None:
        await self._query(_RELEASE, holder)

    async def find_held(self) -> list[Lease]:
        rows = await self._server.run(lambda db: db.fetch(_HELD))
        return [Lease(*row) for row in rows]

    def close(self) -> None:
        if self._db is not None:
            self._db.terminate()
            self._db = None

    async def _query(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """Ask once; a connection that has failed, or was left in the middle, is not used again."""
        async with self._turn:
            db, self._db = self._db, None
            try:
                if db is None or db.is_closed():
                    db = await self._server.connect(_CONNECT_S, **_SESSION)
                answer: list[asyncpg.Record] = await db.fetch(sql, *values, timeout=_COMMAND_S)
            except (*PASSING, asyncpg.PostgresError) as error:
                raise to_storage_error(self._server.place, error) from error
            else:
                self._db = db
                return answer
            finally:
                if self._db is None and db is not None:
                    db.terminate()
