"""The plugins that live in VCPToolBox's process, of a real tree, through the bridge: loaded, and answering as there.

The tree is given by TOOLYARD_VCP_TREE, with its npm packages installed; in the soak.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.vcp.calls import CALLS as STDIO_CALLS
from tests.vcp.calls import EXCEPTIONS, LEAST_SAME, NOT_LOADED, STATIC
from tests.vcp.comparison import Answer, copy_tree, find_differences
from toolyard.config import load_config
from toolyard.protocol.json import Json, JsonObject
from toolyard.vcp.bridge.connection import Inventory
from toolyard.yard.yard import Yard

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")
_HOST: Final = Path(__file__).with_name("ask_vcptoolbox.js")
IN_PROCESS: Final = ("hybridservice", "service", "messagePreprocessor")
# Harmless calls of those that can be called: they need no network, or fail without it in the same words.
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("AgentAssistant", {"agent_name": "Nobody", "prompt": "hello"}),
    ("AgentDream", {"command": "triggerDream", "agent_name": "Nobody"}),
    ("BrowserSearch", {"command": "status"}),
    ("BrowserSearch", {"command": "no such command"}),
    ("ChromeBridge", {"command": "click", "target": "a button"}),
    ("DailyNote", {"command": "create", "maid": "[Tests]Nova", "Date": "2026-01-02", "Content": "[10:00] no tag"}),
    (
        "DailyNote",
        {"command": "create", "maid": "[Tests]Nova", "Date": "2026-01-02", "Content": "[10:00] a note\nTag: a, b"},
    ),
    ("DailyNote", {"command": "update", "target": "there is no such text in it", "replace": "x", "maid": "Nova"}),
    ("DailyNoteManager", {"command": "none", "folder": "none", "startDate": "2026-01-01", "endDate": "2026-01-02"}),
    ("DailyNoteManager", {"command": "list", "folder": "Tests", "startDate": "2026-01-01", "endDate": "2026-01-03"}),
    ("DailyNoteSearcher", {"query": "a word"}),
    ("LightMemo", {"maid": "Nova", "query": "a word"}),
    ("LinuxShellExecutor", {"command": "echo hello"}),
    ("LinuxShellExecutor", {"command": "echo hello", "hostId": "local"}),
    ("LinuxLogMonitor", {"command": "list"}),
    ("MagiAgent", {"command": "query_meeting", "meeting_id": "none"}),
    ("MediaRenderer", {"command": "RenderHtml", "html": "<p>hello</p>"}),
    ("OpenHerPersona", {"command": "status", "agent": "Nova"}),
    ("OpenHerPersona", {"command": "explain"}),
    ("PluginManager", {"command": "ListPlugins"}),
    ("SnowBridge", {"command": "GetStatus"}),
    ("VCPClawMail", {"command": "list_recent"}),
    ("VCPTaskAssistant", {"command": "getStatus"}),
    ("VCPTaskAssistant", {"command": "none"}),
    ("VCPToolBridge", {"command": "GetStatus"}),
)
PREPROCESSORS: Final = (
    "VCPTavern", "RAGDiaryPlugin", "VCPTimeLine", "OpenHerPersona", "OneRing", "ContextFoldingV2",
    "CapturePreprocessor", "ImageProcessor",
)  # fmt: skip
MESSAGES: Final[list[Json]] = [
    {"role": "system", "content": "You are Nova. {{VCPTavern::none}} {{Tests日记本}} [[ContextFoldingV2]]"},
    {"role": "user", "content": "[系统提示:] a hint"},
    {"role": "user", "content": "What did I note?"},
]
# The status is compared by itself; the key of config.env, which some plugins tell, is another one here.
_NOT_COMPARED: Final = ("success", "error", "host-door-key")
_MOMENT: Final = re.compile(r"\d\d_\d\d_\d\d(?=\.txt)")  # in the name of a diary
Asked = tuple[Inventory, list[Answer]]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two copies of the tree with the plugins of its process switched on, and no others."""
    if not TREE or not shutil.which("node"):
        pytest.skip("TOOLYARD_VCP_TREE names no VCPToolBox to compare with")
    place = tmp_path_factory.mktemp("trees")
    theirs, ours = (copy_tree(Path(TREE), place / name) for name in ("theirs", "ours"))
    for manifest in (*theirs.glob("Plugin/*/plugin-manifest.json*"), *ours.glob("Plugin/*/plugin-manifest.json*")):
        is_on = json.loads(manifest.read_text("utf-8-sig"))["pluginType"] in IN_PROCESS
        manifest.rename(manifest.with_name("plugin-manifest.json" if is_on else "plugin-manifest.json.block"))
    return theirs, ours


@pytest.fixture(scope="module")
def answers(trees: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The plugins that the bridge has loaded, and what its tools answer."""
    return asyncio.run(_ask_bridge(trees[1], tmp_path_factory.mktemp("place")))


@pytest.mark.requirement("vcp:bridge:same-answers")
def test_every_such_plugin_of_a_real_tree_is_loaded_or_listed(trees: tuple[Path, Path], answers: Asked) -> None:
    names = {json.loads(file.read_text("utf-8-sig"))["name"] for file in trees[1].glob("Plugin/*/plugin-manifest.json")}
    inventory = answers[0]
    assert inventory.plugins.keys() == names
    assert len(names) + len(STDIO_CALLS) + len(STATIC) - len(NOT_LOADED) - len(EXCEPTIONS) >= LEAST_SAME
    wrong = {name: one.problem for name, one in inventory.plugins.items() if one.problem or not one.is_loaded}
    assert wrong.keys() <= NOT_LOADED.keys(), wrong


@pytest.mark.requirement("vcp:bridge:same-answers")
def test_its_calls_are_answered_as_in_vcptoolbox(trees: tuple[Path, Path], answers: Asked, tmp_path: Path) -> None:
    there, here = _ask_vcptoolbox(trees[0], tmp_path), answers[1]
    asked = [*CALLS, *((name, {}) for name in PREPROCESSORS)]
    compared = [
        (name, arguments, [text for text in find_differences(name, one, other, trees) if text not in _NOT_COMPARED])
        for (name, arguments), one, other in zip(asked, there, here, strict=True)
        if name not in NOT_LOADED
    ]
    different = [one for one in compared if one[2]]
    assert not different, "\n".join(map(str, different))
    assert sum(one.status == "success" for one in here) > len(CALLS) / 3
    unloaded = [(name, one.status, other.status) for (name, _), one, other in zip(asked, there, here, strict=True)
                if name in NOT_LOADED]  # fmt: skip
    assert unloaded
    assert all(one == other == "error" for _, one, other in unloaded), unloaded


async def _ask_bridge(tree: Path, place: Path) -> Asked:
    (place / "home").mkdir()
    (place / "project").mkdir()
    lines = f"vcp = {json.dumps(str(tree))}\ntrusted_folders = [{json.dumps(str(tree / 'Plugin'))}]\n"
    (place / "home/config.toml").write_text(lines, encoding="utf-8")
    answers = []
    async with Yard(load_config(place / "project", place / "home")) as yard:
        assert yard.vcp.bridge is not None
        connection = await yard.vcp.bridge.connect()
        for name, arguments in CALLS:
            envelope = (await yard.calls.settle(yard.calls.request(name, arguments))).envelope
            text = "\n".join(filter(None, [envelope.text, envelope.error.message if envelope.error else ""]))
            data = json.loads(_MOMENT.sub("MOMENT", json.dumps(envelope.data, ensure_ascii=False)))
            answers.append(Answer("error" if envelope.error else "success", data, _MOMENT.sub("MOMENT", text)))
        filled = [await connection.preprocess([name], MESSAGES, {}) for name in PREPROCESSORS]
        return connection.inventory, [*answers, *(Answer("success", messages) for messages in filled)]


def _ask_vcptoolbox(tree: Path, place: Path) -> list[Answer]:
    file = place / "answers.json"
    calls: list[JsonObject] = [{"name": name, "arguments": arguments} for name, arguments in CALLS]
    calls += [{"name": name, "messages": MESSAGES} for name in PREPROCESSORS]
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    subprocess.run(
        ["node", str(_HOST), str(tree), str(file)], input=json.dumps(calls), text=True, check=True, timeout=300,
        env={**environment, "HOME": str(place)},
    )  # fmt: skip
    found = json.loads(_MOMENT.sub("MOMENT", file.read_text(encoding="utf-8")))
    return [_read_answer(one) for one in found]


def _read_answer(one: dict[str, Any]) -> Answer:
    """A result that holds nothing but an error is one here; VCPToolBox gives it to the model as a result."""
    result = one.get("result")
    if isinstance(result, dict) and "plugin_error" in result:
        return Answer("error", None, json.dumps(result))
    return Answer(one["status"], result, one.get("error", ""))
