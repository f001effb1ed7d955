"""Progress: lines on stderr, reported while a call runs."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.yards import PluginYard
from tests.waiting import wait_until
from toolyard.engine.history.journal import CALL_PROGRESS
from toolyard.plugins.process.process_output import MAX_LINES, Progress, ProgressLines, ProgressReporter, parse_progress
from toolyard.protocol.json import JsonObject

pytestmark = pytest.mark.requirement("plugin:progress")


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("PROGRESS 0.4 frame 24", Progress(0.4, "frame 24")),
        ("PROGRESS 40% frame\r", Progress(0.4, "frame")),
        ("PROGRESS 1", Progress(1.0, "")),
        ("PROGRESS -   indented ", Progress(None, "  indented")),
        ("PROGRESS -", Progress(None, "")),
        ("PROGRESS ... x", Progress(0.0, "x")),
        ("PROGRESS of the work", None),
        ("PROGRESS 5files", None),
        (" PROGRESS 0.4", None),
        ("warning", None),
    ],
)
def test_a_line_reports_a_fraction_and_a_text(line: str, progress: Progress | None) -> None:
    assert parse_progress(line) == progress


@given(st.lists(st.integers(1, 30)))
def test_lines_are_found_however_they_are_cut(cuts: list[int]) -> None:
    text = b"noise\nPROGRESS 0.1 one\nPROGRESS - two\nmore\nPROGRESS 20% three\n"
    lines, at = ProgressLines(), 0
    for cut in [*cuts, len(text)]:
        lines.feed(text[at : at + cut])
        at += cut
    assert lines.take() == Progress(0.2, "one\ntwo\nthree")
    assert lines.take() is None


def test_of_many_lines_the_last_are_reported() -> None:
    lines = ProgressLines()
    lines.feed(b"".join(b"PROGRESS - %d\n" % number for number in range(MAX_LINES + 10)))
    report = lines.take()
    assert report is not None
    first, second, *_, last = report.text.split("\n")
    assert (first, second, last) == ("[10 lines are not shown]", "10", str(MAX_LINES + 9))


async def test_reports_end_with_the_call() -> None:
    reports: list[JsonObject] = []

    async def report(progress: JsonObject) -> None:
        reports.append(progress)

    reporter = ProgressReporter(report)
    reporter.close()
    reporter.feed(b"warning\n")
    reporter.feed(b"PROGRESS 0.5 half\n")
    await wait_until(lambda: bool(reports))
    assert reports == [{"done": 0.5, "text": "half"}]
    reporter.close()
    reporter.feed(b"PROGRESS 1 done\n")
    await wait_until(lambda: all("_pass_on" not in repr(task) for task in asyncio.all_tasks()))
    assert len(reports) == 1


WORK = """
import json, os, sys, time
print("PROGRESS 0.5 half of SECRET-VALUE", file=sys.stderr, flush=True)
while not os.path.exists(os.path.join(os.environ["HOME"], "go")):
    time.sleep(0.02)
print(json.dumps({"status": "success", "result": "done"}))
"""


async def test_a_synchronous_plugin_reports_while_it_runs(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as host:
        host.add("Worker", WORK, config="API_KEY=SECRET-VALUE\n")
        running = asyncio.create_task(host.call("Worker", x=1))
        async with asyncio.timeout(60):
            while True:
                _, seq = await host.yard.state.store.event_span()
                events = await host.yard.state.store.events(0, limit=100)
                if told := [event.data for event in events if event.type == CALL_PROGRESS]:
                    break
                await host.yard.state.store.next_event(seq)
        assert (told[0]["tool"], told[0]["done"]) == ("Worker", 0.5)
        assert "half of" in str(told[0]["text"])
        assert "SECRET-VALUE" not in str(told[0])
        (tmp_path / "home/plugin-data/Worker/go").touch()
        assert (await running).envelope.text == "done"
