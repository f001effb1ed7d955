"""The access of a plugin: what it declares or seems to need, what its owner decided, and what is never granted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.children import catch_failure
from tests.plugins.folders import make_plugin, plugins_in
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.plugins.package.plugin import Plugin, PluginState
from toolyard.plugins.package.plugin_access import (
    ConfinementPolicy,
    ProtectedFolders,
    build_profile,
    effective_access,
    find_links,
    make_plain,
)
from toolyard.protocol.access import ANY_HOST, Access, AccessChoice, ConfinementLevel, ProjectAccess
from toolyard.protocol.envelope import Failure, Reason

pytestmark = pytest.mark.requirement("confinement:files")


class Place:
    """A user's home with a project in it, a home of Toolyard and a folder of plugins."""

    def __init__(self, root: Path) -> None:
        self.user = root / "user"
        self.project, self.home, self.roots = self.user / "project", self.user / ".toolyard", root / "plugins"
        for folder in (self.project, self.home, self.roots):
            folder.mkdir(parents=True)
        self.protected = ProtectedFolders(home=self.home, user_home=self.user, plugin_roots=(self.roots,))
        self.data = self.home / "plugin-data" / "Plugin"
        self.data.mkdir(parents=True)

    def add(self, code: str = "print(1)", **fields: Any) -> Plugin:
        folder = make_plugin(self.roots, "Plugin", **fields)
        (folder / "main.py").write_text(code)
        self.plugins = plugins_in(self.roots, home=self.home)
        self.plugins.refresh()
        return self.find()

    def find(self) -> Plugin:
        """Return the plugin as a call would find it."""
        plugin = self.plugins.get_current("Plugin")
        assert plugin is not None
        return plugin

    def allow(self) -> Plugin:
        plugin = self.find()
        trust = self.plugins.trust
        trust.allow(trust.review(plugin, (), plugin.links), at="now")
        return self.find()

    def access(
        self, plugin: Plugin, choice: AccessChoice = AccessChoice.DECLARED, *, strict: bool = False
    ) -> Access | None:
        assert plugin.manifest is not None
        return effective_access(replace(plugin, access=choice), plugin.manifest, strict_network=strict)

    def profile(self, plugin: Plugin, access: Access | None = None, project: Path | None = None) -> Profile:
        access = access or self.access(plugin)
        assert access is not None
        project = project or self.project
        return build_profile(plugin, access, project=project, own=[self.data], protected=self.protected)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_plugin_that_declares_nothing_gets_its_folder_and_the_shared_ones_that_it_names(place: Place) -> None:
    plugin = place.add("import os; os.path.join(os.environ['PROJECT_BASE_PATH'], 'image'); 'Agent/'")
    profile = place.profile(plugin)
    assert set(profile.write) == {str(place.data), str(plugin.folder), str(place.project / "image")}
    assert str(place.project / "Agent") in profile.read
    assert str(place.project) not in (*profile.read, *profile.write)
    assert profile.network is Network.ANY
    assert not profile.unix_sockets


def test_a_plugin_that_declares_gets_what_it_declares(place: Place) -> None:
    plugin = place.add(permissions={"network": [], "read": ["docs"], "write": ["out"]})
    profile = place.profile(plugin)
    assert set(profile.write) == {str(place.data), str(place.project / "out")}
    assert str(place.project / "docs") in profile.read
    assert str(plugin.folder) in profile.read
    assert profile.network is Network.NONE


def test_strict_leaves_nothing_of_what_it_declares_but_its_minimum(place: Place) -> None:
    permissions = {"project": "write", "network": "any", "unixSockets": True, "confinement": "files"}
    plugin = place.add(permissions=permissions)
    assert place.access(plugin, AccessChoice.STRICT) == Access(network=(), minimum=ConfinementLevel.FILES)


def test_wide_adds_the_project_and_every_host_and_unconfined_everything(place: Place) -> None:
    plugin = place.add(permissions={"network": [], "read": ["/srv"]})
    wide = place.access(plugin, AccessChoice.WIDE)
    assert wide is not None
    assert (wide.project, wide.own_folder, wide.network) == (ProjectAccess.WRITE, ProjectAccess.WRITE, ANY_HOST)
    assert wide.read == ("/srv",)
    assert "/tmp" in wide.write
    assert place.access(plugin, AccessChoice.UNCONFINED) is None


@pytest.mark.requirement("plugin:access:read-project")
@pytest.mark.parametrize(
    ("fields", "project"),
    [
        ({}, ProjectAccess.READ),
        ({"permissions": {"network": [], "write": ["out"]}}, ProjectAccess.READ),
        ({"permissions": {"network": [], "project": "write"}}, ProjectAccess.WRITE),
    ],
)
def test_reading_the_project_is_a_decision_of_its_own(
    place: Place, fields: dict[str, Any], project: ProjectAccess
) -> None:
    plugin = place.add(**fields)
    declared = place.access(plugin)
    assert declared is not None
    assert place.access(plugin, AccessChoice.READ_PROJECT) == replace(declared, project=project)


def test_the_operator_closes_the_network_of_plugins_that_do_not_declare_theirs(place: Place) -> None:
    plugin = place.add()
    for strict, expected in ((False, ANY_HOST), (True, ())):
        access = place.access(plugin, strict=strict)
        assert access is not None
        assert access.network == expected


def test_what_is_protected_is_covered_in_a_granted_folder(place: Place, tmp_path: Path) -> None:
    plugin = place.add()
    profile = place.profile(plugin, Access(project=ProjectAccess.READ), project=tmp_path)
    assert set(profile.covered) == {str(place.user), str(place.roots)}, "the home of Toolyard is in that of the user"


def test_a_project_in_a_home_that_lies_in_a_granted_folder_is_still_seen(place: Place, tmp_path: Path) -> None:
    access = Access(project=ProjectAccess.WRITE, write=(str(tmp_path),), network=())
    profile = place.profile(place.add(), access)
    assert str(place.user) in profile.covered
    assert str(place.project) in profile.write


def test_nothing_is_covered_when_no_granted_folder_contains_it(place: Place) -> None:
    plugin = place.add()
    assert place.profile(plugin, Access(project=ProjectAccess.WRITE)).covered == ()


@pytest.mark.parametrize("path", [".toolyard", ".toolyard/undo", ".toolyard/plugin-data/Another", "."])
def test_a_protected_folder_is_never_granted(place: Place, path: str) -> None:
    plugin = place.add()
    access = Access(write=(str(place.user / path),))
    failure = catch_failure(place.profile, plugin, access)
    assert failure.reason is Reason.START_FAILED
    assert str(place.user) in failure.message


def test_a_link_in_the_project_does_not_lead_to_a_protected_folder(place: Place) -> None:
    (place.project / "out").symlink_to(place.home)
    plugin = place.add(permissions={"write": ["out"], "network": []})
    assert plugin.links == {str(place.project / "out"): str(place.home)}
    with pytest.raises(Failure):
        place.profile(plugin)


@pytest.mark.requirement("confinement:links")
def test_a_link_is_followed_only_where_its_owner_saw_it_lead(place: Place, tmp_path: Path) -> None:
    out, elsewhere = place.project / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    out.symlink_to(elsewhere)
    plugin = place.add(permissions={"write": ["out"], "network": []})
    assert plugin.state is PluginState.CHANGED
    assert f"{out} leads to {elsewhere} by a link, which nobody has allowed" in plugin.reason
    plugin = place.allow()
    assert plugin.state is PluginState.READY
    assert str(elsewhere) in place.profile(plugin).write
    assert str(out) not in place.profile(plugin).write
    out.unlink()
    out.symlink_to(place.user)
    assert place.find().state is PluginState.CHANGED


@pytest.mark.requirement("confinement:links")
def test_what_was_reviewed_as_a_folder_and_is_a_link_needs_a_new_review(place: Place, tmp_path: Path) -> None:
    out = place.project / "out"
    out.mkdir()
    place.add(permissions={"read": ["out/inner"], "network": []})
    assert place.allow().state is PluginState.READY
    out.rmdir()
    out.symlink_to(tmp_path)
    plugin = place.find()
    assert plugin.state is PluginState.CHANGED
    review = place.plugins.trust.review(plugin, (), plugin.links)
    assert f"{out}/inner now leads to {tmp_path}/inner by a link" in review.changed
    assert review.shown_digest != replace(review, links={}).shown_digest, "a permission is given for what was shown"


@pytest.mark.requirement("confinement:links")
@pytest.mark.parametrize("name", ["node_modules", "package.json", "../node_modules", "../../package.json", ".venv"])
def test_a_link_among_its_dependencies_needs_a_review(place: Place, tmp_path: Path, name: str) -> None:
    plugin = place.add()
    environment = plugin.folder / ".venv"
    if name == ".venv":
        (tmp_path / "secret/bin").mkdir(parents=True)
        (tmp_path / "secret/bin/python").write_text("#!/bin/sh")
        (tmp_path / "secret/bin/python").chmod(0o755)
        environment.symlink_to(tmp_path / "secret")
    else:
        (plugin.folder / name).symlink_to(place.home)
    plugin = place.find()
    assert plugin.state is PluginState.CHANGED
    assert len(plugin.links) == 1


@pytest.mark.requirement("confinement:links")
def test_a_program_of_its_settings_that_others_may_change_makes_nothing_else_readable(place: Place) -> None:
    """Its first line, or a link in its place, could name any program of the user."""
    program, secret = place.project / "tools/run", place.user / "bin/secret"
    for path, text in ((program, f"#!{secret}\n"), (secret, "#!/bin/sh\n")):
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(0o755)
    plugin = place.add(permissions={"network": []}, config=f"TOOL={program}\n")
    profile = place.profile(plugin)
    assert str(program) in profile.read
    assert not [path for path in profile.read if path.startswith(str(secret.parent))]
    program.unlink()
    program.symlink_to(secret)
    assert place.find().state is PluginState.CHANGED


@pytest.mark.requirement("confinement:links")
def test_the_link_to_the_home_of_users_is_the_systems_and_needs_no_review(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``/home`` leads to ``/var/home`` on some systems."""
    monkeypatch.setattr("toolyard.plugins.package.plugin_access._resolve_top", lambda name: f"{place.project}/{name}")
    assert make_plain(place.project, "/home/me/data") == f"{place.project}/home/me/data"
    assert find_links(place.project, ["/home/me/data"]) == {}


def test_a_home_among_the_files_of_the_system_is_covered(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.plugins.package.plugin_access.list_system_trees", lambda: (str(tmp_path / "opt"),))
    home = tmp_path / "opt" / "toolyard"
    home.mkdir(parents=True)
    plugin = place.add()
    place.protected = replace(place.protected, home=home)
    assert place.profile(plugin, Access()).covered == (str(home),)


def test_a_home_in_the_installation_of_its_interpreter_is_covered(place: Place, tmp_path: Path) -> None:
    for name in ("bin", "lib"):
        (tmp_path / "app" / name).mkdir(parents=True)
    (tmp_path / "app" / "bin" / "python").write_text("")
    (tmp_path / "app" / "home").mkdir()
    plugin = place.add()
    assert plugin.command is not None
    plugin = replace(plugin, command=replace(plugin.command, argv=(str(tmp_path / "app/bin/python"), "main.py")))
    place.protected = replace(place.protected, home=tmp_path / "app" / "home")
    assert place.profile(plugin, Access()).covered == (str(tmp_path / "app" / "home"),)


@pytest.mark.requirement("confinement:level")
@pytest.mark.parametrize(("operator", "own"), [("full", "none"), ("none", "full"), ("files", "full")])
def test_nothing_runs_below_the_level_that_it_or_the_operator_demands(place: Place, operator: str, own: str) -> None:
    policy = ConfinementPolicy(protected=place.protected, minimum=ConfinementLevel(operator))
    failure = catch_failure(policy.require_level, "Plugin", None, ConfinementLevel(own))
    assert failure.reason is Reason.DENIED
    assert "'full'" in failure.message
    assert "its owner allowed it to run without confinement" in failure.message


@pytest.mark.requirement("confinement:level")
def test_an_operator_who_demands_nothing_lets_it_run_unconfined(place: Place) -> None:
    policy = ConfinementPolicy(protected=place.protected)
    assert policy.require_level("Plugin", None, ConfinementLevel.NONE).level is ConfinementLevel.NONE


@pytest.mark.requirement("confinement:links")
@pytest.mark.parametrize("how", ["link", "chain", "first line"])
def test_a_program_that_others_may_change_leads_to_no_file_of_the_home(tmp_path: Path, how: str) -> None:
    """Also where the file stands in a folder that others may change themselves."""
    folder, home = tmp_path / "plugin", tmp_path / "home"
    for place in (folder / ".venv/bin", home):
        place.mkdir(parents=True)
    program, key = folder / ".venv/bin/python", home / "key"
    key.write_text("secret")
    key.chmod(0o700)
    if how == "first line":
        program.write_text(f"#!{key}\n")
        program.chmod(0o755)
    else:
        program.symlink_to(folder / "hop" if how == "chain" else key)
        (folder / "hop").symlink_to(key)
    trees = list_program_trees(str(program), (str(folder), str(home)))
    assert [tree for tree in trees if tree.startswith(str(home))] == []
