"""NotebookEdit on real files."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, Status

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors/notebook_edit.json").read_text("utf-8")
)
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"language_info": {"name": "julia"}},
    "cells": [
        {"id": "a", "cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {"id": "b", "cell_type": "code", "metadata": {}, "execution_count": 3, "outputs": [], "source": ["x = 1"]},
    ],
}


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


@pytest.fixture
def notebook(project: Path) -> Path:
    file = project / "n.ipynb"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(NOTEBOOK, indent=1).replace("\n", "\r\n").encode())
    return file


def cells(file: Path) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(file.read_bytes())["cells"]]


@pytest.mark.requirement("notebook:modes", "notebook:data")
def test_a_cell_is_replaced_inserted_and_deleted(notebook: Path, yard: BlockingYard) -> None:
    call = {"path": "n.ipynb", "cell_number": 1, "new_source": "y = 2\nz = 3"}
    replaced = yard.call("NotebookEdit", call)
    assert replaced.status is Status.SUCCESS
    data = {name: replaced.data[name] for name in ("applied", "cell_number", "cell_type", "language")}
    assert data == {"applied": True, "cell_number": 1, "cell_type": "code", "language": "julia"}
    assert cells(notebook) == [("markdown", "# Title"), ("code", "y = 2\nz = 3")]
    yard.call("NotebookEdit", {**call, "edit_mode": "insert", "cell_type": "markdown", "new_source": "# Between"})
    assert [kind for kind, _ in cells(notebook)] == ["markdown", "markdown", "code"]
    yard.call("NotebookEdit", {"notebook_path": "n.ipynb", "cell_id": "a", "edit_mode": "delete"})
    assert cells(notebook) == [("markdown", "# Between"), ("code", "y = 2\nz = 3")]


@pytest.mark.requirement("write:bytes-outside", "notebook:modes")
def test_everything_outside_the_cell_stays_mark_and_line_endings_too(notebook: Path, yard: BlockingYard) -> None:
    before = notebook.read_bytes()
    yard.call("NotebookEdit", {"path": "n.ipynb", "cell_id": "a", "new_source": "# Other"})
    assert notebook.read_bytes() == before.replace(b'"# Title"', b'"# Other"')


@pytest.mark.requirement("notebook:bounds")
def test_a_cell_out_of_bounds_is_refused_with_the_number_of_cells(notebook: Path, yard: BlockingYard) -> None:
    before = notebook.read_bytes()
    call = {"path": "n.ipynb", "cell_number": 10, "new_source": "print('test')"}
    envelope = yard.call("NotebookEdit", call)
    assert error_of(envelope)[0] == "INVALID_PARAM"
    assert "Cell number is out of bounds. Notebook has 2 cells." in envelope.text
    assert yard.call("NotebookEdit", call, dialect="backend")["data"] == {
        "cell_number": 10,
        "new_source": "print('test')",
        "cell_type": "code",
        "language": "julia",
        "edit_mode": "replace",
        "error": "Cell number is out of bounds. Notebook has 2 cells.",
    }
    assert notebook.read_bytes() == before


@pytest.mark.requirement("dialect:backend:notebook")
def test_a_back_end_gets_the_seeds_message(notebook: Path, yard: BlockingYard) -> None:
    call = {"path": "n.ipynb", "cell_number": 0, "edit_mode": "delete"}
    message = yard.call("NotebookEdit", call, dialect="backend")
    assert (message["tool_name"], message["data"]) == (
        "NotebookEditCell",
        {"cell_number": 0, "new_source": "", "cell_type": "markdown", "language": "julia", "edit_mode": "delete"},
    )


@pytest.mark.requirement("notebook:valid")
@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_every_notebook_vector_gives_its_notebook_or_leaves_the_file_alone(
    project: Path, yard: BlockingYard, case: dict[str, Any]
) -> None:
    file = project / "n.ipynb"
    file.write_bytes(case["notebook_text"].encode())
    envelope = yard.call("NotebookEdit", {"path": "n.ipynb", **case["request"]})
    if case["outcome"] != "ok":
        assert (envelope.error is not None, file.read_bytes()) == (True, case["notebook_text"].encode())
        return
    assert envelope.error is None, envelope.text
    result = json.loads(file.read_text("utf-8-sig"))
    expected = case["expected"]
    for cell, wanted in zip(result["cells"], expected["cells"], strict=True):
        cell["source"] = "".join(cell["source"])
        if wanted.get("id") == "<NEW>":
            wanted["id"] = cell["id"]
    assert result == expected


@pytest.mark.requirement("notebook:modes")
def test_a_file_that_is_no_notebook_is_refused(project: Path, yard: BlockingYard) -> None:
    (project / "n.ipynb").write_text("{")
    envelope = yard.call("NotebookEdit", {"path": "n.ipynb", "cell_number": 0, "new_source": "x"})
    assert (error_of(envelope)[0], (project / "n.ipynb").read_text()) == ("INVALID_PARAM", "{")
    missing = yard.call("NotebookEdit", {"path": "none.ipynb", "cell_number": 0, "new_source": "x"})
    assert error_of(missing)[0] == "NOT_FOUND"
    assert missing.text == "'none.ipynb' does not exist. Check the path, or list its folder with LS."
