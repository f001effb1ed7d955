"""A failure that concerns a path says where that path leads."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.nobody import call_as_nobody, shared_project
from toolyard.blocking import BlockingYard

pytestmark = pytest.mark.requirement("envelope:context:path-resolved")

PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"


@pytest.fixture
def tree(project: Path) -> Path:
    """A project with something of every kind."""
    (project / "src").mkdir()
    (project / "link").symlink_to("src")
    (project / "out").symlink_to("/")
    (project / "loop").symlink_to("loop")
    (project / "a.txt").write_text("one\n")
    (project / "a.bin").write_bytes(b"\0\1" * 50)
    os.mkfifo(project / "pipe")
    return project


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "resolved"),
    [
        ("Read", {"path": "./src//../missing"}, "NOT_FOUND", "missing"),
        ("Read", {"path": "link/no/such"}, "NOT_FOUND", "src/no/such"),
        ("Read", {"path": "a.txt/x"}, "NOT_FOUND", "a.txt/x"),
        ("Read", {"path": "loop"}, "NOT_FOUND", "loop"),
        ("Read", {"path": "link"}, "IS_DIRECTORY", "src"),
        ("Read", {"path": "a.bin"}, "BINARY_FILE", "a.bin"),
        ("Read", {"path": "pipe"}, "INVALID_PARAM", "pipe"),
        ("Read", {"path": "a.txt", "start_line": 9}, "INVALID_PARAM", "a.txt"),
        ("Read", {"path": "a.txt", "encoding": "klingon"}, "INVALID_PARAM", "a.txt"),
        ("LS", {"path": "a.txt"}, "INVALID_PARAM", "a.txt"),
        ("LS", {"path": "link/x"}, "NOT_FOUND", "src/x"),
        ("Glob", {"pattern": "*", "path": "a.txt"}, "INVALID_PARAM", "a.txt"),
        ("Grep", {"pattern": "x", "path": "link/x"}, "NOT_FOUND", "src/x"),
        ("Write", {"path": "link", "content": ""}, "IS_DIRECTORY", "src"),
        ("Write", {"path": "src/", "content": ""}, "IS_DIRECTORY", "src"),
        ("Write", {"path": "a.txt", "content": ""}, "CONFLICT", "a.txt"),
        ("Edit", {"path": "a.bin", "old_string": "a", "new_string": "b"}, "BINARY_FILE", "a.bin"),
        ("Edit", {"path": "a.txt", "old_string": "a", "new_string": "b"}, "INVALID_PARAM", "a.txt"),
        ("MultiEdit", {"path": "x", "edits": [{"old_string": "a", "new_string": "b"}]}, "NOT_FOUND", "x"),
        ("NotebookEdit", {"path": "a.txt", "cell_number": 0, "new_source": ""}, "INVALID_PARAM", "a.txt"),
        ("ApplyPatch", {"patch": PATCH.format("link/x")}, "NOT_FOUND", "src/x"),
        ("FileOperator", {"command": "ReadFile", "filePath": "link/x"}, "NOT_FOUND", "src/x"),
        ("FileOperator", {"command": "DeleteFile", "filePath": "x"}, "NOT_FOUND", "x"),
        ("FileOperator", {"command": "CreateDirectory", "directoryPath": "a.txt"}, "CONFLICT", "a.txt"),
        ("Read", {"path": "../x"}, "ACCESS_DENIED", None),
        ("Read", {"path": "out/etc/passwd"}, "ACCESS_DENIED", None),
        ("Write", {"path": "src/../../x/", "content": ""}, "IS_DIRECTORY", None),
    ],
)
def test_a_failure_about_a_path_says_where_it_leads(
    yard: BlockingYard, tree: Path, tool: str, arguments: dict[str, Any], code: str, resolved: str | None
) -> None:
    envelope = yard.call(tool, arguments)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.context.get("path_resolved")) == (code, resolved)


def test_a_refusal_of_the_system_says_it_too() -> None:
    with shared_project() as project:
        (project / "a.txt").write_text("secret")
        (project / "a.txt").chmod(0)
        (project / "closed").mkdir(mode=0)
        paths = ("a.txt", "closed/b.txt")
        for path, envelope in zip(
            paths, call_as_nobody(project, *(("Read", {"path": path}) for path in paths)), strict=True
        ):
            assert envelope["error"]["code"] == "PERMISSION_DENIED"
            assert envelope["context"]["path_resolved"] == path
