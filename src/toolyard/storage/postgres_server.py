"""The PostgreSQL server as the shared store sees it: a few connections, and patience while it restarts.

Work that fails because the server is away is tried again with growing pauses, up to ``_PATIENCE_S``; only then, and
for every fault that will not pass by itself, comes a StorageError that says what to do. So work must bear being tried
twice. The extra ``postgres`` brings ``PACKAGES``, which a plain installation leaves out.
"""

import asyncio
import importlib.util
import shlex
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from toolyard.errors import StorageError, StorageUnwritable
from toolyard.message import Message

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

_CONNECTIONS = 3
_CONNECT_S = 5.0
_COMMAND_S = 10.0
_PATIENCE_S = 20.0
_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2, 3.2, 3.2)
# A host that freezes inside a transaction holds up the others for so long and no longer. What the server's owner
# decided about durability stands, unless it is to have none.
_SESSION = """
SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '8s'; SET statement_timeout = '10s';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
T = TypeVar("T")
PACKAGES: Final = ("asyncpg", "pgqueuer")


def install_command() -> str:
    """Return the command that installs ``PACKAGES`` for this Python, wherever Toolyard itself came from."""
    if importlib.util.find_spec("pip"):
        return shlex.join([sys.executable, "-m", "pip", "install", *PACKAGES])
    return shlex.join(["uv", "pip", "install", "--python", sys.executable, *PACKAGES])  # an environment that uv made


try:
    import asyncpg
except ModuleNotFoundError as missing:
    raise StorageError(Message("PostgreSQL needs two more packages: {command}", command=install_command())) from missing

PASSING = (  # faults that the same work need not meet again
    OSError,  # TimeoutError too
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)

_FIXES: tuple[tuple[type[Exception], str], ...] = (
    (ValueError, "this is no database address: write postgresql://user@host:5432/name"),
    (asyncpg.InvalidPasswordError, "the password is wrong: correct it in the database address"),
    (asyncpg.InvalidAuthorizationSpecificationError, "this user may not connect: name another, or allow it there"),
    (asyncpg.InvalidCatalogNameError, "there is no such database: make it with 'createdb', or correct its name"),
    (asyncpg.InsufficientPrivilegeError, "this user may not do that: GRANT it CREATE on the database"),
    (asyncpg.DiskFullError, "the server's disk is full: free some space there and try again"),
    (asyncpg.ReadOnlySQLTransactionError, "this server is read-only (a stand-by?): name the primary one"),
    (asyncpg.TooManyConnectionsError, "the server has no connection left: raise its max_connections"),
    (asyncpg.DataCorruptedError, "the server's data is damaged: restore a backup"),
    (asyncpg.IndexCorruptedError, "the server's data is damaged: restore a backup"),
    (OSError, "the server does not answer: start it, or correct the host and port in the database address"),
    (asyncpg.InterfaceError, "the connection is lost: see that the server is running"),
    (asyncpg.QueryCanceledError, "the server needed too long: ask for less, or give it more memory and a faster disk"),
    (asyncpg.OperatorInterventionError, "the server is stopping or starting: try again in a moment"),
)

_UNWRITABLE = (asyncpg.DiskFullError, asyncpg.ReadOnlySQLTransactionError)


class PostgresServer:
    def __init__(self, url: str, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.place = _describe_address(url)
        self._url = url
        self._pool = pool

    @classmethod
    async def connect_to(cls, url: str) -> "PostgresServer":
        """Connect without retries: a wrong address is reported at once."""
        try:
            pool = await asyncpg.create_pool(
                url, min_size=0, max_size=_CONNECTIONS, init=_begin, reset=_keep_session,
                timeout=_CONNECT_S, command_timeout=_COMMAND_S, server_settings={"application_name": "toolyard"},
            )  # fmt: skip
            async with pool.acquire(timeout=_CONNECT_S):
                return cls(url, pool)
        except (*PASSING, asyncpg.PostgresError, ValueError) as error:
            raise to_storage_error(_describe_address(url), error) from error

    async def run(self, work: "Callable[[PoolConnectionProxy], Awaitable[T]]") -> T:
        trouble: Exception = TimeoutError("no answer")
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for pause in _PAUSES_S:
                    try:
                        async with self._pool.acquire(timeout=_CONNECT_S) as db:
                            return await _run_work(work, db)
                    except PASSING as error:
                        trouble = error
                    await asyncio.sleep(pause)
        except TimeoutError:
            pass
        except asyncpg.PostgresError as error:
            raise to_storage_error(self.place, error) from error
        raise to_storage_error(self.place, trouble) from trouble

    async def run_alone(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run long work once, on a connection of its own without the limits of the others. Raises StorageError."""
        try:
            db = await self.connect()
            try:
                return await work(db)
            finally:
                await db.close(timeout=_COMMAND_S)
        except (*PASSING, asyncpg.PostgresError) as error:
            raise to_storage_error(self.place, error) from error

    async def connect(self, seconds: float | None = None, **settings: str) -> asyncpg.Connection:
        """Open a connection for the caller alone, with ``settings`` for its session."""
        named = {"application_name": "toolyard", **settings}
        return await asyncpg.connect(
            self._url, timeout=_CONNECT_S if seconds is None else seconds, server_settings=named
        )

    async def close(self) -> None:
        try:
            async with asyncio.timeout(_COMMAND_S):
                await self._pool.close()
        except (TimeoutError, asyncpg.InterfaceError):
            self._pool.terminate()


def to_storage_error(place: str, error: Exception) -> StorageError:
    message = str(error) or type(error).__name__
    for kind, fix in _FIXES:
        if isinstance(error, kind):
            cause = StorageUnwritable if isinstance(error, _UNWRITABLE) else StorageError
            return cause(f"{place}: {fix} ({message})")
    return StorageError(Message("{place}: {said}", place=place, said=message))


def _describe_address(url: str) -> str:
    """Return the address without its password and options."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the database address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def _run_work(work: "Callable[[PoolConnectionProxy], Awaitable[T]]", db: "PoolConnectionProxy") -> T:
    try:
        return await work(db)
    except PASSING:
        db.terminate()  # nobody knows what state it is in
        raise


async def _begin(db: asyncpg.Connection) -> None:
    await db.execute(_SESSION)


async def _keep_session(_db: asyncpg.Connection) -> None:
    """Keep the session as it is: no work leaves anything in it, and a reset would cost a round trip."""
