"""Edit and MultiEdit on real files."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import toolyard
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.json import JsonObject

VECTORS = Path(__file__).parents[1] / "vectors"
EDITS: list[dict[str, Any]] = json.loads((VECTORS / "edit_requests.json").read_text("utf-8"))
MULTI_EDITS: list[dict[str, Any]] = json.loads((VECTORS / "multi_edit.json").read_text("utf-8"))


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


@pytest.mark.requirement("edit:data")
def test_an_edit_reports_what_it_did(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
    assert (project / "a.txt").read_text() == "one\n2\nthree\n"
    assert envelope.data == {
        "applied": True,
        "occurrences": 1,
        "strategy": "exact",
        "hash": yard.call("Read", {"path": "a.txt"}).data["hash"],
        "structured_patch": [
            {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"]}
        ],
    }
    assert envelope.text == "Edited 'a.txt': replaced 1 place."


@pytest.mark.requirement("edit:data")
@pytest.mark.parametrize("lines", [1, 20_000])
def test_the_hash_is_that_of_the_file_as_it_stands_now_however_large(
    project: Path, yard: BlockingYard, lines: int
) -> None:
    (project / "a.txt").write_text("same and same\n" * lines + "old\n")
    one = yard.call("Edit", {"path": "a.txt", "old_string": "old", "new_string": "new"})
    assert one.data["hash"] == hashlib.sha256((project / "a.txt").read_bytes()).hexdigest()
    again = {"path": "a.txt", "old_string": "new", "new_string": "newer", "expected_hash": one.data["hash"]}
    assert yard.call("Edit", again).error is None


def _find_mistake(case: dict[str, Any], envelope: Envelope, result: bytes) -> str:
    """What is wrong with the outcome of an edit vector; empty when nothing is."""
    wanted, applied = case.get("normative_result"), envelope.error is None
    if not applied and result != case["content"].encode():
        return "refused, but changed the file"
    if applied and wanted is not None and result != wanted.encode():
        return "wrong bytes"
    if case["norm"] == "required" and applied != (wanted is not None):
        return envelope.text
    return "applied" if applied and case["norm"] == "forbidden" else ""


@pytest.mark.requirement("edit:vectors", "write:literal", "write:bytes-outside")
def test_every_edit_vector_gives_the_right_bytes_or_the_right_refusal(project: Path, yard: BlockingYard) -> None:
    wrong = []
    file = project / "case.txt"
    for case in EDITS:
        file.write_bytes(case["content"].encode())
        call = {name: case[name] for name in ("old_string", "new_string", "replace_all")}
        verdict = _find_mistake(case, yard.call("Edit", {"path": "case.txt", **call}), file.read_bytes())
        if verdict:
            wrong.append((case["id"], verdict))
    assert wrong == []


@pytest.mark.requirement("write:bytes-outside", "r:R95", "write:literal")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
        (b"a\nb\nc\r\n", "b", "B\nB", b"a\nB\nB\nc\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"\xef\xbb\xbfone\n", "one", "two", b"\xef\xbb\xbftwo\n"),
        ("变量 = 一\n".encode("gb18030"), "一", "二", "变量 = 二\n".encode("gb18030")),
        (b"\xff\xfe" + "x = é\r\n".encode("utf-16-le"), "é", "ü", b"\xff\xfe" + "x = ü\r\n".encode("utf-16-le")),
        ("正常的一行文字\n".encode() + b"\xff\n" + b"ok\n", "ok", "OK", "正常的一行文字\n".encode() + b"\xff\nOK\n"),
        (b"no end", "end", "$& $1 \\n", b"no $& $1 \\n"),
        (b"ok\n\xe4\xb8", "ok", "OK", b"OK\n\xe4\xb8"),
    ],
)
def test_every_byte_outside_the_edit_stays(
    project: Path, yard: BlockingYard, before: bytes, old: str, new: str, after: bytes
) -> None:
    (project / "a.txt").write_bytes(before)
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": old, "new_string": new})
    assert (envelope.error, (project / "a.txt").read_bytes()) == (None, after)


@pytest.mark.requirement("edit:replace-all")
def test_replace_all_replaces_and_counts_every_place(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("x y x z x")
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": "x", "new_string": "xx", "replace_all": True})
    assert ((project / "a.txt").read_text(), envelope.data["occurrences"]) == ("xx y xx z xx", 3)


@pytest.mark.requirement("edit:replace-all")
@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (b"a\nb\r\na\r\nb\n", b"X\r\na\r\nb\n", 1),
        (b"a\nb\r\na\nb\n", b"X\r\nX\n", 0),
        (b"a\r\nb\n\na\r\nb\r\n", b"X\n\nX\r\n", 0),
    ],
)
def test_replace_all_says_how_many_places_it_left_for_their_line_endings(
    project: Path, yard: BlockingYard, before: bytes, after: bytes, left: int
) -> None:
    (project / "a.txt").write_bytes(before)
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": "a\nb", "new_string": "X", "replace_all": True})
    assert (project / "a.txt").read_bytes() == after
    assert (f"Not replaced: {left} more" in envelope.text) == bool(left)


@pytest.mark.requirement("edit:refused")
@pytest.mark.parametrize(("old", "new", "why"), [("a", "b", "NOT_UNIQUE"), ("c", "c", "NO_CHANGE")])
def test_an_edit_that_is_not_clear_is_refused(project: Path, yard: BlockingYard, old: str, new: str, why: str) -> None:
    (project / "a.txt").write_text("a a c\n")
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": old, "new_string": new})
    assert error_of(envelope) == ("INVALID_PARAM", why)
    assert (project / "a.txt").read_text() == "a a c\n"


@pytest.mark.requirement("edit:not-found")
def test_a_miss_shows_the_nearest_lines(project: Path, yard: BlockingYard) -> None:
    (project / "a.py").write_text("def f():\n\treturn 1\n")
    envelope = yard.call("Edit", {"path": "a.py", "old_string": "    return 2", "new_string": "x"})
    assert error_of(envelope) == ("INVALID_PARAM", "NOT_FOUND_IN_FILE")
    assert envelope.data == {"nearest": {"first_line": 2, "last_line": 2, "lines": ["2\t→return 1"]}}
    assert "the file has «→return 1», old_string «····return 2»" in envelope.text


@pytest.mark.requirement("edit:stale")
@pytest.mark.parametrize("tool", ["Edit", "MultiEdit"])
def test_text_missing_because_the_file_changed_since_the_read_is_a_conflict(
    project: Path, yard: BlockingYard, tool: str
) -> None:
    (project / "a.txt").write_text("old\nrest\n")
    edit = {"old_string": "old", "new_string": "new"}
    call = {"path": "a.txt", **(edit if tool == "Edit" else {"edits": [edit]})}
    yard.call("Read", {"path": "a.txt"})
    (project / "a.txt").write_text("changed\nrest\n")
    envelope = yard.call(tool, call)
    assert error_of(envelope) == ("CONFLICT", "STALE")
    assert "was changed since you read it" in envelope.text
    (project / "a.txt").write_text("old\nother\n")
    assert yard.call(tool, call).status is Status.SUCCESS


@pytest.mark.requirement("edit:create")
def test_an_empty_old_string_makes_a_new_file_and_only_that(project: Path, yard: BlockingYard) -> None:
    made = yard.call("Edit", {"path": "new/a.txt", "old_string": "", "new_string": "hello\n"})
    assert (made.status, (project / "new/a.txt").read_text()) == (Status.SUCCESS, "hello\n")
    refused = yard.call("Edit", {"path": "new/a.txt", "old_string": "", "new_string": "x"})
    assert (error_of(refused)[0], (project / "new/a.txt").read_text()) == ("INVALID_PARAM", "hello\n")
    edits = [{"old_string": "", "new_string": "a\nb\n"}, {"old_string": "b", "new_string": "c"}]
    many = yard.call("MultiEdit", {"path": "m.txt", "edits": edits})
    assert (many.data["was_new_file"], (project / "m.txt").read_text()) == (True, "a\nc\n")
    missing = yard.call("Edit", {"path": "none.txt", "old_string": "x", "new_string": "y"})
    assert error_of(missing)[0] == "NOT_FOUND"


@pytest.mark.requirement("edit:vectors")
@pytest.mark.parametrize(
    ("content", "why"),
    [(b"a\0b", "BINARY_FILE"), ("\x1b$B8m\x1b(B\n".encode("ascii") + b"\xff\xfe\xfa", None)],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(
    project: Path, yard: BlockingYard, content: bytes, why: str | None
) -> None:
    (project / "a.bin").write_bytes(content)
    envelope = yard.call("Edit", {"path": "a.bin", "old_string": "a", "new_string": "ü"})
    assert envelope.error is not None
    assert why in (None, envelope.error.code)
    assert (project / "a.bin").read_bytes() == content


@pytest.mark.requirement("edit:vectors")
def test_a_character_the_files_encoding_lacks_is_refused(project: Path, yard: BlockingYard) -> None:
    raw = "prix: 5 €, déjà vu, naïve, garçon, où\n".encode("cp1252")
    (project / "a.txt").write_bytes(raw)
    envelope = yard.call("Edit", {"path": "a.txt", "old_string": "prix", "new_string": "价格"})
    assert error_of(envelope) == ("INVALID_PARAM", "UNSUPPORTED_ENCODING")
    assert (project / "a.txt").read_bytes() == raw
    assert yard.call("Edit", {"path": "a.txt", "old_string": "prix", "new_string": "price"}).status is Status.SUCCESS
    assert (project / "a.txt").read_bytes() == raw.replace(b"prix", b"price")


@pytest.mark.requirement("multiedit:all-or-nothing")
@pytest.mark.parametrize("case", MULTI_EDITS)
def test_edits_are_made_in_sequence_or_not_at_all(project: Path, yard: BlockingYard, case: dict[str, Any]) -> None:
    (project / "a.txt").write_text(case["content"])
    envelope = yard.call("MultiEdit", {"path": "a.txt", "edits": case["edits"]})
    assert (project / "a.txt").read_text() == case.get("result", case["content"])
    assert (envelope.error is None) == ("result" in case)
    if "failed_index" in case and "failed_edit" in envelope.data:
        assert envelope.data["failed_edit"] == case["failed_index"] + 1


@pytest.mark.requirement("multiedit:all-or-nothing")
def test_a_failed_edit_is_named_and_nothing_is_written(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("a\nb\n")
    edits = [{"old_string": "a", "new_string": "A"}, {"old_string": "zzz", "new_string": "x"}]
    envelope = yard.call("MultiEdit", {"path": "a.txt", "edits": edits})
    assert (error_of(envelope), envelope.data["failed_edit"]) == (("INVALID_PARAM", "NOT_FOUND_IN_FILE"), 2)
    assert envelope.text.startswith("Edit 2 of 2 failed, so none was made:")
    assert (project / "a.txt").read_text() == "a\nb\n"


@pytest.mark.requirement("multiedit:data")
def test_several_edits_report_each_one(project: Path, yard: BlockingYard) -> None:
    (project / "utils.py").write_text("import os\n\n\n\ndef process():\n    pass\n")
    edits = [
        {"old_string": "import os", "new_string": "import os\nimport sys"},
        {"old_string": "def process():", "new_string": "def process_data():"},
    ]
    envelope = yard.call("MultiEdit", {"path": "utils.py", "edits": edits})
    data = dict(envelope.data)
    hunks = data.pop("structured_patch")
    data.pop("hash")
    assert data == {
        "applied": True,
        "edits_applied": [
            {"edit_index": 1, "success": True, "occurrences": 1, **edits[0]},
            {"edit_index": 2, "success": True, "occurrences": 1, **edits[1]},
        ],
        "total_edits": 2,
        "was_new_file": False,
        "summary": "Successfully applied 2 edits to utils.py",
    }
    assert isinstance(hunks, list)
    assert len(hunks) == 1


@pytest.mark.requirement("dialect:backend:edit", "dialect:backend:multiedit", "dialect:backend:replace-create")
def test_a_back_end_gets_the_seeds_messages_from_real_calls(project: Path, yard: BlockingYard) -> None:
    created = yard.call(
        "Write", {"path": "config.py", "content": "# Configuration\nDEBUG = False\nPORT = 8000\n"}, dialect="backend"
    )
    assert (created["tool_name"], created["data"]) == (
        "Replace",
        {
            "type": "create",
            "filePath": f"{project.resolve()}/config.py",
            "content": "# Configuration\nDEBUG = False\nPORT = 8000\n",
            "structuredPatch": [],
        },
    )
    edited = yard.call(
        "Edit",
        {"file_path": "config.py", "old_string": "DEBUG = False", "new_string": "DEBUG = True"},
        dialect="backend",
    )
    assert edited["data"] == {
        "filePath": f"{project.resolve()}/config.py",
        "oldString": "DEBUG = False",
        "newString": "DEBUG = True",
        "originalFile": "# Configuration\nDEBUG = False\nPORT = 8000\n",
        "structuredPatch": [
            {
                "oldStart": 1,
                "oldLines": 3,
                "newStart": 1,
                "newLines": 3,
                "lines": [" # Configuration", "-DEBUG = False", "+DEBUG = True", " PORT = 8000"],
            }
        ],
    }
    edits = [{"old_string": "nothing like it at all", "new_string": "x"}]
    failed = yard.call("MultiEdit", {"path": "config.py", "edits": edits}, dialect="backend")
    assert failed["data"] == "Error in edit 1: String not found: nothing like it at all..."


@pytest.mark.requirement("dialect:backend:multiedit-failure")
def test_a_multi_edit_that_fails_after_an_outside_change_is_told_in_the_seeds_words(
    project: Path, yard: BlockingYard
) -> None:
    """004 §3: the file was read, then somebody else renamed the function."""
    (project / "utils.py").write_text("def helper():\n    pass\n\n\ndef process():\n    pass\n")
    yard.call("Read", {"path": "utils.py"})
    (project / "utils.py").write_text("def helper():\n    pass\n\n\ndef handle():\n    pass\n")
    edits = [
        {"old_string": "def helper()", "new_string": "def assist()"},
        {"old_string": "def process()", "new_string": "def run()"},
    ]
    arguments: dict[str, Any] = {"path": "utils.py", "edits": edits}
    assert error_of(yard.call("MultiEdit", dict(arguments))) == ("CONFLICT", "STALE")
    failed = yard.call("MultiEdit", dict(arguments), dialect="backend")
    assert failed["data"] == "Error in edit 2: String not found: def process()..."


STRICT_CALLS: list[tuple[str, JsonObject]] = [
    ("Edit", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
    ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "two", "new_string": "2"}]}),
    ("ApplyPatch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n"}),
    ("FileOperator", {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "two", "replaceString": "2"}),
]


@pytest.mark.requirement("edit:strict")
@pytest.mark.parametrize(("tool", "arguments"), STRICT_CALLS)
@pytest.mark.parametrize("strict", [False, True])
def test_strict_edits_refuse_a_file_that_changed_since_it_was_read_also_where_they_would_fit(
    project: Path, tmp_path: Path, tool: str, arguments: JsonObject, strict: bool
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(f"strict_edits = {str(strict).lower()}\n")
    file = project / "a.txt"
    with toolyard.open(project=project, home=tmp_path / "home") as yard:
        file.write_text("one\ntwo\n")
        yard.call("Read", {"path": "a.txt"})
        file.write_text("zero\none\ntwo\n")
        envelope = yard.call(tool, arguments)
        if not strict:
            assert (envelope.status, file.read_text()) == (Status.SUCCESS, "zero\none\n2\n")
            return
        assert (error_of(envelope), file.read_text()) == (("CONFLICT", "STALE"), "zero\none\ntwo\n")
        yard.call("Read", {"path": "a.txt"})
        assert yard.call(tool, arguments).status is Status.SUCCESS
        assert file.read_text() == "zero\none\n2\n"
        file.write_text("two\n")
        (project / "b.txt").write_text("two\n")  # never read: the edit itself proves what it knows
        assert yard.call("Edit", {"path": "b.txt", "old_string": "two", "new_string": "2"}).status is Status.SUCCESS
