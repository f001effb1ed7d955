"""The commands that look at tasks, schedules, approvals and the journal: real processes on one home."""

import asyncio
import json
import signal
import subprocess
import sys
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.cli.test_cli import TOOLYARD, WAIT_S, Shell
from tests.fakes import FakeTool, says
from tests.plugins.folders import make_plugin
from toolyard.cli.records import format_age, parse_moment
from toolyard.cli.table import display_width, escape_unprintable, print_rows, state_cell, to_one_line, truncate
from toolyard.config import load_config
from toolyard.engine.ownership import OwnerLock
from toolyard.errors import UsageError
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.store import NewEvent, Query
from toolyard.protocol.tool import Origin, Outcome, Risk
from toolyard.yard.yard import Yard

FILM = """
import json, sys, time
asked = json.loads(sys.stdin.read() or "{}")
told = "Submitted. {{VCP_ASYNC_RESULT::Film::%s}}" % asked["id"]
print(json.dumps({"status": "success", "result": told}), flush=True)
time.sleep(600)
"""
SLOW = "import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(600)\n"


@pytest.fixture
def shell(project: Path, tmp_path: Path) -> Shell:
    (project / "你好.txt").write_text("hello\n")
    for name, code in (("Film", FILM), ("Slow", SLOW)):
        kind = "asynchronous" if name == "Film" else "synchronous"
        folder = make_plugin(tmp_path / "given", name, pluginType=kind, communication={"timeout": 600_000})
        (folder / "main.py").write_text(code)
    return Shell(project, tmp_path)


@pytest.fixture
async def yard(shell: Shell) -> AsyncIterator[Yard]:
    """Another process's view of the same home."""
    async with Yard(load_config(shell.project, shell.environment["TOOLYARD_HOME"])) as opened:
        yield opened


def given(shell: Shell) -> list[str]:
    return ["--plugins", str(shell.project.parent / "given"), "--trust"]


# --- the journal ---


@pytest.mark.requirement("cli:records")
def test_the_journal_lists_filters_searches_and_pages_calls(shell: Shell) -> None:
    shell.run("call", "LS")
    shell.run("call", "Read", "path=你好.txt")
    shell.run("call", "Read", "path=missing.txt")
    listed = shell.json("journal", "list", "--json")
    assert [(one["tool"], one["state"]) for one in listed] == [
        ("Read", "error"),
        ("Read", "success"),
        ("LS", "success"),
    ]
    assert {one["caller"] for one in listed} == {f"cli:{shell.project}"}
    ids = [one["id"] for one in listed]

    def find_calls(*words: str) -> list[int]:
        return [ids.index(one["id"]) for one in shell.json("journal", "list", "--json", *words)]

    assert find_calls("--tool", "Read", "--state", "success") == [1]
    assert find_calls("--search", "你好") == [1]
    assert find_calls("--caller", "nobody") == []
    assert find_calls("--since", "1h", "--limit", "2") == [0, 1]
    assert find_calls("--limit", "2", "--before", ids[1]) == [2]
    assert shell.run("journal", "list", "--before", "call_x").returncode == 2
    assert shell.run("journal", "list", "--state", "odd").returncode == 2
    table = shell.run("journal", "list", "--limit", "1")
    assert table.stdout.splitlines()[1].split()[:3] == ["ID", "STATE", "TOOL"]
    assert ids[0] in table.stdout
    assert f"--before {ids[0]}" in table.stderr


@pytest.mark.requirement("caller:identity")
def test_the_command_line_is_one_caller_for_a_project_and_what_it_read_is_remembered(shell: Shell) -> None:
    refused = shell.run("call", "Write", "path=你好.txt", "content=new")
    shell.run("call", "Read", "path=你好.txt")
    written = shell.run("call", "Write", "path=你好.txt", "content=new")
    assert (refused.returncode, written.returncode) == (1, 0)
    listed = shell.json("journal", "list", "--json", "--caller", f"cli:{shell.project}")
    assert [one["tool"] for one in listed] == ["Write", "Read", "Write"]


@pytest.mark.requirement("cli:records")
def test_the_journal_shows_one_call_with_its_whole_result(shell: Shell) -> None:
    shell.run("call", "Read", "path=你好.txt")
    (one,) = shell.json("journal", "list", "--json")
    result = shell.json("journal", "show", one["id"], "--json")
    assert result["envelope"]["data"]["content"] == "1\thello"
    assert result["arguments"] == {"path": "你好.txt"}
    assert "你好.txt" in shell.run("journal", "show", one["id"]).stdout
    missing = shell.run("journal", "show", "call_x")
    assert (missing.returncode, "call_x" in missing.stderr) == (1, True)


@pytest.mark.requirement("cli:records", "p:P9")
def test_the_tail_follows_events_of_other_processes_until_ctrl_c(shell: Shell) -> None:
    shell.run("call", "LS")
    command = [*TOOLYARD, "journal", "tail", "--from", "1", "--json"]
    tail = subprocess.Popen(command, cwd=shell.project, env=shell.environment, stdout=subprocess.PIPE, text=True)
    assert tail.stdout is not None
    assert json.loads(tail.stdout.readline())["seq"] == 2
    shell.run("call", "LS")
    events = [json.loads(tail.stdout.readline()) for _ in range(2)]
    assert [(event["seq"], event["type"]) for event in events] == [(3, "call.started"), (4, "call.finished")]
    assert list(events[0]) == ["seq", "type", "at", "data"]
    tail.send_signal(signal.SIGINT)
    rest, _ = tail.communicate(timeout=WAIT_S)
    assert (tail.returncode, rest) == (0, "")


@pytest.mark.requirement("cli:records", "p:P9")
async def test_the_tail_tells_of_events_that_were_forgotten(shell: Shell, yard: Yard) -> None:
    await yard.state.store.commit([], [NewEvent(type=f"e{n}", at=float(n)) for n in range(1, 5)])
    await yard.state.store.forget_events(3.0, limit=10)
    output = shell.run("journal", "tail", "--from", "0", "--no-follow", "--json").stdout.splitlines()
    events = [json.loads(line) for line in output]
    assert [(event["seq"], event["type"]) for event in events] == [(2, "gap"), (3, "e3"), (4, "e4")]
    assert events[0]["data"] == {"from": 1, "to": 2}


@pytest.mark.requirement("cli:records", "journal:undo")
def test_undo_of_a_created_file_says_that_it_was_deleted(shell: Shell) -> None:
    assert shell.run("call", "Write", "path=poem.txt", "content=x").returncode == 0
    call = shell.json("journal", "list", "--json")[0]
    told = f"Deleted poem.txt in {shell.project}, which the call had created.\n"
    assert shell.run("journal", "undo", call["id"]).stdout == told
    assert not (shell.project / "poem.txt").exists()


@pytest.mark.requirement("cli:records", "journal:undo")
def test_undo_puts_back_what_a_call_wrote(shell: Shell) -> None:
    shell.run("call", "Edit", "path=你好.txt", "old_string=hello", "new_string=bye")
    (call,) = shell.json("journal", "list", "--json", "--tool", "Edit")
    done = shell.run("journal", "undo", call["id"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "你好.txt" in done.stdout
    assert (shell.project / "你好.txt").read_text() == "hello\n"
    assert shell.run("journal", "undo", "call_x").returncode == 1


@pytest.mark.requirement("r:R03b", "p:P3", "p:P10", "p:P2")
def test_a_call_whose_process_was_killed_is_interrupted_and_nothing_stays_running(shell: Shell) -> None:
    command = [*TOOLYARD, "call", "Slow", *given(shell)]
    call = subprocess.Popen(command, cwd=shell.project, env=shell.environment, stdout=subprocess.DEVNULL)
    tail = subprocess.Popen(
        [*TOOLYARD, "journal", "tail", "--from", "0", "--json"],
        cwd=shell.project, env=shell.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert tail.stdout is not None
    assert json.loads(tail.stdout.readline())["type"] == "call.started"
    (running,) = shell.json("journal", "list", "--json")
    assert running["state"] == "running"  # its process lives: nobody touches it
    call.kill()
    call.wait(timeout=WAIT_S)
    (cut_off,) = shell.json("journal", "list", "--json")
    assert (cut_off["state"], cut_off["reason"]) == ("interrupted", "INTERRUPTED")
    assert "is not known" in cut_off["text"]
    assert json.loads(tail.stdout.readline())["type"] == "call.finished"
    assert [one["state"] for one in shell.json("journal", "list", "--json")] == ["interrupted"]
    tail.send_signal(signal.SIGINT)
    tail.communicate(timeout=WAIT_S)


# --- schedules ---


@pytest.mark.requirement("cli:records", "schedule:run")
def test_a_schedule_is_added_listed_run_and_cancelled(shell: Shell) -> None:
    shell.environment["TOOLYARD_TIME_ZONE"] = "Asia/Shanghai"
    added = shell.run("schedule", "add", "LS", "limit=5", "--at", "2037-03-05-14:00")
    id_ = added.stdout.partition(":")[0]
    assert (added.returncode, "2037-03-05T14:00:00+08:00" in added.stdout) == (0, True)
    assert "No server is running" in added.stderr
    repeating = shell.json("schedule", "add", "LS", "--cron", "30 8 * * 1-5", "--json")
    assert (repeating["cron"], repeating["state"], repeating["server"]) == ("30 8 * * 1-5", "scheduled", False)
    listed = shell.json("schedule", "list", "--json")
    assert [one["id"] for one in listed] == [repeating["id"], id_]
    assert (listed[1]["arguments"], listed[1]["zone"]) == ({"limit": 5}, "Asia/Shanghai")
    assert "+08:00" in shell.run("schedule", "list").stdout
    assert "Nothing is due" in shell.run("schedule", "run").stderr
    assert f'{id_}: LS with {{"limit": 5}} is approved for 2037' in shell.run("schedule", "allow", id_).stdout
    (ran,) = shell.json("schedule", "run", id_, "--json")
    assert (ran["id"], ran["state"]) == (id_, "done")
    (call,) = shell.json("journal", "list", "--json")
    assert (call["id"], call["origin"], call["arguments"]) == (ran["call_id"], "schedule", {"limit": 5})
    assert shell.run("schedule", "run", id_).returncode == 1
    assert shell.run("schedule", "allow", id_).returncode == 1
    assert shell.run("schedule", "cancel", repeating["id"]).returncode == 0
    assert shell.run("schedule", "cancel", repeating["id"]).returncode == 1
    assert [one["id"] for one in shell.json("schedule", "list", "--state", "cancelled", "--json")] == [repeating["id"]]
    assert shell.run("schedule", "cancel", "schedule_x").returncode == 1


@pytest.mark.requirement("schedule:run")
async def test_what_is_due_runs_by_command_and_a_failure_is_told(shell: Shell, yard: Yard) -> None:
    for tool, arguments in (("LS", {}), ("Read", {"path": "missing.txt"})):
        call = yard.calls.request(tool, arguments, caller="cli:x", origin=Origin.CLI)
        added = await yard.state.schedules.submit(call, at="2037-01-01-10:00")
        assert await yard.state.store.commit([replace(added, version=1, due=added.created - 120).to_record()])
    listed = shell.run("schedule", "list").stdout
    assert listed.count("late") == listed.count("no server was running at its time") == 2
    done = shell.run("schedule", "run", "--json")
    ran = json.loads(done.stdout)
    assert sorted((one["tool"], one["state"]) for one in ran) == [("LS", "done"), ("Read", "failed")]
    assert done.returncode == 1


@pytest.mark.requirement("schedule:invalid", "cli:exit:usage")
def test_a_schedule_that_makes_no_sense_is_refused(shell: Shell) -> None:
    for words, code, output in [
        (("LS",), 2, "--at TIME and --cron EXPR"),
        (("LS", "--at", "2037-01-01-10:00", "--cron", "* * * * *"), 2, "--at TIME and --cron EXPR"),
        (("LS", "--at", "2020-01-01-10:00"), 1, "not in the future"),
        (("LS", "--at", "tomorrow"), 1, "YYYY-MM-DD-HH:mm"),
        (("LS", "--cron", "61 * * * *"), 1, "cron"),
        (("Nope", "--at", "2037-01-01-10:00"), 1, "no tool called 'Nope'"),
        (("LS", "limit=many", "--at", "2037-01-01-10:00"), 1, "limit"),
    ]:
        done = shell.run("schedule", "add", *words)
        assert (words, done.returncode, output in done.stderr) == (words, code, True)
    assert shell.json("schedule", "list", "--json") == []


@pytest.mark.requirement("schedule:run")
def test_while_a_server_owns_the_home_nobody_is_told_to_start_one(shell: Shell) -> None:
    lock = OwnerLock.acquire(Path(shell.environment["TOOLYARD_HOME"]))
    done = shell.run("schedule", "add", "LS", "--at", "tomorrow 9:00")
    lock.release()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requirement("schedule:run", "schedule:invalid")
def test_a_call_with_timely_contact_gets_a_receipt_or_the_reason_why_not(shell: Shell) -> None:
    done = shell.run("call", "LS", "limit=5", "timely_contact=2037-03-05-14:00", TOOLYARD_TIME_ZONE="Asia/Shanghai")
    receipt = json.loads(done.stdout)
    assert (done.returncode, receipt["status"]) == (0, "success")
    assert receipt["data"] == {
        "schedule_id": receipt["data"]["schedule_id"],
        "scheduled_for": "2037-03-05T14:00:00+08:00",
        "tool": "LS",
    }
    assert receipt["data"]["schedule_id"] in receipt["text"]
    assert "2037-03-05T14:00:00+08:00" in receipt["text"]
    (stored,) = shell.json("schedule", "list", "--json")
    assert (stored["id"], stored["arguments"]) == (receipt["data"]["schedule_id"], {"limit": 5})
    for time in ("2020-01-01-10:00", "soon"):
        done = shell.run("call", "LS", f"timely_contact={time}")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "INVALID_PARAM")
    assert shell.json("journal", "list", "--json") == []


# --- approvals ---


async def request_approval(yard: Yard, tool: str, **arguments: Any) -> tuple["asyncio.Task[Outcome]", str]:
    """A call from a chat that waits for approval, and the approval's id."""
    call = yard.calls.request(tool, arguments, caller="key:1", origin=Origin.CHAT)
    running = asyncio.create_task(yard.calls.settle(call))
    async with asyncio.timeout(WAIT_S):
        while True:
            (
                _,
                seq,
            ) = await yard.state.store.event_span()  # before the look, or what comes in between is waited for in vain
            if pending := await yard.state.approvals.page((ApprovalState.PENDING,), limit=1):
                break
            await yard.state.store.next_event(seq)
    return running, pending[0].id


@pytest.mark.requirement("cli:records", "cli:journal:waits")
async def test_the_journal_says_that_a_call_waits_for_approval(shell: Shell, yard: Yard) -> None:
    running, id_ = await request_approval(yard, "Write", path="a.txt", content="x\n")
    waiting = await list_single_call(shell)
    assert waiting[1:3] == ["waits", "Write"]
    assert "state: waits\n" in (await cli(shell, "journal", "show", waiting[0]))[1]
    (call,) = json.loads((await cli(shell, "journal", "list", "--json"))[1])
    assert call["state"] == "running"  # the states of programs stay
    assert (await cli(shell, "approval", "deny", id_))[0] == 0
    await running
    assert (await list_single_call(shell))[1] == "cancelled"


async def list_single_call(shell: Shell) -> list[str]:
    """The words of the row of the only call."""
    (row,) = [line for line in (await cli(shell, "journal", "list"))[1].splitlines() if line.startswith("call_")]
    return row.split()


@pytest.mark.requirement("cli:records", "approval:refused")
async def test_an_approval_is_answered_once_from_another_process(shell: Shell, yard: Yard, project: Path) -> None:
    running, id_ = await request_approval(yard, "Write", path="a.txt", content="x\n")
    (listed,) = json.loads((await cli(shell, "approval", "list", "--state", "pending", "--json"))[1])
    assert (listed["id"], listed["tool"], listed["arguments"]["path"]) == (id_, "Write", "a.txt")
    assert (await cli(shell, "approval", "allow", id_))[0] == 0
    assert (await asyncio.wait_for(running, WAIT_S)).envelope.error is None
    assert (project / "a.txt").read_text() == "x\n"
    running, id_ = await request_approval(yard, "Write", path="b.txt", content="x\n")
    assert (await cli(shell, "approval", "deny", id_, "--reason", "not today", "--always"))[0] == 0
    refused = (await asyncio.wait_for(running, WAIT_S)).envelope
    assert refused.context["reason"] == "DENIED"
    assert "not today" in refused.text
    code, _, output = await cli(shell, "approval", "allow", id_)
    assert (code, "already denied" in output) == (1, True)
    assert (await cli(shell, "approval", "allow", "approval_x"))[0] == 1
    (rule,) = json.loads((await cli(shell, "approval", "rules", "--json"))[1])
    assert (rule["tool"], rule["effect"]) == ("Write", "deny")


@pytest.mark.requirement("cli:records", "s:S-98")
async def test_an_approval_is_shown_with_every_argument_and_nothing_hidden(shell: Shell, yard: Yard) -> None:
    yard.tools.add(FakeTool(says, name="Runs", parameters={"type": "object"}, risk=Risk.EXECUTE))
    arguments = {"path": "a\u202etxt.\u3164exe", "lines": "one\ntwo\u200b", "access_token": "rm -rf ~", "n": [1]}
    running, id_ = await request_approval(yard, "Runs", **arguments)
    code, text, output = await cli(shell, "approval", "show", id_)
    assert code == 0
    for line in (
        r"  path: a\u202etxt.\u3164exe",
        r"    two\u200b",
        "  access_token: [masked, 8 characters]",
        "Runs runs a program.",
    ):
        assert line in text
    assert "The owner can see masked values" in output
    assert json.loads((await cli(shell, "approval", "show", id_, "--json"))[1])["hidden"] == [
        {"at": "/access_token", "characters": 8}
    ]
    listed = (await cli(shell, "approval", "list"))[1]
    assert r"a\u202etxt" in listed
    assert (await cli(shell, "approval", "show", "approval_x"))[0] == 1
    assert (await cli(shell, "approval", "deny", id_))[0] == 0
    assert (await asyncio.wait_for(running, WAIT_S)).envelope.error


@pytest.mark.requirement("cli:records", "s:S-97", "r:R104")
async def test_rules_are_made_listed_and_revoked_and_hold_at_once(shell: Shell, yard: Yard) -> None:
    made = json.loads(
        (await cli(shell, "approval", "rules", "add", "ServerFileOperator", "DeleteFile", "--deny", "--json"))[1]
    )
    assert (made["tool"], made["command"], made["effect"]) == ("FileOperator", "DeleteFile", "deny")
    await cli(shell, "approval", "rules", "add", "FileOperator", "--allow")
    for name in ("FileOperator", "ServerFileOperator"):
        for key in ("command", "Command", "com_mand", "command1"):
            call = yard.calls.request(name, {key: "DeleteFile", "filePath": "x"}, caller="key:1", origin=Origin.CHAT)
            refused = (await asyncio.wait_for(yard.calls.settle(call), WAIT_S)).envelope
            assert (name, key, refused.context.get("reason")) == (name, key, "DENIED")
    code, _, output = await cli(shell, "approval", "rules", "add", "Unheard", "--allow")
    assert (code, "no tool called 'Unheard'" in output) == (0, True)
    assert (await cli(shell, "approval", "rules", "add", "LS"))[0] == 2
    assert len(json.loads((await cli(shell, "approval", "rules", "--json"))[1])) == 3
    assert (await cli(shell, "approval", "rules", "revoke", made["id"]))[0] == 0
    assert (await cli(shell, "approval", "rules", "revoke", made["id"]))[0] == 1
    assert "DeleteFile" not in (await cli(shell, "approval", "rules"))[1]


async def cli(shell: Shell, *words: str) -> tuple[int, str, str]:
    """A command while this process goes on."""
    done = await asyncio.to_thread(shell.run, *words)
    return done.returncode, done.stdout, done.stderr


# --- tasks ---


@pytest.mark.requirement("cli:records", "task:states")
def test_a_task_is_listed_shown_cancelled_and_retried(shell: Shell) -> None:
    shell.run("call", "Film", "id=one", "--detach", *given(shell))
    (task,) = shell.json("task", "list", "--json")
    assert (task["plugin"], task["task_id"], task["state"]) == ("Film", "one", "waiting_callback")
    assert "token_hash" not in task
    assert shell.json("task", "show", "Film::one", "--json")["id"] == task["id"]
    assert "waiting callback" in shell.run("task", "list", "--search", "one").stdout
    assert shell.json("task", "list", "--search", "two", "--json") == []
    cancelled = shell.run("task", "cancel", task["id"])
    assert (cancelled.returncode, cancelled.stdout) == (0, f"1 task cancelled in {shell.project}.\n")
    assert shell.json("task", "show", task["id"], "--json")["state"] == "cancelled"
    again = shell.run("task", "cancel", task["id"])
    assert (again.returncode, "has already ended" in again.stderr) == (1, True)
    retried = shell.run("task", "retry", task["id"], "--detach", *given(shell))
    assert retried.returncode == 0
    newest = shell.json("task", "list", "--json")[0]
    assert (newest["arguments"], newest["state"], newest["id"] != task["id"]) == (
        {"id": "one"},
        "waiting_callback",
        True,
    )
    assert shell.json("task", "cancel", "--all", "--json") == {"cancelled": [newest["id"]], "ended": []}
    assert shell.run("task", "cancel").returncode == 2
    assert shell.run("task", "show", "task_x").returncode == 1


async def put_task(yard: Yard, **more: Any) -> Task:
    now = 1.0
    task = Task(id="task_1", call_id="call_1", plugin="Film", task_id="one", state=TaskState.FAILED, created=now,
                updated=now, deadline=now, caller="key:1", token_hash="h")  # fmt: skip
    task = replace(task, **more)
    assert await yard.state.store.commit([task.to_record()])
    return task


@pytest.mark.requirement("cli:records", "s:S-91")
async def test_a_task_whose_secret_was_masked_is_not_retried(shell: Shell, yard: Yard) -> None:
    await put_task(yard, arguments={"password": "[masked]"})
    code, out, output = await cli(shell, "task", "retry", "task_1", *given(shell))
    assert (code, out, "masked" in output) == (1, "", True)


@pytest.mark.requirement("r:R60")
async def test_ten_thousand_pending_tasks_are_listed_in_little_memory(shell: Shell, yard: Yard) -> None:
    task = await put_task(yard, state=TaskState.WAITING, owner=yard.boot.name, deadline=9e9)
    for start in range(0, 10_000, 1000):
        many = (replace(task, id=f"task_n{n}", created=float(n)) for n in range(start, start + 1000))
        assert await yard.state.store.commit([one.to_record() for one in many])
    listed, peak = await asyncio.to_thread(_measure, shell, "task", "list", "--json", "--limit", "50")
    assert len(json.loads(listed)) == 50
    if sys.platform == "linux":
        assert peak < 200 * 1024  # KiB
    assert await yard.state.store.count("task", Query(states=(TaskState.WAITING,))) == 10_001


_TELLS_ITS_PEAK = """
import atexit, sys
from toolyard.cli import main
def tell():
    with open("/proc/self/status") as status:
        print(status.read().partition("VmHWM:")[2].split()[0], file=sys.stderr)
if sys.platform == "linux":
    atexit.register(tell)
main()
"""


def _measure(shell: Shell, *words: str) -> tuple[str, int]:
    """Run a command; return its output and its peak memory, without that inherited by a fork."""
    done = subprocess.run(
        [sys.executable, "-c", _TELLS_ITS_PEAK, *words],
        cwd=shell.project,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, int(done.stderr or 0)


# --- how it is shown ---


@pytest.mark.requirement("cli:records")
def test_columns_stay_straight_with_wide_characters_and_nothing_drives_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = "计算器"
    rows = [(wide, state_cell("failed"), "a"), ("plain", state_cell("waiting_callback"), "b\x1b[2J\r\nc\u202e")]
    print_rows(("TOOL", "STATE", "WHAT"), rows)
    lines = capsys.readouterr().out.splitlines()
    column = len("计算器") * 2 + len("  waiting callback  ")
    assert lines[0].index("WHAT") == column
    assert (display_width(lines[1].rpartition("a")[0]), display_width(lines[2].partition("b [2J")[0])) == (
        column,
        column,
    )
    assert lines[2].endswith("  b [2J c")
    assert (display_width("e\u0301"), display_width("ｱ"), display_width("Ａ"), display_width("한")) == (1, 1, 2, 2)
    assert (truncate("计算器", 5), truncate("计算器", 6), truncate("abc", 2)) == ("计算…", "计算器", "a…")
    assert to_one_line("a\n\tb\x9b") == "a b"
    assert escape_unprintable("a\nb\x1b[0m") == "a\nb\\u001b[0m"
    assert unicodedata.east_asian_width(wide[0]) == "W"


@pytest.mark.requirement("cli:records")
def test_times_are_told_from_now_and_read_as_people_write_them() -> None:
    now = 1_000_000.0
    result = [format_age(now + away, now) for away in (0, -59, -60, -7200, 90, 86_400 * 3)]
    assert result == ["now", "59 s ago", "1 min ago", "2 h ago", "in 1 min", "in 3 d"]
    assert format_age(None) == ""
    zone = ZoneInfo("Asia/Shanghai")
    assert [now - parse_moment(text, zone, now) for text in ("30s", "2h", "1 d", "1w")] == [30, 7200, 86_400, 604_800]
    assert parse_moment("1970-01-02T08:00", zone) == 86_400
    assert parse_moment("1970-01-02T08:00+00:00", zone) == 86_400 + 8 * 3600
    with pytest.raises(UsageError, match="yesterday"):
        parse_moment("yesterday", zone)
