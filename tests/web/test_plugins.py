"""Plugins over HTTP: what is found, what is known of each, and what the owner says. No secret leaves."""

import asyncio
import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from tests.waiting import wait_until
from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.plugins.package.review import plugin_to_json
from toolyard.protocol.json import JsonObject
from toolyard.web.routes.plugins import plugin_install
from toolyard.web.routes.plugins.plugin_install import MAX_STAGED
from toolyard.web.security.scope import Scope

CANARY = "canary-4f1d9e77c0"
NOISY = """
import json, sys
sys.stdin.read()
print("this is no answer")
print("said on stderr", file=sys.stderr)
print(json.dumps({"status": "success", "result": "done"}))
"""
SCHEMA = {
    "API_KEY": {"type": "string", "required": True, "description": "The key."},
    "ROUNDS": {"type": "integer", "default": 3},
}
SAY = {"command": "Say", "description": "Says it.", "parameters": {"type": "object", "properties": {"text": {}}}}
QUIET = {"zh": {"displayName": "安静", "parameters": {"text": "要说的话。"}}}
BLOCK = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Noisy「末」,\ncommand:「始」Go「末」\n<<<[END_TOOL_REQUEST]>>>"


@pytest.mark.requirement("http:plugins", "http:tools")
async def test_the_list_of_tools_says_what_stands_behind_each(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    commands = [{"commandIdentifier": "Go", "description": "Goes\u200b.", "example": BLOCK}]
    add_plugin("Noisy", NOISY, version="1.2.3", capabilities={"invocationCommands": commands})
    add_plugin(
        "Quiet", NOISY, pluginType="asynchronous", translations=QUIET, capabilities={"invocationCommands": [SAY]}
    )
    async with run_server(tmp_path) as running:
        tools = {tool["name"]: tool for tool in (await running.get("/v1/tools")).json["data"]}
        noisy = (await running.get("/v1/tools/Noisy")).json
    assert noisy == tools["Noisy"]
    assert [noisy[key] for key in ("kind", "plugin", "version", "commands")] == ["sync", "Noisy", "1.2.3", ["Go"]]
    assert noisy["hidden_characters"] is True
    assert noisy["examples"] == [{"command": "Go", "arguments": {"command": "Go"}}]
    assert tools["Quiet"]["kind"] == "async"
    assert tools["Quiet"]["translations"] == {
        "zh": {"display_name": "安静", "description": "", "parameters": {"text": "要说的话。"}}
    }
    assert (tools["Read"]["kind"], tools["Read"]["plugin"]) == ("built-in", None)
    assert "ReadFile" in tools["FileOperator"]["commands"]


@pytest.mark.requirement("http:plugins")
async def test_every_plugin_is_listed_also_one_that_is_broken(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    add_plugin("Noisy", NOISY)
    add_plugin("Poor", NOISY, configSchema=SCHEMA)
    add_plugin("Needy", 'print(\'{"status": "error", "error": "API_KEY is not set"}\')', configSchema=SCHEMA)
    add_plugin("Fixed", NOISY, pluginType="static")
    (tmp_path / "given" / "Broken").mkdir()
    (tmp_path / "given" / "Broken" / "plugin-manifest.json").write_text('{"name": "Broken",\n  "version" 1}')
    make_plugin(tmp_path / "home" / "plugins", "Strange")
    async with run_server(tmp_path) as running:
        rows = {row["name"]: row for row in (await running.get("/v1/plugins")).json["data"]}
        called = (await running.post("/v1/tools/Needy", {})).json
    assert called["status"] == "error"
    assert called["text"].endswith("It needs settings that its owner has not set: API_KEY."), (
        "a call that fails because of it says so too"
    )
    assert (rows["Noisy"]["state"], rows["Noisy"]["tools"], rows["Noisy"]["kind"]) == ("ready", ["Noisy"], "sync")
    assert rows["Poor"]["state"] == "missing_config"
    assert rows["Poor"]["reason"].startswith("it needs configuration: set API_KEY on its page in the console, or in ")
    assert (rows["Fixed"]["state"], rows["Fixed"]["tools"], rows["Fixed"]["kind"]) == ("ready", [], "static")
    assert (rows["Strange"]["state"], rows["Strange"]["origin"]) == ("needs_review", "home")
    broken = rows["Broken"]
    assert (broken["state"], broken["kind"]) == ("broken", "unknown")
    assert [(one["line"], one["warning"]) for one in broken["problems"]] == [(2, False)]


@pytest.mark.requirement("plugin:missing-settings")
async def test_what_a_plugin_lacks_is_told_in_one_way_everywhere(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    """ImageGen ships without its key; the other one gets its own at the end."""
    add_plugin("Needy", NOISY, configSchema=SCHEMA)
    lint = [sys.executable, "-m", "toolyard", "plugin", "lint", "ImageGen", "--project", str(tmp_path)]

    async def look(running: RunningServer, name: str) -> tuple[set[str], set[str], bool]:
        """The states and the reasons that are told of a plugin, and whether it is among the tools."""
        row = next(one for one in (await running.get("/v1/plugins")).json["data"] if one["name"] == name)
        typed = next(plugin_to_json(one) for one in running.yard.plugins.plugins.all if one.name == name)
        checks = (await running.get("/v1/doctor")).json["data"]
        told = {(one["level"], one["message"]) for one in checks if re.search(rf"\b{name}\b", one["message"])}
        states = {row["state"], typed["state"], *(level for level, _ in told)}
        reasons = {row["reason"], typed["reason"], *(message.removeprefix(f"{name}: ") for _, message in told)}
        listed = [one["name"] for one in (await running.get("/v1/tools")).json["data"]]
        offered = [spec["function"]["name"] for spec in running.yard.tools(dialect="openai")]
        assert (name in listed) == (name in offered)
        return states, reasons, name in listed

    async with run_server(tmp_path) as running:
        for name, key, level in (("ImageGen", "IMAGE_API_KEY", "missing_config"), ("Needy", "API_KEY", "warn")):
            states, reasons, is_listed = await look(running, name)
            assert (states, is_listed) == ({"missing_config", level}, False)
            (reason,) = reasons
            assert reason.startswith(f"it needs configuration: set {key} on its page in the console, or in ")
        linted = await asyncio.to_thread(subprocess.run, lint, capture_output=True, text=True, check=True)
        assert "warning: ImageGen: it needs configuration: set IMAGE_API_KEY on its page" in linted.stdout
        counted = (await running.get("/v1/status")).json["plugins"]["by_state"]
        assert counted["missing_config"] == 3, "ImageGen, Wan2.1VideoGen and Needy"
        await running.request("PUT", "/v1/plugins/Needy/config", json={"values": {"API_KEY": "k"}})
        states, reasons, is_listed = await look(running, "Needy")
        assert ("missing_config" in states, is_listed) == (False, True)
        assert not any("configuration" in reason for reason in reasons)


@pytest.mark.requirement("http:plugins")
async def test_a_plugin_is_shown_with_its_command_its_texts_and_its_settings_but_no_secret(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    config = f"# mine\nAPI_KEY={CANARY}\nEXTRA=x\n"
    folder = add_plugin("Noisy", NOISY, configSchema=SCHEMA, config=config)
    (folder / "README.md").write_text(f"# Noisy\n<script>alert(1)</script>\n\nkey {CANARY}\n")
    async with run_server(tmp_path) as running:
        answer = await running.get("/v1/plugins/Noisy")
        missing = await running.get("/v1/plugins/Nothing")
    view = answer.json
    assert CANARY not in answer.body.decode()
    assert json.loads(view["manifest"])["name"] == "Noisy"
    assert view["description_length"] == len(view["description"])
    review = view["review"]
    assert (review["command_line"], review["argv"][1:], review["shell"]) == ("python main.py", ["main.py"], False)
    assert {"API_KEY", "HOME", "EXTRA"} <= set(review["env"])
    assert set(review["files"]) == {"main.py"}
    settings = {one["key"]: one for one in view["config"]}
    assert [(one["value"], one["set"], one["source"], one["secret"]) for one in settings.values()] == [
        (None, True, "plugin", True),
        ("3", True, "default", False),
        ("x", True, "plugin", False),
    ]
    assert settings["API_KEY"]["changed"] == (folder / "config.env").stat().st_mtime
    assert settings["ROUNDS"]["changed"] is None
    assert [doc["name"] for doc in view["docs"]] == ["README.md"]
    assert "<script" not in view["docs"][0]["html"]
    assert missing.status == 404


@pytest.mark.requirement("http:plugins", "s:S-83", "plugin:risk:confirmed")
async def test_what_is_allowed_is_what_was_shown_and_a_change_since_then_is_refused(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "home" / "plugins", "Strange", risk="read")
    async with run_server(tmp_path) as running:
        before = (await running.get("/v1/plugins/Strange")).json["review"]["fingerprint"]
        (folder / "main.py").write_text("print('something else')\n")
        late = await running.post("/v1/plugins/Strange/allow", {"fingerprint": before})
        now = (await running.get("/v1/plugins/Strange")).json["review"]["fingerprint"]
        good = await running.post("/v1/plugins/Strange/allow", {"fingerprint": now})
        unconfirmed = (await running.get("/v1/tools/Strange")).json["risk"]
        await running.post("/v1/plugins/Strange/allow", {"fingerprint": now, "confirm_read": True})
        confirmed = (await running.get("/v1/plugins/Strange")).json["review"]
        assert (unconfirmed, (await running.get("/v1/tools/Strange")).json["risk"]) == ("execute", "read")
        assert (confirmed["claims_read"], confirmed["read_confirmed"]) == (True, True)
        (folder / "main.py").write_text("print('and again')\n")
        await running.post("/v1/plugins/Strange/reload")
        changed = (await running.get("/v1/plugins/Strange")).json
    assert (late.status, late.json["error"]["code"]) == (409, "conflict")
    assert (good.status, good.json["state"]) == (200, "ready")
    assert (changed["state"], [one["text"] for one in changed["review"]["changed"]]) == ("changed", ["changed main.py"])


@pytest.mark.requirement("http:plugins", "plugin:detached")
async def test_the_owner_says_at_review_whether_work_may_go_on_after_the_answer(tmp_path: Path) -> None:
    make_plugin(tmp_path / "home" / "plugins", "Starter")
    async with run_server(tmp_path) as running:
        review = (await running.get("/v1/plugins/Starter")).json["review"]
        output = {"fingerprint": review["fingerprint"], "detached": True}
        await running.post("/v1/plugins/Starter/allow", output)
        allowed = (await running.get("/v1/plugins/Starter")).json["review"]
        await running.post("/v1/plugins/Starter/allow", output | {"detached": False})
        forbidden = (await running.get("/v1/plugins/Starter")).json["review"]
    assert [(one["detached"], one["detached_s"]) for one in (review, allowed, forbidden)] == [
        (False, 1800.0),
        (True, 1800.0),
        (False, 1800.0),
    ]


@pytest.mark.requirement("http:plugins", "plugin:same-name")
async def test_the_list_says_which_of_several_plugins_runs_and_which_it_hides(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "home" / "plugins", "EchoPlugin")
    async with run_server(tmp_path) as running:
        mine, shipped = [one for one in (await running.get("/v1/plugins")).json["data"] if one["name"] == "EchoPlugin"]
        assert [(one["origin"], one["state"], one["tools"]) for one in (mine, shipped)] == [
            ("home", "needs_review", []),
            ("shipped", "ready", ["EchoPlugin"]),
        ]
        path = f"?folder={folder}"
        review = (await running.get(f"/v1/plugins/EchoPlugin{path}")).json["review"]
        await running.post(f"/v1/plugins/EchoPlugin/allow{path}", {"fingerprint": review["fingerprint"]})
        mine, shipped = [one for one in (await running.get("/v1/plugins")).json["data"] if one["name"] == "EchoPlugin"]
    assert (mine["state"], mine["hides"], mine["hidden_by"]) == ("ready", [shipped["folder"]], None)
    assert (shipped["state"], shipped["hides"], shipped["hidden_by"]) == ("duplicate", [], str(folder))


@pytest.mark.requirement("http:plugins")
async def test_a_plugin_is_disabled_and_enabled_again(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    folder = add_plugin("Noisy", NOISY)
    async with run_server(tmp_path) as running:
        off = await running.post("/v1/plugins/Noisy/disable")
        call = await running.post("/v1/tools/Noisy", {"command": "Go"})
        on = await running.post("/v1/plugins/Noisy/enable")
        (folder / "plugin-manifest.json").rename(folder / "plugin-manifest.json.block")
        await running.post("/v1/plugins/Noisy/reload")
        blocked = await running.post("/v1/plugins/Noisy/enable")
    assert (off.json["state"], call.json["status"], on.json["state"]) == ("disabled", "error", "ready")
    assert (blocked.status, ".block" in blocked.json["error"]["message"]) == (409, True)


@pytest.mark.requirement("http:plugins")
async def test_settings_are_written_one_by_one_and_secrets_never_come_back(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    folder = add_plugin("Noisy", NOISY, configSchema=SCHEMA, config="# mine\nOLD=1\nROUNDS=5 # five\n")
    (folder / "config.env").chmod(0o644)
    async with run_server(tmp_path) as running:
        values = {"API_KEY": CANARY, "OLD": None, "ROUNDS": 7}
        done = await running.request("PUT", "/v1/plugins/Noisy/config", json={"values": values})
        after = await running.get("/v1/plugins/Noisy")
        wrong = [
            await running.request("PUT", "/v1/plugins/Noisy/config", json={"values": {key: CANARY + " é"}})
            for key in ("ROUNDS", "HOME", "A B")
        ]
    assert (folder / "config.env").read_text() == f"# mine\nROUNDS=7 # five\nAPI_KEY={CANARY}\n"
    assert (folder / "config.env").stat().st_mode & 0o777 == 0o600
    assert (done.status, done.json["state"], done.json["holds"]) == (200, "ready", "next call")
    result = done.body + after.body + b"".join(one.body for one in wrong)
    assert CANARY.encode() not in result
    assert [one.status for one in wrong] == [400, 400, 400]
    assert "type integer" in wrong[0].json["error"]["message"]


@pytest.mark.requirement("http:plugins")
async def test_a_static_plugin_runs_again_with_its_new_settings(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    says = "import os\nprint('it is ' + os.environ['WORD'])\n"
    placeholder = {"systemPromptPlaceholders": [{"placeholder": "{{Word}}", "description": "A word."}]}
    add_plugin("Words", says, config="WORD=old\n", pluginType="static", capabilities=placeholder)
    async with run_server(tmp_path) as running:

        def value() -> str:
            return running.server.statics.placeholders().get("Word", "") if running.server.statics else ""

        await wait_until(lambda: value() == "it is old")
        await running.request("PUT", "/v1/plugins/Words/config", json={"values": {"WORD": "new"}})
        await wait_until(lambda: value() == "it is new")


@pytest.mark.requirement("http:plugins")
async def test_what_a_plugin_prints_beside_its_answer_is_kept_for_people(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    add_plugin("Noisy", NOISY.replace("said on", f"{CANARY} on"), config=f"API_KEY={CANARY}\n")
    async with run_server(tmp_path) as running:
        empty = await running.get("/v1/plugins/Noisy/logs")
        call = await running.post("/v1/tools/Noisy", {"command": "Go"})
        first = await running.get("/v1/plugins/Noisy/logs")
        rest = await running.get(f"/v1/plugins/Noisy/logs?after={first.json['next']}")
    assert empty.json == {"data": [], "next": 0, "lost": 0}
    rows = first.json["data"]
    assert [(row["n"], row["stream"], row["text"]) for row in rows] == [
        (1, "stderr", "[masked] on stderr\n"),
        (2, "noise", "this is no answer\n"),
    ]
    assert rows[0]["call"] == call.headers["X-Call-Id"]
    assert rest.json == {"data": [], "next": 2, "lost": 0}


@pytest.mark.requirement("http:plugins")
async def test_an_installed_plugin_is_removed_and_its_files_are_kept_aside(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    make_plugin(tmp_path / "home" / "plugins", "Strange")
    add_plugin("Noisy", NOISY)
    async with run_server(tmp_path) as running:
        gone = await running.request("DELETE", "/v1/plugins/Strange")
        again = await running.request("DELETE", "/v1/plugins/Strange")
        given = await running.request("DELETE", "/v1/plugins/Noisy")
        left = [row["name"] for row in (await running.get("/v1/plugins")).json["data"]]
    stored = [str(file.parent) for file in (tmp_path / "home" / "plugins" / ".removed").glob("*/main.py")]
    assert (gone.status, stored) == (200, [gone.json["kept"]])
    assert (again.status, given.status) == (404, 400)
    assert ("Strange" in left, "Noisy" in left) == (False, True)


@pytest.mark.requirement("http:auth")
@pytest.mark.parametrize("scope", [Scope.CHAT, Scope.TOOLS, Scope.APPROVE])
async def test_plugins_are_the_owners(running_server: RunningServer, scope: Scope) -> None:
    key = running_server.make_key(scope)
    for path in ("/v1/plugins", "/v1/plugins/X", "/v1/plugins/X/logs"):
        assert (await running_server.get(path, key=key)).status == 403
    for path in ("allow", "enable", "disable", "reload"):
        assert (await running_server.post(f"/v1/plugins/X/{path}", {"fingerprint": "x"}, key=key)).status == 403


def zip_folder(folder: Path, **more: str) -> bytes:
    """A plugin's folder as an archive, with further entries."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{folder.name}/{file.name}")
        for name, text in more.items():
            archive.writestr(name, text)
    return packed.getvalue()


async def upload(running: RunningServer, body: bytes) -> HttpResponse:
    return await running.request("POST", "/v1/plugins/install", data=body, headers={"Content-Type": "application/zip"})


@pytest.mark.requirement("http:plugins", "s:S-83", "s:S-86")
async def test_a_plugin_is_staged_looked_at_and_only_then_allowed(tmp_path: Path) -> None:
    proof = tmp_path / "home" / "plugins" / "Fresh" / "it-has-run"
    folder = make_plugin(tmp_path / "elsewhere", "Fresh", config=f"API_KEY={CANARY}\n")
    (folder / "main.py").write_text("open('it-has-run', 'w')\n" + NOISY)
    async with run_server(tmp_path) as running:
        staged = await upload(running, zip_folder(folder))
        place = f"/v1/plugins/install/{staged.json['staged']}/allow"
        listed = [row["name"] for row in (await running.get("/v1/plugins")).json["data"]]
        other = await running.post(place, {"fingerprint": "0" * 64})
        ran_before = proof.exists()
        good = await running.post(place, {"fingerprint": staged.json["review"]["fingerprint"]})
        call = await running.post("/v1/tools/Fresh", {"command": "Go"})
        again = await running.post(place, {"fingerprint": staged.json["review"]["fingerprint"]})
        twice = await upload(running, zip_folder(folder))
        left = [file.name for file in (running.home / "plugins").iterdir() if file.name.startswith(".staged-")]
    assert (staged.status, staged.json["name"], staged.json["source"]) == (201, "Fresh", "upload")
    assert [file["path"] for file in staged.json["files"]] == ["config.env", "main.py", "plugin-manifest.json"]
    assert staged.json["size"] == sum(file["size"] for file in staged.json["files"])
    assert staged.json["proof"].startswith("sha256 ")
    assert staged.json["review"]["command_line"] == "python main.py"
    assert CANARY.encode() not in staged.body + good.body
    assert ("Fresh" in listed, ran_before) == (False, False)
    assert (other.status, good.status, good.json["state"], again.status) == (409, 200, "ready", 404)
    assert (call.json["status"], proof.exists()) == ("success", True)
    assert [one["message"] for one in twice.json["problems"] if not one["warning"]] == ["Fresh is already installed"]
    assert len(left) == 1


@pytest.mark.requirement("http:plugins", "s:S-86")
async def test_what_is_staged_can_be_thrown_away_and_what_is_bad_leaves_nothing(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "elsewhere", "Fresh")
    async with run_server(tmp_path) as running:
        staged = await running.post("/v1/plugins/install", {"source": str(folder)})
        gone = await running.request("DELETE", f"/v1/plugins/install/{staged.json['staged']}")
        bad = [
            await upload(running, b"no archive"),
            await upload(running, zip_folder(folder, **{"../out.txt": "x"})),
            await running.post("/v1/plugins/install", {"source": "elsewhere/Fresh"}),
            await running.post("/v1/plugins/install", {"source": "http://example.org/a.git"}),
            await running.post("/v1/plugins/install", {"source": str(tmp_path / "nothing")}),
        ]
        wrong = await running.post("/v1/plugins/install", {})
        left = list((running.home / "plugins").iterdir())
    assert (staged.status, gone.status) == (201, 200)
    assert [one.status for one in bad] == [400] * len(bad)
    assert "the archive is refused" in bad[0].json["error"]["message"]
    assert wrong.status == 422
    assert left == []


@pytest.mark.requirement("http:plugins")
async def test_only_a_few_staged_plugins_wait_and_none_for_another_start(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "elsewhere", "Fresh")
    async with run_server(tmp_path) as running:
        ids = [
            (await running.post("/v1/plugins/install", {"source": str(folder)})).json["staged"]
            for _ in range(MAX_STAGED + 1)
        ]
        first = await running.request("DELETE", f"/v1/plugins/install/{ids[0]}")
        left = list((running.home / "plugins").iterdir())
    async with run_server(tmp_path) as running:
        await running.post("/v1/plugins/install", {"source": str(folder)})
        later = list((running.home / "plugins").iterdir())
    assert (first.status, len(left), len(later)) == (404, MAX_STAGED, 1)


@pytest.mark.requirement("http:plugins")
async def test_a_staged_plugin_is_shown_whole_however_many_come_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_plugin(tmp_path / "elsewhere", "Fresh")
    lists, goes_on = plugin_install._list_files, threading.Event()

    def slowly(staged: Path) -> list[JsonObject]:
        goes_on.wait(60)
        return lists(staged)

    monkeypatch.setattr(plugin_install, "_list_files", slowly)
    async with run_server(tmp_path) as running:
        asks = [
            asyncio.create_task(running.post("/v1/plugins/install", {"source": str(folder)}))
            for _ in range(MAX_STAGED + 2)
        ]
        await asyncio.wait(asks, timeout=0.3)  # they have the time to push each other out
        goes_on.set()
        view = [one.json["files"] for one in await asyncio.gather(*asks)]
    assert view == [view[0]] * len(asks)
    assert len(view[0]) == len(list(folder.iterdir()))
