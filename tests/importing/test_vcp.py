"""The import of an install of VCPToolBox: a folder of the shapes that such installs have."""

import hashlib
import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.fakes import FakeClock
from tests.waiting import wait_for_value
from toolyard.cli import toolyard
from toolyard.config import HOST_FILE, load_config
from toolyard.engine.chats.prompts import Prompts
from toolyard.errors import ConfigError, UsageError
from toolyard.importing import CALLER, ImportReport, VcpImport
from toolyard.protocol.records.task_record import TaskState, write_result
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Origin
from toolyard.vcp.installation import read_installation
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("import:vcp")

CONFIG = """# the host's own settings
API_Key=sk-upstream-secret
Key=the-door-key
VCP_Key='the ws key'
Image_Key=picture-secret
VarHttpUrl=http://vcp.example
VarUser="说话的人"
DEFAULT_TIMEZONE=Asia/Shanghai
"""
ECHO = """
import json, os, sys
said = json.load(sys.stdin)
print(json.dumps({"status": "success", "result": {"heard": said, "url": os.environ.get("VarHttpUrl"),
                  "mine": os.environ.get("MY_SETTING"), "zone": os.environ.get("DEFAULT_TIMEZONE")}}))
# it also draws with Image_Key
"""


def manifest(name: str, kind: str = "synchronous", **more: Any) -> str:
    entry = {"command": "python echo.py"}
    commands = [{"commandIdentifier": "Echo", "description": "Says it again.", "example": ""}]
    fields = {
        "manifestVersion": "1.0.0", "name": name, "displayName": name, "version": "1.0.0", "pluginType": kind,
        "entryPoint": {"type": "python", **entry}, "communication": {"protocol": "stdio", "timeout": 10000},
        "capabilities": {"invocationCommands": commands},
    }  # fmt: skip
    return json.dumps({**fields, **more}, ensure_ascii=False)


@pytest.fixture
def install(tmp_path: Path) -> Path:
    root = tmp_path / "VCPToolBox"
    echo, off, service, broken, ours = (
        root / "Plugin" / name for name in ("Echo", "Off", "Hub", "Half", "FileOperator")
    )
    for folder in (echo, off, service, broken, ours, root / "VCPTimedContacts", root / "VCPAsyncResults"):
        folder.mkdir(parents=True)
    (root / "Plugin" / "notes").mkdir()
    (root / "config.env").write_text(CONFIG)
    schema = {"DEFAULT_TIMEZONE": "string", "MY_SETTING": "string"}
    (echo / "plugin-manifest.json").write_text(manifest("EchoTool", configSchema=schema))
    (echo / "echo.py").write_text(ECHO)
    (echo / "config.env").write_text("MY_SETTING=own\nECHO_API_KEY=plugin-secret\n")
    (echo / "node_modules").mkdir()
    (off / "plugin-manifest.json.block").write_text(manifest("OffTool"))
    (off / "echo.py").write_text(ECHO)
    (service / "plugin-manifest.json").write_text(manifest("Hub", "hybridservice", entryPoint={"script": "hub.js"}))
    (broken / "plugin-manifest.json").write_text('{"name": "Half",')
    (ours / "plugin-manifest.json").write_text(manifest("ServerFileOperator"))
    approvals = {
        "enabled": True,
        "timeoutMinutes": 5,
        "approvalList": ["EchoTool", "PowerShellExecutor:run::SilentReject"],
    }
    (root / "toolApprovalConfig.json").write_text(json.dumps(approvals))
    _timed(root, "task-1-a", "EchoTool", "2099-03-05T14:00:00+08:00", text="later", timely_contact="2099-03-05-14:00")
    _timed(root, "task-2-b", "EchoTool", "2020-03-05T14:00:00+08:00", text="too late")
    _timed(root, "task-3-c", "Hub", "2099-03-05T14:00:00+08:00", text="nobody")
    (root / "VCPTimedContacts" / "broken.json").write_text("{")
    done = {"requestId": "req-abc", "status": "Succeed", "pluginName": "Wan2.1-Gen", "message": "The video is there."}
    (root / "VCPAsyncResults" / "Wan2.1-Gen-req-abc.json").write_text(json.dumps(done, indent=2))
    (root / "VCPAsyncResults" / "EchoTool-7.json").write_text(json.dumps({"status": "Failed", "reason": "no"}))
    (root / "VCPAsyncResults" / "nonsense.json").write_text("{}")
    return root


def _timed(root: Path, id_: str, tool: str, at: str, **arguments: str) -> None:
    call = {"tool_name": tool, "arguments": {"maid": "Nova", **arguments}}
    task = {
        "taskId": id_,
        "createdAt": "x",
        "scheduledLocalTime": at,
        "tool_call": call,
        "requestor": "ToolExecutor: N",
    }
    (root / "VCPTimedContacts" / f"{id_}.json").write_text(json.dumps(task))


class Home:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir(exist_ok=True)

    def yard(self) -> Yard:
        return Yard(load_config(self.project, self.home))

    async def take(self, source: Path, **how: Any) -> ImportReport:
        async with self.yard() as yard:
            return await VcpImport(yard, read_installation(source), clock=FakeClock(), **how).run()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def names(report: ImportReport) -> tuple[set[str], dict[str, str]]:
    return {item.name for item in report.took}, {item.name: item.why for item in report.left}


def prints(root: Path) -> dict[str, tuple[str, int, int]]:
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(root.rglob("*"))
    }


async def test_what_it_takes_what_it_leaves_and_why(install: Path, home: Home) -> None:
    before = prints(install)
    took, left = names(await home.take(install, trust=True))
    assert took == {
        "EchoTool", "OffTool", "VarHttpUrl", "VarUser", "DEFAULT_TIMEZONE", "PowerShellExecutor:run::SilentReject",
        "task-1-a.json", "Wan2.1-Gen-req-abc.json", "EchoTool-7.json",
    }  # fmt: skip
    assert "Node process" in left["Hub"]
    assert "cannot be used" in left["Half"]
    assert "built-in" in left["ServerFileOperator"]
    assert "no manifest" in left["notes"]
    assert "secret" in left["API_Key"]
    assert "EchoTool" in left["Image_Key"]
    assert "asks first" in left["EchoTool"]
    assert "not in the future" in left["task-2-b.json"]
    assert "no tool called 'Hub'" in left["task-3-c.json"]
    assert {"broken.json", "nonsense.json"} <= set(left)
    assert prints(install) == before


@pytest.mark.requirement("import:vcp-plugins")
async def test_an_unchanged_plugin_runs_after_the_import(install: Path, home: Home) -> None:
    report = await home.take(install, trust=True)
    assert report.shared_keys["EchoTool"] == ["VarHttpUrl"]
    (home.home / "config.toml").write_text('[shared_keys]\nEchoTool = ["VarHttpUrl"]\n')
    async with home.yard() as yard:
        outcome = await yard.calls.settle(yard.calls.request("EchoTool", {"command": "Echo", "text": "hi"}))
        assert outcome.envelope.data == {
            "heard": {"command": "Echo", "text": "hi"}, "url": "http://vcp.example", "mine": "own",
            "zone": "Asia/Shanghai",
        }  # fmt: skip
        assert "OffTool" not in {tool.spec.name for tool in yard.tools}
    assert stat.S_IMODE((home.home / "plugins/EchoTool/config.env").stat().st_mode) == 0o600
    assert not (home.home / "plugins/EchoTool/node_modules").exists()


@pytest.mark.requirement("import:vcp-plugins")
async def test_without_trust_a_plugin_waits_for_its_review(install: Path, home: Home) -> None:
    report = await home.take(install)
    assert {item.why.split(";")[0] for item in report.took if item.name == "EchoTool"} == {"needs a review"}
    async with home.yard() as yard:
        outcome = await yard.calls.settle(yard.calls.request("EchoTool", {"text": "hi"}))
    assert outcome.envelope.error is not None


async def test_no_secret_of_the_host_comes_along(install: Path, home: Home) -> None:
    await home.take(install, trust=True)
    variables = home.home / HOST_FILE
    assert variables.read_text() == "VarHttpUrl='http://vcp.example'\nDEFAULT_TIMEZONE='Asia/Shanghai'\n"
    assert stat.S_IMODE(variables.stat().st_mode) == 0o600
    secrets = ("sk-upstream-secret", "the-door-key", "the ws key", "picture-secret")
    for path in home.home.rglob("*"):
        if path.is_file():
            assert not [secret for secret in secrets if secret.encode() in path.read_bytes()]


def test_the_hosts_file_gives_variables_to_plugins_and_no_settings(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.home.mkdir()
    (home.home / HOST_FILE).write_text("VarHttpUrl=http://a.example\nVarUser=file\nTOOLYARD_PORT=7001\n")
    monkeypatch.setenv("VarUser", "environment")
    config = load_config(home.project, home.home)
    assert (config.environ["VarHttpUrl"], config.environ["VarUser"]) == ("http://a.example", "environment")
    assert config.settings.port == 6005
    (home.home / HOST_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"host\.env, line 1: this is not UTF-8"):
        load_config(home.project, home.home)


async def test_tasks_and_schedules_are_there_as_they_were(install: Path, home: Home) -> None:
    await home.take(install, trust=True)
    async with home.yard() as yard:
        (schedule,) = await yard.state.schedules.page(Query(), limit=10)
        assert (schedule.tool, schedule.state, schedule.maid) == ("EchoTool", "scheduled", "Nova")
        assert schedule.arguments == {"maid": "Nova", "text": "later"}
        assert schedule.origin == Origin.CLI
        video = await yard.state.tasks.find_for_caller("Wan2.1-Gen", "req-abc", CALLER)
        failed = await yard.state.tasks.find_for_caller("EchoTool", "7", CALLER)
        (rule,) = await yard.state.approvals.rules()
    assert video is not None
    assert (video.state, write_result(video)) == (TaskState.SUCCEEDED, "The video is there.")
    assert failed is not None
    assert failed.state is TaskState.FAILED
    assert (rule.tool, rule.command, rule.effect) == ("PowerShellExecutor", "run", "deny")


@pytest.mark.requirement("import:vcp-timed")
async def test_a_timed_call_is_a_proposal_that_asks_like_a_models_call_until_its_owner_allows_it(
    install: Path, home: Home
) -> None:
    _timed(install, "task-4-d", "EchoTool", "2099-03-05T14:00:00+08:00", text="x" * 3000 + "\u200b end")
    report = await home.take(install, trust=True)
    told = {item.name: item.why for item in report.took}
    assert 'EchoTool at 2099-03-05T14:00:00+08:00 with {"maid": "Nova", "text": "later"}' in told["task-1-a.json"]
    assert "x" * 3000 + "\\u200b end" in told["task-4-d.json"]
    async with home.yard() as yard:
        own = {str(one.arguments["text"])[:5]: one.id for one in await yard.state.schedules.page(Query(), limit=10)}
        id_ = own["later"]
        assert f"'toolyard schedule allow {id_} --home {home.home}'" in told["task-1-a.json"]
        assert await yard.state.schedules.run_by_hand(id_)
        asked = await wait_for_value(lambda: yard.state.approvals.page(("pending",), limit=10))
        await yard.state.approvals.answer(asked[0].id, allowed=False, by="owner")
        await yard.state.schedules.drain()
        refused = await yard.state.schedules.get(id_)
        assert refused is not None
        assert refused.state == "failed"
        assert not await yard.state.schedules.allow(id_)
        other = own["xxxxx"]
        assert await yard.state.schedules.allow(other)
        assert await yard.state.schedules.run_by_hand(other)
        await yard.state.schedules.drain()
        ran = await yard.state.schedules.get(other)
        assert ran is not None
        assert ran.state == "done"


@pytest.mark.requirement("plugin:same-name")
@pytest.mark.parametrize("trust", [False, True])
async def test_a_plugin_with_the_name_of_a_shipped_one_is_taken(install: Path, home: Home, trust: bool) -> None:
    folder = install / "Plugin" / "SciCalculator"
    folder.mkdir()
    (folder / "plugin-manifest.json").write_text(manifest("SciCalculator"))
    (folder / "echo.py").write_text(ECHO)
    project_one = home.project / "Plugin" / "SciCalculator"
    shutil.copytree(folder, project_one)
    report = await home.take(install, trust=trust)
    (took,) = [item.why for item in report.took if item.name == "SciCalculator"]
    assert "takes the place of the shipped one" in took
    async with home.yard() as yard:
        states = {one.origin.value: one.state.value for one in yard.plugins.plugins.all if one.name == "SciCalculator"}
    ready = {"home": "ready", "project": "duplicate", "shipped": "duplicate"}
    waits = {"home": "needs_review", "project": "needs_review", "shipped": "ready"}
    assert states == (ready if trust else waits)


async def test_a_second_import_takes_nothing_twice(install: Path, home: Home) -> None:
    await home.take(install, trust=True)
    first = (home.home / HOST_FILE).read_text()
    took, left = names(await home.take(install, trust=True))
    assert took == set()
    assert "already" in left["VarHttpUrl"]
    assert (home.home / HOST_FILE).read_text() == first
    assert "already" in left["task-1-a.json"]
    async with home.yard() as yard:
        assert len(await yard.state.schedules.page(Query(), limit=10)) == 1
        assert len(await yard.state.approvals.rules()) == 1


@pytest.mark.requirement("import:trust")
async def test_trust_allows_nothing_that_the_report_skips(install: Path, home: Home) -> None:
    await home.take(install)
    folder = home.home / "plugins/EchoTool"
    waiting = await home.take(install, trust=True)
    assert "EchoTool" in names(waiting)[1]
    async with home.yard() as yard:
        assert {one.state.value for one in yard.plugins.plugins.all if one.folder == folder} == {"needs_review"}
        plugin = yard.plugins.plugins.get("EchoTool")
        assert plugin is not None
        yard.plugins.allow(yard.plugins.review(plugin))
    (folder / "echo.py").write_text("print('what nobody has seen')\n")
    await home.take(install, trust=True)
    async with home.yard() as yard:
        assert {one.state.value for one in yard.plugins.plugins.all if one.folder == folder} == {"changed"}


async def test_a_dry_run_says_the_same_and_writes_nothing(install: Path, home: Home) -> None:
    took, _ = names(await home.take(install, dry=True))
    assert {"EchoTool", "OffTool", "VarHttpUrl", "Wan2.1-Gen-req-abc.json"} <= took
    assert not (home.home / "plugins").exists()
    assert not (home.home / HOST_FILE).exists()
    async with home.yard() as yard:
        assert await yard.state.approvals.rules() == []
        assert await yard.state.tasks.page(Query(), limit=10) == []


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({"main.js": "const fs = require('fs').promises\nconst a = require('axios')\n// require('old')\n"}, "axios"),
        ({"main.mjs": "import x from '@a/b/c'\nimport 'dotenv/config'\nimport y from './own.js'\n"}, "@a/b dotenv"),
        ({"main.js": "require('node:path'); require('./own')\n"}, None),
        ({"main.js": "require('axios')\n", "package.json": "{}"}, ""),
    ],
)
async def test_a_plugin_that_lived_on_packages_of_the_host_is_told_what_to_install(
    install: Path, home: Home, files: dict[str, str], advice: str | None
) -> None:
    for name, text in files.items():
        (install / "Plugin/Off" / name).write_text(text)
    report = await home.take(install, dry=True)
    why = next(item.why for item in report.took if item.name == "OffTool")
    told = "" if advice is None else f"; run '{f'npm install {advice}'.strip()}' in its folder"
    assert why == f"disabled, as it was there{told}"


async def test_a_plugin_with_requirements_is_told_how_to_install_them(install: Path, home: Home) -> None:
    (install / "Plugin/Echo/requirements.txt").write_text("sympy\n")
    report = await home.take(install, dry=True)
    why = next(item.why for item in report.took if item.name == "EchoTool")
    assert ".venv/bin/pip install -r requirements.txt" in why


async def test_a_variable_is_named_by_a_whole_word_only_and_what_the_host_sets_is_left(
    install: Path, home: Home
) -> None:
    more = "HttpUrl=http://x\nVar.Http.Url=1\nPROJECT_BASE_PATH=/there\n"
    (install / "config.env").write_text(CONFIG + more)
    (install / "Plugin/Echo/echo.py").write_text(f"{ECHO}# Var.Http.Url, PROJECT_BASE_PATH\n")
    took, left = names(await home.take(install, dry=True))
    assert {"VarHttpUrl", "Var.Http.Url"} <= took
    assert "no plugin" in left["HttpUrl"]
    assert "sets it itself" in left["PROJECT_BASE_PATH"]


def test_the_report_says_a_reason_once_for_all_that_share_it(install: Path, home: Home) -> None:
    (install / "config.env").write_text("KeptOne=1\nKeptTwo=2\nKeptThree=3\n")
    where = ["--project", str(home.project), "--home", str(home.home)]
    done = CliRunner().invoke(toolyard, [*where, "import", "vcp", str(install), "--dry-run"])
    assert "  variable  KeptOne, KeptTwo, KeptThree: no plugin that was taken names it\n" in done.output


def test_the_command_reports_as_json_and_refuses_other_folders(install: Path, home: Home) -> None:
    common = ["--project", str(home.project), "--home", str(home.home), "--json", "--trust"]
    command = [sys.executable, "-m", "toolyard", *common, "import", "vcp"]
    done = subprocess.run(
        [*command, str(install), "--dry-run"], capture_output=True, text=True, timeout=180, check=True
    )
    report = json.loads(done.stdout)
    assert {"what": "plugin", "name": "EchoTool", "why": ""} in report["took"]
    assert report["dry_run"] is True
    with pytest.raises(UsageError, match="no folder called Plugin"):
        read_installation(home.project)


async def test_agents_and_variables_of_prompts_come_along_once(install: Path, home: Home) -> None:
    for folder in ("Agent", "TVStxt"):
        (install / folder).mkdir()
    (install / "agent_map.json").write_text('{"Nova": "nova.txt", "Gone": "gone.txt"}')
    (install / "Agent/nova.txt").write_text("You are Nova, and I am {{VarUser}}. {{TarRules}}")
    (install / "TVStxt/rules.txt").write_text("Be kind.")
    with (install / "config.env").open("a") as settings:
        settings.write("TarRules=rules.txt\n")
    took, left = names(await home.take(install))
    assert {"Nova", "TarRules", "VarUser"} <= took
    assert "cannot be read" in left["Gone"]
    found = Prompts(home.home, home.project).list_prompts()
    assert {name: found[name].text for name in ("Nova", "TarRules", "VarUser")} == {
        "Nova": "You are Nova, and I am {{VarUser}}. {{TarRules}}", "TarRules": "Be kind.", "VarUser": "说话的人"
    }  # fmt: skip
    (home.home / "prompts/Nova.txt").write_text("mine")
    again, left = names(await home.take(install))
    assert not {"Nova", "TarRules", "VarUser"} & again
    assert "already" in left["Nova"]
    assert (home.home / "prompts/Nova.txt").read_text() == "mine"


DIARY = """
import json, os, sys
place = os.path.join("..", "..", "dailynote", "one.txt")
with open(place, "a") as diary:
    diary.write("one line")
print(json.dumps({"status": "success", "result": open(place).read()}))
"""


async def test_a_path_to_a_shared_folder_leads_to_the_project_after_the_import(install: Path, home: Home) -> None:
    (install / "Plugin/Echo/echo.py").write_text(DIARY)
    (home.project / "dailynote").mkdir()
    for _ in range(2):
        await home.take(install, trust=True)
    async with home.yard() as yard:
        outcome = await yard.calls.settle(yard.calls.request("EchoTool", {}))
    assert outcome.envelope.text == "one line"
    assert (home.project / "dailynote/one.txt").read_text() == "one line"
