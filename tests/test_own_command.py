"""Hints name commands that reach the home and the project they are about, from any shell of the user."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from tests.web.server_process import start_server
from toolyard.cli import toolyard as command_line
from toolyard.cli.common_options import CommonOptions
from toolyard.config import find_own_command, load_config

pytestmark = pytest.mark.requirement("home:hints")

SOURCE = Path(__file__).parents[1] / "src/toolyard"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TOOLYARD_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_default_home_needs_no_option_however_it_was_named(user: Path) -> None:
    default = load_config(user).home
    assert find_own_command().format("doctor") == "toolyard doctor"
    assert find_own_command(default).format("doctor") == "toolyard doctor"
    assert load_config(None, default).own_command.options == ""


def test_another_home_is_named_and_quoted(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(user)
    assert find_own_command("my home").format("doctor") == f"toolyard doctor --home '{user}/my home'"
    assert load_config(None, user / "other").own_command.format("audit") == f"toolyard audit --home {user}/other"


def test_a_project_and_given_plugins_are_named_unless_the_reader_stands_in_the_project(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(user)
    (user / "my shop").mkdir()
    named = load_config("my shop", plugin_folders=["my shop"]).own_command
    options = f"--project '{user}/my shop' --plugins '{user}/my shop'"
    assert named.format("plugin list") == f"toolyard plugin list {options}"
    assert named.for_home.format("login") == "toolyard login"
    assert load_config(None).own_command.format("plugin list") == "toolyard plugin list"
    assert CommonOptions().own_command == load_config(None).own_command
    assert CommonOptions(project="my shop", plugins=("my shop",)).own_command == named
    assert CommonOptions().config().own_command.project is None
    monkeypatch.chdir(user / "my shop")
    assert CommonOptions().serving_config().own_command.project == user / "my shop"  # its clients stand elsewhere


def test_a_name_is_quoted_as_a_shell_needs_it(user: Path) -> None:
    hostile = "x; touch here"
    assert find_own_command().format("plugin enable", hostile) == "toolyard plugin enable 'x; touch here'"
    assert find_own_command().format("plugin allow", "A", "--detached") == "toolyard plugin allow A --detached"


def test_a_home_from_the_environment_is_named_because_another_shell_may_not_have_it(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLYARD_HOME", str(user / "mine"))
    assert load_config(None).own_command.format("audit") == f"toolyard audit --home {user}/mine"
    default = user / ".local/share/toolyard"  # not the one that a command without an option finds
    assert load_config(None, default).own_command.format("audit") == f"toolyard audit --home {default}"


WRITTEN_OUT = {
    "cli/chat_client.py",  # of the machine with the other server
    "cli/commands/service.py",  # it names the home itself
    "cli/service_managers.py",  # in the file that it writes
}


def test_no_message_names_a_command_without_the_home() -> None:
    """Commands are made by OwnCommand; those of ``toolyard help`` need no home."""
    names = "|".join(name for name in command_line.list_commands(None) if name != "help")  # type: ignore[arg-type]
    command = re.compile(rf"\btoolyard (?:{names})\b")
    written = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        if str(file.relative_to(SOURCE)) not in WRITTEN_OUT
        for node, text in _list_strings(ast.parse(file.read_text("utf-8")))
        if command.search(text)
    ]
    assert written == []


def _list_strings(tree: ast.Module) -> list[tuple[ast.Constant, str]]:
    """All strings but the docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    documented = {id(one.value) for one in first if isinstance(one, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documented]
    return [(node, node.value) for node in constants if isinstance(node.value, str)]


def _type(command: str) -> str:
    """Type a command into a shell that knows nothing of the server, and return its output."""
    program = f'toolyard() {{ "{sys.executable}" -m toolyard "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOOLYARD_")}
    done = subprocess.run(
        ["sh", "-c", program + command], env=environment, capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("root", "words"), [("home/plugins", ()), ("project/plugins", ()), ("given", ("--plugins", "given"))]
)
async def test_the_commands_that_a_server_names_reach_its_home_and_project(
    tmp_path: Path, root: str, words: tuple[str, ...]
) -> None:
    place = tmp_path / "a place"
    folder = make_plugin(place / root, "New")
    (folder / "main.py").write_text("""print('{"status": "success", "result": "it runs"}')""")
    async with start_server(place, *(str(place / word) if word == root else word for word in words)) as server:
        assert server.process.stdout is not None
        key_hint = (await server.process.stdout.readline()).decode()
        assert _type(key_hint.partition(": ")[2]).strip() == server.key
        _, refused = await server.request("POST", "/v1/tools/New", {})
        review = re.search(r"'(toolyard plugin allow .*)'\.", refused["error"]["message"])
        assert review is not None, refused
        _type(f"{review[1]} --yes")
        _, allowed = await server.request("POST", "/v1/tools/New", {})
        assert (refused["status"], allowed["status"]) == ("error", "success"), allowed


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("login",), "serve"),
        (("approval", "allow", "x"), "approval list"),
        (("plugin", "allow", "Nope"), "plugin list"),
        (("task", "show", "x"), "task list"),
        (("journal", "show", "x"), "journal list"),
        (("schedule", "cancel", "x"), "schedule list"),
        (("schedule", "add", "LS", "--at", "2099-01-01 10:00"), "schedule run"),
    ],
)
def test_the_hint_of_a_command_names_the_home_and_the_project_that_were_named(
    user: Path, words: tuple[str, ...], hint: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolyard", *words, "--home", str(user / "other"), "--project", str(user)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"toolyard {hint} --home {user}/other --project {user}" in done.stderr, done
