"""What a model reads of a result: once, as text, and no more than it needs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read, write
from toolyard.blocking import BlockingYard
from toolyard.dialects.model_parts import join_texts, list_parts
from toolyard.message import Message
from toolyard.protocol.content import Blob, Link, Media, Text, make_stored_path
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Outcome, ToolCall

pytestmark = pytest.mark.requirement("results:text")


def say(result: Outcome, tool: str = "Plugin", language: str = "en") -> str:
    return join_texts(list_parts(ToolCall(id="call_1", tool=tool), result, language))


def ask(yard: BlockingYard, tool: str, **arguments: Any) -> str:
    return str(yard.call(tool, arguments, dialect="openai")["content"])


def test_a_write_says_one_line_and_nothing_that_the_model_wrote_or_never_uses(yard: BlockingYard) -> None:
    assert ask(yard, "Write", path="a.py", content="x = 1\ny = 2\n") == "Created 'a.py' (12 bytes)."
    assert ask(yard, "Edit", path="a.py", old_string="x", new_string="z") == "Edited 'a.py': replaced 1 place."
    edits = [{"old_string": "z", "new_string": "a"}, {"old_string": "y", "new_string": "b"}]
    assert ask(yard, "MultiEdit", path="a.py", edits=edits) == "Made 2 edits in 'a.py'."
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"
    assert ask(yard, "ApplyPatch", patch=patch) == "Applied the patch: deleted 'a.py'."


def test_the_full_envelope_still_has_the_patch_for_people_and_programs(yard: BlockingYard) -> None:
    envelope = yard.call("Write", {"path": "a.py", "content": "x = 1\n"})
    assert envelope.data["structured_patch"]
    assert envelope.context["params_input"] == {"path": "a.py", "content": "x = 1\n"}


def test_what_the_checkers_found_after_a_write_is_all_told(yard: BlockingYard) -> None:
    text = ask(yard, "Write", path="a.html", content="<p><b>one</p>\n<i>two</p>\n</div>\n")
    first, *rest = text.split("\n")
    assert "The checker found" in first
    data = yard.call("Write", {"path": "b.html", "content": "<p><b>one</p>\n<i>two</p>\n</div>\n"}).data
    findings: Any = data["validation"]
    assert len(findings) > 1
    assert len(rest) == len(findings) - 1
    assert all(finding["message"] in text for finding in findings)


def test_a_dry_run_shows_the_change_for_it_was_not_made(yard: BlockingYard, project: Path) -> None:
    (project / "a.py").write_text("x = 1\ny = 2\n")
    text = ask(yard, "Edit", path="a.py", old_string="x", new_string="z", dry_run=True)
    assert text.split("\n")[1:] == ["@@ -1,2 +1,2 @@", "-x = 1", "+z = 1", " y = 2"]
    patch = "*** Begin Patch\n*** Add File: b\n+one\n*** Update File: a.py\n-x = 1\n+z = 1\n y = 2\n*** End Patch"
    lines = ask(yard, "ApplyPatch", patch=patch, dry_run=True).split("\n")[1:]
    assert lines == ["b", "@@ -1,0 +1,1 @@", "+one", "a.py", "@@ -1,2 +1,2 @@", "-x = 1", "+z = 1", " y = 2"]


def test_listings_are_lines(yard: BlockingYard, project: Path) -> None:
    for name in ("src/a.py", "src/deep/b.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("one\ntwo\nthree\nfour two\n")
    (project / "src/link").symlink_to("a.py")
    assert ask(yard, "LS", path="src", depth=2).split("\n")[1:] == ["deep/", "a.py\t23", "deep/b.py\t23", "link\tlink"]
    assert ask(yard, "Glob", pattern="src/**/*.py").split("\n")[1:] == ["src/a.py", "src/deep/b.py"]
    assert ask(yard, "Grep", pattern="two", output="files").split("\n")[1:] == ["src/a.py", "src/deep/b.py"]
    assert ask(yard, "Grep", pattern="two", output="count").split("\n")[1:] == ["src/a.py:2", "src/deep/b.py:2"]
    assert '"tools"' not in ask(yard, "ToolSearch", query="draw a chart")
    assert ask(yard, "Grep", pattern="zero") == "No matches for 'zero' in '.' (2 files searched)."


def test_matches_stand_below_their_file_with_their_line_numbers(yard: BlockingYard, project: Path) -> None:
    (project / "a.txt").write_text("".join(f"{n}{' hit' if n in (2, 3, 9) else ''}\n" for n in range(1, 12)))
    (project / "b.txt").write_text("one hit\n")
    plain = ask(yard, "Grep", pattern="hit")
    assert plain.split("\n")[1:] == ["a.txt", "2:2 hit", "3:3 hit", "9:9 hit", "", "b.txt", "1:one hit"]
    around = ask(yard, "Grep", pattern="hit", path="a.txt", before=1, after=1)
    assert around.split("\n")[1:] == [
        "a.txt", "1-1", "2:2 hit", "3:3 hit", "4-4", "--", "8-8", "9:9 hit", "10-10",
    ]  # fmt: skip
    several = ask(yard, "Grep", pattern=r"1\n2", multiline=True)
    assert several.split("\n")[1:] == ["a.txt", "1:1", "2:2 hit"]


def test_a_failure_is_its_code_and_its_text(yard: BlockingYard) -> None:
    hint = "Check the path, or list its folder with LS."
    assert ask(yard, "Read", path="none") == f"NOT_FOUND: 'none' does not exist. {hint}"
    pictured = failed(Failure(ErrorCode.EXECUTION_ERROR, "No.", hint="Try again."))
    assert say(pictured) == "EXECUTION_ERROR: No. Try again."


@pytest.mark.parametrize(
    ("text", "data", "said"),
    [
        ("It rains.", {"result": "It rains."}, "It rains."),
        ("It rains.\n\nThis is not all.", {"result": "It rains."}, "It rains.\n\nThis is not all."),
        ('{\n  "a": 1\n}', {"a": 1}, '{"a":1}'),
        ('{\n  "a": 1\n}\n\nThis is not all.', {"a": 1}, '{"a":1}\n\nThis is not all.'),
        ("[\n  1,\n  2\n]", {"result": [1, 2]}, "[1,2]"),
        ('{"a": 1}', {"result": '{"a": 1}'}, '{"a": 1}'),
        ("Two rows.", {"rows": [1, 2], "message": "Two rows."}, 'Two rows.\n{"rows":[1,2]}'),
        ("A page.", {"content": "# Page\n", "links": []}, 'A page.\n# Page\n\n{"links":[]}'),
        ("5", {"result": 5}, "5"),
        ("Done.", {}, "Done."),
        ("Wait for {{X::9}}", {"tasks": [{"id": "task_1", "task_id": "9"}]}, "Wait for {{X::9}}"),
    ],
)
def test_a_plugins_data_follow_its_text_once_as_compact_json(text: str, data: JsonObject, said: str) -> None:
    assert say(outcome(text, data)) == said


def test_the_parts_of_a_plugin_are_what_a_model_reads_and_its_media_say_where_they_are_kept() -> None:
    path = make_stored_path(b"x", "image/png")
    parts = (
        Text("A chart."), Media("image/png", b"x", source=path), Link("https://example.com/a.png"),
        Blob("[a file]", data=b"y"),
    )  # fmt: skip
    data: JsonObject = {"kind": "line", "content": [{"type": "image", "path": path}]}
    result = outcome("A chart.", data, parts=parts, content_key="content", note="Call again for more.")
    assert list_parts(ToolCall(id="c", tool="Plotter"), result) == [
        Text("A chart."),
        parts[1],
        Text(f"[{path}]\nhttps://example.com/a.png\n[a file]\nCall again for more."),
    ]


def test_a_picture_without_words_has_those_of_the_result() -> None:
    result = outcome("Finished.", parts=(Media("image/png", b"x"),))
    assert list_parts(ToolCall(id="c", tool="Plotter"), result) == [Text("Finished."), Media("image/png", b"x")]


def test_the_items_of_a_batch_have_their_numbers_and_nothing_is_said_twice(yard: BlockingYard, project: Path) -> None:
    (project / "a").write_text("one\n")
    assert ask(yard, "Read", path1="a", path2="none") == (
        "(1)\nRead lines 1-1 of 1 of 'a'.\n1\tone\n"
        "(2)\nNOT_FOUND: 'none' does not exist. Check the path, or list its folder with LS."
    )
    items = (read(outcome("One.")), write(outcome("Two.", {"applied": True})))
    assert say(outcome("Batch of 2 finished.", {"results": []}, batch=items)) == "(1)\nOne.\n(2)\nTwo."


@pytest.mark.requirement("results:language")
def test_the_words_of_the_host_are_chinese_in_a_chinese_conversation() -> None:
    missing = failed(Failure(ErrorCode.NOT_FOUND, Message("'{path}' does not exist.", path="a")))
    assert say(missing, language="zh") == "NOT_FOUND: “a”不存在。"
    nested = Message("'{path}' {why}: nothing was written.", path="a", why=Message("was changed since you read it"))
    assert say(outcome(nested), language="zh") == f"{nested.chinese}"
    assert nested.chinese != nested
    said = Message("Wrote '{path}' ({size} bytes).", path="a", size=3)
    parts = (Text("".join(said)), Text("its own words"))
    assert say(outcome(said, parts=parts), language="zh") == f"{said.chinese}\nits own words"
    assert say(outcome("A plugin's words."), language="zh") == "A plugin's words."


@pytest.mark.requirement("results:language")
def test_a_sentence_that_was_stored_and_read_is_still_chinese(yard: BlockingYard) -> None:
    from toolyard.protocol.envelope import Envelope

    written = json.loads(json.dumps(yard.call("Read", {"path": "none"}).to_json()))
    text = Envelope.from_dict(written).text
    assert isinstance(text, Message)
    assert text.chinese == "“none”不存在。请检查路径，或用 LS 列出它所在的文件夹。"
