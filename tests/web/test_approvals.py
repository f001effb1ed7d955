"""Approvals for people who decide: why, what would change, for how long, and what a rule would do."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from tests.fakes import FakeTool, says
from tests.gateway.serving import request
from tests.gateway.test_served import server as chatting
from tests.gateway.upstream import replies
from tests.waiting import wait_for_value
from tests.web.conftest import RunningServer, run_server
from toolyard.protocol.tool import Origin, Outcome, Risk
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:records")

BEFORE, AFTER = "one\ntwo\n", "one\nthree\n"


async def request_approval(
    running: RunningServer, tool: str = "Write", chat: str = "", count: int = 1, **arguments: Any
) -> tuple[asyncio.Task[Outcome], list[str]]:
    """A call of a chat that waits for its approval, and the ids of all that wait then, the newest first."""
    call = running.yard.calls.request(tool, arguments, caller="key:owner", origin=Origin.CHAT)
    waiting = asyncio.create_task(running.yard.calls.settle(replace(call, chat=chat)))
    answer = await wait_for_value(
        lambda: running.get("/v1/approvals?state=pending"), lambda answer: len(answer.json["data"]) >= count
    )
    return waiting, [one["id"] for one in answer.json["data"]]


async def wait_for_end(waiting: "asyncio.Task[Outcome]") -> Outcome:
    async with asyncio.timeout(60):
        return await waiting


async def test_an_approval_says_why_it_asks_and_what_it_would_change(running_server: RunningServer) -> None:
    (running_server.project / "a.txt").write_text(BEFORE)
    waiting, (id_,) = await request_approval(running_server, "Edit", path="a.txt", old_string="two", new_string="three")
    view = (await running_server.get(f"/v1/approvals/{id_}")).json
    assert (view["because"], view["reason"]) == ("write", "Edit changes files.")
    assert view["rule"] == {"tool": "Edit", "command": "", "effect": "allow"}
    (file,) = view["patch"]
    assert (file["path"], file["operation"]) == ("a.txt", "update")
    assert file["structured_patch"][0]["lines"] == [" one", "-two", "+three"]
    assert (view["command_line"], view["patch_problem"], view["answered_by"]) == (None, "", None)
    assert (running_server.project / "a.txt").read_text() == BEFORE
    await running_server.post(f"/v1/approvals/{id_}/deny", {"reason": "not now"})
    assert (await wait_for_end(waiting)).envelope.error
    view = (await running_server.get(f"/v1/approvals/{id_}")).json
    assert (view["answered_by"], view["note"], view["patch"]) == ("key:owner", "not now", None)
    assert view["answered"] >= view["created"]


@pytest.mark.requirement("s:S-98")
async def test_what_is_masked_says_so_and_only_its_owner_can_reveal_it(running_server: RunningServer) -> None:
    yard = running_server.yard
    yard.tools.add(FakeTool(says, name="Runs", parameters={"type": "object"}, risk=Risk.EXECUTE))
    waiting, (id_,) = await request_approval(running_server, "Runs", access_token="rm -rf ~", text="x")
    body = (await running_server.get(f"/v1/approvals/{id_}")).json
    assert body["arguments"] == {"access_token": "[masked, 8 characters]", "text": "x"}
    assert body["hidden"] == [{"at": "/access_token", "characters": 8}]
    revealed = await running_server.get(f"/v1/approvals/{id_}/arguments")
    assert revealed.json == {"id": id_, "arguments": {"access_token": "rm -rf ~", "text": "x"}}
    key = running_server.make_key(Scope.APPROVE)
    assert (await running_server.get(f"/v1/approvals/{id_}/arguments", key=key)).status == 403
    await running_server.post(f"/v1/approvals/{id_}/deny", {})
    await wait_for_end(waiting)
    late = await running_server.get(f"/v1/approvals/{id_}/arguments")
    assert (late.status, "no longer stored" in late.json["error"]["message"]) == (409, True)
    assert (await running_server.get("/v1/approvals/none/arguments")).status == 404


async def test_a_list_has_the_beginning_of_the_arguments_and_one_approval_all_of_them(
    running_server: RunningServer,
) -> None:
    content = "文" * 300_000 + "the end"
    waiting, (id_,) = await request_approval(running_server, path="a.txt", content=content)
    listed = await running_server.get("/v1/approvals?state=pending")
    (row,) = listed.json["data"]
    assert len(listed.body) < 4000
    assert row["summary"].startswith('{"path":"a.txt","content":"文文')
    assert (len(row["summary"]), row["arguments_bytes"] > 900_000, "arguments" in row) == (300, True, False)
    body = (await running_server.get(f"/v1/approvals/{id_}")).json
    assert body["arguments"] == {"path": "a.txt", "content": content}
    await running_server.post(f"/v1/approvals/{id_}/deny")
    await wait_for_end(waiting)


@pytest.mark.requirement("approval:auto-safe", "s:S-52")
async def test_only_a_key_that_may_approve_chats_in_the_mode_auto_safe(running_server: RunningServer) -> None:
    requested = {
        "model": "tour",
        "messages": [{"role": "user", "content": "write a file"}],
        "toolyard": {"mode": "auto-safe"},
    }
    for scopes in ([Scope.CHAT], [Scope.CHAT, Scope.TOOLS]):
        refused = await running_server.post("/v1/chat/completions", requested, key=running_server.make_key(*scopes))
        assert (refused.status, refused.json["error"]["code"]) == (403, "forbidden")
    assert (await running_server.get("/v1/calls")).json["data"] == []
    key = running_server.make_key(Scope.CHAT, Scope.APPROVE)
    async with asyncio.timeout(60):
        assert (await running_server.post("/v1/chat/completions", requested, key=key)).status == 200
    assert (running_server.project / "tour" / "hello.md").exists()
    (call,) = (await running_server.get("/v1/calls")).json["data"]
    view = (await running_server.get(f"/v1/calls/{call['id']}")).json
    assert [step["what"] for step in view["timeline"]][1] == "unasked"
    body = (await running_server.get(f"/v1/approvals/{view['approval']['id']}")).json
    assert (body["state"], body["because"], body["answered_by"]) == ("allowed", "auto-safe", call["caller"])


async def test_what_cannot_be_done_is_told_before_anybody_allows_it(running_server: RunningServer) -> None:
    waiting, (id_,) = await request_approval(running_server, "Edit", path="none.txt", old_string="a", new_string="b")
    body = (await running_server.get(f"/v1/approvals/{id_}")).json
    assert body["patch"] is None
    assert "none.txt" in body["patch_problem"]
    await running_server.post(f"/v1/approvals/{id_}/deny")
    await wait_for_end(waiting)


async def test_a_plugin_is_shown_with_its_command_line_and_never_run_to_see(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    add_plugin("Maker", "import pathlib\npathlib.Path('ran').write_text('')\n")
    async with run_server(tmp_path) as running:
        waiting, (id_,) = await request_approval(running, "Maker", dry_run=True)
        body = (await running.get(f"/v1/approvals/{id_}")).json
        assert body["command_line"][-1].endswith("main.py")
        assert (body["because"], body["patch"]) == ("execute", None)
        assert not (tmp_path / "given" / "Maker" / "ran").exists()
        await running.post(f"/v1/approvals/{id_}/deny")
        await wait_for_end(waiting)


async def test_a_rule_for_a_chat_holds_in_that_chat_alone(running_server: RunningServer) -> None:
    waiting, (id_,) = await request_approval(running_server, chat="talk", path="a.txt", content="1")
    assert (await running_server.post(f"/v1/approvals/{id_}/allow", {"for": "chat"})).status == 200
    assert (await wait_for_end(waiting)).envelope.error is None
    free = running_server.yard.calls.request(
        "Write", {"path": "b.txt", "content": ""}, caller="key:owner", origin=Origin.CHAT
    )
    async with asyncio.timeout(60):
        assert (await running_server.yard.calls.settle(replace(free, chat="talk"))).envelope.error is None
    (rule,) = (await running_server.get("/v1/approvals/rules")).json["data"]
    assert (rule["chat"], rule["hits"], rule["last_used"] is not None) == ("talk", 1, True)
    waiting, (id_,) = await request_approval(running_server, chat="other", path="c.txt", content="1")
    await running_server.post(f"/v1/approvals/{id_}/deny")
    await wait_for_end(waiting)
    assert (await running_server.request("DELETE", f"/v1/approvals/rules/{rule['id']}")).status == 200
    assert (await running_server.get("/v1/approvals/rules")).json["data"] == []


async def test_how_often_a_rule_was_used_is_known_after_a_restart(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        await running.post("/v1/approvals/rules", {"tool": "Write", "effect": "allow"})
        for name in "ab":
            call = running.yard.calls.request("Write", {"path": name, "content": ""}, origin=Origin.CHAT)
            assert (await running.yard.calls.settle(call)).envelope.error is None
        (before,) = (await running.get("/v1/approvals/rules")).json["data"]
    async with run_server(tmp_path) as running:
        (after,) = (await running.get("/v1/approvals/rules")).json["data"]
    assert (after["hits"], after["last_used"]) == (before["hits"], before["last_used"])
    assert after["hits"] == 2


async def test_a_call_outside_of_chats_is_not_allowed_for_its_chat(running_server: RunningServer) -> None:
    waiting, (id_,) = await request_approval(running_server, path="a.txt", content="1")
    assert (await running_server.post(f"/v1/approvals/{id_}/allow", {"for": "chat"})).status == 409
    assert (await running_server.post(f"/v1/approvals/{id_}/allow", {"for": "always"})).status == 200
    await wait_for_end(waiting)
    (rule,) = (await running_server.get("/v1/approvals/rules")).json["data"]
    assert (rule["tool"], rule["chat"]) == ("Write", None)


async def test_several_are_allowed_only_when_they_ask_for_the_same(running_server: RunningServer) -> None:
    one, _ = await request_approval(running_server, path="a.txt", content="1")
    two, _ = await request_approval(running_server, path="a.txt", content="2", count=2)
    three, (last, second, first) = await request_approval(running_server, path="a.txt", content="2", count=3)
    mixed = await running_server.post("/v1/approvals/bulk", {"ids": [first, second], "effect": "allow"})
    assert mixed.status == 409
    same = await running_server.post("/v1/approvals/bulk", {"ids": [second, last], "effect": "allow"})
    assert [(row["state"], row["ok"]) for row in same.json["data"]] == [("allowed", True)] * 2
    every = {"ids": [first, second], "effect": "deny", "reason": "enough"}
    denied = await running_server.post("/v1/approvals/bulk", every)
    assert [(row["state"], row["ok"]) for row in denied.json["data"]] == [("denied", True), ("allowed", False)]
    assert "enough" in (await wait_for_end(one)).envelope.text
    await asyncio.gather(wait_for_end(two), wait_for_end(three))
    assert (await running_server.post("/v1/approvals/bulk", {"ids": ["none"], "effect": "deny"})).status == 404


async def test_what_would_become_of_a_call_is_told_without_running_it(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.APPROVE)

    async def tried(tool: str, **arguments: Any) -> tuple[str, str]:
        body = (await running_server.post("/v1/approvals/test", {"tool": tool, "arguments": arguments}, key=key)).json
        assert body["asks"] is (body["effect"] == "ask")
        return body["effect"], body["because"]

    assert await tried("Read", path="a") == ("run", "read")
    assert await tried("Write", path="a", content="") == ("ask", "write")
    assert await tried("Write", path=".bashrc", content="") == ("ask", "protected")
    await running_server.post("/v1/approvals/rules", {"tool": "Write", "effect": "allow"}, key=key)
    assert await tried("Write", path="a", content="") == ("run", "allow-rule")
    assert await tried("Write", path=".bashrc", content="") == ("ask", "protected")
    await running_server.post("/v1/approvals/rules", {"tool": "Write", "effect": "deny"}, key=key)
    assert await tried("Write", path="a", content="") == ("deny", "deny-rule")
    assert (await running_server.post("/v1/approvals/test", {"tool": "Nothing"}, key=key)).status == 404
    assert not (running_server.project / "a").exists()
    rules = (await running_server.get("/v1/approvals/rules")).json["data"]
    assert [rule["hits"] for rule in rules] == [0, 0]


async def test_a_rule_is_previewed_on_the_calls_that_were_made(running_server: RunningServer) -> None:
    for tool, arguments in (
        ("LS", {}),
        ("LS", {}),
        ("FileOperator", {"command": "ListDirectory", "directoryPath": "."}),
    ):
        await running_server.post(f"/v1/tools/{tool}", arguments)

    async def matched(query: str) -> tuple[int, int]:
        body = (await running_server.get(f"/v1/approvals/rules/preview?{query}")).json
        return body["matched"], body["looked_at"]

    assert await matched("tool=LS") == (2, 3)
    assert await matched("tool=FileOperator&command=ListDirectory") == (1, 3)
    assert await matched("tool=FileOperator&command=WriteFile") == (0, 3)
    assert (await running_server.post("/v1/plugins/Shell/enable", {})).status == 200
    await running_server.post("/v1/tools/Shell", {"command": "true"})
    exact = urlencode({"tool": "Shell", "command": '{"command": "true"}'})
    assert (await matched(exact), await matched("tool=Shell&command=true")) == ((1, 4), (0, 4))


async def test_the_approval_of_a_chat_says_what_the_user_asked_for(tmp_path: Path) -> None:
    write = request("Write", path="new.txt", content="x")
    async with chatting(tmp_path, replies(f"I write.\n{write}\n", "That is all.")) as running, asyncio.timeout(60):
        headers = {"Authorization": f"Bearer {running.key}"}
        body = {"model": "m", "messages": [{"role": "user", "content": "Please write it."}]}
        async with aiohttp.ClientSession(running.url, headers=headers) as session:

            async def got(path: str) -> Any:
                async with session.get(path) as response:
                    return await response.json()

            requested = asyncio.create_task(
                session.post("/v1/chat/completions", json=body, headers={"X-Toolyard-Chat": "talk"})
            )
            pending = await wait_for_value(lambda: got("/v1/approvals?state=pending"), lambda page: page["data"])
            view = await got(f"/v1/approvals/{pending['data'][0]['id']}")
            assert (view["chat"], view["excerpt"]) == ("talk", "Please write it.")
            async with session.post(f"/v1/approvals/{view['id']}/allow", json={"for": "chat"}) as allowed:
                assert allowed.status == 200
            (await requested).release()
            (rule,) = (await got("/v1/approvals/rules"))["data"]
            assert rule["chat"] == "talk"
            (call,) = (await got("/v1/calls"))["data"]
            assert call["chat"] == "talk"
