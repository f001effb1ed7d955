"""The review of a VCPToolBox installation: what becomes of each part of it, and the one decision on its plugins.

The decision covers the plugins that wait for one, each as it is now: what has changed between the review and the yes is
not approved. Decisions on single plugins stay as they are. Nothing of the installation is run.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolyard.message import Message, to_fields
from toolyard.own_command import OwnCommand
from toolyard.plugins.package.config_env import is_secret
from toolyard.plugins.package.installation_view import list_process_settings
from toolyard.plugins.package.plugin import Origin, Plugin
from toolyard.plugins.package.review import PluginReview
from toolyard.vcp.check import Finding, check_installation, list_needs
from toolyard.vcp.dependencies import Need
from toolyard.vcp.installation import read_installation
from toolyard.yard.yard import Yard


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationReview:
    root: Path
    findings: tuple[Finding, ...]
    plugins: tuple[Plugin, ...]  # all of the installation
    waiting: tuple[PluginReview, ...]  # those that the decision is about
    process_secrets: tuple[str, ...]  # what those of VCPToolBox's process get together
    own_command: OwnCommand

    @property
    def digest(self) -> str:
        """Return the fingerprint of the decision: another one as soon as one of its plugins changes."""
        lines = sorted(f"{one.review.folder}\0{one.review.shown_digest}\n" for one in self.waiting)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def reach(self) -> dict[Message, list[str]]:
        """Return what the waiting plugins may reach together, with those that may: first what most may."""
        reach: dict[Message, list[str]] = {}
        for one in self.waiting:
            option = next(option for option in one.access if option.choice is one.review.access)
            for line in option.reach:
                for single in _list_single_paths(line):
                    reach.setdefault(single, []).append(one.review.name)
        return dict(sorted(reach.items(), key=lambda entry: -len(entry[1])))

    @property
    def needs(self) -> tuple[Need, ...]:
        """Return what its plugins need of this machine and can be installed."""
        return tuple(need for need in list_needs(self.findings) if need.package)

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.root),
            "findings": [one.to_json() for one in self.findings],
            "reach": [{**to_fields("text", line), "plugins": names} for line, names in self.reach.items()],
            "waiting": [
                {
                    "name": one.review.name,
                    "settings": list(one.from_host),
                    "changed": [to_fields("text", line) for line in one.review.changed],
                }
                for one in self.waiting
            ],
            "process_secrets": list(self.process_secrets),
            "fingerprint": self.digest,
            "install": self.own_command.format("vcp install", str(self.root)) if self.needs else "",
        }


def _list_single_paths(line: Message) -> Iterator[Message]:
    """Yield a sentence about several paths as one about each, so that those of many plugins can be put together."""
    paths = str(line.params.get("paths", ""))
    for path in paths.split(", "):

        def put(text: str, path: str = path) -> str:
            return text.replace(paths, path)

        yield line.map_text(put) if paths else line


def review_installation(yard: Yard) -> InstallationReview | None:
    """Return the review of the installation that is used in place; None without one. Reads files."""
    root, source = yard.config.vcp, yard.plugins
    if root is None:
        return None
    source.plugins.refresh()
    plugins = tuple(plugin for plugin in source.plugins.all if plugin.origin is Origin.VCP)
    there, waiting = read_installation(root), [one for one in plugins if _can_be_reviewed(one)]
    in_process = [one for one in plugins if one.is_in_process and (one.may_run or one in waiting)]
    seen = list_process_settings(root, there.variables, in_process) if any(one.is_in_process for one in waiting) else ()
    return InstallationReview(
        root=root,
        findings=check_installation(there, plugins, yard.config.home),
        plugins=plugins,
        waiting=tuple(map(source.review, waiting)),
        process_secrets=tuple(sorted(name for name in seen if is_secret(name, there.variables[name]))),
        own_command=yard.config.own_command.for_home,
    )


def _can_be_reviewed(plugin: Plugin) -> bool:
    return plugin.waits and plugin.fingerprint is not None and bool(plugin.fingerprint.digest)


def allow_installation(yard: Yard, review: InstallationReview) -> None:
    """Let what was shown run, and nothing else. Writes files."""
    for reviewed in review.waiting:
        yard.plugins.allow(reviewed)
    yard.plugins.plugins.refresh()
