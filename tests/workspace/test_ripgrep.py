"""The parts of a search: ripgrep and its stand-in, what they say, and what is kept of it."""

import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import wait_until_blocking
from tests.workspace.vectors import put
from toolyard.workspace.search import ripgrep
from toolyard.workspace.search import ripgrep as child_module
from toolyard.workspace.search.file_walk import FolderMatches, TimeLimit, TimeLimitReached
from toolyard.workspace.search.match_collector import MatchCollector
from toolyard.workspace.search.python_search import find_needle, to_python_pattern
from toolyard.workspace.search.ripgrep import ErrorOutput, Query, Ripgrep, SearchProcess, build_batches, find_ripgrep


@pytest.fixture
def folder(project: Path) -> Iterator[int]:
    fd = os.open(project, os.O_RDONLY)
    yield fd
    os.close(fd)


def output(child: SearchProcess, notes: ErrorOutput | None = None) -> bytes:
    whole = b"".join(child.read_output(lambda: None, (notes or ErrorOutput()).feed))
    child.wait()
    child.stop()
    return whole


def record(kind: str, path: str, number: int, text: str = "TODO\n") -> bytes:
    spans = [{"match": {"text": "TODO"}, "start": 0, "end": 4}] if kind == "match" else []
    data: dict[str, Any] = {"path": {"text": f"./{path}"}}
    if kind in ("match", "context"):
        data |= {"lines": {"text": text}, "line_number": number, "absolute_offset": 0, "submatches": spans}
    if kind == "end":
        data["binary_offset"] = None
    return json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"


def file(path: str, *numbers: int, text: str = "TODO\n") -> bytes:
    return b"".join(
        [record("begin", path, 0), *(record("match", path, number, text) for number in numbers), record("end", path, 0)]
    )


SUMMARY = b'{"data":{"stats":{}},"type":"summary"}\n'


@pytest.mark.requirement("grep:fallback")
def test_the_ripgrep_beside_our_interpreter_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, system = tmp_path / "venv/rg", tmp_path / "system/rg"
    for program in (beside, system):
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/python"))
    monkeypatch.setenv("PATH", str(system.parent))
    assert find_ripgrep() == str(beside)
    beside.unlink()
    assert find_ripgrep() == str(system)
    monkeypatch.chdir(system.parent)
    monkeypatch.setenv("PATH", ".")
    assert find_ripgrep() is None


@pytest.mark.requirement("grep:path", "s:S-13")
@pytest.mark.parametrize("by_name", [True, False])
def test_a_program_starts_in_the_open_folder_wherever_that_is_now(
    project: Path, folder: int, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    """With and without ``/proc``, which other systems do not have."""
    put(project, {"inside.txt": ""})
    project.rename(project.with_name("elsewhere"))
    if not by_name:
        monkeypatch.setattr(os.path, "isdir", lambda _: False)
    assert output(SearchProcess(["/bin/ls"], folder)) == b"inside.txt\n"


@pytest.mark.requirement("grep:path")
def test_a_program_gets_nothing_of_our_environment(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/etc/passwd")
    monkeypatch.setenv("SECRET", "x")
    assert b"=" not in output(SearchProcess(["/usr/bin/env"], folder)).replace(b"LC_CTYPE=", b"")


@pytest.mark.requirement("r:R97", "runner:cancel")
def test_a_stopped_program_is_gone_before_stop_returns(folder: int) -> None:
    child = SearchProcess(["/bin/sh", "-c", "sleep 600 & echo $!; sleep 600"], folder)
    inner = int(next(iter(child.read_output(lambda: None, lambda _: None))))
    child.stop()

    def is_gone() -> bool:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(inner)], capture_output=True, text=True, check=False)
        return state.stdout.strip() in ("", "Z", "ZN", "Z+")

    wait_until_blocking(is_gone)


@pytest.mark.requirement("r:R97")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no way here to limit another process")
def test_a_program_cannot_take_all_the_memory(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "MAX_MEMORY", 64 * 1024 * 1024)
    grow = "import sys; sys.stdin.read(); x = bytearray(500_000_000); print('took it')"
    read, write = os.pipe()
    child = SearchProcess([sys.executable, "-I", "-S", "-c", grow], folder, stdin=read)
    os.close(read)
    os.close(write)  # it has its limit by now
    assert output(child) == b""


@pytest.mark.requirement("r:R97")
def test_patience_ends_and_passes_on_a_cancel() -> None:
    with TimeLimit(0.01, lambda: None) as patience:
        assert patience._over.wait(60)
        with pytest.raises(TimeLimitReached):
            patience.check()
    with TimeLimit(60, lambda: None) as patience:
        patience.check()

    def cancelled() -> None:
        raise asyncio.CancelledError

    with TimeLimit(60, cancelled) as patience, pytest.raises(asyncio.CancelledError):
        patience.check()


@pytest.mark.requirement("grep:stats")
@given(sizes=st.lists(st.integers(1, 60), max_size=40))
def test_what_ripgrep_says_is_understood_in_any_chunking(sizes: list[int]) -> None:
    said = (
        b"rg: DEBUG|ignore::walk|crates/ignore/src/walk.rs:2011: ignoring ./.env: Ignore(IgnoreMatch(Hidden))\n"
        b"rg: DEBUG|grep_printer::json|crates/json.rs:792: ignoring ./a: b.bin: found binary data at offset 4\n"
        b"DEBUG|grep_printer::json|json.rs:1: ignoring ./old.bin: found binary data at offset 0\n"
        b"rg: ./closed: x/c.txt: Permission denied (os error 13)\n"
        b"rg: ./deep.txt: PCRE2: error matching: match limit exceeded\n"
        b"rg: regex parse error:\n    [\n    ^\nerror: unclosed character class\n"
    )
    notes = ErrorOutput()
    at = 0
    for size in (*sizes, len(said)):
        notes.feed(said[at : at + size])
        at += size
    assert notes.binary == {b"a: b.bin", b"old.bin"}
    assert notes.faults == {
        "closed: x/c.txt": ("Permission denied", 13),
        "deep.txt": ("PCRE2: error matching: match limit exceeded", 0),
    }
    assert notes.message == "regex parse error:\n    [\n    ^\nerror: unclosed character class\n"


@pytest.mark.requirement("grep:limit", "grep:matches")
@given(
    sizes=st.lists(st.integers(1, 400), max_size=30),
    order=st.permutations(range(9)),
    limit=st.integers(1, 20),
    long=st.booleans(),
)
def test_the_first_rows_are_kept_in_any_order_and_any_chunking(
    sizes: list[int], order: list[int], limit: int, long: bool
) -> None:
    text = f"TODO{' ' * 20_000 if long else ''}\n"
    whole = b"".join(file(f"{number}.txt", *range(1, number + 1), text=text) for number in order) + SUMMARY
    kept = MatchCollector(limit=limit, per_file=limit, multiline=False, after=0)
    kept.begin_batch()
    at = 0
    for size in (*sizes, len(whole)):
        kept.feed(whole[at : at + size])
        at += size
    assert (kept.total, kept.files, kept.complete) == (36, 9, True)
    rows = [(file.path.decode(), row.number) for file in kept.list_first() for row in file.rows]
    every = [(f"{number}.txt", line) for number in range(9) for line in range(1, number + 1)]
    assert rows[:limit] == every[:limit]
    assert len(rows) <= limit + 9


@pytest.mark.requirement("r:R97")
@pytest.mark.parametrize("chunk", [1000, 65_536, 1_500_000, 100_000_000])
@pytest.mark.parametrize("filling", ["x", '"', "\\", "é", "\x01", "a\\u00"])
def test_a_record_too_long_to_hold_keeps_its_place(chunk: int, filling: str) -> None:
    line = filling * (3_000_000 // len(filling.encode()))
    whole = record("begin", "a.txt", 0) + record("match", "a.txt", 7, line) + record("match", "a.txt", 8)
    whole += record("end", "a.txt", 0) + SUMMARY
    kept = MatchCollector(limit=10, per_file=10, multiline=False, after=0)
    kept.begin_batch()
    for at in range(0, len(whole), chunk):
        kept.feed(whole[at : at + chunk])
    [found] = kept.list_first()
    assert [row.number for row in found.rows] == [7, 8]
    assert found.rows[0].raw.decode()[:100] == line[:100]
    assert (kept.total, kept.complete) == (2, True)


@pytest.mark.requirement("grep:limit")
def test_files_after_the_last_wanted_one_are_only_counted() -> None:
    kept = MatchCollector(limit=2, per_file=2, multiline=False, after=0)
    kept.begin_batch()
    kept.feed(file("b", 1, 2, 3) + file("c", 1, 2) + file("a", 5) + file("d", *range(500)) + SUMMARY)
    assert (kept.total, kept.files) == (506, 4)
    assert [(found.path, len(found.rows)) for found in kept.list_first()] == [(b"a", 1), (b"b", 2)]


@pytest.mark.requirement("search:hidden-ignored")
@given(
    names=st.lists(st.text("ab*é中\udce9", min_size=1, max_size=50), max_size=200, unique=True),
    whole=st.booleans(),
)
def test_batches_hold_every_file_once_and_fit_on_a_command_line(names: list[str], whole: bool) -> None:
    folders = [FolderMatches(f"{'d' * 200}/{number}/", files=names[number::3], ignored=names) for number in range(3)]
    folders.append(FolderMatches("many/", files=[f"{number:0100}" for number in range(3000)], ignored=["x"] * 3000))
    made = list(build_batches(folders, whole=whole, hidden=False, first=50, most=500))
    searched = [(piece.below, name) for batch in made for piece in batch.parts for name in piece.files]
    assert searched == [(folder.below, name) for folder in folders for name in folder.files]
    for batch in made:
        line = [*batch.list_targets(), *batch.list_excluded()]
        assert sum(map(len, line)) + 24 * len(line) < 450_000


@pytest.mark.requirement("grep:vectors", "grep:fallback")
@given(
    pattern=st.text(st.sampled_from("ab.*+?{}[]()|\\^$1dwsbn<>é-,"), max_size=12), text=st.text("abd1 é<>", max_size=12)
)
def test_the_needle_of_a_pattern_stands_in_everything_it_matches(pattern: str, text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regex = re.compile(to_python_pattern(pattern, literal=False, multiline=False))
    except (re.error, ValueError, OverflowError):
        return
    match = regex.search(text)
    if match:
        assert find_needle(pattern) in match[0]


@pytest.mark.requirement("grep:path")
def test_ripgrep_searches_what_it_is_given_and_nothing_else(project: Path, folder: int) -> None:
    put(project, dict.fromkeys(("a.txt", "no.txt", ".hidden", "sub/b.txt", "sub/deep/c.txt", ".ignore"), "TODO *\n"))
    put(project, {".gitignore": "*\n", ".rgignore": "*\n"})
    program = find_ripgrep()
    assert program is not None
    [batch] = build_batches(
        [FolderMatches("", files=["a.txt"], ignored=["no.txt"]), FolderMatches("sub/", files=["b.txt"])],
        whole=True,
        hidden=False,
        first=100,
        most=100,
    )
    found = MatchCollector(limit=10, per_file=10, multiline=False, after=0)
    found.begin_batch()
    found.feed(output(Ripgrep(program).search(Query(pattern="TODO"), batch, folder)))
    assert [file.path for file in found.list_first()] == [b"a.txt", b"sub/b.txt"]


@pytest.mark.requirement("search:hidden-ignored")
@given(name=st.binary(min_size=1, max_size=20).filter(lambda raw: b"/" not in raw and b"\0" not in raw))
def test_any_name_becomes_a_pattern_that_ripgrep_can_read(name: bytes) -> None:
    pattern = ripgrep._escape_glob(name).decode()
    assert pattern == pattern.rstrip(), "blanks at the end of a pattern do not count"
    plain = str.maketrans("", "", "\\?{}")
    assert pattern.translate(plain) == name.decode(errors="ignore").translate(plain)
