"""The plugins of a Yard, found when somebody asks for one: nothing of the plugin host is loaded before."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolyard.config import Config
from toolyard.crashpoint import crashpoint
from toolyard.errors import ToolyardError
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.plugins.process.process_output import ProcessRecords
from toolyard.protocol.manifests.manifest import Limits
from toolyard.yard.built_in import BuiltInTools
from toolyard.yard.state import Basis

if TYPE_CHECKING:
    from toolyard.engine.background.tasks import CallbackAnswer, Tasks
    from toolyard.plugins.long_work.callback import CallbackAddress, CallbackListener, CallbackResponse, ReadBody
    from toolyard.plugins.package.command_line import Programs
    from toolyard.plugins.package.discovery import Plugins
    from toolyard.plugins.package.environment import HostEnvironment
    from toolyard.plugins.package.installation_view import InstallationSettings
    from toolyard.plugins.package.plugin import Plugin
    from toolyard.plugins.package.plugin_access import ConfinementPolicy
    from toolyard.plugins.package.review import PluginReview
    from toolyard.plugins.package.trust import Trust
    from toolyard.plugins.plugin_host import PluginHost, PluginTool
    from toolyard.protocol.json import JsonObject
    from toolyard.protocol.records.task_record import Task
    from toolyard.protocol.tool import ToolCall

_LARGE_BODY = 256 * 1024  # bytes from which the body of a callback is parsed in a thread
_MIB = 2**20


class HostOptions(NamedTuple):
    """The options of a host for its plugins. Callbacks go to a server's own address, or to a listener of the source."""

    callback_base: Callable[[], Awaitable[str]] | None = None
    url: str = ""  # of the server, with its port; without one, as the settings say
    outlives: bool = False  # whether children of asynchronous plugins go on when this host ends
    warm: bool = True  # whether more than one call is to be expected
    safe: bool = False  # no plugins at all, to mend what one of them broke


class PluginSource:
    def __init__(
        self,
        basis: Basis,
        built_in: BuiltInTools,
        tasks: "Callable[[], Tasks]",
        *,
        runs: ProcessRecords,
        report_progress: "Callable[[ToolCall, JsonObject], Awaitable[None]]",
        bring_files: "Callable[[JsonObject], Awaitable[JsonObject]]",
        outside: HostOptions = HostOptions(),  # noqa: B008 it is frozen
    ) -> None:
        self._runs, self._report_progress, self._bring_files = runs, report_progress, bring_files
        self._config, self._mask, self._now = basis.config, basis.mask, basis.clock.now
        self._built_in, self._tasks, self._outside = built_in, tasks, outside
        self._host: PluginHost | None = None
        self._listener: CallbackListener | None = None
        self._trust: Trust | None = None

    @property
    def host(self) -> "PluginHost":
        if self._host is None:
            self._host = self._build_host()
            self._host.plugins.refresh()
        return self._host

    @property
    def own_command(self) -> OwnCommand:
        """The command of hints about this home."""
        return self._config.own_command

    @property
    def port(self) -> int:
        """The port at which plugins and prompts reach the server."""
        return int(self._outside.url.rpartition(":")[2] or self._config.settings.port)

    @property
    def plugins(self) -> "Plugins":
        return self.host.plugins

    @property
    def trust(self) -> "Trust":
        _ = self.host
        if self._trust is None:
            raise RuntimeError("a plugin host is assembled with its trust")
        return self._trust

    def find(self, name: str) -> "PluginTool | None":
        """Return the tool of a plugin by name; one that may not run says why when it is called."""
        tool = self.host.tool(name)
        if tool is None and self.host.plugins.refresh():
            tool = self.host.tool(name)
        return tool

    def explain_missing(self, name: str) -> str:
        """Return what is wrong with a plugin of this name whose manifest cannot be used; empty without one."""
        plugin = self.host.plugins.get(name)
        if plugin is None or plugin.manifest:
            return ""
        return Message("its plugin is broken: {reason}", reason=plugin.reason)

    def all(self) -> "Iterator[PluginTool]":
        return self.host.tools()

    def version(self) -> Hashable:
        return self.host.plugins.version

    def review(self, plugin: "Plugin") -> "PluginReview":
        """Return everything that a review would allow, as it is now. Raises ToolyardError when it cannot be read."""
        from toolyard.plugins.authoring.lint import lint_plugin
        from toolyard.plugins.package.config_env import list_config_paths
        from toolyard.plugins.package.environment import build_call_variables
        from toolyard.plugins.package.plugin_access import list_plugin_links
        from toolyard.plugins.package.review import PluginReview

        manifest = plugin.manifest
        if manifest is None or plugin.command is None or plugin.fingerprint is None:
            raise ToolyardError(Message("{name} cannot be reviewed: {reason}", name=plugin.name, reason=plugin.reason))
        if not plugin.fingerprint.digest:
            raise ToolyardError(
                Message("{name} cannot be reviewed: {problem}", name=plugin.name, problem=plugin.fingerprint.problem)
            )
        published = replace(plugin, publish_keys=plugin.fingerprint.publish_keys)
        own = self.host.environment(published, manifest)
        project = plugin.installation or self.host.host_environment.project
        links = list_plugin_links(plugin, manifest, list_config_paths(plugin.config), project)
        keys = {*own.values, *build_call_variables(manifest, request_address="", callback_base="")}
        return PluginReview(
            review=self.trust.review(plugin, keys, links),
            manifest=manifest,
            problems=lint_plugin(plugin, self.host.list_remarks(published), self._config.own_command),
            access=self.host.list_access_options(replace(plugin, links=links), manifest),
            from_host=own.from_host,
        )

    def inspect(self, folder: Path) -> "Plugin | None":
        """Return the plugin in a folder outside of the plugin folders."""
        from toolyard.plugins.package.discovery import PluginRoot, Plugins
        from toolyard.plugins.package.plugin import Origin

        plugins = Plugins(
            [PluginRoot(folder, Origin.HOME)],
            home=self._config.home,
            project=self._config.project.resolve(),
            trust=self.trust,
            reserved=self._built_in.names,
            replaceable=self._built_in.replaceable_names,
            programs=self._programs(),
            own_command=self._config.own_command,
        )
        plugins.refresh()
        return next(iter(plugins.all), None)

    def allow(self, reviewed: "PluginReview", *, confirm_read: bool = False) -> None:
        """Let exactly what was shown run, from the next refresh on; ``confirm_read``: believe that it only reads.

        Raises ConfigError.
        """
        self.trust.allow(reviewed.review, at=self._now().isoformat(timespec="seconds"), confirm_read=confirm_read)

    def remove(self, plugin: "Plugin") -> Path | None:
        """Take an installed plugin out of the home, with its permission. Where its files are kept; None: it was a link.

        Raises ToolyardError.
        """
        from toolyard.plugins.package.install import remove_plugin
        from toolyard.plugins.package.plugin import Origin

        if plugin.origin is not Origin.HOME:
            raise ToolyardError(
                Message(
                    "{name} was not installed: it is in {folder}; disable it, or move it away",
                    name=plugin.name,
                    folder=plugin.folder,
                )
            )
        kept_folder = remove_plugin(plugin.folder, self._config.home, stamp=self._now().strftime("%Y%m%dT%H%M%S"))
        self.trust.revoke(plugin.folder)
        self.plugins.forget(plugin)
        return kept_folder

    def use_config(self, config: Config) -> None:
        """Use the trusted folders and shared keys of new settings from the next call on."""
        if self._host is None:
            self._config = config
            return
        self.trust.trust_folders(_list_trusted_folders(config))
        self._host.host_environment = replace(
            self._host.host_environment, shared=config.settings.shared_keys, environ=config.environ
        )
        self._host.policy = build_policy(config)
        self._host.plugins.refresh()

    async def adopt(self, left: "Sequence[Task]") -> int:
        """Adopt the processes of tasks that outlived their host; return the number of adopted tasks."""
        from toolyard.plugins.long_work.task_child import AdoptedChild
        from toolyard.process_numbers import is_process_alive

        calls: dict[str, list[Task]] = {}
        for task in left:
            calls.setdefault(task.token_hash, []).append(task)
        adopted = 0
        for tasks in calls.values():
            process = tasks[0].process
            expected = await self._tasks().adopt(tasks) if process else None
            if process and expected:
                child = AdoptedChild(process.pid, partial(is_process_alive, process.pid, process.started))
                left_s = tasks[0].deadline - self._now().timestamp()
                self.host.async_runner.adopt(child, expected, tuple(tasks), left_s=left_s)
                adopted += len(tasks)
        return adopted

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()
        if self._listener is not None:
            await self._listener.close()

    def _build_host(self) -> "PluginHost":
        from toolyard.plugins.package.discovery import Plugins, list_roots
        from toolyard.plugins.package.trust import Trust
        from toolyard.plugins.plugin_host import PluginContext, PluginHost
        from toolyard.plugins.process.children import Children
        from toolyard.plugins.process.cold_starter import ColdStarter
        from toolyard.plugins.process.warm.warm_starter import WarmStarter

        config = self._config
        self._trust = Trust(config.home, folders=_list_trusted_folders(config))
        plugins = Plugins(
            () if self._outside.safe else list_roots(config.project, config.home, config.plugin_folders, config.vcp),
            home=config.home,
            project=config.project.resolve(),
            trust=self._trust,
            reserved=self._built_in.names,
            replaceable=self._built_in.replaceable_names,
            programs=self._programs(),
            own_command=self._config.own_command,
            find_missing=self._list_missing_settings,
        )
        children = Children()
        context = PluginContext(
            environment=self._build_environment(),
            installation=self._read_installation(),
            policy=build_policy(config),
            intake=self._tasks(),
            records=self._runs,
            at_once=config.settings.plugins_at_once,
            outlives=self._outside.outlives,
            now=self._now,
            callback_base=self._outside.callback_base or self._listen,
            keep_secret=self._mask.add,
            keep_from_logs=self._mask.add_for_logs,
            report_progress=self._report_progress,
            bring_files=self._bring_files,
        )
        warm = config.settings.warm_starts and self._outside.warm
        starter = WarmStarter(children, ColdStarter(children), enabled=warm)
        return PluginHost(plugins, context, children=children, starter=starter)

    def _list_missing_settings(self, plugin: "Plugin") -> "tuple[str, ...]":
        return self.host.list_missing_settings(plugin)  # it is assembled by the time somebody looks at the plugins

    def find_python(self) -> str:
        """Return the Python of plugins that have none of their own."""
        return self._programs().find_python("")

    def _programs(self) -> "Programs":
        from toolyard.plugins.package.command_line import Programs

        return Programs(self._config.environ.get("PATH", ""), python=self._config.settings.plugin_python)

    def _build_environment(self) -> "HostEnvironment":
        from toolyard.plugins.package.environment import HostEnvironment

        config = self._config
        address = self._outside.url.rpartition(":")[0]
        return HostEnvironment(
            environ=config.environ,
            project=config.project.resolve(),
            home=config.home,
            own_command=config.own_command,
            port=self.port,
            address=address or "http://127.0.0.1",
            secret_keys=config.secret_variables,
            shared=config.settings.shared_keys,
        )

    def _read_installation(self) -> "InstallationSettings | None":
        from toolyard.plugins.package.installation_view import InstallationSettings
        from toolyard.vcp.installation import read_installation

        if self._config.vcp is None or not self._config.vcp.is_dir():
            return None
        there = read_installation(self._config.vcp)
        return InstallationSettings(there.root, there.variables, image_key=there.image_key, file_key=there.file_key)

    async def receive_callback(self, address: "CallbackAddress", read_body: "ReadBody") -> "CallbackResponse":
        """Receive a callback, whether it came to the server or to a listener of ours.

        Its token is checked before ``read_body`` is called. Once the body is read, storing it is not cancelled.
        """
        from http import HTTPStatus

        from toolyard.plugins.long_work.callback import CallbackResponse, parse_body, refuse_callback

        token, plugin, task_id = address.token, address.plugin, address.task_id
        refused = await self._tasks().check_callback(token, plugin, task_id)
        crashpoint("callback.admitted")
        if refused is not None:
            return to_callback_response(refused)
        body = await read_body()
        if isinstance(body, CallbackResponse):
            return body
        value, problem = await asyncio.to_thread(parse_body, body) if len(body) > _LARGE_BODY else parse_body(body)
        if problem:
            return refuse_callback(HTTPStatus.BAD_REQUEST, problem)
        return to_callback_response(await asyncio.shield(self._tasks().take_callback(token, plugin, task_id, value)))

    async def _listen(self) -> str:
        from toolyard.plugins.long_work.callback import CallbackListener

        if self._listener is None:
            self._listener = CallbackListener(self.receive_callback)
        return await self._listener.open()


def _list_trusted_folders(config: Config) -> tuple[Path, ...]:
    return (*config.settings.trusted_folders, *(config.plugin_folders if config.trusts_given else ()))


def to_callback_response(answer: "CallbackAnswer") -> "CallbackResponse":
    """Return the HTTP response to a callback."""
    from http import HTTPStatus

    from toolyard.engine.background.tasks import CallbackAnswer
    from toolyard.plugins.long_work.callback import CallbackResponse

    match answer:
        case CallbackAnswer.STORED:
            return CallbackResponse(HTTPStatus.OK, {"status": "success"})
        case CallbackAnswer.DUPLICATE:
            return CallbackResponse(HTTPStatus.OK, {"status": "success", "duplicate": True})
        case CallbackAnswer.ALREADY_ENDED:
            return CallbackResponse(HTTPStatus.CONFLICT, {"status": "error", "message": "the task has already ended"})
        case CallbackAnswer.UNKNOWN:
            return CallbackResponse(HTTPStatus.NOT_FOUND, {"status": "error", "message": "this call has no such task"})
        case CallbackAnswer.FORBIDDEN:
            return CallbackResponse(
                HTTPStatus.UNAUTHORIZED, {"status": "error", "message": "this address is not valid"}
            )
        case CallbackAnswer.INVALID:
            return CallbackResponse(
                HTTPStatus.BAD_REQUEST, {"status": "error", "message": "an id has letters, digits, _ . -"}
            )


def build_policy(config: Config) -> "ConfinementPolicy":
    from toolyard.plugins.package.discovery import list_roots
    from toolyard.plugins.package.plugin_access import ConfinementPolicy, ProtectedFolders

    roots = list_roots(config.project, config.home, config.plugin_folders, config.vcp)
    return ConfinementPolicy(
        protected=ProtectedFolders(
            home=Path(os.path.realpath(config.home)),
            user_home=Path(os.path.realpath(Path.home())),
            plugin_roots=tuple(Path(os.path.realpath(root.folder)) for root in roots),
        ),
        minimum=config.settings.confinement.minimum,
        strict_network=config.settings.strict_network,
        own_processes=config.settings.bubblewrap,
        own_command=config.own_command,
        usual_limits=Limits(
            data_bytes=config.settings.plugin_memory_mib * _MIB,
            cpu_s=config.settings.plugin_cpu_minutes * 60,
            file_bytes=config.settings.plugin_file_mib * _MIB,
        ),
    )
