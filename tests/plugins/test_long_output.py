"""A plugin's answer that is too long to show: every line of it can be reached with the calls that the text names."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.yards import PluginYard
from toolyard.yard.yard import Yard

SAY = "import json, sys\nprint(json.dumps({'status': 'success', 'result': json.load(sys.stdin)['out']}))\n"
CALL = re.compile(r"Read path=(\S+) start_line=(\d+)\.")


async def shown_envelope(yard: Yard, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The envelope of what a model gets."""
    return (await yard.call(tool, arguments, shown=True)).to_dict()


async def lines_from(yard: Yard, path: str, start: int) -> list[str]:
    """Every line that Read shows from ``start`` on, page after page, without their numbers."""
    lines: list[str] = []
    page: int | None = start
    while page is not None:
        data = (await shown_envelope(yard, "Read", {"path": path, "start_line": page}))["data"]
        assert "preview" not in data, "a page was cut again"
        lines += [line.partition("\t")[2] for line in data["content"].split("\n")]
        page = data["next_line"]
    return lines


@pytest.mark.requirement("truncation:pages")
async def test_read_and_grep_show_the_lines_of_a_long_answer_that_the_preview_has_not(tmp_path: Path) -> None:
    """002 §2: 5,234 lines, of which the preview holds the first ones up to 51,200 bytes."""
    printed = [f"line {number:04} of a long answer, {'x' * 8}" for number in range(1, 5235)]
    async with PluginYard(tmp_path) as yards:
        yards.add("Say", SAY, risk="read")
        envelope = await shown_envelope(yards.yard, "Say", {"out": "\n".join(printed)})
        truncation, preview = envelope["data"]["truncation"], envelope["data"]["preview"].splitlines()
        assert (truncation["original_lines"], truncation["kept_lines"]) == (5234, len(preview))
        hint = CALL.search(envelope["text"])
        assert hint is not None
        path, start = hint[1], int(hint[2])
        assert (path, start) == (envelope["context"]["full_text_path"], len(preview) + 1)
        assert preview + await lines_from(yards.yard, path, start) == printed
        match = await shown_envelope(yards.yard, "Grep", {"path": path, "pattern": "line 4321"})
        assert [(hit["line"], hit["text"]) for hit in match["data"]["matches"]] == [(4321, printed[4320])]


@pytest.mark.requirement("truncation:pages")
@pytest.mark.parametrize(
    "piece", ["0123456789", "一二三四五六七八九十", '{"a": [1, 2]},'], ids=["ascii", "chinese", "json"]
)
async def test_an_answer_of_one_endless_line_can_be_paged(tmp_path: Path, piece: str) -> None:
    printed = piece * 20_000
    async with PluginYard(tmp_path) as yards:
        yards.add("Say", SAY, risk="read")
        envelope = await shown_envelope(yards.yard, "Say", {"out": printed})
        match = CALL.search(envelope["text"])
        assert match is not None
        rest = "".join(await lines_from(yards.yard, match[1], int(match[2])))
        preview = envelope["data"]["preview"]
        assert printed.startswith(preview)
        assert printed.endswith(rest)
        assert len(preview) + len(rest) >= len(printed)
        assert "long ones broken at 2000 characters" in envelope["text"]


@pytest.mark.requirement("truncation:batch", "truncation:pages")
async def test_a_batch_of_two_files_of_1900_lines_is_cut_like_a_single_call(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        for name in ("a", "b"):
            (tmp_path / "project" / f"{name}.txt").write_text("".join(f"{name}{n}\n" for n in range(1900)))
        batch = {"command1": "ReadFile", "filePath1": "a.txt", "command2": "ReadFile", "filePath2": "b.txt"}
        call = yards.yard.calls.request("FileOperator", batch)
        outcome = await yards.yard.calls.settle(call)
        message = yards.yard.results.express(call, outcome, "vcp", shown=True)
        text = "\n".join(part["text"] for part in message["result"]["content"])
        assert len(text.splitlines()) < 2010
        assert message["result"]["details"]["truncation"]["kept_lines"] == 2000
        match = CALL.search(text)
        assert match is not None
        rest = await lines_from(yards.yard, match[1], int(match[2]))
        assert [f"b{n}" for n in range(200, 1900)] == [line for line in rest if re.fullmatch(r"b\d{3,4}", line)][-1700:]
