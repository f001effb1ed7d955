"""EchoPlugin."""

from pathlib import Path

import pytest

from tests.shipped.children import PLUGINS, manifest, run

pytestmark = pytest.mark.requirement("shipped:echo")


def test_the_manifest_is_the_one_of_the_handbook() -> None:
    found = manifest("EchoPlugin")
    assert found["manifestVersion"] == "1.0.0"
    assert (found["name"], found["displayName"], found["pluginType"]) == ("EchoPlugin", "回声插件", "synchronous")
    assert found["entryPoint"] == {"type": "python", "command": "python echo.py"}
    assert found["communication"] == {"protocol": "stdio", "timeout": 5000}
    assert found["configSchema"]["ECHO_PREFIX"]["default"] == "Echo: "
    (only,) = found["capabilities"]["invocationCommands"]
    assert only["commandIdentifier"] == "EchoText"
    assert "tool_name:「始」EchoPlugin「末」,\ntext:「始」这是一个测试。「末」" in only["example"]


def test_the_text_comes_back_behind_the_default_prefix(tmp_path: Path) -> None:
    said = run("EchoPlugin", {"text": "你好，世界！", "maid": "Nova"}, tmp_path)
    assert (said.answer, said.code) == ({"status": "success", "result": "Echo: 你好，世界！"}, 0)


def test_the_prefix_is_a_setting(tmp_path: Path) -> None:
    said = run("EchoPlugin", b'{"text":"a\\n\\ud800b"}', tmp_path, {"ECHO_PREFIX": ">> "})
    assert said.answer["result"] == ">> a\n\ud800b"


@pytest.mark.parametrize("stdin", [b"", b"text", b"[1]", b"{}", b'{"text":null}', b"\xff\xfe"])
def test_what_it_cannot_echo_is_an_error_that_says_so(stdin: bytes, tmp_path: Path) -> None:
    said = run("EchoPlugin", stdin, tmp_path)
    assert said.answer["status"] == "error"
    assert "JSON" in said.answer["error"] or "text" in said.answer["error"]
    assert said.code == 1


def test_every_shipped_plugin_has_a_readme_and_an_example_of_its_settings() -> None:
    folders = [file.parent for file in PLUGINS.glob("*/plugin-manifest.json")]
    assert len(folders) >= 6
    for folder in folders:
        found = manifest(folder.name)
        assert (folder / "README.md").read_text("utf-8").startswith("# ")
        example = folder / "config.env.example"
        written = example.read_text("utf-8") if example.exists() else ""
        assert all(f"{key}=" in written for key in found.get("configSchema", {})), folder.name
        for each in found["capabilities"]["invocationCommands"]:
            assert f"tool_name:「始」{found['name']}「末」" in each["description"]
            assert f"tool_name:「始」{found['name']}「末」" in each["example"]
