"""The doctor of a home whose state is damaged, and what a server says of the same state."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_cli import Shell
from tests.gateway.upstream import Script, provider, replies
from tests.plugins.folders import make_plugin
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


def write_settings(shell: Shell, text: str) -> None:
    home = Path(shell.environment["TOOLYARD_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text)


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


@pytest.mark.requirement("doctor:plugins")
def test_the_doctor_names_each_plugin_that_cannot_be_used_and_what_to_do(shell: Shell, project: Path) -> None:
    make_plugin(project / "plugins", "Waits")
    (project / "plugins/Broken").mkdir()
    (project / "plugins/Broken/plugin-manifest.json").write_text('{"name": ')
    needs = make_plugin(
        Path(shell.environment["TOOLYARD_HOME"]) / "plugins", "Needs", configSchema={"KEY": {"required": True}}
    )
    assert shell.run("plugin", "allow", "Needs", "--yes").returncode == 0
    done = shell.run("doctor", "--json")
    rows = [one for one in json.loads(done.stdout) if one["name"] == "plugins" and one["health"] == "warn"]
    found = {row["detail"].partition(":")[0]: row for row in rows}
    assert (done.returncode, sorted(found)) == (0, ["Broken", "Needs", "Waits"])
    assert "toolyard plugin lint" in found["Broken"]["fix"]
    assert found["Waits"]["fix"].startswith("Run: toolyard plugin allow Waits --home ")
    assert (
        f"it needs configuration: set KEY on its page in the console, or in {needs}/config.env"
        in (found["Needs"]["detail"])
    )
    assert "toolyard plugin disable Needs --home " in found["Needs"]["fix"]


@pytest.mark.requirement("doctor:providers")
async def test_the_doctor_asks_the_model_providers_and_masks_their_keys(shell: Shell) -> None:
    async with provider(replies("x")) as fine, provider(replies("x")) as strict:
        strict.models = Script([b'{"error": "wrong: sk-secret-one"}'], kind="application/json", status=401)
        write_settings(
            shell,
            'upstream_url = "http://127.0.0.1:9/v1"\n'
            f'[upstreams.fine]\nurl = "{fine.url}"\n'
            f'[upstreams.strict]\nurl = "{strict.url}"\nkey = "sk-secret-one"\n',
        )
        done = await asyncio.to_thread(shell.run, "doctor", "--json")
    rows = [one for one in json.loads(done.stdout) if one["name"] == "providers"]
    assert [row["health"] for row in rows] == ["fail", "ok", "fail"]
    assert ("'upstream' at http://127.0.0.1:9/v1" in rows[0]["detail"], "check its port" in rows[0]["fix"]) == (
        True,
        True,
    )
    assert ("answered 401" in rows[2]["detail"], "Copy the key again" in rows[2]["fix"]) == (True, True)
    assert (done.returncode, "sk-secret-one" in done.stdout) == (1, False)


@pytest.mark.requirement("project:wide")
def test_models_get_the_home_folder_only_if_somebody_names_it(shell: Shell, tmp_path: Path) -> None:
    shell.project = tmp_path  # which is also the home folder of the user
    for words in (
        ("serve", "--port", "0"),
        ("chat",),
        ("mcp", "serve"),
        ("worker",),
        ("service", "install", "--print"),
    ):
        done = shell.run(*words)
        assert (done.returncode, f"your home folder ({tmp_path})" in done.stderr) == (2, True), done
        assert f"--project {tmp_path}" in done.stderr
    shell.project = Path("/")
    assert "the whole disk (/)" in shell.run("chat").stderr
    [check] = [one for one in json.loads(shell.run("doctor", "--json").stdout) if one["name"] == "project"]
    assert (check["health"], "models can read every file in it" in check["detail"]) == ("warn", True)
    shell.project = tmp_path
    assert shell.run("chat", "--project", ".").returncode == 0
    assert shell.run("call", "LS").returncode == 0
