"""Permissions: which plugins may run, and when they need another review."""

import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin, manifest_text, plugins_in
from toolyard.errors import ConfigError
from toolyard.plugins.package import fingerprint as fingerprint_module
from toolyard.plugins.package.discovery import Plugins
from toolyard.plugins.package.plugin import Plugin, PluginState
from toolyard.plugins.package.trust import Trust
from toolyard.protocol.tool import Risk

pytestmark = pytest.mark.requirement("s:S-83")
AT = "2026-11-15T09:30:00+00:00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "all"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def discover_untrusted(root: Path, home: Path) -> Plugins:
    return plugins_in(root, home=home, trusted=[])


def current_plugin(plugins: Plugins, name: str = "Some") -> Plugin:
    plugin = plugins.get_current(name)
    assert plugin is not None
    return plugin


def allow_plugin(root: Path, home: Path, name: str = "Some") -> Plugins:
    """The plugins of ``root`` after the owner has allowed one of them."""
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    trust = Trust(home)
    trust.allow(trust.review(current_plugin(plugins, name), ["PATH"]), at=AT)
    assert current_plugin(plugins, name).state is PluginState.READY
    return plugins


@pytest.mark.requirement("plugin:risk:confirmed")
def test_its_word_that_it_only_reads_counts_once_the_owner_confirmed_it_and_until_it_changes(
    root: Path, home: Path
) -> None:
    folder = make_plugin(root, "Some", risk="read")
    trusting = plugins_in(root, home=home)
    trusting.refresh()
    assert (current_plugin(trusting).state, current_plugin(trusting).risk) == (
        PluginState.READY,
        Risk.EXECUTE,
    )  # its folder is trusted, not its word
    plugins, trust = allow_plugin(root, home), Trust(home)
    assert current_plugin(plugins).risk is Risk.EXECUTE
    review = trust.review(current_plugin(plugins), [])
    assert (review.claims_read, review.read_confirmed) == (True, False)
    trust.allow(review, at=AT, confirm_read=True)
    assert (current_plugin(plugins).risk, current_plugin(trusting).risk) == (Risk.READ, Risk.READ)
    assert trust.review(current_plugin(plugins), []).read_confirmed
    (folder / "main.py").write_text("print('other')\n")
    assert (current_plugin(plugins).state, current_plugin(plugins).risk) == (PluginState.CHANGED, Risk.EXECUTE)
    assert current_plugin(trusting).risk is Risk.EXECUTE


@pytest.mark.requirement("plugin:risk:confirmed")
@pytest.mark.parametrize("risk", ["write", "execute", "network"])
def test_what_it_says_of_greater_risks_is_believed_and_cannot_be_confirmed_away(
    root: Path, home: Path, risk: str
) -> None:
    make_plugin(root, "Some", risk=risk)
    plugins, trust = allow_plugin(root, home), Trust(home)
    trust.allow(trust.review(current_plugin(plugins), []), at=AT, confirm_read=True)
    plugins.refresh()
    assert current_plugin(plugins).risk == risk
    assert not trust.review(current_plugin(plugins), []).read_confirmed


def test_a_plugin_needs_a_review_and_runs_after_it_in_every_later_run(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    assert plugins.all[0].state is PluginState.NEEDS_REVIEW
    assert "toolyard plugin allow Some" in plugins.all[0].reason
    allow_plugin(root, home)
    again = discover_untrusted(root, home)
    again.refresh()
    assert again.all[0].is_ready


def test_a_trusted_folder_needs_no_review_and_its_neighbour_does(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    make_plugin(root.with_name("all-evil"), "Other")
    plugins = plugins_in(root, root.with_name("all-evil"), home=home, trusted=[root])
    plugins.refresh()
    assert [plugin.state for plugin in plugins.all] == [PluginState.READY, PluginState.NEEDS_REVIEW]
    assert not home.exists()


def _swap(folder: Path) -> Path:
    """Another file of the same size and times in the place of the script."""
    script = folder / "main.py"
    times = script.stat()
    (folder / "new").write_bytes(b"#" * times.st_size)
    os.utime(folder / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    return (folder / "new").replace(script)


def put(file: Path, text: str, mode: int = 0o644) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def link(file: Path, target: Path) -> Path:
    """A link in the place of a file, to the same content elsewhere."""
    if file.exists():
        put(target, file.read_text())
        file.unlink()
    file.symlink_to(target)
    return file


CHANGES: dict[str, Callable[[Path], Path]] = {
    "the script": lambda f: put(f / "main.py", "print('evil')"),
    "the script, with its size and times": _swap,
    "the manifest": lambda f: put(f / "plugin-manifest.json", manifest_text("Some", description="Evil.")),
    "a module beside it": lambda f: put(f / "json.py", "evil()"),
    "a module below it": lambda f: put(f / "lib/part.py", "evil()"),
    "a removed module": lambda f: (f / "lib/part.py").rename(f / "lib/part.txt"),
    "code in a folder with a name of code": lambda f: put(f / "x.js/index.js", "evil()"),
    "a link instead of a module": lambda f: link(f / "lib/part.py", f.parent / "moved.py"),
    "a linked folder": lambda f: link(f / "more", f.parent),
    "a setting that loads code": lambda f: put(f / "config.env", "NODE_OPTIONS=--require ./x.txt\n"),
    "an own interpreter": lambda f: put(f / ".venv/bin/python", "#!/bin/sh\nevil\n", 0o755),
    "compiled Python without a source": lambda f: put(f / "lib/helper.pyc", "evil"),
    "a module among compiled files": lambda f: put(f / "__pycache__/helper.py", "evil()"),
    "a native library": lambda f: put(f / "lib/fast.so", "ELF"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_what_runs_needs_another_review_before_the_next_call(root: Path, home: Path, what: str) -> None:
    folder = make_plugin(root, "Some")
    (folder / "lib").mkdir()
    (folder / "lib/part.py").write_text("1\n")
    plugins = allow_plugin(root, home)
    CHANGES[what](folder)
    plugin = current_plugin(plugins)
    assert (plugin.state, plugin.is_ready) == (PluginState.CHANGED, False)
    assert "toolyard plugin allow Some" in plugin.reason
    assert current_plugin(allow_plugin(root, home)).is_ready


OWN_WRITES: dict[str, Callable[[Path], Path]] = {
    "a cache": lambda f: put(f / "cache.json", "{}"),
    "a log": lambda f: put(f / "plugin.log", "x"),
    "data": lambda f: put(f / "data/picture.png", "x"),
    "bytecode": lambda f: put(f / "__pycache__/main.cpython-311.opt-1.pyc", "x"),
    "dependencies": lambda f: put(f / "node_modules/a/index.js", "x"),
    "an ordinary setting": lambda f: put(f / "config.env", "COLOUR=red\nAPI_KEY=x\n"),
    "the same bytes again": lambda f: put(f / "main.py", (f / "main.py").read_text()),
}


@pytest.mark.parametrize("what", OWN_WRITES)
def test_what_a_plugin_writes_while_it_runs_needs_no_review(root: Path, home: Path, what: str) -> None:
    folder = make_plugin(root, "Some")
    plugins = allow_plugin(root, home)
    OWN_WRITES[what](folder)
    assert current_plugin(plugins).is_ready


@pytest.mark.requirement("plugin:dependencies")
@pytest.mark.parametrize(
    "command",
    ["python main.py", ".venv/bin/python main.py", "node node_modules/tiny/index.js", "./node_modules/tiny/run"],
)
def test_upgrading_what_a_command_line_takes_from_its_dependencies_needs_no_review(
    root: Path, home: Path, command: str
) -> None:
    folder = make_plugin(root, "Some", entryPoint={"command": command})
    environment, package = folder / ".venv/bin", folder / "node_modules/tiny"
    environment.mkdir(parents=True)
    (environment / "python").symlink_to(shutil.copy(sys.executable, root / "python-1"))
    put(package / "index.js", "1")
    put(package / "run", "#!/bin/sh\n1\n", 0o755)
    plugins = allow_plugin(root, home)
    (environment / "python").unlink()
    (environment / "python").symlink_to(shutil.copy(sys.executable, root / "python-2"))
    put(package / "index.js", "2")
    put(package / "run", "#!/bin/sh\n2\n", 0o755)
    assert current_plugin(plugins).is_ready


def test_a_compiled_program_is_covered_because_the_command_names_it(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some", entryPoint={"command": "./run-me --data x.bin"})
    for name in ("run-me", "x.bin"):
        (folder / name).write_bytes(b"1")
        (folder / name).chmod(0o755)
    plugins = allow_plugin(root, home)
    (folder / "run-me").write_bytes(b"2")
    assert current_plugin(plugins).state is PluginState.CHANGED


@pytest.mark.requirement("s:S-81")
def test_a_review_shows_the_whole_command_the_environment_and_every_file(root: Path, home: Path) -> None:
    line = "python main.py " + " ".join(f"--option-{number}" for number in range(500))
    make_plugin(root, "Some", entryPoint={"command": line, "shell": True})
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    review = Trust(home).review(plugins.all[0], ["PATH", "HOME", "API_KEY"])
    assert (review.command_line, review.argv[-1], review.shell) == (line, line, True)
    assert review.environment == ("API_KEY", "HOME", "PATH")
    assert list(review.files) == ["main.py"]
    assert (review.state, review.changed, review.manifest_diff) == (PluginState.NEEDS_REVIEW, (), "")


def test_a_second_review_shows_what_has_changed_since_the_first(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some")
    (folder / "old.py").write_text("1")
    plugins = allow_plugin(root, home)
    (folder / "main.py").write_text("2")
    (folder / "new.py").write_text("3")
    (folder / "old.py").unlink()
    entry = {"command": "python main.py --more", "shell": True}
    (folder / "plugin-manifest.json").write_text(manifest_text("Some", entryPoint=entry, description="Read ~/.ssh."))
    review = Trust(home).review(current_plugin(plugins), ["PATH", "TOKEN"])
    assert review.changed == (
        "changed main.py",
        "added new.py",
        "removed old.py",
        "the command was: python main.py",
        "now runs in a shell",
        "now has TOKEN in its environment",
    )
    assert '-  "description": "A plugin of the tests.",' in review.manifest_diff
    assert '+  "description": "Read ~/.ssh.",' in review.manifest_diff


def test_a_change_between_the_review_and_the_answer_is_not_allowed(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some")
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    trust = Trust(home)
    review = trust.review(plugins.all[0], [])
    (folder / "main.py").write_text("evil()")
    trust.allow(review, at=AT)
    assert current_plugin(plugins).state is PluginState.CHANGED


def test_taking_a_permission_back_stops_a_running_host_from_calling(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some")
    plugins = allow_plugin(root, home)
    Trust(home).revoke(folder)
    Trust(home).revoke(folder)
    assert current_plugin(plugins).state is PluginState.NEEDS_REVIEW


def test_a_copy_of_an_allowed_plugin_elsewhere_needs_its_own_review(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    allow_plugin(root, home)
    make_plugin(root.parent / "copy", "Some")
    plugins = discover_untrusted(root.parent / "copy", home)
    plugins.refresh()
    assert plugins.all[0].state is PluginState.NEEDS_REVIEW


@pytest.mark.requirement("r:R30")
def test_a_broken_manifest_leaves_an_allowed_plugin_as_it_was_allowed(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some")
    plugins = allow_plugin(root, home)
    (folder / "plugin-manifest.json").write_text("{")
    last_good = current_plugin(plugins)
    assert (last_good.state, "last good version" in last_good.reason) == (PluginState.READY, True)
    (folder / "main.py").write_text("evil()")
    assert current_plugin(plugins).state is PluginState.CHANGED


@pytest.mark.requirement("s:S-90")
def test_the_record_is_for_its_owner_only_and_says_what_was_reviewed_and_when(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    allow_plugin(root, home)
    assert (home / "trust.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    text = (home / "trust.json").read_text()
    assert AT in text
    assert "python main.py" in text
    assert sorted(file.name for file in home.iterdir()) == [".trust.json.lock", "reviewed", "trust.json"]
    assert (home / "reviewed").stat().st_mode & 0o777 == 0o700


def test_permissions_given_at_the_same_time_are_all_kept(root: Path, home: Path) -> None:
    plugins = discover_untrusted(root, home)
    for number in range(16):
        make_plugin(root, f"P{number}")
    plugins.refresh()
    trust = Trust(home)
    reviews = [trust.review(plugin, []) for plugin in plugins.all]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda review: Trust(home).allow(review, at=AT), reviews))
    plugins.refresh()
    assert [plugin.state for plugin in plugins.all] == [PluginState.READY] * 16


@pytest.mark.parametrize("text", ["{", "[]", '{"plugins": 5}', '{"plugins": {"x": 1}}', "\xff" * 9])
def test_a_damaged_record_allows_nothing(root: Path, home: Path, text: str) -> None:
    make_plugin(root, "Some")
    plugins = allow_plugin(root, home)
    (home / "trust.json").write_text(text, encoding="latin-1")
    assert current_plugin(plugins).state is PluginState.NEEDS_REVIEW


def test_an_unreadable_record_is_never_written_over(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    plugins = allow_plugin(root, home)
    (home / "trust.json").write_text("{ half")
    trust = Trust(home)
    with pytest.raises(ConfigError, match=r"trust\.json is not valid JSON"):
        trust.allow(trust.review(current_plugin(plugins), []), at=AT)
    assert "not valid JSON" in trust.problem
    assert (home / "trust.json").read_text() == "{ half"


def test_more_code_than_a_review_can_cover_cannot_be_allowed(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint_module, "MAX_FILES", 3)
    folder = make_plugin(root, "Some")
    for number in range(3):
        (folder / f"m{number}.py").write_text("")
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    plugin = plugins.all[0]
    assert (plugin.state, "more than 3 files of code" in plugin.reason) == (PluginState.NEEDS_REVIEW, True)
    trust = Trust(home)
    with pytest.raises(ValueError, match="cannot be allowed"):
        trust.allow(trust.review(plugin, []), at=AT)


def test_a_pipe_with_the_name_of_code_is_no_trap(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some")
    os.mkfifo(folder / "trap.py")
    plugins = discover_untrusted(root, home)
    plugins.refresh()
    assert "trap.py is no ordinary file" in plugins.all[0].reason
