"""Schemas of settings, status, setup and backups."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.protocol.access import ConfinementLevel
from toolyard.web.schemas.common import ErrorBody, OpenModel, StrictModel


class SettingProblem(BaseModel):
    message: str
    line: int
    column: int


class SettingProblems(ErrorBody):
    problems: Annotated[list[SettingProblem], Field(default_factory=list)]


class SettingRow(OpenModel):
    name: str
    value: Any
    default: Any
    source: Literal["default", "file", "env"]
    variable: Annotated[str, Field(description="The environment variable that sets it, or empty.")]
    variables: Annotated[list[str], Field(description="The environment variables that can set it.")]
    set: bool
    secret: bool
    live: Annotated[bool, Field(description="Whether a change takes effect at once; else after a restart.")]
    holds: Annotated[bool, Field(description="Whether this value is in effect.")]
    description: str
    kind: Literal["text", "number", "bool", "list", "choice", "table"]
    choices: list[str]
    group: str


class SettingsDetail(BaseModel):
    file: str
    text: str
    settings: list[SettingRow]
    problems: list[SettingProblem]


class NewSettings(StrictModel):
    text: Annotated[str, Field(max_length=262_144, description="The whole file; `[masked]` keeps the stored value.")]
    before: Annotated[str, Field(max_length=262_144, description="`text` as it was read.")]


class NewValues(StrictModel):
    values: Annotated[dict[str, Any], Field(min_length=1, max_length=100, description="null removes a setting.")]


class SettingsChangeResult(BaseModel):
    now: Annotated[list[str], Field(description="Changed settings that are in effect.")]
    after_restart: Annotated[list[str], Field(description="Changed settings that take effect after a restart.")]
    text: str
    diff: str
    written: bool


class Status(OpenModel):
    version: str
    started: float
    home: str
    project: str
    database: dict[str, Any]
    disk: dict[str, Any]
    queue: dict[str, int]
    events: dict[str, int]
    websockets: int
    upstream: dict[str, Any]
    plugins: dict[str, Any]
    mcp: dict[str, Any]
    confinement: ConfinementLevel
    memory_bytes: int
    first_run: bool


class UpstreamTest(StrictModel):
    url: Annotated[str, Field(max_length=2000, description="Empty: the stored one.")] = ""
    key: Annotated[
        str, Field(max_length=2000, description="Empty: the stored one, if it was stored for the same origin.")
    ] = ""


class UpstreamTestResult(BaseModel):
    ok: bool
    url: str
    key: Literal["given", "stored", "none"]
    models: list[str]
    error: str
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


class LoginLinks(BaseModel):
    url: Annotated[str, Field(description="For a browser on the machine of the server.")]
    remote_url: Annotated[str | None, Field(description="For other machines; null if they cannot reach the server.")]
    expires_in: Annotated[int, Field(description="Seconds.")]


class CheckRow(BaseModel):
    name: str
    level: Literal["ok", "warn", "fail"]
    message: str
    fix: str


class CheckRows(BaseModel):
    data: list[CheckRow]
