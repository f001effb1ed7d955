"""Plugin manifests: ``plugin-manifest.json`` as a value, and that value as a tool.

``read_manifest`` never raises. It returns a Manifest unless a problem is more than a warning, and all problems at once,
in the order of the text, each with its field, its place and a fix. Manifests written for VCPToolBox load unchanged:
only name, pluginType, entryPoint and a command to run are needed. Nothing is lost: ``Manifest.fields`` has the complete
object as written. At most 1 MiB, 50 levels, 200 commands and 100 problems.
"""

from toolyard.protocol.json_text import Container
from toolyard.protocol.manifests.manifest_json import (
    Fault,
    blank_comments,
    format_path,
    line_and_column,
    locate,
    parse_json,
)
from toolyard.protocol.manifests.manifest_parser import parse_manifest
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.manifests.values import (
    Command,
    ConfigKey,
    Limits,
    Manifest,
    ManifestProblem,
    ParsedManifest,
    PluginType,
    Push,
)
from toolyard.protocol.tool import Translation
from toolyard.protocol.tool_text import write_plugin

__all__ = [
    "Command",
    "ConfigKey",
    "Limits",
    "Manifest",
    "ManifestProblem",
    "ParsedManifest",
    "PluginType",
    "Push",
    "Translation",
    "command_spec",
    "read_manifest",
    "tool_spec",
    "write_plugin",
]

_MAX_PROBLEMS = 100


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
