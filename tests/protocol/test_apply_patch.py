"""Patches of several files: both languages, where hunks stand, what they write, what is refused."""

import difflib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import bounded_work
from toolyard.protocol.edits.diff import structured_patch
from toolyard.protocol.edits.text_edit import Strategy
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.patching.file_change import Operation
from toolyard.protocol.patching.patch_plan import MAX_CHARACTERS, PlannedFile, parse_patch, plan_files

Files = dict[str, str]


def planned(before: Files, patch: str) -> tuple[PlannedFile, ...]:
    """The plan, with files read as a workspace gives them: nothing outside the root, no folder for a file."""

    def read(path: str) -> str | None:
        if path.startswith("/") or ".." in path.split("/"):
            raise Failure(ErrorCode.ACCESS_DENIED, "outside the project")
        if any(name.startswith(path + "/") for name in before):
            raise Failure(ErrorCode.INVALID_PARAM, "a folder")
        return before.get(path)

    files = plan_files(parse_patch(patch), read)
    for file in files:
        assert all(one.end <= other.start for one, other in pairwise(file.splices))
    return files


def applied(before: Files, patch: str) -> Files:
    after = dict(before)
    for file in planned(before, patch):
        if file.operation in {Operation.DELETE, Operation.MOVE}:
            del after[file.path]
        if file.after is not None:
            after[file.new_path or file.path] = file.after
    return after


def refused(before: Files, patch: str) -> Failure:
    with pytest.raises(Failure) as caught:
        planned(before, patch)
    return caught.value


def begin(*rows: str) -> str:
    return "\n".join(["*** Begin Patch", *rows, "*** End Patch", ""])


def update(*rows: str) -> str:
    return begin("*** Update File: f", *rows)


def unified(*rows: str) -> str:
    return "\n".join(["--- a/f", "+++ b/f", *rows, ""])


# --- The cases of other tools ---

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("apply_patch.json").read_text("utf-8"))

# Where tools differ, or where a tool of origin does what the contract does not allow: what is done here, and why.
DECISIONS: dict[str, tuple[Files | Reason | ErrorCode, str]] = {
    "codex-t08": ({"n.txt": "ONE\r\ntwo"}, "the last line is not in the patch, so it keeps its missing ending"),
    "oh-01": ({"FACTS.txt": "OpenHands SDK integrates tools.\n"}, "a new file ends with a newline"),
    "oh-05": ({"added.txt": "new content\n", "existing.txt": "base\nmore\n"}, "a new file ends with a newline"),
    "oh-06": ({"multi.txt": "line1\nline2a\nline3\nline3a\nline4\n"}, "hunks may share context, not changes"),
    "oh-09": (ErrorCode.INVALID_PARAM, "a file named twice is a mistake; which of the two is meant is not known"),
    "oc-06": (ErrorCode.NOT_FOUND, "all files or none"),
    "oc-07": (Reason.NOT_FOUND_IN_FILE, "a blank row inside a hunk is an empty line of the file"),
    "codex-010_move_overwrites_existing_destination": (Reason.ALREADY_EXISTS, "nothing is overwritten unseen"),
    "codex-011_add_overwrites_existing_file": (Reason.ALREADY_EXISTS, "nothing is overwritten unseen"),
    "vs-p4": (Reason.NOT_FOUND_IN_FILE, "words are never guessed"),
    "vs-p6": (Reason.NOT_FOUND_IN_FILE, "a lost plus is never guessed"),
    "vs-p8": (Reason.NOT_FOUND_IN_FILE, "nothing is unescaped"),
    "vs-p9": (Reason.NOT_FOUND_IN_FILE, "nothing is unescaped"),
}


@pytest.mark.requirement("applypatch:formats", "applypatch:all-or-none")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_of_another_tool_gives_its_files_or_is_refused(case: dict[str, Any]) -> None:
    expected, _ = DECISIONS.get(case["id"], (case["after"], ""))
    if isinstance(expected, dict):
        assert applied(case["before"], case["patch"]) == expected
    else:
        failure = refused(case["before"], case["patch"])
        assert expected is None or expected in {failure.code, failure.reason}


@pytest.mark.requirement("applypatch:formats")
def test_every_contested_case_is_decided() -> None:
    assert {case["id"] for case in CASES if "contested" in case} <= set(DECISIONS) <= {case["id"] for case in CASES}


# --- The language of Begin Patch ---


@pytest.mark.requirement("applypatch:formats")
@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "\n\n{}\n\n",
        "\ufeff{}",
        "<<EOF\n{}\nEOF",
        "<<'EOF'\n{}\nEOF\n",
        '<<"PATCH"\n{}\nPATCH\n',
        "apply_patch <<'EOF'\n{}\nEOF",
        "cat <<EOF\n{}\nEOF",
        "```diff\n{}\n```",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_wrappers_and_windows_newlines_around_a_patch_are_taken_off(wrap: str, newline: str) -> None:
    patch = wrap.format(update("@@", "-a", "+b")).replace("\n", newline)
    assert applied({"f": "a\n"}, patch) == {"f": "b\n"}
    patch = wrap.format(unified("@@ -1 +1 @@", "-a", "+b")).replace("\n", newline)
    assert applied({"f": "a\n"}, patch) == {"f": "b\n"}


@pytest.mark.requirement("applypatch:formats")
def test_a_marker_after_a_space_is_context_inside_an_update() -> None:
    patch = update("@@", "-a", "+b", " *** Update File: g")
    assert applied({"f": "a\n*** Update File: g\n"}, patch) == {"f": "b\n*** Update File: g\n"}
    assert refused({"f": "a\n", "g": "x\n"}, patch).reason is Reason.NOT_FOUND_IN_FILE


@pytest.mark.requirement("applypatch:formats")
@pytest.mark.parametrize(
    ("patch", "line", "word"),
    [
        ("*** Begin Patch\n*** Add File: f\n+a\nb\n*** End Patch", 4, "'+'"),
        ("*** Begin Patch\n*** Add File: f\n+a\n\n+b\n*** End Patch", 4, "'+'"),
        ("*** Begin Patch\n*** Add File:  \n+a\n*** End Patch", 2, "path"),
        ("*** Begin Patch\n*** Delete File: f\n-a\n*** End Patch", 3, "file must begin"),
        ("*** Begin Patch\n*** Update File: f\n@@\n*** End Patch", 3, "no lines"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n*** Move to: g\n*** End Patch", 5, "marker"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n*** End of File\n-b\n*** End Patch", 6, "new hunk"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\nThanks!", 7, "after the end"),
        ("*** Update File: f\n@@\n-a\n+b\n*** End Patch", 1, "*** Begin Patch"),
        ("<<'EOF'\n*** Begin Patch\n*** Delete File: f\n*** End Patch", 4, "'EOF'"),
        ("<<\"EOF'\n*** Begin Patch\n*** Delete File: f\n*** End Patch\nEOF", 1, "*** Begin Patch"),
        ("cd x && apply_patch <<EOF\n*** Begin Patch\n*** Delete File: f\n*** End Patch\nEOF", 1, "*** Begin Patch"),
    ],
)
def test_a_malformed_patch_is_refused_with_its_line_and_what_belongs_there(patch: str, line: int, word: str) -> None:
    failure = refused({"f": "a\nb\n"}, patch)
    assert failure.code is ErrorCode.INVALID_PARAM
    assert (failure.data["patch_line"], failure.message.startswith(f"Line {line} ")) == (line, True)
    assert word in failure.message
    assert failure.hint


@pytest.mark.requirement("applypatch:formats", "applypatch:all-or-none")
def test_a_patch_without_an_end_is_taken_only_where_nothing_can_be_missing() -> None:
    start = "*** Begin Patch\n*** Update File: f\n@@\n"
    assert applied({"f": "a\nb\n"}, start + "-a\n+x") == {"f": "x\nb\n"}
    assert applied({"f": "a\nb\n"}, start + "-a\n+x\n b\n\n") == {"f": "x\nb\n"}
    assert "incomplete" in refused({"f": "a\nb\n"}, start + "-a\n").message
    assert "incomplete" in refused({}, "*** Begin Patch\n*** Add File: f\n+a\n").message


@pytest.mark.requirement("applypatch:formats")
def test_context_without_its_space_is_taken_only_if_the_file_has_it_to_the_letter() -> None:
    text = "\tif x:\n\t\ta()\n * note\n\t\tb()\n"
    loose = update("@@", "\tif x:", "-\t\ta()", "+\t\tc()", " * note", "\t\tb()")
    assert applied({"f": text}, loose) == {"f": text.replace("a()", "c()")}
    for changed in (text.replace("if x", "if  x"), text.replace("b()", "b() "), text.replace("\t\tb", "        b")):
        failure = refused({"f": changed}, loose)
        assert failure.reason is Reason.NOT_FOUND_IN_FILE
        assert "space, '-' or '+'" in failure.hint


METHOD = "class C:\n    def f(self):\n        a()\n        b()\n"
UNMARKED = ["    def f(self):", "        a()", "+        c()", "        b()"]


@pytest.mark.requirement("applypatch:formats", "edit:matching")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "patch",
    [
        update("@@", *UNMARKED),
        update("@@ class C:", *UNMARKED),
        update("@@", *UNMARKED, "", "*** Add File: g", "+"),
        unified("@@", *UNMARKED),
        unified("@@ -2,3 +2,4 @@", *UNMARKED),
        unified("@@ -1,3 +1,4 @@", *UNMARKED),
    ],
)
def test_indented_context_that_lost_its_space_does_not_indent_the_added_lines(patch: str, newline: str) -> None:
    after = applied({"f": METHOD.replace("\n", newline)}, patch)["f"]
    assert after == METHOD.replace("        b", "        c()\n        b").replace("\n", newline)


@pytest.mark.requirement("edit:matching", "edit:refused")
@pytest.mark.parametrize(
    ("before", "rows"),
    [
        ("    a  \n    b\n", ["    a", "+    x", "    b"]),  # as it stands it does not fit to the letter
        ("    a\n    b\n", ["  a", "+  x", "  b"]),  # moved by two, or by three
        ("    if a:\n        b\n", ["      if a:", "+          x", "          b"]),
        ("if a:\n    b\n", ["  if a:", "+    x", "     b"]),  # moved by one, or a space too much before the context
        ("    a\n    b\n", ["     a", "+    x", "    b"]),  # one line with its mark and one without
    ],
)
def test_an_indentation_that_a_lost_mark_explains_as_well_is_refused(before: str, rows: list[str]) -> None:
    assert refused({"f": before}, update("@@", *rows)).reason is Reason.NOT_FOUND_IN_FILE
    assert refused({"f": before}, unified("@@", *rows)).reason is Reason.NOT_FOUND_IN_FILE


@pytest.mark.requirement("edit:matching")
def test_a_dropped_line_proves_an_odd_indentation_and_marked_context_goes_before_unmarked() -> None:
    (file,) = planned({"f": "   a\n   b\n"}, update("@@", " a", "-b", "+c"))
    assert (file.after, file.strategy) == ("   a\n   c\n", Strategy.INDENTATION)
    assert applied({"f": " a\n  a\n"}, update("@@", "  a", "+ x")) == {"f": " a\n x\n  a\n"}


# --- The language of diff -u ---


@pytest.mark.requirement("applypatch:formats")
def test_a_git_diff_of_many_kinds_of_change_is_applied() -> None:
    patch = """\
From 123 Mon Sep 17 00:00:00 2001
Subject: several things
---
 2 files changed

diff --git a/one.txt b/one.txt
index 415a78b..1891b38 100644
--- a/one.txt\t2026-01-01 00:00:00
+++ b/one.txt\t2026-01-02 00:00:00
@@ -1,3 +1,3 @@ some function
 a
-b
+B

diff --git a/old.txt b/new/name.txt
similarity index 90%
rename from old.txt
rename to new/name.txt
--- a/old.txt
+++ b/new/name.txt
@@ -1 +1 @@
-x
+y
\\ No newline at end of file
diff --git a/same.txt b/moved.txt
similarity index 100%
rename from same.txt
rename to moved.txt
diff --git a/made.txt b/made.txt
new file mode 100755
--- /dev/null
+++ b/made.txt
@@ -0,0 +1,2 @@
+1
+2
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
diff --git "a/g\\303\\251" "b/g\\303\\251"
deleted file mode 100644
--- "a/g\\303\\251"
+++ /dev/null
@@ -1 +0,0 @@
-bye
-- \n2.43.0
"""
    before = {"one.txt": "a\nb\n\n", "old.txt": "x\n", "same.txt": "s", "gé": "bye\n", "rest": "r"}
    after = {
        "one.txt": "a\nB\n\n",
        "new/name.txt": "y",
        "moved.txt": "s",
        "made.txt": "1\n2\n",
        "empty": "",
        "rest": "r",
    }
    assert applied(before, patch) == after
    notes = [file.note for file in planned(before, patch) if file.note]
    assert notes == ["The patch asks for file mode 100755, which is not set."]


@pytest.mark.requirement("applypatch:formats")
@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("a/x/y", "b/x/y", "x/y"),
        ("b/x", "a/x", "x"),
        ("a/x", "a/x", "a/x"),
        ("x", "x", "x"),
        ("old/x", "new/x", "x"),
        ("x.orig", "x", "x"),
        ("i/x", "w/x", "x"),
    ],
)
def test_a_prefix_is_taken_off_a_path_where_both_sides_have_one(old: str, new: str, path: str) -> None:
    patch = f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n"
    assert applied({path: "a\n"}, patch) == {path: "b\n"}


@pytest.mark.requirement("applypatch:formats")
@pytest.mark.parametrize(
    ("written", "path"),
    [
        ('"{}\\"x\\""', '"x"'),
        ("{}two words\t", "two words"),
        ("{}blank at the end \t", "blank at the end "),
        ('"{}back\\\\slash\\t\\346\\227\\245"', "back\\slash\t日"),
        ('"{}caf\\351.txt"', "caf\\xe9.txt"),
    ],
)
@pytest.mark.parametrize("prefixes", [("a/", "b/"), ("i/", "w/"), ("", "")])
def test_a_name_is_read_as_git_writes_it(written: str, path: str, prefixes: tuple[str, str]) -> None:
    old, new = map(written.format, prefixes)
    header = f"diff --git {old} {new}\n".replace("\t", "")
    assert applied({path: "a\n"}, f"{header}--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n") == {path: "b\n"}
    assert applied({path: ""}, f"{header}deleted file mode 100644\nindex e69de29..0000000\n") == {}
    moved = written.format("").removesuffix("\t")
    assert applied({path: "a\n"}, f"{header}rename from {moved}\nrename to n\n") == {"n": "a\n"}
    made = f"{header}new file mode 100644\n--- /dev/null\n+++ {new}\n@@ -0,0 +1 @@\n+a\n"
    if "\\x" not in path:
        assert applied({}, made) == {path: "a\n"}
        assert applied({"n": ""}, f"{header}rename from n\nrename to {moved}\n") == {path: ""}
    else:
        assert "not UTF-8" in refused({}, made).message
        assert "not UTF-8" in refused({"n": ""}, f"{header}rename from n\nrename to {moved}\n").message


@pytest.mark.requirement("applypatch:formats")
@pytest.mark.parametrize(
    ("patch", "word"),
    [
        (unified("@@ -1,2 +1,2 @@", " a", "-b"), "2 old and 1 new"),
        (unified("@@ -1,2 +1,1 @@", " a", "-b", "+c"), "2 old and 2 new"),
        (unified("@@ -1,1 +1,1 @@", " a", "-b", "+c", ""), "2 old and 2 new"),
        (unified("@@ -1,2 +1,2 @@", " a", "b", "+c"), "no line of the hunk"),
        (unified("@@ -1 +1 @@", "-a", "@@ -2 +2 @@", "-b", "+c"), "1 old and 0 new"),
        (unified("@@ -1,2 +1 @@", "-a", "\\ No newline at end of file", "-b", "+c"), "more lines"),
        (unified("@@ nonsense", "-a"), "header of a hunk"),
        (unified("@@@ -1 -1 +1 @@@", "--a"), "merge"),
        (unified(), "nothing follows"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "which one file"),
        ("diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", "binary"),
        ("diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", "binary"),
        ("diff --git a/f b/g\ncopy from f\ncopy to g\n", "copy"),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "nothing follows"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n", "mode 120000"),
        ("--- /dev/null\n+++ b/g\n@@ -1 +1 @@\n a\n", "'+'"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n a\n", "'-'"),
        (unified("@@ -1 +1 @@", "-a", "+c", "and so on"), "neither"),
    ],
)
def test_a_diff_that_is_wrong_or_not_of_text_is_refused_with_its_line(patch: str, word: str) -> None:
    failure = refused({"f": "a\nb\n"}, patch)
    assert failure.code is ErrorCode.INVALID_PARAM
    assert re.match(r"Line \d+ of the patch", failure.message)
    assert word in failure.message
    assert failure.hint


@pytest.mark.requirement("applypatch:formats", "edit:matching")
def test_the_line_number_of_a_hunk_tells_equal_places_apart() -> None:
    text = "x\ny\nx\ny\nx\n"
    assert applied({"f": text}, unified("@@ -3 +3 @@", "-x", "+z")) == {"f": "x\ny\nz\ny\nx\n"}
    assert refused({"f": text}, unified("@@ -2 +2 @@", "-x", "+z")).reason is Reason.NOT_UNIQUE
    assert refused({"f": text}, unified("@@", "-x", "+z")).reason is Reason.NOT_UNIQUE
    failure = refused({"f": "x \ny\nx\n"}, unified("@@ -1 +1 @@", "-x", "+z"))
    assert (failure.reason, failure.data["lines"]) == (Reason.NOT_UNIQUE, [1, 3])


@pytest.mark.requirement("applypatch:formats", "edit:matching")
def test_a_hunk_moves_with_the_one_before_it_when_the_file_has_grown() -> None:
    hunks = ["@@ -1,2 +1,2 @@", " top", "-a", "+b", "@@ -3 +3 @@", "-x", "+y"]
    assert applied({"f": "top\na\nx\n"}, unified(*hunks[:4], "", *hunks[4:])) == {"f": "top\nb\ny\n"}
    assert applied({"f": "new\ntop\na\nx\nq\n"}, unified(*hunks)) == {"f": "new\ntop\nb\ny\nq\n"}
    assert applied({"f": "new\ntop\na\nx\nq\nq\nx\n"}, unified(*hunks)) == {"f": "new\ntop\nb\ny\nq\nq\nx\n"}
    assert refused({"f": "n\nn\nn\ntop\na\nn\nx\nx\n"}, unified(*hunks)).reason is Reason.NOT_UNIQUE
    lost = ["@@ -1 +1,2 @@", "+n", " c", "@@ -3 +4,2 @@", " a", "+n"]
    assert refused({"f": "p\nc\na\nc\na\n"}, unified(*lost)).reason is Reason.NOT_UNIQUE


@pytest.mark.requirement("applypatch:formats")
def test_added_lines_without_context_go_only_into_an_empty_file() -> None:
    patch = unified("@@ -0,0 +1 @@", "+x")
    assert applied({"f": ""}, patch) == {"f": "x\n"}
    assert refused({"f": "a\n"}, patch).reason is Reason.NOT_UNIQUE


@pytest.mark.requirement("applypatch:formats", "applypatch:all-or-none")
def test_a_deletion_by_diff_must_show_all_the_text_it_deletes() -> None:
    patch = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert applied({"f": "a\n"}, patch) == {}
    assert refused({"f": "a\nb\n"}, patch).reason is Reason.NOT_FOUND_IN_FILE
    assert refused({"f": "a\n"}, "diff --git a/f b/f\ndeleted file mode 100644\n").reason is Reason.NOT_FOUND_IN_FILE


# --- Operations ---


@pytest.mark.requirement("applypatch:all-or-none")
@pytest.mark.parametrize(
    ("patch", "cause"),
    [
        (begin("*** Add File: new", "+x", "*** Add File: f", "+x"), Reason.ALREADY_EXISTS),
        (begin("*** Add File: new", "+x", "*** Update File: f", "*** Move to: g"), Reason.ALREADY_EXISTS),
        (begin("*** Add File: new", "+x", "*** Delete File: no"), ErrorCode.NOT_FOUND),
        (begin("*** Add File: new", "+x", "*** Update File: no", "@@", "-a", "+b"), ErrorCode.NOT_FOUND),
        (begin("*** Add File: new", "+x", "*** Update File: f", "@@", "-b", "+c"), Reason.NOT_FOUND_IN_FILE),
        (begin("*** Add File: new", "+x", "*** Update File: f", "@@", " a"), Reason.NO_CHANGE),
        (begin("*** Add File: new", "+x", "*** Update File: f", "@@", "-a", "+a"), Reason.NO_CHANGE),
        (begin("*** Delete File: f", "*** Add File: ./f", "+x"), ErrorCode.INVALID_PARAM),
        (begin("*** Delete File: g", "*** Update File: f", "*** Move to: g"), ErrorCode.INVALID_PARAM),
        (begin("*** Add File: ../new", "+x"), ErrorCode.ACCESS_DENIED),
        (begin("*** Update File: f", "*** Move to: /new"), ErrorCode.ACCESS_DENIED),
    ],
)
def test_one_change_that_cannot_be_made_refuses_the_whole_patch(patch: str, cause: Reason | ErrorCode) -> None:
    failure = refused({"f": "a\n", "g": "a\n"}, patch)
    assert cause in {failure.code, failure.reason}
    assert cause is not Reason.ALREADY_EXISTS or failure.code is ErrorCode.CONFLICT


@pytest.mark.requirement("applypatch:all-or-none")
def test_a_move_to_the_same_path_is_an_update_and_never_deletes() -> None:
    (file,) = planned({"d/f": "a\n"}, begin("*** Update File: d/f", "*** Move to: ./d//f", "@@", "-a", "+b"))
    assert (file.operation, file.new_path, file.after) == (Operation.UPDATE, None, "b\n")
    failure = refused({"f": "a\n"}, "diff --git a/f b/f\nrename from f\nrename to f\n")
    assert failure.reason is Reason.NO_CHANGE


@pytest.mark.requirement("applypatch:formats")
def test_a_file_can_be_moved_without_a_change_or_be_created_empty() -> None:
    assert applied({"f": "a"}, begin("*** Update File: f", "*** Move to: g")) == {"g": "a"}
    assert applied({}, begin("*** Add File: f")) == {"f": ""}


# --- Places ---

TWICE = "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n"


@pytest.mark.requirement("edit:refused", "applypatch:formats")
def test_a_hunk_that_fits_in_two_places_is_refused_with_their_lines() -> None:
    failure = refused({"f": TWICE}, update("@@", "-        pass", "+        return"))
    assert (failure.reason, failure.data["lines"]) == (Reason.NOT_UNIQUE, [3, 7])
    assert {"Hunk 1 of f", "lines 3, 7"} <= set(re.findall(r"Hunk 1 of f|lines 3, 7", failure.message))


@pytest.mark.requirement("edit:refused", "applypatch:formats")
@pytest.mark.parametrize(
    ("headers", "line"),
    [
        (["@@ class A:"], 3),
        (["@@class B:"], 7),
        (["@@ class B:", "@@     def f(self):"], 7),
        (["@@ class B:", "@@ def f(self):", "@@"], 7),
        (["@@     def f(self):"], None),
        (["@@ class C:"], None),
    ],
)
def test_an_anchor_chooses_among_equal_places_if_it_names_one_part(headers: list[str], line: int | None) -> None:
    patch = update(*headers, "-        pass", "+        return")
    if line is None:
        assert refused({"f": TWICE}, patch).reason is Reason.NOT_UNIQUE
    else:
        assert applied({"f": TWICE}, patch)["f"].split("\n")[line - 1] == "        return"


@pytest.mark.requirement("edit:refused", "applypatch:formats")
def test_an_anchor_never_leads_out_of_the_part_it_names() -> None:
    text = TWICE.replace("pass", "return 0", 1) + "\nclass C:\n    pass\n    def f(self):\n        pass\n"
    assert refused({"f": text}, update("@@ class A:", "-        pass", "+        return")).reason in {
        Reason.NOT_UNIQUE,
        Reason.NOT_FOUND_IN_FILE,
    }


@pytest.mark.requirement("edit:refused", "applypatch:formats")
def test_the_order_of_the_hunks_tells_equal_places_apart() -> None:
    first, second = ["@@", "-        pass", "+        return 1"], ["@@", "-        pass", "+        return 2"]
    both = applied({"f": TWICE}, update(*first, *second))
    assert both == {"f": TWICE.replace("pass", "return 1", 1).replace("pass", "return 2", 1)}
    assert applied({"f": TWICE}, update("@@", "-class B:", "+class C:", *first))["f"].count("return 1") == 1
    assert refused({"f": TWICE + "        pass\n"}, update(*first, *second)).reason is Reason.NOT_UNIQUE


@pytest.mark.requirement("applypatch:formats")
def test_hunks_that_stand_once_may_come_in_any_order_but_not_change_the_same_lines() -> None:
    patch = update("@@", "-c", "+C", "@@", "-a", "+A", " b")
    assert applied({"f": "a\nb\nc\n"}, patch) == {"f": "A\nb\nC\n"}
    failure = refused({"f": "a \nb\nc\n"}, patch)
    assert (failure.reason, failure.data["hunk"]) == (Reason.NOT_FOUND_IN_FILE, 2)
    failure = refused({"f": "a\nb\nc\n"}, update("@@", " a", "-b", "+x", "@@", "-a", "-b", "+y"))
    assert (failure.reason, failure.data["hunk"]) == (Reason.NOT_FOUND_IN_FILE, 2)


@pytest.mark.requirement("applypatch:formats")
def test_the_end_of_the_file_is_a_place_of_its_own() -> None:
    assert applied({"f": "a\nb\na\n"}, update("@@", "-a", "+c", "*** End of File")) == {"f": "a\nb\nc\n"}
    assert refused({"f": "a\nb\n"}, update("@@", "-a", "+c", "*** End of File")).reason is Reason.NOT_FOUND_IN_FILE


@pytest.mark.requirement("applypatch:formats")
def test_added_lines_alone_go_to_the_end_of_the_file_unless_another_place_could_be_meant() -> None:
    for rows in (["@@", "+x"], ["@@", "+x", "*** End of File"], ["+x", ""]):
        assert applied({"f": "a\nb\n"}, update(*rows)) == {"f": "a\nb\nx\n"}
    assert applied({"f": "a\nb\n"}, update("@@", "+x", "@@", " a", "-b", "+c")) == {"f": "a\nc\nx\n"}
    for rows in (["@@ a", "+x"], ["@@ -1,0 +2 @@", "+x"]):
        assert refused({"f": "a\nb\n"}, update(*rows)).reason is Reason.NOT_UNIQUE
    assert refused({"f": "a\n\nb\n"}, update("@@", "+x", "")).reason is Reason.NOT_UNIQUE


@pytest.mark.requirement("edit:matching", "write:bytes-outside")
@pytest.mark.parametrize(
    ("before", "rows", "after", "strategy"),
    [
        ("a \nb\n", [" a", "-b", "+c"], "a \nc\n", Strategy.TRAILING_BLANKS),
        ("“a” – b\nc\n", [' "a" - b', "-c", "+d"], "“a” – b\nd\n", Strategy.PUNCTUATION),
        ("  a:\n    b\n", ["-a:", "-  b", "+c:", "+  d"], "  c:\n    d\n", Strategy.INDENTATION),
        ("\ta:\n\t\tb\n", [" a:", "-\tb", "+\tc"], "\ta:\n\t\tc\n", Strategy.INDENTATION),
        ("  a\n  b  \n", ["-a", "-b", "+a", "+b", "+c"], "  a\n  b  \n  c\n", Strategy.INDENTATION),
    ],
)
def test_only_differences_of_format_are_forgiven_and_lines_that_stay_keep_theirs(
    before: str, rows: list[str], after: str, strategy: Strategy
) -> None:
    (file,) = planned({"f": before}, update("@@", *rows))
    assert (file.after, file.strategy) == (after, strategy)


@pytest.mark.requirement("edit:matching")
@pytest.mark.parametrize(
    ("before", "rows"),
    [
        ("a\n  b\n", ["-  a", "-  b", "+  c"]),
        ("    a\n      b\n", ["-a", "-    b", "+c"]),
        ("A\n", ["-a", "+b"]),
        ("a  b\n", ["-a b", "+c"]),
        ("a;\n", ["-a", "+b"]),
    ],
)
def test_nothing_else_is_forgiven(before: str, rows: list[str]) -> None:
    assert refused({"f": before}, update("@@", *rows)).reason is Reason.NOT_FOUND_IN_FILE


# --- Refusals that help ---


@pytest.mark.requirement("edit:not-found")
def test_a_miss_names_file_and_hunk_and_shows_the_line_that_differs() -> None:
    before = "first\ndef run(self):\n\treturn 1\n"
    failure = refused({"f": before}, update("@@", "-first", "+1st", "@@", " def run(self):", "-    return 2", "+    x"))
    assert failure.message.startswith("Hunk 2 of f (line 6 of the patch)")
    assert "line 3 differs: the file has «→return 1», the hunk «····return 2»" in failure.message
    assert failure.data == {
        "path": "f",
        "hunk": 2,
        "nearest": {"first_line": 2, "last_line": 3, "lines": ["2\tdef run(self):", "3\t→return 1"]},
    }


@pytest.mark.requirement("edit:not-found")
def test_a_hunk_whose_result_already_stands_is_said_to_be_applied_already() -> None:
    for patch in (update("@@", " a", "-b", "+c"), unified("@@ -1,2 +1,2 @@", " a", "-b", "+c")):
        once = applied({"f": "a\nb\n"}, patch)
        assert "seems to be applied already: its result stands at line 1" in refused(once, patch).message
    assert "already" not in refused({"f": "x\n"}, patch).message
    add = begin("*** Add File: f", "+a")
    assert "already" in refused(applied({}, add), add).hint


@pytest.mark.requirement("edit:not-found")
def test_a_missing_anchor_is_named() -> None:
    failure = refused({"f": TWICE}, update("@@ class A:", "@@     def g(self):", "-        pass", "+        return"))
    assert "Its anchor «    def g(self):» does not stand below «class A:»" in failure.message


# --- Line endings ---


@pytest.mark.requirement("write:literal", "write:bytes-outside")
@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        ("a\r\nb\nc\r\n", [" a", "-b", "+x", "+y", " c"], "a\r\nx\ny\nc\r\n"),
        ("a\nb\r\nc\n", [" a", "+x", " b"], "a\nx\nb\r\nc\n"),
        ("a\r\nb\nc\r\n", ["-a", "-b", "+x", "+y", "+z"], "x\r\ny\nz\nc\r\n"),
        ("a\rb\r", [" a", "+x", " b"], "a\rx\rb\r"),
        ("a", ["-a", "+x", "+y"], "x\ny"),
        ("a\r\nb", [" b", "+x"], "a\r\nb\r\nx"),
        ("a\r\nb", ["+x"], "a\r\nb\r\nx"),
        ("a\nb", [" a", "-b"], "a"),
        ("a\r\nb\r\nc", [" a", "-b", "-c"], "a"),
        ("a\rb", ["-b"], "a"),
        ("a\nb\nc", ["-a", "+x", "@@", "-b", "@@", "-c"], "x"),
        ("a\r\nb", [" a", "+x", "@@", "-b"], "a\r\nx"),
        ("a\nb", ["-a", "@@", "-b"], ""),
        ("a\nb\n", [" a", "-b"], "a\n"),
        ("a\nb", ["-b", "@@", "+x"], "a\nx"),
        ("", ["+x"], "x\n"),
        ("\r\n\r\n", ["+$1 \\n &"], "\r\n\r\n$1 \\n &\r\n"),
    ],
)
def test_added_lines_end_like_those_they_replace_or_join(before: str, rows: list[str], after: str) -> None:
    assert applied({"f": before}, update("@@", *rows)) == {"f": after}


@pytest.mark.requirement("write:literal")
def test_a_diff_says_itself_how_the_file_ends_and_how_its_lines_end() -> None:
    none = "\\ No newline at end of file"
    assert applied({"f": "a\nb\n"}, unified("@@ -2 +2 @@", "-b", "+c", none)) == {"f": "a\nc"}
    assert applied({"f": "a\nb"}, unified("@@ -2 +2 @@", "-b", none, "+c")) == {"f": "a\nc\n"}
    assert applied({"f": "a\r\n"}, unified("@@ -1 +1 @@", "-a\r", "+a")) == {"f": "a\n"}
    assert applied({"f": "a\r\nb"}, unified("@@ -1,2 +1,2 @@", "-a", "+x", " b")) == {"f": "x\r\nb"}
    assert refused({"f": "b\na\n"}, unified("@@ -1 +1 @@", "-b", "+c", none)).reason is Reason.NOT_FOUND_IN_FILE
    assert applied({"f": "a\nb"}, unified("@@ -1,2 +1 @@", " a", "-b", none)) == {"f": "a\n"}
    assert applied({"f": "a\nb\n"}, unified("@@ -2 +2 @@", "-b", none, "+c", none)) == {"f": "a\nc\n"}
    assert applied({"f": "a\nb"}, unified("@@ -2 +2 @@", "-b", "+c")) == {"f": "a\nc"}


@pytest.mark.requirement("write:literal", "write:bytes-outside")
@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        ("x\r\ny\r\nz", ["@@ -3 +3,2 @@", "-z", "\\ No newline", "+z", "+w"], "x\r\ny\r\nz\r\nw\r\n"),
        ("x\r\nz", ["@@ -2 +2,2 @@", "+w", " z", "\\ No newline"], "x\r\nw\r\nz"),
        ("x\r\nz", ["@@ -2 +2,2 @@", "-z", "\\ No newline", "+z", "+w\r"], "x\r\nz\nw\r\n"),
        ("x\nz", ["@@ -2 +2,2 @@", "-z", "\\ No newline", "+z", "+w"], "x\nz\nw\n"),
        ("x\r\ny\r\n\r\n", ["@@ -3 +3,2 @@", " ", "+w"], "x\r\ny\r\n\r\nw\r\n"),
        ("\r\nx\r\n\r\n", ["@@ -3 +3,2 @@", " ", "+w"], "\r\nx\r\n\r\nw\r\n"),
    ],
)
def test_a_diff_whose_old_lines_show_no_ending_writes_those_of_the_file(
    before: str, rows: list[str], after: str
) -> None:
    assert applied({"f": before}, unified(*rows)) == {"f": after}


@pytest.mark.requirement("edit:refused")
def test_blank_context_of_a_diff_is_placed_only_where_it_is_certain() -> None:
    before = "\r\nx\r\n\r\n"
    assert refused({"f": before}, unified("@@ -2 +2,2 @@", " ", "+w")).reason is Reason.NOT_UNIQUE
    assert refused({"f": before}, unified("@@", " ", "+w")).reason is Reason.NOT_UNIQUE
    assert refused({"f": "x \r\n \r\n"}, unified("@@ -2 +2,2 @@", " ", "+w")).reason is Reason.NOT_FOUND_IN_FILE
    assert refused({"f": "\nx\n  \n"}, unified("@@ -3 +3,2 @@", " ", "+w")).reason is Reason.NOT_UNIQUE


# --- Any text ---

WORDS = st.sampled_from(["a", "b", "c", "", " x", "  x", "x  ", "}", "-a", "+b", "@@", "--- a/f", "+++ b/f", "\\ No"])
ENDINGS = st.sampled_from(["\n", "\n", "\r\n", "\r"])
TEXTS = st.builds(
    str.__add__, st.lists(st.builds(str.__add__, WORDS, ENDINGS), max_size=14).map("".join), WORDS | st.just("")
)


def rendered(before: str, after: str) -> list[str]:
    rows: list[str] = []
    for hunk in structured_patch(before, after):
        old, new = hunk["oldLines"], hunk["newLines"]
        rows += [f"@@ -{hunk['oldStart'] - (not old)},{old} +{hunk['newStart'] - (not new)},{new} @@", *hunk["lines"]]
    return rows


@pytest.mark.requirement("applypatch:formats", "write:bytes-outside")
@given(TEXTS, TEXTS)
def test_the_diff_of_two_texts_turns_one_into_the_other_to_the_byte(before: str, after: str) -> None:
    if before != after:
        assert applied({"f": before}, unified(*rendered(before, after))) == {"f": after}


@pytest.mark.requirement("applypatch:formats")
@given(st.lists(WORDS, max_size=14), st.lists(WORDS, max_size=14), st.integers(1, 3))
def test_the_diff_of_another_tool_is_applied_as_well(old: list[str], new: list[str], context: int) -> None:
    before, after = ("".join(line + "\n" for line in lines) for lines in (old, new))
    rows = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), "a/f", "b/f", n=context
    )
    if before != after:
        assert applied({"f": before}, "".join(rows)) == {"f": after}


@st.composite
def changed_lines(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[str]]:
    """Lines that all differ, with their endings, and the lines of a text with some dropped and others added."""
    count = draw(st.integers(1, 20))
    old = [(f"line {number}", draw(st.sampled_from(["\n", "\r\n"]))) for number in range(count)]
    new: list[str] = []
    for number in range(count + 1):
        new += [f"new {number}.{n}" for n in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
        if number < count and draw(st.sampled_from([True, True, True, False])):
            new.append(f"line {number}")
    return old, new


def begin_patch(old: str, new: str) -> str:
    return update(*(re.sub(r"^@@ .*", "@@", row) for row in rendered(old, new) if not row.startswith("\\")))


@pytest.mark.requirement("applypatch:formats", "write:bytes-outside")
@given(changed_lines(), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_a_begin_patch_of_two_texts_turns_one_into_the_other(
    lines: tuple[list[tuple[str, str]], list[str]], ending: str, ended: bool
) -> None:
    texts = [text for text, _ in lines[0]], lines[1]
    before, after = (ending.join([*text, "end"]) + ending * ended for text in texts)
    if before != after:
        patch = begin_patch(before.replace(ending, "\n"), after.replace(ending, "\n"))
        assert applied({"f": before}, patch) == {"f": after}


@pytest.mark.requirement("write:bytes-outside", "write:literal")
@given(changed_lines())
def test_lines_that_stay_keep_their_own_endings_in_a_mixed_file(
    lines: tuple[list[tuple[str, str]], list[str]],
) -> None:
    old, new = lines
    plain = "".join(text + "\n" for text, _ in old), "".join(text + "\n" for text in new)
    if plain[0] != plain[1]:
        after = applied({"f": "".join(map("".join, old))}, begin_patch(*plain))["f"]
        assert after.replace("\r\n", "\n") == plain[1]
        unchanged = {text + ending for text, ending in old if text in new}
        assert unchanged <= set(after.splitlines(keepends=True))


ROWS = st.sampled_from(
    [
        *("*** Begin Patch", "*** Update File: f", "*** Add File: g", "*** Delete File: f", "*** Move to: h"),
        *("*** End of File", "*** End Patch", "@@", "@@ a", "@@ -1,2 +1,2 @@", "@@ -1 +1 @@", "@@@ -1 -1 +1 @@"),
        *("+a", "-a", " a", "a", "", " ", "+", "-", "+b\r", "-a\r", "-\tb", "+\tb", "-b", "\\ No newline"),
        *("diff --git a/f b/f", "--- a/f", "+++ b/f", "--- /dev/null", "+++ /dev/null", '--- "a/\\303\\251"', "-- "),
        *("rename from f", "rename to q", "new file mode 100644", "deleted file mode 100644", "GIT binary patch"),
        *("<<EOF", "EOF", "```"),
    ]
)
STARTS = st.sampled_from(["", "*** Begin Patch\n", update().partition("*** End")[0], unified("@@ -1,2 +1,2 @@")])


@pytest.mark.requirement("applypatch:formats")
@given(STARTS, st.lists(ROWS, max_size=12).map("\n".join) | st.text(max_size=200), TEXTS)
def test_any_text_is_either_applied_or_refused(start: str, rest: str, text: str) -> None:
    with suppress(Failure):
        applied({"f": text}, start + rest)


# --- Bounds ---

COUNT = 50_000
LINES = "".join(f"line {number}\n" for number in range(COUNT))
SLOW: dict[str, Callable[[], tuple[str, str]]] = {
    "blank rows": lambda: ("a\n", update("\n" * COUNT)),
    "empty hunks": lambda: ("a\n", update(*["@@"] * COUNT, "-a", "+b")),
    "headers": lambda: ("a\n", "--- a/f\n+++ b/f\n" * COUNT),
    "hunks of one place": lambda: ("a\n", unified(*["@@ -1 +1 @@", "-a", "+b"] * (COUNT // 4))),
    "equal lines": lambda: ("x\n" * COUNT, update("@@", *["-x"] * 1000, "+y")),
    "equal hunks": lambda: ("x\n" * COUNT, update(*["@@", "-x", "+y"] * 1000)),
    "equal anchors": lambda: ("x\n" * COUNT, update(*["@@ x", "-x", "+y"] * 100)),
    "equal indented lines": lambda: ("  x\n" * COUNT, update("@@", *["-x"] * 1000, "+y")),
    "a long line that is missing": lambda: ("y" * 3_000_000, update("@@", "-" + "x" * 3_000_000, "+y")),
    "many lines that are missing": lambda: (LINES, update("@@", *["-line x"] * 1000, "+y")),
    "escapes without end": lambda: ("a\n", '--- "' + '\\"' * COUNT + "\n+++ b/f\n"),
}


@pytest.mark.requirement("applypatch:formats", "edit:refused")
@pytest.mark.parametrize("case", SLOW)
def test_a_patch_made_to_be_slow_is_refused_soon(case: str) -> None:
    text, patch = SLOW[case]()
    with bounded_work(), suppress(Failure):
        planned({"f": text}, patch)


@pytest.mark.requirement("applypatch:formats")
def test_many_hunks_in_a_long_file_are_placed_soon() -> None:
    changed = [number for number in range(COUNT) if number % 10 == 0]
    after = re.sub(r"(?m)^line (\d*0)$", r"new \1", LINES)
    rows = [row for number in changed for row in ("@@", f"-line {number}", f"+new {number}")]
    with bounded_work():
        assert applied({"f": LINES}, update(*rows)) == {"f": after}
        assert applied({"f": LINES}, unified(*rendered(LINES, after))) == {"f": after}


@pytest.mark.requirement("applypatch:formats")
def test_a_patch_over_the_limit_is_refused() -> None:
    assert refused({}, "x" * (MAX_CHARACTERS + 1)).reason is Reason.TOO_LARGE
