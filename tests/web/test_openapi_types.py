"""The OpenAPI gives everything a type, so that clients can be made from it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.web.conftest import RunningServer, find_event_problem
from tests.web.openapi_answers import AnswerCheck
from toolyard.plugins.process.process_output import Progress
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.records.remote_call import Host, HostState
from toolyard.protocol.records.schedule_record import ScheduleState
from toolyard.protocol.records.task_record import TaskState

ARGUMENTS: Final = "arguments of a tool: each tool has its own, by its JSON Schema"
DATA: Final = "the data of a tool: each tool has its own"
PLUGIN: Final = "what a plugin printed or sent, as it is"
PROVIDER: Final = "OpenAI's protocol, of which other members are passed on as they are"
SCHEMA: Final = "a JSON Schema"
STORED: Final = "a conversation: its format is up to the client that stores it"
TABLE: Final = "the value of a setting that is a table, such as upstreams"
PASSED: Final = "the provider's own answer, byte for byte"
FREE_FORM: Final[Mapping[str, str]] = {
    "ApprovalDetail.arguments": ARGUMENTS,
    "AuditRow.detail": "what is worth knowing of an action: each has its own",
    "BackendMessage.data": DATA,
    "CallDetail.arguments": ARGUMENTS,
    "CallRow.arguments": ARGUMENTS,
    "ChatChoice": PROVIDER,
    "ChatChunkChoice": PROVIDER,
    "ChatCompletion": PROVIDER,
    "ChatCompletionChunk": PROVIDER,
    "ChatDelta": PROVIDER,
    "ChatMessage": PROVIDER,
    "ChatPart": PROVIDER,
    "ChatRequest": PROVIDER,
    "ChatRequest.tools[]": PROVIDER,
    "ChatRound.sent": PROVIDER,
    "ChatToolCall": PROVIDER,
    "ChatToolCallDelta": PROVIDER,
    "ChatUsage": PROVIDER,
    "ConversationDetail.messages[]": STORED,
    "ConversationDetail.settings": STORED,
    "ConversationDraft.messages[]": STORED,
    "ConversationDraft.settings": STORED,
    "Envelope.data": DATA,
    "EnvelopeContext": "what a tool adds to the context: each has its own",
    "EnvelopeContext.params_input": ARGUMENTS,
    "CommandForm.parameters": SCHEMA,
    "FunctionDefinition.parameters": SCHEMA,
    "HumanResult.content[]": PLUGIN,
    "HumanResult.details": DATA,
    "LateCallback.body": PLUGIN,
    "McpToolResult.structuredContent": "what an MCP server sent",
    "InputMessage": PROVIDER,
    "MessageBlock": PROVIDER,
    "MessagesAnswer": PROVIDER,
    "MessagesBody": PROVIDER,
    "MessagesBody.tools[]": PROVIDER,
    "MessagesFault": PROVIDER,
    "MessagesUsage": PROVIDER,
    "Model": PROVIDER,
    "NewSchedule.arguments": ARGUMENTS,
    "NewValues.values{}": TABLE,
    "PluginCase.args": ARGUMENTS,
    "ProviderError": PROVIDER,
    "ProviderError.message": PROVIDER,
    "CompactedResponse.output[]": PROVIDER,
    "ConversationName": PROVIDER,
    "InputItemList.data[]": PROVIDER,
    "ResponseObject": PROVIDER,
    "ResponseObject.output[]": PROVIDER,
    "ResponseUsage": PROVIDER,
    "ResponsesRequest": PROVIDER,
    "ResponsesRequest.input[]": PROVIDER,
    "ResponsesRequest.tools[]": PROVIDER,
    "RevealedArguments.arguments": ARGUMENTS,
    "RuleTrial.arguments": ARGUMENTS,
    "ScheduleDetail.arguments": ARGUMENTS,
    "ScheduleRow.arguments": ARGUMENTS,
    "ApprovalRequestedData.arguments": ARGUMENTS,
    "TaskEndedData.result": PLUGIN,
    "ServerTool.output_schema": SCHEMA,
    "ServerTool.schema": SCHEMA,
    "SettingRow.default": TABLE,
    "SettingRow.value": TABLE,
    "SlowCall.arguments": ARGUMENTS,
    "TaskDetail.arguments": ARGUMENTS,
    "TaskDetail.result": PLUGIN,
    "TaskRow.arguments": ARGUMENTS,
    "TaskRow.result": PLUGIN,
    "ToolExample.arguments": ARGUMENTS,
    "ToolRow.output_schema": SCHEMA,
    "ToolRow.parameters": SCHEMA,
    "UpstreamTest.values{}": TABLE,
    "VcpAnswer.payload": PLUGIN,
    "BackendMessage.payload": PLUGIN,
    "CallDetail.payload": PLUGIN,
    "CallEventData.payload": PLUGIN,
    "HumanResult.payload": PLUGIN,
    "SpecialAction.payload": PLUGIN,
    "VcpResult.content[]": PLUGIN,
    "VcpResult.details": DATA,
    "VcpToolCall.arguments": ARGUMENTS,
    "POST /v1/tools/{name} body": ARGUMENTS,
    "POST /plugin-callback/~{token}/{plugin}/{id} body": PLUGIN,
    "POST /v1/audio/{operation} body": PROVIDER,
    "POST /v1/audio/{operation} body multipart/form-data": PROVIDER,
    "POST /v1/completions body": PROVIDER,
    "POST /v1/completions body.prompt[]": PROVIDER,
    "POST /v1/embeddings body": PROVIDER,
    "POST /v1/embeddings body.input[]": PROVIDER,
    "POST /v1/images/{operation} body": PROVIDER,
    "POST /v1/images/{operation} body multipart/form-data": PROVIDER,
    "POST /v1/moderations body": PROVIDER,
    "POST /v1/moderations body.input[]": PROVIDER,
    "POST /v1/embeddings 200": PASSED,
    "POST /v1/completions 200": PASSED,
    "POST /v1/moderations 200": PASSED,
    "POST /v1/images/{operation} 200": PASSED,
    "POST /v1/audio/{operation} 200": PASSED,
}


def list_free_form(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places where any value, or an object with any member, may stand."""
    for name, schema in document["components"]["schemas"].items():
        yield from _list_places(schema, name)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = f"{method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                yield from _list_places(parameter["schema"], f"{name} {parameter['name']}")
            yield from _list_contents(operation.get("requestBody", {}), f"{name} body")
            for status, response in operation["responses"].items():
                yield from _list_contents(response, f"{name} {status}")


def _list_contents(body: Mapping[str, Any], name: str) -> Iterator[str]:
    for kind, content in body.get("content", {}).items():
        place = name if kind == "application/json" else f"{name} {kind}"
        yield from _list_places(content.get("schema", {}), place)


def _list_places(schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if any(key in schema for key in ("$ref", "const", "enum")):
        return
    inner = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    for one in inner:
        yield from _list_places(one, place)
    kind, additional = schema.get("type"), schema.get("additionalProperties")
    is_open = additional is True or (additional is None and "properties" not in schema)
    if (kind is None and not inner) or (kind == "object" and is_open):
        yield place
    if kind == "array":
        yield from _list_places(schema.get("items", {}), f"{place}[]")
    if isinstance(additional, Mapping):
        yield from _list_places(additional, f"{place}{{}}")
    for name, one in schema.get("properties", {}).items():
        yield from _list_places(one, f"{place}.{name}")


@pytest.mark.requirement("openapi:typed")
async def test_what_may_be_anything_is_listed_with_the_reason(running_server: RunningServer) -> None:
    document = (await running_server.get("/openapi.json")).json
    free = list(list_free_form(document))
    assert sorted(set(free) - set(FREE_FORM)) == [], "give it a type, or list it with the reason"
    assert sorted(set(FREE_FORM) - set(free)) == [], "it has a type now"


@pytest.mark.requirement("openapi:typed")
def test_an_untyped_place_is_found_wherever_it_stands() -> None:
    schema = {
        "type": "object",
        "properties": {
            "any": {},
            "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
            "table": {"type": "object", "additionalProperties": {"type": "object"}},
            "list": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"title": "untyped"}]}},
            "typed": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
    document = {"components": {"schemas": {"A": schema}}, "paths": {}}
    assert list(list_free_form(document)) == ["A.any", "A.open", "A.table{}", "A.list[]"]


@pytest.mark.requirement("openapi:complete")
def test_an_answer_with_a_member_that_the_openapi_does_not_name_is_found() -> None:
    row = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    response = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Row"}}}}
    document = {
        "components": {"schemas": {"Row": row}},
        "paths": {"/v1/rows/{id}": {"get": {"responses": {"200": response}}}},
    }
    check = AnswerCheck(document)
    assert check.find_problem("GET", "/v1/rows/a", 200, {"id": "a"}) == ""
    assert check.find_problem("GET", "/v1/other", 200, {"id": 5}) == ""
    assert "more" in check.find_problem("GET", "/v1/rows/a?x=1", 200, {"id": "a", "more": 1})
    assert "string" in check.find_problem("GET", "/v1/rows/a", 200, {"id": 5})


@pytest.mark.requirement("openapi:complete")
async def test_each_answer_that_these_tests_get_is_compared_with_the_openapi(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnswerCheck, "find_problem", lambda *_: "it differs")
    with pytest.raises(AssertionError, match="it differs"):
        await running_server.get("/healthz")


@pytest.mark.requirement("openapi:events")
async def test_every_type_of_event_has_a_schema_and_what_does_not_fit_is_found(running_server: RunningServer) -> None:
    schemas = (await running_server.get("/openapi.json")).json["components"]["schemas"]
    types = set(schemas["ServerEvent"]["discriminator"]["mapping"])
    calls = {"started", "progress", "finished", "undone"}
    tasks = {*TaskState, "started", "progress", "pushed", "push"} - {TaskState.WAITING}
    approvals = {*ApprovalState, "requested", "rule", "rule_revoked"} - {ApprovalState.PENDING}
    assert types == {
        *(f"call.{one}" for one in calls),
        *(f"task.{one}" for one in tasks),
        *(f"schedule.{one}" for one in (*ScheduleState, "added", "changed")),
        *(f"approval.{one}" for one in approvals),
        *(f"{what}.{one}" for what in ("conversation", "assistant") for one in ("changed", "deleted")),
        *(f"host.{one}" for one in (*HostState, "call_refused")),
        *("plugin.changed", "gap"),
    }
    host = Host(
        id="host_1", state=HostState.LOST, created=0.0, updated=0.0, machine="m", keeps=True, offer=1, tools=("LS",)
    ).to_event()
    assert find_event_problem(host.type, host.data) == []
    progress = {"id": "call_1", "tool": "Shell", "caller": "owner", **Progress(None, "halfway").to_json()}
    assert find_event_problem("call.progress", progress) == []
    assert find_event_problem("gap", {"from": 1, "to": 2}) == []
    assert "data.more" in find_event_problem("gap", {"from": 1, "to": 2, "more": 3})[0]
    assert "call.lost" in find_event_problem("call.lost", {})[0]
