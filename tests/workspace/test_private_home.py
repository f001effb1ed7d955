"""Toolyard's own home while several Yards of one process begin and work."""

import os
from pathlib import Path

import pytest

from toolyard.workspace import private_home


@pytest.mark.requirement("s:S-15:home")
def test_a_home_that_is_closed_to_tools_while_another_is_looked_for_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_home, "_homes", {str(tmp_path / "one"), str(tmp_path / "two")})
    real = private_home._is_same_folder

    def meanwhile(home: str, folder: int) -> bool:
        private_home.keep_private(tmp_path / "three", tmp_path)  # as a Yard does that another thread opens
        return real(home, folder)

    monkeypatch.setattr(private_home, "_is_same_folder", meanwhile)
    (tmp_path / "three").mkdir()
    folder = os.open(tmp_path / "three", os.O_RDONLY)
    try:
        assert [private_home.is_private(folder) for _ in range(2)] == [False, True]
    finally:
        os.close(folder)
