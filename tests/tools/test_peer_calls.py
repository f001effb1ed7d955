"""Calls of LS and Read that an older implementation of the envelope was seen to answer: status and code agree."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.workspace.answers import code
from tests.workspace.vectors import put, vectors

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("peer_calls.json").read_text(encoding="utf-8"))
PROJECT = {"README.md": "x\n", "src/main.py": "x\n"}

# Where the contract decides otherwise, and why.
DIFFERENT = {
    "env-164": "limit may go up to 2000 entries, not 200",
    "env-172": "what the operating system refuses is PERMISSION_DENIED, and the peer's refusal was a mock",
    "env-178": "a line of 10 000 characters is cut visibly, and what is cut is partial",
}


def answer(root: Path, case: dict[str, Any], files: dict[str, Any]) -> tuple[str, str | None]:
    root.mkdir(exist_ok=True)
    put(root, files)
    with toolyard.open(project=root, home=root.parent / "home") as yard:
        envelope = yard.call(case["tool"], case["params"])
    return envelope.status.value, code(envelope)


@pytest.mark.requirement("ls:limit", "ls:offset", "ls:not-a-folder", "read:start-line", "read:limit", "read:content")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_call_ends_as_it_did_in_the_peer(project: Path, case: dict[str, Any]) -> None:
    assert answer(project, case, PROJECT | case["files"]) == (case["status"], case["code"])


@pytest.mark.requirement("ls:limit", "ls:offset", "ls:not-a-folder", "read:start-line", "read:limit", "read:content")
def test_the_shared_calls_end_as_in_the_peer_but_where_the_contract_decides_otherwise(tmp_path: Path) -> None:
    different = {
        case["id"]
        for case in vectors("envelope_calls.json")["cases"]
        if case["tool"] in ("LS", "Read")
        and answer(tmp_path / case["id"], case, case["files_before"])
        != (case["response"]["status"], (case["response"].get("error") or {}).get("code"))
    }
    assert different == set(DIFFERENT)
