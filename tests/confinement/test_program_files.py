"""The files that a program needs: itself, its interpreter, and the installation that they belong to."""

from pathlib import Path

import pytest

from toolyard.confinement.program_files import is_program, list_packages, list_program_trees

pytestmark = pytest.mark.requirement("confinement:files")


def make_program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == "bin":  # as every installation has it
        (path.parent.parent / "lib").mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_in_bin_belongs_to_the_folder_above(tmp_path: Path) -> None:
    program = make_program(tmp_path / "node-20" / "bin" / "node")
    assert list_program_trees(str(program)) == (str(program), str(tmp_path / "node-20"))


def test_a_folder_that_is_no_installation_is_not_readable_as_a_whole(tmp_path: Path) -> None:
    program = make_program(tmp_path / ".cargo" / "bin" / "tool")
    (tmp_path / ".cargo" / "lib").rmdir()
    assert list_program_trees(str(program)) == (str(program), str(tmp_path / ".cargo" / "bin"))


def test_a_program_elsewhere_is_granted_alone(tmp_path: Path) -> None:
    program = make_program(tmp_path / "tools" / "program")
    assert list_program_trees(str(program)) == (str(program),)


def test_a_virtual_environment_names_its_base(tmp_path: Path) -> None:
    base = make_program(tmp_path / "python-3.12" / "bin" / "python3.12")
    environment = tmp_path / "venv"
    for name in ("bin", "lib"):
        (environment / name).mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {base.parent}\nversion = 3.12\n")
    (environment / "bin" / "python").symlink_to(base)
    trees = list_program_trees(str(environment / "bin" / "python"))
    assert {str(environment), str(base), str(base.parent.parent)} <= set(trees)


def test_a_virtual_environment_names_no_folder_without_a_python(tmp_path: Path) -> None:
    """A program that may write its own folder could name any other one."""
    (tmp_path / "secrets").mkdir()
    program = make_program(tmp_path / "venv" / "bin" / "python")
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'secrets'}\n")
    assert list_program_trees(str(program)) == (str(program), str(tmp_path / "venv"))


def test_the_packages_of_node_are_found_in_the_folders_above(tmp_path: Path) -> None:
    script = tmp_path / "server" / "build"
    script.mkdir(parents=True)
    (tmp_path / "server" / "node_modules").mkdir()
    (tmp_path / "server" / "package.json").write_text("{}")
    assert list(list_packages(script)) == [
        str(tmp_path / "server" / "node_modules"),
        str(tmp_path / "server" / "package.json"),
    ]


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [("\x7fELF", 0o755, True), ("#!/bin/sh\n", 0o755, True), ("#!/bin/sh\n", 0o644, False), ("a,b\n", 0o755, False)],
)
def test_a_program_is_a_binary_or_names_its_interpreter(tmp_path: Path, text: str, mode: int, expected: bool) -> None:
    file = make_program(tmp_path / "file", text)
    file.chmod(mode)
    assert is_program(str(file)) is expected


def test_what_a_chain_of_links_leads_to_is_granted(tmp_path: Path) -> None:
    real = make_program(tmp_path / "versions" / "1" / "bin" / "tool")
    (tmp_path / "current").symlink_to("versions/1")
    shim = tmp_path / "shims" / "tool"
    shim.parent.mkdir()
    shim.symlink_to("../current/bin/tool")
    trees = list_program_trees(str(shim))
    assert trees == (str(real), str(tmp_path / "versions" / "1"))


def test_links_that_never_end_are_given_up(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    assert set(list_program_trees(str(one))) <= {str(one), str(two)}


def test_a_script_brings_its_interpreter(tmp_path: Path) -> None:
    interpreter = make_program(tmp_path / "ruby" / "bin" / "ruby")
    script = make_program(tmp_path / "scripts" / "tool", f"#!{interpreter} -w\nputs 1\n")
    assert set(list_program_trees(str(script))) == {str(script), str(interpreter), str(tmp_path / "ruby")}


def test_scripts_that_interpret_each_other_come_to_an_end(tmp_path: Path) -> None:
    script = tmp_path / "script"
    make_program(script, f"#!{script}\n")
    assert list_program_trees(str(script)) == (str(script),)


@pytest.mark.parametrize("name", [".local", "home"])
def test_a_folder_of_many_programs_is_no_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    program = make_program(tmp_path / name / "bin" / "tool")
    assert list_program_trees(str(program)) == (str(program), str(program.parent))


def test_a_program_of_the_system_adds_none_of_its_wide_folders() -> None:
    assert not {"/", "/usr", "/usr/local"} & set(list_program_trees("/usr/bin/env"))


def test_a_program_that_is_missing_costs_nothing(tmp_path: Path) -> None:
    assert list_program_trees(str(tmp_path / "missing")) == (str(tmp_path / "missing"),)
