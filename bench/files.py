"""The file tools against what the machine itself can do: scandir, a plain read, a bare atomic write, and jsdiff."""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import toolyard
from toolyard.blocking import BlockingYard
from toolyard.protocol.edits.diff import structured_patch

LINES_50_MB = 1_000_000
LINE = "{:07d} the quick brown fox jumps over the lazy dog\n"


IN_TURN, IN_A_ROW = 200, 400


class Row(NamedTuple):
    what: str
    ms: float
    peer: str
    peer_ms: float
    target: str


def timed(work: Callable[[int], object], runs: int = 15) -> float:
    """The median time of one run in milliseconds."""
    found = []
    for run in range(runs):
        started = time.perf_counter()
        work(run)
        found.append((time.perf_counter() - started) * 1000)
    return statistics.median(found)


def beside(work: Callable[[int], object], peer: Callable[[int], object], runs: int) -> tuple[float, float]:
    """The same for two that take turns, so that a busy moment hits both."""
    ours, theirs = [], []
    for run in range(runs):
        started = time.perf_counter()
        work(run)
        between = time.perf_counter()
        peer(run)
        ours.append((between - started) * 1000)
        theirs.append((time.perf_counter() - between) * 1000)
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        root = Path(folder)
        with toolyard.open(project=root, home=home) as yard:
            rows = [*reading(yard, root), *editing(yard, root), *patches(root)]
    print(f"\n{'file tools':<34} {'ms':>8}  {'peer':<34} {'ms':>8} {'ratio':>6}  target")
    for row in rows:
        ratio = row.ms / row.peer_ms if row.peer_ms else float("nan")
        print(f"{row.what:<34} {row.ms:>8.2f}  {row.peer:<34} {row.peer_ms:>8.2f} {ratio:>6.2f}  {row.target}")


def reading(yard: BlockingYard, root: Path) -> list[Row]:
    listed = root / "listed"
    listed.mkdir()
    for number in range(100):
        (listed / f"{number}.txt").touch()
    big = root / "big.txt"
    big.write_text("".join(LINE.format(number) for number in range(LINES_50_MB)))
    raw = big.read_bytes()
    middle = LINES_50_MB // 2

    def plain_window(run: int) -> bytes:
        with big.open("rb") as file:
            at, block = 0, b""
            while at < middle:
                block = file.read(1 << 20)
                at += block.count(b"\n")
            return block

    def head(run: int) -> bytes:
        with big.open("rb") as file:
            return file.read(51_200)

    def call(**arguments: Any) -> Callable[[int], object]:
        return lambda run: yard.call("Read", {"path": "big.txt", **arguments})

    return [
        Row("LS of 100 files", timed(lambda run: yard.call("LS", {"path": "listed"})), "scandir with stat",
            timed(lambda run: [entry.stat() for entry in os.scandir(listed)]), ""),
        Row("Read, first page of 50 MB", timed(call(limit=500)), "read of 51,200 bytes", timed(head), "under 2 ms"),
        Row("Read, 500 lines in the middle", timed(call(start_line=middle, limit=500)), "counting newlines to there",
            timed(plain_window), "under 25 ms"),
        Row("Read of the end (hash of 50 MB)", timed(call(start_line=LINES_50_MB - 100), 5), "sha256 of 50 MB",
            timed(lambda run: hashlib.sha256(raw).digest(), 5), ""),
    ]  # fmt: skip


def editing(yard: BlockingYard, root: Path) -> list[Row]:
    text = "".join(LINE.format(number) for number in range(5000))
    (root / "edit.txt").write_text(text)
    (root / "bare.txt").write_text(text)
    (root / "many.txt").write_text(text)

    def edit(run: int) -> None:
        old = f"{run:07d} the"
        assert yard.call("Edit", {"path": "edit.txt", "old_string": old, "new_string": f"{run:07d} THE"}).error is None

    def bare(run: int) -> None:
        content = (root / "bare.txt").read_bytes().replace(b"%07d the" % run, b"%07d THE" % run)
        with (root / "bare.tmp").open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        os.replace(root / "bare.tmp", root / "bare.txt")
        fd = os.open(root, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def many(run: int) -> None:
        """Each run turns a thousand lines back and forth."""
        animals = ("dog", "cat") if run % 2 == 0 else ("cat", "dog")
        old, new = (LINE[:-1].replace("dog", animal) for animal in animals)
        edits = [{"old_string": old.format(n), "new_string": new.format(n)} for n in range(1000)]
        assert yard.call("MultiEdit", {"path": "many.txt", "edits": edits}).error is None

    peer = "bare atomic write with fsync"
    one, alone = beside(edit, bare, IN_TURN)
    row, lonely = (timed(lambda run, work=work: work(IN_TURN + run), IN_A_ROW) for work in (edit, bare))  # type: ignore[misc]
    thousand, also_alone = beside(many, bare, 15)
    return [
        Row("Edit, 5,000 lines, in a row", row, peer, lonely, "400 a second"),
        Row("Edit, in turn with the other", one, peer, alone, ""),
        Row("MultiEdit, 1,000 edits", thousand, peer, also_alone, "under 40 ms"),
    ]


def patches(root: Path) -> list[Row]:
    old = [f"line {number} {number * 7919 % 104729}\n" for number in range(50_000)]
    few, third = list(old), list(old)
    for number in range(0, 50_000, 500):
        few[number] = f"changed {number}\n"
    for number in range(0, 50_000, 3):
        third[number] = f"changed {number}\n"
    ours = timed(lambda run: structured_patch("".join(old), "".join(few)), 7)
    rows = [Row("patch, 50,000 lines, 100 edits", ours, "jsdiff 7", jsdiff(root, old, few), "at most jsdiff's")]
    ours = timed(lambda run: structured_patch("".join(old), "".join(third)), 5)
    return [*rows, Row("patch, 50,000 lines, 33 % changed", ours, "(jsdiff: over 40 s)", 0.0, "under 1 s")]


def jsdiff(root: Path, old: list[str], new: list[str]) -> float:
    """The same patch by npm ``diff`` 7, when Node and the registry are there; 0 when not."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        install = [npm, "install", "--silent", "--prefix", folder, "diff@7.0.0"]
        if subprocess.run(install, capture_output=True, check=False).returncode != 0:
            return 0.0
        Path(folder, "texts.json").write_text(json.dumps(["".join(old), "".join(new)]))
        script = (
            "const d=require('diff'),[a,b]=JSON.parse(require('fs').readFileSync('texts.json'));const t=[];"
            "for(let i=0;i<7;i++){const s=performance.now();"
            "d.structuredPatch('x','x',a,b,undefined,undefined,{context:3});t.push(performance.now()-s)}"
            "console.log(t.sort((x,y)=>x-y)[3])"
        )
        done = subprocess.run([node, "-e", script], cwd=folder, capture_output=True, text=True, check=False)
        return float(done.stdout) if done.returncode == 0 else 0.0
