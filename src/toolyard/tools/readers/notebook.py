"""A Jupyter notebook as cells: source, text of its outputs, images as parts."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import SNIFF_BYTES, Media, Part, Text, sniff
from toolyard.protocol.edits.notebook_cells import read_language
from toolyard.protocol.envelope import Extras
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.result_limits import MAX_BYTES
from toolyard.protocol.tool import Result
from toolyard.tools.readers import Page

MAX_OUTPUT_CHARS = 2000  # of one output; a notebook's outputs are seldom what is looked for
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def read(raw: bytes, path: str, page: Page) -> Result | None:
    """The cells of a notebook, or None when ``raw`` is none after all and is best read as text."""
    notebook = _parse(raw)
    if notebook is None:
        return None
    cells: list[dict[str, Any]] = notebook["cells"]
    first = page.start - 1
    if first and first >= len(cells):
        raise page.beyond_end_failure(path, len(cells), Message("cells"))
    shown, cut = _cut_cells([_read_cell(number, cell) for number, cell in enumerate(cells)][first : first + page.limit])
    next_cell = first + len(shown) + 1 if first + len(shown) < len(cells) else None
    text = join_sentences(
        Message(
            "Read {count} of {total} cells of '{path}': cell_number {first} to {last}.",
            count=len(shown),
            total=len(cells),
            path=path,
            first=first,
            last=first + len(shown) - 1,
        )
        if cells
        else Message("Read '{path}': the notebook has no cells.", path=path),
        Message("(Truncated.) Use start_line={line} to read on; it counts cells from 1.", line=next_cell)
        if next_cell is not None
        else "",
        Message("Long sources and outputs are cut: name encoding=utf-8 to read the file as lines instead.")
        if cut
        else "",
    )
    images = [image for cell in cells[first : first + len(shown)] for image in _list_images(cell, path)]
    parts: list[Part] = [Text(text), *(Text(_cell_text(cell)) for cell in shown), *images]
    return Result(
        data={
            "cells": list(shown),
            "truncated": next_cell is not None or cut,
            "language": read_language(notebook),
            "encoding": "utf-8",
            "next_line": next_cell,
            "total_cells": len(cells),
            "hash": hashlib.sha256(raw).hexdigest(),
        },
        text=text,
        stats={"cells": len(shown), "bytes": len(raw)},
        context={"path_resolved": path, "truncation_skip": True},
        extras=Extras(parts=tuple(parts)),
    )


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        notebook: Any = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        return None
    return notebook if all(isinstance(cell, dict) for cell in notebook["cells"]) else None


def _read_cell(number: int, cell: dict[str, Any]) -> dict[str, Json]:
    shown: dict[str, Json] = {"cell_number": number, "cell_type": _join_texts(cell.get("cell_type")) or "raw"}
    if isinstance(cell.get("id"), str):
        shown["cell_id"] = _join_texts(cell["id"])
    shown["source"] = _join_texts(cell.get("source"))
    outputs: list[Json] = [text for output in _list_outputs(cell) for text in _list_output_texts(output)]
    if outputs:
        shown["outputs"] = outputs
    return shown


def _cut_cells(cells: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], bool]:
    """Keep as many cells as an answer can hold, at least one; also return whether any text in them was cut."""
    size = 0
    for count, cell in enumerate(cells):
        size += len(json.dumps(cell, ensure_ascii=False).encode())
        if size > MAX_BYTES:
            if count:
                return cells[:count], _has_cuts(cells[:count])
            source = str(cell["source"]).encode()[: MAX_BYTES // 2].decode(errors="ignore")
            return [{**cell, "source": f"{source}… [cut]", "outputs": []}], True
    return cells, _has_cuts(cells)


def _has_cuts(cells: list[dict[str, Json]]) -> bool:
    return any(str(text).endswith("… [cut]") for cell in cells for text in _as_list(cell.get("outputs")))


def _cell_text(cell: JsonObject) -> str:
    label = f" id={cell['cell_id']}" if "cell_id" in cell else ""
    outputs = "".join(f"\n[output]\n{text}" for text in _as_list(cell.get("outputs")))
    return f"[cell {cell['cell_number']}] {cell['cell_type']}{label}\n{cell['source']}{outputs}"


def _list_outputs(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (output for output in _as_list(cell.get("outputs")) if isinstance(output, dict))


def _list_output_texts(output: dict[str, Any]) -> Iterator[str]:
    data = output.get("data")
    for value in (
        output.get("text"),
        data.get("text/plain") if isinstance(data, dict) else None,
        output.get("traceback"),
    ):
        text = _ANSI.sub("", _join_texts(value, "\n" if value is output.get("traceback") else ""))
        if text:
            yield text if len(text) <= MAX_OUTPUT_CHARS else text[:MAX_OUTPUT_CHARS] + "… [cut]"


def _list_images(cell: dict[str, Any], path: str) -> Iterator[Media]:
    for output in _list_outputs(cell):
        data = output.get("data")
        for mime, value in data.items() if isinstance(data, dict) else ():
            if mime in ("image/png", "image/jpeg", "image/gif", "image/webp"):
                try:
                    raw = base64.b64decode(_join_texts(value))
                except ValueError:
                    continue
                sniffed = sniff(raw[:SNIFF_BYTES])
                if sniffed and sniffed.startswith("image/"):
                    yield Media(sniffed, raw, source=path)


def _join_texts(value: Any, separator: str = "") -> str:
    """A text, or the texts of a list; anything else says nothing. JSON can write half characters, UTF-8 cannot."""
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return separator.join(texts).encode(errors="backslashreplace").decode()


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
