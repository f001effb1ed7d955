"""Schemas of tools, plugins and MCP servers that several routes share."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolyard.plugins.package.review import FileChange, FileKind
from toolyard.protocol.access import AccessChoice, ConfinementLevel, ProjectAccess
from toolyard.web.schemas.common import Code, MessageFields, Params, StrictModel, TextRow
from toolyard.web.schemas.records import PatchHunk


class TranslationRow(BaseModel):
    display_name: str
    description: str
    parameters: Annotated[
        dict[str, str], Field(description="The help of parameters, by name; `a.b` is `b` inside the parameter `a`.")
    ]


Translations = Annotated[
    dict[str, TranslationRow],
    Field(description="Translations by language; an empty text is untranslated."),
]


class ProblemRow(MessageFields):
    fix: str
    fix_code: Code = ""
    fix_params: Params
    file: str
    line: Annotated[int, Field(description="From 1; 0 without a position.")]
    column: int
    field: Annotated[str, Field(description="The field of the manifest; empty without one.")]
    warning: bool


class PluginRow(BaseModel):
    name: str
    display_name: str
    translations: Translations
    version: str
    kind: Literal["sync", "async", "static", "service", "unknown"]
    state: Literal[
        "ready",
        "missing_config",
        "disabled",
        "needs_review",
        "changed",
        "unsupported",
        "broken",
        "duplicate",
        "shadowed",
    ]
    reason: str
    reason_code: Code = ""
    reason_params: Params
    folder: str
    origin: Literal["shipped", "home", "project", "given", "vcp"]
    confinement: Annotated[
        ConfinementLevel | None, Field(description="How far it is confined; null when it cannot run.")
    ]
    hidden_by: Annotated[
        str | None, Field(description="The folder of the plugin with the same name that is used instead.")
    ]
    hides: Annotated[list[str], Field(description="The folders of plugins with the same name that are hidden by it.")]
    tools: list[str]
    commands: list[str]
    problems: list[ProblemRow]


class AccessOptionRow(BaseModel):
    choice: AccessChoice
    reach: Annotated[list[TextRow], Field(description="What it may reach, in plain words.")]
    confinement: ConfinementLevel
    missing: Annotated[list[TextRow], Field(description="What this machine cannot enforce, and why.")]


class PluginReview(BaseModel):
    command_line: str
    argv: list[str]
    shell: bool
    detached: Annotated[bool, Field(description="Whether it may keep working after its answer.")]
    detached_s: Annotated[float | None, Field(description="For how long; null when it never may.")]
    env: list[str]
    files: dict[str, str]
    folders: list[str]
    access: Annotated[AccessChoice, Field(description="The decision on what it may reach.")]
    access_options: Annotated[list[AccessOptionRow], Field(description="Every decision, and what it means here.")]
    fingerprint: str
    changed: Annotated[list[TextRow], Field(description="Since it was approved.")]
    diff: str
    claims_read: Annotated[bool, Field(description="Its manifest claims that it is read-only.")]
    read_confirmed: Annotated[bool, Field(description="The claim is trusted: models run it without asking.")]


class PluginFileRow(BaseModel):
    path: str
    size: int
    kind: Annotated[FileKind, Field(description="`large`: a text that is too long to show. `gone`: it was reviewed.")]
    counts: Annotated[bool, Field(description="Whether the fingerprint covers it.")]
    change: Annotated[FileChange, Field(description="Since the plugin was approved.")]


class PluginFileRows(BaseModel):
    data: list[PluginFileRow]
    left_out: Annotated[int, Field(description="The number of further files, which the fingerprint does not cover.")]


class PluginFileContent(PluginFileRow):
    sha256: str
    text: Annotated[str | None, Field(description="Null for a file that is not shown as text; secrets are masked.")]
    structured_patch: Annotated[
        list[PatchHunk] | None,
        Field(description="From the approved version to this one; null without a change, or without the old text."),
    ]


class ReviewDecision(StrictModel):
    fingerprint: Annotated[str, Field(min_length=1, max_length=200, description="`review.fingerprint` as shown.")]
    detached: Annotated[
        bool | None, Field(description="Whether it may keep working after its answer. Null: as in the manifest.")
    ] = None
    access: Annotated[
        AccessChoice | None, Field(description="What it may reach. Null: as decided before, else what it declares.")
    ] = None
    confirm_read: Annotated[
        bool, Field(description="Trust its claim to be read-only: models run it without asking.")
    ] = False


class DeclaredPermissions(BaseModel):
    project: ProjectAccess = ProjectAccess.NONE
    read: list[str] = Field(default_factory=list)
    write: list[str] = Field(default_factory=list)
    ownFolder: ProjectAccess = ProjectAccess.READ  # noqa: N815 as manifests name it
    network: Annotated[
        Literal["any"] | list[str] | None, Field(description="`any`, or hosts such as `*.example.com:8443`.")
    ] = None
    unixSockets: bool = False  # noqa: N815
    confinement: ConfinementLevel = ConfinementLevel.NONE


class McpServerDeclaration(BaseModel):
    type: Annotated[str, Field(description="`stdio` or `http`.")] = ""
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    permissions: Annotated[DeclaredPermissions | None, Field(description="As in a plugin manifest.")] = None
    disabled: bool = False


class McpServersFile(BaseModel):
    mcpServers: dict[str, McpServerDeclaration]  # noqa: N815 as clients of MCP name it
