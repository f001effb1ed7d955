"""A program that opens a Yard uses the database of its settings: its journal, and the tools of other hosts."""

import asyncio
import json
from pathlib import Path

import pytest

import toolyard
from tests.hosts.yards import host, plugin, sees
from tests.postgres import database
from toolyard.errors import StorageError
from toolyard.protocol.store import Query
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE

pytestmark = pytest.mark.requirement("python:database")


def make_place(place: Path, database_url: str) -> tuple[Path, Path]:
    """A project, and a home whose settings name the database."""
    project, home = place / "project", place / "home"
    for folder in (project, home):
        folder.mkdir(parents=True)
    (home / "config.toml").write_text(f"database = {json.dumps(database_url)}\n")
    (home / "config.toml").chmod(0o600)
    return project, home


def call_blocking(project: Path, home: Path, tool: str) -> tuple[str, list[str]]:
    """Where the tool ran, and the names of the tools that the program sees."""
    with toolyard.open(project=project, home=home) as yard:
        envelope = yard.call(tool)
        return str(envelope.data.get("where")), [one["name"] for one in yard.tools(dialect="anthropic")]


async def test_calls_are_in_the_journal_of_the_database_and_reach_the_tools_of_other_hosts(tmp_path: Path) -> None:
    plugin(tmp_path / "b", "Echo")
    async with database() as url, host(tmp_path / "b", url) as other:
        project, home = make_place(tmp_path / "a", url)
        where, names = await asyncio.to_thread(call_blocking, project, home, "Echo")
        assert (where, "Echo" in names, "LS" in names) == ("b", True, True)
        async with toolyard.open_async(project=project, home=home) as yard:
            assert not isinstance(yard.state.store, SqliteStore)
            await sees(yard, "Echo")
            assert (await yard.call("Echo")).data["where"] == "b"
            assert (await yard.call("LS")).status == "success"
        calls = await other.yard.state.journal.page(Query(), limit=10)
        assert [call.tool for call in calls] == ["LS", "Echo", "Echo"]
    assert not (home / STATE).exists()


async def test_a_database_that_cannot_be_reached_is_an_error_of_opening(tmp_path: Path) -> None:
    nowhere = "postgresql://tests@127.0.0.1:1/none"
    project, home = make_place(tmp_path / "a", nowhere)
    with pytest.raises(StorageError, match=r"127\.0\.0\.1"):
        await asyncio.to_thread(call_blocking, project, home, "LS")
    with pytest.raises(StorageError, match=r"127\.0\.0\.1"):
        async with toolyard.open_async(project=project, home=home):
            pass
