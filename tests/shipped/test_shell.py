"""Shell: commands in the project, as its own child and through the host."""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import Said, manifest, run
from toolyard.config import load_config
from toolyard.engine.history.journal import CALL_PROGRESS
from toolyard.plugins.package.plugin import PluginState
from toolyard.protocol.access import AccessChoice, ApprovalState
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.tool import Origin
from toolyard.yard.yard import Yard


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/src").mkdir(parents=True)
    return tmp_path / "project"


def shell(project: Path, **arguments: Any) -> Said:
    home = project.parent / "data"
    home.mkdir(exist_ok=True)
    return run("Shell", arguments, home, {"PROJECT_BASE_PATH": str(project)})


def result(said: Said) -> tuple[dict[str, Any], str]:
    """The details of a result, and the output of the command."""
    details = dict(said.answer["result"])
    texts = [part["text"] for part in details.pop("content")]
    return {**details, "summary": texts[0]}, "".join(texts[1:])


@pytest.mark.requirement("shipped:shell")
def test_a_command_gives_its_exit_code_and_both_outputs_in_their_order(project: Path) -> None:
    said = shell(project, command="echo one; echo two >&2; echo three; pwd; exit 3")
    details, output = result(said)
    assert (said.answer["status"], details["exitCode"], details["folder"]) == ("success", 3, ".")
    assert output == f"one\ntwo\nthree\n{project}\n"
    assert details["summary"].startswith("Exit code 3 after ")


@pytest.mark.requirement("shipped:shell")
def test_what_it_prints_is_reported_while_it_runs(project: Path) -> None:
    assert "PROGRESS - one\nPROGRESS -   two\n" in shell(project, command="echo one; echo '  two'").stderr


@pytest.mark.requirement("shipped:shell")
def test_it_runs_in_a_folder_of_the_project_only(project: Path) -> None:
    details, output = result(shell(project, command="pwd", folder="src"))
    assert (details["folder"], output) == ("src", f"{project}/src\n")
    (project / "out").symlink_to(project.parent)
    for folder in ("..", "/", "none", "out", "src/\0"):
        answer = shell(project, command="pwd", folder=folder).answer
        assert answer["status"] == "error"
        assert answer["error"]["code"] == "INVALID_PARAM"


@pytest.mark.requirement("shipped:shell")
def test_it_is_stopped_when_its_time_is_over_and_tells_what_it_printed(project: Path) -> None:
    said = shell(project, command="echo begun; sleep 600", timeout="1")
    details, output = result(said)
    assert (said.answer["status"], details["timedOut"], output) == ("partial", True, "begun\n")
    assert "its time was over" in details["summary"]
    wrong_times: list[Any] = [0, 601, "soon", []]
    for wrong in wrong_times:
        assert shell(project, command="true", timeout=wrong).answer["status"] == "error"


@pytest.mark.requirement("shipped:shell")
def test_of_a_long_output_the_middle_is_left_out_and_named(project: Path) -> None:
    details, output = result(shell(project, command="echo first; yes middle | head -c 200000; echo last"))
    assert details["outputBytes"] == 200_011
    assert f"[... {details['leftOutBytes']} bytes are left out here ...]" in output
    assert (output[:6], output[-5:]) == ("first\n", "last\n")
    assert f"{details['leftOutBytes']} of the 200011 bytes" in details["summary"]


@pytest.mark.requirement("shipped:shell")
def test_a_command_that_never_stops_printing_is_stopped(project: Path) -> None:
    said = shell(project, command="yes")
    assert said.answer["status"] == "partial"
    assert "it printed too much" in result(said)[0]["summary"]
    assert len(said.stderr) < 100_000


@pytest.mark.requirement("shipped:shell")
def test_a_process_in_the_background_does_not_hold_up_the_answer(project: Path) -> None:
    details, output = result(shell(project, command="sleep 600 & echo $!"))
    assert details["exitCode"] == 0
    assert output.strip().isdigit()
    result(shell(project, command=f"kill {output}"))


@pytest.mark.requirement("shipped:shell")
@pytest.mark.parametrize("arguments", [{}, {"command": ""}, {"command": " "}, {"command": 3}, {"action": "walk"}])
def test_what_is_no_command_is_an_error(project: Path, arguments: dict[str, Any]) -> None:
    assert shell(project, **arguments).answer["error"]["code"] == "INVALID_PARAM"


@pytest.mark.requirement("shipped:shell")
def test_folders_that_it_cannot_open_are_not_searched_for_programs(project: Path) -> None:
    extra = {"PROJECT_BASE_PATH": str(project), "PATH": f"/none:{os.environ['PATH']}"}
    (project.parent / "data").mkdir()
    _, output = result(run("Shell", {"command": "echo $PATH"}, project.parent / "data", extra))
    assert "/none" not in output
    assert "/bin" in output


@pytest.mark.requirement("shipped:shell-sessions")
def test_a_session_keeps_the_folder_and_the_exported_variables(project: Path) -> None:
    result(shell(project, command="cd src; export COLOUR='deep blue' TEXT=$'a\\nb'; LOST=1; unset LANG", session="s"))
    _, output = result(shell(project, command='pwd; echo "$COLOUR|$TEXT|$LOST|$LANG"; unset TEXT', session="s"))
    assert output == f"{project}/src\ndeep blue|a\nb||\n"
    _, output = result(shell(project, command='echo "$COLOUR|$TEXT"', session="s", folder="."))
    assert output == "deep blue|\n"
    assert result(shell(project, command="echo $COLOUR"))[1] == "\n"


@pytest.mark.requirement("shipped:shell-sessions")
def test_sessions_are_listed_and_removed(project: Path) -> None:
    assert result(shell(project, action="sessions"))[0]["summary"] == "There are no sessions."
    shell(project, command="export A=1; cd src", session="one")
    details, _ = result(shell(project, action="sessions"))
    assert details["sessions"] == [{"name": "one", "folder": "src", "variables": ["A"]}]
    file = project.parent / "data/sessions/one.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert shell(project, action="remove", session="one").answer["status"] == "success"
    assert not file.exists()
    assert shell(project, action="remove", session="one").answer["status"] == "error"
    for name in ("../x", "", ".a", "a/b", "x" * 65):
        assert shell(project, action="remove", session=name).answer["status"] == "error"


@pytest.mark.requirement("shipped:shell-sessions")
def test_a_session_that_was_left_oddly_stays_usable(project: Path) -> None:
    shell(project, command="export A=1; cd src", session="s")
    for command, words in [
        ("exec true", "is as it was before"),
        ("kill -9 $$", "is as it was before"),
        ("cd /", "continues in the project"),
    ]:
        assert words in result(shell(project, command=command, session="s"))[0]["summary"]
    assert result(shell(project, command="echo $A; pwd", session="s"))[1] == f"1\n{project}\n"
    (project.parent / "data/sessions/s.json").write_text("{")
    assert "cannot be read" in shell(project, command="true", session="s").answer["error"]["message"]


class ShellYard:
    """A Yard with the shipped Shell."""

    def __init__(self, project: Path, *, enabled: bool = True) -> None:
        self.yard = Yard(load_config(project, project.parent / "home"))
        self.yard.plugins.plugins.refresh()
        if enabled:
            self.set_enabled()

    def set_enabled(self) -> None:
        plugin = self.yard.plugins.plugins.get("Shell")
        assert plugin is not None
        self.yard.plugins.plugins.enable(plugin)
        self.yard.plugins.plugins.refresh()

    async def call(self, origin: Origin = Origin.CLI, **arguments: Any) -> JsonObject:
        call = self.yard.calls.request("Shell", arguments, origin=origin, caller="key:1")
        return (await self.yard.calls.settle(call)).envelope.to_dict()

    async def ask(self, **arguments: Any) -> tuple[Approval, "asyncio.Task[JsonObject]"]:
        """The approval that a call of a chat asks for, and the call."""
        running = asyncio.create_task(self.call(Origin.CHAT, **arguments))
        async with asyncio.timeout(60):
            while True:
                _, seq = await self.yard.state.store.event_span()
                if found := await self.yard.state.approvals.page((ApprovalState.PENDING,), limit=1):
                    return found[0], running
                await self.yard.state.store.next_event(seq)

    async def __aenter__(self) -> "ShellYard":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.yard.close()


@pytest.mark.requirement("shipped:shell", "envelope:context:cwd")
async def test_the_folder_of_the_context_is_the_one_in_which_the_command_ran(project: Path) -> None:
    (project / "src/deep").mkdir()
    async with ShellYard(project) as host:
        calls: tuple[tuple[dict[str, Any], str], ...] = (
            ({"command": "pwd", "folder": "src"}, "src"),
            ({"command": "false"}, "."),
            ({"command": "cd src/deep", "session": "s"}, "."),
            ({"command": "pwd", "session": "s"}, "src/deep"),
        )
        for arguments, folder in calls:
            envelope = await host.call(**arguments)
            context, data = envelope["context"], envelope["data"]
            assert isinstance(context, dict)
            assert isinstance(data, dict)
            assert (context["cwd"], data["folder"], "context" in data) == (folder, folder, False)


@pytest.mark.requirement("shipped:shell-off", "plugin:off-by-default")
async def test_it_is_off_until_its_owner_enables_it(project: Path) -> None:
    async with ShellYard(project, enabled=False) as host:
        plugin = host.yard.plugins.plugins.get("Shell")
        assert plugin is not None
        assert plugin.state is PluginState.DISABLED
        assert "toolyard plugin enable Shell" in plugin.reason
        refused = await host.call(command="touch x")
        assert "toolyard plugin enable Shell" in str(refused["text"])
        assert "Shell" not in [tool.spec.name for tool in host.yard.tools]
        host.set_enabled()
        assert (await host.call(command="touch x"))["status"] == "success"
        host.yard.plugins.plugins.disable(plugin)
        assert (await host.call(command="true"))["status"] == "error"
    assert (project / "x").exists()


@pytest.mark.requirement("shipped:shell-confined")
async def test_it_writes_the_project_and_reaches_nothing_else(project: Path) -> None:
    async with ShellYard(project) as host:
        secret = project.parent / "secret.txt"
        secret.write_text("hidden")
        command = f"cat {secret}; echo x > {project.parent}/new.txt; exec 3<>/dev/tcp/127.0.0.1/9; touch made"
        envelope = await host.call(command=f"{command}; ls {project.parent}/home; echo x > $TMPDIR/t && echo kept")
        assert envelope["status"] == "success", envelope
        assert "hidden" not in str(envelope["text"])
        assert "kept" in str(envelope["text"])
        assert not (project.parent / "new.txt").exists()
        assert str(envelope["text"]).count("Permission denied") >= 3


@pytest.mark.requirement("shipped:shell-confined", "confinement:files")
@pytest.mark.parametrize("user", [".", "user"], ids=["in /tmp", "deeper"])
async def test_with_wide_access_a_project_in_a_home_in_tmp_is_seen_and_the_home_is_not(
    monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        home = Path(name, user)
        (home / "project").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        async with ShellYard(home / "project") as host:
            plugin = host.yard.plugins.plugins.get("Shell")
            assert plugin is not None
            host.yard.plugins.allow(host.yard.plugins.review(plugin).with_access(AccessChoice.WIDE))
            host.yard.plugins.plugins.refresh()
            (home / "secret").write_text("hidden")
            envelope = await host.call(command=f"touch x && echo made; cat {home}/secret")
        assert "made" in str(envelope["text"])
        assert "hidden\n" not in str(envelope["text"])
        assert (home / "project/x").exists()


@pytest.mark.requirement("shipped:shell-confined")
async def test_it_refuses_to_run_without_confinement_whatever_its_owner_chose(project: Path) -> None:
    async with ShellYard(project) as host:
        plugin = host.yard.plugins.plugins.get("Shell")
        assert plugin is not None
        host.yard.plugins.allow(host.yard.plugins.review(plugin).with_access(AccessChoice.UNCONFINED))
        host.yard.plugins.plugins.refresh()
        envelope = await host.call(command="touch x")
        assert envelope["status"] == "error"
        assert "'files'" in str(envelope["text"])
    assert not (project / "x").exists()


@pytest.mark.requirement("shipped:shell-approval")
async def test_a_rule_allows_exactly_the_command_that_was_shown(project: Path) -> None:
    async with ShellYard(project) as host:
        approval, running = await host.ask(command="echo hi\u200b")
        assert approval.arguments == {"command": "echo hi\u200b"}
        assert (approval.risk, approval.always_offered) == ("execute", True)
        assert approval.rule is not None
        assert json.loads(approval.rule.command) == {"command": "echo hi\u200b"}
        await host.yard.state.approvals.answer(approval.id, allowed=True, by="me", always=True)
        assert (await running)["status"] == "success"
        assert (await host.call(Origin.CHAT, command="echo hi\u200b"))["status"] == "success"
        for other in (
            {"command": "echo hi"},
            {"command": "echo hi\u200b "},
            {"command": "echo hi\u200b", "folder": "src"},
            {"command": "echo hi\u200b", "session": "s"},
        ):
            approval, running = await host.ask(**other)
            assert approval.always_offered is ("session" not in other)
            await host.yard.state.approvals.answer(approval.id, allowed=False, by="me")
            assert (await running)["status"] == "error"


@pytest.mark.requirement("plugin:progress")
async def test_its_output_is_announced_while_it_runs(project: Path) -> None:
    async with ShellYard(project) as host:
        running = asyncio.create_task(host.call(command="echo begun; while [ ! -e go ]; do sleep 0.05; done"))
        async with asyncio.timeout(60):
            while True:
                _, seq = await host.yard.state.store.event_span()
                events = await host.yard.state.store.events(0, limit=1000)
                if told := [event for event in events if event.type == CALL_PROGRESS]:
                    break
                await host.yard.state.store.next_event(seq)
        assert (told[0].data["tool"], told[0].data["caller"]) == ("Shell", "key:1")
        assert (told[0].data["done"], told[0].data["text"]) == (None, "begun")
        assert not running.done()
        (project / "go").touch()
        assert (await running)["status"] == "success"


@pytest.mark.requirement("shipped:shell")
def test_its_manifest_declares_its_limits() -> None:
    found = manifest("Shell")
    assert found["permissions"] == {"project": "write", "network": [], "confinement": "files"}
    assert found["limits"].keys() >= {"memoryMb", "processes"}
    assert found["risk"] == "execute"
