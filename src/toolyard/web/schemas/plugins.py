"""Schemas of tools, plugins and MCP servers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.plugins.case_file import MAX_NAME
from toolyard.web.schemas.common import OpenModel, StrictModel, ToolSummary


class TranslationRow(OpenModel):
    display_name: str
    description: str
    parameters: Annotated[
        dict[str, str], Field(description="The help of parameters, by name; `a.b` is `b` inside the parameter `a`.")
    ]


Translations = Annotated[
    dict[str, TranslationRow],
    Field(description="What people read in other languages, by language; an empty text is not translated."),
]


class ToolRow(ToolSummary):
    kind: Literal["built-in", "sync", "async", "mcp", "remote"]
    plugin: str | None
    server: str | None
    display_name: str
    translations: Translations
    version: str
    commands: list[str]
    examples: list[dict[str, Any]]
    hidden_characters: bool


class ToolRows(BaseModel):
    data: list[ToolRow]


class ProblemRow(OpenModel):
    message: str
    fix: str
    file: str
    line: Annotated[int, Field(description="From 1; 0 is no place in particular.")]
    column: int
    warning: bool


class PluginRow(OpenModel):
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
    folder: str
    origin: Literal["shipped", "home", "project", "given"]
    hidden_by: Annotated[str | None, Field(description="The folder of the plugin that has its name and runs instead.")]
    hides: Annotated[list[str], Field(description="The folders of plugins of the same name that it runs instead of.")]
    tools: list[str]
    commands: list[str]
    problems: list[ProblemRow]


class PluginRows(BaseModel):
    data: list[PluginRow]


class PluginReview(OpenModel):
    command_line: str
    argv: list[str]
    shell: bool
    detached: Annotated[bool, Field(description="Whether its work may go on after its answer.")]
    detached_s: Annotated[float | None, Field(description="How long at most; null when it never may.")]
    env: list[str]
    files: dict[str, str]
    folders: list[str]
    sandbox: str
    fingerprint: str
    changed: list[str]
    diff: str
    claims_read: Annotated[bool, Field(description="Its manifest says that it only reads.")]
    read_confirmed: Annotated[bool, Field(description="And that is believed: models run it without asking.")]


class PluginSettingRow(OpenModel):
    key: str
    type: str
    description: str
    required: bool
    secret: bool
    value: str | None
    set: bool
    source: Literal["plugin", "host", "default", "missing"]
    changed: float | None


class PluginDoc(BaseModel):
    name: str
    html: str


class PluginDetail(PluginRow):
    manifest: str
    description: str
    description_length: int
    native: Annotated[dict[str, Any] | None, Field(description="The function that a chat offers to its model.")]
    prompt_text: str
    hidden_characters: bool
    lint: list[ProblemRow]
    review: PluginReview | None
    config: list[PluginSettingRow]
    docs: list[PluginDoc]
    takes_tests: Annotated[bool, Field(description="Whether its folder is one where Toolyard writes tests.")]


class ReviewDecision(StrictModel):
    fingerprint: Annotated[
        str, Field(min_length=1, max_length=200, description="`review.fingerprint` as it was shown.")
    ]
    detached: Annotated[
        bool | None, Field(description="Whether its work may go on after its answer. Null: as the manifest says.")
    ] = None
    confirm_read: Annotated[
        bool, Field(description="Believe that it only reads, as it says: models run it without asking.")
    ] = False


class NewCase(StrictModel):
    call: Annotated[str, Field(min_length=1, max_length=200, description="The id of a call that the plugin answered.")]
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    text_contains: Annotated[
        str, Field(max_length=2000, description="What the answer must say: words of this one. Empty asks for none.")
    ] = ""


class CreatedCase(BaseModel):
    name: Annotated[str, Field(description="The name it got.")]
    file: Annotated[str, Field(description="Where it stands.")]
    case: Annotated[dict[str, Any], Field(description="As it was written.")]


class PluginValues(StrictModel):
    values: Annotated[
        dict[str, str | int | float | bool | None],
        Field(min_length=1, max_length=200, description="Key and value; null takes the key out of `config.env`."),
    ]


class PluginConfigResult(OpenModel):
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
        Field(min_length=1, max_length=4096, description="The absolute path of a folder or archive, or a git address."),
    ]


class StagedFile(BaseModel):
    path: str
    size: int


class StagedPluginResponse(OpenModel):
    staged: Annotated[str, Field(description="What to allow or to discard it by.")]
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
    left_out: Annotated[list[str], Field(description="Dependencies that have to be installed anew.")]


class ServerRow(OpenModel):
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
    left_out: dict[str, str]


class ServerRows(BaseModel):
    data: list[ServerRow]
    problems: list[str]


class ServerReview(OpenModel):
    name: str
    command_line: str
    variables: list[str]
    changed: list[str]
    tools: list[dict[str, Any]]
    left_out: dict[str, str]
    fingerprint: str
