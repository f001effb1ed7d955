"""An MCP server reaches the paths that its arguments and variables name, and what these need."""

from pathlib import Path

import pytest

from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.plugins.mcp.server_access import build_server_profile, effective_server_access
from toolyard.plugins.package.plugin_access import ConfinementPolicy, ProtectedFolders
from toolyard.protocol.access import Access

pytestmark = [pytest.mark.requirement("confinement:files"), pytest.mark.requirement("mcp:client")]


class Machine:
    """A machine with a user, a project and a folder of data."""

    def __init__(self, root: Path) -> None:
        self.user, self.project, self.data = root / "user", root / "user" / "project", root / "user" / "data"
        self.home = root / "user" / "toolyard"
        for folder in (self.project, self.data, self.home):
            folder.mkdir(parents=True)
        self.policy = ConfinementPolicy(protected=ProtectedFolders(home=self.home, user_home=self.user))

    def access(self, *args: str, **env: str) -> Access:
        declared = ServerDeclaration(name="one", command="server", args=args, env=env)
        return effective_server_access(declared, cwd=self.project, project=self.project, policy=self.policy, links={})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_folder_or_file_that_it_names_is_writable(machine: Machine) -> None:
    notes = machine.data / "notes.txt"
    notes.touch()
    assert machine.access(str(machine.data)).write == (str(machine.data),)
    assert machine.access(f"--file={notes}").write == (str(notes),)
    assert machine.access(FILE=str(notes)).write == (str(notes),)


@pytest.mark.parametrize("name", ["new.json", "old.db", "old.SQLITE"])
def test_a_file_that_it_will_make_or_a_database_needs_its_folder(machine: Machine, name: str) -> None:
    if name.startswith("old"):
        (machine.data / name).touch()
    assert str(machine.data) in machine.access("--path", str(machine.data / name)).write


def test_a_file_that_it_will_make_gives_no_folder_of_others(machine: Machine) -> None:
    places = (machine.user / "new.db", machine.project / "new.db", machine.home / "new.db", Path("/tmp/new.db"))
    words = (*map(str, places), "/etc/new.db", "/new.db", "new.db", "@scope/package", "https://example.com/new.db")
    assert machine.access(*words).write == ()


def test_its_script_is_read_with_the_packages_above_and_not_written(machine: Machine) -> None:
    script = machine.data / "server" / "build" / "index.js"
    script.parent.mkdir(parents=True)
    script.touch()
    (machine.data / "server" / "node_modules").mkdir()
    (machine.data / "server" / "package.json").write_text("{}")
    access = machine.access(str(script))
    assert access.write == ()
    server = machine.data / "server"
    assert set(access.read) == {
        str(path) for path in (script, script.parent, server / "node_modules", server / "package.json")
    }


def test_a_program_that_it_names_is_read_with_its_installation(machine: Machine) -> None:
    program = machine.data / "tool" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    (machine.data / "tool" / "lib").mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    access = machine.access(TOOL=str(program))
    assert access.write == ()
    assert {str(program), str(machine.data / "tool")} <= set(access.read)


@pytest.mark.parametrize("writable", [False, True])
def test_code_that_is_installed_from_elsewhere_is_read_unless_it_could_choose_that_itself(
    machine: Machine, *, writable: bool
) -> None:
    environment, source = machine.data / "venv", machine.data / "source"
    packages = environment / "lib" / "python3" / "site-packages"
    for folder in (packages, environment / "bin", source):
        folder.mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    (packages / "one.pth").write_text(f"import this\n{source}\n{source / 'missing'}\n")
    access = Access(write=(str(environment),) if writable else ())
    program = str(environment / "bin" / "server")
    profile = build_server_profile(
        access, program, project=machine.project, data=machine.home, policy=machine.policy, links={}
    )
    assert (str(source) in profile.read) is not writable
