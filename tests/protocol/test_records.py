"""Stored values: what was stored is read, also as earlier versions wrote it, and is written as it was."""

import pytest

from toolyard.engine.chats.idempotency import RequestRecord
from toolyard.protocol.access import ApprovalState, DecisionReason, Effect
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.approval_record import Approval, HiddenText, Rule, RuleState
from toolyard.protocol.records.call_record import CallRecord, CallResult, CallState
from toolyard.protocol.records.client_json import client_fields
from toolyard.protocol.records.conversation_record import (
    Conversation,
    ConversationContent,
    ConversationText,
    MessageText,
)
from toolyard.protocol.records.remote_call import Host, HostOffer, HostState, RemoteCall
from toolyard.protocol.records.schedule_record import LateReason, Schedule, ScheduleState
from toolyard.protocol.store import Record

pytestmark = pytest.mark.requirement("records:typed")

Value = (
    Approval | CallRecord | CallResult | Conversation | Host | HostOffer | RemoteCall | RequestRecord | Rule | Schedule
)

APPROVAL = Record(
    kind="approval", id="approval_1", state="denied", version=2, created=1.0, updated=3.0, caller="key:1", tool="Write",
    key="d1", text="call_1 Write",
    body={
        "call_id": "call_1", "commands": ["make"], "risk": "write", "origin": "chat", "arguments": {"path": "a"},
        "hidden": [{"at": "/path", "characters": 8}], "maid": "Nova", "protected": False, "chat": "c1",
        "because": "write", "why": "Write changes files.", "always_offered": True, "digest": "d1", "plugin": "p1",
        "by": "cli", "reason": "not now", "answered": 3.0,
    },
)  # fmt: skip
PENDING = Record(
    kind="approval", id="approval_2", state="pending", version=1, created=1.0, updated=1.0, caller="key:1",
    tool="Write", key="d2", owner="host", due=9.0, text="call_2 Write",
    body={
        "call_id": "call_2", "commands": [], "risk": "write", "origin": "mcp", "arguments": {}, "hidden": [],
        "maid": None, "protected": False, "chat": None, "because": "write", "why": "Write changes files.",
        "always_offered": True, "digest": "d2", "plugin": "",
    },
)  # fmt: skip
RULE = Record(
    kind="rule", id="rule_1", state="active", version=3, created=1.0, updated=2.0, tool="Write", key="make",
    body={"effect": "deny", "by": "cli", "plugin": "p1", "hits": 4, "last_used": 2.5},
)  # fmt: skip
UNUSED_RULE = Record(
    kind="rule", id="rule_2", state="revoked", created=1.0, updated=2.0, tool="Write", caller="key:1",
    body={"effect": "allow", "by": "cli", "chat": "c1"},
)  # fmt: skip

SCHEDULE = Record(
    kind="schedule", id="schedule_1", state="scheduled", version=4, created=1.0, updated=3.0, caller="key:1", tool="LS",
    due=60.0, text="LS Nova {}",
    body={
        "arguments": {"path": "a"}, "maid": "Nova", "at": "", "cron": "0 8 * * *", "zone": "UTC",
        "for": "1970-01-01T00:01:00+00:00", "approved": "d1", "origin": "http", "chat": "c1",
        "runs": [
            {"call_id": "call_1", "state": "done", "text": "Done.", "at": 2.0},
            {"call_id": "call_2", "state": "failed", "text": "No.", "at": 3.0, "late_s": 90.0, "late_because": "busy"},
        ],
        "call_id": "call_2", "was_due": 2.5, "late_s": 90.0, "late_because": "busy",
    },
)  # fmt: skip
NEW_SCHEDULE = Record(
    kind="schedule", id="schedule_2", state="paused", created=1.0, updated=1.0, tool="LS",
    body={
        "arguments": {}, "maid": None, "at": "2037-01-01-10:00", "cron": "", "zone": "UTC", "for": "", "approved": "",
        "origin": "cli", "runs": [], "chat": None,
    },
)  # fmt: skip

CALL = Record(
    kind="call", id="call_1", state="error", version=2, created=1.0, updated=3.0, caller="key:1", tool="Read",
    key="call_0", text="Read {} No.",
    code="NO_OUTPUT",
    body={
        "arguments": {"path": "a"}, "origin": "chat", "maid": "Nova", "chat": "c1", "retry_of": "call_0", "text": "No.",
        "time_ms": 2.5, "ran": 2.0, "waited_ms": 900.0, "bytes_out": 120, "tasks": ["task_1"], "reason": "NO_OUTPUT",
        "error": {"code": "NOT_FOUND", "message": "No."}, "undone": {"at": 4.0, "by": "cli"},
    },
)  # fmt: skip
RUNNING_CALL = Record(
    kind="call", id="call_2", state="running", created=1.0, updated=1.0, tool="Read", owner="host",
    body={"arguments": {}, "origin": "cli", "maid": None, "chat": None},
)  # fmt: skip
INTERRUPTED_CALL = Record(
    kind="call", id="call_3", state="interrupted", created=1.0, updated=1.0, tool="Read",
    code="INTERRUPTED",
    body={
        "arguments": {}, "origin": "cli", "maid": None, "chat": None, "text": "It was cut off.",
        "reason": "INTERRUPTED", "error": {"code": "EXECUTION_ERROR", "message": "It was cut off."},
    },
)  # fmt: skip
RESULT = Record(
    kind="result", id="call_1", state="kept", created=1.0, updated=3.0,
    body={"arguments": {"path": "a"}, "envelope": {"status": "error"}, "process": {"pid": 1}},
)  # fmt: skip

CONVERSATION = Record(
    kind="conversation", id="conversation_1_one", state="active", version=2, created=1.0, updated=2.0, caller="key:1",
    key="one", body={"title": "A", "model": "tour", "messages": 1, "leaf": "m1"},
)  # fmt: skip
PINNED_CONVERSATION = Record(
    kind="conversation", id="conversation_1_three", state="pinned", version=2, created=1.0, updated=2.0, caller="key:1",
    key="three", body={"title": "B", "model": "", "messages": 0, "leaf": ""},
)  # fmt: skip
DELETED_CONVERSATION = Record(
    kind="conversation", id="conversation_1_two", state="deleted", created=1.0, updated=2.0, caller="key:1", key="two"
)
MESSAGES = Record(
    kind="messages", id="conversation_1_one", state="active", version=2, created=1.0, updated=2.0, caller="key:1",
    key="one", body={"messages": [{"role": "user", "content": "hello"}], "settings": {"x": 1}},
)  # fmt: skip

TEXT = Record(
    kind="conversation_text", id="conversation_1_one", state="active", version=2, created=1.0, updated=2.0,
    caller="key:1", key="one", text="A\nhello\n\nthere", body={"parts": [["", 1], ["m1", 6], ["", 5]]},
)  # fmt: skip

HOST = Record(
    kind="host", id="a/1/2/3", state="up", version=3, created=1.0, updated=2.0,
    body={"machine": "a", "keeps": True, "offer": 2, "tools": ["LS"], "term": 4, "signature": "s1"},
)  # fmt: skip
OFFER = Record(kind="offer", id="a/1/2/3", state="up", version=2, created=1.0, updated=2.0, body={"tools": ["{}"]})

REMOTE_CALL = Record(
    kind="remote", id="call_1", state="running", version=2, created=1.0, updated=2.0, caller="key:1", tool="Echo",
    key="a", owner="b", due=9.0, body={"call": "{}", "idempotent": True, "runs": 1, "stop": True},
)  # fmt: skip
ENDED_REMOTE_CALL = Record(
    kind="remote", id="call_2", state="done", version=3, created=1.0, updated=2.0, tool="Echo", key="a",
    body={"idempotent": False, "runs": 1, "failure": {"reason": "INTERRUPTED", "message": "No.", "hint": ""}},
)  # fmt: skip
REQUEST = Record(
    kind="idempotency", id="idempotency_1", state="finished", version=2, created=1.0, updated=2.0, caller="key:1",
    body={"fingerprint": "f", "call": "call_1", "chat": "", "response": "response_1"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("value_type", "record"),
    [
        (Approval, APPROVAL),
        (Approval, PENDING),
        (Rule, RULE),
        (Rule, UNUSED_RULE),
        (Schedule, SCHEDULE),
        (Schedule, NEW_SCHEDULE),
        (CallRecord, CALL),
        (CallRecord, RUNNING_CALL),
        (CallRecord, INTERRUPTED_CALL),
        (CallResult, RESULT),
        (Conversation, CONVERSATION),
        (Conversation, PINNED_CONVERSATION),
        (Conversation, DELETED_CONVERSATION),
        (Host, HOST),
        (HostOffer, OFFER),
        (RemoteCall, REMOTE_CALL),
        (RemoteCall, ENDED_REMOTE_CALL),
        (RequestRecord, REQUEST),
    ],
)
def test_a_record_is_read_and_written_as_it_was(value_type: type[Value], record: Record) -> None:
    assert value_type.from_record(record).to_record() == record


def test_the_members_of_an_approval_are_read() -> None:
    approval = Approval.from_record(APPROVAL)
    assert (approval.state, approval.because) == (ApprovalState.DENIED, DecisionReason.WRITE)
    assert (approval.reason, approval.note, approval.answered_by) == ("Write changes files.", "not now", "cli")
    assert approval.hidden == (HiddenText(at="/path", characters=8),)
    assert approval.rule is not None
    assert (approval.rule.tool, approval.rule.command, approval.rule.effect) == ("Write", "make", Effect.ALLOW)


def test_an_approval_of_an_earlier_version_is_read() -> None:
    body: JsonObject = {
        "call_id": "call_1",
        "commands": [],
        "risk": "write",
        "origin": "chat",
        "arguments": {},
        "digest": "d",
    }
    approval = Approval.from_record(
        Record(kind="approval", id="a", state="pending", created=1.0, updated=1.0, body=body)
    )
    shown = approval.to_json()
    assert set(shown) == set(client_fields(Approval))
    assert (shown["chat"], shown["because"], shown["hidden"], shown["answered"], shown["rule"]) == (
        None,
        None,
        [],
        None,
        None,
    )


def test_a_rule_of_an_earlier_version_is_read() -> None:
    rule = Rule.from_record(
        Record(
            kind="rule", id="r", state="active", created=1.0, updated=1.0, tool="T", body={"effect": "allow", "by": "x"}
        )
    )
    assert (rule.state, rule.effect, rule.chat, rule.plugin, rule.hits) == (
        RuleState.ACTIVE,
        Effect.ALLOW,
        None,
        None,
        0,
    )


def test_the_runs_of_a_schedule_are_read() -> None:
    schedule = Schedule.from_record(SCHEDULE)
    assert (schedule.at, schedule.cron, schedule.scheduled_for) == (None, "0 8 * * *", "1970-01-01T00:01:00+00:00")
    assert [(run.state, run.late_because) for run in schedule.runs] == [
        (ScheduleState.DONE, None),
        (ScheduleState.FAILED, LateReason.BUSY),
    ]


def test_a_schedule_of_an_earlier_version_is_read() -> None:
    body: JsonObject = {"arguments": {}, "maid": None, "at": "2037-01-01-10:00", "cron": "", "zone": "UTC", "for": "x"}
    schedule = Schedule.from_record(
        Record(kind="schedule", id="s", state="running", created=1.0, updated=1.0, tool="T", body=body)
    )
    assert (schedule.chat, schedule.runs, schedule.call_id, schedule.approved) == (None, (), "", "")


def test_a_call_of_an_earlier_version_is_read() -> None:
    call = CallRecord.from_record(
        Record(
            kind="call", id="c", state="success", created=1.0, updated=2.0, tool="T", body={"time_ms": 5, "text": "x"}
        )
    )
    shown = call.to_json()
    assert set(shown) == set(client_fields(CallRecord))
    assert (call.state, shown["time_ms"], shown["ended"], shown["tasks"]) == (CallState.SUCCESS, 5, 2.0, [])
    assert (shown["waited_ms"], shown["bytes_out"], shown["undone"], shown["error"]) == (None, None, None, None)


def test_the_content_of_a_conversation_is_read_and_written_as_it_was() -> None:
    content = ConversationContent.from_record(MESSAGES)
    assert content.messages == ({"role": "user", "content": "hello"},)
    assert content.to_record(Conversation.from_record(CONVERSATION), version=2) == MESSAGES
    text = ConversationText.from_record(TEXT)
    assert text == ConversationText(title="A", messages=(MessageText("m1", "hello\n"), MessageText("", "there")))
    assert text.to_record(Conversation.from_record(CONVERSATION), version=2) == TEXT


def test_a_host_of_an_earlier_version_is_in_its_first_term() -> None:
    record = Record(kind="host", id="h", state="up", created=1.0, updated=1.0, body={"machine": "a", "tools": []})
    host = Host.from_record(record)
    assert (host.state, host.term, host.keeps, host.offer, host.to_json()["machine"]) == (
        HostState.UP,
        1,
        False,
        0,
        "a",
    )
