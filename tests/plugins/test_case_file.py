"""A case that is added to a plugin's own ``cases.json``: where it may be written, and what stays."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin, plugins_in
from toolyard.errors import ToolyardError
from toolyard.plugins.authoring.cases import (
    FILE,
    MAX_BYTES,
    MAX_CASES,
    MAX_NAME,
    add_case,
    collect_cases,
    is_own_plugin,
)
from toolyard.plugins.package.plugin import Origin, Plugin
from toolyard.protocol.json import JsonObject

pytestmark = pytest.mark.requirement("plugin:cli:test:saved")
OWN = '[\n  { "name":  "mine", "args": {"n": 1.50} }\n]'


def plugin(tmp_path: Path, name: str = "Tested", **more: Any) -> Plugin:
    make_plugin(tmp_path / "home" / "plugins", name, **more)
    plugins = plugins_in(tmp_path / "home" / "plugins", home=tmp_path / "home")
    plugins.refresh()
    only = plugins.get(name)
    assert only is not None
    return only


def add(to: Plugin, name: str = "said", **arguments: Any) -> str:
    expect: JsonObject = {"status": "success", "text_contains": "你好"}
    return add_case(to, home=to.folder.parents[1], name=name, arguments=arguments, expect=expect)


def test_a_case_comes_after_those_of_the_author_which_stay_as_they_are_written(tmp_path: Path) -> None:
    own = plugin(tmp_path)
    file = own.folder / FILE
    assert add(own, text="a") == "said"
    assert file.stat().st_mode & 0o777 == 0o644
    file.write_text(OWN, encoding="utf-8")
    file.chmod(0o664)
    assert add(own, text="b" * 200) == "said"
    written = file.read_text(encoding="utf-8")
    assert written.startswith(OWN.removesuffix("\n]") + ",\n  {")
    assert "你好" in written
    assert file.stat().st_mode & 0o777 == 0o664
    assert own.manifest is not None
    cases, problems = collect_cases(own.manifest, own.folder)
    assert ([case.name for case in cases], problems) == (["mine", "said"], [])
    assert (cases[1].arguments, cases[1].text_contains) == ({"text": "b" * 200}, ("你好",))
    assert sorted(os.listdir(own.folder)) == [FILE, "main.py", "plugin-manifest.json"]


def test_a_name_is_one_visible_line_and_used_once_and_the_same_test_is_not_saved_twice(tmp_path: Path) -> None:
    own = plugin(tmp_path)
    names = [add(own, "one\ntwo\x1b[31m\u202e", n=n) for n in range(3)]
    assert names == ["one two [31m", "one two [31m (2)", "one two [31m (3)"]
    assert add(own, "\n", n=4) == "call"
    assert len(add(own, "x" * 500, n=5)) == MAX_NAME
    with pytest.raises(ToolyardError, match=r"has this test already: 'one two \[31m \(2\)'"):
        add(own, "another name", n=1)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param(b"[", "cannot be read", id="broken"),
        pytest.param("[]".encode("utf-16"), "cannot be read", id="utf-16"),
        pytest.param(b"{}", "is not a list", id="no list"),
        pytest.param(b"[" * 100_000, "cannot be read", id="deep"),
        pytest.param(json.dumps([{}] * MAX_CASES).encode(), "take one out", id="full"),
        pytest.param(b'["' + b"x" * (MAX_BYTES - 20) + b'"]', "larger than 1 MiB", id="large"),
    ],
)
def test_a_file_that_cannot_take_it_is_left_alone_and_says_why(tmp_path: Path, written: bytes, said: str) -> None:
    own = plugin(tmp_path)
    (own.folder / FILE).write_bytes(written)
    with pytest.raises(ToolyardError, match=said):
        add(own)
    assert (own.folder / FILE).read_bytes() == written


def test_a_link_a_pipe_and_a_file_that_the_command_line_reads_are_not_written(tmp_path: Path) -> None:
    own, outside = plugin(tmp_path), tmp_path / "outside.json"
    outside.write_text("[]")
    (own.folder / FILE).symlink_to(outside)
    with pytest.raises(ToolyardError, match="cannot be changed"):
        add(own)
    assert outside.read_text() == "[]"
    (own.folder / FILE).unlink()
    os.mkfifo(own.folder / FILE)
    with pytest.raises(ToolyardError, match="no ordinary file"):
        add(own)
    assert own.fingerprint is not None
    steered = replace(own, fingerprint=replace(own.fingerprint, files={**own.fingerprint.files, FILE: "0"}))
    with pytest.raises(ToolyardError, match="would change what runs"):
        add(steered)


def test_only_what_lies_in_a_folder_of_plugins_of_the_home_or_the_project_is_written_to(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    own = plugin(tmp_path)
    inside = replace(own, folder=project / "plugins" / "Other", origin=Origin.PROJECT)
    deeper = replace(own, folder=home / "plugins" / "a" / "b")
    linked = replace(own, folder=tmp_path / "elsewhere", origin=Origin.HOME)
    shipped = replace(own, origin=Origin.SHIPPED)
    own_flags = [is_own_plugin(one, project=project, home=home) for one in (own, inside, deeper, linked, shipped)]
    assert own_flags == [True, True, False, False, False]
