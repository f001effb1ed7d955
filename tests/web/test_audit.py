"""The audit trail: who allowed or changed what, when and from where, and the confinement of each run."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from tests.cli.test_cli import Shell
from tests.plugins.folders import make_plugin
from tests.web.conftest import RunningServer, run_server
from tests.web.test_access import sign_in
from tests.web.test_approvals import request_approval, wait_for_end
from toolyard.engine.history.audit import AUDIT_S
from toolyard.protocol.records.audit_record import AUDIT
from toolyard.protocol.records.call_record import CallResult
from toolyard.protocol.store import Query
from toolyard.web.app import make_api
from toolyard.web.routing import Route
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("trust:audit")

# Routes that change nothing for later, run something that the journal has, or are recorded by the engine.
NOT_AUDITED = {
    *(("POST", path) for path in ("/v1/approvals/{id}/allow", "/v1/approvals/{id}/deny", "/v1/approvals/bulk")),
    *(("POST", "/v1/approvals/rules"), ("DELETE", "/v1/approvals/rules/{id}")),
}
HARMLESS_PREFIXES = (
    *(
        "/v1/chat",
        "/v1/conversations",
        "/v1/responses",
        "/v1/messages",
        "/v1/assistants",
        "/v1/attachments",
        "/v1/tools",
        "/v1/human",
        "/v1/tasks",
        "/v1/calls",
        "/v1/reply",
        "/mcp",
    ),
    *("/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/images", "/v1/audio", "/v1/interrupt"),
    *("/plugin-callback", "/ws-ticket", "/v1/upstream/test", "/v1/setup/done", "/v1/approvals/test"),
    *("/v1/schedules/preview", "/v1/plugins/{name}/cases", "/v1/prompts/fill"),
)
HARMLESS = {
    *(("POST", "/v1/plugins/install"), ("DELETE", "/v1/plugins/install/{staged}")),
    *(("POST", "/v1/plugins/{name}/reload"), ("POST", "/v1/mcp/servers/{name}/look")),
    *(("POST", "/v1/backup/restore"), ("DELETE", "/v1/backup/restore/{staged}")),
}


async def read_audit(running: RunningServer, query: str = "?only=decisions") -> list[dict[str, Any]]:
    answer = await running.get(f"/v1/audit{query}")
    assert answer.status == 200, answer.body
    rows: list[dict[str, Any]] = answer.json["data"]
    return rows


async def find_action(running: RunningServer, action: str) -> dict[str, Any]:
    (entry,) = [one for one in await read_audit(running) if one["action"] == action]
    return entry


async def test_answers_and_rules_are_recorded_with_who_when_and_from_where(running_server: RunningServer) -> None:
    waiting, (id_,) = await request_approval(running_server, "Write", path="a.txt", content="x")
    await running_server.post(f"/v1/approvals/{id_}/allow", {"always": True})
    outcome = await wait_for_end(waiting)
    allowed = await find_action(running_server, "approval.allowed")
    assert [allowed[name] for name in ("by", "way", "address", "tool", "target")] == [
        *("key:owner", "key", "127.0.0.1", "Write", id_)
    ]
    assert outcome.envelope.error is None
    rule = await find_action(running_server, "rule.added")
    assert (rule["tool"], rule["detail"]["effect"], rule["by"]) == ("Write", "allow", "key:owner")
    await running_server.request("DELETE", f"/v1/approvals/rules/{rule['target']}")
    revoked = await find_action(running_server, "rule.revoked")
    assert (revoked["target"], revoked["address"]) == (rule["target"], "127.0.0.1")
    (run,) = await read_audit(running_server, "?only=runs&tool=Write")
    assert (run["action"], run["target"], run["detail"]["state"]) == (
        "call.run",
        allowed["detail"]["call_id"],
        "success",
    )


async def test_keys_settings_and_sign_ins_are_recorded_without_their_secrets(running_server: RunningServer) -> None:
    made = (await running_server.post("/v1/keys", {"name": "phone", "scopes": ["chat"]})).json
    await running_server.request("DELETE", f"/v1/keys/{made['id']}")
    values = {"values": {"upstream_key": "sk-very-secret-key", "history_days": 31}}
    assert (await running_server.request("PATCH", "/v1/settings?check=true", json=values)).status == 200
    assert (await running_server.request("PATCH", "/v1/settings", json=values)).status == 200
    assert (await sign_in(running_server, key=running_server.key)).status == 303
    assert (await sign_in(running_server, key="wrong")).status == 401
    entries = await read_audit(running_server)
    assert [one["action"] for one in reversed(entries)] == [
        *("key.created", "key.revoked", "settings.changed", "session.signed_in")
    ]
    signed_in, changed, revoked, created = entries
    assert (created["target"], created["detail"]) == (made["id"], {"name": "phone", "scopes": ["chat"]})
    assert revoked["target"] == made["id"]
    assert sorted(changed["detail"]["settings"]) == ["history_days", "upstream_key"]
    assert [signed_in[name] for name in ("by", "way", "address")] == ["key:owner", "session", "127.0.0.1"]
    stored = json.dumps(entries)
    assert (made["key"] in stored, "sk-very-secret-key" in stored, running_server.key in stored) == (False,) * 3


async def test_plugins_that_are_allowed_and_disabled_are_recorded_with_their_fingerprint(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "project" / "Plugin", "Echo")
    (folder / "main.py").write_text('print(\'{"status": "success", "result": "hi"}\')')
    async with run_server(tmp_path) as running:
        shown = (await running.get("/v1/plugins/Echo")).json
        body = {"fingerprint": shown["review"]["fingerprint"]}
        assert (await running.post("/v1/plugins/Echo/allow", body)).status == 200
        assert (await running.post("/v1/plugins/Echo/disable")).status == 200
        allowed, disabled = await find_action(running, "plugin.allowed"), await find_action(running, "plugin.disabled")
        assert (allowed["plugin"], allowed["detail"]["fingerprint"]) == ("Echo", body["fingerprint"])
        assert disabled["plugin"] == "Echo"
        assert len(await read_audit(running, "?plugin=Echo&only=decisions")) == 2
        assert await read_audit(running, "?plugin=Other") == []


async def test_a_request_that_is_refused_is_not_recorded(running_server: RunningServer) -> None:
    small = running_server.make_key(Scope.CHAT)
    assert (await running_server.post("/v1/keys", {"name": "x", "scopes": ["admin"]}, key=small)).status == 403
    assert (await running_server.request("DELETE", "/v1/keys/unknown")).status == 404
    assert await read_audit(running_server) == []


async def test_only_an_admin_reads_the_trail(running_server: RunningServer) -> None:
    for scopes in ((Scope.CHAT, Scope.TOOLS, Scope.APPROVE), ()):
        key = running_server.make_key(*scopes)
        assert (await running_server.get("/v1/audit", key=key)).status == 403
    assert (await running_server.get("/v1/audit", key=None)).status == 401


async def test_a_run_has_the_confinement_that_its_result_tells(running_server: RunningServer) -> None:
    await running_server.post("/v1/tools/LS", {"path": "."})
    (run,) = await read_audit(running_server, "?only=runs")
    assert run["detail"]["confinement"] is None
    stored = await running_server.yard.state.store.get("result", run["target"])
    assert stored is not None
    result = CallResult.from_record(stored)
    envelope: dict[str, Any] = {**(result.envelope or {})}
    envelope["context"] = {**envelope["context"], "confinement": {"level": "full"}}
    changed = result._replace(envelope=envelope).to_record()
    object.__setattr__(changed, "version", stored.version)
    assert await running_server.yard.state.store.commit([changed])
    (run,) = await read_audit(running_server, "?only=runs&by=key:owner")
    assert run["detail"]["confinement"] == {"level": "full"}


async def test_pages_follow_each_other_over_decisions_and_runs(running_server: RunningServer) -> None:
    for number in range(4):
        await running_server.post("/v1/keys", {"name": f"key {number}", "scopes": ["chat"]})
        await running_server.post("/v1/tools/LS", {"path": "."})
    seen, after = [], ""
    while True:
        page = (await running_server.get(f"/v1/audit?limit=3{after}")).json
        seen += [one["action"] for one in page["data"]]
        if not page["next"]:
            break
        after = f"&after={page['next']}"
    assert seen == ["call.run", "key.created"] * 4


async def test_every_route_that_changes_something_is_audited_or_named_here(running_server: RunningServer) -> None:
    routes = [
        (method, route.path, isinstance(route, Route) and route.audited is not None)
        for route in list_api_routes(running_server)
        for method in (route.methods or set()) - {"GET", "HEAD"}
    ]
    known = {*NOT_AUDITED, *HARMLESS}
    missing = [
        (method, path)
        for method, path, is_audited in routes
        if not is_audited and (method, path) not in known and not path.startswith(HARMLESS_PREFIXES)
    ]
    assert missing == []
    assert sum(is_audited for *_, is_audited in routes) > 25
    assert known - {(method, path) for method, path, _ in routes} == set()


def list_api_routes(running: RunningServer) -> list[APIRoute]:
    parts = running.server._make_parts(running.server._make_reloader())
    return [route for route in make_api(running.yard, parts).routes if isinstance(route, APIRoute)]


async def test_entries_are_found_by_their_action_and_by_any_text_in_them(running_server: RunningServer) -> None:
    for name in ("phone", "tablet"):
        await running_server.post("/v1/keys", {"name": name, "scopes": ["chat"]})
    await running_server.request("PATCH", "/v1/settings", json={"values": {"history_days": 31}})
    assert (await running_server.post("/v1/tools/LS", {})).status == 200

    async def find(query: str) -> list[str]:
        return [one["action"] for one in await read_audit(running_server, query)]

    assert await find("?action=key") == ["key.created", "key.created"]
    assert await find("?action=key.created&text=PHONE") == ["key.created"]
    assert await find("?action=key.revoked") == []
    assert await find("?action=ke") == [], "only whole parts of an action count"
    assert await find("?text=history_days") == ["settings.changed"]
    assert await find("?action=call.run") == ["call.run"]
    assert await find("?text=ls&only=runs") == ["call.run"]
    assert await find("?text=127.0.0.1&limit=2") == ["settings.changed", "key.created"]


async def test_entries_outlive_the_history_and_go_after_a_year(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        await running.post("/v1/keys", {"name": "x", "scopes": ["chat"]})
        retention, store = running.yard.state._retention, running.yard.state.store
        now = running.yard.clock.now()
        retention._kept_s = -60.0  # whatever has ended is too old
        await retention.sweep()
        assert await store.count(AUDIT, Query()) == 1
        assert await store.remove(AUDIT, now.timestamp() - AUDIT_S, states=("kept",), limit=9) == 0


def test_the_command_line_records_what_it_does_and_shows_the_trail(project: Path, tmp_path: Path) -> None:
    shell = Shell(project, tmp_path)
    make_plugin(project / "Plugin", "Echo")
    shell.environment["SSH_CONNECTION"] = "192.0.2.7 50000 192.0.2.1 22"
    assert shell.run("plugin", "allow", "Echo", "--yes").returncode == 0
    assert shell.run("approval", "rules", "add", "Write", "--deny").returncode == 0
    assert shell.run("call", "LS", "path=.").returncode == 0
    entries = json.loads(shell.run("audit", "--json").stdout)
    assert [(one["action"], one["way"], one["address"]) for one in entries] == [
        ("call.run", "cli", ""), ("rule.added", "cli", "192.0.2.7"), ("plugin.allowed", "cli", "192.0.2.7"),
    ]  # fmt: skip
    assert [one["action"] for one in json.loads(shell.run("audit", "--plugin", "Echo", "--json").stdout)] == [
        "plugin.allowed"
    ]
    table = shell.run("audit", "--only", "decisions", "--limit", "1")
    assert ("rule.added" in table.stdout, "192.0.2.7" in table.stdout, "Next page" in table.stderr) == (True,) * 3
    older = json.loads(shell.run("audit", "--before", entries[1]["id"], "--json").stdout)
    assert [one["action"] for one in older] == ["plugin.allowed"]
    assert json.loads(shell.run("audit", "--by", "key:owner", "--json").stdout) == []
    assert "there is no entry" in shell.run("audit", "--before", "nothing").stderr
