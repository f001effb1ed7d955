"""Client JSON of a plugin: a row of a list, and the review before it may run. Values of secrets are in neither."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from toolyard.dialects.function_tool import to_function
from toolyard.message import to_fields
from toolyard.plugins.access_text import AccessOption
from toolyard.plugins.plugin import Plugin, PluginProblem
from toolyard.plugins.trust import Review
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.manifest import Manifest, tool_spec, write_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginReview:
    """A review with what the manifest says and what is worth a look."""

    review: Review
    manifest: Manifest
    problems: tuple[PluginProblem, ...] = ()
    access: tuple[AccessOption, ...] = ()

    def with_access(self, choice: AccessChoice | None) -> "PluginReview":
        """Return a copy with the owner's decision on what it may reach; None: no decision."""
        return self if choice is None else replace(self, review=replace(self.review, access=choice))

    def with_detached(self, *, detached: bool | None) -> "PluginReview":
        """Return a copy with the owner's decision on background work; None: no decision."""
        return self if detached is None else replace(self, review=replace(self.review, detached=detached))

    def to_json(self) -> dict[str, Any]:
        review, spec = self.review, tool_spec(self.manifest)
        return {
            "name": review.name,
            "folder": str(review.folder),
            "state": review.state.value,
            "type": self.manifest.type.value,
            "risk": self.manifest.risk.value,
            "read_confirmed": review.read_confirmed,
            "command_line": review.command_line,
            "argv": list(review.argv),
            "shell": review.shell,
            "detached": review.detached,
            "environment": list(review.environment),
            "access": review.access.value,
            "access_options": [option.to_json() for option in self.access],
            "files": dict(review.files),
            "digest": review.shown_digest,
            "links": dict(review.links),
            "changed": list(review.changed),
            "manifest_diff": review.manifest_diff,
            "model_reads": spec.description,
            "parameters": spec.parameters,
            "native": to_function(spec),
            "prompt_text": write_plugin(self.manifest),
            "problems": problems_to_json(self.problems),
        }


def plugin_to_json(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "type": plugin_type(plugin),
        "version": plugin.manifest.version if plugin.manifest else "",
        "origin": plugin.origin.value,
        "state": plugin.state.value,
        **to_fields("reason", plugin.reason),
        "folder": str(plugin.folder),
        "hidden_by": str(plugin.hidden_by) if plugin.hidden_by else None,
        "hides": [str(folder) for folder in plugin.hides],
        "problems": problems_to_json(plugin.problems),
    }


def describe_status(plugin: Plugin) -> str:
    """Return why a plugin does not run, or which others of its name it hides."""
    if plugin.reason or not plugin.hides:
        return plugin.reason
    return f"it runs instead of {', '.join(map(str, plugin.hides))}"


def plugin_type(plugin: Plugin) -> str:
    return plugin.manifest.type.value if plugin.manifest else "-"


def problems_to_json(problems: Sequence[PluginProblem]) -> list[dict[str, Any]]:
    return [
        asdict(problem) | to_fields("message", problem.message) | to_fields("fix", problem.fix) for problem in problems
    ]
