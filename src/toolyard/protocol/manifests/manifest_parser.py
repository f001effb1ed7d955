"""The text of a manifest to a Manifest: every field, its default, and its problems.

``read_manifest`` never raises. It returns a Manifest unless a problem is more than a warning, and all problems at once,
in the order of the text, each with its field, its place and a fix. Manifests written for VCPToolBox load unchanged:
only name, pluginType, entryPoint and a command to run are needed. Nothing is lost: ``Manifest.fields`` has the complete
object as written. At most 1 MiB, 50 levels, 200 commands and 100 problems.

Refused is only what could not run, or would run with less protection than the manifest asks for. Everything else that
is missing or odd is a warning, because manifests of VCPToolBox are full of it and work. ``translations`` are texts for
people, the English ones also for native tool calls, in at most 50 languages with 200 texts each.
"""

import re
from collections.abc import Iterable
from typing import Final

from toolyard.message import Message
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.edits.json_text import Container
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.commands import parse_commands, read_safe_text
from toolyard.protocol.manifests.config_schema import parse_config_keys
from toolyard.protocol.manifests.fields import Fields
from toolyard.protocol.manifests.manifest import (
    Command,
    ConfigKey,
    Limits,
    Manifest,
    ManifestProblem,
    ParsedManifest,
    PluginType,
    Push,
)
from toolyard.protocol.manifests.manifest_json import (
    Fault,
    blank_comments,
    format_path,
    line_and_column,
    locate,
    parse_json,
)
from toolyard.protocol.manifests.permissions import parse_permissions
from toolyard.protocol.manifests.spec import SELECTOR
from toolyard.protocol.tool import Risk, Translation

MAX_TIMEOUT_S = 24 * 3600.0
TIMEOUTS_S = {PluginType.ASYNCHRONOUS: 1800.0}  # the default by type, else:
DEFAULT_TIMEOUT_S = 60.0
DETACHED_TIMEOUT_S = 1800.0
MIB = 2**20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PLACEHOLDER = re.compile(r"\{*\s*([^{}\s][^{}\n]{0,127}?)\s*\}*")
_MAX_PLACEHOLDER = 200
_PROTOCOLS = ("stdio", "process_stdio")
_KEYS = frozenset({
    "manifestVersion", "name", "displayName", "version", "description", "author", "pluginType", "entryPoint", "shell",
    "communication", "configSchema", "capabilities", "translations", "webSocketPush", "refreshIntervalCron", "risk",
    "idempotent", "maxConcurrency", "limits", "permissions", "approval", "enabledByDefault", "warmStart", "detached",
    "detachedTimeout",
})  # fmt: skip
_INNER_KEYS = {
    "entryPoint": frozenset({"type", "command", "script", "shell", "timeout"}),
    "communication": frozenset({"protocol", "timeout"}),
    "capabilities": frozenset({"invocationCommands", "systemPromptPlaceholders"}),
    "approval": frozenset({"exact", "alwaysAskWith"}),
    "webSocketPush": frozenset({"enabled", "messageType", "targetClientType", "usePluginResultAsMessage"}),
}
_IN_NODE = (PluginType.MESSAGE_PREPROCESSOR, PluginType.SERVICE, PluginType.HYBRID_SERVICE)
MAX_LANGUAGES: Final = 50
MAX_PARAMETERS: Final = 200
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}")
_MAX_PROBLEMS = 100


def parse_manifest(value: JsonObject) -> tuple[Manifest | None, list[Fault]]:
    """Return the manifest, or None when one of the faults is more than a warning."""
    faults: list[Fault] = []
    fields = Fields(value, (), faults)
    name, kind = _parse_name(fields), _parse_type(fields)
    if kind is None:
        _parse_command_line(fields, None, "")
        _note_misspelt(fields)
        return None, faults
    unsupported = _unsupported_reason(fields, kind)
    capabilities = fields.nested("capabilities")
    known = parse_commands(capabilities)
    placeholders = _parse_placeholders(capabilities)
    _note_missing_parts(fields, capabilities, kind, known, placeholders)
    approval = fields.nested("approval", vital=True)
    config = parse_config_keys(fields)
    manifest = Manifest(
        name=name,
        display_name=read_safe_text(fields, "displayName").strip() or name,
        description=read_safe_text(fields, "description"),
        translations=parse_translations(fields.nested("translations"), known, config),
        version=fields.text("version"),
        author=fields.text("author"),
        type=kind,
        command_line=_parse_command_line(fields, kind, unsupported),
        shell=_uses_shell(fields),
        timeout_s=_parse_timeout_s(fields, kind),
        config=config,
        commands=known,
        placeholders=placeholders,
        refresh_cron=fields.text("refreshIntervalCron").strip() or None,
        push=_parse_push(fields),
        risk=_parse_risk(fields),
        idempotent=fields.flag("idempotent", default=False, vital=True),
        max_concurrency=_parse_positive_integer(fields, "maxConcurrency", 10_000),
        limits=_parse_limits(fields.nested("limits", vital=True)),
        access=parse_permissions(fields),
        exact_approval=approval.flag("exact", default=False, vital=True),
        ask_always_with=tuple(str(name) for _, name in approval.items("alwaysAskWith")),
        enabled_by_default=fields.flag("enabledByDefault", default=True, vital=True),
        warm=fields.flag("warmStart", default=True, vital=True),
        detached=fields.flag("detached", default=False, vital=True),
        detached_timeout_s=_parse_detached_timeout_s(fields),
        unsupported=unsupported,
        script=fields.nested("entryPoint").text("script").strip() if unsupported else "",
        fields=value,
    )
    _note_misspelt(fields)
    return (manifest if all(fault.warning for fault in faults) else None), faults


def _note_misspelt(fields: Fields) -> None:
    """Warn of keys that are almost known; others are kept and ignored."""
    fields.note_misspelt(_KEYS)
    for name, keys in _INNER_KEYS.items():
        value = fields.value.get(name)
        if isinstance(value, dict):
            Fields(value, (*fields.path, name), fields.faults).note_misspelt(keys)


def _parse_name(fields: Fields) -> str:
    name = fields.value.get("name")
    fix = Message(
        'Add "name": letters, digits, "_", "." and "-", beginning with a letter, a digit or "_", at most 128.'
    )
    if name is None:
        fields.note_missing("name", fix, _KEYS)
    elif not isinstance(name, str) or not _NAME.fullmatch(name):
        fix = Message(
            'Write "name": letters, digits, "_", "." and "-", beginning with a letter, a digit or "_", at most 128.'
        )
        _note_impossible(fields, "name", name, fix)
    else:
        return name
    return ""


def _note_impossible(fields: Fields, name: str, value: Json, fix: str) -> None:
    message = Message("'{name}' cannot be {value!r}.", name=name, value=str(value)[:60])
    fields.note(name, message, fix, warning=False)


def _parse_type(fields: Fields) -> PluginType | None:
    written = fields.value.get("pluginType")
    supported = [kind.value for kind in PluginType if kind not in _IN_NODE]
    choices = ", ".join(supported)
    if written is None:
        fields.note_missing("pluginType", Message('Add "pluginType": one of {choices}.', choices=choices), _KEYS)
        return None
    kinds = {kind.lower(): kind for kind in PluginType}
    kind = kinds.get(str(written).strip().lower())
    if kind is None:
        guess = find_nearest(str(written), supported)
        fix = (
            Message("Did you mean {guess}?", guess=guess)
            if guess
            else Message("Use one of {choices}.", choices=choices)
        )
        _note_impossible(fields, "pluginType", written, fix)
    return kind


def _unsupported_reason(fields: Fields, kind: PluginType) -> str:
    protocol = fields.nested("communication").text("protocol", "stdio").strip().lower()
    if kind in _IN_NODE:
        return Message(
            "Plugins of type {kind} run inside VCPToolBox's own Node.js process, which Toolyard does not have.",
            kind=kind,
        )
    if protocol == "direct" and kind is not PluginType.STATIC:
        return Message("Protocol direct runs inside VCPToolBox's own Node.js process, which Toolyard does not have.")
    if protocol not in (*_PROTOCOLS, "direct"):
        communication = Fields({}, ("communication",), fields.faults)
        communication.note(
            "protocol",
            Message("The protocol {protocol!r} is taken as stdio.", protocol=protocol[:60]),
            Message('Write "stdio".'),
        )
    return ""


def _parse_command_line(fields: Fields, kind: PluginType | None, unsupported: str) -> str:
    entry = fields.value.get("entryPoint")
    fix = Message('Add "entryPoint": {{"command": "python main.py"}} with the command that starts the plugin.')
    if entry is None:
        fields.note_missing("entryPoint", fix, _KEYS)
        return ""
    command = entry.get("command") if isinstance(entry, dict) else None
    if isinstance(command, str) and command.strip() and "\0" not in command:
        return command.strip()
    if kind is not None and not unsupported:
        if isinstance(entry, dict) and "command" not in entry:
            fields.nested("entryPoint").note_missing("command", fix, _INNER_KEYS["entryPoint"])
        else:
            fields.note("entryPoint", Message("'entryPoint' has no command that can be run."), fix, warning=False)
    return ""


def _uses_shell(fields: Fields) -> bool:
    """Return the flag ``shell``, at the top or in ``entryPoint``."""
    entry = fields.value.get("entryPoint")
    inside = Fields(entry if isinstance(entry, dict) else {}, ("entryPoint",), fields.faults)
    return fields.flag("shell", default=False, vital=True) or inside.flag("shell", default=False, vital=True)


def _parse_timeout_s(fields: Fields, kind: PluginType) -> float:
    """Return the timeout, also from ``entryPoint``, where VCPToolBox overlooks it."""
    limits = [
        fields.nested(place).number("timeout", 1, MAX_TIMEOUT_S * 1000)
        for place in ("communication", "entryPoint")
        if isinstance(fields.value.get(place), dict)
    ]
    given = next((limit for limit in limits if limit is not None), None)
    return given / 1000 if given is not None else TIMEOUTS_S.get(kind, DEFAULT_TIMEOUT_S)


def _parse_detached_timeout_s(fields: Fields) -> float:
    given = fields.number("detachedTimeout", 1, MAX_TIMEOUT_S * 1000, vital=True)
    return DETACHED_TIMEOUT_S if given is None else given / 1000


def _parse_placeholders(capabilities: Fields) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for number, item in capabilities.items("systemPromptPlaceholders"):
        written = item.get("placeholder") if isinstance(item, dict) else item
        match = (
            _PLACEHOLDER.fullmatch(written.strip())
            if isinstance(written, str) and len(written) < _MAX_PLACEHOLDER
            else None
        )
        if match:
            names[match[1]] = None
        else:
            path = (*capabilities.path, "systemPromptPlaceholders")
            note = Fields({}, path, capabilities.faults).note
            note(
                number,
                Message("This placeholder has no name. It is ignored."),
                Message('Write {{"placeholder": "{{{{Name}}}}"}}.'),
            )
    return tuple(names)


def _note_missing_parts(
    fields: Fields, capabilities: Fields, kind: PluginType, known: tuple[Command, ...], placeholders: tuple[str, ...]
) -> None:
    """Warn of parts that a good manifest has and an old one may lack."""
    for name, meaning in (
        ("displayName", Message("the name that people read")),
        ("communication", '{"protocol": "stdio"}'),
    ):
        if name not in fields.value:
            fields.note(
                None,
                Message("'{name}' is missing.", name=name),
                Message('Add "{name}": {meaning}.', name=name, meaning=meaning),
            )
    where = "capabilities" if "capabilities" in fields.value else None
    note = fields.note if where is None else capabilities.note
    if kind is PluginType.STATIC:
        if not placeholders:
            note(
                None,
                Message("'systemPromptPlaceholders' is missing: nothing shows this value."),
                Message("List the placeholders."),
            )
    elif not known and kind not in _IN_NODE:
        message = Message("'invocationCommands' is missing: no model can know what the plugin does.")
        note(None, message, Message('Add "capabilities": {{"invocationCommands": [{{"command", "description"}}]}}.'))


def _parse_push(fields: Fields) -> Push | None:
    if "webSocketPush" not in fields.value:
        return None
    push = fields.nested("webSocketPush")
    return Push(
        enabled=push.flag("enabled", default=False),
        message_type=push.text("messageType") or Push().message_type,
        target_client_type=push.text("targetClientType") or None,
        use_result=push.flag("usePluginResultAsMessage", default=True),
    )


def _parse_risk(fields: Fields) -> Risk:
    written = fields.value.get("risk")
    if written is None:
        return Risk.EXECUTE
    if str(written).lower() not in list(Risk):
        _note_impossible(fields, "risk", written, Message("Use one of {choices}.", choices=", ".join(Risk)))
        return Risk.EXECUTE
    return Risk(str(written).lower())


def _parse_positive_integer(fields: Fields, name: str, high: int) -> int | None:
    number = fields.number(name, 1, high, integer=True, vital=True)
    return None if number is None else int(number)


def _parse_limits(fields: Fields) -> Limits:
    for name in fields.value.keys() - {"memoryMb", "cpuSeconds", "openFiles", "processes", "fileSizeMb", "stdoutMb"}:
        fields.note(
            name,
            Message("There is no limit called '{name}'.", name=name),
            Message("Correct or remove it."),
            warning=False,
        )
    usual = Limits()
    memory, file_size = (
        _parse_positive_integer(fields, "memoryMb", 2**22),
        _parse_positive_integer(fields, "fileSizeMb", 2**22),
    )
    stdout = _parse_positive_integer(fields, "stdoutMb", 1024)
    return Limits(
        memory_bytes=None if memory is None else memory * MIB,
        cpu_s=_parse_positive_integer(fields, "cpuSeconds", 10**6),
        open_files=_parse_positive_integer(fields, "openFiles", 2**20) or usual.open_files,
        processes=_parse_positive_integer(fields, "processes", 2**20) or usual.processes,
        file_bytes=None if file_size is None else file_size * MIB,
        stdout_bytes=usual.stdout_bytes if stdout is None else stdout * MIB,
    )


def parse_translations(
    fields: Fields, commands: tuple[Command, ...], config: tuple[ConfigKey, ...] = ()
) -> dict[str, Translation]:
    """Parse translations by language. Texts have no hidden characters and a bounded length; empty ones are skipped."""
    known = {SELECTOR} if len(commands) > 1 else set()
    known.update(name for command in commands for name in command.properties)
    parsed: dict[str, Translation] = {}
    for language in list(fields.value)[:MAX_LANGUAGES]:
        if not _LANGUAGE.fullmatch(language):
            fields.note(
                language, Message("This is no language. It is ignored."), Message('Write a code such as "en" or "zh".')
            )
            continue
        one = fields.nested(language)
        parsed[language] = Translation(
            display_name=read_safe_text(one, "displayName").strip(),
            description=read_safe_text(one, "description"),
            parameters=dict(_parse_parameters(one.nested("parameters"), known)),
            commands=dict(_parse_texts(one.nested("commands"), {command.name for command in commands})),
            settings=dict(_parse_texts(one.nested("settings"), {key.name for key in config})),
        )
    return parsed


def _parse_parameters(fields: Fields, known: set[str]) -> Iterable[tuple[str, str]]:
    names = list(fields.value)
    if len(names) > MAX_PARAMETERS:
        message = Message(
            "There are {count} parameters here; the first {max_parameters} are read.",
            count=len(names),
            max_parameters=MAX_PARAMETERS,
        )
        fields.note(None, message, Message("Remove the others."))
    for name in names[:MAX_PARAMETERS]:
        if name not in known and name.partition(".")[0] not in known:
            fields.note(
                name, Message("No command has this parameter. It is ignored."), Message("Correct or remove it.")
            )
        elif text := read_safe_text(fields, name).strip():
            yield name, text


def _parse_texts(fields: Fields, known: set[str]) -> Iterable[tuple[str, str]]:
    """Parse the texts about commands or settings, by their names."""
    for name in list(fields.value)[:MAX_PARAMETERS]:
        if name not in known:
            fields.note(
                name, Message("The manifest has nothing of this name. It is ignored."), Message("Correct or remove it.")
            )
        elif text := read_safe_text(fields, name).strip():
            yield name, text


def read_manifest(text: str) -> ParsedManifest:
    value, faults = parse_json(text)
    manifest = None
    if value is not None:
        manifest, more = parse_manifest(value)
        faults += more
    containers: dict[int, Container] = {}
    plain = blank_comments(text)
    problems = [_to_problem(plain, fault, containers) for fault in _select_worst(faults)]
    return ParsedManifest(
        manifest=manifest, problems=tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    )


def _select_worst(faults: list[Fault]) -> list[Fault]:
    """Return at most ``_MAX_PROBLEMS`` faults: those that refuse the manifest first."""
    return sorted(faults, key=lambda fault: fault.warning)[:_MAX_PROBLEMS]


def _to_problem(text: str, fault: Fault, containers: dict[int, Container]) -> ManifestProblem:
    line, column = locate(text, fault.path, containers) if fault.at is None else line_and_column(text, fault.at)
    return ManifestProblem(
        message=fault.message,
        field=format_path(fault.path),
        line=line,
        column=column,
        fix=fault.fix,
        warning=fault.warning,
    )
