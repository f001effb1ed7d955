"""What the project's ignore files leave out, exactly as git decides."""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.nobody import call_as_nobody, shared_project
from tests.workspace.vectors import put, vectors
from toolyard.workspace.search.ignore import IgnoreRules, read_rules, split_lines

pytestmark = pytest.mark.requirement("ls:ignored")

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("gitignore_cases.json").read_text(encoding="utf-8"))


def leaves_out(rules: IgnoreRules, path: str) -> bool:
    """Whether a listing would get to ``path``: a folder that is left out is not entered."""
    steps = tuple(path.rstrip("/").split("/"))
    return any(
        rules.is_left_out(steps[:depth], is_folder=depth < len(steps) or path.endswith("/"))
        for depth in range(1, len(steps) + 1)
    )


def rules_of(lines: Iterable[str], depth: int = 0) -> IgnoreRules:
    return IgnoreRules().with_lines(split_lines("\n".join(lines).encode()), depth)


@pytest.mark.parametrize("case", CASES, ids=[case["about"][:40] for case in CASES])
def test_a_set_of_patterns_leaves_out_what_git_leaves_out(case: dict[str, Any]) -> None:
    rules = rules_of(case["patterns"])
    everything = [*case["ignored"], *case["kept"]]
    assert [path for path in everything if leaves_out(rules, path)] == case["ignored"]


def test_the_shared_sets_of_patterns_end_as_in_git() -> None:
    cases = vectors("search.json")["gitignore"]["cases"]
    checks = [
        (case["id"], path, leaves_out(rules_of(case["patterns"]), path), expected["git"])
        for case in cases
        for path, expected in case["paths"].items()
    ]
    assert len(checks) >= 290
    assert [check for check in checks if check[2] != check[3]] == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("?", ["a"]),
        ("??", ["ab", "é", "x\udce9"]),
        ("???", ["aé", "日"]),
        ("x[!a]", ["x\udce9"]),
        ("[é][é]", ["é"]),
        ("?\udca9", ["é"]),
        ("*\udcc3*", ["aé", "é"]),
        ("x\udce9", ["x\udce9"]),
    ],
)
def test_a_rule_counts_the_bytes_of_a_name(line: str, names: list[str]) -> None:
    rules = IgnoreRules().with_lines([line], 0)
    assert [name for name in ("a", "ab", "aé", "é", "日", "日本", "x\udce9") if leaves_out(rules, name)] == names


# fmt: off
ATOMS = [
    "a", "b", "ab", "*", "?", "/", "/", "**/", "/**", "[ab]", "[!a]", "[a-c]", "[]a]", "[^]b]", "[b-a]", "[--b]", "[a-",
    "[", "\\", "\\*", "\\a", "\\ ", "!", "#", " ", "-", ".", "\r", "{a,b}", "[a\\]b]", "[/]", "[!/]", "[a/b]", "[!-a]",
    "[a-c-e]", "[[:]", "[[:alpha:]]", "[[:upper:]b]", "[[:punct:]]", "[[:foo:]]", "[a-[:digit:]]",
    "é", "??", "[é]", "[!é]", "[à-ÿ]", "日",
]
# fmt: on
CHARACTERS = "abcA1-.!# *[]\\/^z,:éé日"


def test_random_patterns_end_as_in_git(tmp_path: Path) -> None:
    """Git itself is asked about some thousand paths, each under an ignore file of its own."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    chance = random.Random(20261115)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    asked: list[str] = []
    answers: list[tuple[str, str, bool]] = []
    for number in range(600):
        lines = ["".join(chance.choices(ATOMS, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        if any(not line.strip(" \r") or _is_odd_in_git(line) for line in lines):
            continue
        folder = f"d{number}"
        rules = rules_of(lines, depth=1)
        put(tmp_path, {f"{folder}/.gitignore": "\n".join(lines)})
        for path in sorted({_likely(chance, lines) for _ in range(8)}):
            if _make(tmp_path / folder / path, is_folder=(is_folder := chance.random() < 0.4)):
                asked.append(f"{folder}/{path}")
                answers.append(("\n".join(lines), path, leaves_out(rules, asked[-1] + "/" * is_folder)))
    assert len(asked) > 2000
    ignored = _ask_git(tmp_path, asked)
    assert [answer for answer, expected in zip(answers, ignored, strict=True) if answer[2] != expected] == []


def _make(path: Path, *, is_folder: bool) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if is_folder else path.touch(exist_ok=False)
    except OSError:
        return False  # something is there under that name
    return True


def _is_odd_in_git(line: str) -> bool:
    """Two stars behind plain characters or before an escaped slash: git itself does not do what its manual says."""
    behind = (line[:at] for at in range(1, len(line)) if line.startswith("**", at))
    return "**\\/" in line or any(before != "!" and not before.endswith("/") for before in behind)


def _likely(chance: random.Random, lines: list[str]) -> str:
    if chance.random() < 0.5:
        path = "".join(chance.choices(CHARACTERS, k=chance.randint(1, 7)))
    else:
        path = chance.choice(lines).strip("! \r").replace("**", "a/b").replace("*", "ab").replace("?", "c")
        path = path.replace("[ab]", "b").replace("\\", "")
    steps = [step for step in path.split("/") if step.strip(". \r")]
    return "/".join(steps) or "a"


def _ask_git(root: Path, paths: list[str]) -> list[bool]:
    command = ["git", "-c", "core.quotePath=false", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]
    asked = "".join(f"{path}\0" for path in paths)
    answer = subprocess.run(command, cwd=root, input=asked.encode(), capture_output=True, check=False).stdout.split(
        b"\0"
    )
    return [bool(answer[at]) and not answer[at + 2].startswith(b"!") for at in range(0, len(answer) - 1, 4)]


def test_rules_of_a_deeper_folder_come_after_those_above_it() -> None:
    above = rules_of(["*.log", "!b.log", "/only.txt"])
    both = above.with_lines(["!a.log", "b.log", "/here.txt"], 1)
    names = ["a.log", "b.log", "c.log", "only.txt", "here.txt"]
    assert [name for name in names if above.is_left_out((name,), is_folder=False)] == ["a.log", "c.log", "only.txt"]
    assert [name for name in names if both.is_left_out(("sub", name), is_folder=False)] == [
        "b.log",
        "c.log",
        "here.txt",
    ]


@pytest.mark.parametrize("lines", [[], ["", "# only a comment", "!", "/", "   ", "//"]])
def test_a_file_without_rules_leaves_nothing_out(lines: list[str]) -> None:
    assert not leaves_out(rules_of(lines), "a")


@pytest.mark.requirement("saved:ignored")
def test_our_own_outputs_are_left_out_at_the_root_only() -> None:
    rules = rules_of(["!tool-output"])
    assert leaves_out(rules, "tool-output/")
    assert leaves_out(rules, "tool-output/x.json")
    assert not leaves_out(rules, "src/tool-output/")


@pytest.mark.requirement("s:S-18:ls-ignore")
@pytest.mark.parametrize("line", ["a" + " " * 200_000 + "b", "a" + "\\" * 200_001 + " ", " " * 200_000, "!" * 200_000])
def test_a_long_line_takes_no_longer_per_character(line: str) -> None:
    assert not leaves_out(rules_of([line]), "a")


def rules_in(folder: Path) -> list[str]:
    fd = os.open(folder, os.O_RDONLY)
    try:
        return read_rules(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"a\nb\n", ["a", "b", ""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b", ""]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"a\r\r\nb\rc\n", ["a\r", "b\rc", ""]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb", ""]),
        (b"", [""]),
        ("目录\n".encode(), ["目录", ""]),
        (b"caf\xe9\n", ["caf\udce9", ""]),
    ],
)
def test_an_ignore_file_is_read_line_by_line(project: Path, raw: bytes, lines: list[str]) -> None:
    (project / ".gitignore").write_bytes(raw)
    assert rules_in(project) == lines


def test_a_folder_without_an_ignore_file_has_no_rules(project: Path) -> None:
    assert rules_in(project) == []


def test_what_is_no_regular_file_has_no_rules_and_leaves_no_descriptor_open(project: Path) -> None:
    put(project, {"rules": "*\n", "link/.gitignore": {"symlink": "../rules"}, "folder/.gitignore": {"dir": True}})
    (project / "fifo").mkdir()
    os.mkfifo(project / "fifo/.gitignore")
    before = set(os.listdir("/dev/fd"))
    assert [rules_in(project / kind) for kind in ("link", "folder", "fifo")] == [[], [], []]
    assert set(os.listdir("/dev/fd")) <= before


def test_an_ignore_file_that_may_not_be_read_has_no_rules() -> None:
    with shared_project() as project:
        put(project, {".gitignore": "*.log\n", "a.log": ""})
        (project / ".gitignore").chmod(0)
        [listed] = call_as_nobody(project, ("LS", {}))
    assert (listed["status"], [entry["path"] for entry in listed["data"]["entries"]]) == ("success", ["a.log"])
