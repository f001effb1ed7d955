"""VCP Protocol v2 (seed 000, and the result shapes of 001 §3)."""

import json
from typing import Any

import pytest

from tests.dialects.outcomes import failed, outcome, read, write
from toolyard.dialects.vcp_messages import encode
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import BatchItem

PNG = Media("image/png", b"\x89PNG\r\n\x1a\n")
PNG_URI = "data:image/png;base64,iVBORw0KGgo="


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


# --- The seeds' examples ---


@pytest.mark.requirement("dialect:vcp:seed-examples", "dialect:vcp:success", "content:text", "dialect:vcp:action")
def test_the_seeds_read_file() -> None:
    """000 §1.1 in the form of 000 §1.2.

    Contract §3 differs in three things: content, action and payload are not repeated inside details, and
    "``details.message`` is the first sentence of ``text``", where the seed has a message of its own.
    """
    parts = (Text("已读取文件 'example.js' (1.2 KB)。"), Text("console.log('hello');"))
    data: JsonObject = {"validation": [], "items": [], "results": []}
    result = outcome("已读取文件 'example.js' (1.2 KB)。", data, parts=parts, action="action_name", payload={})
    assert encode(result) == json.loads("""
    {
      "status": "success",
      "result": {
        "content": [
          { "type": "text", "text": "已读取文件 'example.js' (1.2 KB)。" },
          { "type": "text", "text": "console.log('hello');" }
        ],
        "details": {
          "message": "已读取文件 'example.js' (1.2 KB)。",
          "validation": [],
          "items": [],
          "results": []
        }
      },
      "_specialAction": "action_name",
      "payload": {}
    }
    """)


@pytest.mark.requirement("dialect:vcp:seed-examples", "dialect:vcp:content:list")
def test_the_seeds_directory_listing() -> None:
    """000 §2.1: the message, and ``JSON.stringify(result, null, 2)``."""
    message = "Directory listing of /home/user/docs (2 items)"
    items: list[Json] = [{"name": "报告.txt", "size": 12}, {"name": "a", "tags": [], "meta": {}, "link": None}]
    listing = """\
[
  {
    "name": "报告.txt",
    "size": 12
  },
  {
    "name": "a",
    "tags": [],
    "meta": {},
    "link": null
  }
]"""
    assert encode(outcome(message, {"items": items})) == {
        "status": "success",
        "result": {"content": [text(message), text(listing)], "details": {"message": message, "items": items}},
    }


@pytest.mark.requirement("dialect:vcp:seed-examples", "dialect:vcp:content:text", "content:text")
def test_the_seeds_plain_text_result() -> None:
    """001 §3.1, whose result is a bare string; docs/dialects.md gives every result ``content`` and ``details``."""
    words = "###计算结果：2.718###，请将结果转告用户###"
    assert encode(outcome(words)) == {
        "status": "success",
        "result": {"content": [text(words)], "details": {"message": words}},
    }


@pytest.mark.requirement("dialect:vcp:seed-examples", "dialect:vcp:content:parts", "content:media")
def test_the_seeds_text_with_an_image() -> None:
    """001 §3.2; "其他细节" (other details) stand in details."""
    words = "图片已成功生成！\n- 提示词: a cat..."
    result = outcome(words, {"prompt": "a cat"}, parts=(Text(words), PNG))
    assert encode(result) == {
        "status": "success",
        "result": {
            "content": [text(words), image(PNG_URI)],
            "details": {"message": "图片已成功生成！", "prompt": "a cat"},
        },
    }


# --- Content ---


@pytest.mark.requirement("content:media", "dialect:vcp:seed-examples")
@pytest.mark.parametrize("mime", ["image/png", "audio/mpeg", "video/mp4", "application/pdf"])
def test_media_of_every_kind_are_image_urls_with_their_type(mime: str) -> None:
    """000 §3: audio and video too, since the front end goes by the MIME type."""
    content = encode(outcome(parts=(Media(mime, b"\0\1\2"),)))["result"]["content"]
    assert content == [image(f"data:{mime};base64,AAEC")]


@pytest.mark.requirement("dialect:vcp:content:parts")
def test_parts_stand_as_they_are_in_place_of_text_and_lists() -> None:
    result = outcome("Listed 1 entry.", {"entries": [{"path": "a"}]}, parts=(Text("one"), PNG, Text("two")))
    assert encode(result)["result"]["content"] == [text("one"), image(PNG_URI), text("two")]


@pytest.mark.requirement("dialect:vcp:content:list")
@pytest.mark.parametrize("name", ["items", "results", "entries", "matches", "paths"])
def test_a_list_is_a_summary_and_its_json(name: str) -> None:
    assert encode(outcome("Found 1.", {"truncated": False, name: ["a"]})) == {
        "status": "success",
        "result": {
            "content": [text("Found 1."), text('[\n  "a"\n]')],
            "details": {"message": "Found 1.", "truncated": False, name: ["a"]},
        },
    }


@pytest.mark.requirement("dialect:vcp:content:list")
def test_an_empty_list_is_still_shown() -> None:
    assert encode(outcome("Found nothing.", {"paths": []}))["result"]["content"] == [text("Found nothing."), text("[]")]


@pytest.mark.requirement("dialect:vcp:content:list")
def test_info_is_a_summary_and_its_json() -> None:
    content = encode(outcome("Info of 'a'.", {"info": {"size": 5}}))["result"]["content"]
    assert content == [text("Info of 'a'."), text('{\n  "size": 5\n}')]


@pytest.mark.requirement("dialect:vcp:content:text")
@pytest.mark.parametrize("data", [{}, {"applied": True, "hash": "ab"}, {"items": None}])
def test_without_parts_and_lists_the_content_is_the_text(data: JsonObject) -> None:
    assert encode(outcome("Wrote 'a'. Well done.", data))["result"] == {
        "content": [text("Wrote 'a'. Well done.")],
        "details": {"message": "Wrote 'a'.", **data},
    }


# --- Status ---


@pytest.mark.requirement("dialect:vcp:error", "dialect:vcp:content:text")
def test_a_failed_call_has_its_message_beside_the_result() -> None:
    failure = Failure(ErrorCode.NOT_FOUND, "'a.py' does not exist.", hint="List the folder with LS.")
    assert encode(failed(failure)) == {
        "status": "error",
        "error": "'a.py' does not exist.",
        "result": {
            "content": [text("'a.py' does not exist. List the folder with LS.")],
            "details": {"message": "'a.py' does not exist."},
        },
    }


@pytest.mark.requirement("dialect:vcp:error")
def test_what_a_failed_call_found_out_is_in_its_details_and_not_in_its_content() -> None:
    failure = Failure(Reason.NOT_UNIQUE, "It is there twice.", data={"matches": [3, 9]})
    assert encode(failed(failure))["result"] == {
        "content": [text("It is there twice.")],
        "details": {"message": "It is there twice.", "matches": [3, 9]},
    }


@pytest.mark.requirement("dialect:vcp:partial")
def test_a_partial_result_is_a_success_whose_text_says_why() -> None:
    words = "Listed 1 entry in 'src' (truncated: 1-1 of 2). Use offset=1 for the next ones."
    assert encode(outcome(words, {"entries": ["a"], "truncated": True})) == {
        "status": "success",
        "result": {
            "content": [text(words), text('[\n  "a"\n]')],
            "details": {
                "message": "Listed 1 entry in 'src' (truncated: 1-1 of 2).",
                "entries": ["a"],
                "truncated": True,
            },
        },
    }


@pytest.mark.requirement("dialect:vcp:action")
@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({}, {}),
        ({"action": "create_canvas"}, {"_specialAction": "create_canvas"}),
        ({"payload": {"path": "a"}}, {"payload": {"path": "a"}}),
        ({"action": "x", "payload": {}}, {"_specialAction": "x", "payload": {}}),
    ],
)
def test_action_and_payload_stand_at_the_top_only_when_they_are_there(
    beside: dict[str, Any], expected: dict[str, Any]
) -> None:
    message = encode(outcome("Done.", **beside))
    assert message == {
        "status": "success",
        "result": {"content": [text("Done.")], "details": {"message": "Done."}},
        **expected,
    }


# --- The message ---


@pytest.mark.requirement("dialect:vcp:message")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Done.", "Done."),
        ("Done. Next, read it.", "Done."),
        ("Done!  Really?", "Done!"),
        ("Is it done? Yes.", "Is it done?"),
        ("What?! No.", "What?!"),
        ("no end at all", "no end at all"),
        ("First line\nSecond line.", "First line"),
        ("First line\r\nSecond line.", "First line"),
        ("First. line\nSecond line.", "First."),
        ("\n\n  Done. More.", "Done."),
        ("   \nDone. More.", "Done."),
        ("Read 'a.py' (1.2 KB). Next.", "Read 'a.py' (1.2 KB)."),
        ("v1.2 done", "v1.2 done"),
        ("Installed v1.2. Restart.", "Installed v1.2."),
        (
            "Listed 3 entries in '.' (truncated: 1-3 of 9). Use offset=3.",
            "Listed 3 entries in '.' (truncated: 1-3 of 9).",
        ),
        ("已读取文件。共三行。", "已读取文件。"),
        ("图片已生成！大小 1.2 MB。", "图片已生成！"),
        ("完成了吗？是的。", "完成了吗？"),
        ("已写入 a.py。Next, run it. Then stop.", "已写入 a.py。"),
        ("Wrote a.py. 已完成。", "Wrote a.py."),
        ("版本 v1.2 已安装。重启。", "版本 v1.2 已安装。"),
        (".", "."),
        ("...", "..."),
        ("。", "。"),
    ],
)
def test_the_message_is_the_first_sentence_of_the_text(words: str, message: str) -> None:
    assert encode(outcome(words))["result"]["details"] == {"message": message}


@pytest.mark.requirement("dialect:vcp:message")
def test_the_message_of_an_endless_sentence_is_found_at_once() -> None:
    words = "a.b " * 200_000
    assert encode(outcome(words))["result"]["details"] == {"message": words.strip()}


# --- Validation ---


FINDINGS: list[Json] = [
    {"line": 3, "column": 7, "severity": "error", "message": "Unexpected token", "ruleId": "parse"},
    "checked by node",
]
FOUND = "Code Validation Results:\n- line 3, column 7 [error] Unexpected token\n- checked by node"


@pytest.mark.requirement("dialect:vcp:validation")
@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((), [text("Wrote 'a.js'. Found 2 problems.")]),
        ((Text("one"), PNG), [text("one"), image(PNG_URI)]),
    ],
)
def test_findings_are_the_last_part_and_change_nothing_before_them(
    parts: tuple[Any, ...], content: list[dict[str, Any]]
) -> None:
    """000 §4: "而不会破坏原始的成功消息" (without harm to the message of success)."""
    result = outcome("Wrote 'a.js'. Found 2 problems.", {"applied": True, "validation": FINDINGS}, parts=parts)
    assert encode(result) == {
        "status": "success",
        "result": {
            "content": [*content, text(FOUND)],
            "details": {"message": "Wrote 'a.js'.", "applied": True, "validation": FINDINGS},
        },
    }


@pytest.mark.requirement("dialect:vcp:validation:members")
@pytest.mark.parametrize(
    ("finding", "line"),
    [
        ({"line": 3, "message": "m"}, "- line 3: m"),
        ({"line": 3, "column": 1, "message": "m"}, "- line 3, column 1: m"),
        ({"line": 3, "severity": "error", "message": "m"}, "- line 3 [error] m"),
        ({"line": None, "column": None, "severity": None, "message": "m"}, "- m"),
        ({"line": "3", "severity": 2, "message": "m"}, "- line 3: m"),
        ({"severity": "warning", "message": "m"}, "- [warning] m"),
        ({"message": "m"}, "- m"),
        ({"line": 3, "error": "m"}, '- line 3: {"line": 3, "error": "m"}'),
    ],
)
def test_a_finding_is_written_with_what_it_has(finding: Json, line: str) -> None:
    content = encode(outcome("Wrote 'a'.", {"validation": [finding]}))["result"]["content"]
    assert content[-1] == text(f"Code Validation Results:\n{line}")


@pytest.mark.requirement("dialect:vcp:validation")
@pytest.mark.parametrize("validation", [[], None, {}])
def test_no_findings_are_no_part(validation: Json) -> None:
    assert encode(outcome("Wrote 'a'.", {"validation": validation}))["result"]["content"] == [text("Wrote 'a'.")]


# --- Batches ---


@pytest.mark.requirement("dialect:vcp:batch:reads", "dialect:vcp:batch:writes")
def test_a_batch_is_a_summary_of_its_writes_and_then_what_was_read_in_order() -> None:
    """000 §2.3."""
    items = (
        read(outcome("Read 'a'.", parts=(Text("Read 'a'."), Text("1\ta")))),
        write(outcome("Wrote 'b'.", {"applied": True})),
        read(outcome("Listed 1 entry.", {"entries": ["c"]})),
        write(outcome("Deleted 'd'. It is in the trash.", {"applied": True})),
        read(outcome("Read 'e'.", parts=(PNG,))),
    )
    result = outcome("Batch of 5 finished: 5 succeeded, 0 failed.", {"results": [{}] * 5}, batch=items)
    assert encode(result) == {
        "status": "success",
        "result": {
            "content": [
                text("Batch Operations Summary:\n- Wrote 'b'.\n- Deleted 'd'. It is in the trash."),
                text("Read 'a'."),
                text("1\ta"),
                text("Listed 1 entry."),
                text('[\n  "c"\n]'),
                image(PNG_URI),
            ],
            "details": {"message": "Batch of 5 finished: 5 succeeded, 0 failed.", "results": [{}] * 5},
        },
    }


@pytest.mark.requirement("dialect:vcp:batch:reads")
def test_a_batch_of_reads_has_no_summary_part() -> None:
    items = (read(outcome("Read 'a'.")), read(outcome("Read 'b'.")))
    assert encode(outcome("Batch.", batch=items))["result"]["content"] == [text("Read 'a'."), text("Read 'b'.")]


@pytest.mark.requirement("dialect:vcp:batch:reads", "dialect:vcp:batch:writes", "dialect:vcp:error")
def test_a_failed_call_of_a_batch_is_told_in_the_summary() -> None:
    missing = Failure(ErrorCode.NOT_FOUND, "'x' does not exist.", hint="Use LS.")
    items = (read(failed(missing)), read(outcome("Read 'a'.")), write(failed(missing)))
    content = encode(outcome("Batch.", batch=items))["result"]["content"]
    summary = "Batch Operations Summary:\n- 'x' does not exist. Use LS.\n- 'x' does not exist. Use LS."
    assert content == [text(summary), text("Read 'a'.")]


@pytest.mark.requirement("dialect:vcp:validation", "dialect:vcp:batch:writes")
def test_the_findings_of_the_writes_of_a_batch_come_last() -> None:
    items = (
        write(outcome("Wrote 'a.js'.", {"applied": True, "validation": FINDINGS})),
        read(outcome("Read 'b'.")),
    )
    assert encode(outcome("Batch.", batch=items))["result"]["content"] == [
        text("Batch Operations Summary:\n- Wrote 'a.js'."),
        text("Read 'b'."),
        text(FOUND),
    ]


@pytest.mark.requirement("dialect:vcp:validation:file")
def test_the_findings_of_a_batch_name_their_file() -> None:
    def wrote(path: str, *findings: Json) -> BatchItem:
        return write(outcome(f"Wrote '{path}'.", {"applied": True, "validation": list(findings)}, path=path))

    finding: Json = {"file": "src/b.js", "line": 3, "column": 7, "severity": "error", "message": "Unexpected token"}
    items = (wrote("a.js", "checked by node"), wrote("link.js", finding), wrote("c.js"))
    _, *texts = encode(outcome("Batch.", batch=items))["result"]["content"]
    assert texts == [
        text("Code Validation Results for 'a.js':\n- checked by node"),
        text("Code Validation Results for 'src/b.js':\n- line 3, column 7 [error] Unexpected token"),
    ]
