"""Notebook edits: the right cell, valid notebooks, and not a byte changed elsewhere."""

import json
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import bounded_work
from tests.protocol.notebooks import Notebook, Style, edits, notebooks, scattered, styles
from tests.workspace.vectors import vectors
from toolyard.protocol.edits.notebook_cells import CellEdit, CellType, EditedNotebook, EditMode, edit_cell
from toolyard.protocol.edits.text_edit import apply_splices
from toolyard.protocol.envelope import ErrorCode, Failure, Reason

JUPYTER = Style(1, (",", ": "), ascii=False, newline="\n", end="\n")
CODE: Notebook = {
    "cell_type": "code",
    "execution_count": 3,
    "id": "aaa",
    "metadata": {"tags": ["t"]},
    "outputs": [{"name": "stdout", "output_type": "stream", "text": ["hi\n"]}],
    "source": ["import os\n", "x = 1"],
}
MARKDOWN: Notebook = {
    "attachments": {"a.png": {"image/png": "AAAA"}},
    "cell_type": "markdown",
    "id": "bbb",
    "metadata": {},
    "source": ["# Title"],
}
RAW: Notebook = {"cell_type": "raw", "id": "ccc", "metadata": {"format": "rst"}, "source": []}


def _notebook(*cells: Notebook, minor: int = 5, **other: Any) -> Notebook:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor, **other}


def _edit(text: str | Notebook, **request: Any) -> EditedNotebook:
    return edit_cell(JUPYTER.write(text) if isinstance(text, dict) else text, CellEdit(**request), "new-id")


def _cells(edited: EditedNotebook) -> list[Notebook]:
    cells: list[Notebook] = json.loads(edited.text)["cells"]
    return cells


def _failure(text: str | Notebook, **request: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        _edit(text, **request)
    return caught.value


def _attempt(text: str, edit: CellEdit) -> EditedNotebook | None:
    """The edited notebook, or None when nothing would change."""
    try:
        return edit_cell(text, edit, "new-id")
    except Failure as failure:
        if failure.reason is not Reason.NO_CHANGE:
            raise
        return None


def _joined(notebook: Notebook) -> Notebook:
    return {
        **notebook,
        "cells": [
            {**cell, "source": "".join(cell["source"]), **({"id": "<NEW>"} if cell.get("id") == "new-id" else {})}
            for cell in notebook["cells"]
        ],
    }


@pytest.mark.requirement("notebook:valid", "notebook:modes", "notebook:bounds")
def test_every_case_of_the_vectors_comes_out_as_it_must() -> None:
    for case in vectors("notebook_edit.json")["cases"]:
        bom = "\ufeff" if case["notebook_text"].startswith("\ufeff") else ""
        text = case["notebook_text"].removeprefix(bom)
        request = dict(case["request"])
        edit = CellEdit(
            mode=EditMode(request.pop("edit_mode", "replace")),
            cell_type=CellType(kind) if (kind := request.pop("cell_type", None)) else None,
            **request,
        )
        if case["outcome"] == "error":
            with pytest.raises(Failure) as caught:
                edit_cell(text, edit, "new-id")
            assert caught.value.code is ErrorCode.INVALID_PARAM, case["id"]
            continue
        edited = edit_cell(text, edit, "new-id")
        notebook = json.loads(edited.text)
        assert _joined(notebook) == case["expected"], case["id"]
        assert edited.text.endswith("\n") == case["style"]["ends_with_newline"]
        sources = [cell["source"] for cell in notebook["cells"]]
        assert {isinstance(source, list) for source in sources} == {case["style"]["source_as_list"]}
        assert edited.text.split("\n")[:2] == text.split("\n")[:2]
        if case["expected_valid_nbformat"] is True:
            nbformat.validate(notebook)


@pytest.mark.requirement("notebook:modes", "notebook:data")
def test_a_replaced_code_cell_has_the_new_source_and_no_results_of_the_old_one() -> None:
    before = _notebook(MARKDOWN, CODE, RAW)
    edited = _edit(before, cell_number=1, new_source="y = 2\nz = 3\n")
    after = {**CODE, "execution_count": None, "outputs": [], "source": ["y = 2\n", "z = 3\n"]}
    assert edited.text == JUPYTER.write(_notebook(MARKDOWN, after, RAW))
    assert (edited.cell_number, edited.cell_type, edited.language, edited.total_cells) == (1, "code", "python", 3)


@pytest.mark.requirement("notebook:modes")
def test_the_splices_are_the_edit() -> None:
    text = JUPYTER.write(_notebook(MARKDOWN, CODE))
    edited = _edit(text, cell_number=0, new_source="")
    assert apply_splices(text, edited.splices) == edited.text
    assert [text[splice.start : splice.end] for splice in edited.splices] == ['[\n    "# Title"\n   ]']


@pytest.mark.requirement("notebook:modes")
@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_inserted_cell_stands_at_its_number_and_the_number_after_the_last_appends(number: int) -> None:
    edited = _edit(_notebook(CODE, RAW), mode=EditMode.INSERT, cell_number=number, new_source="a\nb")
    new = {**CODE, "execution_count": None, "id": "new-id", "metadata": {}, "outputs": [], "source": ["a\n", "b"]}
    cells = [CODE, RAW]
    cells.insert(number, new)
    assert edited.text == JUPYTER.write(_notebook(*cells))
    assert (edited.cell_number, edited.cell_type, edited.total_cells) == (number, "code", 3)


@pytest.mark.requirement("notebook:modes", "notebook:valid")
@pytest.mark.parametrize("indent", [None, 0, 1, 2, 4, "\t"])
@pytest.mark.parametrize("cell_type", list(CellType))
def test_the_first_cell_of_an_empty_notebook_is_written_like_the_rest_of_it(
    indent: int | str | None, cell_type: CellType
) -> None:
    style = Style(indent, (",", ":"), ascii=False, newline="\r\n", end="")
    edited = _edit(
        style.write(_notebook()), mode=EditMode.INSERT, cell_number=0, new_source="a\nb", cell_type=cell_type
    )
    (cell,) = _cells(edited)
    assert edited.text == style.write(_notebook(cell))
    assert list(cell) == sorted(cell)
    assert (cell["cell_type"], cell["source"]) == (cell_type, ["a\n", "b"])
    nbformat.validate(json.loads(edited.text))


@pytest.mark.requirement("notebook:modes")
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_deleted_cell_takes_one_comma_with_it(number: int) -> None:
    cells = [MARKDOWN, CODE, RAW]
    edited = _edit(_notebook(*cells), mode=EditMode.DELETE, cell_number=number, new_source="ignored")
    deleted = cells.pop(number)
    assert edited.text == JUPYTER.write(_notebook(*cells))
    assert (edited.cell_type, edited.total_cells) == (deleted["cell_type"], 2)


@pytest.mark.requirement("notebook:modes")
def test_deleting_the_only_cell_leaves_an_empty_list() -> None:
    assert _edit(_notebook(CODE), mode=EditMode.DELETE, cell_id="aaa").text == JUPYTER.write(_notebook())


@pytest.mark.requirement("notebook:modes")
@pytest.mark.parametrize("mode", list(EditMode))
def test_a_cell_is_found_by_its_id_and_a_new_one_comes_to_stand_in_its_place(mode: EditMode) -> None:
    edited = _edit(_notebook(CODE, MARKDOWN, RAW), mode=mode, cell_id="bbb", new_source="x")
    assert edited.cell_number == 1
    ids = [cell["id"] for cell in _cells(edited)]
    assert (
        ids
        == {"replace": ["aaa", "bbb", "ccc"], "insert": ["aaa", "new-id", "bbb", "ccc"], "delete": ["aaa", "ccc"]}[mode]
    )


@pytest.mark.requirement("notebook:valid")
def test_code_that_becomes_markdown_loses_its_results() -> None:
    edited = _edit(_notebook(CODE), cell_number=0, new_source="# a", cell_type=CellType.MARKDOWN)
    after = {"cell_type": "markdown", "id": "aaa", "metadata": {"tags": ["t"]}, "source": ["# a"]}
    assert edited.text == JUPYTER.write(_notebook(after))
    assert edited.cell_type == "markdown"


@pytest.mark.requirement("notebook:valid")
def test_markdown_that_becomes_code_gets_empty_results_and_loses_its_attachments() -> None:
    edited = _edit(_notebook(MARKDOWN), cell_number=0, new_source="a", cell_type=CellType.CODE)
    after: Notebook = {
        "cell_type": "code",
        "execution_count": None,
        "id": "bbb",
        "metadata": {},
        "outputs": [],
        "source": ["a"],
    }
    assert edited.text == JUPYTER.write(_notebook(after))


@pytest.mark.requirement("notebook:valid")
def test_metadata_that_a_new_type_of_cell_cannot_have_is_dropped() -> None:
    odd = {**MARKDOWN, "metadata": {"collapsed": "no", "tags": [], "scrolled": 1, "execution": {"a": 1}}}
    assert _cells(_edit(_notebook(odd), cell_number=0, new_source="a", cell_type=CellType.CODE))[0]["metadata"] == {
        "tags": []
    }
    assert _cells(_edit(_notebook(odd), cell_number=0, new_source="a"))[0]["metadata"] == odd["metadata"]


@pytest.mark.requirement("notebook:valid")
def test_ids_are_given_from_format_4_5_on_and_are_unique() -> None:
    old = {key: value for key, value in CODE.items() if key != "id"}
    insert = {"mode": EditMode.INSERT, "cell_number": 0, "new_source": ""}
    assert "id" not in _cells(_edit(_notebook(old, minor=4), **insert))[0]
    taken = [{**CODE, "id": "new-id"}, {**CODE, "id": "new-id-2"}]
    assert _cells(_edit(_notebook(*taken), **insert))[0]["id"] == "new-id-3"
    assert _cells(_edit(_notebook(old), cell_number=0, new_source=""))[0]["id"] == "new-id"


@pytest.mark.requirement("notebook:valid")
def test_a_damaged_cell_comes_out_sound() -> None:
    text = JUPYTER.write(
        _notebook({"cell_type": "markdown", "outputs": [], "source": "a"}, {"cell_type": "code", "source": "b"}, {})
    )
    for number in range(3):
        text = edit_cell(text, CellEdit(cell_number=number, new_source=f"{number}"), f"id-{number}").text
    nbformat.validate(json.loads(text))
    assert [cell["cell_type"] for cell in json.loads(text)["cells"]] == ["markdown", "code", "raw"]


@pytest.mark.requirement("notebook:valid")
def test_what_json_can_write_in_many_ways_stays_as_it_was_written() -> None:
    text = (
        '{"nbformat_minor": 4, "odd": 1.50e+2, "odd": "\\u0041\\/", "cells": [],\t"cells" :[ { "source": "a", "source" '
        ': "b","cell_type":"raw", "metadata": {"n": 1E400, "n": -0.0} } ], "metadata": {}, "nbformat": 4}'
    )
    edited = _edit(text, cell_number=0, new_source="c")
    assert edited.text == text.replace('"b"', '"c"')


@pytest.mark.requirement("notebook:valid")
@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("plain", '"é\\n中"'),
        ("é", '"é\\n中"'),
        ("\\u00e9", '"\\u00e9\\n\\u4e2d"'),
        ("\\\\u00e9", '"é\\n中"'),  # an escaped backslash, not an escaped letter
        ("\\u001b", '"é\\n中"'),  # no style can leave this one unescaped
    ],
)
def test_characters_beyond_ascii_are_escaped_where_the_notebook_escapes_them(title: str, written: str) -> None:
    text = f'{{"cells": [{{"cell_type": "raw", "metadata": {{}}, "source": "a"}}], "nbformat": 4, "title": "{title}"}}'
    assert _edit(text, cell_number=0, new_source="é\n中").text == text.replace('"a"', written)


@pytest.mark.requirement("notebook:valid")
def test_half_characters_are_escaped_and_bytes_that_are_no_text_are_not_rewritten() -> None:
    cell = {**MARKDOWN, "metadata": {"broken": "\udcff"}}
    text = JUPYTER.write(_notebook(cell))
    edited = _edit(text, cell_number=0, new_source="\ud800é")
    assert '"\\ud800é"' in edited.text
    assert "\udcff" in edited.text
    assert "".join(splice.text for splice in edited.splices).encode()


@pytest.mark.requirement("notebook:valid")
def test_a_source_keeps_its_style_and_a_new_one_takes_that_of_most() -> None:
    mixed = _notebook({**CODE, "source": "a\nb"}, {**MARKDOWN, "source": ""}, {**RAW, "source": ["c"]}, RAW)
    assert _cells(_edit(mixed, cell_number=0, new_source="x\ny"))[0]["source"] == "x\ny"
    assert _cells(_edit(mixed, cell_number=1, new_source="x\ny"))[1]["source"] == ["x\n", "y"]
    insert = {"mode": EditMode.INSERT, "cell_number": 0, "new_source": "x\ny"}
    assert _cells(_edit(mixed, **insert))[0]["source"] == ["x\n", "y"]
    strings = _notebook({**CODE, "source": "a"}, {**MARKDOWN, "source": ""})
    assert _cells(_edit(strings, **insert))[0]["source"] == "x\ny"


@pytest.mark.requirement("notebook:valid")
def test_a_new_cell_has_its_keys_in_the_order_of_the_nearest_cell_of_its_type() -> None:
    keys = ["id", "cell_type", "source", "outputs", "metadata", "execution_count"]
    odd = {key: CODE[key] for key in keys}
    insert = {"mode": EditMode.INSERT, "cell_number": 0, "new_source": ""}
    assert list(_cells(_edit(_notebook(MARKDOWN, odd), **insert))[0]) == keys
    assert list(_cells(_edit(_notebook(odd), **insert, cell_type=CellType.RAW))[0]) == [
        "id",
        "cell_type",
        "source",
        "metadata",
    ]


@pytest.mark.requirement("notebook:bounds")
@pytest.mark.parametrize(
    ("mode", "number"), [("replace", 8), ("delete", 8), ("insert", 9), ("replace", -1), ("insert", -1)]
)
def test_a_number_out_of_bounds_is_refused_in_the_words_of_the_protocol(mode: str, number: int) -> None:
    failure = _failure(_notebook(*[CODE] * 8), mode=EditMode(mode), cell_number=number, new_source="x")
    assert failure.code is ErrorCode.INVALID_PARAM
    assert failure.message == "Cell number is out of bounds. Notebook has 8 cells."
    assert failure.data == {"language": "python", "total_cells": 8}


@pytest.mark.requirement("notebook:modes")
def test_an_unknown_id_is_answered_with_the_nearest_ones() -> None:
    failure = _failure(_notebook(CODE, MARKDOWN), cell_id="aab", new_source="x")
    assert failure.reason is Reason.NOT_FOUND_IN_FILE
    assert "nearest ids are 'aaa', 'bbb'" in failure.message
    assert "have no ids" in _failure(_notebook(minor=4), cell_id="aab", new_source="x").message


@pytest.mark.requirement("notebook:modes")
def test_an_id_that_two_cells_have_is_refused_and_so_is_a_number_that_contradicts_the_id() -> None:
    failure = _failure(_notebook(CODE, MARKDOWN, CODE), cell_id="aaa", new_source="x")
    assert (failure.reason, failure.data["cell_numbers"]) == (Reason.NOT_UNIQUE, [0, 2])
    failure = _failure(_notebook(CODE, MARKDOWN), cell_id="bbb", cell_number=0, new_source="x")
    assert "two cells: the id is that of cell 1" in failure.message
    assert _edit(_notebook(CODE, MARKDOWN), cell_id="bbb", cell_number=1, new_source="x").cell_number == 1


@pytest.mark.requirement("notebook:modes")
def test_an_edit_that_says_too_little_is_refused() -> None:
    assert "cell_number and cell_id are missing" in _failure(_notebook(CODE), new_source="x").message
    assert "new_source is missing" in _failure(_notebook(CODE), cell_number=0).message
    assert "new_source is missing" in _failure(_notebook(CODE), cell_number=0, mode=EditMode.INSERT).message


@pytest.mark.requirement("notebook:modes")
def test_an_edit_that_changes_nothing_is_refused() -> None:
    failure = _failure(_notebook(MARKDOWN), cell_number=0, new_source="# Title", cell_type=CellType.MARKDOWN)
    assert failure.reason is Reason.NO_CHANGE
    assert failure.data == {"language": "python", "total_cells": 1, "cell_number": 0, "cell_type": "markdown"}


@pytest.mark.requirement("notebook:valid")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ('{\n "cells": [,\n', "Expecting value (line 2, column 12)"),
        ("[]", "not an object"),
        ("{}", "no list of cells"),
        ('{"nbformat": 4, "cells": {}}', "no list of cells"),
        ('{"nbformat": 4, "cells": [{}, 1]}', "cell 1 is not an object"),
        ('{"nbformat": 3, "worksheets": []}', "of format 3; only format 4"),
        ('{"nbformat": 4, "worksheets": []}', "worksheets as in format 3"),
        ('{"nbformat": [1], "cells": []}', "of format [1]"),
        ('{"cells": ' + "[" * 100_000, "nested too deeply"),
        ('{"cells": [], "n": ' + "1" * 5000 + "}", "numbers too long"),
        ("# a Python file", "Expecting value (line 1, column 1)"),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(text: str, why: str) -> None:
    failure = _failure(text, cell_number=0, new_source="x")
    assert failure.code is ErrorCode.INVALID_PARAM
    assert why in failure.message


@pytest.mark.requirement("notebook:data")
@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"language_info": {"name": "R"}, "kernelspec": {"language": "julia"}}, "R"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({"language_info": 1}, "python"),
        ([], "python"),
        ({"language_info": {"name": "\udcff"}}, "\\udcff"),
    ],
)
def test_the_language_is_that_of_the_notebook(metadata: Any, language: str) -> None:
    notebook = {**_notebook(CODE), "metadata": metadata}
    assert _edit(notebook, cell_number=0, new_source="x").language == language


@pytest.mark.requirement("notebook:valid", "notebook:modes")
@given(st.data(), notebooks(), styles)
def test_any_edit_of_any_notebook_gives_the_text_its_own_writer_would_have_written(
    data: st.DataObject, notebook: Notebook, style: Style
) -> None:
    nbformat.validate(json.loads(json.dumps(notebook)))
    text, edit = style.write(notebook), data.draw(edits(notebook))
    edited = _attempt(text, edit)
    if edited is None:
        return
    content, number = json.loads(edited.text), edited.cell_number
    cells = list(notebook["cells"])
    if edit.mode is EditMode.DELETE:
        cells.pop(number)
    else:
        cells[number : number + (edit.mode is EditMode.REPLACE)] = [content["cells"][number]]
        _check_cell(content["cells"][number], edit, notebook)
    assert edited.text == style.write({**notebook, "cells": cells})
    assert edited.total_cells == len(cells)
    nbformat.validate(content)


def _check_cell(cell: Notebook, edit: CellEdit, notebook: Notebook) -> None:
    old: Notebook = {"metadata": {}, "cell_type": "code"}
    if edit.mode is EditMode.REPLACE:
        old = notebook["cells"][edit.cell_number]
    assert "".join(cell["source"]) == edit.new_source
    assert cell["cell_type"] == (edit.cell_type or old["cell_type"])
    assert cell["metadata"].items() <= old["metadata"].items()
    assert cell["metadata"] == old["metadata"] or cell["cell_type"] != old["cell_type"]
    assert ("id" in cell) == (notebook["nbformat_minor"] >= 5)
    if cell["cell_type"] == "code":
        assert (cell["outputs"], cell["execution_count"], "attachments" in cell) == ([], None, False)
    else:
        assert not {"outputs", "execution_count"} & cell.keys()
        assert cell.get("attachments") == old.get("attachments")


@pytest.mark.requirement("notebook:valid")
@given(st.data(), notebooks())
def test_every_byte_outside_the_cell_stays_whatever_the_layout(data: st.DataObject, notebook: Notebook) -> None:
    random = data.draw(st.randoms(use_true_random=False))
    text, spans = scattered(notebook, lambda: "".join(random.choices(" \t\r\n", k=random.randint(0, 3))))
    edit = data.draw(edits(notebook))
    edited = _attempt(text, edit)
    if edited is None:
        return
    assert json.loads(edited.text).keys() == notebook.keys()
    nbformat.validate(json.loads(edited.text))
    if edit.mode is EditMode.REPLACE:
        start, end = spans[edited.cell_number]
        assert all(start < splice.start and splice.end < end for splice in edited.splices)
    elif edit.mode is EditMode.INSERT and spans:
        (splice,) = edited.splices
        assert splice.start == splice.end
    for number, (start, end) in enumerate(spans):
        if edit.mode is EditMode.INSERT or number != edited.cell_number:
            assert text[start:end] in edited.text


@pytest.mark.requirement("notebook:valid")
def test_a_big_notebook_is_edited_in_linear_time() -> None:
    cells = [{**CODE, "id": f"c{number}", "source": ["x = 1\n"] * 20} for number in range(10_000)]
    text = JUPYTER.write(_notebook(*cells))
    with bounded_work():
        _edit(text, cell_number=5000, new_source="y\n" * 20_000)
        _edit(text, mode=EditMode.INSERT, cell_number=10_000, new_source="y\n" * 20_000, cell_type=CellType.RAW)
