"""Toolyard's own home while several Yards of one process begin and work."""

import os
from pathlib import Path

import pytest

from toolyard.workspace import home_folder


@pytest.mark.requirement("s:S-15:home")
def test_a_home_that_is_closed_to_tools_while_another_is_looked_for_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_folder, "_homes", {str(tmp_path / "one"), str(tmp_path / "two")})
    real = home_folder._is_same_folder

    def meanwhile(home: str, folder: int) -> bool:
        home_folder.keep_private(tmp_path / "three", tmp_path)  # as a Yard does that another thread opens
        return real(home, folder)

    monkeypatch.setattr(home_folder, "_is_same_folder", meanwhile)
    (tmp_path / "three").mkdir()
    folder = os.open(tmp_path / "three", os.O_RDONLY)
    try:
        assert [home_folder.is_private(folder) for _ in range(2)] == [False, True]
    finally:
        os.close(folder)
