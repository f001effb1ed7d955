"""A VCPToolBox installation in place: found, decided on once, confined together, and open with its own keys."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result

from tests.vcp.conftest import SHOW, add_plugin
from tests.web.conftest import run_server
from toolyard.cli import toolyard
from toolyard.config import load_config
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.confinement.start import can_enter_directly, can_enter_with_program
from toolyard.errors import UsageError
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.plugins.process.process_output import LogStream
from toolyard.protocol.access import ConfinementLevel
from toolyard.protocol.tool import Outcome
from toolyard.vcp.installation import read_installation
from toolyard.vcp.ownership import find_vcptoolbox, own_installation
from toolyard.web.server.lifecycle import Server, ServerOptions
from toolyard.yard.yard import Yard

CONFINED = measure_confinement(Profile()).level.reaches(ConfinementLevel.FILES)
confined = pytest.mark.skipif(not CONFINED, reason="nothing is confined here")
NODE = """
const fs = require("fs");
const seen = {};
for (const path of JSON.parse(fs.readFileSync(0, "utf8")).paths) {
  try { seen[path] = fs.readFileSync(path, "utf8"); } catch { seen[path] = null; }
}
process.stdout.write(JSON.stringify({ status: "success", result: { seen } }));
"""


def run(tmp_path: Path, *words: str) -> Result:
    """Run a command, in a thread: a test may have an event loop."""
    words = ("--home", str(tmp_path / "home"), "--project", str(tmp_path), *words)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(CliRunner().invoke, toolyard, words).result()


def allow(tmp_path: Path, tree: Path) -> Any:
    result = run(tmp_path, "--json", "vcp", "allow", str(tree), "--yes")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def call(tmp_path: Path, tree: Path, tool: str, **arguments: Any) -> Outcome:
    async with Yard(load_config(tmp_path, tmp_path / "home", vcp=tree)) as yard:
        return await yard.calls.settle(yard.calls.request(tool, arguments))


@pytest.mark.requirement("vcp:installation")
def test_an_installation_is_read_without_running_anything(tree: Path) -> None:
    add_plugin(tree, "Off")
    (tree / "Plugin/Off/plugin-manifest.json").rename(tree / "Plugin/Off/plugin-manifest.json.block")
    there = read_installation(tree)
    assert {one.name: (one.is_enabled, one.is_in_process) for one in there.plugins} == {
        "Off": (False, False), "Show": (True, False), "Store": (True, False), "VCPLog": (True, True)
    }  # fmt: skip
    assert there.agents == {"Nova": tree / "Agent/Nova.txt"}
    assert (there.port, there.key, there.vcp_key) == (6005, "the-door-key-0123", "channel-key-0123")
    assert (there.image_key, there.file_key) == ("picture-key-0123", "document-key-0123")
    assert there.variables["VarUser"] == "the user"


@pytest.mark.requirement("vcp:installation")
def test_a_folder_without_plugins_is_no_installation(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not an install of VCPToolBox"):
        read_installation(tmp_path)
    assert isinstance(run(tmp_path, "vcp", "allow", str(tmp_path), "--yes").exception, UsageError)


@pytest.mark.requirement("vcp:one-decision")
def test_one_decision_covers_every_plugin_and_a_changed_one_asks_again(tmp_path: Path, tree: Path) -> None:
    refused = run(tmp_path, "vcp", "allow", str(tree)).exception
    assert isinstance(refused, UsageError), "nothing is approved without a terminal or --yes"
    assert {*allow(tmp_path, tree)["allowed"]} >= {"Show", "Store"}
    assert allow(tmp_path, tree)["allowed"] == []
    (tree / "Plugin/Show/main.py").write_text(f"{SHOW}\n# changed\n", encoding="utf-8")
    after = allow(tmp_path, tree)
    assert after["allowed"] == ["Show"]


@pytest.mark.requirement("vcp:one-decision")
def test_the_review_names_what_the_plugins_may_reach_together(tmp_path: Path, tree: Path) -> None:
    add_plugin(tree, "Asks", SHOW + "\nkey = os.environ.get('API_Key')\n")
    shown = run(tmp_path, "vcp", "allow", str(tree), "--yes").output
    assert "of 4 plugins wait for your decision" in shown
    assert "reads every file of the project" in shown
    assert "connects to any host" in shown
    assert "API_Key" in next(line for line in shown.splitlines() if line.startswith("Asks "))
    assert "API_Key" not in next(line for line in shown.splitlines() if line.startswith("Show "))


@confined
@pytest.mark.requirement("vcp:one-decision")
async def test_a_plugin_is_narrowed_by_a_decision_of_its_own(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    narrowed = run(tmp_path, "plugin", "list")  # without the installation it is unknown
    assert "Show" not in narrowed.output
    (tmp_path / "home/config.toml").write_text(f"vcp = {json.dumps(str(tree))}\n", encoding="utf-8")
    assert run(tmp_path, "plugin", "allow", "Show", "--access", "strict", "--yes").exit_code == 0
    outcome = await call(tmp_path, tree, "Show", read=["Agent/Nova.txt"])
    assert outcome.envelope.data["read"] == {"Agent/Nova.txt": "PermissionError"}
    assert allow(tmp_path, tree)["allowed"] == [], "the decision on all leaves those on one as they are"


@pytest.mark.requirement("vcp:settings-view")
async def test_a_plugin_gets_the_variables_that_its_code_names(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    outcome = await call(tmp_path, tree, "Show")
    data = outcome.envelope.data
    assert data["root"] == str(tree)
    variables = data["variables"]
    assert isinstance(variables, dict)
    assert variables["WeatherCity"] == "Shanghai"
    assert not variables.keys() & {"API_Key", "Key", "VCP_Key", "OTHER_API_KEY", "VarUser"}


@confined
@pytest.mark.requirement("vcp:settings-view")
async def test_it_reads_the_same_keys_in_the_file_and_no_secret_of_a_sibling(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    files = ["config.env", "Plugin/Store/config.env"]
    outcome = await call(tmp_path, tree, "Show", read=files, write=["config.env"])
    read: Any = outcome.envelope.data["read"]
    if can_enter_directly() or can_enter_with_program():
        assert read["config.env"].splitlines()[1:] == [
            "VarHttpUrl=http://vcp.example", "VarUser=the user", "WeatherCity=Shanghai"
        ]  # fmt: skip
        assert read["Plugin/Store/config.env"] == "# Toolyard hides 2 other settings of this file\n"
    else:
        assert {*read.values()} == {"PermissionError"}
    assert outcome.envelope.data["write"] != {"config.env": "written"}
    assert (tree / "config.env").read_text(encoding="utf-8").startswith("# the installation's own settings")


@confined
@pytest.mark.requirement("vcp:settings-view")
async def test_a_file_that_is_replaced_between_warm_calls_is_hidden_as_before(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    (tree / "config.env.backup").write_text("API_Key=an-old-secret\n")
    async with Yard(load_config(tmp_path, tmp_path / "home", vcp=tree)) as yard:
        for number in range(4):
            new = tree / "new.env"
            new.write_text(f"API_Key=secret-{number}\nWeatherCity=City {number}\n")
            new.replace(tree / "config.env")
            arguments = {"read": ["config.env", "config.env.backup"]}
            outcome = await yard.calls.settle(yard.calls.request("Show", arguments))
            shown = json.dumps(outcome.envelope.data["read"])
            assert "secret" not in shown
            assert f"City {number}" in shown or "PermissionError" in shown


@confined
@pytest.mark.requirement("vcp:access")
async def test_a_plugin_reads_the_tree_and_writes_what_plugins_share(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    outcome = await call(
        tmp_path, tree, "Show",
        read=["Agent/Nova.txt", "Plugin/Store/cache.txt"], names=["Plugin"],
        write=["dailynote/new.txt", "image/new.png", "Plugin/Show/own.txt", "Plugin/Store/stolen.txt", "server.js"],
    )  # fmt: skip
    data = outcome.envelope.data
    assert data["read"] == {"Agent/Nova.txt": "You are Nova.", "Plugin/Store/cache.txt": "cached"}
    assert data["names"] == {"Plugin": ["Show", "Store", "VCPLog"]}
    write = data["write"]
    assert isinstance(write, dict)
    assert [path for path, done in write.items() if done == "written"] == [
        "dailynote/new.txt", "image/new.png", "Plugin/Show/own.txt"
    ]  # fmt: skip


@confined
@pytest.mark.requirement("vcp:access")
async def test_it_also_writes_in_a_sibling_that_its_code_names_by_a_path(tmp_path: Path, tree: Path) -> None:
    add_plugin(tree, "Edits", f'{SHOW}\n# os.path.join(here, "..", "Store")\n')
    allow(tmp_path, tree)
    outcome = await call(tmp_path, tree, "Edits", write=["Plugin/Store/edited.txt", "Plugin/Show/edited.txt"])
    write = outcome.envelope.data["write"]
    assert isinstance(write, dict)
    assert write["Plugin/Store/edited.txt"] == "written"
    assert write["Plugin/Show/edited.txt"] != "written"


@pytest.mark.requirement("vcp:access")
async def test_a_trusted_folder_of_plugins_has_the_same_access(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "home").mkdir()
    trusted = json.dumps([str(tree / "Plugin")])
    (tmp_path / "home/config.toml").write_text(f"trusted_folders = {trusted}\n", encoding="utf-8")
    outcome = await call(tmp_path, tree, "Show", read=["Agent/Nova.txt"])
    assert outcome.envelope.data["read"] == {"Agent/Nova.txt": "You are Nova."}


@confined
@pytest.mark.requirement("vcp:no-silent-refusals")
async def test_a_result_says_what_its_plugin_was_kept_from_and_swallowed(tmp_path: Path, tree: Path) -> None:
    allow(tmp_path, tree)
    outcome = await call(tmp_path, tree, "Show", write=["server.js"])
    envelope = outcome.envelope
    assert envelope.error is None
    assert envelope.context["refused_paths"] == [str(tree / "server.js")]
    assert f"Its access does not include {tree}/server.js" in envelope.text
    assert "plugin allow Show --access wide" in envelope.text


@confined
@pytest.mark.requirement("vcp:no-silent-refusals")
async def test_the_log_of_a_plugin_says_it_too_also_of_a_static_one(tmp_path: Path, tree: Path) -> None:
    code = "import os\ntry: open(os.environ['PROJECT_BASE_PATH'] + '/new', 'w')\nexcept OSError: print('empty')"
    add_plugin(tree, "Fills", code, pluginType="static", capabilities={
        "systemPromptPlaceholders": [{"placeholder": "{{Fills}}"}]
    })  # fmt: skip
    allow(tmp_path, tree)
    async with Yard(load_config(tmp_path, tmp_path / "home", vcp=tree)) as yard:
        host = yard.plugins.host
        plugin = yard.plugins.plugins.get("Fills")
        assert plugin is not None
        assert plugin.manifest is not None
        statics = StaticValues(host, yard.state.store, lambda: datetime.now(UTC))
        assert await statics.update(plugin, plugin.manifest) == "empty"
        notes = [entry.text for entry in host.logs["Fills"].entries if entry.stream is LogStream.NOTE]
        assert notes == [f"Its access does not include {tree}/new, which it tried to reach."]


@confined
@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
@pytest.mark.requirement("vcp:no-silent-refusals")
async def test_a_node_plugin_is_watched_too_cold_and_warm(tmp_path: Path, tree: Path) -> None:
    folder = add_plugin(tree, "Reads", entryPoint={"command": "node main.js"})
    (folder / "main.js").write_text(NODE, encoding="utf-8")
    secret = tmp_path / "project"
    secret.mkdir()
    (secret / "secret.txt").write_text("secret")
    allow(tmp_path, tree)
    paths = [str(secret / "secret.txt"), str(tree / "Agent/Nova.txt")]
    async with Yard(load_config(secret, tmp_path / "home", vcp=tree)) as yard:
        for _ in range(3):
            outcome = await yard.calls.settle(yard.calls.request("Reads", {"paths": paths}))
            assert outcome.envelope.data["seen"] == {paths[0]: None, paths[1]: "You are Nova."}
            assert outcome.envelope.context["refused_paths"] == paths[:1]


@confined
@pytest.mark.requirement("vcp:access")
async def test_wide_access_shows_no_folder_empty_that_is_not(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(f"vcp = {json.dumps(str(tree))}\n", encoding="utf-8")
    assert run(tmp_path, "plugin", "allow", "Show", "--access", "wide", "--yes").exit_code == 0
    outcome = await call(tmp_path, tree, "Show", names=["Plugin", "Plugin/Store"], read=["config.env"])
    names: Any = outcome.envelope.data["names"]
    assert names["Plugin"] == ["Show", "Store", "VCPLog"]
    assert "cache.txt" in names["Plugin/Store"]
    assert "sk-provider-secret" not in json.dumps(outcome.envelope.data["read"])


@pytest.mark.requirement("vcp:keys")
async def test_published_files_open_with_the_keys_of_the_tree(tmp_path: Path, tree: Path) -> None:
    (tree / "file").mkdir()
    (tree / "file/one.txt").write_text("one")
    async with run_server(tmp_path, settings=f"vcp = {json.dumps(str(tree))}\n") as running:
        paths = ("/pw=picture-key-0123/images/one.png", "/pw=document-key-0123/files/one.txt")
        assert [(await running.get(path, key="")).status for path in paths] == [200, 200]
        assert (await running.get("/pw=document-key-0123/images/one.png", key="")).status == 404


@pytest.mark.requirement("vcp:keys")
async def test_existing_clients_keep_their_keys(tmp_path: Path, tree: Path) -> None:
    async with run_server(tmp_path, settings=f"vcp = {json.dumps(str(tree))}\n") as running:
        address = running.url.replace("http", "ws", 1)
        async with running.client.ws_connect(f"{address}/VCPlog/VCP_Key=channel-key-0123") as socket:
            assert (await socket.receive_json())["type"] == "connection_ack"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await running.client.ws_connect(f"{address}/VCPlog/VCP_Key=channel-key-root")
        assert (await running.get("/v1/models", key="the-door-key-0123")).status == 200
        assert (await running.get("/v1/settings", key="the-door-key-0123")).status == 403


@pytest.mark.requirement("vcp:plugin-list")
async def test_a_list_beside_the_server_has_every_plugin_of_the_installation(tmp_path: Path, tree: Path) -> None:
    server = Server(load_config(tmp_path, tmp_path / "home", vcp=tree), ServerOptions(port=0))
    await server.start()
    try:
        listed = json.loads((await asyncio.to_thread(run, tmp_path, "--json", "plugin", "list")).stdout)
        assert {one["name"]: one["type"] for one in listed if one["origin"] == "vcp"} == {
            "Show": "synchronous", "Store": "synchronous", "VCPLog": "service"
        }  # fmt: skip
    finally:
        await server.stop()


@pytest.fixture
def vcptoolbox(tree: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that runs in the tree as VCPToolBox's own server does."""
    (tree / "server.js").write_text("import sys; print('up', flush=True); sys.stdin.read()")
    with subprocess.Popen(
        [sys.executable, "server.js"], cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc")
@pytest.mark.requirement("vcp:one-host")
def test_a_tree_that_vcptoolbox_runs_is_used_only_beside_it(tree: Path, vcptoolbox: "subprocess.Popen[str]") -> None:
    assert find_vcptoolbox(tree) == vcptoolbox.pid
    with (
        pytest.raises(UsageError, match=f"process {vcptoolbox.pid}.*--beside"),
        own_installation(tree, is_shared=False),
    ):
        pass
    with own_installation(tree, is_shared=True):
        pass


@pytest.mark.requirement("vcp:one-host")
def test_two_servers_of_toolyard_do_not_run_one_tree(tree: Path) -> None:
    before = sorted(tree.iterdir())
    with own_installation(tree, is_shared=False):
        with pytest.raises(UsageError, match="another server"), own_installation(tree, is_shared=False):
            pass
        assert sorted(tree.iterdir()) == before
    with own_installation(tree, is_shared=False):
        pass
