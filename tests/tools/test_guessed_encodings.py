"""Files whose encoding nobody can know: what is certain is changed, and nothing else is ever written."""

from pathlib import Path
from typing import Any

import pytest

from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, Status

pytestmark = pytest.mark.requirement("write:bytes-outside")

GERMAN = "Größe = 1\nfoo\n".encode("cp1252")
JAPANESE = "設定\nfoo\n".encode("cp932")
SWALLOWED = b"\xe9foo = 1\nfoo = 2\n"  # in gb18030 the first f is half a character
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n foo\n+{}\n*** End Patch"
OTHERS = {
    "euc_jp": "設定ファイル",
    "cp949": "설정 파일",
    "big5": "設定檔案",
    "cp932": "設定ファイル",
    "koi8-r": "привет",
}


def reason(envelope: Envelope) -> Any:
    return envelope.context.get("reason")


def edit(yard: BlockingYard, old: str, new: str, **more: Any) -> Envelope:
    return yard.call("Edit", {"path": "a.txt", "old_string": old, "new_string": new, **more})


def test_a_large_file_whose_encoding_is_a_guess_is_not_edited(yard: BlockingYard, project: Path) -> None:
    before = b"foo\n" + b"\xb0\xa1a\n" * 1_100_000
    (project / "a.txt").write_bytes(before)
    assert reason(edit(yard, "foo", "bar")) == "TOO_LARGE"
    assert (project / "a.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("before", "tool", "arguments"),
    [
        (GERMAN, "Edit", {"path": "a.txt", "old_string": "foo", "new_string": "Straße"}),
        (GERMAN, "MultiEdit", {"path": "a.txt", "edits": [{"old_string": "foo", "new_string": "Straße"}]}),
        (GERMAN, "FileOperator", {"command": "AppendFile", "filePath": "a.txt", "content": "ö"}),
        (JAPANESE, "ApplyPatch", {"patch": PATCH.format("日本")}),
        (JAPANESE, "Write", {"path": "a.txt", "content": "設定\nbar\n"}),
        (b"\xc3bar", "Edit", {"path": "a.txt", "old_string": "ar", "new_string": "新"}),
        (b"foo caf\xe9", "Edit", {"path": "a.txt", "old_string": "foo", "new_string": "新"}),
        *(
            (f"{text}\nfoo\n".encode(name), "Edit", {"path": "a.txt", "old_string": "foo", "new_string": text})
            for name, text in OTHERS.items()
        ),
    ],
)
def test_no_new_character_beyond_ascii_is_written_in_an_encoding_that_is_a_guess(
    project: Path, yard: BlockingYard, before: bytes, tool: str, arguments: dict[str, Any]
) -> None:
    (project / "a.txt").write_bytes(before)
    assert yard.call("Read", {"path": "a.txt"}).status is Status.PARTIAL
    refused = yard.call(tool, arguments)
    assert (reason(refused), (project / "a.txt").read_bytes()) == ("UNSUPPORTED_ENCODING", before)
    assert "fallback_encodings" in refused.text


@pytest.mark.parametrize(
    "before", [GERMAN, JAPANESE, *(f"{text}\nfoo\n".encode(name) for name, text in OTHERS.items())]
)
def test_ascii_can_be_changed_whatever_the_encoding(project: Path, yard: BlockingYard, before: bytes) -> None:
    (project / "a.txt").write_bytes(before)
    assert edit(yard, "foo", "bar").error is None
    assert yard.call("ApplyPatch", {"patch": PATCH.format("end").replace("foo", "bar")}).error is None
    assert (project / "a.txt").read_bytes() == before.replace(b"foo", b"bar") + b"end\n"


def test_characters_that_stay_need_not_be_written(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_bytes(GERMAN)
    assert edit(yard, "Größe = 1\n", "Größe = 2\n").error is None
    assert (project / "a.txt").read_bytes() == GERMAN.replace(b"1", b"2")


def test_a_place_behind_a_byte_that_may_take_its_first_letter_is_counted(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_bytes(SWALLOWED)
    assert reason(edit(yard, "foo", "bar")) == "NOT_UNIQUE"
    assert edit(yard, "foo = 2", "bar = 2").error is None
    assert (project / "a.txt").read_bytes() == SWALLOWED.replace(b"foo = 2", b"bar = 2")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"path": "a.txt", "old_string": "foo", "new_string": "bar", "replace_all": True}),
        ("Edit", {"path": "a.txt", "old_string": "foo = 1", "new_string": ""}),
        ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "foo = 1", "new_string": "1"}]}),
        ("FileOperator", {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "oo = 1", "replaceString": "é"}),
        (
            "FileOperator",
            {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "foo = 1", "replaceString": "oo"},
        ),
    ],
)
def test_a_place_that_may_be_half_a_character_is_not_touched(
    project: Path, yard: BlockingYard, tool: str, arguments: dict[str, Any]
) -> None:
    (project / "a.txt").write_bytes(SWALLOWED)
    assert reason(yard.call(tool, arguments)) == "UNSUPPORTED_ENCODING"
    assert (project / "a.txt").read_bytes() == SWALLOWED


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"path": "a.txt", "old_string": "]", "new_string": "];"}),
        ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "]", "new_string": "];"}]}),
        ("FileOperator", {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "]", "replaceString": "];"}),
    ],
)
def test_half_a_character_is_no_place_even_if_it_would_stay(
    project: Path, yard: BlockingYard, tool: str, arguments: dict[str, Any]
) -> None:
    before = "設定檔案\n".encode("big5")
    assert b"]" in before
    (project / "a.txt").write_bytes(before)
    assert reason(yard.call(tool, arguments)) == "UNSUPPORTED_ENCODING"
    assert (project / "a.txt").read_bytes() == before


@pytest.mark.parametrize("text", ["# 配置\nfoo\n", "变量 = 一\nfoo\n", "提示：你好\nfoo\n"])
def test_a_file_with_a_few_chinese_words_is_written_in_gb18030(project: Path, yard: BlockingYard, text: str) -> None:
    (project / "a.txt").write_bytes(text.encode("gb18030"))
    assert edit(yard, "foo", "新的文字").error is None
    assert yard.call("ApplyPatch", {"patch": PATCH.replace("foo", "新的文字").format("完")}).error is None
    assert (project / "a.txt").read_bytes() == text.replace("foo", "新的文字\n完").encode("gb18030")
