"""Stored responses: got, gone on from, deleted, and in the background."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.native_providers import Reply, ToolUse, scripted, using
from tests.gateway.response_events import ask, check_events, get, parse_stream, post, stream
from tests.gateway.serving import gateway, request
from tests.gateway.upstream import Script, replies, says, streamed
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.protocols.responses import response_turns, stored_responses
from toolyard.gateway.protocols.responses.client_answer import ResponseWriter
from toolyard.gateway.protocols.responses.client_request import parse_request
from toolyard.gateway.turns.turn_events import Gap

BLOCK = request(text="hello")
TRIGGER: Any = {"type": "compaction_trigger"}
FLIP: Any = {"type": "function", "name": "flip", "parameters": {}, "strict": False}


def create(client: openai.AsyncOpenAI) -> Any:
    return client.responses.create


@pytest.mark.requirement("responses:stored")
async def test_the_next_request_goes_on_from_a_response_with_what_its_tools_said_once(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done.", "Again."), served=True) as one,
        one.client() as client,
    ):
        first = await create(client)(model="m", input="Hi", instructions="Be short.")
        second = await create(client)(model="m", input="And?", previous_response_id=first.id)
        await create(client)(model="m", input="More?", previous_response_id=second.id)
        sent = [[(message["role"], message["content"]) for message in body["messages"]] for body in one.upstream.bodies]
    assert second.previous_response_id == first.id
    assert [role for role, _ in sent[2]] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2][1:3] == [("assistant", "Look.\n"), ("tool", 'Said it.\n{"said":"hello"}')]
    assert sent[2][3:] == [("assistant", "Done."), ("user", "And?")]
    assert sent[3] == [*sent[2], ("assistant", "Again."), ("user", "More?")]


@pytest.mark.requirement("responses:stored")
async def test_a_client_that_keeps_the_items_itself_sends_them_back_in_place_of_an_id(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done.", "Again."), served=True) as one,
        one.client() as client,
    ):
        first = await create(client)(model="m", input="Hi", store=False)
        again = [{"role": "user", "content": "Hi"}, *first.output, {"role": "user", "content": "And?"}]
        await create(client)(model="m", input=again, store=False)
        sent = one.upstream.bodies[2]["messages"]
        assert (await get(one.url, f"/{first.id}"))[0] == 404
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sum('Said it.\n{"said":"hello"}' in str(message["content"]) for message in sent) == 1


@pytest.mark.requirement("responses:stored")
async def test_a_client_that_sends_back_the_text_alone_has_its_tool_rounds_remembered(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done.", "Again."), served=True) as one:
        first = await ask(one.url, {"input": "Hi"})
        text = "".join(item["content"][0]["text"] for item in first["output"] if item["type"] == "message")
        history = [("user", "Hi"), ("assistant", text), ("user", "And?")]
        await ask(one.url, {"input": [{"role": role, "content": content} for role, content in history]})
        sent = one.upstream.bodies[2]["messages"]
    assert sum('Said it.\n{"said":"hello"}' in str(message["content"]) for message in sent) == 1


@pytest.mark.requirement("responses:left-out")
async def test_a_client_that_sends_its_texts_one_by_one_has_its_tool_rounds_remembered(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done.", "Again."), served=True) as one:
        first = await ask(one.url, {"input": "Hi"})
        texts = [item for item in first["output"] if item["type"] == "message"]
        await ask(one.url, {"input": [{"role": "user", "content": "Hi"}, *texts, {"role": "user", "content": "And?"}]})
        sent = one.upstream.bodies[2]["messages"]
    assert len(texts) == 2
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert 'Said it.\n{"said":"hello"}' in sent[2]["content"]
    assert sent[3]["content"] == "Done."


@pytest.mark.requirement("responses:left-out")
async def test_a_reference_is_the_stored_item_for_the_key_that_stored_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done.", "Again."), served=True) as one:
        first = await ask(one.url, {"input": "Hi"})
        named = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
        again = {"input": [{"role": "user", "content": "Hi"}, *named, {"role": "user", "content": "And?"}]}
        await ask(one.url, again)
        status, refusal = await post(one.url, {"model": "m", **again}, key="you")
        (mine,) = [[message["content"] for message in body["messages"]] for body in one.upstream.bodies[2:]]
    assert mine == ["Hi", "Look.\n", 'Said it.\n{"said":"hello"}', "Done.", "And?"]
    assert (status, json.loads(refusal)["error"]["code"]) == (404, "item_not_found")


@pytest.mark.requirement("responses:left-out")
async def test_a_client_that_leaves_our_calls_out_beside_its_own_has_them_remembered(tmp_path: Path) -> None:
    """As Codex and pydantic-ai do."""
    tools = [{"type": "function", "name": "Own", "parameters": {"type": "object"}}]
    said = [Reply(calls=(ToolUse("Say", {"text": "hello"}),)), Reply(calls=(ToolUse("Own", id="call_own"),))]
    async with gateway(tmp_path, scripted("chat", *said, Reply(text="Done.")), served=True) as one:
        first = await ask(one.url, {"model": "m+tools", "input": "Hi", "tools": tools})
        own = first["output"][-1]
        result = {"type": "function_call_output", "call_id": own["call_id"], "output": "violet"}
        body = {"model": "m+tools", "input": [{"role": "user", "content": "Hi"}, own, result], "tools": tools}
        await ask(one.url, body)
        sent = one.upstream.bodies[-1]["messages"]
    assert [item["type"] for item in first["output"]] == ["mcp_call", "function_call"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "tool"]
    assert 'Said it.\n{"said":"hello"}' in sent[2]["content"]
    assert sent[4]["content"] == "violet"


@pytest.mark.requirement("responses:stored")
async def test_a_response_is_for_its_key_alone_until_that_deletes_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hello."), served=True) as one, one.client() as me, one.client("you") as you:
        made = await create(me)(model="m", input="Hi", metadata={"a": "b"})
        assert (await me.responses.retrieve(made.id)).to_dict() == made.to_dict()
        items: list[Any] = [item async for item in await me.responses.input_items.list(made.id)]
        for path, method in ((f"/{made.id}", "GET"), (f"/{made.id}/input_items", "GET"), (f"/{made.id}", "DELETE")):
            assert (await get(one.url, path, key="you", method=method))[0] == 404
        with pytest.raises(openai.BadRequestError, match="not found"):
            await create(you)(model="m", input="And?", previous_response_id=made.id)
        await me.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await me.responses.retrieve(made.id)
        status, raw = await post(one.url, {"model": "m", "input": "And?", "previous_response_id": made.id})
    assert [(item.type, item.role, item.content[0].text) for item in items] == [("message", "user", "Hi")]
    assert (status, json.loads(raw)["error"]["code"]) == (400, "previous_response_not_found")


@pytest.mark.requirement("responses:conversation")
async def test_the_turns_of_a_conversation_follow_one_another(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("One.", "Two.", "Three."), served=True) as one:
        first = await ask(one.url, {"input": "Hi", "conversation": "c1"})
        await ask(one.url, {"input": "And?", "conversation": {"id": "c1"}})
        await ask(one.url, {"input": "Other?", "conversation": "c2"})
        await ask(one.url, {"input": "Mine?", "conversation": "c1"}, key="you")
        sent = [[message["content"] for message in body["messages"]] for body in one.upstream.bodies]
    assert first["conversation"] == {"id": "c1"}
    assert sent == [["Hi"], ["Hi", "One.", "And?"], ["Other?"], ["Mine?"]]


@pytest.mark.requirement("responses:conversation")
async def test_a_request_that_failed_is_no_part_of_its_conversation(tmp_path: Path) -> None:
    bad = Script([b'{"error": {"message": "no such model"}}'], status=404, kind="application/json")
    async with gateway(tmp_path, [says("One."), bad, says("Two.")], served=True) as one:
        await ask(one.url, {"input": "Hi", "conversation": "c1"})
        await post(one.url, {"model": "m", "input": "And?", "conversation": "c1"})
        await ask(one.url, {"input": "And?", "conversation": "c1"})
        sent = [message["content"] for message in one.upstream.bodies[2]["messages"]]
    assert sent == ["Hi", "One.", "And?"]


@pytest.mark.requirement("responses:socket")
def test_a_socket_remembers_no_conversation_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MAX_HISTORY", 100)
    session = stored_responses.Session()
    sent = ClientRequest({"model": "m", "input": "Hi"}, caller="key:me")
    asked = parse_request(sent.body)
    done: dict[str, Any] = {"id": "resp_1", "status": "completed", "output": []}
    session.remember(done, stored_responses.LoadedRequest(sent, asked, "", []))
    assert (session.id, len(session.items)) == ("resp_1", 1)
    long = parse_request({"model": "m", "input": "Hi" * 50})
    session.remember({**done, "id": "resp_2"}, stored_responses.LoadedRequest(sent, long, "resp_1", asked.items))
    assert (session.id, session.items) == ("", ())


@pytest.mark.requirement("responses:background")
async def test_a_response_in_the_background_goes_on_and_is_followed_from_any_event(tmp_path: Path) -> None:
    waits = asyncio.Event()
    script = Script(streamed("Hello there."), waits=waits)
    async with gateway(tmp_path, [says(BLOCK), script], served=True) as one, one.client() as client:
        made = await create(client)(model="m", input="Hi", background=True)
        running = await client.responses.retrieve(made.id)
        following = asyncio.create_task(get(one.url, f"/{made.id}?stream=true"))
        waits.set()
        events = parse_stream((await following)[1])
        rest = parse_stream((await get(one.url, f"/{made.id}?stream=true&starting_after=4"))[1])
        done = await client.responses.retrieve(made.id)
        assert (await get(one.url, f"/{made.id}?stream=true", key="you"))[0] == 404
    last = check_events(events)
    assert (made.status, running.status, done.status) == ("queued", "in_progress", "completed")
    assert (last["id"], rest, done.output_text) == (made.id, events[5:], "Hello there.")


@pytest.mark.requirement("responses:background")
async def test_a_response_in_the_background_without_a_tool_is_followed_again_after_its_end(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hello there."), served=True) as one, one.client() as client:
        begun = await create(client)(model="m", input="Hi", background=True, stream=True)
        events = [event async for event in begun]
        again = await client.responses.retrieve(events[0].response.id, stream=True, starting_after=3)
        rest = [event async for event in again]
    assert rest == events[4:]
    assert rest[-1].type == "response.completed"


@pytest.mark.requirement("responses:background")
async def test_only_so_many_responses_run_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_turns, "MAX_BACKGROUND", 1)
    script = Script(streamed("Hello there.")[:2], then="hang")
    async with gateway(tmp_path, [script], served=True) as one, one.client() as client:
        first = await create(client)(model="m", input="Hi", background=True)
        with pytest.raises(openai.RateLimitError, match="1 responses run in the background"):
            await create(client)(model="m", input="Ho", background=True)
        await client.responses.cancel(first.id)
        await create(client)(model="m", input="Ho", background=True)


@pytest.mark.requirement("responses:stored")
def test_a_reader_that_has_missed_something_does_not_end_the_response_for_others() -> None:
    ended: list[Any] = []
    writer = ResponseWriter({"id": "resp_1"}, now=lambda: 0.0, on_end=ended.append, namespaces={})
    writer.take(Gap(0, 5))
    assert (writer.response["status"], ended) == ("failed", [])


@pytest.mark.requirement("responses:background")
async def test_a_response_in_the_background_is_cancelled_with_its_model(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, [Script(streamed("Hello there.")[:2], then="hang")], served=True) as one,
        one.client() as client,
    ):
        made = await create(client)(model="m", input="Hi", background=True)
        cancelled = await client.responses.cancel(made.id)
        again = await client.responses.cancel(made.id)
        await one.upstream.gone.wait()
    assert (cancelled.status, again.status) == ("cancelled", "cancelled")


@pytest.mark.requirement("responses:background", "responses:errors")
async def test_a_response_in_the_background_that_fails_says_why(tmp_path: Path) -> None:
    bad = Script([b'{"error": {"message": "no such model"}}'], status=404, kind="application/json")
    async with gateway(tmp_path, [bad], served=True) as one, one.client() as client:
        made = await create(client)(model="m", input="Hi", background=True)
        await get(one.url, f"/{made.id}?stream=true")
        now = await client.responses.retrieve(made.id)
        foreground = await post(one.url, {"model": "m", "input": "Hi", "background": True, "store": False})
    assert now.status == "failed"
    assert now.error is not None
    assert "no such model" in now.error.message
    assert json.loads(foreground[1])["error"]["param"] == "background"


@pytest.mark.requirement("responses:beside")
async def test_tokens_are_estimated_and_a_conversation_is_compacted(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("They met.", "Yes."), served=True) as one, one.client() as client:
        counted = await client.responses.input_tokens.count(model="m", input="Hi " * 300)
        history: Any = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
        compacted = await client.responses.compact(model="m", input=history)
        await create(client)(model="m", input=[*compacted.output, {"role": "user", "content": "Did they?"}])
        status, raw = await post(one.url, {"input": history}, path="/compact")
        sent = [message["content"] for message in one.upstream.bodies[1]["messages"]]
    assert counted.input_tokens >= 300
    assert [item.type for item in compacted.output] == ["compaction"]
    assert "They met." in sent[0]
    assert sent[1] == "Did they?"
    assert (status, json.loads(raw)["error"]["param"]) == (400, "model")


@pytest.mark.requirement("responses:beside")
async def test_a_compaction_trigger_is_answered_by_a_summary_that_the_next_request_begins_with(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("They met.", " ", "Yes."), served=True) as one, one.client() as client:
        first = await create(client)(model="m+tools", input=[{"role": "user", "content": "Hi"}, TRIGGER], tools=[FLIP])
        empty = await stream(one.url, {"input": [{"role": "user", "content": "Hi"}, TRIGGER]})
        await create(client)(model="m", input=[*first.output, {"role": "user", "content": "Did they?"}])
        sent = one.upstream.bodies
    assert [item.type for item in first.output] == ["compaction"]
    assert not sent[0].get("tools")
    assert sent[0]["messages"][-1]["content"].startswith("Summarise")
    assert check_events(empty)["error"]["message"].startswith("The model wrote no summary")
    assert "They met." in sent[2]["messages"][0]["content"]


@pytest.mark.requirement("responses:beside")
async def test_a_compaction_is_streamed_as_one_item(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("They met."), served=True) as one:
        events = await stream(one.url, {"input": [{"role": "user", "content": "Hi"}, TRIGGER]})
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "in_progress", "output_item.added", "output_item.done", "completed",
    ]  # fmt: skip
    assert check_events(events)["output"][0]["type"] == "compaction"


@pytest.mark.requirement("responses:beside")
async def test_a_side_request_of_codex_gets_no_tools_of_ours(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("They met."), served=True) as one:
        for kind in ("turn", "compaction"):
            turn = {"x_codex_turn_metadata": json.dumps({"turn_id": "t1", "request_kind": kind})}
            await stream(one.url, {"model": "m+tools", "input": kind}, **turn)
        sent = one.upstream.bodies
    assert [bool(body.get("tools")) for body in sent] == [True, False]


@pytest.mark.requirement("responses:beside", "responses:left-out")
async def test_a_summary_is_made_here_and_knows_what_our_tools_said(tmp_path: Path) -> None:
    """Codex leaves our calls out, and most providers that speak Responses know no compaction."""
    call, *rest = Reply(calls=(ToolUse("Say", {"text": "x"}),)), Reply(text="Done."), Reply(text="They met.")
    model = scripted("responses", call, *rest)
    async with gateway(tmp_path, model, served=True, settings=using("responses")) as one:
        await ask(one.url, {"input": "Hi", "store": False})
        items = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}, TRIGGER]
        last = await ask(one.url, {"input": items, "store": False})
        sent = one.upstream.bodies[2]
    assert [item["type"] for item in last["output"]] == ["compaction"]
    assert "Said it." in json.dumps(sent["input"])
    assert not sent.get("tools")


@pytest.mark.requirement("responses:stored")
async def test_what_a_stream_has_shown_is_what_is_stored(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"Look.\n{BLOCK}", "Done."), served=True) as one:
        last = check_events(await stream(one.url, {"input": "Hi"}))
        _, raw = await get(one.url, f"/{last['id']}")
    assert json.loads(raw) == last
