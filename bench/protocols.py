"""The text languages: requests against a bare ``str.find`` and VCPToolBox's own parser, replies against orjson and
json_repair.

VCPToolBox is not part of this project. With Node.js installed and its folder in ``TOOLYARD_BENCH_VCP`` its parser reads
the same texts in the same run. json_repair is no part of it either: it is asked where it is installed.
"""

import importlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from toolyard.protocol.placeholders import fill_placeholders
from toolyard.protocol.replies.reply_fields import build_reply
from toolyard.protocol.replies.reply_values import Attachment, Reply
from toolyard.protocol.reply import parse_reply
from toolyard.protocol.requests.marks import START
from toolyard.protocol.requests.scanner import Scanner, format_request, neutralise

RUNS = 7
LONG = 20_000
LIVELY = "A reply is mostly prose, 有时也有中文, with a word or two of `code` and an <b>odd</b> tag.\n\n"
PLAIN = "A line of plain prose without anything that could be a mark, as most lines are.\n"
PROSE = LIVELY + PLAIN * 3
BLOCK = format_request("FileOperator", {"command": "ReadFile", "filePath": "/home/user/docs/report.txt"}, "Nova") + "\n"
CHUNK = 16  # characters, about what a model streams at once


PARSER = Path("modules/vcpLoop/toolCallParser.js")
TELL = "set TOOLYARD_BENCH_VCP to a folder of VCPToolBox (with Node.js installed) to measure its parser beside ours"
THEIRS = """
const parser = require(process.argv[1]);
for (const text of JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'))) {
  const times = [];
  for (let run = 0; run < 3; run++) {
    const begin = process.cpuUsage();
    parser.parse(text);
    const used = process.cpuUsage(begin);
    times.push((used.user + used.system) / 1e6);
  }
  console.log('time ' + Math.min(...times));
}
"""


def main() -> None:
    requests()
    replies()
    beside_json_repair()
    beside_vcp()


def requests() -> None:
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
        ("placeholders", filled, lambda text: fill_placeholders(text, lambda _: "x"), ""),
        ("placeholders: unclosed braces", braces, lambda text: fill_placeholders(text, lambda _: "x"), "linear"),
    ]
    print(f"\n{'text languages':<38} {'MB':>6} {'ms':>8} {'MB/s':>8} {'x find':>8}  target")
    for name, text, work, target in rows:
        size = len(text.encode()) / 1e6
        ours, bare = timed(work, text), timed(bare_find, text)
        print(f"{name:<38} {size:>6.1f} {ours * 1000:>8.1f} {size / ours:>8.0f} {ours / bare:>8.1f}  {target}")


def replies() -> None:
    whole = reply(LIVELY, 1500)
    quoted = json.dumps({"content": 'he "said" so, and on it goes. ' * 15_000})
    data = {"type": "chart", "content": {"data": [number * 1.5 for number in range(40_000)]}}
    rows = [
        ("valid: one word", json.dumps({"content": "Hello"}), "1.5 x orjson"),
        ("valid: 300 B", reply(LIVELY, 1), "1.5 x orjson"),
        ("valid: 1 kB", reply(LIVELY, 7), "1.5 x orjson"),
        ("valid: 4 kB", reply(LIVELY, 36), "1.5 x orjson"),
        ("valid: 16 kB", reply(LIVELY, 145), "1.5 x orjson"),
        ("valid: 35 kB", reply(LIVELY, 350), "1.5 x orjson"),
        ("valid: 200 kB", whole, "1.5 x orjson"),
        ("valid: 200 kB of plain prose", reply(PLAIN, 2200), "1.5 x orjson"),
        ("valid: all escaped", json.dumps(json.loads(whole)), "1.5 x orjson"),
        ("valid: a chart of 40,000 numbers", json.dumps({"content": "x", "attachments": {"c": data}}), "1.5 x orjson"),
        ("prose and a fence around", f"Here it is:\n```json\n{whole}\n```\nDone.", "5 MB/s"),
        ("a trailing comma", whole[:-1] + ",}", "5 MB/s"),
        ("raw newlines", whole.replace("\\n", "\n"), "5 MB/s"),
        ("single quotes", str(json.loads(whole)), "5 MB/s"),
        ("cut off", whole[:-40], "5 MB/s"),
        ("LaTeX", whole.replace("prose", "\\frac{a}{b} \\alpha"), "5 MB/s"),
        ("quotes not escaped", whole.replace('\\"', '"'), "5 MB/s"),
        ("quotes not escaped, dense", quoted.replace('\\"', '"').replace('"he', '"he', 1), "5 MB/s"),
        ("quotes without end", '{"content": "' + '"' * 400_000, "linear"),
        ("braces without end", "{" * 400_000, "linear"),
    ]
    print(f"\n{'structured replies':<38} {'MB':>6} {'ms':>8} {'MB/s':>8} {'x orjson':>8} {'x built':>8}  target")
    for name, text, target in rows:
        size = len(text.encode()) / 1e6
        valid = target.endswith("orjson")
        ours, *bare = in_turn(text, parse_reply, *((orjson.loads, built) if valid else ()))
        ratios = "".join(f" {ours / least:>8.1f}" for least in bare) or " " * 18
        print(f"{name:<38} {size:>6.3f} {ours * 1000:>8.3f} {size / ours:>8.0f}{ratios}  {target}")


def built(text: str) -> Reply:
    """The least that a typed reply costs in Python: what orjson reads, put into our values, with nothing checked."""
    value = orjson.loads(text)
    given = value.get("attachments", {}).items()
    attachments = {
        id_: Attachment(id_, one["type"], one["content"], one.get("language"), one.get("title")) for id_, one in given
    }
    return Reply(value["content"], value.get("think"), attachments)


def reply(line: str, lines: int) -> str:
    code = {"type": "code", "language": "python", "content": "def f(x):\n    return x + 1\n\n\n" * (lines // 8)}
    flow = {"type": "mermaid", "content": "flowchart TD\n    A[Start] --> B{Done?}\n" * (lines // 8)}
    content = 'See {{mermaid:m}} and {{code:c}}, and so "on".\n\n' + line * lines
    return json.dumps({"think": "Hm. ", "content": content, "attachments": {"m": flow, "c": code}}, ensure_ascii=False)


def beside_json_repair() -> None:
    """Who reads the replies that can be meant in one way only. The fields of what json_repair finds are read by us."""
    from tests.protocol.unambiguous import UNAMBIGUOUS, fields_of

    def right(read: Callable[[str], object]) -> int:
        found = [(read(text), expected) for text, expected in UNAMBIGUOUS]
        return sum(isinstance(reply, Reply) and fields_of(reply) == expected for reply, expected in found)

    print(f"\nreplies with one right answer: ours reads {right(parse_reply)} of {len(UNAMBIGUOUS)}", end="")
    if importlib.util.find_spec("json_repair") is None:
        print("; json_repair is not installed, so not asked.")
        return
    library = importlib.import_module("json_repair")

    def repaired(text: str) -> object:
        value = library.loads(text)
        objects = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        found = [build_reply(item, None, ()) for item in objects]
        return next((reply for reply in found if isinstance(reply, Reply)), None)

    print(f", json_repair {right(repaired)}.")


def beside_vcp() -> None:
    folder, node = os.environ.get("TOOLYARD_BENCH_VCP"), shutil.which("node")
    if folder is None or node is None or not (Path(folder) / PARSER).is_file():
        print(f"\nVCPToolBox's parser: not measured; {TELL}.")
        return
    short = format_request("T", {"a": "1"}) + "\n"
    rows = [
        ("1,000 blocks in 100 KB", short * 1000, "faster"),
        ("8,000 blocks", short * 8000, "10x"),
        ("1,000 blocks in 10 MB", (PLAIN * 125 + short) * 1000, "10x"),
        ("one `<` and 60,000 blanks", "<" + " " * 60_000, "10x"),
        ("prose, 3 blocks", PROSE * 6_000 + BLOCK * 3, ""),
    ]
    theirs = timed_in_node(node, Path(folder).resolve() / PARSER, [text for _, text, _ in rows])
    print(f"\n{'requests, beside VCPToolBox':<38} {'MB':>6} {'ours ms':>9} {'its ms':>9} {'faster':>8}  target")
    for (name, text, target), its in zip(rows, theirs, strict=True):
        ours, size = timed(scan, text), len(text.encode()) / 1e6
        print(f"{name:<38} {size:>6.1f} {ours * 1000:>9.2f} {its * 1000:>9.1f} {its / ours:>7.1f}x  {target}")


def timed_in_node(node: str, parser: Path, texts: list[str]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_text(json.dumps(texts), "utf-8")
        ran = subprocess.run(
            [node, "-e", THEIRS, parser, path], capture_output=True, text=True, check=True, timeout=600
        )
    return [float(line.removeprefix("time ")) for line in ran.stdout.splitlines() if line.startswith("time ")]


def in_turn(text: str, *readers: Callable[[str], object]) -> list[float]:
    """The median time of each in seconds, one run after the other; each run has a text that nobody has read yet."""
    found: list[list[float]] = [[] for _ in readers]
    clock = time.process_time if len(text) > LONG else time.perf_counter  # which is exact for a few microseconds
    for _ in range(max(RUNS, min(500, 2_000_000 // len(text)))):
        for times, read in zip(found, readers, strict=True):
            fresh = text.encode().decode()
            started = clock()
            read(fresh)
            times.append(clock() - started)
    return [statistics.median(times) for times in found]


def timed(work: Callable[[str], object], text: str) -> float:
    """The median processor time of one run in seconds: what else runs on the machine does not count."""
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        work(text)
        found.append(time.process_time() - started)
    return statistics.median(found)


def scan(text: str) -> None:
    scanner = Scanner(max_chars=len(text), max_calls=len(text))
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
