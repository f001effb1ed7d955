"""Random valid notebooks, and the styles they are written in."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from toolyard.protocol.edits.notebook_cells import CellEdit, CellType, EditMode

Notebook = dict[str, Any]

texts = st.text(max_size=30) | st.sampled_from(
    ["a = 1\nb = 2", "\n", "x\r\ny\n", "é\u2028中\f", '"\\u00e9"', "# title\n\n"]
)
ODD = st.sampled_from([True, False, "auto", 3, {"a": "b"}, {"a": 1}, None, "text"])
OUTPUTS: list[Notebook] = [
    {"output_type": "stream", "name": "stdout", "text": ["hi\n", "é"]},
    {"output_type": "display_data", "data": {"text/plain": "1", "application/json": {"a": [1, 2.5]}}, "metadata": {}},
    {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["\x1b[31mE"]},
]


@dataclass(frozen=True)
class Style:
    """A way to write JSON that a whole notebook keeps to."""

    indent: int | str | None
    separators: tuple[str, str]
    ascii: bool
    newline: str
    end: str

    def write(self, notebook: Notebook) -> str:
        text = json.dumps(notebook, indent=self.indent, separators=self.separators, ensure_ascii=self.ascii)
        return text.replace("\n", self.newline) + self.end


styles = st.one_of(
    st.builds(
        Style,
        indent=st.sampled_from([0, 1, 2, 4, "\t"]),
        separators=st.sampled_from([(",", ": "), (",", ":"), (",", " : ")]),
        ascii=st.booleans(),
        newline=st.sampled_from(["\n", "\r\n"]),
        end=st.sampled_from(["", "\n", "\n\n"]),
    ),
    st.builds(
        Style,
        indent=st.none(),
        separators=st.sampled_from([(",", ":"), (", ", ": ")]),
        ascii=st.booleans(),
        newline=st.just("\n"),
        end=st.sampled_from(["", "\n"]),
    ),
)


@st.composite
def notebooks(draw: st.DrawFn) -> Notebook:
    minor = draw(st.integers(0, 5))
    as_list = draw(st.booleans())
    cells = [draw(_cells(minor, as_list, f"id-{number}")) for number in range(draw(st.integers(0, 4)))]
    parts: Notebook = {
        "cells": cells,
        "metadata": {"title": "é", "language_info": {"name": draw(st.sampled_from(["python", "julia"]))}},
        "nbformat": 4,
        "nbformat_minor": minor,
    }
    return {key: parts[key] for key in draw(st.permutations(sorted(parts)))}


@st.composite
def _cells(draw: st.DrawFn, minor: int, as_list: bool, cell_id: str) -> Notebook:
    kind = draw(st.sampled_from(["code", "markdown", "raw"]))
    source = draw(texts)
    cell: Notebook = {
        "cell_type": kind,
        "metadata": draw(_metadata(kind)),
        "source": source.splitlines(keepends=True) if as_list else source,
    }
    if minor >= 5:
        cell["id"] = cell_id
    if kind == "code":
        cell["execution_count"] = draw(st.none() | st.integers(0, 9))
        cell["outputs"] = draw(st.lists(st.sampled_from(OUTPUTS), max_size=2))
    elif draw(st.booleans()):
        cell["attachments"] = {"a.png": {"image/png": "iVBORw0KGgo="}}
    keys = sorted(cell)
    return {key: cell[key] for key in (draw(st.permutations(keys)) if draw(st.booleans()) else keys)}


@st.composite
def _metadata(draw: st.DrawFn, kind: str) -> Notebook:
    """Keys that mean something in one type of cell may hold anything in the others."""
    odd = {"code": ["format"], "raw": ["collapsed", "scrolled", "execution"]}.get(
        kind, ["format", "collapsed", "scrolled", "execution"]
    )
    return {"tags": ["a"], **draw(st.dictionaries(st.sampled_from(odd), ODD, max_size=3))}


@st.composite
def edits(draw: st.DrawFn, notebook: Notebook) -> CellEdit:
    count = len(notebook["cells"])
    mode = draw(st.sampled_from(list(EditMode))) if count else EditMode.INSERT
    number = draw(st.integers(0, count if mode is EditMode.INSERT else count - 1))
    return CellEdit(
        mode=mode,
        cell_number=number,
        new_source=None if mode is EditMode.DELETE else draw(texts),
        cell_type=draw(st.none() | st.sampled_from(list(CellType))),
    )


def scattered(notebook: Notebook, gap: Callable[[], str]) -> tuple[str, list[tuple[int, int]]]:
    """The notebook with ``gap()`` between all tokens, and where its cells stand."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []

    def put(value: object, depth: int) -> None:
        start = sum(map(len, pieces))
        if isinstance(value, dict | list) and value:
            members = value.items() if isinstance(value, dict) else [(None, item) for item in value]
            pieces.append("{" if isinstance(value, dict) else "[")
            for number, (key, inner) in enumerate(members):
                pieces.extend([",", gap()] if number else [gap()])
                if key is not None:
                    pieces.extend([json.dumps(key), gap(), ":", gap()])
                put(inner, depth + 1)
                pieces.append(gap())
            pieces.append("}" if isinstance(value, dict) else "]")
        else:
            pieces.append(json.dumps(value, ensure_ascii=False))
        if depth == 2 and isinstance(value, dict) and "cell_type" in value:
            spans.append((start, sum(map(len, pieces))))

    pieces.append(gap())
    put(notebook, 0)
    pieces.append(gap())
    return "".join(pieces), spans
