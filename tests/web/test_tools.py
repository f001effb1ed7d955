"""Tools over HTTP: the same runner as everywhere, and answers of every shape."""

import asyncio
import io
import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import Endless, FakeTool
from tests.waiting import wait_for_value
from tests.web.conftest import HttpResponse, RunningServer
from toolyard.dialects import DIALECTS
from toolyard.dialects.plain_name import plain_name
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.records.approval_record import APPROVAL
from toolyard.protocol.store import Query
from toolyard.protocol.tool import MAX_ARGUMENTS, Checkpoint, Result, ToolCall
from toolyard.web.routes.calls import tools as routes
from toolyard.web.routes.calls.tool_details import to_json, to_summary_json

ERROR_FIELDS = {"message", "type", "code", "message_code", "message_params"}
TEXT = {"Content-Type": "text/plain"}
BLOCK = """<<<[TOOL_REQUEST]>>>
maid:「始」Nova「末」,
tool_name:「始」{tool}「末」,
path:「始」{path}「末」
<<<[END_TOOL_REQUEST]>>>
"""


@pytest.mark.requirement("http:tools")
async def test_the_tools_are_listed_and_shown(running_server: RunningServer) -> None:
    listed = await running_server.get("/v1/tools")
    names = [tool["name"] for tool in listed.json["data"]]
    assert {"LS", "Read", "Edit"} <= set(names)
    response = await running_server.get("/v1/tools/Read")
    assert (response.status, response.json["name"], response.json["risk"]) == (200, "Read", "read")
    assert "path" in response.json["parameters"]["properties"]
    assert (await running_server.get("/v1/tools/Nothing")).status == 404


@pytest.mark.requirement("http:too-much-work")
async def test_too_much_work_is_refused_with_the_time_to_come_again_and_a_repeat_runs(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, key = running_server.yard.plugins.host.queue, {"Idempotency-Key": "once"}
    with monkeypatch.context() as full:
        full.setattr(queue, "_at_once", 0)
        full.setattr(queue, "_max_waiting", 0)
        refused = [
            await running_server.post("/v1/tools/EchoPlugin", {"text": "x"}),
            await running_server.post("/v1/tools/EchoPlugin", {"text": "x"}, headers=key),
            await running_server.request(
                "POST", "/v1/human/tool", data=BLOCK.format(tool="EchoPlugin", path="x"), headers=TEXT
            ),
        ]
    for one in refused:
        assert (one.status, one.headers["Retry-After"], one.json["error"]["code"]) == (429, "5", "busy")
        assert "0 calls are waiting already. Try again in a few seconds" in one.json["error"]["message"]
    again = await running_server.post("/v1/tools/EchoPlugin", {"text": "x"}, headers=key)
    assert (again.status, again.json["text"]) == (200, "Echo: x")


@pytest.mark.requirement("http:tool-summaries")
async def test_the_summaries_are_the_list_without_schemas_and_are_built_once(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def note(yard: Any, tool: Any) -> dict[str, Any]:
        built.append(tool.spec.name)
        return to_summary_json(yard, tool)

    monkeypatch.setattr(routes, "to_summary_json", note)
    rows = (await running_server.get("/v1/tools")).json["data"]
    short = await running_server.get("/v1/tool-summaries")
    again = await running_server.get("/v1/tool-summaries")
    assert [row["name"] for row in short.json["data"]] == [row["name"] for row in rows] == built
    assert again.body == short.body
    for row, summary in zip(rows, short.json["data"], strict=True):
        assert not {"parameters", "native", "forms", "examples", "confinement"} & set(summary)
        assert summary["description"] == row["description"].strip().partition("\n")[0][:500]
        same = ("risk", "kind", "plugin", "server", "display_name", "version", "commands", "hidden_characters")
        assert [summary[key] for key in same] == [row[key] for key in same]


@pytest.mark.requirement("http:tool-summaries")
@pytest.mark.parametrize("path", ["/v1/tools", "/v1/tool-summaries"])
async def test_other_requests_are_answered_while_a_list_of_tools_is_built(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    answered = threading.Event()

    def wait(build: Callable[..., dict[str, Any]], yard: Any, tool: Any) -> dict[str, Any]:
        assert answered.wait(60)
        return build(yard, tool)

    monkeypatch.setattr(routes, "to_json", partial(wait, to_json))
    monkeypatch.setattr(routes, "to_summary_json", partial(wait, to_summary_json))
    listing = asyncio.create_task(running_server.get(path))
    assert (await running_server.get("/v1/tools/none-such")).status == 404
    answered.set()
    assert (await listing).status == 200


@pytest.mark.requirement("spec:exported-name")
async def test_a_program_calls_a_tool_by_the_name_of_its_exported_definition(running_server: RunningServer) -> None:
    async def echo(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text=f"{call.tool} ran.")

    running_server.yard.tools.add(FakeTool(echo, name="Film 2.1"))
    name = plain_name("Film 2.1")
    assert (await running_server.get(f"/v1/tools/{name}")).json["name"] == "Film 2.1"
    called = await running_server.post(f"/v1/tools/{name}", {})
    assert (called.status, called.json["text"]) == (200, "Film 2.1 ran.")


@pytest.mark.requirement("http:call", "http:runner")
async def test_a_call_answers_200_with_any_envelope_and_is_journalled(running_server: RunningServer) -> None:
    (running_server.project / "a.txt").write_text("one\ntwo\n")
    good = await running_server.post("/v1/tools/Read", {"path": "a.txt"})
    assert (good.status, good.json["status"], good.json["data"]["content"]) == (200, "success", "1\tone\n2\ttwo")
    bad = await running_server.post("/v1/tools/Read", {"path": "missing.txt"})
    assert (bad.status, bad.json["error"]["code"]) == (200, "NOT_FOUND")
    unknown = await running_server.post("/v1/tools/Nothing", {})
    assert (unknown.status, unknown.json["error"]["code"]) == (200, "NOT_FOUND")
    calls = await running_server.get("/v1/calls")
    assert [(call["tool"], call["caller"], call["origin"]) for call in calls.json["data"]] == [
        ("Nothing", "key:owner", "http"),
        ("Read", "key:owner", "http"),
        ("Read", "key:owner", "http"),
    ]


@pytest.mark.requirement("plugin:vcp-v2")
async def test_vcp_v2_passes_unchanged_over_http_where_secrets_are_masked(running_server: RunningServer) -> None:
    output: dict[str, Any] = {
        "status": "success",
        "result": {
            "content": [
                {"type": "text", "text": "Done.", "cache": True},
                {"type": "image_url", "image_url": {"url": "https://a.example/x.png", "detail": "high"}},
                {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zy8+"}},
            ],
            "details": {"a": 1},
        },
    }

    async def says(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return read_plugin_result("Say", output)

    running_server.yard.mask.add(["a-secret-of-the-host"])
    running_server.yard.tools.add(FakeTool(says, name="Say"))
    assert (await running_server.post("/v1/tools/Say?dialect=vcp", {})).json == output


@pytest.mark.requirement("http:call:dialect")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_call_answers_in_the_dialect_that_was_asked_for(running_server: RunningServer, dialect: str) -> None:
    (running_server.project / "a.txt").write_text("one\n")
    response = await running_server.post(f"/v1/tools/Read?dialect={dialect}", {"path": "a.txt"})
    mark = {"envelope": "context", "vcp": "result", "backend": "tool_use_id", "openai": "role"}
    mark |= {"anthropic": "is_error", "mcp": "isError"}
    assert response.status == 200
    assert mark[dialect] in response.json
    assert (await running_server.post("/v1/tools/Read?dialect=klingon", {})).status == 422


@pytest.mark.requirement("python:tool-call-id")
async def test_a_call_over_http_answers_the_call_of_a_model(running_server: RunningServer) -> None:
    for dialect, key in (("openai", "tool_call_id"), ("anthropic", "tool_use_id"), ("backend", "tool_use_id")):
        response = await running_server.post(f"/v1/tools/LS?dialect={dialect}&tool_call_id=toolu_7", {})
        assert (response.status, response.json[key]) == (200, "toolu_7")
        assert response.headers["X-Call-Id"] != "toolu_7"  # which is unique, and the model's need not be
    refused = await running_server.post("/v1/tools/LS?dialect=mcp&tool_call_id=toolu_7", {})
    assert (refused.status, "with one of backend, openai" in refused.json["error"]["message"]) == (400, True)


@pytest.mark.requirement("s:S-91:data")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_exact_secret_of_the_host_goes_out_over_http_in_any_part_of_an_answer(
    running_server: RunningServer, dialect: str
) -> None:
    secret = "sk-of-the-provider"
    running_server.yard.mask.add([secret])
    (running_server.project / "a.env").write_text(f"KEY={secret}\nNAME=x\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"path": "a.env"}),
        ("Grep", {"pattern": "KEY"}),
        ("Edit", {"path": "a.env", "old_string": "NAME=x", "new_string": "NAME=y"}),
        ("FileOperator", {"command1": "ReadFile", "filePath1": "a.env", "command2": "ReadFile", "filePath2": "a.env"}),
        ("Read", {"path": f"{secret}.txt"}),
    ]
    for tool, arguments in calls:
        response = await running_server.post(f"/v1/tools/{tool}?dialect={dialect}", arguments)
        assert response.status == 200
        assert secret not in json.dumps(response.json), tool
        assert tool == "Edit" or "[masked]" in json.dumps(response.json), tool
    assert (running_server.project / "a.env").read_text() == f"KEY={secret}\nNAME=y\n"
    assert secret in str((await running_server.yard.call("Read", {"path": "a.env"})).data["content"])


NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": "1", "metadata": {}, "outputs": [],
                                  "execution_count": None, "id": "a"}],
                       "metadata": {}, "nbformat": 4, "nbformat_minor": 5})  # fmt: skip


@pytest.mark.requirement("s:S-91:data")
@pytest.mark.parametrize("sign", ["[masked]", "[masked, 23 characters]"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"path": "new.txt", "content": "KEY={}"}),
        ("Write", {"path": "a.txt", "content": "KEY={}", "dry_run": True}),
        ("Edit", {"path": "a.txt", "old_string": "one", "new_string": "{}"}),
        ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "{}"}]}),
        ("ApplyPatch", {"patch": "*** Begin Patch\n*** Add File: new.txt\n+KEY={}\n*** End Patch"}),
        ("ApplyPatch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+{}\n*** End Patch"}),
        ("NotebookEdit", {"path": "a.ipynb", "cell_id": "a", "new_source": "KEY={}"}),
        ("FileOperator", {"command": "WriteFile", "filePath": "new.txt", "content": "KEY={}"}),
        ("FileOperator", {"command": "AppendFile", "filePath": "a.txt", "content": "KEY={}"}),
        ("FileOperator", {"command": "EditFile", "filePath": "a.txt", "content": "KEY={}"}),
        ("FileOperator", {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "one", "replaceString": "{}"}),
    ],
)
async def test_no_mask_gets_into_a_file(
    running_server: RunningServer, tool: str, arguments: dict[str, Any], sign: str
) -> None:
    project = running_server.project
    (project / "a.txt").write_text("one\n")
    (project / "a.ipynb").write_text(NOTEBOOK)
    await running_server.post("/v1/tools/Read", {"path": "a.txt"})
    await running_server.post("/v1/tools/Read", {"path": "a.ipynb"})
    response = await running_server.post(f"/v1/tools/{tool}", json.loads(json.dumps(arguments).replace("{}", sign)))
    assert response.json["error"]["code"] == "INVALID_PARAM", response.json
    assert "[masked]" in response.json["error"]["message"]
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "a.ipynb").read_text() == NOTEBOOK
    assert not (project / "new.txt").exists()


@pytest.mark.requirement("s:S-91:data")
async def test_a_file_that_has_the_sign_itself_can_be_edited_and_a_person_can_write_it(
    running_server: RunningServer,
) -> None:
    (running_server.project / "a.md").write_text("It reads [masked] there.\n")
    edit = {"path": "a.md", "old_string": "It reads [masked]", "new_string": "There it reads [masked]"}
    assert (await running_server.post("/v1/tools/Edit", edit)).json["status"] == "success"
    write = {"path": "b.md", "content": "[masked]"}
    assert (await running_server.post("/v1/tools/Write?force=true", write)).json["status"] == "success"


@pytest.mark.requirement("http:call")
async def test_the_body_of_a_call_must_be_an_object(running_server: RunningServer) -> None:
    for body in (b"[1]", b'"x"', b"{", b'{"a": NaN}', b"[" * 100_000):
        headers = {"Content-Type": "application/json"}
        response = await running_server.request("POST", "/v1/tools/LS", data=body, headers=headers)
        assert (body[:10], response.status) == (body[:10], 400)
    assert (await running_server.post("/v1/tools/LS")).json["status"] == "success"  # no body: no arguments


@pytest.mark.requirement("http:call")
async def test_a_call_whose_client_goes_away_is_cancelled(running_server: RunningServer) -> None:
    endless = Endless()
    running_server.yard.tools.add(FakeTool(endless, name="Endless"))
    asking = asyncio.create_task(running_server.post("/v1/tools/Endless", {}))
    async with asyncio.timeout(60):
        await endless.started.wait()
        asking.cancel()
        await endless.stopped.wait()
    answer = await wait_for_value(  # the start of a call that only reads is recorded with its end
        lambda: running_server.get("/v1/calls"),
        lambda answer: bool(answer.json["data"]) and answer.json["data"][0]["state"] != "running",
    )
    body = answer.json["data"][0]
    assert (body["tool"], body["reason"]) == ("Endless", "CANCELLED")


@pytest.mark.requirement("http:call", "s:S-52")
async def test_only_an_admin_may_force_or_speak_for_the_command_line(running_server: RunningServer) -> None:
    from toolyard.web.security.scope import Scope

    (running_server.project / "a.txt").write_text("old\n")
    key = running_server.make_key(Scope.TOOLS)
    write = {"path": "a.txt", "content": "new\n"}
    for request in ("force=true", "caller=cli", "call_id=call_" + "0" * 32):
        assert (await running_server.post(f"/v1/tools/Write?{request}", write, key=key)).status == 403
    refused = await running_server.post("/v1/tools/Write", write, key=key)
    assert refused.json["error"]["code"] == "CONFLICT"
    assert (await running_server.post("/v1/tools/Write?force=true", write)).json["status"] == "success"
    for request in ("caller=root", "call_id=7"):
        assert (await running_server.post(f"/v1/tools/LS?{request}", {})).status == 400
    given = "call_" + "a" * 32
    assert (await running_server.post(f"/v1/tools/LS?call_id={given}", {})).headers["x-call-id"] == given
    assert (await running_server.post(f"/v1/tools/LS?call_id={given}", {})).status == 409


@pytest.mark.requirement("http:call", "approval:who")
async def test_a_key_with_the_scope_tools_runs_without_asking(running_server: RunningServer) -> None:
    from toolyard.web.security.scope import Scope

    key = running_server.make_key(Scope.TOOLS)
    response = await running_server.post("/v1/tools/Write", {"path": "new.txt", "content": "x"}, key=key)
    assert response.json["status"] == "success"
    assert await running_server.yard.state.store.count(APPROVAL, Query()) == 0


@pytest.mark.requirement("http:human-tool")
async def test_a_block_gives_the_result_and_several_give_a_list(running_server: RunningServer) -> None:
    (running_server.project / "a.txt").write_text("one\n")
    headers = {"Content-Type": "text/plain"}
    one = BLOCK.format(tool="Read", path="a.txt")
    response = await running_server.request("POST", "/v1/human/tool", data=one.encode(), headers=headers)
    assert (response.status, response.json["MaidName"]) == (200, "Nova")
    assert "one" in json.dumps(response.json["content"])
    two = one + BLOCK.format(tool="Read", path="none.txt")
    response = await running_server.request("POST", "/v1/human/tool", data=two.encode(), headers=headers)
    assert response.status == 200
    assert ["plugin_error" in one for one in response.json] == [False, True]


@pytest.mark.requirement("http:human-tool")
async def test_a_text_without_a_good_block_is_refused_as_vcptoolbox_refuses_it(running_server: RunningServer) -> None:
    headers = {"Content-Type": "text/plain"}
    for text in ("hello", "<<<[TOOL_REQUEST]>>>\npath:「始」a「末」\n<<<[END_TOOL_REQUEST]>>>"):
        response = await running_server.request("POST", "/v1/human/tool", data=text.encode(), headers=headers)
        assert (response.status, isinstance(response.json["error"], str)) == (400, True)
    bad = BLOCK.format(tool="Read", path="none.txt")
    response = await running_server.request("POST", "/v1/human/tool", data=bad.encode(), headers=headers)
    envelope = (await running_server.post("/v1/tools/Read", {"path": "none.txt"})).json
    assert (response.status, response.json["plugin_error"]) == (500, envelope["text"])  # with the hint


@pytest.mark.requirement("http:reply-render")
async def test_a_structured_reply_is_rendered(running_server: RunningServer) -> None:
    text = json.dumps({"content": "**hello** <script>alert(1)</script>"})
    html = await running_server.post("/v1/reply/render", {"text": text})
    assert html.json["ok"] is True
    assert "<strong>hello</strong>" in html.json["rendered"]
    assert "<script" not in html.json["rendered"]
    assert (await running_server.post("/v1/reply/render", {"text": "", "to": "markdown"})).json["ok"] is False
    assert (await running_server.post("/v1/reply/render", {"text": text, "to": "pdf"})).status == 422


@pytest.mark.requirement("http:errors")
async def test_errors_have_the_shape_of_openai_and_the_id_of_their_request(running_server: RunningServer) -> None:
    for path, key, status, kind in (
        ("/v1/nothing", "", 404, "not_found_error"),
        ("/v1/tools/Nothing", "", 404, "not_found_error"),
        ("/v1/tools", None, 401, "authentication_error"),
        ("/v1/calls?limit=0", "", 422, "invalid_request_error"),
        ("/v1/calls?after=x", "", 400, "invalid_request_error"),
    ):
        response = await running_server.get(path, key=key)
        assert (response.status, response.json["error"]["type"]) == (status, kind)
        assert {"message", "type", "code"} <= set(response.json["error"]) <= ERROR_FIELDS
        assert response.headers["X-Request-Id"].startswith("req_")
    assert (await running_server.request("DELETE", "/v1/tools")).status == 405


@pytest.mark.requirement("http:errors")
async def test_a_bug_of_ours_is_answered_and_the_server_goes_on(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(running_server.yard.state.journal, "page", broken)
    response = await running_server.get("/v1/calls")
    assert (response.status, response.json["error"]["type"]) == (500, "server_error")
    assert response.headers["X-Request-Id"] in response.json["error"]["message"]
    assert (await running_server.get("/v1/tools")).status == 200


@pytest.mark.requirement("http:safe")
async def test_a_safe_start_has_no_plugins(tmp_path: Path) -> None:
    from tests.plugins.folders import make_plugin
    from tests.web.conftest import run_server
    from toolyard.web.server.lifecycle import ServerOptions

    make_plugin(tmp_path / "given", "Broken")
    async with run_server(tmp_path, ServerOptions(port=0, safe=True)) as running:
        names = [tool["name"] for tool in (await running.get("/v1/tools")).json["data"]]
    assert "LS" in names
    assert "Broken" not in names


async def write(running: RunningServer, arguments: dict[str, Any]) -> HttpResponse:
    body = io.BytesIO(json.dumps(arguments).encode())
    return await running.request("POST", "/v1/tools/Write", data=body, headers={"Content-Type": "application/json"})


@pytest.mark.requirement("limits:defaults")
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.txt", "content": "x" * MAX_ARGUMENTS},
        {"path": "a.txt", "content": "\x01" * (MAX_ARGUMENTS // 6)},  # each becomes six bytes
        {"path": "a.txt", "content": ["x" * (MAX_ARGUMENTS // 2)] * 2},
    ],
)
async def test_arguments_beyond_the_limit_are_refused_and_not_repeated(
    running_server: RunningServer, arguments: dict[str, Any]
) -> None:
    response = await write(running_server, arguments)
    assert (response.status, response.json["error"]["code"]) == (200, "INVALID_PARAM")
    assert f"and {MAX_ARGUMENTS:,} are allowed" in response.json["text"]
    assert len(response.body) < 10_000
    (stored,) = (await running_server.get("/v1/calls")).json["data"]
    assert (stored["tool"], stored["state"]) == ("Write", "error")
    assert not (running_server.project / "a.txt").exists()


@pytest.mark.requirement("limits:defaults")
async def test_arguments_up_to_the_limit_are_taken(running_server: RunningServer) -> None:
    size = MAX_ARGUMENTS - len('{"path":"a.txt","content":""}')
    response = await write(running_server, {"path": "a.txt", "content": "x" * size})
    assert response.json["status"] == "success"
    assert (running_server.project / "a.txt").stat().st_size == size


@pytest.mark.requirement("http:call")
async def test_a_long_number_reaches_its_tool_as_it_was_sent(running_server: RunningServer) -> None:
    long = 123456789012345678901234567890
    given = (await running_server.post("/v1/tools/LS", {"limit": long})).json["context"]["params_input"]
    assert given == {"limit": long}
