"""Plugin manifests: ``plugin-manifest.json`` as a value, and that value as a tool.

``read_manifest`` never raises. It returns a Manifest unless a problem is more than a warning, and all problems at once,
in the order of the text, each with its field, its place and a fix. Manifests written for VCPToolBox load unchanged:
only name, pluginType, entryPoint and a command to run are needed. Nothing is lost: ``Manifest.fields`` has the complete
object as written. At most 1 MiB, 50 levels, 200 commands and 100 problems.
"""

from toolyard.protocol.json_text import Container
from toolyard.protocol.manifests.reading import manifest_of
from toolyard.protocol.manifests.source import Fault, blank_comments, line_and_column, parse, place, written
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.manifests.values import (
    Command,
    ConfigKey,
    Limits,
    Manifest,
    ManifestProblem,
    PluginType,
    Push,
    Read,
)
from toolyard.protocol.tool import Translation
from toolyard.protocol.tool_text import write_plugin

__all__ = [
    "Command",
    "ConfigKey",
    "Limits",
    "Manifest",
    "ManifestProblem",
    "PluginType",
    "Push",
    "Read",
    "Translation",
    "command_spec",
    "read_manifest",
    "tool_spec",
    "write_plugin",
]

_MAX_PROBLEMS = 100


def read_manifest(text: str) -> Read:
    value, faults = parse(text)
    manifest = None
    if value is not None:
        manifest, more = manifest_of(value)
        faults += more
    containers: dict[int, Container] = {}
    plain = blank_comments(text)
    problems = [_to_problem(plain, fault, containers) for fault in _limit_faults(faults)]
    return Read(manifest=manifest, problems=tuple(sorted(problems, key=lambda problem: (problem.line, problem.column))))


def _limit_faults(faults: list[Fault]) -> list[Fault]:
    """Return all faults, or as many as are listed: errors come before warnings."""
    return sorted(faults, key=lambda fault: fault.warning)[:_MAX_PROBLEMS]


def _to_problem(text: str, fault: Fault, containers: dict[int, Container]) -> ManifestProblem:
    line, column = place(text, fault.path, containers) if fault.at is None else line_and_column(text, fault.at)
    return ManifestProblem(
        message=fault.message,
        field=written(fault.path),
        line=line,
        column=column,
        fix=fault.fix,
        warning=fault.warning,
    )
