"""Schemas of tools, plugins and MCP servers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.plugins.authoring.cases import MAX_NAME
from toolyard.plugins.package.review import FileChange, FileKind
from toolyard.protocol.access import AccessChoice, ConfinementLevel, ProjectAccess
from toolyard.web.schemas.common import Code, FunctionDefinition, MessageFields, Params, StrictModel, TextRow
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


class ToolExample(BaseModel):
    command: str
    arguments: dict[str, Any]


class CommandForm(BaseModel):
    name: str
    display_name: Annotated[str, Field(description="Empty: the name.")]
    description: str
    translations: Translations
    parameters: Annotated[dict[str, Any], Field(description="A JSON Schema of the calls of this command.")]


class ToolRow(BaseModel):
    name: str
    description: str
    risk: Literal["read", "write", "execute", "network"]
    parameters: Annotated[dict[str, Any], Field(description="A JSON Schema.")]
    output_schema: Annotated[
        dict[str, Any] | None, Field(description="A JSON Schema of `data`, as an MCP server declares it.")
    ]
    synonyms: Annotated[dict[str, str], Field(description="Other names of parameters.")]
    aliases: Annotated[list[str], Field(description="Other names of the tool.")]
    timeout_s: float
    native: Annotated[FunctionDefinition, Field(description="The function definition in a chat.")]
    kind: Literal["built-in", "sync", "async", "mcp", "remote"]
    plugin: str | None
    server: str | None
    display_name: str
    translations: Translations
    version: str
    commands: list[str]
    forms: Annotated[list[CommandForm], Field(description="Its commands, if it has several, with their parameters.")]
    examples: list[ToolExample]
    hidden_characters: bool
    confinement: Annotated[
        ConfinementLevel | None, Field(description="How far its program is confined; null without one.")
    ]


class ToolRows(BaseModel):
    data: list[ToolRow]


class ToolSummary(BaseModel):
    name: str
    description: Annotated[str, Field(description="Its first line.")]
    risk: Literal["read", "write", "execute", "network"]
    kind: Literal["built-in", "sync", "async", "mcp", "remote"]
    plugin: str | None
    server: str | None
    display_name: str
    translations: Annotated[
        dict[str, TranslationRow], Field(description="As in `/v1/tools`, with first lines and without parameters.")
    ]
    version: str
    commands: list[str]
    hidden_characters: bool


class ToolSummaries(BaseModel):
    data: list[ToolSummary]


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


class PluginRows(BaseModel):
    data: list[PluginRow]


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


class PluginSettingRow(BaseModel):
    key: str
    type: str
    description: str
    translations: Annotated[dict[str, str], Field(description="Translations of the description by language.")]
    required: bool
    secret: bool
    value: str | None
    set: bool
    source: Literal["plugin", "host", "default", "missing"]
    in_schema: Annotated[bool, Field(description="Whether the manifest declares it.")]
    changed: float | None


class PluginDoc(BaseModel):
    name: str
    html: str


class PluginDetail(PluginRow):
    manifest: str
    description: str
    description_length: int
    native: Annotated[FunctionDefinition | None, Field(description="The function definition in a chat.")]
    prompt_text: str
    hidden_characters: bool
    lint: list[ProblemRow]
    review: PluginReview | None
    config: list[PluginSettingRow]
    docs: list[PluginDoc]
    takes_tests: Annotated[bool, Field(description="Whether Toolyard can write tests to its folder.")]


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


class NewCase(StrictModel):
    call: Annotated[str, Field(min_length=1, max_length=200, description="The id of a call that the plugin answered.")]
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    text_contains: Annotated[
        str, Field(max_length=2000, description="A part of the result text that the test must find; empty for none.")
    ] = ""


class CaseExpectation(BaseModel):
    status: Annotated[str, Field(description="Missing for a call with tasks, which the test waits for.")] = ""
    text_contains: str = ""


class PluginCase(BaseModel):
    name: str
    args: dict[str, Any]
    expect: CaseExpectation


class CreatedCase(BaseModel):
    name: Annotated[str, Field(description="The name of the case.")]
    file: Annotated[str, Field(description="The file of the case.")]
    case: Annotated[PluginCase, Field(description="The case as written.")]


class PluginValues(StrictModel):
    values: Annotated[
        dict[str, str | int | float | bool | None],
        Field(min_length=1, max_length=200, description="Keys and values; null removes a key from `config.env`."),
    ]


class PluginConfigResult(BaseModel):
    name: str
    state: str
    reason: str
    holds: Literal["next call"]
    config: list[PluginSettingRow]


class LogRow(BaseModel):
    n: int
    at: float
    stream: Literal["stderr", "noise", "note"]
    call: str
    text: str


class LogPage(BaseModel):
    data: list[LogRow]
    next: int
    lost: int


class InstallSource(StrictModel):
    source: Annotated[
        str,
        Field(min_length=1, max_length=4096, description="The absolute path of a folder or archive, or a git URL."),
    ]


class StagedFile(BaseModel):
    path: str
    size: int


class StagedPluginResponse(BaseModel):
    staged: Annotated[str, Field(description="The id for `allow` and `DELETE`.")]
    name: str
    display_name: str
    translations: Translations
    source: str
    proof: str
    files: list[StagedFile]
    size: int
    review: PluginReview | None
    description: str
    problems: list[ProblemRow]
    left_out: Annotated[list[str], Field(description="Dependencies that must be installed again.")]


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


class ServerRow(BaseModel):
    name: str
    state: Literal["ready", "running", "disabled", "needs_review", "changed", "failed"]
    scope: Literal["home", "project"]
    file: str
    command_line: str
    variables: list[str]
    env: list[str]
    headers: list[str]
    tools: list[str]
    waiting: list[str]
    waiting_messages: list[MessageFields]
    left_out: Annotated[dict[str, str], Field(description="Tools that cannot be offered, and why.")]
    left_out_messages: dict[str, MessageFields]


class ServerRows(BaseModel):
    data: list[ServerRow]
    problems: list[str]
    problem_messages: list[MessageFields]


class ServerTool(BaseModel):
    name: str
    title: str
    description: str
    input_schema: Annotated[dict[str, Any], Field(alias="schema", description="The JSON Schema of its arguments.")]
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema; missing if it has none.")] = None
    warnings: list[str]
    warning_messages: list[MessageFields]


class ServerReview(BaseModel):
    name: str
    file: str
    command_line: str
    reach: Annotated[list[TextRow], Field(description="What a program may reach, in plain words.")]
    variables: list[str]
    changed: list[str]
    changed_messages: list[MessageFields]
    tools: list[ServerTool]
    left_out: Annotated[dict[str, str], Field(description="Tools that cannot be offered, and why.")]
    left_out_messages: dict[str, MessageFields]
    fingerprint: str
