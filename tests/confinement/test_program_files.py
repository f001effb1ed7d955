"""The files that a program needs: itself, its interpreter, and the installation that they belong to."""

import os
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


@pytest.mark.requirement("confinement:links")
def test_a_virtual_environment_that_others_may_change_leads_to_a_python_alone(tmp_path: Path) -> None:
    base = make_program(tmp_path / "python-3.12" / "bin" / "python3")
    (base.parent.parent / "lib/python3.12").mkdir()
    (base.parent.parent / "lib/python3.12/os.py").touch()
    folder = tmp_path / "plugin"
    environment = folder / ".venv"
    make_program(environment / "bin/tool", f"#!{environment}/bin/python\n")
    (environment / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (environment / "bin/python").symlink_to(base)
    for name in ("python", "tool"):
        trees = list_program_trees(str(environment / "bin" / name), [str(folder)])
        assert trees == (str(environment), str(base), str(tmp_path / "python-3.12/lib"))


@pytest.mark.requirement("confinement:links")
@pytest.mark.parametrize("way", ["link", "chain", "first line", "pyvenv.cfg"])
def test_a_program_that_others_may_change_leads_to_nothing_else(tmp_path: Path, way: str) -> None:
    """It could name any program of the user, whose folder would be readable then."""
    secret = make_program(tmp_path / "secret" / "bin" / "python3")
    folder = tmp_path / "plugin"
    program = make_program(folder / "venv/bin/python")
    match way:
        case "link" | "chain":
            program.unlink()
            (tmp_path / "hop").symlink_to(secret)
            program.symlink_to(tmp_path / "hop" if way == "chain" else secret)
        case "first line":
            program.write_text(f"#!{secret}\n")
        case "pyvenv.cfg":
            (folder / "venv/pyvenv.cfg").write_text(f"home = {secret.parent}\n")
    assert list_program_trees(str(program), [str(folder)]) == (str(folder / "venv"),)


def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path: Path) -> None:
    program = make_program(tmp_path / "venv/bin/python")
    os.mkfifo(tmp_path / "venv/pyvenv.cfg")
    os.mkfifo(tmp_path / "pipe", 0o755)
    assert list_program_trees(str(program)) == (str(program), str(tmp_path / "venv"))
    assert not is_program(str(tmp_path / "pipe"))


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
