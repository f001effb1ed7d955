"""Plugin discovery: the plugins as their folders have them now.

Plugin roots are folders of plugin folders, searched one level deep: those given for this run, the home's, that of
a VCPToolBox installation in place, the project's, the shipped one; within one by name. A folder that is itself a plugin
counts as one. Hidden folders are not looked at. A root that does not exist costs two ``stat`` calls. Of a root with
more than ``MAX_FOLDERS`` the first by name count, and the root itself is listed with how many do not.

Whatever is wrong with a plugin stays with that plugin: it is listed with its problems and runs as it last was good, or
not at all.

Of several plugins with one name, the first that its owner lets run has it, in the order of ``list_roots``, so the
owner's own comes before the one that ships; those it hides are listed as duplicates and do not run. A folder that
nobody has reviewed never takes a name away: it waits for its review while another one runs. One that was allowed keeps
its name when it has changed or is broken: its calls fail and say why, and no other plugin answers in its place. The
names of built-in tools are taken from the start (S-85).

Reading again costs a few ``stat`` calls for each plugin that has not changed. Not safe from several threads.
"""

import itertools
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from toolyard.message import Message, cut_message, join_messages
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.package.command_line import CommandLine, CommandProblem, Programs, resolve_command
from toolyard.plugins.package.config_env import list_config_paths
from toolyard.plugins.package.environment import describe_missing_settings
from toolyard.plugins.package.fingerprint import Fingerprint, compute_fingerprint
from toolyard.plugins.package.installation_view import PYTHON_FOLDER
from toolyard.plugins.package.plugin import (
    Origin,
    Plugin,
    PluginFiles,
    PluginProblem,
    PluginState,
    Signature,
    read_plugin_files,
    read_signature,
)
from toolyard.plugins.package.plugin_access import list_plugin_links
from toolyard.plugins.package.trust import Trust
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.shipped_files import find_shipped_folder
from toolyard.workspace.home_folder import StateFile

DISABLED_FILE = "disabled.json"
_MAX_REASON = 2000  # characters
_ENABLED = False  # in that file: the owner enabled a plugin that is off by default
MAX_FOLDERS: Final = 2000  # in one root
_MAX_ENTRIES = 100_000  # of one root that are looked at to find them


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The names of plugins that a refresh found changed."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class PluginRoot:
    """A folder of plugin folders; it need not exist."""

    folder: Path
    origin: Origin

    @property
    def installation(self) -> Path | None:
        """The installation of VCPToolBox whose plugins these are."""
        return self.folder.parent if self.origin is Origin.VCP else None


class Plugins:
    def __init__(
        self,
        roots: Sequence[PluginRoot],
        *,
        home: Path,
        project: Path,
        trust: Trust,
        reserved: Collection[str] = (),
        replaceable: Collection[str] = (),
        programs: Programs,
        own_command: OwnCommand = FOR_DEFAULT_HOME,
        find_missing: Callable[[Plugin], Sequence[str]] = lambda _: (),
    ) -> None:
        """``find_missing`` returns the required settings of a plugin that are not set."""
        self._roots, self._own_command, self._find_missing = tuple(roots), own_command, find_missing
        self.trust, self._project, self._home = trust, project, home
        self._reserved = frozenset(name.casefold() for name in reserved)
        self._replaceable = frozenset(name.casefold() for name in replaceable)
        self._programs, self._programs_of_shipped = programs, programs.with_our_python()
        self._disabled = StateFile(home / DISABLED_FILE)
        self._files: dict[Path, PluginFiles] = {}
        self._all: tuple[Plugin, ...] = ()
        self._by_name: dict[str, Plugin] = {}
        self._host_code: Fingerprint | None = None  # of VCPToolBox
        self.version = 0  # counts the refreshes that found something

    @property
    def all(self) -> tuple[Plugin, ...]:
        return self._all

    def get(self, name: str) -> Plugin | None:
        """Return the plugin that has the name, as of the last refresh; one that cannot run when there is no other."""
        return self._by_name.get(name)

    def get_current(self, name: str) -> Plugin | None:
        """Return a plugin for a call that is about to start: everything is read again if anything of it was touched."""
        plugin = self._by_name.get(name)
        if plugin is not None and not self._is_current(plugin):
            self.refresh()
        return self._by_name.get(name)

    def keys_of_others(self, name: str) -> frozenset[str]:
        """Return the keys in the config.env of every other plugin."""
        return frozenset(key for plugin in self._all if plugin.name != name for key in plugin.config)

    def refresh(self, again: Path | None = None) -> Changes:
        """Read what has changed; the plugin in the folder ``again`` is read anew in any case."""
        before = {plugin.folder: plugin for plugin in self._all}
        plugins: dict[Path, Plugin] = {}
        files: dict[Path, PluginFiles] = {}
        for folder, root, fault in find_plugin_folders(self._roots):
            if fault:
                plugins[folder] = Plugin(
                    name=folder.name, folder=folder, origin=root.origin, state=PluginState.BROKEN, reason=fault.message,
                    problems=(fault,),
                )  # fmt: skip
            elif signature := read_signature(folder):
                files[folder] = self._read(folder, signature, anew=folder == again)
                known = None if folder == again else before.get(folder)
                plugins[folder] = self._inspect(folder, root, files[folder], known)
        self._files = files
        self._all = _resolve_names(tuple(plugins.values()))
        checked = map(self._check_settings, self._all)  # when the keys of all plugins are known
        self._all = tuple(_keep_same(before.get(plugin.folder), plugin) for plugin in checked)
        self._by_name = {}
        for plugin in sorted(self._all, key=_name_rank):
            self._by_name.setdefault(plugin.name, plugin)
        changes = _compare(before, {plugin.folder: plugin for plugin in self._all})
        self.version += bool(changes)
        return changes

    def disable(self, plugin: Plugin) -> None:
        """Disable a plugin until it is enabled again, in every run with this home. Raises ConfigError."""
        self._disabled.update(lambda value: value.update({str(plugin.folder): plugin.name}))

    def enable(self, plugin: Plugin) -> None:
        """Undo ``disable``, or enable a plugin that is off by default; a manifest that is named .block stays so."""

        def take(value: JsonObject) -> None:
            value.pop(str(plugin.folder), None)
            if plugin.manifest and not plugin.manifest.enabled_by_default:
                value[str(plugin.folder)] = _ENABLED

        self._disabled.update(take)

    def forget(self, plugin: Plugin) -> None:
        """Forget whether a plugin was enabled or disabled, because it is removed. Raises ConfigError."""

        def take(value: JsonObject) -> None:
            value.pop(str(plugin.folder), None)

        self._disabled.update(take)

    def watched_folders(self) -> frozenset[Path]:
        """Return the existing folders in which a change can matter."""
        folders = {root.folder if root.folder.is_dir() else root.folder.parent for root in self._roots}
        folders |= {self._disabled.path.parent}  # where commands leave what they change
        folders |= {Path(path) for p in self._all if p.fingerprint for path in p.fingerprint.folders}
        folders |= {plugin.folder for plugin in self._all}
        return frozenset(place for place in folders if place.is_dir())

    def _read(self, folder: Path, signature: Signature, *, anew: bool) -> PluginFiles:
        last = self._files.get(folder)
        same = last is not None and last.signature == signature and not anew
        return last if same and last else read_plugin_files(folder, signature, last)

    def _is_current(self, plugin: Plugin) -> bool:
        files = self._files.get(plugin.folder)
        if plugin.fingerprint is None or files is None or read_signature(plugin.folder) != files.signature:
            return False
        return (
            plugin.fingerprint.is_current()
            and not self._disabled_reason(plugin.folder, plugin.name, files)
            and self.trust.find_state(plugin.folder, plugin.origin, plugin.fingerprint)
            is (PluginState.READY if plugin.may_run else plugin.state)
            and self.trust.is_read_confirmed(plugin.folder, plugin.origin, plugin.fingerprint) is plugin.read_confirmed
            and self.trust.access_choice(plugin.folder, plugin.origin, plugin.fingerprint) is plugin.access
            and self._find_links(plugin) == plugin.links
            and not self.trust.find_unseen_links(plugin.folder, plugin.links)
        )

    def _find_links(self, plugin: Plugin) -> dict[str, str]:
        if plugin.manifest is None or plugin.access is AccessChoice.UNCONFINED:
            return {}
        return list_plugin_links(plugin, plugin.manifest, plugin.paths, plugin.installation or self._project)

    def _disabled_reason(self, folder: Path, name: str, files: PluginFiles) -> str:
        """Return why a plugin is disabled; empty when it is not. When that cannot be read, it is."""
        if files.blocked:
            return Message("its manifest is named .block: take that ending away to enable it")
        decision = self._disabled.read().get(str(folder))
        if decision is None and files.manifest and not files.manifest.enabled_by_default:
            command = self._own_command.format("plugin enable", name)
            return Message("it is off by default: enable it with '{command}'", command=command)
        if decision not in (None, _ENABLED):
            command = self._own_command.format("plugin enable", name)
            return Message("it was disabled: enable it with '{command}'", command=command)
        return self._disabled.problem

    def _inspect(self, folder: Path, root: PluginRoot, files: PluginFiles, before: Plugin | None) -> Plugin:
        manifest = files.manifest
        plugin = Plugin(
            name=manifest.name if manifest else self.trust.reviewed_name(folder) or folder.name,
            folder=folder,
            origin=root.origin,
            installation=root.installation,
            state=PluginState.BROKEN,
            reason=cut_message(join_messages([str(p) for p in files.problems if not p.warning]), _MAX_REASON),
            manifest=manifest,
            raw_manifest=files.raw_manifest,
            config=files.config or {},
            problems=files.problems,
            was_allowed=self.trust.was_allowed(folder),
        )
        disabled = self._disabled_reason(folder, plugin.name, files)
        if disabled:
            return replace(plugin, state=PluginState.DISABLED, reason=disabled)
        if manifest is None:
            return plugin
        if manifest.name.casefold() in self._reserved:
            return replace(plugin, state=PluginState.SHADOWED, reason=self._reserved_reason(manifest.name))
        if manifest.unsupported and not plugin.is_in_process:
            return replace(plugin, state=PluginState.UNSUPPORTED, reason=manifest.unsupported)
        if files.config is None:
            return plugin
        return self._inspect_command(plugin, manifest, files, before)

    def _reserved_reason(self, name: str) -> Message:
        if name.casefold() not in self._replaceable:
            return Message("{name} is a built-in tool: rename the plugin", name=name)
        return Message(
            "{name} is a built-in tool: rename the plugin, or turn the built-in one off in the settings "
            "(built_in.FileOperator = false) and start again",
            name=name,
        )

    def _inspect_command(self, plugin: Plugin, manifest: Manifest, files: PluginFiles, before: Plugin | None) -> Plugin:
        """Complete a plugin whose files are good: its command, and whether it is allowed."""
        prepared = self._resolve_command(plugin, manifest, before)
        if isinstance(prepared, CommandProblem):
            fault = PluginProblem(message=prepared.message, fix=prepared.fix, field="entryPoint.command")
            return replace(plugin, reason=str(fault), problems=(*plugin.problems, fault))
        command, fingerprint = prepared
        state = self.trust.find_state(plugin.folder, plugin.origin, fingerprint)
        allow = self._own_command.format("plugin allow", plugin.name)
        reason = _review_reason(state, allow)
        if state is not PluginState.READY and fingerprint.problem:
            reason = Message("it cannot be reviewed: {problem}", problem=fingerprint.problem)
        elif state is PluginState.READY and files.stale:
            reason = Message("its last good version is used: {reason}", reason=plugin.reason)
        may_detach = self.trust.detach_permission(plugin.folder, fingerprint)
        if state is PluginState.READY and may_detach is not None:
            manifest = replace(manifest, detached=may_detach)
        confirmed = self.trust.is_read_confirmed(plugin.folder, plugin.origin, fingerprint)
        keys = self.trust.granted_keys(plugin.folder, plugin.origin, fingerprint.publish_keys)
        problems = (*plugin.problems, *_unreviewed_key_problems(fingerprint.publish_keys - keys, allow))
        access = self.trust.access_choice(plugin.folder, plugin.origin, fingerprint)
        plugin = replace(
            plugin, state=state, reason=reason, manifest=manifest, command=command, fingerprint=fingerprint,
            read_confirmed=confirmed, publish_keys=keys, access=access,
            paths=self.trust.granted_paths(plugin.folder, plugin.origin, list_config_paths(plugin.config)),
            problems=problems if state is PluginState.READY else plugin.problems,
        )  # fmt: skip
        plugin = replace(plugin, links=self._find_links(plugin))
        unseen = self.trust.find_unseen_links(plugin.folder, plugin.links)
        if state is not PluginState.READY or not unseen:
            return plugin
        return replace(plugin, state=PluginState.CHANGED, reason=_describe_unseen_link(unseen, allow))

    def _check_settings(self, plugin: Plugin) -> Plugin:
        """Return a plugin that may run as one that needs configuration, if it does."""
        missing = self._find_missing(plugin) if plugin.is_ready else ()
        if not missing:
            return plugin
        reason = describe_missing_settings(missing, plugin.folder)
        return replace(plugin, state=PluginState.MISSING_CONFIG, reason=reason)

    def _resolve_command(
        self, plugin: Plugin, manifest: Manifest, before: Plugin | None
    ) -> tuple[CommandLine, Fingerprint] | CommandProblem:
        """Return the command and its fingerprint: the earlier ones, while nothing that matters was touched."""
        same = before and (plugin.raw_manifest, plugin.config) == (before.raw_manifest, before.config)
        programs = self._programs_of_shipped if plugin.origin is Origin.SHIPPED else self._programs
        python = self._home / PYTHON_FOLDER / "bin/python"
        if plugin.origin is Origin.VCP:
            programs = programs.with_python(python)
            same = same and not (before and before.command and _is_other_python(before.command.argv[0], python))
        if same and before and before.command and before.fingerprint and before.fingerprint.is_current():
            return before.command, before.fingerprint
        line = f"node {shlex.quote(manifest.script)}" if plugin.is_in_process else manifest.command_line
        command = resolve_command(line, plugin.folder, shell=manifest.shell, programs=programs)
        if isinstance(command, CommandProblem):
            return command
        host = self._read_host_code(plugin.installation) if plugin.is_in_process and plugin.installation else None
        fingerprint = compute_fingerprint(
            plugin.folder,
            manifest=plugin.raw_manifest,
            command=f"{line} in {host.digest or host.problem}" if host else line,
            shell=manifest.shell,
            named=command.files,
            config=plugin.config,
        )
        if host is not None:
            fingerprint = replace(fingerprint, signatures={**fingerprint.signatures, **host.signatures})
        return command, fingerprint

    def _read_host_code(self, installation: Path) -> Fingerprint:
        """Return the fingerprint of the code of VCPToolBox itself, which its in-process plugins run in."""
        known = self._host_code
        if known is None or not known.is_current():
            modules = installation / "modules"
            named = [f"../{path.name}" for path in installation.glob("*.js")]
            known = compute_fingerprint(modules, manifest=b"", command="", shell=False, named=named, config={})
            self._host_code = known
        return known


def _is_other_python(program: str, python: Path) -> bool:
    """Return whether a program is a Python in whose place another one has been installed, or removed, since."""
    is_own = os.path.basename(os.path.dirname(os.path.dirname(program))) in (".venv", "venv")
    if not os.path.basename(program).startswith("python") or is_own or program == str(python):
        return not os.access(program, os.X_OK)
    return os.access(python, os.X_OK)


def _review_reason(state: PluginState, command: str) -> str:
    """Return why a plugin waits for its review, and the command for it; empty when it does not."""
    match state:
        case PluginState.NEEDS_REVIEW:
            return Message("nobody has allowed it yet: look at it with '{command}'", command=command)
        case PluginState.CHANGED:
            return Message("it has changed since it was allowed: look at it again with '{command}'", command=command)
        case _:
            return ""


def _describe_unseen_link(links: Mapping[str, str], command: str) -> Message:
    path, lead = next(iter(links.items()))
    return Message(
        "{path} leads to {lead} by a link, which nobody has allowed: look at it with '{command}'",
        path=path,
        lead=lead,
        command=command,
    )


def _unreviewed_key_problems(keys: frozenset[str], command: str) -> Iterator[PluginProblem]:
    """Yield a problem for publish keys that the code names but no review has shown."""
    if keys:
        message = Message(
            "its code names {names}, which it gets after a review that shows it", names=", ".join(sorted(keys))
        )
        yield PluginProblem(message=message, fix=Message("review it: {command}", command=command), warning=True)


def _name_rank(plugin: Plugin) -> int:
    """Rank plugins for a name: one that its owner lets run, then one that may after a review, then any."""
    match plugin.state:
        case PluginState.READY | PluginState.MISSING_CONFIG | PluginState.CHANGED:
            return 0
        case PluginState.BROKEN if plugin.was_allowed:
            return 0
        case PluginState.NEEDS_REVIEW:
            return 1
        case _:
            return 2


def _resolve_names(plugins: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
    """Mark which of the plugins with one name has it, and which are hidden by it."""
    order = {plugin.folder: number for number, plugin in enumerate(plugins)}
    holders: dict[str, Plugin] = {}
    for plugin in sorted(plugins, key=_name_rank):
        if _name_rank(plugin) < 2:
            holders.setdefault(plugin.name, plugin)
    named = []
    for plugin in plugins:
        holder = holders.get(plugin.name)
        if holder is None or holder is plugin or _name_rank(plugin) == 2:
            named.append(plugin)
        elif _name_rank(plugin) > _name_rank(holder) and order[plugin.folder] < order[holder.folder]:
            reason = Message(
                "{reason}; until then the one in {folder} runs", reason=plugin.reason, folder=holder.folder
            )
            named.append(replace(plugin, reason=reason) if holder.is_ready else plugin)
        else:
            reason = Message("hidden by the plugin in {folder}: rename it, or disable the other", folder=holder.folder)
            named.append(replace(plugin, state=PluginState.DUPLICATE, reason=reason, hidden_by=holder.folder))
    hidden = [plugin for plugin in named if plugin.hidden_by]
    return tuple(
        replace(plugin, hides=hides)
        if (hides := tuple(other.folder for other in hidden if other.hidden_by == plugin.folder))
        else plugin
        for plugin in named
    )


def _keep_same(before: Plugin | None, after: Plugin) -> Plugin:
    """Return the earlier value of a plugin that is the same: what was made of it is found again by it."""
    if before is None or before != after or before.fingerprint is not after.fingerprint:  # which knows file times
        return after
    return before


def _compare(before: dict[Path, Plugin], after: dict[Path, Plugin]) -> Changes:
    return Changes(
        added=tuple(p.name for folder, p in after.items() if folder not in before),
        changed=tuple(p.name for folder, p in after.items() if folder in before and before[folder] != p),
        removed=tuple(p.name for folder, p in before.items() if folder not in after),
    )


def list_roots(
    project: Path, home: Path, given: Sequence[Path] = (), vcp: Path | None = None
) -> tuple[PluginRoot, ...]:
    """Return the roots in the order in which they are searched; ``vcp`` is an installation of VCPToolBox."""
    shipped = shipped_folder()
    return (
        *(PluginRoot(folder, Origin.GIVEN) for folder in given),
        PluginRoot(home / "plugins", Origin.HOME),
        *((PluginRoot(vcp / "Plugin", Origin.VCP),) if vcp else ()),
        PluginRoot(project / "Plugin", Origin.PROJECT),
        PluginRoot(project / "plugins", Origin.PROJECT),
        *((PluginRoot(shipped, Origin.SHIPPED),) if shipped else ()),
    )


def shipped_folder() -> Path | None:
    """Return the folder of the shipped plugins."""
    return find_shipped_folder("plugins")


def find_plugin_folders(roots: Sequence[PluginRoot]) -> Iterator[tuple[Path, PluginRoot, PluginProblem | None]]:
    """Yield every folder that may be a plugin by its real path, each once; a dead link by its own, with a problem.

    A root of which some are left out is there too, with that problem.
    """
    shipped = {os.path.realpath(root.folder): root for root in roots if root.origin is Origin.SHIPPED}
    seen: set[str] = set()
    for root in roots:
        for path, problem in _list_root(os.path.realpath(root.folder)):
            if path not in seen:
                seen.add(path)
                yield Path(path), shipped.get(os.path.dirname(path), root), problem


def _list_root(root: str) -> Iterator[tuple[str, PluginProblem | None]]:
    if read_signature(root):
        yield root, None
        return
    try:
        with os.scandir(root) as listing:
            entries = [entry for entry in itertools.islice(listing, _MAX_ENTRIES) if _can_be_plugin(entry)]
    except OSError:
        return
    entries.sort(key=lambda entry: entry.name)
    for entry in entries[:MAX_FOLDERS]:
        yield _resolve_link(entry.path) if entry.is_symlink() else (entry.path, None)
    if len(entries) > MAX_FOLDERS:
        last = entries[MAX_FOLDERS - 1].name
        message = Message(
            "{left_out} of its {total} folders are left out: all after '{last}'",
            left_out=len(entries) - MAX_FOLDERS,
            total=len(entries),
            last=last,
        )
        yield (
            root,
            PluginProblem(
                message=message,
                fix=Message("keep at most {max_folders} plugins in one folder", max_folders=MAX_FOLDERS),
            ),
        )


def _can_be_plugin(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.startswith(".") and (entry.is_symlink() or entry.is_dir())


def _resolve_link(path: str) -> tuple[str, PluginProblem | None]:
    try:
        return os.path.realpath(path, strict=True), None
    except OSError as error:
        fix = Message("remove it, or correct where it leads")
        return path, PluginProblem(
            message=Message("the link leads nowhere: {strerror}", strerror=error.strerror), fix=fix
        )
