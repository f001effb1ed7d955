"""A plugin as it is now: the content of its folder, and whether it may run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from toolyard.message import Message, strip_period
from toolyard.plugins.command_line import CommandLine
from toolyard.plugins.fingerprint import Fingerprint
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.manifest import Manifest
from toolyard.protocol.tool import Risk


class Origin(StrEnum):
    SHIPPED = "shipped"
    HOME = "home"
    PROJECT = "project"
    GIVEN = "given"  # with --plugins


class PluginState(StrEnum):
    READY = "ready"
    MISSING_CONFIG = "missing_config"  # its owner lets it run, but a setting that it requires is not set
    DISABLED = "disabled"
    NEEDS_REVIEW = "needs_review"  # nobody has allowed it yet
    CHANGED = "changed"  # it is no longer what was allowed
    UNSUPPORTED = "unsupported"  # of a type that only VCPToolBox itself can run
    BROKEN = "broken"
    DUPLICATE = "duplicate"  # another plugin of the same name hides it
    SHADOWED = "shadowed"  # a built-in tool has the name


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """A fault of a plugin and its place. Lines and columns count from 1; 0 is no place in particular."""

    message: str
    fix: str = ""
    file: str = ""  # relative to the plugin's folder
    line: int = 0
    column: int = 0
    field: str = ""
    warning: bool = False  # it runs all the same

    def __str__(self) -> str:
        text = self.message
        if self.field and self.field not in text:
            text = Message("plugin.problem_of_field", "{field}: {problem}", field=self.field, problem=text)
        if self.file:
            place = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
            text = Message("plugin.problem_at", "{place}: {problem}", place=place, problem=text)
        if self.fix:
            text = Message("plugin.problem_and_fix", "{problem}. Fix: {fix}", problem=strip_period(text), fix=self.fix)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    name: str  # the folder's, when there is no manifest to tell
    folder: Path  # its real path
    origin: Origin
    state: PluginState
    reason: str = ""  # why it is not ready, or why an older version of it is still used; with what to do
    manifest: Manifest | None = None  # the last good one
    raw_manifest: bytes = field(default=b"", repr=False)  # what it was read from
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # of its config.env
    command: CommandLine | None = None
    fingerprint: Fingerprint | None = None
    read_confirmed: bool = False  # its word that it only reads counts
    access: AccessChoice = AccessChoice.DECLARED  # the owner's decision on what it may reach
    paths: tuple[str, ...] = ()  # that its settings name and its owner has seen: it may write there
    links: Mapping[str, str] = field(default_factory=dict)  # on the way to what it may reach, and where they lead
    publish_keys: frozenset[str] = frozenset()  # of the host, which the owner gave it at its review
    problems: tuple[PluginProblem, ...] = ()
    was_allowed: bool = False  # its owner allowed it, as it is now or was: no other plugin gets its name
    hidden_by: Path | None = None  # the folder of the plugin that has its name
    hides: tuple[Path, ...] = ()  # the folders of those whose name it has

    @property
    def risk(self) -> Risk:
        """The effective risk: what its manifest claims, except that read-only must have been confirmed."""
        claimed = self.manifest.risk if self.manifest else Risk.EXECUTE
        return Risk.EXECUTE if claimed is Risk.READ and not self.read_confirmed else claimed

    @property
    def is_ready(self) -> bool:
        """It can do its work, and is offered to models."""
        return self.state is PluginState.READY

    @property
    def may_run(self) -> bool:
        """Its owner lets it run. One that lacks a setting is not offered, but does what it can when it is called."""
        return self.state in (PluginState.READY, PluginState.MISSING_CONFIG)

    @property
    def id(self) -> str:
        """The identity among all plugins that may ever have its name; stable when the home or Toolyard moves."""
        movable = self.origin in (Origin.SHIPPED, Origin.HOME)
        return f"{self.origin.value}:{self.folder.name if movable else self.folder}"
