"""FileOperator: reading and writing texts, without the defects of VCP's tool (vcp D4, D5, D9, C16)."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.tools.media import PNG, WAV, pdf
from tests.tools.operating import Operator, data, error_of
from tests.workspace.test_arranger import tree
from tests.workspace.vectors import put
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Status
from toolyard.workspace.workspace import read_exactly

WHEN = 1_700_000_000
ISO = "2023-11-14T22:13:20+00:00"


# --- Reading ---


@pytest.mark.requirement("fileoperator:read")
async def test_a_text_is_a_header_and_the_content_as_it_stands_there(project: Path, op: Operator) -> None:
    put(project, {"sub/a.txt": "one\ntwo\n"})
    os.utime(project / "sub/a.txt", (WHEN, WHEN))
    message = await op.vcp(command="ReadFile", filePath="sub/a.txt")
    assert message["result"]["content"] == [
        {"type": "text", "text": "Read 'sub/a.txt' (8 Bytes)."},
        {"type": "text", "text": "one\ntwo\n"},
    ]
    details = message["result"]["details"]
    assert (details["fileName"], details["size"], details["sizeFormatted"]) == ("a.txt", 8, "8 Bytes")
    assert (details["lastModified"], details["encoding"], details["total_lines"]) == (ISO, "utf-8", 2)


@pytest.mark.requirement("fileoperator:read", "r:R96")
@pytest.mark.parametrize("lines", ["tail:2", "head:2", "2-3", ""])
async def test_a_log_that_grows_with_every_look_at_it_is_read_all_the_same(
    project: Path, op: Operator, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    put(project, {"a.log": "one\ntwo\nthree\n"})

    def read_and_grow(*where: int) -> bytes:
        found = read_exactly(*where)
        with open(project / "a.log", "a") as log:
            log.write("more\n")
        return found

    monkeypatch.setattr("toolyard.workspace.text_reader.read_exactly", read_and_grow)
    envelope = await op("ReadFile", filePath="a.log", lines=lines)
    assert (envelope.status, data(envelope)["truncated"]) == (Status.SUCCESS, False)


@pytest.mark.requirement("fileoperator:read")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no end",
        "end\n",
        "a\r\nb\r\n",
        "a\rb\r",
        "a\r\nb\nc\rd",
        "\n",
        "\n\n",
        "x" * 40_000,
        "你好\n世界",
        "a\tb  \n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_a_whole_text_is_exact_in_any_encoding(project: Path, op: Operator, text: str, encoding: str) -> None:
    (project / "a.txt").write_bytes(text.encode(encoding))
    assert data(await op("ReadFile", filePath="a.txt"))["content"] == text


@pytest.mark.requirement("fileoperator:read")
@pytest.mark.parametrize(
    ("lines", "content", "header"),
    [
        ("head:2", "1\n2", " Lines 1-2 of 5."),
        ("tail:2", "4\n5", " Lines 4-5 of 5."),
        ("2-3", "2\n3", " Lines 2-3 of 5."),
        ("2:3", "2\n3", " Lines 2-3 of 5."),
        (" 4 - 9 ", "4\n5", " Lines 4-5 of 5."),
        ("3", "3", " Lines 3-3 of 5."),
        (3, "3", " Lines 3-3 of 5."),
        ("HEAD:9", "1\n2\n3\n4\n5", ""),
        ("tail:99", "1\n2\n3\n4\n5", ""),
        ("", "1\n2\n3\n4\n5\n", ""),
    ],
)
async def test_lines_choose_a_part(project: Path, op: Operator, lines: Any, content: str, header: str) -> None:
    put(project, {"a.txt": "1\n2\n3\n4\n5\n"})
    envelope = await op("ReadFile", filePath="a.txt", lines=lines)
    assert (envelope.status, envelope.data["content"]) == (Status.SUCCESS, content)
    assert envelope.text == f"Read 'a.txt' (10 Bytes).{header}"


@pytest.mark.requirement("fileoperator:read")
@pytest.mark.parametrize("lines", ["0", "3-2", "head:0", "head:1-2", "x", "1,2", "-3", "1-", "6", "9-12"])
async def test_lines_that_cannot_be_are_refused(project: Path, op: Operator, lines: str) -> None:
    put(project, {"a.txt": "1\n2\n3\n4\n5\n"})
    assert error_of(await op("ReadFile", filePath="a.txt", lines=lines))[0] == "INVALID_PARAM"


@pytest.mark.requirement("fileoperator:read")
async def test_a_long_text_is_partial_and_says_how_to_read_on(project: Path, op: Operator) -> None:
    put(project, {"a.txt": {"lines": 5000, "of": "line {n}"}})
    first = await op("ReadFile", filePath="a.txt")
    assert (first.status, first.data["truncated"], first.data["next_line"]) == (Status.PARTIAL, True, 2001)
    assert "Read on with lines=2001-4000." in first.text
    second = await op("ReadFile", filePath="a.txt", lines="2001-4000")
    assert (second.status, second.data["lines"]) == (Status.SUCCESS, "2001-4000")
    last = await op("ReadFile", filePath="a.txt", lines="tail:1")
    assert last.data["content"] == "line 5000"


@pytest.mark.requirement("fileoperator:read")
async def test_the_tail_of_a_large_file_is_found(project: Path, op: Operator) -> None:
    with (project / "big.log").open("w") as file:
        file.writelines(f"{number:0100}\n" for number in range(110_000))
    envelope = await op("ReadFile", filePath="big.log", lines="tail:2")
    assert envelope.data["content"] == f"{109_998:0100}\n{109_999:0100}"


@pytest.mark.requirement("fileoperator:read")
@pytest.mark.parametrize("encoding", [None, "utf8"])
@pytest.mark.parametrize(("name", "raw", "mime"), [("a.png", PNG, "image/png"), ("a.txt", WAV, "audio/wav")])
async def test_media_are_media_whatever_encoding_is_named(
    project: Path, op: Operator, name: str, raw: bytes, mime: str, encoding: str | None
) -> None:
    (project / name).write_bytes(raw)
    more = {"encoding": encoding} if encoding else {}
    message = await op.vcp(command="ReadFile", filePath=name, lines="head:5", **more)
    header, media = message["result"]["content"]
    assert header["type"] == "text"
    assert media["image_url"]["url"].startswith(f"data:{mime};base64,")
    assert message["result"]["details"]["sizeFormatted"] == f"{len(raw)} Bytes"


@pytest.mark.requirement("fileoperator:read")
async def test_a_pdf_is_its_text_and_itself(project: Path, op: Operator) -> None:
    (project / "a.pdf").write_bytes(pdf("first line\nsecond line", "last page"))
    content = (await op.vcp(command="ReadFile", filePath="a.pdf"))["result"]["content"]
    assert "second line" in content[1]["text"]
    assert content[2]["image_url"]["url"].startswith("data:application/pdf;base64,")
    tail = await op("ReadFile", filePath="a.pdf", lines="tail:2")
    assert tail.data["content"] == "last page\n"


@pytest.mark.requirement("fileoperator:read")
async def test_encodings_are_found_or_named_in_the_words_of_node(project: Path, op: Operator) -> None:
    (project / "gbk.txt").write_bytes("中文".encode("gbk"))
    (project / "wide.txt").write_bytes("wide".encode("utf-16-le"))
    assert data(await op("ReadFile", filePath="gbk.txt"))["content"] == "中文"
    assert data(await op("ReadFile", filePath="wide.txt", encoding="utf16le"))["content"] == "wide"
    assert error_of(await op("ReadFile", filePath="wide.txt", encoding="utf8"))[0] == "BINARY_FILE"
    assert error_of(await op("ReadFile", filePath="gbk.txt", encoding="klingon")) == (
        "INVALID_PARAM",
        "UNSUPPORTED_ENCODING",
    )


@pytest.mark.requirement("fileoperator:read", "s:S-10", "s:S-11", "s:S-12")
@pytest.mark.parametrize("command", ["ReadFile", "FileInfo", "ListDirectory", "DeleteFile", "SearchFiles"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../project-evil/x", "{root}-evil/x", "link/secret", "link", "/"])
async def test_nothing_outside_is_reached(project: Path, op: Operator, tmp_path: Path, command: str, path: str) -> None:
    """C16: VCP reads any absolute path, goes by prefixes and does not resolve links."""
    put(tmp_path, {"project-evil/x": "x", "outside/secret": "s"})
    put(project, {"link": {"symlink": str(tmp_path / "outside")}})
    envelope = await op(command, path=path.replace("{root}", str(project)), pattern="*")
    assert error_of(envelope)[0] == "ACCESS_DENIED"
    assert (tmp_path / "outside/secret").exists()


# --- Writing ---


@pytest.mark.requirement("fileoperator:write")
async def test_a_taken_name_gets_a_number_and_the_answer_says_so(project: Path, op: Operator) -> None:
    first = await op("WriteFile", filePath="new/a.txt", content="one")
    second = await op("WriteFile", filePath="new/a.txt", content="two")
    third = await op("WriteFile", filePath="new/a.txt", content="three")
    assert tree(project) == {"new/a.txt": "one", "new/a(1).txt": "two", "new/a(2).txt": "three"}
    assert [envelope.data["renamed"] for envelope in (first, second, third)] == [False, True, True]
    assert first.text == "Created 'new/a.txt' (3 Bytes)."
    assert second.text == "'new/a.txt' exists already and was not changed: created 'new/a(1).txt' (3 Bytes)."
    assert (second.data["path"], second.data["originalPath"]) == ("new/a(1).txt", "new/a.txt")


@pytest.mark.requirement("fileoperator:write")
async def test_binary_files_folders_and_links_are_names_that_are_taken(project: Path, op: Operator) -> None:
    (project / "a.png").write_bytes(PNG)
    put(project, {"a(1).png/x": "x", "a(2).png": {"symlink": "nothing"}})
    assert data(await op("WriteFile", filePath="a.png", content="text"))["path"] == "a(3).png"
    assert error_of(await op("WriteFile", filePath="a(1).png", content="text"))[0] == "IS_DIRECTORY"
    assert error_of(await op("WriteFile", filePath="new/", content="text"))[0] == "IS_DIRECTORY"


@pytest.mark.requirement("fileoperator:write")
@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        ("utf8", "é\n".encode()),
        ("latin1", b"\xe9\n"),
        ("utf16le", b"\xe9\0\n\0"),
        ("utf-16", b"\xff\xfe\xe9\0\n\0"),
        ("utf-8-sig", b"\xef\xbb\xbf" + "é\n".encode()),
        ("gbk", "é\n".encode("gbk")),
    ],
)
async def test_a_new_file_has_the_encoding_it_is_asked_for(
    project: Path, op: Operator, encoding: str, raw: bytes
) -> None:
    data(await op("WriteFile", filePath="a.txt", content="é\n", encoding=encoding))
    assert (project / "a.txt").read_bytes() == raw


@pytest.mark.requirement("fileoperator:write")
async def test_a_character_that_the_encoding_lacks_is_refused_and_nothing_is_written(
    project: Path, op: Operator
) -> None:
    envelope = await op("WriteFile", filePath="a.txt", content="你好", encoding="ascii")
    assert (error_of(envelope), tree(project)) == (("INVALID_PARAM", "UNSUPPORTED_ENCODING"), {})


@pytest.mark.requirement("fileoperator:write-escaped")
async def test_escaped_markers_are_restored(project: Path, op: Operator) -> None:
    escaped = "<<<[TOOL_REQUEST_ESCAPE]>>>\na:「始ESCAPE」x「末ESCAPE」\n<<<[END_TOOL_REQUEST_ESCAPE]>>> 「始」"
    plain = "<<<[TOOL_REQUEST]>>>\na:「始」x「末」\n<<<[END_TOOL_REQUEST]>>> 「始」"
    data(await op("WriteEscapedFile", filePath="a.txt", content=escaped))
    data(await op("WriteFile", filePath="b.txt", content=escaped))
    assert tree(project) == {"a.txt": plain, "b.txt": escaped}
    assert data(await op("WriteEscapedFile", filePath="a.txt", content="x"))["path"] == "a(1).txt"


@pytest.mark.requirement("fileoperator:append-edit")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"new\nlines\n"),
        (b"old\n", b"old\nnew\nlines\n"),
        (b"old", b"oldnew\nlines\n"),
        (b"old\r\n", b"old\r\nnew\r\nlines\r\n"),
        (b"old\r", b"old\rnew\rlines\r"),
        (b"a\r\nb\n", b"a\r\nb\nnew\nlines\n"),
        (b"\xff\xfea\0\n\0", b"\xff\xfea\0\n\0" + "new\nlines\n".encode("utf-16-le")),
    ],
)
async def test_append_adds_at_the_end_in_the_files_own_way(
    project: Path, op: Operator, before: bytes | None, after: bytes
) -> None:
    if before is not None:
        (project / "a.txt").write_bytes(before)
    data(await op("AppendFile", filePath="a.txt", content="new\nlines\n"))
    assert (project / "a.txt").read_bytes() == after


@pytest.mark.requirement("fileoperator:append-edit")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"old\n", b"new\nlines\n"),
        (b"old\r\nold\r\n", b"new\r\nlines\r\n"),
        (b"\xef\xbb\xbfold\n", b"\xef\xbb\xbfnew\nlines\n"),
        (b"", b"new\nlines\n"),
        ("旧\n".encode("gb18030"), b"new\nlines\n"),
    ],
)
async def test_edit_replaces_all_without_a_read_and_the_old_content_comes_back(
    project: Path, op: Operator, before: bytes, after: bytes
) -> None:
    (project / "a.txt").write_bytes(before)
    envelope = await op("EditFile", filePath="a.txt", content="new\nlines\n")
    assert (project / "a.txt").read_bytes() == after
    assert f"in the trash as {data(envelope)['trash_id']}." in envelope.text
    op.trash.restore(str(envelope.data["trash_id"]), lambda: None)
    assert (project / "a.txt").read_bytes() == before


@pytest.mark.requirement("fileoperator:append-edit")
async def test_edit_makes_no_file_and_keeps_nothing_when_nothing_changes(project: Path, op: Operator) -> None:
    put(project, {"a.txt": "same"})
    assert error_of(await op("EditFile", filePath="b.txt", content="x"))[0] == "NOT_FOUND"
    envelope = await op("EditFile", filePath="a.txt", content="same")
    assert (envelope.text, "trash_id" in envelope.data) == ("'a.txt' already has exactly this content.", False)
    assert tree(project) == {"a.txt": "same"}


@pytest.mark.requirement("fileoperator:apply-diff")
async def test_a_search_string_is_replaced_literally(project: Path, op: Operator) -> None:
    """D4: VCP expands ``$&`` and ``$$``."""
    put(project, {"a.txt": "price: X\r\nnext\r\n"})
    envelope = await op("ApplyDiff", filePath="a.txt", searchString="X", replaceString="$& $$ $' \\1\ny")
    assert (project / "a.txt").read_bytes() == b"price: $& $$ $' \\1\r\ny\r\nnext\r\n"
    assert (envelope.text, envelope.data["strategy"]) == ("Edited 'a.txt': replaced 1 place.", "exact")


@pytest.mark.requirement("fileoperator:apply-diff")
async def test_an_ambiguous_search_string_is_refused(project: Path, op: Operator) -> None:
    """D9: VCP silently edits the first of several."""
    put(project, {"a.txt": "x = 1\nx = 1\n"})
    envelope = await op("ApplyDiff", filePath="a.txt", searchString="x = 1", replaceString="y")
    assert error_of(envelope) == ("INVALID_PARAM", "NOT_UNIQUE")
    assert "searchString stands 2 times" in envelope.text
    assert "replace_all" not in envelope.text
    assert tree(project) == {"a.txt": "x = 1\nx = 1\n"}


@pytest.mark.requirement("fileoperator:apply-diff")
@pytest.mark.parametrize(
    ("search", "replace", "reason"),
    [("missing text", "x", "NOT_FOUND_IN_FILE"), ("one", "one", "NO_CHANGE"), ("", "x", None)],
)
async def test_a_search_string_that_leads_nowhere_is_refused(
    project: Path, op: Operator, search: str, replace: str, reason: str | None
) -> None:
    put(project, {"a.txt": "one\n"})
    envelope = await op("ApplyDiff", filePath="a.txt", searchString=search, replaceString=replace)
    assert error_of(envelope) == ("INVALID_PARAM", reason)
    assert "old_string" not in envelope.text
    assert tree(project) == {"a.txt": "one\n"}


BLOCK = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE"


@pytest.mark.requirement("fileoperator:apply-diff")
@pytest.mark.parametrize(
    ("diff", "after"),
    [
        (BLOCK.format("one", "1"), "1\ntwo\nthree\n"),
        (BLOCK.format("one\ntwo", "1\n2"), "1\n2\nthree\n"),
        (BLOCK.format("one", "1") + "\n\n" + BLOCK.format("1\ntwo", "12") + "\n", "12\nthree\n"),
        ("<<<<<<< SEARCH\n:start_line:2\n-------\ntwo\n=======\n2\n>>>>>>> REPLACE", "one\n2\nthree\n"),
        ("<<<<<<< SEARCH\n-------\ntwo\n=======\n2\n>>>>>>> REPLACE", "one\n2\nthree\n"),
        ("<<<<<<< SEARCH\ntwo\n-------\n2\n>>>>>>> REPLACE", "one\n2\nthree\n"),
        (BLOCK.format("two", ""), "one\n\nthree\n"),
        (BLOCK.replace("\n", "\r\n").format("two", "$&"), "one\n$&\nthree\n"),
    ],
)
async def test_blocks_are_applied_in_order(project: Path, op: Operator, diff: str, after: str) -> None:
    put(project, {"a.txt": "one\ntwo\nthree\n"})
    data(await op("ApplyDiff", filePath="a.txt", diffContent=diff))
    assert tree(project) == {"a.txt": after}


RULED = "a\n-------\nfoo\nb\n"


@pytest.mark.requirement("fileoperator:apply-diff", "write:bytes-outside")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (RULED, "-------\nfoo", "-------\nbar", "a\n-------\nbar\nb\n"),
        (RULED.replace("\n", "\r\n"), "-------\nfoo", "-------\nbar", "a\r\n-------\r\nbar\r\nb\r\n"),
        (RULED.replace("-\n", "- \n"), "-------\nfoo", "-------\nbar", "a\n-------\nbar\nb\n"),
        (RULED, "-------\nb", "-------\nB", "a\n-------\nfoo\n-------\nB\n"),
        (RULED, ":start_line:3\n-------\nfoo", "bar", "a\n-------\nbar\nb\n"),
        (RULED, ":start_line:3\n:end_line:3\n-------\nfoo", "bar", "a\n-------\nbar\nb\n"),
        (RULED, "a\n-------\nfoo", "a", "a\nb\n"),
        (":note: x\n-------\nfoo\n", ":note: x\n-------\nfoo", "bar", "bar\n"),
        ("a\n\n-------\nfoo\n", "\n-------\nfoo", "bar", "a\nbar\n"),
    ],
)
async def test_a_line_of_dashes_is_text_unless_it_can_only_be_a_marker(
    project: Path, op: Operator, before: str, old: str, new: str, after: str
) -> None:
    put(project, {"a.txt": before})
    data(await op("ApplyDiff", filePath="a.txt", diffContent=BLOCK.format(old, new)))
    assert (project / "a.txt").read_bytes() == after.encode()


@pytest.mark.requirement("fileoperator:apply-diff")
async def test_dashes_that_can_be_text_and_marker_are_refused(project: Path, op: Operator) -> None:
    put(project, {"a.txt": RULED})
    envelope = await op("ApplyDiff", filePath="a.txt", diffContent=BLOCK.format("-------\nfoo", "bar"))
    assert error_of(envelope)[0] == "INVALID_PARAM"
    assert "':start_line:1'" in envelope.text
    assert tree(project) == {"a.txt": RULED}


@pytest.mark.requirement("fileoperator:apply-diff")
@pytest.mark.parametrize(
    ("diff", "words"),
    [
        ("<<<<<<< SEARCH\none\n1\n>>>>>>> REPLACE", "has no line '======='"),
        ("<<<<<<< SEARCH\n-------\none\n>>>>>>> REPLACE", "has no old text"),
        ("<<<<<<< SEARCH\n=======\n1\n>>>>>>> REPLACE", "has no old text"),
        ("<<<<<<< SEARCH\none\n=======\n1\n", "has no '>>>>>>> REPLACE'"),
        ("<<<<<<< SEARCH\none\n=======\n1\n=======\n2\n>>>>>>> REPLACE", "more than one line '======='"),
        ("<<<<<<< SEARCH\none\n" + BLOCK.format("two", "2"), "has no '>>>>>>> REPLACE'"),
        ("just words", "'just words' before its"),
        ("", "has no '<<<<<<< SEARCH'"),
        (BLOCK.format("one", "1") + "\n" + BLOCK.format("missing", "x"), "Block 2 of 2"),
    ],
)
async def test_a_diff_that_is_not_whole_or_does_not_fit_changes_nothing(
    project: Path, op: Operator, diff: str, words: str
) -> None:
    """D5: without its separator VCP inserts the new text at the start of the file and reports success."""
    put(project, {"a.txt": "one\ntwo\nthree\n"})
    envelope = await op("ApplyDiff", filePath="a.txt", diffContent=diff)
    assert error_of(envelope)[0] == "INVALID_PARAM"
    assert words in envelope.text
    assert tree(project) == {"a.txt": "one\ntwo\nthree\n"}


@pytest.mark.requirement("validate:after-write", "fileoperator:write")
async def test_what_was_written_is_checked(op: Operator) -> None:
    texts = await op.texts(command="WriteFile", filePath="bad.json", content='{"a": }')
    assert texts[0].startswith("Created 'bad.json'")
    assert texts[1].startswith("Code Validation Results:\n- line 1")


@pytest.mark.requirement("dialect:vcp:validation:file")
def test_what_a_batch_wrote_is_checked_file_by_file(yard: BlockingYard) -> None:
    batch = {"command1": "WriteFile", "filePath1": "a.json", "content1": '{"a": }'}
    batch |= {"command2": "WriteFile", "filePath2": "b.py", "content2": "def f(:\n    pass\n"}
    message = yard.call("FileOperator", batch, dialect="vcp")
    texts = [part["text"] for part in message["result"]["content"]]
    assert [text.partition("\n")[0] for text in texts[1:]] == [
        "Code Validation Results for 'a.json':",
        "Code Validation Results for 'b.py':",
    ]
    patch = "*** Begin Patch\n*** Add File: c.json\n+[1,\n*** Add File: d.py\n+def f(:\n*** End Patch\n"
    patched = yard.call("ApplyPatch", {"patch": patch}, dialect="vcp")
    said, *found = [part["text"] for part in patched["result"]["content"]]
    assert "the first in line 2 of 'c.json'" in said
    assert [text.partition("\n")[0] for text in found] == [
        "Code Validation Results for 'c.json':",
        "Code Validation Results for 'd.py':",
    ]


@pytest.mark.requirement("s:S-10:write", "s:S-12:write")
@pytest.mark.parametrize("command", ["WriteFile", "WriteEscapedFile", "AppendFile", "CreateDirectory", "EditFile"])
@pytest.mark.parametrize("path", ["../x", "/etc/x", "link/x", "link/deep/x", "dangling", ".git/hooks/pre-commit"])
async def test_nothing_is_written_outside_or_where_it_would_run(
    project: Path, op: Operator, tmp_path: Path, command: str, path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    put(project, {"link": {"symlink": str(outside)}, "dangling": {"symlink": str(outside / "new")}})
    assert error_of(await op(command, path=path, content="x"))[0] == "ACCESS_DENIED"
    assert (list(outside.iterdir()), (tmp_path / "x").exists(), (project / ".git").exists()) == ([], False, False)
