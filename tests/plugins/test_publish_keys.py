"""The keys of published files: given to a plugin that names them, when its owner said yes to a review that shows it."""

import json
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from tests.plugins.yards import PluginYard
from toolyard.config import load_config
from toolyard.plugins.package.environment import PublishKeys, SettingSource
from toolyard.plugins.package.fingerprint import FILE_KEY, IMAGE_KEY
from toolyard.plugins.package.plugin import Plugin
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("plugin:environment:publish-keys")
SEES = """
import json, os, sys
sys.stdin.read()
seen = {name: os.environ.get(name, "") for name in ("IMAGESERVER_IMAGE_KEY", "VarHttpUrl", "SERVER_PORT")}
print(json.dumps({"status": "success", "result": {**seen, "file": os.environ.get("IMAGESERVER_" + "FILE_KEY", "")}}))
"""


def install_seer(place: Path, code: str = SEES, **more: object) -> Path:
    folder = make_plugin(place / "home" / "plugins", "Sees", **more)  # type: ignore[arg-type]
    (folder / "main.py").write_text(code, encoding="utf-8")
    (place / "project").mkdir(exist_ok=True)
    return folder


def yard_of(place: Path) -> Yard:
    return Yard(load_config(place / "project", place / "home"))


def plugin_of(yard: Yard) -> Plugin:
    yard.plugins.plugins.refresh()
    plugin = yard.plugins.plugins.get("Sees")
    assert plugin
    return plugin


async def test_a_yes_at_the_review_gives_the_key_that_the_code_names(tmp_path: Path) -> None:
    install_seer(tmp_path)
    async with yard_of(tmp_path) as yard:
        reviewed = yard.plugins.review(plugin_of(yard))
        assert IMAGE_KEY in reviewed.review.environment
        assert FILE_KEY not in reviewed.review.environment
        assert plugin_of(yard).publish_keys == frozenset()
        yard.plugins.allow(reviewed)
        assert plugin_of(yard).publish_keys == {IMAGE_KEY}
        seen = (await yard.call("Sees")).data
    keys = PublishKeys(tmp_path / "home").read()
    assert seen == {
        IMAGE_KEY: keys[IMAGE_KEY],
        "VarHttpUrl": "http://127.0.0.1",
        "SERVER_PORT": "6005",
        "file": "",
    }


async def test_a_review_that_did_not_show_the_key_does_not_give_it(tmp_path: Path) -> None:
    install_seer(tmp_path)
    async with yard_of(tmp_path) as yard:
        yard.plugins.allow(yard.plugins.review(plugin_of(yard)))
        trust = tmp_path / "home/trust.json"
        record = json.loads(trust.read_text("utf-8"))
        (entry,) = record["plugins"].values()
        entry["environment"].remove(IMAGE_KEY)
        trust.write_text(json.dumps(record), "utf-8")
        plugin = plugin_of(yard)
        assert (plugin.is_ready, plugin.publish_keys) == (True, frozenset())
        assert (await yard.call("Sees")).data[IMAGE_KEY] == ""
        (problem,) = [one for one in plugin.problems if IMAGE_KEY in one.message]
        command = f"toolyard plugin allow Sees --home {tmp_path}/home --project {tmp_path}/project"
        assert problem.fix == f"review it: {command}"
        reviewed = yard.plugins.review(plugin)
        assert f"now has {IMAGE_KEY} in its environment" in reviewed.review.changed
        yard.plugins.allow(reviewed)
        assert plugin_of(yard).publish_keys == {IMAGE_KEY}


@pytest.mark.parametrize(
    "more",
    [
        {"configSchema": {"IMAGESERVER_FILE_KEY": {"type": "string", "required": True}}},
        {"configSchema": {"IMAGESERVER_FILE_KEY": "string"}, "config": "IMAGESERVER_FILE_KEY=mine\n"},
    ],
)
async def test_the_host_decides_what_a_manifest_names(tmp_path: Path, more: dict[str, object]) -> None:
    async with PluginYard(tmp_path) as one:
        one.add("Sees", SEES, **more)  # type: ignore[arg-type]
        key = PublishKeys(tmp_path / "home").read_or_make()[FILE_KEY]
        assert (await one.call("Sees")).envelope.data["file"] == key
        plugin = one.yard.plugins.plugins.get("Sees")
        assert plugin
        assert plugin.manifest
        environment = one.yard.plugins.host.environment(plugin, plugin.manifest)
        assert (environment.sources[FILE_KEY], environment.problems) == (SettingSource.HOST, ())
        (setting,) = one.yard.plugins.host.settings(plugin, plugin.manifest)
        assert (setting.is_set, setting.secret, setting.value) == (True, True, None)


async def test_a_plugin_that_names_no_key_gets_none(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as one:
        one.add("Sees", SEES.replace("IMAGESERVER_IMAGE_KEY", 'IMAGESERVER_" + "IMAGE_KEY'))
        seen = (await one.call("Sees")).envelope.data
    assert (seen["file"], seen["VarHttpUrl"]) == ("", "")
    assert not (tmp_path / "home/publish-keys.json").exists()


async def test_the_owner_may_name_another_address(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as one:
        one.add("Sees", SEES, config="VarHttpUrl=https://files.example.org\n")
        assert (await one.call("Sees")).envelope.data["VarHttpUrl"] == "https://files.example.org"


async def test_a_name_across_two_chunks_of_a_large_file_is_seen(tmp_path: Path) -> None:
    start = b"#" * (2**20 - 10)
    async with PluginYard(tmp_path) as one:
        folder = one.add("Sees", SEES)
        (folder / "large.js").write_bytes(start + b"IMAGESERVER_FILE_KEY")
        (folder / "main.py").write_text("print('{}')", "utf-8")
        plugin = one.yard.plugins.plugins.get("Sees")
        assert plugin
        assert plugin.publish_keys == {FILE_KEY}


async def test_keys_that_cannot_be_read_are_told_and_never_written_over(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as one:
        one.add("Sees", SEES)
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "home/publish-keys.json").write_text("{broken", "utf-8")
        envelope = (await one.call("Sees")).envelope
    assert envelope.error
    assert "publish-keys.json" in envelope.error.message
    assert (tmp_path / "home/publish-keys.json").read_text("utf-8") == "{broken"
