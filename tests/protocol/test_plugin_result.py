"""What a plugin printed, and what becomes of it."""

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeClock, FakeTool, ListJournal
from toolyard.dialects import vcp
from toolyard.engine.masking import Mask
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.call import ToolCall
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status, is_partial
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome, Result
from toolyard.protocol.plugin_result import result_of
from toolyard.protocol.tool import Checkpoint

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
WAV = b"RIFF\0\0\0\0WAVEfmt "
MP4 = b"\0\0\0\x18ftypisom"


def uri(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def good(result: Any, *warnings: str, **others: Any) -> Result:
    return result_of("Tiny", {"status": "success", "result": result, **others}, warnings=warnings)


def bad(*warnings: str, **said: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        result_of("Tiny", {"status": "error", **said}, warnings=warnings)
    return caught.value


async def settled(root: Path, said: dict[str, Any], *warnings: str) -> Outcome:
    """As a call ends when its plugin prints ``said``."""

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return result_of("Tiny", said, warnings=warnings)

    runner = Runner(
        Registry([FakeTool(work)]),
        root=str(root),
        clock=FakeClock(),
        journal=ListJournal(),
        mask=Mask([]),
    )
    return await runner.settle(ToolCall(id="c1", tool="Fake", arguments={"text": "asked"}))


def enveloped(said: dict[str, Any]) -> Envelope:
    """The envelope of an answer, which is valid because it exists."""
    known: JsonObject = {"cwd": ".", "params_input": {}}
    try:
        result = result_of("Tiny", said, warnings=["noise"])
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
    assert good(text) == Result(data={}, text=text)


@pytest.mark.requirement("plugin:result")
def test_content_becomes_parts_and_the_rest_data() -> None:
    content = [{"type": "text", "text": "Done."}, {"type": "image_url", "image_url": {"url": uri(PNG)}}]
    result = good({"content": content, "seed": 5})
    assert result.extras.parts == (Text("Done."), Media("image/png", PNG))
    assert (result.data, result.text) == ({"seed": 5}, "Done.")


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
        ({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}, Text("https://a.example/x.png")),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, Text("file:///etc/passwd")),
        ({"type": "odd", "x": 1}, Text('{"type": "odd", "x": 1}')),
        ({"type": "text", "text": 5}, Text('{"type": "text", "text": 5}')),
        (None, Text("null")),
    ],
)
def test_each_kind_of_content_is_read_and_nothing_is_fetched(item: Any, part: Text | Media) -> None:
    assert good({"content": [item]}).extras.parts == (part,)


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize("url", [uri(b"<svg/>", "image/svg+xml"), "data:image/png;base64,@@@", uri(b"MZ")])
def test_bytes_that_are_no_known_medium_are_told_and_kept(url: str) -> None:
    item = {"type": "image_url", "image_url": {"url": url}}
    result = good({"content": [item]})
    assert result.data == {"content": [item]}
    assert "cannot be shown" in result.text


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
        ({"content": "no list"}, {"content": "no list"}, '{\n  "content": "no list"\n}'),
        ([1, "二"], {"result": [1, "二"]}, '[\n  1,\n  "二"\n]'),
        (5, {"result": 5}, "5"),
        (False, {"result": False}, "false"),
        (None, {}, "Tiny finished without a result."),
        ("", {}, "Tiny finished with an empty text."),
        ("  ", {}, "Tiny finished with an empty text."),
        ({}, {}, "{}"),
    ],
)
def test_any_other_json_is_data_with_a_readable_text(result: Any, data: Any, text: str) -> None:
    assert good(result) == Result(data=data, text=text)


@pytest.mark.requirement("plugin:result")
def test_keys_beside_the_result_are_kept_in_data() -> None:
    assert good("Done.", timestamp="now").data == {"timestamp": "now"}
    assert good({"a": 1}, timestamp="now").data == {"timestamp": "now", "a": 1}
    assert result_of("Tiny", {"status": "success", "message": "Saved.", "id": 7}) == Result(
        data={"message": "Saved.", "id": 7}, text="Saved."
    )


@pytest.mark.requirement("plugin:result")
async def test_special_actions_and_payloads_reach_the_client(project: Path) -> None:
    said = {"status": "success", "result": "Open.", "_specialAction": "create_canvas", "payload": {"path": "a"}}
    outcome = await settled(project, said)
    assert (outcome.extras.action, outcome.extras.payload) == ("create_canvas", {"path": "a"})
    assert vcp.encode(outcome)["_specialAction"] == "create_canvas"
    assert outcome.envelope.data == {}
    assert good("x", payload=[1]).data == {"payload": [1]}


@pytest.mark.requirement("plugin:result")
def test_a_result_that_is_itself_an_answer_is_opened_once() -> None:
    assert good({"status": "success", "result": {"a": 1}}).data == {"a": 1}
    assert good({"status": "success", "result": "5"}) == Result(data={}, text="5")
    assert good({"status": "active", "result": 1}).data == {"status": "active", "result": 1}
    with pytest.raises(Failure, match="no such city"):
        good({"status": "error", "error": "no such city"})


@pytest.mark.requirement("plugin:result")
@pytest.mark.parametrize("status", ["done", None, 5, "Success"])
def test_a_status_that_means_nothing_is_invalid_output(status: Any) -> None:
    with pytest.raises(Failure) as caught:
        result_of("Tiny", {"status": status, "result": "x"})
    assert caught.value.reason is Reason.INVALID_OUTPUT


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
    whole = await settled(project, {"status": "success", "result": {"truncated": True, "a": 1}})
    assert (whole.envelope.status, whole.envelope.data) == ("partial", {"truncated": True, "a": 1})


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
    ("said", "message"),
    [
        ({}, "Tiny reported an error but did not say which."),
        ({"error": ""}, "Tiny reported an error but did not say which."),
        ({"error": {"x": 1}}, "Tiny reported an error but did not say which."),
        ({"message": "No key."}, "No key."),
        ({"result": "No key."}, "No key."),
        ({"result": {"error": "No key."}}, "No key."),
    ],
)
def test_an_error_without_its_text_still_gets_a_clear_sentence(said: dict[str, Any], message: str) -> None:
    assert bad(**said).message == message


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
    said: JsonObject = {"status": "partial", "result": "5"}
    result = result_of("P", said, warnings=["Byte 7 of stdout is not UTF-8.", "x"])
    assert result.partial
    assert result.text == "5\n\nWarning: Byte 7 of stdout is not UTF-8. (1 more in context.warnings)"
    assert len(result_of("P", said, warnings=["x" * 10_000]).text) < 400


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
    "context": {"cwd": "/elsewhere", "params_input": {"password": "x"}, "truncation_skip": True, "page": 1},
}


@pytest.mark.requirement("envelope:whole")
async def test_a_whole_envelope_is_taken_as_it_is(project: Path) -> None:
    envelope = (await settled(project, WHOLE)).envelope
    assert envelope.to_dict() == {
        **WHOLE,
        "stats": {"time_ms": 0.0, "rows": 9},
        "context": {"cwd": ".", "params_input": {"text": "asked"}, "truncation_skip": True, "page": 1},
    }


@pytest.mark.requirement("envelope:whole")
async def test_an_envelope_without_stats_and_context_is_whole_enough(project: Path) -> None:
    for status in ("success", "partial"):
        envelope = (await settled(project, {"status": status, "data": {"a": 1}, "text": "Done."})).envelope
        assert (envelope.status, envelope.data, envelope.text) == (status, {"a": 1}, "Done.")


@pytest.mark.requirement("envelope:whole")
async def test_an_envelope_with_an_error_keeps_code_text_data_and_reason(project: Path) -> None:
    said = {
        "status": "error",
        "data": {"near": "Paris"},
        "text": "There is no city Pariss. Did you mean Paris?",
        "error": {"code": "NOT_FOUND", "message": "There is no city Pariss."},
        "stats": {"time_ms": 1},
        "context": {"cwd": ".", "params_input": {}, "reason": "NO_SUCH_CITY"},
    }
    envelope = (await settled(project, said)).envelope
    assert envelope.to_dict() == {
        **said,
        "stats": {"time_ms": 0.0},
        "context": {"cwd": ".", "params_input": {"text": "asked"}, "reason": "NO_SUCH_CITY"},
    }


@pytest.mark.requirement("envelope:whole")
async def test_an_envelope_that_is_not_valid_is_read_as_any_other_answer(project: Path) -> None:
    said = {"status": "success", "data": [1], "text": "Done."}
    envelope = (await settled(project, said)).envelope
    assert (envelope.status, envelope.text, envelope.data) == ("success", "Done.", {"data": [1], "text": "Done."})
    odd = (await settled(project, {**WHOLE, "context": {"reason": "lower case"}})).envelope
    assert (odd.status, odd.text) == ("partial", WHOLE["text"])


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
def test_whatever_is_printed_ends_in_a_result_or_a_failure_that_an_envelope_can_carry(said: Any, status: str) -> None:
    envelope = enveloped({**said, "status": status})
    assert (envelope.status is Status.ERROR) == (envelope.error is not None)
    assert envelope.error is not None or envelope.context["warnings"] == ["noise"]
