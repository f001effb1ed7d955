"""The check of an installation: a list of all that is taken, adapted, left or needs something, for people and doctor.

Nothing is run. A plugin that only waits for its owner's decision counts as what it will be after that.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from toolyard.dialects.vcp_install import read_timed_task
from toolyard.message import Message, join_messages, to_fields
from toolyard.plugins.package.config_env import is_secret
from toolyard.plugins.package.installation_view import PROMPT_VARIABLE, find_named_variables, list_process_settings
from toolyard.plugins.package.plugin import Origin, Plugin, PluginState
from toolyard.vcp.dependencies import Need, NeedKind, find_needs, find_store_problem
from toolyard.vcp.installation import MIN_KEY, Installation, InstalledPlugin
from toolyard.vcp.ownership import find_vcptoolbox


class Part(StrEnum):
    PLUGIN = "plugin"
    VARIABLE = "variable"
    AGENT = "agent"
    TEXT = "text"
    SCHEDULE = "schedule"
    KEY = "key"
    CLIENT = "client"
    HOST = "host"


class Verdict(StrEnum):
    TAKEN = "taken"
    ADAPTED = "adapted"  # it works, in another way
    NEEDS = "needs"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    part: Part
    name: str
    verdict: Verdict
    why: str = ""
    needs: tuple[Need, ...] = ()
    waits: bool = False  # for its owner's decision

    def to_json(self) -> dict[str, Any]:
        return {
            "part": self.part.value,
            "name": self.name,
            "verdict": self.verdict.value,
            **to_fields("why", self.why),
            "needs": [
                {"kind": one.kind.value, "name": one.name, "installable": bool(one.package)} for one in self.needs
            ],
            "waits": self.waits,
        }


def check_installation(there: Installation, plugins: Iterable[Plugin], home: Path) -> tuple[Finding, ...]:
    """Return what becomes of each part; ``plugins`` are those that discovery has found."""
    own = [plugin for plugin in plugins if plugin.origin is Origin.VCP]
    return (
        *_check_host(there),
        *_check_plugins(there, own, home),
        *_check_variables(there, own),
        *_check_texts(there),
        *_check_schedules(there),
        *_check_keys(there),
    )


def list_needs(findings: Iterable[Finding]) -> tuple[Need, ...]:
    """Return what the plugins need, each once."""
    return tuple(dict.fromkeys(need for finding in findings for need in finding.needs))


def _check_host(there: Installation) -> Iterator[Finding]:
    if pid := find_vcptoolbox(there.root):
        why = Message("it runs now (process {pid}): start Toolyard with --beside, or stop it first", pid=pid)
        yield Finding(part=Part.HOST, name="VCPToolBox", verdict=Verdict.NEEDS, why=why)
    if store := find_store_problem(there.root):
        yield Finding(part=Part.HOST, name="VCPToolBox", verdict=Verdict.NEEDS, why=store)
    for problem in there.problems:
        yield Finding(part=Part.HOST, name="config.env", verdict=Verdict.LEFT, why=problem)


def _check_plugins(there: Installation, own: Sequence[Plugin], home: Path) -> Iterator[Finding]:
    found = {plugin.folder: plugin for plugin in own}
    for installed in there.plugins:
        plugin = found.get(Path(os.path.realpath(installed.folder)))
        if plugin is None:
            why = installed.problem or Message("it has no manifest")
            yield Finding(part=Part.PLUGIN, name=installed.name, verdict=Verdict.LEFT, why=why)
        else:
            yield _check_plugin(installed, plugin, home)


def _check_plugin(installed: InstalledPlugin, plugin: Plugin, home: Path) -> Finding:
    match plugin.state:
        case PluginState.READY | PluginState.NEEDS_REVIEW | PluginState.CHANGED | PluginState.MISSING_CONFIG:
            needs = find_needs(plugin, home)
            reasons: list[str] = [need.why for need in needs]
            if plugin.state is PluginState.MISSING_CONFIG:
                reasons.insert(0, plugin.reason)
            in_process = Message("it runs in VCPToolBox's own code, in a confined child process")
            hard = [need for need in needs if need.kind is not NeedKind.PROGRAM]
            verdict = Verdict.ADAPTED if installed.is_in_process else Verdict.TAKEN
            return Finding(
                part=Part.PLUGIN,
                name=plugin.name,
                verdict=Verdict.NEEDS if hard or plugin.state is PluginState.MISSING_CONFIG else verdict,
                why=join_messages(reasons) or (in_process if installed.is_in_process else ""),
                needs=needs,
                waits=plugin.waits,
            )
        case PluginState.SHADOWED:
            why: str = Message("the built-in tool of this name answers: {reason}", reason=plugin.reason)
            return Finding(part=Part.PLUGIN, name=plugin.name, verdict=Verdict.ADAPTED, why=why)
        case _:
            return Finding(part=Part.PLUGIN, name=plugin.name, verdict=Verdict.LEFT, why=plugin.reason)


def _check_variables(there: Installation, own: Sequence[Plugin]) -> Iterator[Finding]:
    users: dict[str, list[str]] = {}
    for plugin in own:
        for name in find_named_variables(plugin) & there.variables.keys():
            users.setdefault(name, []).append(plugin.name)
    in_process = [plugin for plugin in own if plugin.is_in_process and plugin.state is not PluginState.DISABLED]
    shared = list_process_settings(there.root, there.variables, in_process) if in_process else frozenset()
    for name, value in there.variables.items():
        named = users.get(name)
        if name in _ADAPTED:
            yield Finding(part=Part.VARIABLE, name=name, verdict=Verdict.ADAPTED, why=_ADAPTED[name])
        elif PROMPT_VARIABLE.match(name) and not is_secret(name, value):
            yield Finding(part=Part.VARIABLE, name=name, verdict=Verdict.TAKEN, why=Message("for prompts"))
        elif named:
            why = Message("for {plugins}", plugins=", ".join(sorted(named)))
            yield Finding(part=Part.VARIABLE, name=name, verdict=Verdict.TAKEN, why=why)
        elif name in shared:
            why = Message("for VCPToolBox's own code, in which plugins run")
            yield Finding(part=Part.VARIABLE, name=name, verdict=Verdict.TAKEN, why=why)
        else:
            why = Message("only VCPToolBox's own server reads it")
            yield Finding(part=Part.VARIABLE, name=name, verdict=Verdict.LEFT, why=why)


_ADAPTED = {
    "Key": Message("clients chat and call tools with it, beside Toolyard's own keys"),
    "PORT": Message("plugins get the port of this server"),
    "API_URL": Message("the model provider, while the settings name none; plugins that ask it themselves get it too"),
    "API_Key": Message("the model provider, while the settings name none; plugins that ask it themselves get it too"),
    "CALLBACK_BASE_URL": Message("callbacks come to this server, each with a token of its own"),
    "AdminUsername": Message("reads /admin_api/ only; sign in to the console with a login link"),
    "AdminPassword": Message("reads /admin_api/ only; sign in to the console with a login link"),
}


def _check_texts(there: Installation) -> Iterator[Finding]:
    for name, file in there.agents.items():
        yield _check_file(Part.AGENT, name, file)
    for name, entry in there.toolboxes.items():
        yield _check_file(Part.TEXT, name, there.text_folder / str(entry.get("file")))


def _check_file(part: Part, name: str, file: Path) -> Finding:
    if file.is_file():
        return Finding(part=part, name=name, verdict=Verdict.TAKEN)
    return Finding(part=part, name=name, verdict=Verdict.NEEDS, why=Message("{file} does not exist", file=file))


def _check_schedules(there: Installation) -> Iterator[Finding]:
    for name, value in there.list_timed_tasks():
        task = read_timed_task(value)
        if isinstance(task, str):
            yield Finding(part=Part.SCHEDULE, name=name, verdict=Verdict.LEFT, why=task)
        else:
            why = Message("an import proposes it as a schedule: {tool} at {at}", tool=task.tool, at=task.at)
            yield Finding(part=Part.SCHEDULE, name=name, verdict=Verdict.NEEDS, why=why)


def _check_keys(there: Installation) -> Iterator[Finding]:
    keys = (
        ("Image_Key", there.image_key, Message("opens /pw=KEY/images/, beside Toolyard's own key")),
        ("File_Key", there.file_key, Message("opens /pw=KEY/files/, beside Toolyard's own key")),
        ("Key", there.key, Message("lets clients chat and call tools")),
    )
    for name, key, why in keys:
        if key:
            yield _check_key(Part.KEY, name, key, why)
    if there.vcp_key:
        why = Message("connects nodes, and clients to /VCPlog and /vcpinfo, which answer approvals there")
        yield _check_key(Part.CLIENT, "VCP_Key", there.vcp_key, why)


def _check_key(part: Part, name: str, key: str, why: str) -> Finding:
    if len(key) >= MIN_KEY:
        return Finding(part=part, name=name, verdict=Verdict.TAKEN, why=why)
    short = Message("it has fewer than {least} characters: set a longer one, in its clients too", least=MIN_KEY)
    return Finding(part=part, name=name, verdict=Verdict.NEEDS, why=short)
