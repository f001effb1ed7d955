"""Read: a notebook as its cells, in whatever shape it is written."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools.media import PNG
from tests.workspace.answers import code, timeless
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, ErrorCode, Status
from toolyard.protocol.result_limits import MAX_BYTES
from toolyard.tools.readers.notebook import MAX_OUTPUT_CHARS

pytestmark = pytest.mark.requirement("read:notebook")


def write(project: Path, notebook: object, **options: Any) -> bytes:
    raw = json.dumps(notebook, **options).encode()
    (project / "nb.ipynb").write_bytes(raw)
    return raw


def cells(envelope: Envelope) -> Any:
    return envelope.data["cells"]


def outputs_of(yard: BlockingYard, project: Path, *outputs: Any) -> Any:
    write(project, {"cells": [{"cell_type": "code", "source": "x", "outputs": list(outputs)}]})
    [cell] = cells(yard.call("Read", {"path": "nb.ipynb"}))
    return cell.get("outputs")


@pytest.mark.requirement("envelope:context:path-resolved")
def test_a_notebook_comes_as_its_cells(yard: BlockingYard, project: Path) -> None:
    raw = write(
        project,
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"language": "julia"}, "language_info": {"name": "python"}},
            "cells": [
                {"id": "intro", "cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
                {
                    "id": "run",
                    "cell_type": "code",
                    "metadata": {},
                    "execution_count": 1,
                    "source": "print('hi')",
                    "outputs": [{"output_type": "stream", "name": "stdout", "text": ["hi\n"]}],
                },
            ],
        },
    )
    assert timeless(yard.call("Read", {"path": "nb.ipynb"})) == {
        "status": "success",
        "data": {
            "cells": [
                {"cell_number": 0, "cell_type": "markdown", "cell_id": "intro", "source": "# Title\ntext"},
                {
                    "cell_number": 1,
                    "cell_type": "code",
                    "cell_id": "run",
                    "source": "print('hi')",
                    "outputs": ["hi\n"],
                },
            ],
            "truncated": False,
            "language": "python",
            "encoding": "utf-8",
            "next_line": None,
            "total_cells": 2,
            "hash": hashlib.sha256(raw).hexdigest(),
        },
        "text": "Read 2 of 2 cells of 'nb.ipynb': cell_number 0 to 1.",
        "stats": {"cells": 2, "bytes": len(raw)},
        "context": {
            "cwd": ".",
            "params_input": {"path": "nb.ipynb"},
            "path_resolved": "nb.ipynb",
            "truncation_skip": True,
        },
    }


def test_the_text_parts_show_each_cell_with_its_number_and_outputs(yard: BlockingYard, project: Path) -> None:
    output = {"data": {"text/plain": "2", "image/png": base64.b64encode(PNG).decode()}}
    write(project, {"cells": [{"cell_type": "code", "id": "a", "source": "1 + 1", "outputs": [output]}]})
    content = yard.call("Read", {"path": "nb.ipynb"}, dialect="vcp")["result"]["content"]
    assert content == [
        {"type": "text", "text": "Read 1 of 1 cells of 'nb.ipynb': cell_number 0 to 0."},
        {"type": "text", "text": "[cell 0] code id=a\n1 + 1\n[output]\n2"},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
        },
    ]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ({}, {"cell_type": "raw", "source": ""}),
        ({"cell_type": None, "source": None}, {"cell_type": "raw", "source": ""}),
        ({"cell_type": 5, "source": 5}, {"cell_type": "raw", "source": ""}),
        ({"cell_type": "code", "source": ["a", None, 5, ["b"], "c"]}, {"cell_type": "code", "source": "ac"}),
        ({"cell_type": "code", "source": {"a": 1}}, {"cell_type": "code", "source": ""}),
        ({"cell_type": "code", "source": "x", "id": 7}, {"cell_type": "code", "source": "x"}),
        ({"cell_type": "code", "source": "x", "outputs": "none"}, {"cell_type": "code", "source": "x"}),
        ({"cell_type": "code", "source": "x", "outputs": [None, 5, "y", {}]}, {"cell_type": "code", "source": "x"}),
        ({"cell_type": "code", "source": "\ud800"}, {"cell_type": "code", "source": "\\ud800"}),
        ({"cell_type": "\udfff", "id": "\udfff"}, {"cell_type": "\\udfff", "cell_id": "\\udfff", "source": ""}),
        ({"cell_type": "code", "source": "\ud83d\ude00"}, {"cell_type": "code", "source": "😀"}),
    ],
)
def test_a_cell_of_any_shape_is_shown(
    yard: BlockingYard, project: Path, cell: dict[str, Any], shown: dict[str, Any]
) -> None:
    write(project, {"cells": [cell]})
    assert cells(yard.call("Read", {"path": "nb.ipynb"})) == [{"cell_number": 0, **shown}]


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        ({"text": "a\nb"}, ["a\nb"]),
        ({"text": ["a\n", "b"]}, ["a\nb"]),
        ({"text": "\x1b[31mred\x1b[0m"}, ["red"]),
        ({"data": {"text/plain": ["1", "2"]}}, ["12"]),
        ({"data": {"text/html": "<b>x</b>"}}, None),
        ({"data": ["text/plain"]}, None),
        ({"data": {"text/plain": 5}}, None),
        ({"output_type": "error", "traceback": ["line 1", "\x1b[1mline 2"]}, ["line 1\nline 2"]),
        ({"text": ""}, None),
        ({"text": "a", "traceback": ["b"]}, ["a", "b"]),
    ],
)
def test_an_output_is_shown_by_its_text(
    yard: BlockingYard, project: Path, output: Any, texts: list[str] | None
) -> None:
    assert outputs_of(yard, project, output) == texts


@pytest.mark.parametrize(
    "image", ["é", "not base64!", "", 5, None, {"a": 1}, base64.b64encode(b"<svg/>").decode(), ["iVBO", "Rw0K"]]
)
def test_what_is_no_image_is_no_part(yard: BlockingYard, project: Path, image: Any) -> None:
    write(project, {"cells": [{"cell_type": "code", "source": "x", "outputs": [{"data": {"image/png": image}}]}]})
    content = yard.call("Read", {"path": "nb.ipynb"}, dialect="vcp")["result"]["content"]
    assert [part["type"] for part in content] == ["text", "text"]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"language_info": {"name": "R"}}, "R"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({"language_info": "R", "kernelspec": None}, "python"),
        ({"language_info": {"name": "\ud800"}}, "\\ud800"),
        ([], "python"),
        (None, "python"),
    ],
)
def test_the_language_is_told_or_python(yard: BlockingYard, project: Path, metadata: Any, language: str) -> None:
    write(project, {"cells": [], "metadata": metadata})
    assert yard.call("Read", {"path": "nb.ipynb"}).data["language"] == language


@pytest.mark.requirement("envelope:text")
def test_a_notebook_without_cells_says_so(yard: BlockingYard, project: Path) -> None:
    write(project, {"cells": []})
    envelope = yard.call("Read", {"path": "nb.ipynb"})
    assert (envelope.status, envelope.text, cells(envelope)) == (
        Status.SUCCESS,
        "Read 'nb.ipynb': the notebook has no cells.",
        [],
    )


@pytest.mark.requirement("read:next-line", "read:limit", "envelope:status:truncated", "envelope:text")
def test_pages_of_cells_give_every_cell_once(yard: BlockingYard, project: Path) -> None:
    write(project, {"cells": [{"cell_type": "code", "source": str(number)} for number in range(5)]})
    first = yard.call("Read", {"path": "nb.ipynb", "limit": 2})
    assert (first.status, first.data["next_line"], first.text) == (
        Status.PARTIAL,
        3,
        (
            "Read 2 of 5 cells of 'nb.ipynb': cell_number 0 to 1."
            " (Truncated.) Use start_line=3 to read on; it counts cells from 1."
        ),
    )
    rest = yard.call("Read", {"path": "nb.ipynb", "start_line": 3})
    assert (rest.status, rest.data["next_line"]) == (Status.SUCCESS, None)
    assert [(cell["cell_number"], cell["source"]) for cell in cells(first) + cells(rest)] == [
        (number, str(number)) for number in range(5)
    ]
    beyond = yard.call("Read", {"path": "nb.ipynb", "start_line": 6})
    assert (code(beyond), beyond.context["total"]) == (ErrorCode.INVALID_PARAM, 5)


@pytest.mark.requirement("read:bytes", "truncation:paging", "read:next-line")
def test_a_page_of_cells_stops_at_51200_bytes(yard: BlockingYard, project: Path) -> None:
    write(project, {"cells": [{"cell_type": "code", "source": f"{number} {'中' * 5000}"} for number in range(12)]})
    start: Any = 1
    found = []
    while start is not None:
        page = yard.call("Read", {"path": "nb.ipynb", "start_line": start})
        assert sum(len(json.dumps(cell, ensure_ascii=False).encode()) for cell in cells(page)) <= MAX_BYTES
        found += [cell["cell_number"] for cell in cells(page)]
        start = page.data["next_line"]
    assert found == list(range(12))


@pytest.mark.requirement("read:bytes", "envelope:status:truncated", "envelope:text")
def test_a_huge_cell_is_cut_visibly_and_can_be_read_as_lines(yard: BlockingYard, project: Path) -> None:
    source = "é" * 60_000
    write(project, {"cells": [{"cell_type": "code", "source": source, "outputs": [{"text": "x"}]}]})
    envelope = yard.call("Read", {"path": "nb.ipynb"})
    [cell] = cells(envelope)
    assert cell["source"].endswith("é… [cut]")
    assert source.startswith(cell["source"].removesuffix("… [cut]"))
    assert (envelope.status, envelope.data["truncated"], envelope.data["next_line"]) == (Status.PARTIAL, True, None)
    assert envelope.text.endswith("name encoding=utf-8 to read the file as lines instead.")
    lines = yard.call("Read", {"path": "nb.ipynb", "encoding": "utf-8"})
    assert str(lines.data["content"]).startswith('1\t{"cells": [{"cell_type": "code"')


@pytest.mark.requirement("read:bytes", "envelope:status:truncated")
def test_a_huge_output_is_cut_visibly(yard: BlockingYard, project: Path) -> None:
    [shown] = outputs_of(yard, project, {"text": "x" * 100_000})
    assert shown == "x" * MAX_OUTPUT_CHARS + "… [cut]"
    assert outputs_of(yard, project, {"text": "x" * MAX_OUTPUT_CHARS}) == ["x" * MAX_OUTPUT_CHARS]
    write(project, {"cells": [{"cell_type": "code", "outputs": [{"text": "x" * 100_000}]}]})
    assert yard.call("Read", {"path": "nb.ipynb"}).status is Status.PARTIAL


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"not json\n",
        b"[]",
        b"null",
        b'{"cells": 5}',
        b'{"cells": ["text"]}',
        b'{"worksheets": [{"cells": [{"cell_type": "code", "input": "v3"}]}], "nbformat": 3}',
        b"[" * 100_000,
        b'{"cells": ' + b"9" * 10_000 + b"}",
        b'{"cells": [], "x": "\xff"}',
    ],
    ids=lambda raw: str(raw[:12]),
)
def test_what_is_no_notebook_after_all_is_read_as_text(yard: BlockingYard, project: Path, raw: bytes) -> None:
    (project / "nb.ipynb").write_bytes(raw)
    envelope = yard.call("Read", {"path": "nb.ipynb"})
    assert code(envelope) is None
    assert "content" in envelope.data


def test_a_mark_before_a_notebook_does_not_matter(yard: BlockingYard, project: Path) -> None:
    (project / "nb.ipynb").write_bytes(b'\xef\xbb\xbf{"cells": [{"cell_type": "raw", "source": "x"}]}')
    assert cells(yard.call("Read", {"path": "nb.ipynb"})) == [{"cell_number": 0, "cell_type": "raw", "source": "x"}]


def test_a_binary_file_named_like_a_notebook_is_binary(yard: BlockingYard, project: Path) -> None:
    (project / "nb.ipynb").write_bytes(b"\0{}")
    assert code(yard.call("Read", {"path": "nb.ipynb"})) is ErrorCode.BINARY_FILE
