"""Which changes may run unseen: what can be undone, and leads nowhere that a person guards."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.tools import apply_patch, edit, file_operator, glob, multi_edit, unattended, write
from toolyard.tools.unattended import Unattended
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("approval:auto-safe", "s:S-15")


BUILT_IN = {tool.SPEC.name: tool.SPEC for tool in (apply_patch, edit, file_operator, glob, multi_edit, write)}
PLUGIN = ToolSpec(name="Shell", description="", parameters={"type": "object"}, risk=Risk.EXECUTE)


def covers(project: Path, tool: str, **arguments: Any) -> bool:
    workspace = Workspace(project)
    specs = {**BUILT_IN, PLUGIN.name: PLUGIN}
    try:
        return Unattended(workspace, specs.values()).covers(specs[tool], arguments, [project / "given" / "Reader"])
    finally:
        workspace.close()


PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"path": "new/deep.txt", "content": "see .git/config and ../out"}),
        ("Edit", {"path": "a.txt", "old_string": "a", "new_string": "b"}),
        ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "a", "new_string": "b"}]}),
        ("ApplyPatch", {"patch": PATCH.format("a.txt")}),
        ("Write", {"filePath": "inside/b.txt", "content": ""}),
        ("FileOperator", {"command": "AppendFile", "filePath": "a.txt", "content": "x"}),
        ("FileOperator", {"command": "DeleteFile", "filePath": "a.txt"}),
        ("FileOperator", {"command": "MoveFile", "sourcePath": "a.txt", "destinationPath": "b.txt"}),
        ("FileOperator", {"command": "CopyFile", "sourcePath": "a.txt", "destinationPath": "folder"}),
        ("FileOperator", {"command": "CreateDirectory", "directoryPath": "made"}),
        ("FileOperator", {"command1": "ReadFile", "filePath1": ".git/x", "command2": "WriteFile", "filePath2": "n",
                          "content2": "x"}),
        ("FileOperator", {"command1": "WriteFile", "filePath1": "n", "content1": "x", "command2": "RenameFile",
                          "sourcePath2": "n", "destinationPath2": "m"}),
    ],
)  # fmt: skip
def test_a_change_to_plain_files_of_the_project_is_covered(project: Path, tool: str, arguments: dict[str, Any]) -> None:
    lay_out(project)
    assert covers(project, tool, **arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"path": ".bashrc", "content": ""}),
        ("Write", {"path": "hooks/pre-commit", "content": ""}),  # a link to .git/hooks
        ("Write", {"path": "HOOKS2/x", "content": ""}),  # a link to that link
        ("Write", {"path": "profile.txt", "content": ""}),  # a link to a profile that is not there yet
        ("Edit", {"path": "inside/../hooks/x", "old_string": "a", "new_string": "b"}),
        ("Write", {"path": "outside/x", "content": ""}),
        ("Write", {"path": "plugins/New/main.py", "content": ""}),
        ("Edit", {"path": "given/Reader/main.py", "old_string": "a", "new_string": "b"}),
        ("FileOperator", {"command": "MoveFile", "sourcePath": "a.txt", "destinationPath": "reader"}),  # a link to it
        ("Write", {"path": "../x", "content": ""}),
        ("ApplyPatch", {"patch": PATCH.format("hooks/x")}),
        ("ApplyPatch", {"patch": PATCH.format("a.txt").replace("@@", "*** Move to: profile.txt\n@@")}),
        ("ApplyPatch", {"patch": "no patch"}),
        ("FileOperator", {"command": "WriteFile", "filePath": "hooks/x", "content": ""}),
        ("FileOperator", {"command": "DeleteFile", "filePath": "folder"}),
        ("FileOperator", {"command": "DeleteFile", "filePath": "inside"}),  # a link, which would go itself
        ("FileOperator", {"command": "RenameFile", "sourcePath": "hooks", "destinationPath": "other"}),
        ("FileOperator", {"command": "MoveFile", "sourcePath": "folder", "destinationPath": "other"}),
        ("FileOperator", {"command": "CopyFile", "sourcePath": "a.txt", "destinationPath": "hooks"}),
        ("FileOperator", {"command": "DownloadFile", "url": "http://127.0.0.1/x", "downloadDir": "."}),
        ("FileOperator", {"command": "WebReadFile", "url": "http://127.0.0.1/x"}),
        ("FileOperator", {"command": "CreateCanvas", "fileName": "a", "content": "x"}),
        ("FileOperator", {"command": "Nonsense"}),
        ("FileOperator", {"command": "writefile", "filePath": "n", "content": "x"}),
        ("FileOperator", {"command1": "WriteFile", "filePath1": "n", "content1": "x", "command2": "DownloadFile",
                          "url2": "http://127.0.0.1/x"}),
        ("FileOperator", {"command1": "RenameFile", "sourcePath1": "hooks", "destinationPath1": "h", "command2":
                          "WriteFile", "filePath2": "h/post-commit", "content2": "x"}),
        ("FileOperator", {"command1": "WriteFile", "filePath1": "n", "content1": "x", "command3": "ReadFile"}),
        ("Glob", {"pattern": "*"}),
        ("Shell", {"path": "a.txt"}),
    ],
)  # fmt: skip
def test_whatever_leads_elsewhere_or_cannot_be_put_back_is_not(
    project: Path, tool: str, arguments: dict[str, Any]
) -> None:
    lay_out(project)
    assert not covers(project, tool, **arguments)


def test_what_is_too_large_for_the_undo_is_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.txt").write_text("a" * 100)
    monkeypatch.setattr(unattended, "MAX_BYTES", 300)
    one = {"path": "a.txt", "content": ""}
    assert covers(project, "Write", **one)
    twice = {"command1": "EditFile", "filePath1": "a.txt", "content1": "", "command2": "EditFile"}
    assert not covers(project, "FileOperator", **twice, filePath2="a.txt", content2="")


def test_a_tool_that_only_has_the_name_of_ours_is_not(project: Path) -> None:
    workspace = Workspace(project)
    ours = write.SPEC
    try:
        judge = Unattended(workspace, [ours])
        assert judge.covers(ours, {"path": "a", "content": ""})
        assert not judge.covers(replace(ours), {"path": "a", "content": ""})
    finally:
        workspace.close()


def lay_out(project: Path) -> None:
    (project / "a.txt").write_text("a\n")
    (project / "folder").mkdir()
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / "hooks").symlink_to(".git/hooks")
    (project / "HOOKS2").symlink_to("hooks")
    (project / "given" / "Reader").mkdir(parents=True)
    (project / "reader").symlink_to("given/Reader")
    (project / "inside").symlink_to("folder")
    (project / "outside").symlink_to("/")
    (project / "profile.txt").symlink_to(".bashrc")
