"""Conversations and rendering over HTTP, for a key that may only chat."""

from pathlib import Path

import pytest

from tests.web.conftest import RunningServer, run_server
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:conversations")

ONE = "/v1/conversations/one"
DRAFT = {"title": "A", "model": "tour", "messages": [{"role": "user", "content": "hello"}], "settings": {"t": 0.5}}


async def test_a_conversation_is_kept_changed_and_deleted(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.CHAT)
    put = await running_server.request("PUT", ONE, json=DRAFT, key=key)
    assert (put.status, put.json["version"], put.json["messages"]) == (200, 1, 1)
    read = (await running_server.get(ONE, key=key)).json
    assert {name: read[name] for name in DRAFT} == DRAFT
    changed = await running_server.request("PUT", ONE, json={**DRAFT, "title": "B", "version": 1}, key=key)
    assert changed.json["version"] == 2
    listed = (await running_server.get("/v1/conversations?search=hello", key=key)).json
    assert [(row["id"], row["title"], row["messages"], row["snippet"]) for row in listed["data"]] == [
        ("one", "B", 1, "hello")
    ]
    patched = await running_server.request("PATCH", ONE, json={"pinned": True, "title": "C"}, key=key)
    assert (patched.json["version"], patched.json["title"], patched.json["pinned"]) == (3, "C", True)
    assert (await running_server.request("PATCH", ONE, json={"messages": []}, key=key)).status == 422
    assert (await running_server.request("PATCH", f"{ONE}x", json={"pinned": True}, key=key)).status == 404
    assert (await running_server.request("DELETE", ONE, key=key)).status == 200
    assert (await running_server.request("DELETE", ONE, key=key)).status == 404
    assert (await running_server.get(ONE, key=key)).status == 404


async def test_a_window_that_did_not_see_the_last_change_is_refused(running_server: RunningServer) -> None:
    await running_server.request("PUT", ONE, json=DRAFT)
    stale = await running_server.request("PUT", ONE, json=DRAFT)
    assert (stale.status, stale.json["error"]["code"]) == (409, "conflict")
    assert "read it again" in stale.json["error"]["message"]


async def test_nobody_sees_the_conversations_of_another_key(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.CHAT)
    await running_server.request("PUT", ONE, json=DRAFT, key=key)
    assert (await running_server.get(ONE)).status == 404
    assert (await running_server.get("/v1/conversations")).json["data"] == []
    assert (await running_server.get(ONE, key=running_server.make_key(Scope.TOOLS))).status == 403


async def test_an_id_or_a_body_that_makes_no_sense_is_refused(running_server: RunningServer) -> None:
    assert (await running_server.request("PUT", "/v1/conversations/a.b", json=DRAFT)).status == 422
    assert (await running_server.request("PUT", ONE, json={**DRAFT, "messages": ["text"]})).status == 422
    deep: object = []
    for _ in range(300):
        deep = [deep]
    assert (await running_server.request("PUT", ONE, json={"messages": [{"content": deep}]})).status == 400


async def test_conversations_are_there_after_a_restart(tmp_path: Path) -> None:
    async with run_server(tmp_path) as first:
        await first.request("PUT", ONE, json=DRAFT)
    async with run_server(tmp_path) as second:
        assert (await second.get(ONE)).json["messages"] == DRAFT["messages"]


@pytest.mark.requirement("http:reply-render")
async def test_what_a_model_says_is_rendered_while_it_is_written(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.CHAT)
    text = '<think>hm</think>{"content": "**now** {{mermaid:a}}'
    sent = {"text": text, "kind": "auto", "partial": True}
    drawn = (await running_server.post("/v1/reply/render", sent, key=key)).json
    assert (drawn["ok"], drawn["kind"], drawn["think"], drawn["error"]) == (True, "reply", "hm", None)
    assert "<strong>now</strong>" in drawn["rendered"]
    assert 'class="pending"' in drawn["rendered"]
    plain = (await running_server.post("/v1/reply/render", {"text": "- a", "kind": "auto"}, key=key)).json
    assert (plain["kind"], "<li>a</li>" in plain["rendered"]) == ("markdown", True)
    broken = (await running_server.post("/v1/reply/render", {"text": '{"a": 1}', "kind": "auto"}, key=key)).json
    assert (broken["ok"], broken["error"]["line"], broken["error"]["column"]) == (False, 1, 1)


@pytest.mark.requirement("http:reply-render")
async def test_only_html_is_rendered_by_halves(running_server: RunningServer) -> None:
    refused = await running_server.post("/v1/reply/render", {"text": "a", "to": "json", "kind": "auto"})
    assert (refused.status, "HTML" in refused.json["error"]["message"]) == (400, True)
