"""Asks the stdio and static plugins of a VCPToolBox tree twice: by the tree's own code, and in place by ours.

Each side has a copy of the tree, because calls change it. All plugins are switched on; those of VCPToolBox's own
process are left to the tests of the bridge. What differs from run to run (times, ids, the place of the copy) is
replaced by a mark before answers are compared.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.vcp.calls import CALLS, STATIC
from toolyard.config import load_config
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.yard.yard import Yard

_LEFT_OUT = (".git", "node_modules", "AdminPanel-Vue", "docs", "image", "rust-vexus-lite")
_KEYS: Final = "ImageServer"  # whose settings VCPToolBox gives to others
_HOST: Final = Path(__file__).with_name("ask_vcptoolbox.js")
_MARKS: Final = tuple(
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"\d{4}[-/.]\d\d?[-/.]\d\d?[T _]\d\d[:_]\d\d(?:[:_]\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
        (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[-.]\d{3}Z?", "TIME"),
        (r"\d{13}(?:-[0-9a-f]{8})?", "MS"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
        (r"\d+(?:\.\d+)? ?ms\b", "MS"),
        (r"/\S*/\.cache/puppeteer", "BROWSERS"),  # below the home of each side
    )
)
_ENDED: Final = re.compile(r"exited with code \d+\.")
_LACKS: Final = re.compile(r"Cannot find (?:module|package) '([^'/][^']*)'|No module named '([^']+)'")
_FOLD: Final = re.compile(r"(?m)^\[=== ?vcp_fold:.*===\]$")  # which prompts treat
RANDOM: Final = frozenset({"TarotDivination", "UserAuth"})  # a card, a code
SETTINGS: Final = """
API_Key=sk-host-secret
API_URL=http://127.0.0.1:9
PORT=6005
Key=host-door-key
Image_Key=image-key-0123456789
File_Key=file-key-0123456789
VCP_Key=vcp-key-0123456789
VarHttpUrl=http://127.0.0.1
VarUser='a user'
DEFAULT_TIMEZONE=Asia/Shanghai
"""


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    value: Any  # of VCPToolBox: its result; of ours: the text and the data
    text: str = ""


def copy_whole_tree(tree: Path, copy: Path) -> Path:
    """Copy what plugins need of a tree, with settings of ours and without approvals."""
    shutil.copytree(tree, copy, ignore=lambda folder, _: _LEFT_OUT if Path(folder) == tree else (), symlinks=True)
    shutil.copytree(tree / "node_modules", copy / "node_modules", copy_function=os.link, symlinks=True)
    (copy / "image").mkdir()
    (copy / "config.env").write_text(SETTINGS, encoding="utf-8")
    (copy / "toolApprovalConfig.json").write_text('{"enabled": false}', encoding="utf-8")
    return copy


def copy_tree(tree: Path, copy: Path) -> Path:
    """Copy a tree with all of its stdio plugins switched on, and no others."""
    copy_whole_tree(tree, copy)
    for manifest in copy.glob("Plugin/*/plugin-manifest.json*"):
        name = manifest.name.removesuffix(".block")
        fields = json.loads(manifest.read_text("utf-8-sig"))
        is_on = fields["pluginType"] in ("synchronous", "asynchronous", "static") or fields["name"] == _KEYS
        manifest.rename(manifest.with_name(name if is_on else f"{name}.block"))
    return copy


def ask_theirs(tree: Path, place: Path) -> dict[str, Answer]:
    """Ask by the tree's own Plugin.js."""
    answers = place / "theirs.json"
    calls: list[JsonObject] = [{"name": name, "arguments": arguments} for name, arguments in CALLS.items()]
    calls += [{"name": name, "static": True} for name in STATIC]
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    done = subprocess.run(
        ["node", str(_HOST), str(tree), str(answers)], input=json.dumps(calls), text=True, check=False, timeout=600,
        env={**environment, "HOME": str(place)}, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(answers.read_text(encoding="utf-8"))
    answers_by_name = {}
    for one in found:
        value = one.get("result", one.get("values"))
        broken = [text for text in (one.get("values") or {}).values() if str(text).startswith("[Error updating ")]
        status, text = ("error", broken[0]) if broken else (one["status"], one.get("error", ""))
        answers_by_name[one["name"]] = Answer(status, value, text)
    return answers_by_name


def ask_ours(tree: Path, place: Path) -> dict[str, Answer]:
    """Ask in place, with the access that one decision on the installation gives."""
    home = place / "home"
    home.mkdir()
    lines = f"vcp = {json.dumps(str(tree))}\ntrusted_folders = [{json.dumps(str(tree / 'Plugin'))}]\n"
    (home / "config.toml").write_text(f"{lines}built_in = {{ FileOperator = false }}\n", encoding="utf-8")
    project = place / "project"
    project.mkdir()
    return asyncio.run(_ask(project, home))


async def _ask(project: Path, home: Path) -> dict[str, Answer]:
    answers = {}
    async with Yard(load_config(project, home)) as yard:
        for name, arguments in CALLS.items():
            envelope = (await yard.calls.settle(yard.calls.request(name, arguments))).envelope
            if envelope.error is not None and envelope.error.code is ErrorCode.TIMEOUT:
                # The first call compiles its packages, on a busy machine for longer than its manifest gives it.
                envelope = (await yard.calls.settle(yard.calls.request(name, arguments))).envelope
            text = "\n".join(filter(None, [envelope.text, envelope.error.message if envelope.error else ""]))
            answers[name] = Answer("error" if envelope.error else "success", envelope.data, text)
        statics = StaticValues(yard.plugins.host, yard.state.store, _now)
        for name in STATIC:
            plugin = yard.plugins.plugins.get(name)
            assert plugin is not None
            assert plugin.manifest is not None
            try:
                value = await statics.update(plugin, plugin.manifest)
                answers[name] = Answer("success", dict.fromkeys(plugin.manifest.placeholders, value), value)
            except Failure as failure:
                answers[name] = Answer("error", None, f"{failure.message} {failure.text}")
    return answers


def _now() -> Any:
    from datetime import datetime

    return datetime.now().astimezone()


def find_differences(name: str, theirs: Answer, ours: Answer, places: tuple[Path, Path]) -> list[str]:
    """Return what VCPToolBox answers and ours does not have."""
    if theirs.status != ours.status:
        return [f"{theirs.status} there, {ours.status} here: {theirs.text or theirs.value} | {ours.text}"[:1500]]
    if name in RANDOM:
        return []
    there, here = places
    wanted = list(_list_texts(_parse_error(theirs.text) if theirs.status == "error" else theirs.value))
    lacks = [match for text in wanted if (match := _LACKS.search(text))]
    if lacks:
        wanted = [group for group in lacks[-1].groups() if group]
    elif any(map(_ENDED.search, wanted)):  # without an answer: each host has its own words for why
        return []
    has = _normalize(f"{ours.text}\n{json.dumps(ours.value, ensure_ascii=False)}", here)
    plain = has.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    return [text[:600] for text in wanted if (one := _normalize(text, there)) not in has and one not in plain]


def _parse_error(text: str) -> Any:
    try:
        error = json.loads(text)
    except ValueError:
        return text
    return error.get("plugin_error") or error.get("plugin_execution_error") or error


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value; what the host adds is not compared."""
    if isinstance(value, dict) and value.get("vcp_dynamic_fold"):  # a prompt without embeddings has its lowest block
        yield from _list_texts(min(value["fold_blocks"], key=lambda block: block["threshold"])["content"])
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("timestamp", "MaidName", "tool_call_record_id"):
                yield from _list_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner)
    elif isinstance(value, str) and value.strip():
        yield value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def _normalize(text: str, place: Path) -> str:
    text = text.replace(str(place), "TREE")
    text = _FOLD.sub("", text).strip()
    for pattern, mark in _MARKS:
        text = pattern.sub(mark, text)
    return text
