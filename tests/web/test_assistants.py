"""Assistants over HTTP: named chat options of a key."""

from pathlib import Path

import pytest

from tests.web.conftest import RunningServer, run_server
from toolyard.engine.chats import assistants
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:assistants")

PATH = "/v1/assistants"
FULL = {
    "name": "Reviewer",
    "instructions": "Review the code.",
    "model": "gpt",
    "tools": ["Read", "Grep"],
    "mode": "read-only",
    "temperature": 0.2,
    "max_tokens": 900,
    "reasoning_effort": "high",
    "reply": "json",
}


async def test_an_assistant_is_stored_changed_deleted_and_seen_by_its_own_key_only(
    running_server: RunningServer,
) -> None:
    key = running_server.make_key(Scope.CHAT)
    added = await running_server.post(PATH, FULL, key=key)
    assert added.status == 201
    assert {name: added.json[name] for name in FULL} == FULL
    plain = await running_server.post(PATH, {"name": "  A plain one "}, key=key)
    unset = {
        "tools": None,
        "temperature": None,
        "max_tokens": None,
        "reasoning_effort": None,
        "mode": "ask",
        "reply": "text",
    }
    assert {name: plain.json[name] for name in unset} == unset
    listed = (await running_server.get(PATH, key=key)).json["data"]
    assert [one["name"] for one in listed] == ["A plain one", "Reviewer"]
    one = f"{PATH}/{added.json['id']}"
    changed = await running_server.request("PUT", one, json={"name": "Nobody", "tools": []}, key=key)
    assert (changed.json["name"], changed.json["tools"], changed.json["instructions"]) == ("Nobody", [], "")
    assert (await running_server.get(PATH)).json["data"] == [], "another key's"
    assert (await running_server.request("PUT", one, json=FULL)).status == 404
    assert (await running_server.request("DELETE", one)).status == 404
    assert (await running_server.request("DELETE", one, key=key)).status == 200
    assert (await running_server.request("DELETE", one, key=key)).status == 404
    assert [row["name"] for row in (await running_server.get(PATH, key=key)).json["data"]] == ["A plain one"]
    assert (await running_server.get(PATH, key=running_server.make_key(Scope.TOOLS))).status == 403


async def test_options_that_no_chat_can_have_and_too_many_assistants_are_refused(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (
        {"name": " "},
        {"mode": "all"},
        {"temperature": 2.5},
        {"max_tokens": 0},
        {"reasoning_effort": "a lot"},
        {"reply": "xml"},
        {"tools": "all"},
        {"colour": "red"},
    ):
        assert (await running_server.post(PATH, FULL | wrong)).status == 422, wrong
    monkeypatch.setattr(assistants, "MAX_PER_CALLER", 1)
    assert (await running_server.post(PATH, FULL)).status == 201
    full = await running_server.post(PATH, FULL)
    assert (full.status, full.json["error"]["message_code"]) == (409, "assistant.too_many")


async def test_assistants_are_there_after_a_restart(tmp_path: Path) -> None:
    async with run_server(tmp_path) as first:
        await first.post(PATH, FULL)
    async with run_server(tmp_path) as second:
        (kept,) = (await second.get(PATH)).json["data"]
    assert {name: kept[name] for name in FULL} == FULL
