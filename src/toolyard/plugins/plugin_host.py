"""The plugins of a Yard, ready to run: their shared services, and each of them as a tool."""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from toolyard.confinement.level import Confinement, measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.message import Message, join_paragraphs, join_sentences, strip_period
from toolyard.plugins.advice import REFUSED_PATHS, PluginAdvisor, allow_more, describe_refusal
from toolyard.plugins.call_queue import AT_ONCE_PER_PLUGIN, CallQueue
from toolyard.plugins.long_work.asynchronous import MAX_BACKGROUND_TASKS, AsyncRunner, BackgroundWork
from toolyard.plugins.package.discovery import Plugins
from toolyard.plugins.package.environment import (
    CACHE_VARIABLE,
    Environment,
    HostEnvironment,
    add_cache_option,
    build_call_variables,
    build_environment,
    data_folder,
    describe_missing_settings,
    make_cache_folder,
    make_data_folder,
)
from toolyard.plugins.package.installation_view import PACKAGES_FOLDER, InstallationSettings
from toolyard.plugins.package.plugin import Plugin, PluginState
from toolyard.plugins.package.plugin_access import (
    AccessOption,
    ConfinementPolicy,
    build_profile,
    describe_access,
    describe_links,
    describe_missing_paths,
    effective_access,
    list_missing_paths,
    make_granted_folders,
)
from toolyard.plugins.package.plugin_settings import PluginSetting, list_settings
from toolyard.plugins.process.child import SILENCE_S, RunTimes, confirm_input, run_child
from toolyard.plugins.process.child_report import ChildReport, limit_run_time, release_timeout, require_answer
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import Launch, Starter
from toolyard.plugins.process.network_services import NetworkServices
from toolyard.plugins.process.process_output import (
    ProcessRecords,
    ProgressReporter,
    StderrLog,
    StderrRing,
    TimedProcess,
)
from toolyard.plugins.process.refusals import find_refused_paths, watch_refusals
from toolyard.protocol.access import Access, AccessChoice, ConfinementLevel
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.records.task_record import TaskIntake
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec, confirm_start

QUEUE_S = 300.0  # how long a call may wait for its turn
_NO_ROOM = Message(
    "Processes that went on after its answer were stopped: {count} others go on already.", count=MAX_BACKGROUND_TASKS
)
LEFT_BEHIND = Message("Processes that went on after its answer were stopped: it may not work in the background.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """The Yard as its plugins see it."""

    environment: HostEnvironment
    installation: InstallationSettings | None = None  # of the VCPToolBox that is used in place
    policy: ConfinementPolicy
    intake: TaskIntake
    records: ProcessRecords
    at_once: int
    outlives: bool = False  # tasks that are under way when the host ends
    now: Callable[[], datetime]
    callback_base: Callable[[], Awaitable[str]]
    keep_secret: Callable[[Iterable[str]], None]
    keep_from_logs: Callable[[Iterable[str]], None]
    report_progress: Callable[[ToolCall, JsonObject], Awaitable[None]]
    bring_files: Callable[[JsonObject], Awaitable[JsonObject]]  # those of other machines that arguments name


class PluginHost:
    """The plugins of one event loop; ``tools`` may be called before there is one."""

    def __init__(self, plugins: Plugins, context: PluginContext, *, children: Children, starter: Starter) -> None:
        self._context, self.plugins, self.children, self.starter = context, plugins, children, starter
        self.policy, self.host_environment = context.policy, context.environment
        self.installation = context.installation
        self.now, self.report_progress = context.now, context.report_progress
        self.process_records = context.records
        self.network = NetworkServices()
        self.queue = CallQueue(at_once=context.at_once)
        self.logs: dict[str, StderrLog] = {}
        self._tools: dict[str, PluginTool] = {}  # as of their last use
        self.async_runner = AsyncRunner(
            context.intake, children, starter, context.callback_base, runs=context.records, now=context.now,
            log=self.log_output, outlives=context.outlives,
        )  # fmt: skip
        self.background = BackgroundWork(context.intake, children)

    def tools(self) -> "Iterator[PluginTool]":
        """Yield every plugin that can be called now."""
        names = (plugin.name for plugin in self.plugins.all if plugin.is_ready)
        return (tool for name in names if (tool := self.tool(name)))

    def tool(self, name: str) -> "PluginTool | None":
        """Return one plugin as a tool, whether it may run or not; None when there is none of that name to call."""
        plugin = self.plugins.get(name)
        if plugin is None or plugin.manifest is None or plugin.manifest.type is PluginType.STATIC:
            return None
        if plugin.is_in_process:  # ``vcp.bridge`` has it
            return None
        tool = self._tools.get(name)
        if tool is None or tool.plugin is not plugin:
            tool = self._tools[name] = PluginTool(self, plugin, plugin.manifest)
        return tool

    def require_ready(self, name: str) -> tuple[Plugin, Manifest]:
        """Return the plugin as it is at this moment. Raises Failure when it may not run."""
        plugin = self.plugins.get_current(name)
        if plugin is None:
            raise Failure(
                ErrorCode.NOT_FOUND,
                Message("There is no plugin called '{name}' any more.", name=name),
                hint=Message("List the tools."),
            )
        if not plugin.may_run or plugin.manifest is None:
            denied = plugin.state in (PluginState.NEEDS_REVIEW, PluginState.CHANGED)
            cause: Reason | ErrorCode = Reason.DENIED if denied else Reason.START_FAILED
            message = Message("{name} cannot run: {reason}.", name=name, reason=strip_period(plugin.reason))
            raise Failure(cause, message, hint=Message("The owner of this machine can fix that."))
        return plugin, plugin.manifest

    def find_project(self, plugin: Plugin) -> Path:
        """Return what is the project to a plugin: for one of a VCPToolBox installation that is the installation."""
        return plugin.installation or self.host_environment.project

    async def bring_files(self, name: str, call: ToolCall) -> ToolCall:
        """Return a call of a plugin whose arguments name files of this machine, where it is one of an installation.

        Raises Failure.
        """
        plugin = self.plugins.get(name)
        if plugin is None or plugin.installation is None:
            return call
        arguments = await self._context.bring_files(call.arguments)
        return call if arguments is call.arguments else replace(call, arguments=arguments)

    def environment(self, plugin: Plugin, manifest: Manifest) -> Environment:
        others = self.plugins.keys_of_others(plugin.name)
        installation = self.installation if plugin.installation else None
        return build_environment(
            manifest,
            plugin.config,
            self.host_environment,
            keys_of_others=others,
            given_keys=plugin.publish_keys,
            project=plugin.installation,
            installation=installation.choose_for(plugin, port=self.host_environment.port) if installation else None,
        )

    def settings(self, plugin: Plugin, manifest: Manifest) -> tuple[PluginSetting, ...]:
        return list_settings(manifest, plugin.config, self.environment(plugin, manifest))

    def build_launch(self, plugin: Plugin, manifest: Manifest) -> Launch:
        if plugin.command is None or plugin.fingerprint is None:
            raise Failure(Reason.START_FAILED, Message("{name} has no command to run.", name=plugin.name))
        environment = self.environment(plugin, manifest)
        self._context.keep_secret(environment.secrets)
        self._context.keep_from_logs(environment.log_secrets)
        argv, cache = plugin.command.argv, make_cache_folder(self.host_environment.home, plugin)
        access = effective_access(plugin, manifest, strict_network=self.policy.strict_network)
        launch = Launch(
            argv=add_cache_option(argv, cache) if cache else argv,
            cwd=plugin.folder,
            profile=self._build_profile(plugin, manifest, access, cache),
            environment={**environment.values, **({CACHE_VARIABLE: str(cache)} if cache else {})},
            limits=manifest.limits.or_usual(self.policy.usual_limits),
            warm=manifest.warm and manifest.type is PluginType.SYNCHRONOUS and not self.policy.own_processes,
            version=plugin.fingerprint.digest,
        )
        launch = self.network.add_to(launch, plugin.name, access)
        return watch_refusals(self.add_packages(launch)) if plugin.installation else launch

    def add_packages(self, launch: Launch) -> Launch:
        """Let a program of an installation find the npm packages that were installed for it."""
        packages = str(self.host_environment.home / PACKAGES_FOLDER / "node_modules")
        if not os.path.isdir(packages) or "NODE_PATH" in launch.environment:
            return launch
        profile = launch.profile and replace(launch.profile, read=(*launch.profile.read, packages))
        return replace(launch, environment={**launch.environment, "NODE_PATH": packages}, profile=profile)

    def _build_profile(
        self, plugin: Plugin, manifest: Manifest, access: Access | None, cache: Path | None
    ) -> Profile | None:
        """Build the profile of a plugin's child; None: its owner wants it unconfined.

        Raises Failure when it asks for a protected folder, or when it is not confined as far as is demanded: what its
        manifest demands holds whatever its owner chose.
        """
        profile = self._profile_of(plugin, access, cache)
        if access is not None:
            make_granted_folders(self.find_project(plugin), access.write)
        minimum = manifest.access.minimum if manifest.access else ConfinementLevel.NONE
        self.policy.require_level(plugin.name, profile, minimum)
        return profile

    def _profile_of(self, plugin: Plugin, access: Access | None, cache: Path | None = None) -> Profile | None:
        if access is None:
            return None
        own = [data_folder(self.host_environment.home, plugin.name), *([cache] if cache else [])]
        project = self.find_project(plugin)
        views = self._list_views(plugin)
        profile = build_profile(plugin, access, project=project, own=own, protected=self.policy.protected, views=views)
        return replace(profile, own_processes=self.policy.own_processes)

    def _list_views(self, plugin: Plugin) -> tuple[tuple[str, str], ...]:
        if not plugin.installation or self.installation is None:
            return ()
        try:
            return self.installation.list_views(plugin, self.host_environment.home)
        except OSError as error:
            message = Message(
                "What {name} may see of the settings cannot be written: {error}.", name=plugin.name, error=error
            )
            raise Failure(Reason.START_FAILED, message) from error

    def list_access_options(self, plugin: Plugin, manifest: Manifest) -> tuple[AccessOption, ...]:
        """Return every decision on its access that an owner can take, with what it means on this machine."""
        choices = (one for one in AccessChoice if plugin.installation or one is not AccessChoice.INSTALLATION)
        return tuple(self._describe_option(replace(plugin, access=choice), manifest) for choice in choices)

    def measure_confinement(self, plugin: Plugin, manifest: Manifest) -> Confinement:
        """Return how far a plugin is confined on this machine, as its owner decided."""
        return self._describe_option(plugin, manifest).confinement

    def _describe_option(self, plugin: Plugin, manifest: Manifest) -> AccessOption:
        access = effective_access(plugin, manifest, strict_network=self.policy.strict_network)
        declares_network = bool(manifest.access and manifest.access.network is not None)
        reach = describe_access(access, declares_network=declares_network or plugin.access is not AccessChoice.DECLARED)
        links = plugin.links
        try:
            profile = self._profile_of(plugin, access)
            confinement, reached = measure_confinement(profile), (*profile.read, *profile.write) if profile else ()
            links = {path: lead for path, lead in links.items() if lead in reached}
        except Failure as failure:
            confinement = Confinement(ConfinementLevel.NONE, (failure.message,))
        missing = self.list_missing_paths(plugin, access)
        reach += (describe_missing_paths(missing),) if missing else ()
        reach += describe_links(links)
        return AccessOption(choice=plugin.access, reach=reach, confinement=confinement)

    def list_missing_paths(self, plugin: Plugin, access: Access | None) -> tuple[str, ...]:
        """Return the paths that an access lets a plugin write, and that do not exist and are not created either."""
        return list_missing_paths(self.find_project(plugin), access.write) if access else ()

    def list_missing_settings(self, plugin: Plugin) -> tuple[str, ...]:
        """Return the required settings of a plugin that are not set."""
        own = {name for name, value in plugin.config.items() if value}
        keys = plugin.manifest.config if plugin.manifest else ()
        if plugin.manifest is None or all(key.name in own or not key.is_required(own) for key in keys):
            return ()
        try:
            return self.environment(plugin, plugin.manifest).missing
        except Failure:  # of the host's own keys, which a call reports
            return ()

    def list_remarks(self, plugin: Plugin) -> tuple[str, ...]:
        """Return what a plugin lacks on this host: settings, variables of its environment, and paths of its access.

        Settings decide its state as well, in the same words: see ``Plugins``.
        """
        manifest = plugin.manifest
        if manifest is None:
            return ()
        settings, paths = self.list_missing_settings(plugin), self.list_missing_paths(plugin, manifest.access)
        return (
            *([describe_missing_settings(settings, plugin.folder)] if settings else []),
            *self.environment(plugin, manifest).problems,
            *([describe_missing_paths(paths)] if paths else []),
        )

    def working_folder(self, plugin: Plugin) -> str:
        """Return the folder in which a plugin runs, relative to the project; ``.`` for one outside it."""
        folder, project = plugin.folder.resolve(), self.find_project(plugin)
        return folder.relative_to(project).as_posix() if folder.is_relative_to(project) else "."

    def find_refused_paths(self, plugin: Plugin, ring: StderrRing) -> tuple[str, ...]:
        """Return what a plugin of an installation was kept from, of the files that belong to people."""
        if plugin.installation is None:
            return ()
        grounds = (plugin.installation, self.host_environment.project, self.policy.protected.user_home)
        return find_refused_paths(ring.text, grounds)

    def make_data_folder(self, name: str) -> None:
        make_data_folder(self.host_environment.home, name)

    def log_output(self, name: str, call_id: str, ring: StderrRing, noise: str = "", note: str = "") -> None:
        """Keep what a plugin printed beside its answer, with a note of what it was kept from."""
        plugin = self.plugins.get(name)
        refused = self.find_refused_paths(plugin, ring) if plugin else ()
        notes = " ".join(filter(None, (note, describe_refusal(refused) if refused else "")))
        self.logs.setdefault(name, StderrLog()).add(call_id, self.now(), ring, noise, notes)

    async def close(self) -> None:
        await self.async_runner.close()
        await self.background.close()
        await self.starter.close()
        await self.children.close()


class PluginTool:
    """A plugin as a tool: the same one, with the same spec, for as long as the plugin is the same."""

    def __init__(self, host: PluginHost, plugin: Plugin, manifest: Manifest) -> None:
        self._host, self.plugin, self.manifest = host, plugin, manifest
        spec = tool_spec(manifest)
        self._spec = replace(
            spec,
            timeout_s=spec.timeout_s + QUEUE_S,
            fingerprint=plugin.fingerprint.digest if plugin.fingerprint else "",
            risk=plugin.risk,
            plugin_id=plugin.id,
            hides_plugins=bool(plugin.hides),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def check(self, call: ToolCall) -> None:
        self._require_ready(call)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        plugin, manifest, launch = self._prepare(call)
        call = await self._host.bring_files(plugin.name, call)
        self._host.make_data_folder(plugin.name)
        stdin, refusals = _build_input(call), self._host.network.refusals

        def advise(failure: Failure) -> None:
            self._build_advisor(plugin, manifest, launch, refusals).add_next_step(failure)

        try:
            async with self._host.queue.slot(plugin.name, manifest.max_concurrency or AT_ONCE_PER_PLUGIN) as waited:
                checkpoint()
                if waited:  # in the meantime it may have become another one, or have been forbidden
                    plugin, manifest, launch = self._prepare(call)
                if manifest.type is PluginType.ASYNCHRONOUS:
                    result = await self._host.async_runner.submit(call, manifest, launch, stdin, checkpoint, advise)
                else:
                    result = await self._run_once(call, plugin, manifest, launch, stdin, checkpoint)
        except Failure as failure:
            failure.context = {**self._describe_run(plugin, launch), **failure.context}
            advise(failure)
            raise
        return replace(result, context={**self._describe_run(plugin, launch), **result.context})

    def _build_advisor(self, plugin: Plugin, manifest: Manifest, launch: Launch, refusals: int) -> PluginAdvisor:
        access = effective_access(plugin, manifest, strict_network=self._host.policy.strict_network)
        return PluginAdvisor(
            plugin.name,
            self._host.settings(plugin, manifest),
            launch.profile,
            self._host.host_environment.own_command,
            self._host.list_missing_paths(plugin, access),
            self._host.network.find_refused_host(plugin.name, refusals),
        )

    def _describe_run(self, plugin: Plugin, launch: Launch) -> JsonObject:
        level = measure_confinement(launch.profile).level
        return {"cwd": self._host.working_folder(plugin), "confinement": level.value}

    def _prepare(self, call: ToolCall) -> tuple[Plugin, Manifest, Launch]:
        """Return the plugin as it is now. Raises Failure when it may not run, or not with these arguments."""
        plugin, manifest = self._require_ready(call)
        return plugin, manifest, self._host.build_launch(plugin, manifest)

    def _require_ready(self, call: ToolCall) -> tuple[Plugin, Manifest]:
        plugin, manifest = self._host.require_ready(self._spec.name)
        if plugin.risk is not self._spec.risk and self._spec.risk is Risk.READ:  # nobody was asked about what it is now
            raise Failure(
                Reason.DENIED,
                Message("{name} has changed: nothing was run.", name=plugin.name),
                hint=Message("Call it again."),
            )
        declared = command_spec(manifest, call.arguments)
        if declared is not None:
            accept_arguments(declared, call.arguments)
        return plugin, manifest

    async def _run_once(
        self,
        call: ToolCall,
        plugin: Plugin,
        manifest: Manifest,
        launch: Launch,
        stdin: bytes,
        checkpoint: Checkpoint,
    ) -> Result:
        name, process = manifest.name, None
        report: ChildReport | None = None
        progress = ProgressReporter(partial(self._host.report_progress, call))
        ring = StderrRing(progress.feed)
        try:
            async with limit_run_time(name, manifest.timeout_s) as limit:
                await confirm_start(checkpoint)  # a child may begin before it has read anything
                child = await self._host.starter.spawn(
                    launch, build_call_variables(manifest, request_address="127.0.0.1")
                )
                process = TimedProcess(child.pid, launch, self._host.now)
                await confirm_input(child, self._host.children, checkpoint)
                report = await run_child(
                    child,
                    stdin,
                    children=self._host.children,
                    limits=manifest.limits,
                    stderr=ring,
                    on_first_output=process.note_output,
                    detached=manifest.detached,
                    times=RunTimes(limit_s=release_timeout(limit), silence_s=SILENCE_S),
                )
        finally:
            progress.close()
            refused = self._host.find_refused_paths(plugin, ring)
            note = LEFT_BEHIND if report is not None and report.survivors_killed else ""
            self._host.log_output(name, call.id, ring, "" if report is None else report.noise, note)
            if process is not None:
                self._host.process_records.add(call.id, process, ring, report)
        try:
            result = await self._build_result(call, manifest, report)
        except Failure as failure:
            failure.context = {**failure.context, **({REFUSED_PATHS: list(refused)} if refused else {})}
            raise
        return self._add_refusals(plugin, result, refused)

    def _add_refusals(self, plugin: Plugin, result: Result, refused: Sequence[str]) -> Result:
        """Return a result that says what its plugin was kept from, which may have answered as if nothing was there."""
        if not refused:
            return result
        note = join_sentences(
            describe_refusal(refused), allow_more(plugin.name, self._host.host_environment.own_command)
        )
        parts = replace(result.extras, note=join_paragraphs(result.extras.note, note)) if result.extras.parts else None
        return replace(
            result,
            text=join_paragraphs(result.text, note),
            extras=parts or result.extras,
            context={**result.context, REFUSED_PATHS: list(refused)},
        )

    async def _build_result(self, call: ToolCall, manifest: Manifest, report: ChildReport) -> Result:
        """Build the result. Allowed survivors become a task; others are reported in the warnings."""
        name, background = manifest.name, self._host.background
        notes: tuple[str, ...] = ()
        if report.survivors_killed:
            allow = self._host.host_environment.own_command.format("plugin allow", name, "--detached")
            notes = (join_sentences(LEFT_BEHIND, Message("Its owner can let it go on: {command}.", command=allow)),)
        try:
            result = read_plugin_result(name, require_answer(name, report), warnings=(*report.warnings, *notes))
        except Failure:
            if report.survivors is not None:
                background.stop(report.survivors)
            raise
        if report.survivors is None:
            return result
        task = await background.track(call, report.survivors, timeout_s=manifest.detached_timeout_s)
        if task is None:
            return read_plugin_result(name, require_answer(name, report), warnings=(*report.warnings, _NO_ROOM))
        goes_on: JsonObject = {"task": task.id, "deadline": task.deadline}
        return replace(result, context={**result.context, "background": goes_on})


def _build_input(call: ToolCall) -> bytes:
    """Build the input: one JSON object with the caller's arguments in their order, and the host's additions.

    Nothing at all when there are no arguments, as in VCPToolBox: a plugin then reports what it misses.
    """
    value: JsonObject = {**call.arguments, **call.metadata}
    if call.maid is not None:
        value.setdefault("maid", call.maid)
    return json.dumps(value, ensure_ascii=False).encode() if value else b""
