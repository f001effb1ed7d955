"""Which changes may run unseen: what can be undone, and leads nowhere that a person guards."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.tools import apply_patch, edit, file_operator, glob, multi_edit, unattended, write
from toolyard.tools.unattended import Unattended, find_reason, load_table
from toolyard.workspace.changes.undo_records import MAX_BYTES, MAX_FILES, MAX_TOTAL, RETENTION
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("approval:auto-safe", "s:S-15")

NOW = datetime(2030, 1, 31, tzinfo=UTC)
BUILT_IN = {tool.SPEC.name: tool.SPEC for tool in (apply_patch, edit, file_operator, glob, multi_edit, write)}
PLUGIN = ToolSpec(name="Shell", description="", parameters={"type": "object"}, risk=Risk.EXECUTE)


def covers(project: Path, tool: str, **arguments: Any) -> bool:
    workspace = Workspace(project)
    specs = {**BUILT_IN, PLUGIN.name: PLUGIN}
    judge = Unattended(workspace, specs.values(), project.parent / "home", lambda: NOW)
    try:
        return judge.covers(specs[tool], arguments, [project / "given" / "Reader", project / "tools" / "mcp.py"])
    finally:
        workspace.close()


def batch(*items: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{key}{number}": value for number, item in enumerate(items, 1) for key, value in item.items()}


def copy_file(source: str, destination: str) -> dict[str, Any]:
    return {"command": "CopyFile", "sourcePath": source, "destinationPath": destination}


def move_file(source: str, destination: str) -> dict[str, Any]:
    return {"command": "MoveFile", "sourcePath": source, "destinationPath": destination}


def edit_file(path: str, content: str = "x") -> dict[str, Any]:
    return {"command": "EditFile", "filePath": path, "content": content}


def append_file(path: str, content: str = "x") -> dict[str, Any]:
    return {"command": "AppendFile", "filePath": path, "content": content}


def make_sparse_file(path: Path, size: int) -> None:
    """A file that says it has so many bytes, without writing them."""
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, size)


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
        ("FileOperator", {"command": "DeleteFile", "filePath": "same.txt"}),  # a link to a plain file
        ("FileOperator", {"command": "MoveFile", "sourcePath": "same.txt", "destinationPath": "folder"}),
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


@pytest.mark.parametrize(
    "path",
    [
        *(f"{folder}/x" for folder in (".claude", ".cursor", ".codex", ".gemini", ".circleci", ".gitlab", ".idea")),
        *(f"deep/{folder}/x" for folder in (".devcontainer", ".zed", ".yarn", ".Claude")),
        *(".env", ".env.local", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".gitattributes", ".gitmodules"),
        *(".yarnrc.yml", ".yarnrc", "Jenkinsfile", "CLAUDE.md", "AGENTS.md", "deep/agents.md", "GEMINI.md"),
        *("bare.git/config", "bare.git/hooks/post-update", "agents"),  # the last is a link to one
        *(".venv/lib/python3.11/site-packages/x.pth", ".venv/bin/python", "venv/bin/activate", "x.pth", "conftest.py"),
        *("env/lib/python3.11/site-packages/x.py", "src/__pycache__/x.cpython-311.pyc", "pyvenv.cfg", "noxfile.py"),
        *("node_modules/.bin/tsc", "node_modules/x/index.js", "package.json", ".pnpmfile.cjs", ".eslintrc.cjs"),
        *(
            "vite.config.ts",
            ".bash_logout",
            ".bash_aliases",
            ".zlogin",
            ".kshrc",
            ".inputrc",
            ".tmux.conf",
            ".xprofile",
        ),
        *(".config/systemd/user/x.service", ".config/autostart/x.desktop", ".config/fish/config.fish", ".local/bin/x"),
        *("Library/LaunchAgents/x.plist", "etc/cron.d/x", ".config/git/hooks/x", ".githooks/pre-commit", ".hg/hgrc"),
        *(".cargo/config", "build.rs", "Cargo.toml", "rust-toolchain.toml", "go.mod", "Gemfile", "Rakefile", ".irbrc"),
        *(".gitea/workflows/ci.yml", ".forgejo/workflows/ci.yml", ".drone.yml", ".woodpecker.yml", ".woodpecker/x.yml"),
        *(".cirrus.yml", ".buildkite/pipeline.yml", "appveyor.yml", ".builds/x.yml", ".travis.yaml", "buildspec.yml"),
        *(".clinerules", ".roo/rules/x.md", ".aider.conf.yml", ".continue/config.json", ".goosehints", ".kiro/x.md"),
        *(".windsurf/rules/x.md", ".junie/guidelines.md", "copilot-instructions.md", "QWEN.md", "AGENTS.override.md"),
        *("Makefile", "deep/makefile.inc", "x.mk", "CMakeLists.txt", "meson.build", "Justfile", "Taskfile.yml"),
        *(
            "build.gradle.kts",
            "gradlew",
            "pom.xml",
            ".mvn/jvm.config",
            "x.csproj",
            "Directory.Build.props",
            "WORKSPACE",
        ),
        *("Dockerfile", "docker-compose.yml", "compose.yaml", "Vagrantfile", "flake.nix", ".mise.toml", "setup.py"),
        *(
            "pyproject.toml",
            "tox.ini",
            "requirements.txt",
            ".vimrc",
            ".nvim.lua",
            ".emacs",
            ".dir-locals.el",
            ".gdbinit",
        ),
        *("run.bat", "run.ps1", "libx.so", ".htaccess", ".user.ini", ".aws/config", ".kube/config", ".curlrc"),
    ],
)
def test_what_other_programs_run_or_obey_by_themselves_is_not(project: Path, path: str) -> None:
    (project / "a.txt").write_text("a")
    (project / "agents").symlink_to("AGENTS.md")
    assert not covers(project, "Write", path=path, content="x")
    assert not covers(project, "ApplyPatch", patch=f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n")
    assert not covers(project, "FileOperator", **copy_file("a.txt", path))
    assert covers(project, "Write", path="git.md", content=path)


@pytest.mark.requirement("auto-safe:kinds")
@pytest.mark.parametrize(
    "path",
    [
        *(".direnvrc", ".lvimrc", ".ycm_extra_conf.py", ".storybook/main.js", ".php-cs-fixer.php", ".ripgreprc"),
        *(".ctags.d/x.ctags", ".octaverc", ".duckdbrc", ".gnuplot", ".unheard-of", "deep/.unheard/of.txt"),
        *("zlsrc", "_ideavimrc", "init.lua", "colors/x.vim"),
        *("ember-cli-build.js", "unheard.config.mts", "tool-setup.rb", "Buildfile", "Brewfile", "unheardfile.py"),
        *("config/boot.rb", "config/environments/production.rb", "artisan", "manage.py", "site/wsgi.py", "bin/rails"),
        *("dags/daily.py", "dags/sub/hourly.py", "db/migrations/0001_first.py", "scripts/run.py", "conf.d/x"),
        *("main.tf", "prod.tfvars", "main.tf.json", "deep/x.hcl", "k8s-deployment.yaml", "playbook.yml", "values.yaml"),
        *("deploy/run.sh", "lib/x.jar"),
    ],
)
def test_what_is_of_the_kind_of_files_that_others_run_or_load_is_not_either(project: Path, path: str) -> None:
    assert not covers(project, "Write", path=path, content="x")
    assert not covers(project, "Write", path=path.upper(), content="x")


@pytest.mark.requirement("auto-safe:kinds")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"path": "a.txt", "content": "#!/bin/sh\n"}),
        ("Edit", {"path": "a.txt", "old_string": "a", "new_string": "#!/bin/sh"}),
        ("MultiEdit", {"path": "a.txt", "edits": [{"old_string": "a", "new_string": "#!/bin/sh"}]}),
        ("ApplyPatch", {"patch": "*** Begin Patch\n*** Add File: b.txt\n+#!/bin/sh\n*** End Patch\n"}),
        ("FileOperator", {"command": "WriteFile", "filePath": "b.txt", "content": "#!/bin/sh\n"}),
        ("FileOperator", {"command": "ApplyDiff", "filePath": "a.txt", "searchString": "a", "replaceString": "#!x"}),
        ("Edit", {"path": "script.txt", "old_string": "a", "new_string": "b"}),
        ("FileOperator", {"command": "CopyFile", "sourcePath": "script.txt", "destinationPath": "b.txt"}),
    ],
)
def test_a_script_is_a_script_whatever_its_name_is(project: Path, tool: str, arguments: dict[str, Any]) -> None:
    (project / "a.txt").write_text("a\n")
    (project / "script.txt").write_text("#!/usr/bin/env python3\na\n")
    assert not covers(project, tool, **arguments)


@pytest.mark.parametrize(
    "path",
    [
        *("workspace/a.py", "build/a.txt", "src/hooks/use.ts", "example.com/index.html", "makes.md"),
        *("src/main.py", "src/app.ts", "lib/search.rb", "pkg/__init__.py", "src/profile.tsx", "data/profile.json"),
        *("README", "LICENSE", "notes", ".gitignore", "deep/.dockerignore", ".gitkeep", "config/data.json", "arc.py"),
        *("docs/setup.md", "docs/config.rst", "locale/zh.yml", "index.html", "style.css", "a.csv", "cargo.md"),
    ],
)
def test_ordinary_files_are_not_among_them(project: Path, path: str) -> None:
    assert covers(project, "Write", path=path, content="x")


def test_a_file_that_is_executable_is_not_changed_copied_or_moved_unseen(project: Path) -> None:
    (project / "a.txt").write_text("a")
    (project / "run").write_text("exec something\n")
    assert covers(project, "FileOperator", **edit_file("run"))
    (project / "run").chmod(0o755)
    for arguments in (
        edit_file("run"),
        append_file("run"),
        copy_file("run", "b"),
        move_file("run", "b"),
        copy_file("a.txt", "run"),
    ):
        assert not covers(project, "FileOperator", **arguments), arguments
    assert not covers(project, "ApplyPatch", patch=PATCH.format("run"))


def test_each_row_of_the_table_has_a_pattern_and_a_reason() -> None:
    table = load_table()
    assert len({row.pattern for row in table}) == len(table) > 200
    for row in table:
        assert row.pattern == row.pattern.casefold()
        assert "/" not in row.pattern
        assert len(row.reason) > 10
        name = row.pattern.removesuffix("$").replace("*", "x")
        assert find_reason(f"deep/{name}")


def test_what_lands_in_a_folder_is_judged_by_where_it_lands(project: Path) -> None:
    for folder in ("tools", "other"):
        (project / folder).mkdir()
    (project / "other" / "mcp.py").write_text("x")
    (project / "other" / "plugins").write_text("x")
    for change in (copy_file, move_file):
        assert not covers(project, "FileOperator", **change("other/mcp.py", "tools"))
        assert not covers(project, "FileOperator", **change("other/mcp.py", "./tools/"))
        assert not covers(project, "FileOperator", **change("other/plugins", "."))
        assert covers(project, "FileOperator", **change("other/mcp.py", "."))
    made = {"command": "CreateDirectory", "directoryPath": "tools"}
    (project / "tools").rmdir()
    assert not covers(project, "FileOperator", **batch(made, move_file("other/mcp.py", "tools")))


def test_what_is_too_large_for_the_undo_is_not(project: Path) -> None:
    make_sparse_file(project / "a.txt", MAX_BYTES // 4)
    make_sparse_file(project / "b.txt", MAX_BYTES // 4)
    assert covers(project, "Write", path="a.txt", content="")
    assert not covers(project, "FileOperator", **batch(edit_file("a.txt"), edit_file("b.txt")))
    assert not covers(project, "Write", path="a.txt", content="x" * (MAX_BYTES // 4))
    assert not covers(project, "MultiEdit", path="a.txt", edits=[{"old_string": "a", "new_string": "x" * 2**23}])
    gone = [{"command": "DeleteFile", "filePath": name} for name in ("a.txt", "b.txt")]
    assert covers(project, "FileOperator", **batch(*gone))  # they go to the trash as they are


def test_a_batch_that_replaces_what_it_makes_itself_is_not(project: Path) -> None:
    (project / "a.txt").write_text("a")
    (project / "b.txt").write_text("b")
    made = {"command": "WriteFile", "filePath": "n.txt", "content": "n"}
    diff = {"command": "ApplyDiff", "filePath": "n.txt", "searchString": "n", "replaceString": "m"}
    for items in (
        [made, edit_file("n.txt")],
        [made, diff],
        [made, copy_file("n.txt", "m.txt")],
        [made, move_file("n.txt", "m.txt")],
        [copy_file("a.txt", "n.txt"), edit_file("n.txt")],
        [append_file("a.txt"), copy_file("./a.txt", "n.txt")],
        [append_file("a.txt"), edit_file("a.txt")],
        [edit_file("a.txt"), edit_file("a.txt")],
        [move_file("b.txt", "c.txt"), move_file("a.txt", "b.txt"), edit_file("b.txt")],
        [{"command": "DeleteFile", "filePath": "b.txt"}, made, move_file("n.txt", "b.txt"), edit_file("b.txt")],
    ):
        assert not covers(project, "FileOperator", **batch(*items)), items
    for items in (
        [edit_file("a.txt"), edit_file("b.txt"), made],
        [copy_file("a.txt", "n.txt"), copy_file("a.txt", "m.txt"), edit_file("a.txt")],
        [append_file("a.txt"), append_file("a.txt"), append_file("n.txt"), append_file("n.txt")],
        [move_file("a.txt", "c.txt"), move_file("b.txt", "a.txt")],
    ):
        assert covers(project, "FileOperator", **batch(*items)), items


def test_a_batch_that_moves_or_deletes_a_folder_it_makes_itself_is_not(project: Path) -> None:
    (project / "a.txt").write_text("a")
    folder = {"command": "CreateDirectory", "directoryPath": "new"}
    inside = {"command": "WriteFile", "filePath": "new/mcp.py", "content": "x"}
    for items in (
        [folder, inside, move_file("new", "tools")],
        [inside, {**move_file("new", "tools"), "command": "RenameFile"}],
        [move_file("a.txt", "new/"), {"command": "DeleteFile", "filePath": "new"}],
        [move_file("a.txt", "b.txt"), {**folder, "directoryPath": "a.txt"}, move_file("a.txt", "tools")],
    ):
        assert not covers(project, "FileOperator", **batch(*items)), items
        assert covers(project, "FileOperator", **batch(*items[:-1])), items


def test_very_many_steps_of_very_long_names_are_too_large_for_the_undo_too(project: Path) -> None:
    far = "/".join(["\x01" * 250] * 15)
    made = [{"command": "CreateDirectory", "directoryPath": f"{far}/{number}"} for number in range(400)]
    assert not covers(project, "FileOperator", **batch(*made))
    assert covers(project, "FileOperator", **batch(*made[:20]))


def test_a_change_that_could_make_the_undo_let_go_of_another_is_not(project: Path) -> None:
    record = project.parent / "home" / "undo" / "record"
    make_sparse_file(project / "a.txt", 1000)
    record.parent.mkdir(parents=True)
    for held, expected in ((MAX_TOTAL // 2 - 100_000, True), (MAX_TOTAL // 2 - 500, False), (MAX_TOTAL, False)):
        make_sparse_file(record, held)
        set_time(record, NOW)
        assert covers(project, "Write", path="a.txt", content="x") is expected
    set_time(record, NOW - RETENTION - timedelta(hours=1))  # it goes with the next sweep, whatever else is there
    assert covers(project, "Write", path="a.txt", content="x")


def test_nor_is_one_when_the_undo_has_many_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unattended, "MAX_FILES", 6)
    assert MAX_FILES > 6
    folder = project.parent / "home" / "undo"
    folder.mkdir(parents=True)
    for number in range(3):
        assert covers(project, "Write", path="a.txt", content="x")
        (folder / str(number)).touch()
        set_time(folder / str(number), NOW)
    assert not covers(project, "Write", path="a.txt", content="x")


def test_nor_is_one_when_the_disk_of_the_home_has_little_space(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sparse_file(project / "a.txt", 2**20)
    asked_about: list[Path] = []

    def holds(free: int) -> tuple[bool, bool, bool]:
        def usage(place: Path) -> SimpleNamespace:
            asked_about.append(place)
            return SimpleNamespace(free=free)

        monkeypatch.setattr(shutil, "disk_usage", usage)
        return (
            covers(project, "Write", path="new.txt", content="x"),
            covers(project, "FileOperator", command="DeleteFile", filePath="a.txt"),
            covers(project, "Write", path="a.txt", content="x"),
        )

    assert holds(0) == (False, False, False)
    assert holds(2**28 + 2**20) == (True, False, False)
    assert holds(2**28 + 2**24) == (True, True, False)
    assert holds(2**28 + 2**26) == (True, True, True)
    assert set(asked_about) == {project.parent}  # where the home will be
    (project.parent / "home").mkdir()
    assert holds(2**30) == (True, True, True)
    assert asked_about[-1] == project.parent / "home"


def test_a_tool_that_only_has_the_name_of_ours_is_not(project: Path) -> None:
    workspace = Workspace(project)
    ours = write.SPEC
    try:
        judge = Unattended(workspace, [ours], project.parent / "home", lambda: NOW)
        assert judge.covers(ours, {"path": "a", "content": ""})
        assert not judge.covers(replace(ours), {"path": "a", "content": ""})
    finally:
        workspace.close()


def set_time(path: Path, when: datetime) -> None:
    os.utime(path, (when.timestamp(), when.timestamp()))


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
    (project / "same.txt").symlink_to("a.txt")
