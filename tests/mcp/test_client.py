"""The tools of MCP servers as tools of a Yard: real programs, real pipes, real sockets."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from tests.mcp.clients import serve_http, stdio
from tests.waiting import run_loop_once, wait_until
from toolyard.config import load_config
from toolyard.confinement.program_files import list_program_trees
from toolyard.plugins.mcp import server_connection, server_start
from toolyard.plugins.mcp.servers import ServerState
from toolyard.plugins.process.launch import Launch
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Envelope, Failure
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Outcome, Risk
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("mcp:client")

TINY = Path(__file__).with_name("tiny_server.py")


class McpProject:
    """A project with a ``.mcp.json``, and the folder that decides what the tiny server does."""

    def __init__(self, root: Path) -> None:
        self.project, self.home, self.folder = root / "project", root / "home", root / "tiny"
        for folder in (self.project, self.folder):
            folder.mkdir()
        self.declare()

    def declare(self, **more: Any) -> None:
        entry = {"command": sys.executable, "args": [str(TINY), str(self.folder)], **more}
        self.write({"tiny": entry})

    def write(self, servers: dict[str, Any]) -> None:
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def yard(self, clock: FakeClock | None = None) -> Yard:
        return Yard(load_config(self.project, self.home), clock=clock)

    def has_pid(self) -> bool:
        file = self.folder / "pid"
        return file.exists() and bool(file.read_text())

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())


@pytest.fixture
def place(tmp_path: Path) -> McpProject:
    return McpProject(tmp_path)


async def allow(yard: Yard, name: str = "tiny") -> None:
    entry = yard.mcp.servers.declarations.get(name)
    assert entry is not None
    yard.mcp.servers.pins.allow(entry, (await yard.mcp.servers.inspect_tools(entry)).tools, at="now")


async def call(yard: Yard, tool: str, **arguments: Any) -> Outcome:
    return await yard.calls.settle(yard.calls.request(f"mcp__tiny__{tool}", arguments))


def state(yard: Yard) -> ServerState:
    entry = yard.mcp.servers.declarations.get("tiny")
    assert entry is not None
    return yard.mcp.servers.find_state(entry)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_an_allowed_server_is_a_tool_like_any_other(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        specs = {tool.spec.name: tool.spec for tool in yard.tools}
        assert specs["mcp__tiny__echo"].risk is Risk.EXECUTE
        assert "Repeats a text." in specs["mcp__tiny__echo"].description
        outcome = await call(yard, "echo", text="ab", times="2", maid="Nova")
    assert outcome.envelope.text == "abab"
    assert outcome.envelope.data["heard"] == {"text": "ab", "times": 2}


async def test_a_name_that_providers_refuse_is_made_plain_and_stays_the_same(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        (name,) = [tool.spec.name for tool in yard.tools if "wait_for_it" in tool.spec.name]
        assert name == "mcp__tiny__wait_for_it-" + name[-8:]
        outcome = await yard.calls.settle(yard.calls.request(name, {"text": "x"}))
    assert outcome.envelope.text == "x"


@pytest.mark.requirement("mcp:pinned")
async def test_nothing_runs_before_the_owner_has_said_so(place: McpProject) -> None:
    async with place.yard() as yard:
        assert state(yard) is ServerState.NEEDS_REVIEW
        outcome = await call(yard, "echo", text="x")
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code == "NOT_FOUND"
    assert not (place.folder / "pid").exists()


@pytest.mark.requirement("mcp:pinned")
@pytest.mark.parametrize("change", [{"args": ["-c", "print(1)"]}, {"env": {"A": "b"}}, {"cwd": "/"}])
async def test_another_command_needs_another_review(place: McpProject, change: dict[str, Any]) -> None:
    async with place.yard() as yard:
        await allow(yard)
        place.declare(**change)
        assert state(yard) is ServerState.CHANGED
        outcome = await call(yard, "echo", text="x")
    assert outcome.envelope.error is not None


@pytest.mark.requirement("mcp:pinned")
async def test_another_description_at_the_next_start_fails_closed(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
    (place.folder / "description.txt").write_text("Something else.")
    async with place.yard() as yard:
        outcome = await call(yard, "echo", text="x")
        assert outcome.envelope.context["reason"] == "DENIED"
        assert "toolyard mcp allow tiny" in outcome.envelope.text
        assert state(yard) is ServerState.CHANGED
        assert "mcp__tiny__echo" not in {tool.spec.name for tool in yard.tools}
        await allow(yard)
        assert not (await call(yard, "echo", text="x")).envelope.error


@pytest.mark.requirement("mcp:pinned")
async def test_tools_that_change_while_their_server_runs_are_denied_from_the_next_call_on(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        assert not (await call(yard, "change", text="x")).envelope.error
        outcome = await call(yard, "echo", text="x")
        assert outcome.envelope.context["reason"] == "DENIED"
        assert state(yard) is ServerState.CHANGED


async def test_a_failure_and_a_picture_come_through(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        failed = await call(yard, "fail")
        picture = await call(yard, "picture")
    assert failed.envelope.error is not None
    assert failed.envelope.error.message == "it does not work"
    assert [part.mime for part in picture.extras.parts if isinstance(part, Media)] == ["image/png"]


async def test_an_answer_that_is_no_result_is_a_failure_of_the_server(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        outcome = await call(yard, "nonsense")
    assert outcome.envelope.context["reason"] == "INVALID_OUTPUT"


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.requirement("mcp:unreadable-reply")
@pytest.mark.parametrize(
    "raw",
    [
        f'{{"jsonrpc": "2.0", "id": ID, "result": {DEEP}}}',
        f'{{"result": {{"structuredContent": {{"id": 77, "a": {DEEP}}}, "content": []}}, "jsonrpc": "2.0", "id": ID}}',
        f'{{"result": {{"content": [{{"type": "text", "text": {DEEP}}}]}}, "id": ID, "jsonrpc": "2.0"}}',
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","te',
    ],
)
async def test_a_reply_that_cannot_be_parsed_ends_its_call_at_once_and_no_other(place: McpProject, raw: str) -> None:
    async with asyncio.timeout(180), place.yard() as yard:
        await allow(yard)
        hanging = asyncio.create_task(call(yard, "hang"))
        await wait_until((place.folder / "hanging").exists)
        (place.folder / "raw_answer").write_text(raw)
        outcome = await call(yard, "echo")
        (place.folder / "raw_answer").unlink()
        again = await call(yard, "echo", text="x")
        assert not hanging.done()
        hanging.cancel()
    assert outcome.envelope.context["reason"] == "INVALID_OUTPUT"
    assert "its reply is not JSON, or is nested too deeply" in outcome.envelope.text
    assert again.envelope.text == "x"


async def test_a_program_of_the_project_is_named_relative_to_it(place: McpProject) -> None:
    program = place.project / "bin" / "server"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {TINY} {place.folder}\n")
    program.chmod(0o755)
    needed = {"read": [*list_program_trees(sys.executable), str(TINY)], "write": [str(place.folder)]}
    place.write({"tiny": {"command": "./bin/server", "permissions": needed}})
    async with place.yard() as yard:
        await allow(yard)
        assert (await call(yard, "echo", text="x")).envelope.text == "x"
    place.write({"tiny": {"command": "no-such-program"}})
    async with place.yard() as yard:
        with pytest.raises(Failure, match="there is no program 'no-such-program'"):
            await allow(yard)


async def test_it_is_started_with_the_access_that_its_review_showed(
    place: McpProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data", "more"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    permissions = {"read": [str(tmp_path / "more")], "network": []}
    place.declare(args=[str(TINY), str(place.folder), "${DATA}"], permissions=permissions)
    async with place.yard() as yard:
        entry = yard.mcp.servers.declarations.get("tiny")
        assert entry is not None
        shown = yard.mcp.servers.describe_access(entry)
    assert shown[1].startswith("reads ")
    assert str(tmp_path / "more") in shown[1]
    assert str(TINY) not in shown[2]
    assert shown[2:] == (f"reads and changes {place.folder}, {tmp_path / 'data'}", "has no network")


async def test_its_environment_is_minimal(place: McpProject, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "API_Key", "SOME_SECRET", "WANTED"):
        monkeypatch.setenv(name, f"value of {name}")
    place.declare(env={"MINE": "${WANTED} ${UNSET:-or this}"})
    async with place.yard() as yard:
        await allow(yard)
        seen = json.loads((await call(yard, "environment")).envelope.text)
    assert seen["MINE"] == "value of WANTED or this"
    assert set(seen) <= {
        "PATH", "HOME", "LANG", "TZ", "TMPDIR", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "MINE", "LC_CTYPE",
    }  # fmt: skip
    assert seen["HOME"].startswith(str(place.home))


async def test_a_key_of_the_host_is_never_filled_in(place: McpProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the key of the host")
    place.declare(env={"MINE": "${OPENAI_API_KEY}"})
    async with place.yard() as yard:
        with pytest.raises(Failure, match="OPENAI_API_KEY, which is a key of this host"):
            await allow(yard)


@pytest.mark.requirement("r:R29")
async def test_a_server_that_crashes_pauses_longer_and_longer_and_then_stays_down(place: McpProject) -> None:
    clock = FakeClock()
    async with place.yard(clock) as yard:
        await allow(yard)
        for pause in (1, 2, 4, 8):
            crashed = await call(yard, "crash")
            assert crashed.envelope.context["reason"] == "CRASHED"
            await wait_until(lambda: state(yard) is ServerState.READY)
            clock.advance(pause - 0.1)
            assert (await call(yard, "echo", text="x")).envelope.context["reason"] == "BUSY"
            clock.advance(0.2)
            assert not (await call(yard, "echo", text="x")).envelope.error
        await call(yard, "crash")
        await wait_until(lambda: state(yard) is ServerState.FAILED)
        clock.advance(3600)
        down = await call(yard, "echo", text="x")
        assert "I was told to crash" in down.envelope.text
        await allow(yard)
        assert state(yard) is ServerState.READY
        assert not (await call(yard, "echo", text="x")).envelope.error


@pytest.mark.requirement("r:R29")
async def test_a_server_that_cannot_start_says_why(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        (place.folder / "broken").touch()
        outcome = await call(yard, "echo", text="x")
    assert outcome.envelope.context["reason"] == "START_FAILED"
    assert "I cannot start" in outcome.envelope.text


@pytest.mark.requirement("confinement:denied")
async def test_a_server_that_its_confinement_stops_at_the_start_says_how_it_reaches_more(place: McpProject) -> None:
    (place.project / "secret").write_text("x")
    place.write({"tiny": {"command": sys.executable, "args": ["-c", "import os; os.listdir(os.getcwd())"]}})
    async with place.yard() as yard:
        with pytest.raises(Failure, match="Permission denied") as failed:
            await allow(yard)
    assert '"permissions": {"write": ["/path/to/folder"]} in its entry of mcp.json' in failed.value.hint
    assert "'toolyard mcp allow tiny" in failed.value.hint


@pytest.mark.requirement("confinement:denied")
@pytest.mark.parametrize(
    ("permissions", "text", "step"),
    [
        ({}, "EACCES: permission denied, open '/home/x/notes'", '"write": ["/path/to/folder"]'),
        ({"network": []}, "connect ENETUNREACH 192.0.2.1:443", '"network": ["api.example.com"]'),
        ({"network": "any"}, "connect ENETUNREACH 192.0.2.1:443", ""),
        ({}, "there is no such note", ""),
    ],
)
async def test_a_result_that_names_missing_access_says_that_confinement_may_be_the_reason(
    place: McpProject, permissions: dict[str, Any], text: str, step: str
) -> None:
    place.declare(permissions=permissions)
    answer = {"content": [{"type": "text", "text": text}], "isError": True}
    (place.folder / "answer.json").write_text(json.dumps(answer))
    async with place.yard() as yard:
        await allow(yard)
        envelope = (await call(yard, "echo", text="x")).envelope
    assert text in envelope.text
    assert (step in envelope.text and "Toolyard confines it" in envelope.text) is bool(step)


@pytest.mark.requirement("confinement:missing-paths")
async def test_a_folder_of_the_project_that_it_may_write_is_made(place: McpProject, tmp_path: Path) -> None:
    place.declare(permissions={"write": ["out", str(tmp_path / "elsewhere")]})
    async with place.yard() as yard:
        await allow(yard)
        entry = yard.mcp.servers.declarations.get("tiny")
        assert entry is not None
        reach = yard.mcp.servers.describe_access(entry)
    assert (place.project / "out").is_dir()
    assert any(f"cannot write {tmp_path / 'elsewhere'}" in line for line in reach)


async def test_what_it_prints_beside_its_messages_is_in_its_log(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        await call(yard, "echo", text="x")
    log = (place.home / "logs/mcp-tiny.log").read_text()
    assert "warming up" in log
    assert "a line that is no message" in log


async def test_closing_leaves_no_process_and_a_cancelled_call_ends(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        hanging = asyncio.create_task(call(yard, "hang"))
        await wait_until((place.folder / "hanging").exists)
        pid = place.pid
        assert is_alive(pid)
        hanging.cancel()
        await asyncio.wait({hanging})
        assert not (await call(yard, "echo", text="x")).envelope.error
    assert not is_alive(pid)


async def forever(*_: object) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize("when", ["its pipes are opened", "it does not answer yet"])
async def test_a_call_cancelled_while_its_server_starts_leaves_no_process(
    place: McpProject, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    async with place.yard() as yard:
        await allow(yard)
        (place.folder / "pid").unlink()
        (place.folder / "silent").touch()
        with monkeypatch.context() as patched:
            if when == "its pipes are opened":
                patched.setattr(asyncio.get_running_loop(), "connect_write_pipe", forever)
            calling = asyncio.create_task(call(yard, "echo", text="x"))
            await wait_until(place.has_pid)
            pid = place.pid
            calling.cancel()
            await asyncio.wait({calling})
        await wait_until(lambda: not is_alive(pid))
        (place.folder / "silent").unlink()
        assert (await call(yard, "echo", text="x")).envelope.text == "x"


@pytest.mark.requirement("mcp:pinned")
async def test_a_check_of_changed_tools_that_was_cancelled_is_made_by_the_next_call(
    place: McpProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection.Connection, "_follow_changes", forever)
    async with place.yard() as yard:
        await allow(yard)
        assert not (await call(yard, "change", text="x")).envelope.error
        checking = asyncio.Event()

        async def list_tools(*_: object) -> Any:
            checking.set()
            await forever()

        with monkeypatch.context() as patched:
            patched.setattr(server_connection, "list_tools", list_tools)
            first = asyncio.create_task(call(yard, "echo", text="x"))
            await asyncio.wait_for(checking.wait(), 60)
            first.cancel()
            await asyncio.wait({first})
        outcome = await call(yard, "echo", text="x")
    assert outcome.envelope.context["reason"] == "DENIED"


@pytest.mark.requirement("mcp:pinned")
async def test_no_call_passes_while_another_one_checks_the_changed_tools(
    place: McpProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection.Connection, "_follow_changes", forever)
    async with place.yard() as yard:
        await allow(yard)
        assert not (await call(yard, "change", text="x")).envelope.error
        checking, go, real = list[object](), asyncio.Event(), server_connection.list_tools

        async def list_tools(client: Any, stream: Any) -> Any:
            checking.append(client)
            await go.wait()
            return await real(client, stream)

        monkeypatch.setattr(server_connection, "list_tools", list_tools)
        both = [asyncio.create_task(call(yard, "echo", text="x")) for _ in range(2)]
        await wait_until(lambda: len(checking) >= len(both))
        go.set()
        assert all(outcome.envelope.error for outcome in await asyncio.gather(*both))


async def test_a_server_that_is_being_stopped_may_be_started_again_meanwhile(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        before = await yard.mcp.servers.get_connection("tiny")
        stopping = asyncio.create_task(yard.mcp.servers.stop("tiny"))
        await run_loop_once()  # it has begun
        assert (await call(yard, "echo", text="x")).envelope.text == "x"
        await stopping
        assert await yard.mcp.servers.get_connection("tiny") is not before
        assert state(yard) is ServerState.RUNNING


@pytest.mark.requirement("r:R29")
async def test_whoever_sees_that_a_server_has_crashed_finds_the_crash_counted(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        servers, loop = yard.mcp.servers, asyncio.get_running_loop()
        ended = (await servers.get_connection("tiny")).ended
        counted: asyncio.Future[int] = loop.create_future()

        def look() -> None:
            if ended.done():
                counted.set_result(servers.crash_count)
            else:
                loop.call_soon(look)

        look()
        os.kill(place.pid, signal.SIGKILL)
        assert await asyncio.wait_for(counted, 60) == 1


async def test_a_server_that_has_ended_is_over_when_its_last_answer_is_heard(
    place: McpProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_start, "DRAIN_S", 60.0)
    async with place.yard() as yard:
        children, starter = yard.mcp.servers.context.processes()
        launch = Launch(argv=(sys.executable, "-c", ""), cwd=place.project, profile=None, environment={})
        child, stdout_ended = await starter.spawn(launch, {}), asyncio.Event()
        over = asyncio.create_task(server_start.wait_died(child, stdout_ended))
        await child.wait()
        assert await asyncio.wait({over}, timeout=0) == (set(), {over})
        stdout_ended.set()
        assert await asyncio.wait_for(over, 60) == 0
        await children.stop(child)
        for pipe in (child.stdin, child.stdout, child.stderr):
            os.close(pipe)


async def test_the_answer_of_a_server_that_ends_at_once_counts(place: McpProject) -> None:
    async with place.yard() as yard:
        await allow(yard)
        assert (await call(yard, "goodbye", text="x")).envelope.text == "x"


async def test_toolyard_itself_works_as_a_server_over_stdio(place: McpProject, tmp_path: Path) -> None:
    other, home = tmp_path / "other", tmp_path / "other-home"
    other.mkdir()
    home.mkdir()
    (other / "a.txt").write_text("from afar\n")
    started = stdio(other, home)
    place.write({"far": {"command": started.command, "args": started.args, "env": {"PATH": os.environ["PATH"]}}})
    async with asyncio.timeout(180), place.yard() as yard:
        await allow(yard, "far")
        outcome = await yard.calls.settle(yard.calls.request("mcp__far__Read", {"path": "a.txt"}))
    assert outcome.envelope.data["content"] == "1\tfrom afar"
    assert isinstance(outcome.envelope, Envelope)


async def test_a_server_at_an_address_works_with_its_headers(place: McpProject, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("from afar\n")
    async with asyncio.timeout(180), Yard(load_config(other, tmp_path / "other-home")) as far, serve_http(far) as url:
        place.write({"far": {"type": "http", "url": url, "headers": {"X-Test-Key": "mine"}}})
        async with place.yard() as yard:
            await allow(yard, "far")
            spec = yard.tools.get("mcp__far__Read").spec
            outcome = await yard.calls.settle(yard.calls.request("mcp__far__Read", {"path": "a.txt"}))
        (record,) = await far.state.journal.page(Query(), limit=5)
    assert spec.risk is Risk.NETWORK
    assert outcome.envelope.data["content"] == "1\tfrom afar"
    assert record.caller == "key:mine"


async def test_an_address_that_nobody_answers_is_a_clear_failure(place: McpProject) -> None:
    place.write({"tiny": {"url": "http://127.0.0.1:9/mcp"}})
    async with asyncio.timeout(180), place.yard() as yard:
        with pytest.raises(Failure, match="tiny did not start"):
            await allow(yard)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"type": "sse", "url": "https://a.example/sse"}, "SSE transport is not supported"),
        ({}, "either a command or a url"),
        ({"command": "a", "args": "b"}, "args must be a list of texts"),
        ({"url": "ftp://a.example"}, "must begin with http"),
        ({"command": "a", "env": {"A": 1}}, "env must be an object of texts"),
        ("a", "expected an object"),
    ],
)
async def test_what_is_wrong_in_the_file_is_said_and_the_rest_works(
    place: McpProject, entry: Any, problem: str
) -> None:
    place.write({"bad": entry, "tiny": {"command": sys.executable, "args": [str(TINY), str(place.folder)]}})
    async with place.yard() as yard:
        declarations = yard.mcp.servers.declarations
        assert [one.name for one in declarations.all()] == ["tiny"]
        (reported,) = declarations.problems
    assert problem in reported
