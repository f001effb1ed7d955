"""The rarer work of a home, until it is killed: ``python -m tests.crash.care PLACE POINT:N``.

A key and an address are written, a plugin is put in place and taken away, the state is repaired, and a backup is made
and restored.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.crash.host import ack, kill_at
from toolyard.plugins.package.archive import move_into_place
from toolyard.plugins.package.install import FOLDER, remove_plugin
from toolyard.protocol.store import Record
from toolyard.storage.backup_archive import back_up
from toolyard.storage.backup_restore import restore
from toolyard.storage.repair import repair
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE
from toolyard.web.security.owner_key import make_owner_key
from toolyard.web.server.running_server import announce

SETTINGS = "config.toml"


async def keep(home: Path, name: str) -> None:
    store = SqliteStore(home / STATE)
    await store.commit([Record(kind="thing", id=name, state="open", created=1, updated=1)])
    await store.close()


def main(place: Path) -> None:
    home = place / "home"
    asyncio.run(keep(home, "first"))
    (home / SETTINGS).write_text("# first\n")
    ack("key", text=make_owner_key(home))
    for url in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        announce(home, url, place)
        ack("announced", url=url)
    draft = place / "draft"
    draft.mkdir()
    (draft / "main.py").write_text("whole")
    (home / FOLDER).mkdir()
    move_into_place(draft, home / FOLDER / "Tool")
    ack("installed")
    remove_plugin(Path(os.path.realpath(home / FOLDER / "Tool")), home, stamp="now")
    ack("removed")
    repair(home / STATE, place / "before-repair")
    ack("repaired")
    back_up(home, place / "backup.tar.gz")
    ack("backup")
    asyncio.run(keep(home, "second"))
    (home / SETTINGS).write_text("# second\n")
    restore(place / "backup.tar.gz", home, place / "aside")
    ack("restored")


if __name__ == "__main__":
    where, point = sys.argv[1:]
    name, _, nth = point.partition(":")
    kill_at(name, int(nth))
    main(Path(where))
    ack("closed")
