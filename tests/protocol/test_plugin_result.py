"""What a plugin printed, and what becomes of it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolyard
from tests.fakes import FakeClock, FakeTool, ListJournal
from toolyard.dialects import vcp_messages
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.content import Blob, Link, Media, Text, make_stored_path, to_reference
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure, Fault, Reason, Status, is_partial
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.tool import Checkpoint, Outcome, Result, ToolCall

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
WAV = b"RIFF\0\0\0\0WAVEfmt "
MP4 = b"\0\0\0\x18ftypisom"


def uri(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def good(result: Any, *warnings: str, **others: Any) -> Result:
    return read_plugin_result("Tiny", {"status": "success", "result": result, **others}, warnings=warnings)


def bad(*warnings: str, **answer: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        read_plugin_result("Tiny", {"status": "error", **answer}, warnings=warnings)
    return caught.value


async def settled(root: Path, answer: dict[str, Any], *warnings: str) -> Outcome:
    """As a call ends when its plugin prints ``said``."""

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return read_plugin_result("Tiny", answer, warnings=warnings)

    runner = Runner(
        Registry([FakeTool(work)]),
        root=str(root),
        clock=FakeClock(),
        journal=ListJournal(),
        mask=Mask([]),
    )
    return await runner.settle(ToolCall(id="c1", tool="Fake", arguments={"text": "asked"}))


def enveloped(answer: dict[str, Any]) -> Envelope:
    """The envelope of an answer, which is valid because it exists."""
    known: JsonObject = {"cwd": ".", "params_input": {}}
    try:
        result = read_plugin_result("Tiny", answer, warnings=["noise"])
    except Failure as failure:
        return Envelope(
            status=Status.ERROR,
            data=failure.data,
            text=failure.message,
            error=Fault(failure.code, failure.message),
            stats={"time_ms": 0},
            context={**failure.context, **known},
        )
    status = Status.PARTIAL if result.partial or is_partial(result.data) else Status.SUCCESS
    stats, context = {"time_ms": 0, **result.stats}, {**result.context, **known}
    return Envelope(status=status, data=result.data, text=result.text, stats=stats, context=context)


# --- results


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize("text", ["5", "true", '{"a": 1}', "###计算结果：2.718###", " padded \n", "[]", "null"])
def test_a_text_stays_the_text_it_is(text: str) -> None:
    assert good(text) == Result(data={"result": text}, text=text)


@pytest.mark.requirement("plugin:result")
def test_content_becomes_parts_and_the_rest_data() -> None:
    content = [{"type": "text", "text": "Done."}, {"type": "image_url", "image_url": {"url": uri(PNG)}}]
    result = good({"content": content, "seed": 5})
    assert result.extras.parts == (Text("Done."), Media("image/png", PNG))
    references = [{"type": "text", "text": "Done."}, to_reference(result.extras.parts[1])]
    assert (result.data, result.text) == ({"seed": 5, "content": references}, "Done.")


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize(
    ("item", "part"),
    [
        ("plain", Text("plain")),
        ({"type": "text", "text": ""}, Text("")),
        ({"text": "no type"}, Text("no type")),
        ({"type": "image_url", "image_url": uri(PNG)}, Media("image/png", PNG)),
        ({"type": "image_url", "image_url": {"url": uri(PNG, "image/jpeg")}}, Media("image/png", PNG)),
        ({"type": "image_url", "image_url": {"url": uri(PNG, "text/html;charset=x")}}, Media("image/png", PNG)),
        ({"type": "image_url", "image_url": {"url": uri(PNG).rstrip("=") + "\n"}}, Media("image/png", PNG)),
        ({"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "x/y"}, Media("image/png", PNG)),
        ({"type": "input_audio", "input_audio": {"data": base64.b64encode(WAV).decode()}}, Media("audio/wav", WAV)),
        ({"type": "audio_url", "audio_url": {"url": uri(WAV, "audio/wav")}, "name": "a"}, Media("audio/wav", WAV, "a")),
        ({"type": "video_url", "video_url": {"url": uri(MP4, "video/mp4")}}, Media("video/mp4", MP4)),
        ({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}, Link("https://a.example/x.png")),
        ({"type": "image_url", "image_url": {"url": "http://a/b.mp4?x=1"}}, Link("http://a/b.mp4?x=1", kind="video")),
        ({"type": "audio_url", "audio_url": {"url": "http://a/b"}}, Link("http://a/b", kind="audio")),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, Link("file:///etc/passwd")),
        ({"type": "odd", "x": 1}, Text('{"type": "odd", "x": 1}')),
        ({"type": "text", "text": 5}, Text('{"type": "text", "text": 5}')),
        (None, Text("null")),
    ],
)
def test_each_kind_of_content_is_read_and_nothing_is_fetched(item: Any, part: Text | Media) -> None:
    assert good({"content": [item]}).extras.parts == (part,)


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize("data", [b"<svg/>", b"MZ"])
def test_bytes_that_are_no_known_medium_are_told_and_kept(data: bytes) -> None:
    item = {"type": "image_url", "image_url": {"url": uri(data, "image/svg+xml")}, "name": "a.svg"}
    (part,) = good({"content": [item]}).extras.parts
    assert isinstance(part, Blob)
    assert (part.data, part.name, part.original) == (data, "a.svg", item)
    assert "cannot be shown" in part.text
    assert to_reference(part)["size"] == len(data)


@pytest.mark.requirement("plugin:result")
def test_base64_that_cannot_be_read_is_told() -> None:
    result = good({"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@"}}]})
    assert "not valid Base64" in result.text


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize(
    ("content", "text"), [([], "nothing"), ([uri(PNG)], "data:"), ([{"url": uri(PNG)}] * 2, "2 image")]
)
def test_content_without_a_text_still_says_what_came(content: list[Any], text: str) -> None:
    assert text in good({"content": content}).text


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize(
    ("result", "data", "text"),
    [
        ({"a": 1}, {"a": 1}, '{\n  "a": 1\n}'),
        ({"messageForAI": "Say this.", "a": 1}, {"messageForAI": "Say this.", "a": 1}, "Say this."),
        ({"content": "no list"}, {"content": "no list"}, "no list"),
        ([1, "二"], {"result": [1, "二"]}, '[\n  1,\n  "二"\n]'),
        (5, {"result": 5}, "5"),
        (False, {"result": False}, "false"),
        (None, {}, "Tiny finished without a result."),
        ("", {"result": ""}, "Tiny finished with an empty text."),
        ("  ", {"result": "  "}, "Tiny finished with an empty text."),
        ({}, {}, "{}"),
    ],
)
def test_any_other_json_is_data_with_a_readable_text(result: Any, data: Any, text: str) -> None:
    assert good(result) == Result(data=data, text=text)


@pytest.mark.requirement("plugin:result")
def test_keys_beside_the_result_are_kept_in_data() -> None:
    assert good("Done.", timestamp="now").data == {"timestamp": "now", "result": "Done."}
    assert good("Done.", error="but").data == {"error": "but", "result": "Done."}
    assert good({"a": 1}, a=2).data == {"a": 1, "a_2": 2}
    assert good({"a": 1}, timestamp="now").data == {"timestamp": "now", "a": 1}
    assert read_plugin_result("Tiny", {"status": "success", "message": "Saved.", "id": 7}) == Result(
        data={"message": "Saved.", "id": 7}, text="Saved."
    )


@pytest.mark.requirement("plugin:result")
async def test_special_actions_and_payloads_reach_the_client(project: Path) -> None:
    answer = {"status": "success", "result": "Open.", "_specialAction": "create_canvas", "payload": {"path": "a"}}
    outcome = await settled(project, answer)
    assert (outcome.extras.action, outcome.extras.payload) == ("create_canvas", {"path": "a"})
    assert vcp_messages.encode(outcome)["_specialAction"] == "create_canvas"
    assert outcome.envelope.data == {"result": "Open."}
    assert good("x", payload=[1]).data == {"payload": [1], "result": "x"}
    assert good("x", payload=[1], _specialAction="act").extras.payload == [1]


@pytest.mark.requirement("plugin:result")
def test_a_result_that_is_itself_an_answer_is_opened_once() -> None:
    assert good({"status": "success", "result": {"a": 1}}).data == {"a": 1}
    assert good({"status": "success", "result": "5"}) == Result(data={"result": "5"}, text="5")
    result = good({"status": "success", "data": {"a": 1}, "text": "Done.", "stats": {}, "context": {}})
    assert (result.data, result.text) == ({"a": 1}, "Done.")
    assert good({"status": "active", "result": 1}).data == {"status": "active", "result": 1}
    with pytest.raises(Failure, match="no such city"):
        good({"status": "error", "error": "no such city"})


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize("status", ["done", None, 5, "Success"])
def test_a_status_that_means_nothing_is_named_with_those_that_mean_something(status: Any) -> None:
    with pytest.raises(Failure) as caught:
        read_plugin_result("Tiny", {"status": status, "result": "x"})
    assert caught.value.reason is Reason.INVALID_OUTPUT
    assert json.dumps(status) in caught.value.message
    assert caught.value.hint == "It must be success, partial or error."
    assert caught.value.data == {"answer": {"status": status, "result": "x"}}


@pytest.mark.requirement("plugin:result")
def test_half_an_emoji_does_not_cost_the_result() -> None:
    assert good("cut \ud83d here").text == "cut \ufffd here"
    assert good({"a": "\ud83d\ude00"}).data == {"a": "😀"}
    with pytest.raises(Failure) as caught:
        good({"a": float("nan")})
    assert caught.value.reason is Reason.INVALID_OUTPUT


@pytest.mark.requirement("plugin:result")
async def test_data_that_uses_a_word_of_the_envelope_otherwise_stands_one_level_deeper(project: Path) -> None:
    outcome = await settled(project, {"status": "success", "result": {"truncated": "no", "a": 1}})
    assert outcome.envelope.data == {"result": {"truncated": "no", "a": 1}}
    assert outcome.envelope.status == "success"
    assert "another sense" in str(outcome.envelope.context["warnings"])
    result = await settled(project, {"status": "success", "result": {"truncated": True, "a": 1}})
    assert (result.envelope.status, result.envelope.data) == ("partial", {"truncated": True, "a": 1})


# --- errors


@pytest.mark.requirement("plugin:result:error", "envelope:status:legacy-error")
async def test_an_error_text_is_the_message_of_an_execution_error(project: Path) -> None:
    outcome = await settled(project, {"status": "error", "error": "文件不存在"})
    assert outcome.envelope.to_dict()["status"] == "error"
    assert outcome.envelope.to_dict()["error"] == {"code": "EXECUTION_ERROR", "message": "文件不存在"}
    assert outcome.envelope.data == {}


@pytest.mark.requirement("plugin:result:error")
def test_an_error_object_gives_its_message_and_is_kept() -> None:
    failure = bad(error={"message": "quota", "type": "rate"}, requestId="r1")
    assert (failure.code, failure.message) == (ErrorCode.EXECUTION_ERROR, "quota")
    assert failure.data == {"error": {"message": "quota", "type": "rate"}, "requestId": "r1"}
    assert bad(error={"code": "NOT_FOUND", "message": "gone"}).code is ErrorCode.NOT_FOUND
    assert bad(error={"code": "E42", "detail": "gone"}).message == "gone"


@pytest.mark.requirement("plugin:result:error")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "Tiny reported an error but did not say which."),
        ({"error": ""}, "Tiny reported an error but did not say which."),
        ({"error": {"x": 1}}, "Tiny reported an error but did not say which."),
        ({"message": "No key."}, "No key."),
        ({"result": "No key."}, "No key."),
        ({"result": {"error": "No key."}}, "No key."),
    ],
)
def test_an_error_without_its_text_still_gets_a_clear_sentence(answer: dict[str, Any], message: str) -> None:
    assert bad(**answer).message == message


@pytest.mark.requirement("plugin:result:error")
def test_what_an_error_brought_along_is_in_its_data() -> None:
    assert bad(error="Half done.", result={"done": 3}).data == {"result": {"done": 3}}


# --- warnings


@pytest.mark.requirement("plugin:result")
def test_warnings_are_kept_for_the_author_and_leave_the_text_to_the_letter() -> None:
    result = good("5", "It printed other lines: 'loading model'", "It ended with code 1.")
    assert result.context == {"warnings": ["It printed other lines: 'loading model'", "It ended with code 1."]}
    assert result.text == "5"


@pytest.mark.requirement("plugin:result")
def test_a_partial_result_ends_with_why_it_is_not_whole() -> None:
    answer: JsonObject = {"status": "partial", "result": "5"}
    result = read_plugin_result("P", answer, warnings=["Byte 7 of stdout is not UTF-8.", "x"])
    assert result.partial
    assert result.data == {"result": "5"}
    assert result.text == (
        "5\n\nWarning: Byte 7 of stdout is not UTF-8. (1 more in context.warnings)"
        "\n\nThis is not the whole result: narrow the call, or call P again for what is missing."
    )
    assert len(read_plugin_result("P", answer, warnings=["x" * 10_000]).text) < 500


@pytest.mark.requirement("plugin:next-step")
async def test_a_partial_answer_with_parts_shows_the_next_step_behind_them(project: Path) -> None:
    answer = {"status": "partial", "result": {"content": [{"type": "text", "text": "half"}]}}
    outcome = await settled(project, answer)
    step = "This is not the whole result: narrow the call, or call Tiny again for what is missing."
    assert outcome.envelope.text == f"half\n\n{step}"
    assert [part["text"] for part in vcp_messages.encode(outcome)["result"]["content"]] == ["half", step]
    assert outcome.envelope.data == {"content": [{"type": "text", "text": "half"}]}
    known = await settled(project, {"status": "partial", "result": "Half. Use page=2 for the rest."})
    assert known.envelope.text == "Half. Use page=2 for the rest."


@pytest.mark.requirement("plugin:result:error")
def test_warnings_of_an_error_are_kept_and_its_message_is_not_touched() -> None:
    failure = bad("It ended with code 1.", error="No key.")
    assert failure.message == "No key."
    assert failure.hint == ""
    assert failure.context == {"warnings": ["It ended with code 1."]}


# --- whole envelopes

WHOLE = {
    "status": "partial",
    "data": {"rows": [1, 2], "truncated": True},
    "text": "Read 2 of 9 rows. Ask for the next page.",
    "stats": {"time_ms": 99999, "rows": 9},
    "context": {"cwd": "packages/app", "params_input": {"password": "x"}, "truncation_skip": True, "page": 1},
}


@pytest.mark.requirement("envelope:whole", "envelope:context:cwd")
async def test_a_whole_envelope_is_taken_as_it_is(project: Path) -> None:
    envelope = (await settled(project, WHOLE)).envelope
    assert envelope.to_dict() == {
        **WHOLE,
        "stats": {"time_ms": 0.0, "rows": 9},
        "context": {"cwd": "packages/app", "params_input": {"text": "asked"}, "truncation_skip": True, "page": 1},
    }


@pytest.mark.requirement("envelope:whole")
async def test_an_envelope_without_stats_and_context_is_whole_enough(project: Path) -> None:
    for status in ("success", "partial"):
        answer = {"status": status, "data": {"a": 1}, "text": "Did 1 of 2. Try again."}
        envelope = (await settled(project, answer)).envelope
        assert (envelope.status, envelope.data, envelope.text) == (status, {"a": 1}, "Did 1 of 2. Try again.")
        assert "warnings" not in envelope.context


@pytest.mark.requirement("envelope:whole")
async def test_an_envelope_with_an_error_keeps_code_text_data_and_stats(project: Path) -> None:
    answer = {
        "status": "error",
        "data": {"near": "Paris"},
        "text": "Nothing was found. Did you mean Paris?",
        "error": {"code": "NOT_FOUND", "message": "There is no city Pariss."},
        "stats": {"time_ms": 1, "cities": 900},
        "context": {"cwd": ".", "params_input": {}},
    }
    envelope = (await settled(project, answer)).envelope
    assert envelope.to_dict() == {
        **answer,
        "stats": {"time_ms": 0.0, "cities": 900},
        "context": {"cwd": ".", "params_input": {"text": "asked"}},
    }


@pytest.mark.requirement("envelope:whole")
async def test_keys_of_the_context_that_are_the_hosts_stay_the_hosts(project: Path) -> None:
    context = {"cwd": "src", "params_input": {"x": 1}, "reason": "STALE", "warnings": ["mine"]}
    envelope = (await settled(project, {**WHOLE, "context": context}, "from the host")).envelope
    assert envelope.context == {
        "cwd": "src",
        "params_input": {"text": "asked"},
        "warnings": [
            "from the host",
            "context.reason is the host's to tell; that of its envelope was left out.",
            "context.warnings is the host's to tell; that of its envelope was left out.",
        ],
    }


@pytest.mark.requirement("envelope:whole")
@pytest.mark.parametrize(
    ("wrong", "right", "warning"),
    [
        ({"extra": 1}, {"data": {"rows": 2, "extra": 1}}, "'extra' is no key of an envelope; it is in data.extra now"),
        ({"rows": 1}, {"data": {"rows": 2, "envelope_rows": 1}}, "it is in data.envelope_rows now"),
        (
            {"data": {"truncated": True}},
            {"status": "partial", "data": {"truncated": True}},
            "says success although its data are truncated",
        ),
        ({"data": None}, {"data": {}}, "data of its envelope is no object"),
        ({"data": [1]}, {"data": {"result": [1]}}, "it is in data.result now"),
        ({"data": {"applied": "no"}}, {"data": {"result": {"applied": "no"}}}, "in another sense"),
        ({"text": " "}, {"text": '{\n  "rows": 2\n}'}, "has no text"),
        ({"error": {"code": "X"}}, {"data": {"rows": 2, "error": {"code": "X"}}}, "although its status is success"),
        ({"stats": [1]}, {}, "stats of its envelope is no object"),
        ({"stats": {"ok": True, "n": 1}}, {}, "stats.ok of its envelope is no number or text"),
        ({"context": [1]}, {}, "context of its envelope is no object"),
        ({"context": {"cwd": "/elsewhere"}}, {}, "context.cwd of its envelope is no POSIX path"),
        ({"context": {"path_resolved": "../x"}}, {}, "context.path_resolved of its envelope is no POSIX path"),
        ({"context": {"truncation_skip": 1}}, {}, "context.truncation_skip of its envelope is neither"),
    ],
)
async def test_an_envelope_that_breaks_the_rules_is_put_right_and_that_is_told(
    project: Path, wrong: dict[str, Any], right: dict[str, Any], warning: str
) -> None:
    sound = {"status": "success", "data": {"rows": 2}, "text": "Read 2 rows.", "stats": {}, "context": {}}
    envelope = (await settled(project, {**sound, **wrong})).envelope
    expected = {"status": "success", "data": {"rows": 2}, **right}
    assert {key: envelope.to_dict()[key] for key in expected} == expected
    assert envelope.context["cwd"] == "."
    warnings = envelope.context["warnings"]
    assert isinstance(warnings, list)
    assert warning in str(warnings[0])


@pytest.mark.requirement("envelope:whole")
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": "E42", "message": "gone"}, "EXECUTION_ERROR", "gone"),
        ("gone", "EXECUTION_ERROR", "gone"),
        (None, "EXECUTION_ERROR", "It failed."),
        ({"code": "TIMEOUT"}, "TIMEOUT", "It failed."),
    ],
)
async def test_an_error_of_an_envelope_is_put_right(project: Path, error: Any, code: str, message: str) -> None:
    answer = {"status": "error", "data": {}, "text": "It failed.", "error": error}
    envelope = (await settled(project, answer)).envelope
    assert envelope.to_dict()["error"] == {"code": code, "message": message}
    assert envelope.text == "It failed."
    assert envelope.context["warnings"]


@pytest.mark.requirement("envelope:whole")
async def test_data_without_a_result_are_never_nested_in_data(project: Path) -> None:
    for answer in ({"data": {"a": 1}}, {"data": {"a": 1}, "text": "Done."}, {"data": {"a": 1}, "context": {}}):
        assert (await settled(project, {"status": "success", **answer})).envelope.data == {"a": 1}


# --- VCP v2 and the forms before it

V2: dict[str, Any] = {
    "status": "success",
    "result": {
        "content": [
            {"type": "text", "text": "已读取文件 'example.js' (1.2 KB)。"},
            {"type": "image_url", "image_url": {"url": uri(PNG)}},
            {"type": "image_url", "image_url": {"url": "https://a.example/x.png", "detail": "high"}},
            {"type": "image_url", "image_url": {"url": uri(b"<svg/>", "image/svg+xml")}},
            {"type": "text", "text": "x", "cache": True},
            "bare",
        ],
        "details": {"path": "example.js", "validation": [{"line": 1, "column": 2, "message": "odd"}]},
    },
    "_specialAction": "create_canvas",
    "payload": {"files": [1]},
}


@pytest.mark.requirement("plugin:vcp-v2")
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"result": {**V2["result"], "details": {"message": "own", "content": "own", "result": 1}}},
        {"result": {**V2["result"], "details": {"image": uri(PNG), "content": V2["result"]["content"][1:]}}},
        {"result": {**V2["result"], "details": {"content": V2["result"]["content"][:2]}}},
        {"result": {**V2["result"], "details": {}}},
        {"status": "error", "error": "It went wrong."},
        {"payload": [1, 2]},
    ],
)
async def test_a_vcp_v2_answer_comes_out_of_the_vcp_dialect_as_it_went_in(
    project: Path, changed: dict[str, Any]
) -> None:
    assert vcp_messages.encode(await settled(project, {**V2, **changed})) == {**V2, **changed}


@pytest.mark.requirement("plugin:vcp-v2", "plugin:data")
async def test_the_details_of_vcp_v2_are_the_data_with_the_content_beside_them(project: Path) -> None:
    data = (await settled(project, V2)).envelope.data
    content = data.pop("content")
    assert data == V2["result"]["details"]
    assert isinstance(content, list)
    assert [item["type"] for item in content if isinstance(item, dict)] == [
        "text", "image", "image", "file", "text", "text",
    ]  # fmt: skip
    assert "base64" not in json.dumps(content)
    repeated = {**V2["result"], "details": {"content": V2["result"]["content"][1:]}}
    assert (await settled(project, {**V2, "result": repeated})).envelope.data == {"content": content}
    own = {"status": "success", "result": {"content": [{"type": "text", "text": "a"}], "details": {"content": "own"}}}
    assert (await settled(project, own)).envelope.data == {
        "content": "own",
        "content_parts": [{"type": "text", "text": "a"}],
    }


@pytest.mark.requirement("plugin:data")
@pytest.mark.parametrize(
    "answer",
    [
        result := {"image": uri(PNG), "deep": [{"type": "image_url", "image_url": {"url": uri(PNG)}, "name": "a"}]},
        {"content": [{"type": "text", "text": "x"}], "details": result},
        {"content": [{"type": "text", "text": "x"}], **result},
    ],
)
async def test_media_anywhere_in_an_answer_are_references_in_the_data(project: Path, answer: dict[str, Any]) -> None:
    path = make_stored_path(PNG, "image/png")
    reference = {"type": "image", "mime": "image/png", "size": len(PNG), "name": "a", "path": path}
    read = good(answer)
    assert (read.data["image"], read.data["deep"]) == (path, [reference])
    assert read.extras.attached == (Media("image/png", PNG), Media("image/png", PNG, "a"))
    failed = bad(error="no", result=answer)
    assert "base64" not in json.dumps(failed.data)
    full = read_plugin_result("Tiny", {"status": "success", "data": answer, "text": "Done."})
    assert "base64" not in json.dumps(full.data)
    (project / "tool-output").write_text("")  # so that nothing can be stored
    async with toolyard.open_async(project, project.parent / "home") as yard:
        outcome = await yard.results.keep_media(await settled(project, {"status": "success", "result": result}))
    assert outcome.envelope.data["deep"] == [{key: value for key, value in reference.items() if key != "path"}]
    assert "could not be stored" in str(outcome.envelope.context["warnings"])


@pytest.mark.requirement("plugin:content-generated")
@pytest.mark.parametrize(
    ("result", "texts", "message"),
    [
        ({"content": [], "results": [1], "message": "m"}, ["m", "[\n  1\n]"], "m"),
        ({"content": [], "items": [1, 2]}, ["Tiny returned 2 items.", "[\n  1,\n  2\n]"], "Tiny returned 2 items."),
        ({"items": [{"a": 1}]}, ["Tiny returned 1 item.", '[\n  {\n    "a": 1\n  }\n]'], "Tiny returned 1 item."),
        ({"content": [], "message": "m"}, ["m"], "m"),
        ({"content": []}, ["Tiny returned nothing."], "Tiny returned nothing."),
        ({"a": 1}, ['{\n  "a": 1\n}'], "The tool finished."),
    ],
)
async def test_an_empty_content_is_made_from_the_list_once_with_the_message_first(
    project: Path, result: dict[str, Any], texts: list[str], message: str
) -> None:
    encoded = vcp_messages.encode(await settled(project, {"status": "success", "result": result}))["result"]
    assert [part["text"] for part in encoded["content"]] == texts
    assert encoded["details"]["message"] == message


@pytest.mark.requirement("plugin:content-generated", "plugin:vcp-v2")
async def test_an_empty_content_of_vcp_v2_is_made_from_its_details(project: Path) -> None:
    details = {"items": [1], "message": "m"}
    for result in ({"content": [], "details": details}, {"details": details}):
        encoded = vcp_messages.encode(await settled(project, {"status": "success", "result": result}))
        assert encoded["result"] == {
            "content": [{"type": "text", "text": "m"}, {"type": "text", "text": "[\n  1\n]"}],
            "details": details,
        }


@pytest.mark.requirement("envelope:whole", "plugin:result")
@given(
    st.dictionaries(
        st.sampled_from(
            ["result", "error", "data", "text", "stats", "context", "payload", "_specialAction", "message"]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=5)
            | st.sampled_from(["success", "error"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["content", "status", "result", "url", "type", "truncated", "failed_items", "code"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=10,
        ),
    ),
    st.sampled_from(["success", "partial", "error", "odd"]),
)
def test_whatever_is_printed_ends_in_a_result_or_a_failure_that_an_envelope_can_carry(answer: Any, status: str) -> None:
    envelope = enveloped({**answer, "status": status})
    assert (envelope.status is Status.ERROR) == (envelope.error is not None)
    warnings = envelope.context.get("warnings")
    assert envelope.error is not None or (isinstance(warnings, list) and warnings[0] == "noise")
