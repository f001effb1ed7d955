"""``toolyard worker`` on the command line."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import postgres
from tests.hosts.yards import config_of, effects_folder, host, plugin, sees, shell_plugin, workers
from tests.waiting import wait_until
from toolyard.cli import toolyard
from toolyard.config import load_config
from toolyard.errors import ConfigError, StorageError, UsageError
from toolyard.storage.postgres import PostgresStore

pytestmark = pytest.mark.requirement("hosts:shared")


def run(*words: str) -> BaseException | None:
    return CliRunner().invoke(toolyard, ["worker", *words]).exception


def test_a_worker_needs_a_database(tmp_path: Path) -> None:
    config_of(tmp_path)
    refused = run("--project", str(tmp_path / "project"), "--home", str(tmp_path / "home"))
    assert isinstance(refused, UsageError)
    assert "--database postgresql://" in str(refused)


def test_an_address_where_nobody_answers_is_told_without_its_password(tmp_path: Path) -> None:
    config_of(tmp_path)
    where = ("--project", str(tmp_path / "project"), "--home", str(tmp_path / "home"))
    refused = run(*where, "--database", "postgresql://me:secret@127.0.0.1:1/none")
    assert isinstance(refused, StorageError)
    assert "postgresql://127.0.0.1:1/none" in str(refused)
    assert "secret" not in str(refused)


def test_the_database_is_a_setting_that_is_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLYARD_DATABASE", "postgresql://me:password@db/toolyard")
    config = load_config(tmp_path, tmp_path)
    assert config.secrets == ("postgresql://me:password@db/toolyard",)
    assert "TOOLYARD_DATABASE" in config.secret_variables
    monkeypatch.setenv("TOOLYARD_DATABASE", "mysql://db/toolyard")
    with pytest.raises(ConfigError, match="expected the address of a PostgreSQL database"):
        load_config(tmp_path, tmp_path)


async def test_a_worker_announces_its_tools_and_leaves_when_it_is_asked_to(tmp_path: Path) -> None:
    plugin(tmp_path / "w", "Echo")
    async with postgres.database(new=True) as url:
        store = await PostgresStore.open(url)
        async with workers(url, tmp_path / "w") as (worker,):
            there = await store.get("host", worker.name)
            assert there is not None
            assert there.state == "up"
            tools = there.body["tools"]
            assert isinstance(tools, list)
            assert "Echo" in tools
            assert await worker.end(kill=False) == 0
            gone = await store.get("host", worker.name)
            assert gone is not None
            assert gone.state == "left"
        await store.close()


@pytest.mark.usefixtures("hasty")
async def test_a_second_signal_stops_a_worker_at_once(tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "w", "Slow", "echo start >> $file; sleep 300\n")
    async with (
        postgres.database(new=True) as url,
        host(tmp_path / "a", url) as a,
        workers(url, tmp_path / "w") as (worker,),
    ):
        await sees(a.yard, "Slow")
        call = a.yard.calls.request("Slow", {"file": str(effect)})
        running = asyncio.create_task(a.yard.calls.settle(call))
        await wait_until(effect.exists)
        process = worker._process
        assert process is not None
        process.terminate()
        await wait_until(lambda: a.directory.find_remote_tool("Slow") is None)
        process.terminate()
        async with asyncio.timeout(60):
            assert await process.wait() == 1
        async with asyncio.timeout(60):
            assert (await running).envelope.context["reason"] in ("INTERRUPTED", "CANCELLED")
