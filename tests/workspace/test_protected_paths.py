"""Places that no tool writes by itself are recognised however a call names them; what is no path is left alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import number_batch
from toolyard.protocol.envelope import Failure, Reason
from toolyard.workspace.changes.protected_paths import (
    WriteAccess,
    leads_to_protected_path,
    names_protected_path,
    require_writable,
)
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("s:S-15")

BEGIN = "*** Begin Patch\n{}\n*** End Patch"
UNIFIED = "--- {}\n+++ {}\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/post-commit",
        ".git",
        "sub/.git/config",
        ".GIT/config",
        "./a/../.git/x",
        "./" * 5000 + ".git/x",
        ".git\\hooks\\x",
        "/abs/olute/.git/config",
        ".bashrc",
        "home/.Bashrc",
        ".ba\u017fhrc",  # a long s, which is an s where case does not count
        ".bashrc/.",
        ".profile/",
        ".zshrc",
        " .envrc",
        ".ssh/id_rsa",
        "x/authorized_keys",
        ".toolyard/state.db",
        "plugins/x/plugin-manifest.json",
        "plugins/x/plugin-manifest.json.block",
        "plugins/x/config.env",
        "config.toml",
        ".mcp.json",
        ".github/workflows/ci.yml",
    ],
)
@pytest.mark.parametrize("name", ["path", "filePath", "file_path", "directoryPath", "destinationPath", "whatever"])
def test_a_protected_path_is_recognised_under_any_name(path: str, name: str) -> None:
    assert names_protected_path({name: path})


@pytest.mark.parametrize(
    "arguments",
    [
        {"sourcePath": "x", "destinationPath": ".git/hooks/"},
        {"command": "DownloadFile", "url": "https://e.org/x", "downloadDir": "d", "fileName": ".bashrc"},
        {"command": "DownloadFile", "url": "https://e.org/plugin-manifest.json"},
        {"paths": ["a", ["b", ".git/x"]]},
        {"files": [{"path": "a"}, {"path": ".ssh/config"}]},
        {"options": {"deep": {"er": {"target": ".npmrc"}}}},
        number_batch([{"command": "WriteFile", "filePath": "a", "content": "x"}, {"command": "D", "filePath": ".git"}]),
    ],
)
def test_a_protected_path_is_recognised_wherever_it_stands(arguments: dict[str, Any]) -> None:
    assert names_protected_path(arguments)


@pytest.mark.parametrize(
    "patch",
    [
        BEGIN.format("*** Add File: .git/hooks/x\n+a"),
        BEGIN.format("*** Add File:.git/hooks/x\n+a"),
        BEGIN.format("*** Update File: a\n*** Move to: .bashrc\n@@\n-a\n+b"),
        BEGIN.format("*** Update File: ok\n@@\n-a\n+b\n*** Delete File: x/.envrc"),
        BEGIN.format("*** Add File: .bashrc\n+a").replace("\n", "\r\n"),
        UNIFIED.format("a/.git/config", "b/.git/config"),
        UNIFIED.format("/dev/null", "b/.bashrc"),
        UNIFIED.format("a/.profile\t2026-01-01", "b/.profile\t2026-01-01"),
        UNIFIED.format('"a/.npmrc"', '"b/.npmrc"'),
        UNIFIED.format(r'"a/\056bashrc"', r'"b/\056bashrc"'),
        "diff --git a/x b/.zshrc\nsimilarity index 100%\nrename from x\nrename to .zshrc\n",
        "diff --git a/.bashrc b/.bashrc\ndeleted file mode 100644\n",
        "no patch that we could read\n*** Update File: .bashrc",
    ],
)
def test_a_patch_that_names_a_protected_path_is_recognised(patch: str) -> None:
    assert names_protected_path({"patch": patch})
    assert names_protected_path({"diff": [{"text": patch}]})


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "a.txt", "limit": 5, "deep": None, "yes": True},
        {"path": ".gitignore"},
        {"path": "docs/git/hooks.md"},
        {"path": "my.git.txt", "other": "bashrc"},
        {"path": "a", "content": ".git"},
        {"path": "a", "content": "see .git/config\n--- a/.git/config\n+++ b/.git/config\n"},
        {"path": "a", "old_string": ".git/x", "new_string": "*** Update File: .bashrc"},
        {"path": "a", "edits": [{"old_string": "x", "newString": ".ssh/y"}]},
        {"filePath1": "a", "Content1": ".git/config", "filePath2": "b", "content2": ".bashrc"},
        {"filePath": "a", "searchString": ".bashrc", "replaceString": ".profile", "diffContent": "a/.git/b"},
        {"notebook_path": "n.ipynb", "new_source": "config.toml"},
        {"patch": BEGIN.format("*** Update File: a\n@@\n-see .git/x\n+see .git/hooks/y")},
        {"patch": UNIFIED.format("a/x", "b/x").replace("+b", "+.git/config")},
    ],
)
def test_an_ordinary_file_that_only_speaks_of_such_places_is_not_protected(arguments: dict[str, Any]) -> None:
    assert not names_protected_path(arguments)


def test_a_call_of_any_size_is_looked_through_in_one_go() -> None:
    deep: Any = "x"
    for _ in range(20_000):
        deep = [deep]
    assert not names_protected_path({"deep": deep})
    for text in (
        "--- " * 250_000,
        "---\n" * 250_000,
        "/" * 1_000_000,
        " \n" * 500_000,
        "\\" * 1_000_000,
        "+++ \t" * 200_000,
    ):
        assert not names_protected_path({"patch": text, "list": [text]}), json.dumps(text[:10])


@pytest.mark.parametrize("path", [".git/hooks/x", "sub/.GIT/config"])
def test_a_write_below_git_is_refused_unless_a_person_said_so(path: str) -> None:
    with pytest.raises(Failure) as caught:
        require_writable(path, WriteAccess.USUAL)
    assert caught.value.reason is Reason.DENIED
    require_writable(path, WriteAccess.FORCED)
    require_writable("a/.gitignore", WriteAccess.USUAL)


def test_a_call_that_nobody_was_asked_about_writes_no_protected_place() -> None:
    with pytest.raises(Failure) as caught:
        require_writable(".github/workflows/ci.yml", WriteAccess.PLAIN)
    assert caught.value.reason is Reason.DENIED
    require_writable(".github/workflows/ci.yml", WriteAccess.USUAL)
    require_writable("docs/ci.yml", WriteAccess.PLAIN)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    project = tmp_path / "project"
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / "docs").mkdir()
    (project / "docs" / "ci").symlink_to("../.github/workflows")
    (project / "docs" / "again").symlink_to("ci")
    (project / "start").symlink_to(".bashrc")
    (project / "up").symlink_to("..")
    (tmp_path / "elsewhere").symlink_to(tmp_path / ".ssh")
    made = Workspace(project)
    yield made
    made.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "docs/ci/x.yml", "content": "x"},
        {"path": "docs/again/deep/x.yml"},
        {"path": "docs/./missing/../ci/x.yml"},
        {"path": "start"},
        {"path": "./" * 5000 + "docs/ci/x.yml"},
        {"command1": "ReadFile", "filePath1": "a", "command2": "AppendFile", "filePath2": "docs/ci/x.yml"},
        {"patch": BEGIN.format("*** Add File: docs/ci/x.yml\n+a")},
        {"options": [{"target": "docs/ci"}]},
        {"where": "up/elsewhere/config"},  # for a plugin, which may write outside
        {"where": "{project}/docs/ci/x.yml"},
        {"where": "file://{project}/docs/ci/x%2eyml"},
    ],
)
def test_a_path_counts_by_where_it_leads(workspace: Workspace, arguments: dict[str, Any]) -> None:
    project = str(workspace.root)
    resolved = {
        name: value.replace("{project}", project) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    assert not names_protected_path(resolved)
    assert leads_to_protected_path(resolved, workspace.list_destinations)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "docs/x.yml", "content": "docs/ci/x.yml"},
        {"path": "docs/ci.yml"},
        {"text": "a\0b", "more": "\ud800", "long": "x" * 100_000, "list": [1, None, "up"]},
    ],
)
def test_what_leads_to_a_plain_place_is_none(workspace: Workspace, arguments: dict[str, Any]) -> None:
    assert not leads_to_protected_path(arguments, workspace.list_destinations)


def test_more_paths_than_can_be_followed_are_for_a_person_to_look_at(workspace: Workspace) -> None:
    assert not leads_to_protected_path({"paths": [f"a{number}" for number in range(500)]}, workspace.list_destinations)
    assert leads_to_protected_path({"paths": [f"a{number}" for number in range(1500)]}, workspace.list_destinations)
