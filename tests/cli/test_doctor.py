"""The doctor of a home whose state is damaged, and what a server says of the same state."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_cli import Shell
from tests.storage.damage import MANY, damage, fill, read_all
from toolyard.doctor import run_checks
from toolyard.engine.ownership import OwnerLock


@pytest.fixture
def shell(project: Path, tmp_path: Path) -> Shell:
    return Shell(project, tmp_path)


@pytest.fixture
async def state(shell: Shell) -> Path:
    file = Path(shell.environment["TOOLYARD_HOME"]) / "state.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    await fill(file)
    return file


def read_checks(shell: Shell, *words: str) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in json.loads(shell.run("doctor", "--json", *words).stdout)}


@pytest.mark.requirement("doctor:integrity", "doctor:repair")
async def test_the_doctor_finds_a_damaged_index_says_what_is_affected_and_repairs_it(shell: Shell, state: Path) -> None:
    before = await read_all(state)
    damage(state, "records_by_due")
    match = read_checks(shell)["state"]
    assert match["health"] == "fail"
    assert "records_by_due: schedules that are due are found with it" in match["detail"]
    assert (f"toolyard doctor --repair --home {state.parent}" in match["fix"], "restore" in match["fix"]) == (
        True,
        False,
    )
    result = read_checks(shell, "--repair")
    assert [result[name]["health"] for name in ("repair", "state")] == ["ok", "ok"]
    assert f"{MANY} records and {MANY} events are kept" in result["repair"]["detail"]
    assert await read_all(state) == before
    assert "nothing was changed" in read_checks(shell, "--repair")["repair"]["detail"]


@pytest.mark.requirement("doctor:repair")
def test_a_state_is_not_repaired_while_a_server_owns_its_home(shell: Shell, state: Path) -> None:
    damage(state, "records_by_due")
    damaged = state.read_bytes()
    lock = OwnerLock.acquire(state.parent)
    done = shell.run("doctor", "--repair")
    lock.release()
    assert (done.returncode, "stop it first" in done.stderr) == (3, True)
    assert state.read_bytes() == damaged


@pytest.mark.requirement("state:named-alike")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("CREATE TABLE notes (a)", "is no state of Toolyard: Toolyard has no table 'notes'"),
        ("DROP INDEX records_by_due", "is damaged (missing index: records_by_due): rebuild it with 'toolyard doctor"),
        ("PRAGMA user_version = 0", "is no state of Toolyard: it has tables, but its format number is 0"),
        ("DROP TABLE events", "is no state of Toolyard: its table 'events' is missing"),
    ],
)
def test_a_foreign_state_is_named_the_same_way_by_the_server_and_the_doctor(
    shell: Shell, state: Path, change: str, said: str
) -> None:
    with closing(sqlite3.connect(state)) as db:
        db.execute(change)
    before = state.read_bytes()
    result = read_checks(shell)["state"]
    assert (result["health"], f"{state} {said}" in result["detail"]) == ("fail", True)
    for words in (("serve", "--port", "0"), ("journal", "list")):
        done = shell.run(*words)
        assert (done.returncode, result["detail"] in done.stderr) == (1, True), done.stderr
    assert state.read_bytes() == before


@pytest.mark.requirement("proxy:doctor")
@pytest.mark.parametrize(
    ("settings", "health", "said"),
    [
        ('public_url = "https://example.org/yard"\ntrusted_proxies = ["127.0.0.1"]', "ok", "https://example.org/yard"),
        ('public_url = "http://localhost:8080"', "ok", "http://localhost:8080"),
        ('public_url = "https://example.org/yard"', "warn", "trusted_proxies is empty"),
        ('public_url = "http://example.org"', "warn", "is not encrypted"),
        ('public_url = "https://example.org:6005"', "warn", "the port on which the server itself speaks plain HTTP"),
        ('public_url = "http://0.0.0.0:6005"', "warn", "an address to listen on, not one to open"),
    ],
)
def test_a_public_url_that_does_not_fit_the_other_settings_is_told(
    project: Path, tmp_path: Path, settings: str, health: str, said: str
) -> None:
    (tmp_path / "config.toml").write_text(settings)
    [found] = [one for one in run_checks(str(project), str(tmp_path), []) if one.name == "public_url"]
    assert (found.health.value, said in found.detail, bool(found.fix)) == (health, True, health != "ok")
