"""The text languages against a bare ``str.find`` over the same text, and against the promised rates."""

import statistics
import time
from collections.abc import Callable

from toolyard.protocol.markers import Scanner
from toolyard.protocol.placeholders import fill
from toolyard.protocol.request_text import format_request, neutralise
from toolyard.protocol.requests.marks import START

RUNS = 7
LIVELY = "A reply is mostly prose, 有时也有中文, with a word or two of `code` and an <b>odd</b> tag.\n\n"
PLAIN = "A line of plain prose without anything that could be a mark, as most lines are.\n"
PROSE = LIVELY + PLAIN * 3
BLOCK = format_request("FileOperator", {"command": "ReadFile", "filePath": "/home/user/docs/report.txt"}, "Nova") + "\n"
CHUNK = 16  # characters, about what a model streams at once


def main() -> None:
    few = PROSE * 6_000 + BLOCK * 3
    lively = LIVELY * 22_000 + BLOCK * 3
    many = BLOCK * 12_000
    spread = (PROSE * 30 + BLOCK) * 1000
    opened = (START + "\n") * 100_000
    braces = "{{" * 1_000_000
    filled = "Today is {{Date}} and the tools are {{VCPAllTools}}.\n" * 40_000
    rows = [
        ("requests: prose without marks", PLAIN * 26_000, scan, "50 MB/s"),
        ("requests: prose, 3 blocks", few, scan, "50 MB/s"),
        ("requests: code and tags in every line", lively, scan, "50 MB/s"),
        ("requests: blocks only", many, scan, "10 MB/s"),
        ("requests: 1,000 blocks in 10 MB", spread, scan, "100 ms"),
        ("requests: 100,000 unterminated", opened, scan, "linear"),
        ("requests: one `<`, then blanks", "<" + " " * 2_000_000, scan, "linear"),
        (f"requests: {CHUNK} characters at a time", few, scan_chunks, ""),
        ("neutralise", spread, neutralise, ""),
        ("placeholders", filled, lambda text: fill(text, lambda _: "x"), ""),
        ("placeholders: unclosed braces", braces, lambda text: fill(text, lambda _: "x"), "linear"),
    ]
    print(f"\n{'text languages':<38} {'MB':>6} {'ms':>8} {'MB/s':>8} {'x find':>8}  target")
    for name, text, work, target in rows:
        size = len(text.encode()) / 1e6
        ours, bare = timed(work, text), timed(bare_find, text)
        print(f"{name:<38} {size:>6.1f} {ours * 1000:>8.1f} {size / ours:>8.0f} {ours / bare:>8.1f}  {target}")


def timed(work: Callable[[str], object], text: str) -> float:
    """The median time of one run in seconds."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work(text)
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def scan(text: str) -> None:
    scanner = Scanner(max_chars=len(text))
    scanner.feed(text)
    scanner.finish()


def scan_chunks(text: str) -> None:
    scanner = Scanner(max_chars=len(text))
    for at in range(0, len(text), CHUNK):
        scanner.feed(text[at : at + CHUNK])
    scanner.finish()


def bare_find(text: str) -> int:
    """The least any reader must do: look for every line end and every marker."""
    lines = text.count("\n")
    at = text.find(START)
    while at >= 0:
        lines += 1
        at = text.find(START, at + 1)
    return lines
