"""What of an installation is taken, adapted, left or needs something, found without running it."""

import json
import platform
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.vcp.conftest import add_plugin
from tests.vcp.test_place import allow, call, run
from toolyard.vcp.dependencies import our_glibc, read_glibc


def check(tmp_path: Path, tree: Path) -> dict[tuple[str, str], dict[str, Any]]:
    result = run(tmp_path, "--json", "vcp", "check", str(tree))
    assert result.exit_code == 0, result.output
    return {(one["part"], one["name"]): one for one in json.loads(result.stdout)["findings"]}


@pytest.mark.requirement("vcp:check")
def test_each_part_of_an_installation_has_a_verdict_and_a_reason(tmp_path: Path, tree: Path) -> None:
    add_plugin(tree, "Off")
    (tree / "Plugin/Off/plugin-manifest.json").rename(tree / "Plugin/Off/plugin-manifest.json.block")
    (tree / "agent_map.json").write_text('{"Nova": "Nova.txt", "Gone": "Gone.txt"}')
    (tree / "VCPTimedContacts").mkdir()
    task = {"taskId": "t", "scheduledLocalTime": "2099-01-01T10:00:00+08:00",
            "tool_call": {"tool_name": "Show", "arguments": {}}}  # fmt: skip
    (tree / "VCPTimedContacts/t.json").write_text(json.dumps(task))
    found = check(tmp_path, tree)
    verdicts = {key: one["verdict"] for key, one in found.items()}
    assert verdicts["plugin", "Show"] == "taken"
    assert found["plugin", "Show"]["waits"]
    assert (verdicts["plugin", "Off"], ".block" in found["plugin", "Off"]["why"]) == ("left", True)
    assert (verdicts["agent", "Nova"], verdicts["agent", "Gone"]) == ("taken", "needs")
    assert verdicts["schedule", "t.json"] == "needs"
    assert (verdicts["variable", "WeatherCity"], verdicts["variable", "VarUser"]) == ("taken", "taken")
    assert found["variable", "WeatherCity"]["why"].startswith("for Show, Store")
    assert (verdicts["variable", "PORT"], verdicts["variable", "OTHER_API_KEY"]) == ("adapted", "left")
    assert verdicts["key", "Image_Key"] == verdicts["client", "VCP_Key"] == "taken"
    allow(tmp_path, tree)
    assert not check(tmp_path, tree)["plugin", "Show"]["waits"]


@pytest.mark.requirement("vcp:check")
def test_the_text_groups_what_has_one_reason_and_names_the_next_step(tmp_path: Path, tree: Path) -> None:
    shown = run(tmp_path, "vcp", "check", str(tree)).output
    assert "plugin (" in shown
    assert f"vcp allow {tree}" in shown


@pytest.mark.requirement("vcp:check")
def test_a_key_that_is_too_short_to_be_accepted_is_named(tmp_path: Path, tree: Path) -> None:
    (tree / "Plugin/VCPLog/config.env").write_text("VCP_Key=1234567\n")
    found = check(tmp_path, tree)["client", "VCP_Key"]
    assert (found["verdict"], "8 characters" in found["why"]) == ("needs", True)


@pytest.mark.requirement("vcp:dependencies")
def test_what_a_plugin_needs_is_found_before_its_first_call(tmp_path: Path, tree: Path) -> None:
    (add_plugin(tree, "Snake", "import no_such_package_here\ntry:\n    import nor_this\nexcept ImportError: pass\n"))
    node = add_plugin(tree, "Node", entryPoint={"command": "node main.js"})
    (node / "main.js").write_text(
        'const a = require("no-such-npm-package"); const b = require("there"); const fs = require("fs");\n'
        'const { spawn } = require("child_process"); spawn("no-such-program-here", []);\n'
    )
    (tree / "node_modules/there").mkdir(parents=True)
    found = check(tmp_path, tree)
    snake, js = found["plugin", "Snake"], found["plugin", "Node"]
    assert (snake["verdict"], js["verdict"]) == ("needs", "needs")
    assert snake["needs"] == [{"kind": "python", "name": "no_such_package_here", "installable": True}]
    assert [(one["kind"], one["name"]) for one in js["needs"]] == [
        ("npm", "no-such-npm-package"), ("program", "no-such-program-here")
    ]  # fmt: skip


def write_native_module(file: Path) -> None:
    """One of this processor, for a C library that there is not yet."""
    machine = {"x86_64": 62, "aarch64": 183}.get(platform.machine(), 0)
    file.write_bytes(struct.pack("<4s14xH", b"\x7fELF", machine) + b"\0GLIBC_2.4\0GLIBC_9.87\0")


@pytest.mark.requirement("vcp:dependencies")
def test_a_vector_engine_that_this_system_cannot_load_is_named_by_check_and_doctor(tmp_path: Path, tree: Path) -> None:
    if our_glibc() == (0, 0):
        pytest.skip("this system has another C library")
    (tree / "rust-vexus-lite").mkdir()
    (tree / "rust-vexus-lite/engine.win32.node").write_bytes(b"MZ\0GLIBC_9.99\0")
    write_native_module(tree / "rust-vexus-lite/engine.linux.node")
    why = check(tmp_path, tree)["host", "VCPToolBox"]["why"]
    assert "rust-vexus-lite needs GLIBC 9.87" in why
    assert why.endswith("its plugins run without the knowledge base")
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/config.toml").write_text(f"vcp = {json.dumps(str(tree))}\n")
    allow(tmp_path, tree)
    assert why in " ".join(run(tmp_path, "doctor").output.split())


@pytest.mark.requirement("vcp:dependencies")
def test_a_native_module_for_another_c_library_is_named(tmp_path: Path, tree: Path) -> None:
    if our_glibc() == (0, 0):
        pytest.skip("this system has another C library")
    node = add_plugin(tree, "Node", entryPoint={"command": "node main.js"})
    (node / "main.js").write_text('require("fast-thing");\nrequire("unbuilt");')
    module = tree / "node_modules/fast-thing/build/Release/fast.node"
    module.parent.mkdir(parents=True)
    write_native_module(module)
    (tree / "node_modules/unbuilt").mkdir()
    (tree / "node_modules/unbuilt/binding.gyp").write_text("{}")
    assert read_glibc(module) == (9, 87)
    why = check(tmp_path, tree)["plugin", "Node"]["why"]
    assert "needs GLIBC 9.87, and this system has" in why
    assert "unbuilt is not built: npm rebuild unbuilt" in why


@pytest.mark.requirement("vcp:dependencies")
async def test_packages_in_the_home_are_found_by_the_check_and_by_the_plugin(tmp_path: Path, tree: Path) -> None:
    node = add_plugin(tree, "Node", entryPoint={"command": "node main.js"})
    (node / "main.js").write_text('process.stdout.write(JSON.stringify({status: "success", result: require("one")}));')
    assert check(tmp_path, tree)["plugin", "Node"]["verdict"] == "needs"
    package = tmp_path / "home/vcp-packages/node_modules/one"
    package.mkdir(parents=True)
    (package / "index.js").write_text('module.exports = { one: "found" };')
    assert check(tmp_path, tree)["plugin", "Node"]["verdict"] == "taken"
    allow(tmp_path, tree)
    assert (await call(tmp_path, tree, "Node")).envelope.data == {"one": "found"}


@pytest.mark.requirement("vcp:dependencies")
def test_nothing_is_installed_without_a_yes(tmp_path: Path, tree: Path) -> None:
    add_plugin(tree, "Snake", "import no_such_package_here\n")
    refused = run(tmp_path, "vcp", "install", str(tree))
    assert "Pass --yes" in str(refused.exception)
    assert "no_such_package_here (python)" in refused.output


@pytest.mark.requirement("vcp:dependencies")
def test_doctor_names_one_decision_and_what_is_missing(tmp_path: Path, tree: Path) -> None:
    add_plugin(tree, "Snake", "import no_such_package_here\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(f"vcp = {json.dumps(str(tree))}\n")
    before = run(tmp_path, "doctor").output
    assert f"plugins of {tree} wait for your decision" in " ".join(before.split())
    assert "plugin allow Show" not in before
    allow(tmp_path, tree)
    after = " ".join(run(tmp_path, "doctor").output.split())
    assert "Snake: the Python package no_such_package_here is not installed" in after
