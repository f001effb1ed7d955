"""Structured replies of a chat: asked for in its language, validated, repaired, and returned parsed as well."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.drawing import asks_natively
from tests.gateway.serving import ME, Gateway, chat_body, gateway, request
from tests.gateway.upstream import Script, replies, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.protocol.replies.reply_prompt import Language, write_prompt
from toolyard.protocol.reply import parse_reply

pytestmark = pytest.mark.requirement("chat:structured-reply")
ASKED: dict[str, Any] = {"toolyard": {"reply": "json"}}
GOOD = '{"think": "Short.", "content": "Hello."}'
BROKEN = """Sure! ```json
{think: 'It is a list.', "content": "See {{code:list}}.", // the answer
 "attachments": {"list": {"type": "code", "language": "sh", "content": "ls",},}}
```"""
REPAIRED = {
    "think": "It is a list.",
    "content": "See {{code:list}}.",
    "attachments": {"list": {"type": "code", "content": "ls", "language": "sh"}},
}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def system_of(one: Gateway) -> str:
    first = one.upstream.bodies[-1]["messages"][0]
    return str(first["content"]) if first["role"] == "system" else ""


@pytest.mark.parametrize(
    ("text", "language"), [("Hello there.", Language.ENGLISH), ("你好，请介绍一下。", Language.CHINESE)]
)
async def test_the_model_is_asked_in_the_language_of_the_conversation(
    tmp_path: Path, text: str, language: Language
) -> None:
    prompt = write_prompt(language)
    async with gateway(tmp_path, replies(GOOD)) as one:
        await one.complete(text)
        assert prompt not in json.dumps(one.upstream.bodies[-1], ensure_ascii=False)
        await one.complete(text, **ASKED)
        assert system_of(one).startswith(prompt)
        assert "toolyard" not in one.upstream.bodies[-1]
        assert "tools" in one.upstream.bodies[-1]
        await one.complete(text, system="Be kind. {{Date}}", toolyard={"reply": "json", "offer": "none"})
        assert system_of(one).startswith("Be kind. 2")
        assert system_of(one).endswith(f"\n\n{prompt.rstrip()}")  # nothing about tools, which are off
        await one.complete(text, toolyard={"reply": "text"})
        assert system_of(one) == ""


@pytest.mark.parametrize("offer", ["auto", "text", "none"])
async def test_an_answer_is_repaired_and_returned_parsed_as_well(tmp_path: Path, offer: str) -> None:
    options: dict[str, Any] = {"toolyard": {"reply": "json", "offer": offer}}
    async with gateway(tmp_path, replies(BROKEN, GOOD, "I cannot answer that.")) as one:
        answer = await one.complete(**options)
        message, extension = answer["choices"][0]["message"], answer["toolyard"]
        assert json.loads(message["content"]) == REPAIRED
        assert extension["type"] == "reply"
        assert extension["reply"] == parse_reply(BROKEN).to_dict()
        assert extension["reply"]["repairs"] != []
        answer = await one.complete(**options)
        assert answer["choices"][0]["message"]["content"] == GOOD
        assert answer["toolyard"]["reply"] == parse_reply(GOOD).to_dict()
        answer = await one.complete(**options)
        assert answer["choices"][0]["message"]["content"] == "I cannot answer that."
        error = {"message": "There is no JSON object in the text.", "line": 1, "column": 1}
        assert answer["toolyard"] == {"type": "reply", "reply": {"ok": False, "error": error}}


@pytest.mark.parametrize("show", ["summary", "hidden", "events"])
@pytest.mark.parametrize("offer", ["auto", "none"])
async def test_a_stream_passes_the_text_on_and_ends_with_the_parsed_reply(
    tmp_path: Path, offer: str, show: str
) -> None:
    async with gateway(tmp_path, replies(BROKEN)) as one:
        heard = await one.stream(toolyard={"reply": "json", "offer": offer, "show": show})
        assert (heard.text, heard.finishes, heard.done) == (BROKEN, ["stop"], 1)
        (parsed,) = [event["toolyard"] for event in heard.events if event.get("toolyard", {}).get("type") == "reply"]
        assert parsed["reply"] == parse_reply(BROKEN).to_dict()


async def test_tools_run_before_the_reply_and_the_answer_is_the_reply_alone(tmp_path: Path) -> None:
    block = request(text="hello")
    for how in ("native", "text"):

        def model(body: dict[str, Any], how: str = how) -> Script:
            if any(message["role"] == "assistant" for message in body["messages"]):
                return says(BROKEN, stream=False)
            return asks_natively(body, "Say", text="Let me see.") if how == "native" else says(block, stream=False)

        async with gateway(tmp_path / how, model) as one:
            answer = await one.complete(**ASKED)
            content = answer["choices"][0]["message"]["content"]
            assert (json.loads(content), len(one.ran)) == (REPAIRED, 1)
            assert "Answer in this form once you need no more" in system_of(one)
            history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": content}]
            body = {"messages": [*history, {"role": "user", "content": "And?"}], **ASKED}
            await one.chat.complete(ClientRequest(body, caller=ME))
            sent = one.upstream.bodies[-1]["messages"]
            assert "Said it." in json.dumps(sent)  # what the tool said is remembered with the repaired answer
            assert sent[-2] == {"role": "assistant", "content": content}


async def test_a_call_of_the_clients_own_tool_is_no_reply(tmp_path: Path) -> None:
    async with gateway(tmp_path, lambda body: asks_natively(body, "weather")) as one:
        for offer in ("none", "native"):
            answer = await one.complete(tools=[WEATHER], toolyard={"reply": "json", "offer": offer})
            assert "toolyard" not in answer
            assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"


async def test_an_unknown_form_and_several_replies_are_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(GOOD)) as one:
        wrong = await one.complete(toolyard={"reply": "xml"})
        assert wrong["error"]["message"] == "'reply' is one of text, json, not 'xml'"
        several = await one.complete(n=2, **ASKED)
        assert several["error"]["message"].startswith("a structured reply is one")
        assert one.upstream.bodies == []


async def test_openais_client_gets_the_parsed_reply(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(BROKEN), served=True) as one, one.client() as client:
        messages: list[Any] = [{"role": "user", "content": "Hi."}]
        done = await client.chat.completions.create(model="scripted", messages=messages, extra_body=ASKED)
        extension: Any = done.model_extra
        assert extension["toolyard"]["reply"]["content"] == "See {{code:list}}."
        stream = await client.chat.completions.create(
            model="scripted", messages=messages, extra_body=ASKED, stream=True
        )
        found = [extra["toolyard"] async for event in stream if (extra := event.model_extra) and "toolyard" in extra]
        assert [one["reply"]["ok"] for one in found] == [True]


async def test_a_chat_with_json_as_its_response_format_is_unchanged(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(GOOD)) as one:
        body = chat_body("Hi.", response_format={"type": "json_object"})
        run = await one.chat.complete(ClientRequest(body, caller=ME))
        assert "toolyard" not in json.loads(run.body)
        assert one.upstream.bodies == [body]
