"""The observer of the campaign sees what it is there for."""

from pathlib import Path
from typing import Any

import pytest

from tests.campaign.clients import EventReader
from tests.campaign.ledger import REFUSED, Entry, Findings, compare, state_told
from tests.campaign.programs import ServerProgram

pytestmark = pytest.mark.requirement("hosts:campaign")

WHOLE = "start 10.0\nend 10.1\n"


def judge_entry(place: Path, told: str, did: str, kept: dict[str, Any] | None) -> Findings:
    ended = 11.0 if kept and kept["ended"] else 0.0
    entry = Entry("call_1", place / "call_1", 9.0, told, answered=11.0 if told else 0.0, seen_to_end=ended)
    entry.file.write_text(did)
    return compare([entry], {"call_1": kept} if kept else {})


@pytest.mark.parametrize(
    ("told", "did", "kept", "kinds"),
    [
        ("success", WHOLE, {"state": "success", "ended": 11.0}, set()),
        ("interrupted", "start 10.0\n", {"state": "interrupted", "ended": 11.0}, set()),
        ("", "start 10.0\n", {"state": "interrupted", "ended": 11.0}, set()),
        (REFUSED, "", None, set()),
        (REFUSED, "", {"state": "interrupted", "ended": 11.0}, set()),
        ("success", WHOLE, None, {"lost"}),
        ("success", "start 10.0\n", {"state": "success", "ended": 11.0}, {"lost"}),
        ("", WHOLE, {"state": "running", "ended": None}, {"lost"}),
        ("success", WHOLE + "start 10.2\nend 10.3\n", {"state": "success", "ended": 11.0}, {"doubled"}),
        ("interrupted", "start 12.0\nend 12.1\n", {"state": "interrupted", "ended": 11.0}, {"started_late"}),
        ("", "start 12.0\nend 12.1\n", {"state": "interrupted", "ended": 11.0}, {"started_late"}),
        ("success", WHOLE, {"state": "interrupted", "ended": 11.0}, {"disagreements"}),
        (REFUSED, WHOLE, {"state": "interrupted", "ended": 11.0}, {"disagreements"}),
    ],
)
def test_the_ledger_names_what_does_not_agree(
    tmp_path: Path, told: str, did: str, kept: dict[str, Any] | None, kinds: set[str]
) -> None:
    findings = judge_entry(tmp_path, told, did, kept)
    assert {name for name, sentences in vars(findings).items() if sentences} == kinds


@pytest.mark.parametrize(
    ("status", "body", "state"),
    [
        (200, {"status": "success", "context": {}}, "success"),
        (200, {"status": "error", "context": {"reason": "INTERRUPTED"}}, "interrupted"),
        (200, {"status": "error", "context": {"reason": "CANCELLED"}}, "cancelled"),
        (200, {"status": "error", "context": {}}, "error"),
        (503, {"error": {"message": "the server does not answer"}}, REFUSED),
    ],
)
def test_an_answer_is_read_in_the_words_of_the_journal(status: int, body: dict[str, Any], state: str) -> None:
    assert state_told(status, body) == state


def test_the_reader_of_events_sees_a_number_that_is_missing_and_a_host_that_did_not_return(tmp_path: Path) -> None:
    reader = EventReader(ServerProgram(tmp_path))
    for seq, type_, host in ((1, "host.up", "a"), (2, "host.up", "b"), (4, "host.lost", "a"), (5, "host.lost", "b")):
        reader._hear({"seq": seq, "type": type_, "data": {"id": host}})
    reader._hear({"seq": 6, "type": "host.up", "data": {"id": "b"}})
    assert reader.holes == ["host.lost has the number 4 after 2"]
    assert reader.unreturned({"a", "b"}) == ["a"]
