"""Commands whose state is in the database of many hosts: they use that one, and say so when it is away."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from click.testing import CliRunner, Result

from tests import postgres
from toolyard.cli import toolyard
from toolyard.doctor import CheckStatus, run_checks
from toolyard.errors import StorageError

pytestmark = pytest.mark.requirement("hosts:shared")

AWAY = "postgresql://me:pass-phrase@127.0.0.1:1/none"


@pytest.fixture
def unreachable_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLYARD_DATABASE", AWAY)


def run(project: Path, *words: str) -> Result:
    return CliRunner().invoke(toolyard, ["--project", str(project), "--home", str(project.parent / "home"), *words])


@pytest.mark.usefixtures("unreachable_database")
@pytest.mark.parametrize("words", ["chat", "mcp serve", "tools export", "import vcp VCP", "approval list", "call LS"])
def test_what_is_asked_for_and_allowed_is_kept_where_the_other_hosts_see_it(project: Path, words: str) -> None:
    (project.parent / "VCP/Plugin").mkdir(parents=True)
    refused = run(project, *words.replace("VCP", str(project.parent / "VCP")).split(" ")).exception
    assert isinstance(refused, StorageError)
    assert "postgresql://127.0.0.1:1/none" in str(refused)
    assert "pass-phrase" not in str(refused)
    assert not (project.parent / "home/state.db").exists()


@pytest.mark.requirement("cli:doctor")
@pytest.mark.usefixtures("unreachable_database")
def test_the_doctor_says_that_the_database_is_away_and_how_to_mend_it(project: Path) -> None:
    done = run(project, "doctor")
    assert done.exit_code == 1
    assert "✗ state: postgresql://127.0.0.1:1/none: the server does not answer" in done.output
    assert "→ Correct the setting `database`, or start its server." in done.output
    assert "pass-phrase" not in done.output


@pytest.mark.usefixtures("unreachable_database")
@pytest.mark.requirement("trust:signed-calls")
def test_the_doctor_warns_of_hosts_without_a_cluster_key(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "! cluster_key: not set: whoever can write to the database" in run(project, "doctor").output
    monkeypatch.setenv("TOOLYARD_CLUSTER_KEY", "too short")
    assert "cluster_key: expected a random text of at least 32 characters" in run(project, "doctor").output
    monkeypatch.setenv("TOOLYARD_CLUSTER_KEY", "long-enough-" * 3)
    done = run(project, "doctor").output
    assert ("✓ cluster_key: calls between hosts are signed" in done, "long-enough-" in done) == (True, False)


@pytest.mark.requirement("cli:doctor")
async def test_the_doctor_looks_at_the_database_and_writes_nothing_there(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with postgres.database(new=True) as url:
        monkeypatch.setenv("TOOLYARD_DATABASE", url)
        checks = await asyncio.to_thread(lambda: list(run_checks(str(project), str(tmp_path / "home"), ())))
        there = await asyncpg.connect(url)
        assert await there.fetchval("SELECT to_regnamespace('toolyard')") is None
        await there.close()
    state = next(check for check in checks if check.name == "state")
    assert state.health is CheckStatus.OK
    assert state.detail.endswith(" answers")


@pytest.mark.usefixtures("unreachable_database")
def test_a_backup_says_that_the_state_is_not_in_it(project: Path) -> None:
    (project.parent / "home").mkdir()
    (project.parent / "home/config.toml").write_text("port = 7001\n")
    file = str(project.parent / "backup.tar.gz")
    done = run(project, "backup", file)
    assert "The state is in PostgreSQL and not part of this backup" in done.stderr
    assert "config.toml" in done.stdout
