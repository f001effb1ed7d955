"""One owner of a home, however many ask whether there is one."""

import fcntl
from pathlib import Path

import pytest

from toolyard.engine.ownership import LOCK, OwnerLock, is_owned
from toolyard.errors import AlreadyOwned

pytestmark = pytest.mark.requirement("store:owner-lock")


def test_a_home_is_taken_however_long_somebody_else_only_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    OwnerLock.acquire(tmp_path).release()
    looker = (tmp_path / LOCK).open("rb")
    fcntl.flock(looker, fcntl.LOCK_SH)
    naps = iter([*[None] * 40, looker.close])

    def nap(_: float) -> None:
        wakes = next(naps)
        if wakes is not None:
            wakes()

    monkeypatch.setattr("toolyard.engine.ownership.time.sleep", nap)
    lock = OwnerLock.acquire(tmp_path)
    assert is_owned(tmp_path)
    lock.release()
    assert not is_owned(tmp_path)


def test_whoever_comes_second_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = OwnerLock.acquire(tmp_path)
    monkeypatch.delattr("toolyard.engine.ownership.time.sleep")
    with pytest.raises(AlreadyOwned):
        OwnerLock.acquire(tmp_path)
    lock.release()
