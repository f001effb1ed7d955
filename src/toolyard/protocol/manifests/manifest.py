"""The values of a manifest; the modules that parse them know the names that manifests use."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from toolyard.protocol.access import Access
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Risk, Translation


class PluginType(StrEnum):
    SYNCHRONOUS = "synchronous"
    ASYNCHRONOUS = "asynchronous"
    STATIC = "static"
    MESSAGE_PREPROCESSOR = "messagePreprocessor"
    SERVICE = "service"
    HYBRID_SERVICE = "hybridservice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resource limits of each process of one child. None: no limit of its own."""

    memory_bytes: int | None = None  # address space
    data_bytes: int | None = None  # memory that it can write: a program may reserve far more than it uses
    cpu_s: int | None = None
    open_files: int = 1024
    processes: int = 256
    file_bytes: int | None = None  # of one file that it writes
    stdout_bytes: int = 16 * 2**20

    def or_usual(self, usual: "Limits") -> "Limits":
        """Return these limits, and the usual ones where there are none."""
        return replace(
            self,
            data_bytes=usual.data_bytes if self.memory_bytes is None else self.data_bytes,
            cpu_s=usual.cpu_s if self.cpu_s is None else self.cpu_s,
            file_bytes=usual.file_bytes if self.file_bytes is None else self.file_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """A setting of a plugin: a key of its ``config.env``."""

    name: str
    type: str = "string"  # string, integer, number or boolean
    default: Json = None
    description: str = ""
    required: bool = False
    required_unless: tuple[str, ...] = ()  # it is required while none of these is set

    def is_required(self, set_keys: Container[str]) -> bool:
        """Return whether it must be set, given the settings that are."""
        if self.required_unless:
            return not any(name in set_keys for name in self.required_unless)
        return self.required


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a plugin. Its texts are safe to show to a model; ``Manifest.fields`` has them as written."""

    name: str = ""  # empty: the manifest gives it none, because the plugin needs none
    display_name: str = ""
    description: str = ""
    example: str = ""
    calls: tuple[tuple[str, JsonObject], ...] = field(default=(), compare=False)  # the request blocks of the example
    parameters: JsonObject | None = None  # a JSON Schema of type object; None: nothing is known
    derived: bool = False  # read from the description, not declared

    @property
    def properties(self) -> JsonObject:
        """The schema of each known parameter, by its name."""
        properties = (self.parameters or {}).get("properties")
        return properties if isinstance(properties, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """The message to WebSocket clients when a callback comes in."""

    enabled: bool = False
    message_type: str = "plugin_callback_notification"
    target_client_type: str | None = None  # None: every client
    use_result: bool = True  # the callback's body is the message; else plugin, id, status and message only


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    name: str
    display_name: str
    description: str = ""
    translations: Mapping[str, Translation] = field(default_factory=dict)  # by language: "en"
    version: str = ""
    author: str = ""
    type: PluginType
    command_line: str = ""  # empty only when ``unsupported``
    shell: bool = False
    timeout_s: float
    config: tuple[ConfigKey, ...] = ()
    commands: tuple[Command, ...] = ()
    placeholders: tuple[str, ...] = ()  # names without braces, which a static plugin gives a value
    refresh_cron: str | None = None
    push: Push | None = None
    risk: Risk = Risk.EXECUTE
    idempotent: bool = False
    max_concurrency: int | None = None
    limits: Limits = field(default_factory=Limits)
    access: Access | None = None  # what it declares in ``permissions``; None: nothing, as in every old manifest
    exact_approval: bool = False  # every call asks, unless a rule is about exactly its arguments
    ask_always_with: tuple[str, ...] = ()  # arguments with which no rule allows a call
    enabled_by_default: bool = True
    warm: bool = True
    detached: bool = False  # it may work without its process until the callback, or after its answer
    detached_timeout_s: float = 1800.0  # of a synchronous one: the limit after its answer
    unsupported: str = ""  # why it cannot run here, in one sentence; empty: it can
    script: str = ""  # of one that is ``unsupported``: what VCPToolBox loads into its own process
    fields: JsonObject = field(default_factory=dict)  # the whole manifest as written, unknown fields included


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestProblem:
    """A fault of a manifest. Lines and columns count from 1, columns in characters."""

    message: str
    field: str = ""  # "entryPoint.command"; empty: the text as a whole
    line: int = 1
    column: int = 1
    fix: str = ""
    warning: bool = False  # the plugin loads all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedManifest:
    """A manifest, or None when a problem that is no warning stands in the way; and all problems, in their order."""

    manifest: Manifest | None
    problems: tuple[ManifestProblem, ...] = ()
