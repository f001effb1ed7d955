"""Schemas of settings, status, setup and backups."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from toolyard.protocol.access import ConfinementLevel
from toolyard.provider_settings import ProviderProtocol
from toolyard.web.schemas.common import Code, ErrorBody, MessageFields, Params, StrictModel

SettingValue: TypeAlias = str | bool | int | float | list[str] | dict[str, Any] | None
"""The value of a setting; a table such as ``upstreams`` is an object."""


class SettingProblem(MessageFields):
    line: int
    column: int


class SettingProblems(ErrorBody):
    problems: Annotated[list[SettingProblem], Field(default_factory=list)]


class SettingRow(BaseModel):
    name: str
    value: SettingValue
    default: SettingValue
    source: Literal["default", "file", "env"]
    variable: Annotated[str, Field(description="The environment variable that sets it, or empty.")]
    variables: Annotated[list[str], Field(description="The environment variables that can set it.")]
    set: bool
    secret: bool
    live: Annotated[bool, Field(description="Whether a change takes effect at once; else after a restart.")]
    holds: Annotated[bool, Field(description="Whether this value is in effect.")]
    title: Annotated[str, Field(description="Its name for people.")]
    title_zh: Annotated[str, Field(description="In Chinese, or as `title` if there is no translation.")]
    description: str
    description_zh: Annotated[str, Field(description="In Chinese, or as `description` if there is no translation.")]
    kind: Literal["text", "number", "bool", "list", "choice", "table"]
    choices: list[str]
    group: Annotated[str, Field(description="The `id` of one of `groups`.")]


class SettingGroup(BaseModel):
    id: str
    title: str
    title_zh: Annotated[str, Field(description="In Chinese, or as `title` if there is no translation.")]


class SettingsDetail(BaseModel):
    file: str
    text: str
    restart_command: Annotated[str, Field(description="The command that starts this server again.")]
    groups: Annotated[list[SettingGroup], Field(description="In the order in which a page shows them.")]
    settings: list[SettingRow]
    problems: list[SettingProblem]


class NewSettings(StrictModel):
    text: Annotated[str, Field(max_length=262_144, description="The whole file; `[masked]` keeps the stored value.")]
    before: Annotated[str, Field(max_length=262_144, description="`text` as it was read.")]


class NewValues(StrictModel):
    values: Annotated[
        dict[str, SettingValue], Field(min_length=1, max_length=100, description="null removes a setting.")
    ]


class SettingsChangeResult(BaseModel):
    now: Annotated[list[str], Field(description="Changed settings that are in effect.")]
    after_restart: Annotated[list[str], Field(description="Changed settings that take effect after a restart.")]
    text: str
    diff: str
    written: bool


class DatabaseStatus(BaseModel):
    kind: Literal["sqlite", "postgres"]
    ok: bool
    problem: str
    problem_code: Code = ""
    problem_params: Params
    bytes: Annotated[int | None, Field(description="The size of the file; null for PostgreSQL.")]


class DiskStatus(BaseModel):
    free: int
    total: int


class QueueStatus(BaseModel):
    waiting: int
    running: int
    requests: int


class EventStatus(BaseModel):
    newest: int
    lag: int


class ProviderContact(BaseModel):
    answered: Annotated[float | None, Field(description="When it last answered.")]
    failed: Annotated[float | None, Field(description="When it last failed.")]
    error: Annotated[str, Field(description="The last failure.")]
    error_code: Code = ""
    error_params: Params


class UpstreamStatus(BaseModel):
    url: str | None
    others: list[str]
    contacts: Annotated[dict[str, ProviderContact], Field(description="By the name of the provider.")]


class PluginStatus(BaseModel):
    by_state: dict[str, int]


class McpStatus(PluginStatus):
    crashes: int


class Status(BaseModel):
    version: str
    started: float
    home: str
    project: str
    database: DatabaseStatus
    disk: DiskStatus
    queue: QueueStatus
    events: EventStatus
    websockets: int
    upstream: UpstreamStatus
    plugins: PluginStatus
    mcp: McpStatus
    confinement: ConfinementLevel
    memory_bytes: int
    first_run: bool
    time_zone: Annotated[str, Field(description="The zone of times without an offset, such as those of schedules.")]
    home_option: Annotated[str, Field(description="What commands need to reach this home: ` --home DIR`, or empty.")]


class UpstreamTest(StrictModel):
    url: Annotated[str, Field(max_length=2000, description="Empty: the stored one.")] = ""
    key: Annotated[
        str, Field(max_length=2000, description="Empty: the stored one, if it was stored for the same origin.")
    ] = ""
    values: Annotated[
        dict[str, SettingValue],
        Field(max_length=100, description="Changes as for `PATCH /v1/settings`, which are tested instead of stored."),
    ] = Field(default_factory=dict)
    name: Annotated[
        str | None,
        Field(max_length=200, description="The provider to test, of the settings with `values`; empty: the default."),
    ] = None


class UpstreamTestResult(BaseModel):
    ok: bool
    url: str
    key: Literal["given", "stored", "none"]
    models: list[str]
    protocol: Annotated[
        ProviderProtocol | None, Field(description="The protocol that it speaks; null if that cannot be said.")
    ]
    error: str
    error_code: Code = ""
    error_params: Params
    hint: Annotated[str, Field(description="What to do about the error.")]
    hint_code: Code = ""
    hint_params: Params
    status: Annotated[int | None, Field(description="The HTTP status of the provider; null without an answer.")]
    ms: float


class BackupContents(BaseModel):
    files: list[str]
    plugins: list[str]
    counts: Annotated[dict[str, int], Field(description="Records by kind, and events.")]
    bytes: int
    fingerprint: Annotated[str, Field(description="Of the archive.")]


class StagedBackup(BackupContents):
    staged: str


class BackupConfirmation(StrictModel):
    fingerprint: Annotated[str, Field(max_length=200, description="Of the backup that was shown.")]


class PendingRestore(BaseModel):
    waiting: BackupContents | None
    command: Annotated[str, Field(description="The command that starts the server again.")]


class NewLoginLinks(StrictModel):
    key: Annotated[
        str, Field(max_length=100, description="The id of the key to sign in with; empty: the key of this request.")
    ] = ""


class LoginLinks(BaseModel):
    url: Annotated[str, Field(description="For a browser on the machine of the server.")]
    remote_url: Annotated[str | None, Field(description="For other machines; null if they cannot reach the server.")]
    remote_qr: Annotated[
        list[str] | None,
        Field(description="`remote_url` as a QR code with its border: a text for each row, `1` is dark and `0` light."),
    ]
    expires_in: Annotated[int, Field(description="Seconds.")]


class CheckRow(MessageFields):
    name: str
    level: Literal["ok", "missing_config", "warn", "fail"]
    fix: str
    fix_code: Code = ""
    fix_params: Params


class CheckRows(BaseModel):
    data: list[CheckRow]
