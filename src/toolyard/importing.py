"""``toolyard import vcp``: plugins, variables, rules, timed tasks and async results of a VCPToolBox install.

Everything is looked at in one order and either taken or left with a reason. Nothing is taken twice, so an import can be
repeated. Plugins need a review afterwards, unless the owner says that all of them are trusted. With ``dry`` nothing is
written at all.
"""

import json
import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

from toolyard.config import HOST_FILE
from toolyard.dialects.vcp_install import (
    CONFIG,
    RESULTS,
    TimedTask,
    read_approval_rules,
    read_result_name,
    read_timed_task,
)
from toolyard.engine.chats import prompts
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.runner import check_call
from toolyard.errors import ToolyardError
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.plugins.package.code_names import find_packages, find_words, mentions_variable
from toolyard.plugins.package.config_env import is_secret, is_secret_name, parse_config
from toolyard.plugins.package.environment import HOST_KEYS, RESERVED
from toolyard.plugins.package.install import install_plugin
from toolyard.plugins.package.plugin import Origin
from toolyard.protocol.access import Effect, Mode
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.safe_text import escape_hidden
from toolyard.protocol.records.audit_record import Actor
from toolyard.protocol.records.schedule_record import Schedule
from toolyard.protocol.records.task_record import KIND, Task, is_valid_id, state_from_callback, task_key
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Origin as CallOrigin
from toolyard.protocol.tool import ToolCall
from toolyard.vcp.installation import Installation, read_bytes
from toolyard.workspace.home_folder import make_private_folder, write_private_file
from toolyard.yard.yard import Yard

CALLER = "import:vcp"
_IN_PROMPTS = re.compile(r"(?:Tar|Var)(?:_|[A-Z0-9])")
_RUNS_HERE = (PluginType.SYNCHRONOUS, PluginType.ASYNCHRONOUS, PluginType.STATIC)


class ItemKind(StrEnum):
    PLUGIN = "plugin"
    RULE = "rule"
    SCHEDULE = "schedule"
    TASK = "task"
    VARIABLE = "variable"
    PROMPT = "prompt"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Item:
    what: ItemKind
    name: str
    why: str = ""


@dataclass(slots=True)
class ImportReport:
    took: list[Item] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    shared_keys: dict[str, list[str]] = field(default_factory=dict)  # for the owner to write into config.toml

    def take(self, what: ItemKind, name: str, why: str = "") -> None:
        self.took.append(Item(what, name, why))

    def leave(self, what: ItemKind, name: str, why: str) -> None:
        self.left.append(Item(what, name, why))

    def to_dict(self) -> dict[str, Any]:
        def to_json(items: list[Item]) -> list[dict[str, str]]:
            return [{"what": item.what.value, "name": item.name, "why": item.why} for item in items]

        return {"took": to_json(self.took), "left": to_json(self.left), "shared_keys": self.shared_keys}


@dataclass(slots=True)
class VcpImport:
    yard: Yard
    source: Installation
    dry: bool = False
    trust: bool = False
    clock: Clock = SystemClock()  # noqa: RUF009 it has no state

    async def run(self) -> ImportReport:
        report = ImportReport()
        manifests = await self._import_plugins(report)
        if not self.dry:
            self._link_shared_folders({manifest.name for manifest in manifests.values()})
        self._import_variables(report, manifests)
        self._import_prompts(report)
        await self._import_rules(report)
        await self._import_timed_tasks(report)
        await self._import_results(report, {manifest.name for manifest in manifests.values()})
        return report

    # --- plugins ---

    async def _import_plugins(self, report: ImportReport) -> dict[Path, Manifest]:
        """Import plugins; return those that were taken, now or before, by their source folders."""
        taken: dict[Path, Manifest] = {}
        for plugin in self.source.plugins:
            if plugin.manifest is None:
                report.leave(ItemKind.PLUGIN, plugin.name, plugin.problem)
            elif why := self._find_blocker(plugin.manifest):
                report.leave(ItemKind.PLUGIN, plugin.name, why)
            elif self._copy_plugin(report, plugin.folder, plugin.manifest, blocked=not plugin.is_enabled):
                taken[plugin.folder] = plugin.manifest
        if not self.dry:
            self.yard.plugins.plugins.refresh()
            if self.trust:
                await self._allow_plugins({item.name for item in report.took if item.what is ItemKind.PLUGIN})
        return taken

    def _find_blocker(self, manifest: Manifest) -> str:
        if manifest.type not in _RUNS_HERE:
            return f"a {manifest.type.value} runs inside VCPToolBox's own Node process"
        plugin = self.yard.plugins.plugins.get(manifest.name)
        if plugin is None and any(manifest.name in (t.spec.name, *t.spec.aliases) for t in self.yard.tools):
            return (
                "Toolyard has a built-in tool of this name; to use this one, set built_in.FileOperator = false and "
                "import again"
            )
        return ""

    def _copy_plugin(self, report: ImportReport, folder: Path, manifest: Manifest, *, blocked: bool) -> bool:
        config, home = self.yard.config, self.yard.config.home
        same = [plugin for plugin in self.yard.plugins.plugins.all if plugin.name == manifest.name]
        if (home / "plugins" / manifest.name).exists() or any(plugin.origin is Origin.HOME for plugin in same):
            report.leave(ItemKind.PLUGIN, manifest.name, "there is a plugin of this name already in the home")
            return True
        notes = ["disabled, as it was there"] if blocked else [] if self.trust else ["needs a review"]
        if any(plugin.origin is Origin.SHIPPED for plugin in same) and not blocked:
            notes.append(f"{'' if self.trust else 'then '}takes the place of the shipped one")
        if not self.dry:
            try:
                installed = install_plugin(str(folder), home, config.environ, own_command=config.own_command)
            except ToolyardError as error:
                report.leave(ItemKind.PLUGIN, manifest.name, str(error))
                return False
            if (installed.folder / CONFIG).exists():
                (installed.folder / CONFIG).chmod(stat.S_IRUSR | stat.S_IWUSR)
            notes += [f"{name} did not come along: install it again" for name in installed.left_out]
        report.take(ItemKind.PLUGIN, manifest.name, "; ".join([*notes, *_describe_dependencies(folder)]))
        return True

    async def _allow_plugins(self, names: set[str]) -> None:
        """Allow what has just been copied, exactly as it is."""
        source = self.yard.plugins
        at = self.clock.now().isoformat(timespec="seconds")
        copied = [one for one in source.plugins.all if one.origin is Origin.HOME and one.name in names]
        for plugin in copied:
            if plugin.manifest and plugin.command and plugin.fingerprint:
                review = source.review(plugin).review
                source.trust.allow(review, at=at)
                by, detail = Actor(name=CALLER, way="cli"), {"fingerprint": review.digest, "folder": str(plugin.folder)}
                await self.yard.state.audit.record(
                    "plugin.allowed", by, plugin=plugin.name, target=plugin.name, detail={**detail}
                )
        source.plugins.refresh()

    def _link_shared_folders(self, names: set[str]) -> None:
        """Let ``../../dailynote`` of a copied plugin lead to the project, where VCPToolBox has such folders.

        A link grants nothing: what a plugin may reach is decided by its access to the project.
        """
        config = self.yard.config
        copied = [one for one in self.yard.plugins.plugins.all if one.origin is Origin.HOME and one.name in names]
        for folder in {name for one in copied if one.fingerprint for name in one.fingerprint.shared_folders}:
            place = config.home / folder
            if not os.path.isabs(folder) and not os.path.lexists(place):
                place.symlink_to(config.project.resolve() / folder)

    # --- the host's variables ---

    def _import_variables(self, report: ImportReport, manifests: dict[Path, Manifest]) -> None:
        """Import the variables that a plugin names and that are no secrets, into the host's file for plugins."""
        variables = self.source.variables
        for problem in self.source.problems:
            report.leave(ItemKind.FILE, CONFIG, problem)
        sources = {manifest.name: (manifest, find_words(folder)) for folder, manifest in manifests.items()}
        shared: dict[str, str] = {}
        known = parse_config((read_bytes(self.yard.config.home / HOST_FILE) or b"").decode("utf-8", "replace")).values
        for name, value in variables.items():
            users = [plugin for plugin, (_, words) in sources.items() if mentions_variable(words, name)]
            if name in RESERVED:
                report.leave(ItemKind.VARIABLE, name, "Toolyard sets it itself")
            elif (
                name.lower() in HOST_KEYS or is_secret_name(name) or "@" in value.partition("://")[2].partition("/")[0]
            ):
                hint = f": write it into the {CONFIG} of {', '.join(users)}" if users else ""
                report.leave(ItemKind.VARIABLE, name, f"it looks like a secret, which plugins do not share{hint}")
            elif not users and _IN_PROMPTS.match(name) and not is_secret(name, value):
                continue  # see the prompts
            elif not users:
                report.leave(ItemKind.VARIABLE, name, "no plugin that was taken names it")
            else:
                shared[name] = value
                if name in known:
                    report.leave(ItemKind.VARIABLE, name, f"it is in {HOST_FILE} already")
                else:
                    report.take(ItemKind.VARIABLE, name, f"for {', '.join(users)}")
                for plugin in users:
                    if name not in {key.name for key in sources[plugin][0].config}:
                        report.shared_keys.setdefault(plugin, []).append(name)
        if shared and not self.dry:
            _write_variables(self.yard.config.home / HOST_FILE, shared)

    # --- prompts ---

    def _import_prompts(self, report: ImportReport) -> None:
        """Import agents, texts and variables of prompts into the prompts of the home, under their names."""
        folder = self.yard.config.home / prompts.FOLDER
        known = {path.stem for path in folder.glob("*.*")}
        texts = dict(self.source.agents)
        variables: dict[str, str] = {}
        for name, value in self.source.variables.items():
            if not _IN_PROMPTS.match(name) or is_secret(name, value):
                continue
            if value.endswith(".txt"):
                texts[name] = self.source.text_folder / value
            else:
                variables[name] = value
        for name, file in texts.items():
            text = read_bytes(file)
            if text is None or not prompts.NAME.fullmatch(name):
                report.leave(ItemKind.PROMPT, name, f"{file} cannot be read" if text is None else "it is no name here")
            elif name in known:
                report.leave(ItemKind.PROMPT, name, "there is a prompt of this name already")
            else:
                if not self.dry:
                    make_private_folder(folder)
                    (folder / f"{name}.txt").write_bytes(text)
                report.take(ItemKind.PROMPT, name)
        self._import_prompt_variables(report, folder / prompts.VARIABLES, variables)

    def _import_prompt_variables(self, report: ImportReport, file: Path, variables: dict[str, str]) -> None:
        """Add variables to the file of the home; what its owner has written stays."""
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        try:
            known = tomllib.loads(before)
        except tomllib.TOMLDecodeError as error:
            report.leave(ItemKind.FILE, str(file), f"it is not valid TOML: {error}")
            return
        lines = []
        for name, value in variables.items():
            if name in known:
                report.leave(ItemKind.PROMPT, name, "there is a prompt of this name already")
            else:
                lines.append(f"{json.dumps(name)} = {json.dumps(value)}\n")
                report.take(ItemKind.PROMPT, name)
        if lines and not self.dry:
            make_private_folder(file.parent)
            end = "\n" if before and not before.endswith("\n") else ""
            write_private_file(file, (before + end + "".join(lines)).encode())

    # --- state ---

    async def _import_rules(self, report: ImportReport) -> None:
        value = self.source.read_approvals()
        if value is None:
            return
        rules, why = read_approval_rules(value)
        if why:
            report.leave(ItemKind.FILE, "the approval list", why)
        known = {(rule.tool, rule.command, rule.effect) for rule in await self.yard.state.approvals.rules()}
        for rule in rules:
            if not rule.refuses:
                report.leave(ItemKind.RULE, rule.text, self._has_asking_mode())
            elif (rule.tool, rule.command, Effect.DENY.value) in known:
                report.leave(ItemKind.RULE, rule.text, "there is such a rule already")
            else:
                if not self.dry:
                    await self.yard.state.approvals.add_rule(rule.tool, rule.command, Effect.DENY, by=CALLER)
                report.take(ItemKind.RULE, rule.text, "denied, as it was there")

    def _has_asking_mode(self) -> str:
        mode = self.yard.config.settings.approval_mode
        if mode is Mode.AUTO:
            return "approval_mode is 'auto': set it to 'ask', and whatever does more than read asks first"
        return f"approval_mode is '{mode.value}': whatever does more than read asks first or is refused, without a rule"

    async def _import_timed_tasks(self, report: ImportReport) -> None:
        for name, value in self.source.list_timed_tasks():
            task = read_timed_task(value)
            if isinstance(task, str):
                report.leave(ItemKind.SCHEDULE, name, task)
            elif await self._is_scheduled(task):
                report.leave(ItemKind.SCHEDULE, name, "it is scheduled already")
            else:
                proposed = await self._propose(task)
                if isinstance(proposed, str):
                    report.leave(ItemKind.SCHEDULE, name, proposed)
                else:
                    report.take(ItemKind.SCHEDULE, name, _describe(task, proposed, self.yard.config.own_command))

    async def _is_scheduled(self, task: TimedTask) -> bool:
        schedules = await self.yard.state.schedules.page(Query(tool=task.tool, caller=CALLER), limit=1000)
        return any((one.at, one.arguments) == (task.at, task.arguments) for one in schedules)

    async def _propose(self, task: TimedTask) -> Schedule | str | None:
        """Keep a timed call that nobody has approved here; none in a dry run. A text says why it could not be kept."""
        call = ToolCall(
            id=f"call_{uuid4().hex}", tool=task.tool, arguments=task.arguments, maid=task.maid, caller=CALLER,
            origin=CallOrigin.CLI,
        )  # fmt: skip
        try:
            check_call(self.yard.tools.get(task.tool), call)
            return None if self.dry else await self.yard.state.schedules.propose(call, at=task.at)
        except Failure as failure:
            return f"{failure.message} Allow the tool, or name a later time, and import again."

    async def _import_results(self, report: ImportReport, plugins: set[str]) -> None:
        for name, body in self.source.list_results():
            named = read_result_name(name, body, plugins)
            if body is None or named is None or not is_valid_id(named[1]) or not is_valid_id(named[0]):
                report.leave(ItemKind.TASK, name, "it is not a result with the name of its plugin and its task")
            elif await self.yard.state.store.find(KIND, Query(key=task_key(*named)), limit=1):
                report.leave(ItemKind.TASK, name, "there is a task of this name already")
            else:
                if not self.dry:
                    await self._build_finished_task(*named, body, self.source.modified_time(RESULTS, name))
                report.take(ItemKind.TASK, name, state_from_callback(body).value)

    async def _build_finished_task(self, plugin: str, task_id: str, body: Json, at: float) -> None:
        task = Task(
            id=f"task_{uuid4().hex}", call_id="", plugin=plugin, task_id=task_id, state=state_from_callback(body),
            created=at, updated=self.clock.now().timestamp(), deadline=at, caller=CALLER, token_hash="", result=body,
            message=Message("It was taken over from VCPToolBox.")
        )  # fmt: skip
        await self.yard.state.store.commit([task.to_record()])


def _describe(task: TimedTask, proposed: Schedule | None, own_command: OwnCommand) -> str:
    """Describe a call in full, with hidden characters escaped, and how to let it run."""
    arguments = escape_hidden(json.dumps(task.arguments, ensure_ascii=False))
    command = own_command.for_home.format("schedule allow", proposed.id) if proposed else ""
    allow = f"'{command}' lets it run; else it asks" if command else "It asks"
    return f"{escape_hidden(task.tool)} at {task.at} with {arguments}. {allow} when it is due, as a model's call does."


def _describe_dependencies(folder: Path) -> list[str]:
    """Say how to install the packages that a plugin used from VCPToolBox, or that it declares itself."""
    steps = []
    if (folder / "requirements.txt").exists():
        steps.append("run 'python3 -m venv .venv && .venv/bin/pip install -r requirements.txt' in its folder")
    if (folder / "package.json").exists():
        steps.append("run 'npm install' in its folder")
    elif packages := find_packages(folder):
        steps.append(f"run 'npm install {' '.join(packages)}' in its folder")
    return steps


def _write_variables(path: Path, values: dict[str, str]) -> None:
    """Add what is not there yet; what the owner has written stays."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    known = parse_config(before).values
    lines = [f"{name}={_quote_value(value)}\n" for name, value in values.items() if name not in known]
    make_private_folder(path.parent)
    draft = path.with_suffix(".new")
    draft.write_text(before + ("\n" if before and not before.endswith("\n") else "") + "".join(lines), encoding="utf-8")
    draft.chmod(stat.S_IRUSR | stat.S_IWUSR)
    draft.replace(path)


def _quote_value(value: str) -> str:
    quote = next((mark for mark in "'`\"" if mark not in value), "'")
    return f"{quote}{value}{quote}"
