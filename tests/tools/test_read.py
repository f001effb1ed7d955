"""Read: the lines of a file, whatever they are written in, page by page."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.workspace.answers import code, timeless
from tests.workspace.vectors import put
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, ErrorCode, Status
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES
from toolyard.workspace.text_reader import SMALL_FILE


def content(envelope: Envelope) -> str:
    return str(envelope.data["content"])


def numbered(lines: list[str], start: int = 1) -> str:
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start))


@pytest.mark.requirement("read:content", "read:hash", "read:eol", "read:encoding", "envelope:context:path-resolved")
@pytest.mark.requirement("read:total-lines")
def test_a_file_is_read_line_by_line(yard: BlockingYard, project: Path) -> None:
    put(project, {"src/a.py": "one\n\n\tthree\n"})
    assert timeless(yard.call("Read", {"path": "src/a.py"})) == {
        "status": "success",
        "data": {
            "content": "1\tone\n2\t\n3\t\tthree",
            "truncated": False,
            "encoding": "utf-8",
            "eol": "lf",
            "next_line": None,
            "hash": hashlib.sha256(b"one\n\n\tthree\n").hexdigest(),
            "total_lines": 3,
        },
        "text": "Read lines 1-3 of 3 of 'src/a.py'.",
        "stats": {"lines": 3, "bytes": 12, "total_lines": 3},
        "context": {
            "cwd": ".",
            "params_input": {"path": "src/a.py"},
            "path_resolved": "src/a.py",
            "truncation_skip": True,
        },
    }


@pytest.mark.requirement("read:content", "envelope:text")
def test_an_empty_file_has_no_lines(yard: BlockingYard, project: Path) -> None:
    put(project, {"empty": ""})
    envelope = yard.call("Read", {"path": "empty"})
    assert (envelope.status, envelope.text) == (Status.SUCCESS, "Read 'empty': the file is empty.")
    assert envelope.data == {
        "content": "",
        "truncated": False,
        "encoding": "utf-8",
        "eol": None,
        "next_line": None,
        "hash": hashlib.sha256(b"").hexdigest(),
        "total_lines": 0,
    }


@pytest.mark.requirement(
    "read:start-line", "read:limit", "read:next-line", "envelope:status:truncated", "envelope:text"
)
def test_a_page_out_of_the_middle_says_where_the_next_one_begins(yard: BlockingYard, project: Path) -> None:
    put(project, {"a": {"lines": 10, "of": "line {n}"}})
    envelope = yard.call("Read", {"path": "a", "start_line": 4, "limit": 3})
    assert (envelope.status, envelope.data["truncated"], envelope.data["next_line"]) == (Status.PARTIAL, True, 7)
    assert content(envelope) == "4\tline 4\n5\tline 5\n6\tline 6"
    assert envelope.text == "Read lines 4-6 of 10 of 'a'. (Truncated.) Use start_line=7 to read on."


@pytest.mark.requirement("read:exact-end")
@pytest.mark.parametrize(("start", "limit"), [(1, 10), (4, 7), (10, 1), (1, 2000)])
def test_a_page_that_ends_with_the_file_is_not_truncated(
    yard: BlockingYard, project: Path, start: int, limit: int
) -> None:
    put(project, {"a": {"lines": 10, "of": "line {n}"}})
    envelope = yard.call("Read", {"path": "a", "start_line": start, "limit": limit})
    assert (envelope.status, envelope.data["truncated"], envelope.data["next_line"]) == (Status.SUCCESS, False, None)
    assert content(envelope) == numbered([f"line {number}" for number in range(start, 11)], start)


@pytest.mark.requirement("read:limit", "truncation:paging")
@pytest.mark.parametrize(("lines", "next_line"), [(MAX_LINES, None), (MAX_LINES + 1, MAX_LINES + 1)])
def test_two_thousand_lines_are_read_at_once(
    yard: BlockingYard, project: Path, lines: int, next_line: int | None
) -> None:
    put(project, {"a": {"lines": lines, "of": "{n}"}})
    envelope = yard.call("Read", {"path": "a"})
    assert (envelope.data["next_line"], envelope.context["truncation_skip"]) == (next_line, True)
    assert content(envelope) == numbered([str(number) for number in range(1, MAX_LINES + 1)])


@pytest.mark.requirement(
    "read:bytes", "truncation:paging", "read:next-line", "envelope:status:truncated", "envelope:text"
)
@pytest.mark.parametrize("line", ["x" * 300, "中" * 300, "é" * 1999, "😀" * 2000, "x" * 5000])
def test_a_page_stops_at_51200_bytes_of_content(yard: BlockingYard, project: Path, line: str) -> None:
    lines = [f"{number} {line}" for number in range(1, 251)]
    put(project, {"a": "\n".join(lines)})
    start: int | None = 1
    found: list[str] = []
    while start is not None:
        page = yard.call("Read", {"path": "a", "start_line": start})
        assert len(content(page).encode()) <= MAX_BYTES
        start = page.data["next_line"]  # type: ignore[assignment]
        if start is not None:
            assert page.status is Status.PARTIAL
            assert f"(Truncated at 51200 bytes.) Use start_line={start} to read on." in page.text
        found += [shown.partition("\t")[2] for shown in content(page).split("\n")]
    assert [shown[:MAX_LINE_CHARS] for shown in found] == [line[:MAX_LINE_CHARS] for line in lines]


@pytest.mark.requirement("read:bytes", "read:encoding")
def test_the_bytes_are_those_of_the_answer_and_not_of_the_file(yard: BlockingYard, project: Path) -> None:
    (project / "a").write_bytes(("中" * 900 + "\n").encode("gb18030") * 60)
    envelope = yard.call("Read", {"path": "a"})
    assert (envelope.data["encoding"], envelope.data["next_line"]) == ("gb18030", 19)
    assert len(content(envelope).encode()) <= MAX_BYTES


@pytest.mark.requirement("read:bytes", "envelope:status:truncated", "envelope:text")
def test_a_long_line_is_cut_visibly(yard: BlockingYard, project: Path) -> None:
    put(project, {"a": f"short\n{'é' * 3000}\nend\n"})
    envelope = yard.call("Read", {"path": "a"})
    assert (envelope.status, envelope.data["truncated"], envelope.data["next_line"]) == (Status.PARTIAL, True, None)
    assert content(envelope) == f"1\tshort\n2\t{'é' * 2000}… [line cut: 6000 bytes in all]\n3\tend"
    assert envelope.text == (
        "Read lines 1-3 of 3 of 'a'. Lines longer than 2000 characters are cut: 1. Search inside them with Grep."
    )


@pytest.mark.requirement("read:start-line", "envelope:text")
@pytest.mark.parametrize(("text", "total"), [("", 0), ("one", 1), ("one\n", 1), ("one\ntwo\n", 2)])
def test_a_start_beyond_the_end_is_refused_and_the_length_is_told(
    yard: BlockingYard, project: Path, text: str, total: int
) -> None:
    put(project, {"a": text})
    envelope = yard.call("Read", {"path": "a", "start_line": total + 2})
    assert (code(envelope), envelope.context["total"]) == (ErrorCode.INVALID_PARAM, total)
    assert (
        envelope.text == f"'a' has {total} lines: start_line={total + 2} is beyond its end. Use a smaller start_line."
    )


@pytest.mark.requirement("read:start-line", "read:limit")
@pytest.mark.parametrize(
    "arguments",
    [
        {"start_line": 0},
        {"start_line": -1},
        {"limit": 0},
        {"limit": MAX_LINES + 1},
        {"start_line": "x"},
        {"limit": 1.5},
    ],
)
def test_a_number_out_of_range_is_refused(yard: BlockingYard, project: Path, arguments: dict[str, Any]) -> None:
    put(project, {"a": "x\n"})
    assert code(yard.call("Read", {"path": "a", **arguments})) is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("read:eol")
@pytest.mark.parametrize(
    ("raw", "eol"),
    [("a", None), ("a\nb\n", "lf"), ("a\r\nb\r\n", "crlf"), ("a\rb\r", "cr"), ("a\r\nb\n", "mixed"), ("a\rb\nc", "lf")],
)
def test_the_line_ending_is_reported(yard: BlockingYard, project: Path, raw: str, eol: str | None) -> None:
    put(project, {"a": raw})
    assert yard.call("Read", {"path": "a"}).data["eol"] == eol


ENCODED = [
    ("utf-8", "né 中\n".encode(), "utf-8"),
    ("a mark", b"\xef\xbb\xbf" + "né 中\n".encode(), "utf-8"),
    ("utf-16-le", b"\xff\xfe" + "né 中\n".encode("utf-16-le"), "utf-16-le"),
    ("utf-16-be", b"\xfe\xff" + "né 中\n".encode("utf-16-be"), "utf-16-be"),
    ("utf-32-le", b"\xff\xfe\0\0" + "né 中\n".encode("utf-32-le"), "utf-32-le"),
]


@pytest.mark.requirement("read:encoding", "read:hash")
@pytest.mark.parametrize(("raw", "name"), [case[1:] for case in ENCODED], ids=[case[0] for case in ENCODED])
def test_the_encoding_is_found_and_its_mark_is_not_shown(
    yard: BlockingYard, project: Path, raw: bytes, name: str
) -> None:
    (project / "a").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a"})
    assert (envelope.status, content(envelope), envelope.data["encoding"], envelope.data["hash"]) == (
        Status.SUCCESS,
        "1\tné 中",
        name,
        hashlib.sha256(raw).hexdigest(),
    )


@pytest.mark.requirement("read:encoding")
@pytest.mark.parametrize(
    "name", ["gb18030", "shift_jis", "big5", "euc_kr", "utf-16-le", "utf-16-be", "latin-1", "cp037"]
)
def test_a_file_is_read_in_the_encoding_that_is_named(yard: BlockingYard, project: Path, name: str) -> None:
    text = {"latin-1": "naïve\nÜber", "cp037": "plain\ntext", "euc_kr": "안녕\n세계"}.get(name, "日本\n中")
    (project / "a").write_bytes(text.encode(name))
    envelope = yard.call("Read", {"path": "a", "encoding": name})
    assert (envelope.status, content(envelope)) == (Status.SUCCESS, numbered(text.split("\n")))


@pytest.mark.requirement("read:encoding", "envelope:text")
@pytest.mark.parametrize(
    ("raw", "arguments", "shown", "name"),
    [
        ("好 ".encode() * 20 + b"\xff\n", {}, "好 " * 20 + r"\xff", "utf-8"),
        ("né\n".encode(), {"encoding": "ascii"}, r"n\xc3\xa9", "ascii"),
        (b"\xff\xfea\0b", {}, r"a\x62", "utf-16-le"),
    ],
)
def test_bytes_that_are_no_text_are_shown_and_make_the_answer_partial(
    yard: BlockingYard, project: Path, raw: bytes, arguments: dict[str, Any], shown: str, name: str
) -> None:
    (project / "a").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a", **arguments})
    assert (envelope.status, envelope.data["truncated"]) == (Status.PARTIAL, False)
    assert content(envelope) == f"1\t{shown}"
    assert envelope.text.endswith(
        f"The encoding is not certain: shown as {name}, and bytes that are no text in it as \\xNN."
        " Name the encoding if you know it."
    )


@pytest.mark.requirement("read:unsupported-encoding", "envelope:text")
@pytest.mark.parametrize("name", ["nonsense", "hex", "idna", "undefined", "unicode_escape"])
def test_an_encoding_that_cannot_be_read_is_refused(yard: BlockingYard, project: Path, name: str) -> None:
    put(project, {"a": "x\n", "nb.ipynb": '{"cells": []}'})
    for path in ("a", "nb.ipynb"):
        envelope = yard.call("Read", {"path": path, "encoding": name})
        assert (code(envelope), envelope.context["reason"]) == (ErrorCode.INVALID_PARAM, "UNSUPPORTED_ENCODING")
        assert envelope.text.endswith("or leave it out.")


@pytest.mark.requirement("read:encoding")
def test_half_characters_of_a_strange_encoding_are_shown_too(yard: BlockingYard, project: Path) -> None:
    put(project, {"a": "+2AA-\n"})
    assert content(yard.call("Read", {"path": "a", "encoding": "utf-7"})) == "1\t\\ud800"


@pytest.mark.requirement("read:hash")
@pytest.mark.parametrize(("size", "known"), [(SMALL_FILE, True), (SMALL_FILE + 1, False)])
def test_a_file_of_at_most_10_mib_has_a_hash_on_every_page(
    yard: BlockingYard, project: Path, size: int, known: bool
) -> None:
    line = b"x" * 1023 + b"\n"
    raw = line * (size // 1024) + b"y" * (size % 1024)
    (project / "a").write_bytes(raw)
    first = yard.call("Read", {"path": "a", "limit": 1})
    total = -(-size // 1024)
    expected = {"hash": hashlib.sha256(raw).hexdigest(), "total_lines": total}
    assert {key: first.data[key] for key in ("hash", "total_lines") if key in first.data} == (expected if known else {})
    last = yard.call("Read", {"path": "a", "start_line": total})
    assert {key: last.data[key] for key in ("hash", "total_lines")} == expected


@pytest.mark.requirement("read:directory", "envelope:text")
@pytest.mark.parametrize("path", ["src", ".", "src/", "link"])
def test_a_folder_is_no_file_and_ls_is_named(yard: BlockingYard, project: Path, path: str) -> None:
    put(project, {"src/a": "", "link": {"symlink": "src"}})
    envelope = yard.call("Read", {"path": path})
    assert (code(envelope), envelope.text) == (
        ErrorCode.IS_DIRECTORY,
        f"'{path}' is a folder, not a file. List it with LS.",
    )


@pytest.mark.requirement("read:content")
def test_a_path_is_taken_under_any_of_its_names(yard: BlockingYard, project: Path) -> None:
    put(project, {"a": "x\n"})
    for name in ("filePath", "file_path", "Path"):
        assert content(yard.call("Read", {name: "a"})) == "1\tx"
    assert content(yard.call("Read", {"path": "a", "offset": "1"})) == "1\tx"


@pytest.mark.requirement("read:content", "s:S-16")
def test_a_file_that_is_shorter_than_it_claims_is_a_conflict(tmp_path: Path) -> None:
    """Files of the kernel claim a size that they do not have."""
    folder = Path("/sys/kernel/mm/transparent_hugepage")
    if not (folder / "enabled").exists():
        pytest.skip("this system has no such file")
    with toolyard.open(project=folder, home=tmp_path / "home") as yard:
        envelope = yard.call("Read", {"path": "enabled"})
    assert code(envelope) is ErrorCode.CONFLICT


@pytest.mark.requirement("read:content", "envelope:text")
def test_lines_hold_whatever_a_file_holds(yard: BlockingYard, project: Path) -> None:
    lines = [
        "\x0cform feed",
        "a\x85b",
        "c\u2028d\u2029e",
        "\x1b[31mred",
        "a\rb",
        "<<<[TOOL_REQUEST]>>>",
        "{{Date}}",
        "\ufeff",
    ]
    put(project, {"a": "\n".join(lines)})
    envelope = yard.call("Read", {"path": "a"})
    assert content(envelope) == numbered(lines)
    assert json.loads(json.dumps(envelope.to_dict())) == envelope.to_dict()


@pytest.mark.requirement("read:content")
def test_reading_does_not_change_the_file(yard: BlockingYard, project: Path) -> None:
    put(project, {"a": "x\n"})
    os.utime(project / "a", (1, 1))
    yard.call("Read", {"path": "a"})
    assert ((project / "a").read_bytes(), (project / "a").stat().st_mtime) == (b"x\n", 1)
