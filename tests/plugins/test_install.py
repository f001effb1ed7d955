"""Plugins come into the home whole, by rules, and without running; and they leave it without being lost."""

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.package.archive import Caps
from toolyard.plugins.package.install import (
    GitSource,
    build_git_command,
    build_git_environment,
    fetch_commit,
    install_plugin,
    parse_git_address,
    remove_plugin,
)

ENVIRON = {"PATH": os.environ["PATH"]}


def _content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _git(folder: Path, *words: str) -> str:
    author = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    variables = {**ENVIRON, **author, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = make_plugin(tmp_path / "repository", "Cloned")
    hook = folder / ".git/hooks/post-checkout"
    _git(folder, "init", "--quiet", "--initial-branch=main")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "one")
    return folder


@pytest.mark.requirement("plugin:cli:install")
def test_a_folder_is_copied_without_its_dependencies_and_its_history(tmp_path: Path) -> None:
    source = make_plugin(tmp_path / "src", "Copied", config="TOKEN=1\n")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o4775)
    for left_out in ("node_modules/x", ".venv/bin", ".git/hooks", "__pycache__"):
        (source / left_out).mkdir(parents=True)
        (source / left_out / "file").write_text("x")
    done = install_plugin(str(source), tmp_path / "home", {})
    assert (done.name, done.folder) == ("Copied", tmp_path / "home/plugins/Copied")
    assert sorted(done.left_out) == [".venv", "node_modules"]
    assert sorted(_content(done.folder)) == ["config.env", "main.py", "plugin-manifest.json", "run.sh"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in done.folder.iterdir()}
    assert modes == {"config.env": 0o600, "main.py": 0o644, "plugin-manifest.json": 0o644, "run.sh": 0o755}
    assert [path.name for path in (tmp_path / "home/plugins").iterdir()] == ["Copied"]


@pytest.mark.requirement("plugin:cli:install", "s:S-86")
@pytest.mark.parametrize("form", ["zip", "tar", "gztar", "bztar", "xztar"])
def test_an_archive_is_unpacked_wherever_in_it_the_plugin_is_and_its_hash_is_told(form: str, tmp_path: Path) -> None:
    make_plugin(tmp_path / "src/repository-main", "Packed")
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), form, tmp_path / "src"))
    done = install_plugin(str(archive), tmp_path / "home", {})
    assert done.folder == tmp_path / "home/plugins/Packed"
    assert sorted(_content(done.folder)) == ["main.py", "plugin-manifest.json"]
    assert done.proof == f"sha256 {hashlib.sha256(archive.read_bytes()).hexdigest()}"


@pytest.mark.requirement("plugin:cli:install", "s:S-86")
@pytest.mark.parametrize("kind", ["link", "pipe", "many", "large", "name"])
def test_a_folder_is_held_to_the_rules_of_archives(kind: str, tmp_path: Path) -> None:
    source = make_plugin(tmp_path / "src", "Odd")
    if kind == "link":
        (source / "link").symlink_to("/etc/passwd")
    elif kind == "pipe":
        os.mkfifo(source / "pipe")
    elif kind == "name":
        (source / "a\\b").write_text("")
    elif kind == "large":
        (source / "large").write_bytes(bytes(3000))
    else:
        for number in range(9):
            (source / f"f{number}").write_text("")
    with pytest.raises(ToolyardError, match="is refused"):
        install_plugin(str(source), tmp_path / "home", {}, caps=Caps(entries=10, bytes=2000))
    assert list((tmp_path / "home/plugins").iterdir()) == []


@pytest.mark.requirement("plugin:cli:install")
def test_what_is_no_plugin_or_is_there_already_is_refused_with_the_reason(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no 'nowhere'"):
        install_plugin("nowhere", home, {})
    (tmp_path / "empty/file").write_text("x")
    with pytest.raises(ToolyardError, match="this is no plugin"):
        install_plugin(str(tmp_path / "empty"), home, {})
    broken = make_plugin(tmp_path / "src", "Broken")
    (broken / "plugin-manifest.json").write_text('{"name": "Broken"')
    with pytest.raises(ToolyardError, match=r"plugin-manifest.json:1:18: The text ends before"):
        install_plugin(str(broken), home, {})
    for name in ("One", "Two"):
        make_plugin(tmp_path / "both", name)
    with pytest.raises(ToolyardError, match=r"has several plugins \(One, Two\)"):
        install_plugin(str(tmp_path / "both"), home, {})
    install_plugin(str(tmp_path / "both/One"), home, {})
    with pytest.raises(ToolyardError, match=r"One is installed already .*toolyard plugin remove One"):
        install_plugin(str(tmp_path / "both/One"), home, {})
    assert [path.name for path in (home / "plugins").iterdir()] == ["One"]


@pytest.mark.requirement("plugin:cli:install")
def test_a_removed_plugin_is_kept_where_a_person_can_take_it_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = install_plugin(str(make_plugin(tmp_path / "src", "Gone")), home, {}).folder
    before = _content(folder)
    removed = remove_plugin(folder, home, stamp="20261115T093000")
    assert removed is not None
    assert (folder.exists(), _content(removed)) == (False, before)
    assert removed.parent == home / "plugins/.removed"
    with pytest.raises(ToolyardError, match="only installed plugins are removed"):
        remove_plugin(tmp_path / "src/Gone", home, stamp="20261115T093000")


@pytest.mark.requirement("plugin:cli:install")
def test_of_a_plugin_that_is_linked_into_the_home_only_the_link_is_removed(tmp_path: Path) -> None:
    source = make_plugin(tmp_path / "src", "Linked")
    (tmp_path / "home/plugins").mkdir(parents=True)
    (tmp_path / "home/plugins/Linked").symlink_to(source)
    assert remove_plugin(source, tmp_path / "home", stamp="20261115T093000") is None
    assert (list((tmp_path / "home/plugins").iterdir()), source.is_dir()) == ([], True)


@pytest.mark.requirement("s:S-87")
@pytest.mark.parametrize(
    ("address", "url", "ref"),
    [
        ("https://github.com/owner/name", "https://github.com/owner/name", "HEAD"),
        ("https://gitee.com/owner/name.git#v1.2.0", "https://gitee.com/owner/name.git", "v1.2.0"),
        (f"https://GitHub.com/o/n#{'a' * 40}", "https://github.com/o/n", "a" * 40),
        ("https://codeberg.org/o/n#feature/x", "https://codeberg.org/o/n", "feature/x"),
    ],
)
def test_an_https_address_of_a_known_host_is_taken(address: str, url: str, ref: str) -> None:
    assert parse_git_address(address) == GitSource(url, ref)


@pytest.mark.requirement("s:S-87")
@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::sh",
        "http://github.com/o/n",
        "git://github.com/o/n",
        "ssh://git@github.com/o/n",
        "ssh://-oProxyCommand=x/o",
        "git@github.com:o/n.git",
        "file:///etc",
        "fd::17",
        "--upload-pack=touch /tmp/x:y",
        "-oProxyCommand=x:y",
        "https://-oProxyCommand=x/o",
        "https://user:secret@github.com/o/n",
        "https://github.com@evil.example/o/n",
        "https://evil.example/o/n",
        "https://github.com.evil.example/o/n",
        "https://githab.com/o/n",
        "https://gıthub.com/o/n",
        "https://github.com:8443/o/n",
        "https://github.com/--upload-pack=x/n",
        "https://github.com/o/../../etc",
        "https://github.com/o/%2e%2e/n",
        "https://github.com/o/n%0a-x",
        "https://github.com/o/n?x=1",
        "https://github.com/o/n name",
        "https://github.com/o/n\nx",
        "https://github.com",
        "https://github.com/o/n#--upload-pack=x",
        "https://github.com/o/n#-x",
        "https://github.com/o/n#a..b",
        "https://github.com/o/n#a b",
        "https://github.com/o/n#",
        "https://[::1]/o/n",
        "https://127.0.0.1/o/n",
        "https:github.com/o/n",
    ],
)
def test_any_other_address_is_refused_before_git_is_started(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        install_plugin(address, tmp_path / "home", {"PATH": "/nonexistent"})
    assert list((tmp_path / "home/plugins").iterdir()) == []


@pytest.mark.requirement("s:S-87")
def test_the_owner_may_add_a_host() -> None:
    assert parse_git_address("https://git.example/o/n", hosts=("git.example",)).url == "https://git.example/o/n"


@pytest.mark.requirement("s:S-87")
def test_git_gets_one_protocol_no_helper_no_hook_and_none_of_our_settings(tmp_path: Path) -> None:
    command = build_git_command("fetch", "--", "https://github.com/o/n", "HEAD")
    for setting in (
        "protocol.allow=never",
        "protocol.ext.allow=never",
        "core.hooksPath=/dev/null",
        "credential.helper=",
    ):
        assert command[command.index(setting) - 1] == "-c"
    assert command[-3:] == ("--", "https://github.com/o/n", "HEAD")
    variables = build_git_environment({"PATH": "/bin", "GIT_SSH_COMMAND": "x", "OPENAI_API_KEY": "secret"}, tmp_path)
    assert {"GIT_SSH_COMMAND", "OPENAI_API_KEY"}.isdisjoint(variables)
    assert (variables["GIT_TERMINAL_PROMPT"], variables["GIT_ALLOW_PROTOCOL"], variables["HOME"]) == (
        "0",
        "https",
        str(tmp_path),
    )


@pytest.mark.requirement("s:S-87")
def test_one_commit_is_fetched_told_and_run_by_nobody(repository: Path, tmp_path: Path) -> None:
    first = _git(repository, "rev-parse", "HEAD")
    (repository / "main.py").write_text("print(2)\n")
    (repository / ".gitattributes").write_text("*.py filter=evil\n")
    (repository / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ext::sh -c x\n')
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "two")
    second = _git(repository, "rev-parse", "HEAD")
    for ref, commit in (("HEAD", second), ("main", second), (first, first)):
        tar = tmp_path / f"{ref}.tar"
        got = fetch_commit(GitSource(f"file://{repository}", ref), tmp_path / f"w-{ref}", tar, ENVIRON, protocol="file")
        assert (got.commit, got.tree) == (commit, _git(repository, "rev-parse", f"{commit}^{{tree}}"))
        with tarfile.open(tar) as archive:
            assert {"main.py", "plugin-manifest.json"} <= set(archive.getnames())
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("s:S-87")
def test_git_itself_refuses_what_only_the_policy_would_have_let_through(repository: Path, tmp_path: Path) -> None:
    for number, url in enumerate((f"file://{repository}", str(repository), f"ext::sh -c 'touch {tmp_path}/ran'")):
        with pytest.raises(ToolyardError, match=r"git could not fetch it: .*not allowed"):
            fetch_commit(GitSource(url), tmp_path / f"work{number}", tmp_path / "tar", ENVIRON)
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("s:S-87")
def test_without_git_the_other_ways_are_named(tmp_path: Path) -> None:
    with pytest.raises(ToolyardError, match="git is not installed"):
        install_plugin("https://github.com/o/n", tmp_path / "home", {"PATH": str(tmp_path)})


@pytest.mark.requirement("plugin:cli:install")
def test_a_zip_made_on_a_mac_is_no_puzzle(tmp_path: Path) -> None:
    """Its resource forks stand beside the plugin; they are no plugin."""
    plugin = make_plugin(tmp_path / "src", "Mac")
    with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive:
        for file in plugin.iterdir():
            archive.write(file, f"Mac/{file.name}")
            archive.writestr(f"__MACOSX/Mac/._{file.name}", b"\0")
    assert install_plugin(str(tmp_path / "mac.zip"), tmp_path / "home", {}).name == "Mac"
