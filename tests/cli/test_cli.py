"""The command line as a person or a script uses it: real processes, real exit codes."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.built_in_tools import BUILT_IN_TOOLS
from toolyard.settings import SETTINGS

TOOLYARD = [sys.executable, "-m", "toolyard"]
WAIT_S = 120


class Shell:
    """Runs ``toolyard`` in a project, with a home and an environment of its own."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TOOLYARD_HOME": str(home / "toolyard"),
            "COLUMNS": "100",
        }

    def run(self, *words: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*TOOLYARD, *words],
            cwd=self.project,
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    def json(self, *words: str, stdin: str = "") -> Any:
        return json.loads(self.run(*words, stdin=stdin).stdout)


@pytest.fixture
def shell(project: Path, tmp_path: Path) -> Shell:
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print('hello')\n")
    (project / "README.md").write_text("# Title\n\nText.\n")
    return Shell(project, tmp_path)


@pytest.mark.requirement("cli:call", "cli:exit:success", "cli:stdout", "envelope:seed-example")
def test_call_prints_the_full_envelope_and_nothing_else(shell: Shell) -> None:
    done = shell.run("call", "LS", "path=src", "limit=2")
    envelope = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(envelope) == ["status", "data", "text", "stats", "context"]
    assert envelope["status"] == "success"
    assert [entry["path"] for entry in envelope["data"]["entries"]] == ["src/main.py"]
    assert envelope["context"] == {
        "cwd": ".",
        "params_input": {"path": "src", "limit": 2},
        "path_resolved": "src",
        "truncation_skip": True,
    }


@pytest.mark.requirement("cli:exit:success")
def test_a_partial_result_exits_0(shell: Shell) -> None:
    done = shell.run("call", "LS", "limit=1")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "partial")


@pytest.mark.requirement("cli:exit:failure", "cli:stdout")
@pytest.mark.parametrize("words", [("Read", "path=missing.txt"), ("Nothing",), ("LS", "limit=ten")])
def test_a_failed_tool_exits_1_and_still_prints_its_envelope(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run("call", *words)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "error")


@pytest.mark.requirement("cli:exit:usage", "cli:stdout")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call",), "Missing argument 'TOOL'"),
        (("call", "LS", "src"), "'src' is not KEY=VALUE: write it like path=src"),
        (("call", "LS", "limit=1", "limit=2"), "'limit' is given twice"),
        (("call", "LS", "--args", "{"), "--args is not valid JSON: Expecting property name"),
        (("call", "LS", "--args", "[1]"), "--args must be a JSON object"),
        (("call", "LS", "--args", "@missing.json"), "cannot read 'missing.json'"),
        (
            ("call", "LS", "--dialect", "xml"),
            "'xml' is not one of 'envelope', 'vcp', 'backend', 'openai', 'anthropic', 'mcp'",
        ),
        (("call", "LS", "--project", "nowhere"), "the project 'nowhere' is not a folder"),
        (("frobnicate",), "No such command 'frobnicate'"),
        (("call", "LS", "--frobnicate"), "No such option"),
    ],
)
def test_a_usage_error_exits_2_and_says_how_to_write_it(shell: Shell, words: tuple[str, ...], said: str) -> None:
    done = shell.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.requirement("cli:call:key-value")
def test_key_value_words_take_the_types_of_the_schema(shell: Shell) -> None:
    words = ("limit=5", "include_hidden=true", "ignore=*.md", "ignore=build/", "Depth=2")
    envelope = shell.json("call", "LS", *words)
    assert envelope["context"]["params_input"] == {
        "limit": 5,
        "include_hidden": True,
        "ignore": ["*.md", "build/"],
        "Depth": 2,
    }
    assert [entry["path"] for entry in envelope["data"]["entries"]] == ["src/", "src/main.py"]


@pytest.mark.requirement("cli:call:key-value")
def test_a_value_may_hold_equals_signs_and_json_lists(shell: Shell) -> None:
    (shell.project / "a=b.txt").write_text("x")
    assert shell.json("call", "Read", "path=a=b.txt")["data"]["content"] == "1\tx"
    assert shell.json("call", "LS", 'ignore=["*.md"]')["context"]["params_input"] == {"ignore": ["*.md"]}


@pytest.mark.requirement("cli:call:args")
def test_arguments_come_as_json_from_a_file_or_from_stdin(shell: Shell) -> None:
    (shell.project / "args.json").write_text('{"path": "README.md"}')
    expected = "1\t# Title\n2\t\n3\tText."
    for words, stdin in (
        (("--args", '{"path": "README.md"}'), ""),
        (("--args", "@args.json"), ""),
        (("--args", "-"), '{"path": "README.md"}'),
    ):
        assert shell.json("call", "Read", *words, stdin=stdin)["data"]["content"] == expected
    assert shell.json("call", "Read", "--args", "@args.json", "limit=1")["data"]["next_line"] == 2


@pytest.mark.requirement("cli:call:dialect")
def test_call_prints_each_dialect(shell: Shell) -> None:
    vcp = shell.json("call", "LS", "path=src", "--dialect", "vcp")
    assert vcp["status"] == "success"
    assert vcp["result"]["details"]["message"] == "Listed 1 entry in 'src'."
    assert json.loads(vcp["result"]["content"][1]["text"]) == vcp["result"]["details"]["entries"]
    backend = shell.json("call", "LS", "path=src", "--dialect", "backend")
    assert (backend["type"], backend["tool_name"]) == ("backend_only", "LS")
    openai = shell.json("call", "LS", "path=src", "--dialect", "openai")
    assert openai["content"].startswith("Listed 1 entry in 'src'.\n")
    mcp = shell.json("call", "LS", "path=src", "--dialect", "mcp")
    assert (mcp["_meta"]["toolyard/envelope"]["status"], mcp["isError"]) == ("success", False)


@pytest.mark.requirement("cli:call:shown")
def test_shown_prints_what_a_model_would_see(shell: Shell) -> None:
    (shell.project / "long.txt").write_text("x" * 100 + "\n")
    words = [f"path{number}=long.txt" for number in range(1, 400)]
    full = shell.json("call", "Read", *words)
    view = shell.json("call", "Read", *words, "--shown")
    assert len(full["data"]["results"]) == 399
    assert view["data"]["truncated"] is True
    assert (
        json.loads((shell.project / view["data"]["truncation"]["full_output_path"]).read_text())["data"] == full["data"]
    )


@pytest.mark.requirement("cli:project")
def test_the_project_may_be_named_before_or_after_the_command(shell: Shell) -> None:
    (shell.project / "other").mkdir()
    (shell.project / "other/x").write_text("")
    for words in (("--project", "other", "call", "LS"), ("call", "--project", "other", "LS")):
        assert [entry["path"] for entry in shell.json(*words)["data"]["entries"]] == ["x"]


@pytest.mark.requirement("cli:home")
def test_a_call_leaves_the_project_alone_and_keeps_its_state_in_the_home(shell: Shell) -> None:
    shell.run("call", "LS")
    home = Path(shell.environment["TOOLYARD_HOME"])
    assert sorted(path.name for path in home.iterdir()) == ["machines", "state.db"]
    assert (home.stat().st_mode & 0o777, (home / "state.db").stat().st_mode & 0o777) == (0o700, 0o600)
    assert sorted(path.name for path in shell.project.iterdir()) == ["README.md", "src"]


@pytest.mark.requirement("cli:tools:list", "cli:json")
def test_tools_are_listed_for_people_and_as_json(shell: Shell) -> None:
    plain, words = shell.run("tools"), shell.run("tools", "list")
    assert plain.stdout == words.stdout
    listed = [line.split()[0] for line in plain.stdout.splitlines() if not line.startswith(" ")]
    assert listed == [tool["name"] for tool in shell.json("tools", "list", "--json")] == sorted(listed)
    assert set(BUILT_IN_TOOLS) < set(listed)


@pytest.mark.requirement("cli:tools:show", "cli:json", "spec:tool", "params:defaults")
def test_one_tool_is_shown_with_its_text_and_parameters(shell: Shell) -> None:
    plain = shell.run("tools", "show", "LS").stdout
    assert plain.startswith("LS  (read)\n\nLists the folder at path")
    assert "include_hidden   boolean  [false]" in plain
    spec = shell.json("tools", "show", "LS", "--json")
    defaults = {name: schema["default"] for name, schema in spec["parameters"]["properties"].items()}
    assert defaults == {
        "path": ".",
        "limit": 100,
        "offset": 0,
        "include_hidden": False,
        "include_ignored": False,
        "ignore": [],
        "depth": 1,
    }


@pytest.mark.requirement("cli:tools:show", "cli:exit:failure")
def test_showing_an_unknown_tool_fails_and_suggests_one(shell: Shell) -> None:
    done = shell.run("tools", "show", "Raed")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no tool called 'Raed'. Did you mean 'Read'?" in done.stderr


@pytest.mark.requirement("cli:doctor", "cli:json")
def test_doctor_says_that_all_is_well(shell: Shell) -> None:
    done = shell.run("doctor")
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if "confinement" not in line]  # that depends on the machine
    assert not any(line.startswith(("✗", "!")) for line in lines)
    optional = [line for line in lines if "needs configuration" in line]  # shipped plugins, which nobody may want
    assert [line.startswith("- plugins: ") for line in optional] == [True, True]
    assert not any("ImageGen" in line for line in lines if line.startswith("✓"))
    checks = shell.json("doctor", "--json")
    names = {"python", "system", "settings", "home", "state", "project", "confinement", "ripgrep", "plugins", "tools"}
    assert names <= {check["name"] for check in checks}
    assert {check["health"] for check in checks} == {"ok", "missing_config"}


@pytest.mark.requirement("cli:doctor")
def test_doctor_names_what_is_wrong_and_the_fix_and_exits_1(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("doctor", TOOLYARD_TRUNCATION_DIRECTION="up")
    assert done.returncode == 1
    assert "✗ settings: TOOLYARD_TRUNCATION_DIRECTION: truncation_direction: expected" in done.stdout
    assert f"→ Correct them and run `toolyard config check --home {tmp_path}/toolyard`." in done.stdout
    (tmp_path / "file").write_text("")
    done = shell.run("doctor", "--home", str(tmp_path / "file/home"))
    assert (done.returncode, "✗ home:" in done.stdout) == (1, True)


@pytest.mark.requirement("cli:doctor")
def test_doctor_warns_of_settings_that_other_users_can_read(shell: Shell) -> None:
    home = Path(shell.environment["TOOLYARD_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text("")
    (home / "config.toml").chmod(0o644)
    done = shell.run("doctor")
    assert done.returncode == 0
    assert "! home:" in done.stdout
    assert f"→ Run: chmod 600 '{home / 'config.toml'}'" in done.stdout


@pytest.mark.requirement("cli:config:show", "cli:json")
def test_config_show_prints_values_and_sources_with_secrets_masked(shell: Shell) -> None:
    secret = "sk-very-secret-key"
    plain = shell.run("config", "show", OPENAI_API_KEY=secret)
    as_json = shell.run("config", "show", "--json", OPENAI_API_KEY=secret)
    assert secret not in plain.stdout + plain.stderr + as_json.stdout
    assert 'upstream_key = "[masked]"  (OPENAI_API_KEY)' in plain.stdout
    settings = json.loads(as_json.stdout)["settings"]
    assert list(settings) == [setting.name for setting in SETTINGS]
    assert (
        settings
        | {
            "fallback_encodings": {"value": ["gb18030"], "source": "default"},
            "truncation_direction": {"value": "head", "source": "default"},
            "upstream_key": {"value": "[masked]", "source": "OPENAI_API_KEY"},
        }
        == settings
    )


@pytest.mark.requirement("cli:config:show", "clients:provider-options")
def test_config_show_prints_the_options_of_providers_with_secrets_masked(shell: Shell) -> None:
    home = Path(shell.environment["TOOLYARD_HOME"])
    home.mkdir()
    (home / "config.toml").write_text(
        '[upstream_options]\nkeys = ["sk-canary-1"]\nidle_seconds = 5\n'
        '[upstreams.far]\nurl = "https://far.example.org"\nkey = "sk-canary-2"\nheaders = { A = "sk-canary-3" }\n'
        'proxy = "http://p.example.org:1"\n'
    )
    plain, as_json = shell.run("config", "show"), shell.run("config", "show", "--json")
    assert "canary" not in plain.stdout + as_json.stdout
    settings = json.loads(as_json.stdout)["settings"]
    assert settings["upstream_options"]["value"] == {"keys": "[masked]", "idle_seconds": 5}
    assert settings["upstreams"]["value"]["far"] == {
        "url": "https://far.example.org",
        "key": "[masked]",
        "models": [],
        "headers": {"A": "[masked]"},
        "proxy": "http://p.example.org:1",
    }


@pytest.mark.requirement("cli:config:check", "cli:exit:failure", "cli:quiet")
def test_config_check_tells_right_from_wrong(shell: Shell) -> None:
    right = shell.run("config", "check")
    assert (right.returncode, right.stdout.startswith("The settings are valid")) == (0, True)
    assert shell.run("config", "check", "--quiet").stdout == ""
    wrong = shell.run("config", "check", TOOLYARD_FALLBACK_ENCODINGS="klingon")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "TOOLYARD_FALLBACK_ENCODINGS: fallback_encodings: 'klingon' is not a text encoding" in wrong.stderr


@pytest.mark.requirement("cli:quiet", "cli:verbose", "cli:stdout")
def test_quiet_and_verbose_change_stderr_only(shell: Shell) -> None:
    outputs = {words: shell.run("tools", "list", *words) for words in ((), ("--quiet",), ("--verbose",))}
    assert len({done.stdout for done in outputs.values()}) == 1
    assert outputs[("--quiet",)].stderr == ""


@pytest.mark.requirement("cli:verbose")
def test_verbose_says_how_a_call_went_on_stderr(shell: Shell) -> None:
    quiet, verbose = shell.run("call", "LS", "-q"), shell.run("call", "LS", "-v")
    assert quiet.stderr == ""
    assert "LS" in verbose.stderr
    assert json.loads(verbose.stdout)["data"] == json.loads(quiet.stdout)["data"]


@pytest.mark.requirement("cli:start-up")
def test_a_call_imports_nothing_heavy(shell: Shell) -> None:
    heavy = (
        "fastapi",
        "pydantic",
        "aiohttp",
        "mcp",
        "rich",
        "pypdf",
        "charset_normalizer",
        "jsonschema",
        "jsonschema_rs",
        "difflib",
        "tomllib",
        "email",
        "toolyard.gateway",
        "toolyard.plugins.plugin_host",
        "toolyard.protocol.patching.patch_plan",
        "toolyard.tools.grep",
        "toolyard.tools.file_changer",
        "toolyard.tools.file_operator",
        "toolyard.workspace.changes.undo",
        "toolyard.workspace.search.file_walk",
        "toolyard.workspace.search.ripgrep",
    )
    assert all(map(find_spec, heavy)), "a name that leads nowhere proves nothing"
    probe = (
        "import sys, atexit; sys.argv = ['toolyard', 'call', 'LS'];"
        f"atexit.register(lambda: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr));"
        "from toolyard.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=shell.project,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.requirement("runner:cancel", "cli:exit:failure")
def test_ctrl_c_ends_a_call_as_cancelled(shell: Shell) -> None:
    for number in range(300):
        (shell.project / f"d{number}").mkdir()
    os.mkfifo(shell.project / "pipe")
    code = (
        "import os, sys, threading, signal\n"
        "from toolyard.tools import ls\n"
        "def wait(self, fd, base, rules, depth):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    while True: self.checkpoint()\n"
        "ls._FolderScan.scan_folder = wait\n"
        "sys.argv = ['toolyard', 'call', 'LS']\n"
        "from toolyard.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shell.project,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    envelope = json.loads(done.stdout)
    assert (done.returncode, envelope["context"]["reason"]) == (1, "CANCELLED")
    assert done.returncode != signal.SIGINT


@pytest.mark.requirement("cli:stdout")
def test_output_is_utf8_whatever_the_locale(shell: Shell) -> None:
    (shell.project / "名前.txt").write_text("变量\n")
    done = subprocess.run(
        [*TOOLYARD, "call", "Read", "path=名前.txt"],
        cwd=shell.project,
        env=shell.environment | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout.decode())["data"]["content"] == "1\t变量"


@pytest.mark.requirement("cli:exit:success")
def test_help_and_version_work_without_a_project(shell: Shell) -> None:
    for words in (("--help",), ("--version",), ("call", "--help"), ("tools", "show", "-h")):
        assert shell.run(*words).returncode == 0
