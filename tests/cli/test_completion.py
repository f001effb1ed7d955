"""Completion in the real shells: what a person gets who presses the tab key."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.requirement("cli:completion")

OPTIONS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}
BEGINNING, END = "\x01", "\x05"  # the keys that go to the beginning and to the end of a line
COMPLETED = {  # what is typed before the tab key, and the line it becomes
    "toolyard compl": "toolyard completion",
    "toolyard doctor --rep": "toolyard doctor --repair",
    "toolyard plugin ins": "toolyard plugin install",
    "toolyard call Gre": "toolyard call Grep",
    "toolyard call SciC": "toolyard call SciCalculator",
    "toolyard call LS --dialect gem": "toolyard call LS --dialect gem",  # there is none
    "toolyard call LS --dialect opena": "toolyard call LS --dialect openai",
    "toolyard plugin disable Own": "toolyard plugin disable Owned",
    "toolyard tools show NotebookEditC": "toolyard tools show NotebookEditCell",
    "toolyard help configur": "toolyard help configuration",
    "toolyard nonsense x": "toolyard nonsense x",
    "toolyard serve --project inn": "toolyard serve --project inner",
    "toolyard reply parse let": "toolyard reply parse letter.txt",
}


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with the command on the PATH, and a plugin that waits for its review."""
    program = tmp_path / "bin/toolyard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m toolyard "$@"\n')
    program.chmod(0o755)
    (tmp_path / "work/inner").mkdir(parents=True)
    (tmp_path / "work/letter.txt").write_text("hello")
    make_plugin(tmp_path / ".local/share/toolyard/plugins", "Owned")
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
    }


class ShellSession:
    """An interactive shell on a terminal of its own, with the completion of toolyard."""

    def __init__(self, shell: str, user: dict[str, str]) -> None:
        self._terminal, end = pty.openpty()
        self._process = subprocess.Popen(
            [shell, *OPTIONS[shell]],
            stdin=end,
            stdout=end,
            stderr=end,
            env=user,
            cwd=Path(user["HOME"], "work"),
            start_new_session=True,
        )
        os.close(end)
        prepare = "autoload -U compinit; compinit -u -D; " if shell == "zsh" else ""
        self._type(f'{prepare}eval "$(toolyard completion {shell})"; echo "prep""ared"', "prepared")

    def complete(self, typed: str) -> str:
        """Return the line after the tab key: the keys after it make the line an argument of echo."""
        return self._type(f'{typed}\t{BEGINNING}echo "line""[{END}]"', r"line\[([^\]]*)\]")[1].rstrip(" /")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def _type(self, line: str, until: str) -> re.Match[str]:
        os.write(self._terminal, f"{line}\r".encode())
        deadline, seen = time.monotonic() + PATIENCE_S, ""
        while not (found := re.search(until, seen)):
            assert select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))[0], seen
            seen += os.read(self._terminal, 65536).decode(errors="replace")
        return found


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_tab_key_completes_in(shell: str, user: dict[str, str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    session = ShellSession(shell, user)
    try:
        assert {typed: session.complete(typed) for typed in COMPLETED} == COMPLETED
    finally:
        session.close()


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish on this machine")
def test_fish_completes_the_same_and_shows_what_a_command_does(user: dict[str, str]) -> None:
    def complete(typed: str) -> list[str]:
        script = "toolyard completion fish | source; complete --do-complete $argv[1]"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script, typed],
            env=user,
            cwd=Path(user["HOME"], "work"),
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    offered = {typed: [line.partition("\t")[0] for line in complete(typed)] for typed in COMPLETED}
    expected = {typed: line.rpartition(" ")[2] for typed, line in COMPLETED.items()}
    assert {typed: [word.rstrip("/") for word in words] for typed, words in offered.items()} == {
        typed: [] if line == typed else [expected[typed]] for typed, line in COMPLETED.items()
    }
    assert complete("toolyard compl") == ["completion\tPrint the completion script of a shell."]


def test_completing_changes_nothing_and_imports_no_command_to_list_them(user: dict[str, str]) -> None:
    def complete(words: str) -> str:
        probe = (
            "import sys, atexit\n"
            "ours = lambda: [name for name in sys.modules if name.startswith('toolyard.cli.')]\n"
            "atexit.register(lambda: print(ours(), file=sys.stderr))\n"
            "from toolyard.cli import main; main()"
        )
        number = str(len(words.split(" ")) - 1)
        asked = {"_TOOLYARD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": number}
        done = subprocess.run(
            [sys.executable, "-c", probe],
            env=user | asked,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        imported.append(done.stderr)
        return done.stdout

    imported: list[str] = []
    before = sorted(Path(user["HOME"]).rglob("*"))
    assert {"plain,serve", "plain,chat"} <= {*complete("toolyard ").splitlines()}
    assert imported == ["['toolyard.cli.common_options']\n"]
    assert "plain,Owned" in complete("toolyard call O")
    assert complete("toolyard --home /dev/null call R").strip() == ""  # a wrong home is for the command to report
    assert sorted(Path(user["HOME"]).rglob("*")) == before


@pytest.mark.parametrize("shell", ["tcsh", ""])
def test_another_shell_is_a_usage_error(shell: str, user: dict[str, str]) -> None:
    done = subprocess.run(
        ["toolyard", "completion", *filter(None, [shell])], env=user, capture_output=True, check=False
    )
    assert done.returncode == 2
