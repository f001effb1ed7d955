"""The path rules where the system has less than Linux."""

import os
from pathlib import Path

import pytest

import toolyard
from toolyard.workspace import path_walk


@pytest.mark.requirement("path:every-kernel")
def test_the_path_rules_are_the_same_without_descriptors_that_only_linux_has(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (project / "a/b").mkdir(parents=True)
    (project / "a/b/file").write_text("x")
    (project / "inside").symlink_to("a/b")
    (project / "absolute").symlink_to(project.resolve() / "a/b/file")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to("loop")
    paths = [
        "a/b/file",
        "inside/file",
        "absolute",
        "out/secret",
        "../outside/secret",
        "loop",
        "inside/../b/file",
        "none",
    ]

    def answers() -> list[str]:
        with toolyard.open(project=project, home=tmp_path / "home") as yard:
            found = [yard.call("Read", {"path": path}) for path in paths]
        return [envelope.error.code if envelope.error else str(envelope.data["content"]) for envelope in found]

    with_linux = answers()
    plain = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    monkeypatch.setattr(path_walk, "_STEP", plain)
    assert answers() == with_linux
    assert with_linux == [
        "1\tx",
        "1\tx",
        "1\tx",
        "ACCESS_DENIED",
        "ACCESS_DENIED",
        "NOT_FOUND",
        "1\tx",
        "NOT_FOUND",
    ]
