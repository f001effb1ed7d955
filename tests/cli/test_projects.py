"""Two projects that share a home: each command works on the one it is told or stands in, and names it."""

import asyncio
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import TOOLYARD, WAIT_S, Shell
from tests.web.server_process import start_server
from toolyard.cli.chat_client import open_chat_client
from toolyard.config import load_config
from toolyard.engine.clock import SystemClock
from toolyard.errors import UsageError
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE

pytestmark = pytest.mark.requirement("cli:project:named")


@pytest.fixture
def shells(tmp_path: Path) -> tuple[Shell, Shell]:
    """Terminals that stand in the one and in the other project."""
    places = tmp_path / "shop", tmp_path / "site"
    for place in places:
        place.mkdir()
        (place / f"{place.name}.txt").write_text(place.name)
    return Shell(places[0], tmp_path), Shell(places[1], tmp_path)


def paste(message: str, shell: Shell) -> "subprocess.CompletedProcess[str]":
    """Type the command that a message names into a shell of the same user that stands elsewhere."""
    words = shlex.split(message[message.index("toolyard ") :].splitlines()[0].rstrip("'."))
    environment = {name: value for name, value in shell.environment.items() if name != "TOOLYARD_HOME"}
    return subprocess.run(
        [*TOOLYARD, *words[1:]], cwd="/", env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False
    )


def test_the_journal_is_that_of_the_project_unless_all_are_asked_for(shells: tuple[Shell, Shell]) -> None:
    shop, site = shells
    for shell in shells:
        assert shell.run("call", "LS").returncode == 0
    (own,) = shop.json("journal", "list", "--json")
    (other,) = shop.json("journal", "list", "--json", "--project", str(site.project))
    assert (own["project"], other["project"]) == (str(shop.project), str(site.project))
    listed = shop.run("journal", "list")
    assert (own["id"] in listed.stdout, other["id"] in listed.stdout) == (True, False)
    assert (listed.stdout.splitlines()[0], listed.stderr) == (f"Project: {shop.project}", "")
    everywhere = shop.run("journal", "list", "--all-projects")
    assert "PROJECT" in everywhere.stdout.splitlines()[0]
    assert {one["id"] for one in shop.json("journal", "list", "--all-projects", "--json")} == {own["id"], other["id"]}
    shown = shop.run("journal", "show", other["id"])
    assert f"project: {site.project}" in shown.stdout
    empty = shop.run("journal", "list", "--project", str(shop.project.parent))
    assert (empty.stdout, empty.stderr) == (
        f"Project: {shop.project.parent}\n",
        "No matches; --all-projects looks everywhere.\n",
    )


def test_a_call_of_another_project_is_undone_there_by_the_command_that_is_told(shells: tuple[Shell, Shell]) -> None:
    shop, site = shells
    site.run("call", "Write", "path=new.txt", "content=x")
    (call,) = site.json("journal", "list", "--json")
    refused = shop.run("journal", "undo", call["id"])
    told = f"The call '{call['id']}' ran in the project {site.project}, not in {shop.project}."
    assert (refused.returncode, told in refused.stderr) == (1, True)
    assert (site.project / "new.txt").exists()
    undone = paste(refused.stderr, shop)
    assert (undone.stderr, undone.stdout) == (
        "",
        f"Deleted new.txt in {site.project}, which the call had created.\n",
    )
    assert not (site.project / "new.txt").exists()


def test_a_task_is_cancelled_and_retried_in_its_own_project(shells: tuple[Shell, Shell]) -> None:
    shop, site = shells
    home = Path(shop.environment["TOOLYARD_HOME"])
    assert shop.run("call", "LS").returncode == 0

    async def store_tasks() -> None:
        now = SystemClock().now().timestamp()  # an older one without a process counts as lost
        store = SqliteStore(home / STATE)
        for shell in shells:
            task = Task(
                id=f"task_{shell.project.name}", plugin="EchoPlugin", task_id=shell.project.name, call_id="",
                state=TaskState.WAITING, caller="cli", created=now, updated=now, deadline=9e9, token_hash="",
                arguments={"text": "again"}, project=str(shell.project),
            )  # fmt: skip
            assert await store.commit([task.to_record()])
        await store.close()

    asyncio.run(store_tasks())
    assert [one["id"] for one in shop.json("task", "list", "--json")] == ["task_shop"]
    retried, refused = (shop.run("task", word, "task_site") for word in ("retry", "cancel"))
    for done in (retried, refused):
        assert f"the task task_site belongs to the project {site.project}, not to {shop.project}" in done.stderr
    cancelled = shop.run("task", "cancel", "--all")
    assert (cancelled.stderr, cancelled.stdout) == ("", f"1 task cancelled in {shop.project}.\n")
    states = {one["id"]: one["state"] for one in shop.json("task", "list", "--all-projects", "--json")}
    assert states == {"task_shop": "cancelled", "task_site": "waiting_callback"}
    assert paste(refused.stderr, shop).stdout == f"1 task cancelled in {site.project}.\n"


async def test_a_chat_works_on_its_own_project_beside_a_server_of_another(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/only-here.txt").write_text("x")
    chat = [sys.executable, "-m", "toolyard", "chat", "--home", str(tmp_path / "home")]

    async def talk(folder: Path, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *chat, *words, cwd=folder, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await asyncio.wait_for(process.communicate(b"files\n"), WAIT_S)
        return output.decode()

    async with start_server(tmp_path) as server:
        served = await talk(server.project)
        own = await talk(tmp_path / "site")
        named = await talk(server.project, "--project", str(tmp_path / "site"))
        _, journal = await server.request("GET", "/v1/calls")
        home = load_config(tmp_path / "site", tmp_path / "home")
        with pytest.raises(UsageError, match=rf"works on {server.project}, not on {tmp_path}/site"):
            async with open_chat_client(home, url=server.url, key=server.key, names_project=True):
                pytest.fail("the server has another project")
    assert f"tour at {server.url}, project {server.project}." in served
    for output in (own, named):
        assert f"(the running server works on {server.project}), project {tmp_path}/site." in output
        assert "only-here.txt" in output
    assert "only-here.txt" not in served
    assert {call["project"] for call in journal["data"]} == {str(server.project), f"{tmp_path}/site"}


async def test_a_chat_in_a_folder_that_is_too_wide_names_the_project_of_the_running_server(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    async with start_server(tmp_path) as server:
        words = [sys.executable, "-m", "toolyard", "chat", "--home", str(tmp_path / "home")]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=tmp_path, env=environment, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await asyncio.wait_for(process.communicate(), WAIT_S)
        suggested = f"toolyard chat --home {tmp_path}/home --project {server.project}"
        assert (process.returncode, f"'{suggested}'" in errors.decode()) == (2, True), errors
        answered = await asyncio.create_subprocess_exec(
            *words, "--project", str(server.project), cwd="/", env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(answered.communicate(), WAIT_S)
    assert f"at {server.url}, project {server.project}." in output.decode()


def test_the_answer_of_a_command_in_json_names_the_project(shells: tuple[Shell, Shell]) -> None:
    shop, _ = shells
    shop.run("call", "Write", "path=new.txt", "content=x")
    (call,) = shop.json("journal", "list", "--json")
    undone = json.loads(shop.run("journal", "undo", call["id"], "--json").stdout)
    assert undone == {"call_id": call["id"], "project": str(shop.project), "restored": [], "deleted": ["new.txt"]}
