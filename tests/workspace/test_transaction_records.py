"""The records of transactions, seen by a process that clears up while another is still at work."""

import fcntl
from pathlib import Path

import pytest

from toolyard.workspace.changes.transaction import TransactionRecords, list_record_files, open_dead_record

PROMISE = {"folder": ".", "name": "kept.txt", "draft": f".toolyard-{'0' * 32}-0", "removes": True, "old": "hash"}


@pytest.mark.requirement("r:R94")
def test_a_promise_that_is_kept_or_withdrawn_while_another_process_looks_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, real = TransactionRecords(tmp_path), fcntl.flock
    at_work = records.open_record({"state": "prepare", "drafts": []})
    record = at_work.__enter__()
    record.promise([dict(PROMISE)])
    (file,) = list_record_files(records.folder)

    def late(fd: int, how: int) -> None:
        record.end_promise()
        at_work.__exit__(None, None, None)  # its process ends the transaction in this very moment
        real(fd, how)

    monkeypatch.setattr("toolyard.workspace.changes.transaction.fcntl.flock", late)
    with open_dead_record(file) as found:
        assert found is None
    records.close()
