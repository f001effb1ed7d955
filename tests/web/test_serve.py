"""``toolyard serve`` from outside: how it starts, what it prints, how it ends, and who goes through it."""

import asyncio
import json
import os
import pty
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin
from tests.waiting import wait_for_value, wait_until
from tests.web.server_process import make_arguments, read_presence, run_command, start_server
from toolyard.config import load_config
from toolyard.errors import UsageError
from toolyard.settings import SETTINGS
from toolyard.web.server.lifecycle import Server, ServerOptions
from toolyard.web.server.listener import MAX_OPEN_FILES

SLEEPY = """
import json, os, sys, time
sys.stdin.read()
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print(json.dumps({"status": "success", "result": "slept"}))
"""

ASYNC = """
import json, os, sys, time, urllib.request
sys.stdin.read()
print(json.dumps({"status": "success", "result": "{{VCP_ASYNC_RESULT::Slow::s-1}}"}), flush=True)
sys.stderr.write("PROGRESS 0.5 half way\\n")
sys.stderr.flush()
while not os.path.exists("go"):
    time.sleep(0.01)
url = f"{os.environ['CALLBACK_BASE_URL']}/Slow/s-1"
body = json.dumps({"status": "Succeed", "message": "the film is ready"}).encode()
urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}))
"""


def add_plugin(place: Path, name: str, code: str, **more: Any) -> Path:
    folder = make_plugin(place / "given", name, **more)
    (folder / "main.py").write_text(code)
    return folder


def plugin_options(place: Path) -> tuple[str, ...]:
    return ("--plugins", str(place / "given"), "--trust")


async def wait_for_file(file: Path) -> None:
    await wait_until(file.exists)


@pytest.mark.requirement("http:listen")
def test_the_server_listens_on_this_machine_port_6005_unless_told_otherwise() -> None:
    assert ServerOptions().host == "127.0.0.1"
    assert next(setting.default for setting in SETTINGS if setting.name == "port") == 6005


@pytest.mark.requirement("http:listen", "p:P6")
async def test_a_server_takes_as_many_open_files_as_the_system_gives_it(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        async with start_server(tmp_path) as server:
            given, _ = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert given == (min(hard, MAX_OPEN_FILES) if hard != resource.RLIM_INFINITY else MAX_OPEN_FILES)


@pytest.mark.requirement("http:listen", "http:key")
async def test_a_first_start_without_a_terminal_says_where_the_key_is_and_prints_none(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        assert server.lines[1] == f"The key is in {tmp_path / 'home/key'}"
        assert server.key not in "".join(server.lines)
        assert server.lines[2].startswith(f"Open this link once to sign in: {server.url}/login?link=")
        assert (await server.request("GET", "/v1/tools"))[0] == 200
        server.signal(signal.SIGTERM)
        code, log = await server.wait_for_end()
        assert code == 0
        assert server.key not in log
        assert all(json.loads(line)["level"] for line in log.splitlines() if line.startswith("{"))
    async with start_server(tmp_path) as server:
        assert len(server.lines) == 2
        assert server.key not in "".join(server.lines)
    code, out, _ = await run_command(tmp_path, "config", "show", "--key")
    assert (code, out.strip()) == (0, server.key)


@pytest.mark.requirement("http:key")
@pytest.mark.parametrize("quiet", [False, True])
async def test_a_first_start_on_a_terminal_shows_the_key_unless_it_is_quiet(tmp_path: Path, quiet: bool) -> None:
    words = make_arguments(tmp_path, "serve", "--port", "0", *(["--quiet"] if quiet else []))
    terminal, end = pty.openpty()
    process = await asyncio.create_subprocess_exec(*words, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = b""
    while b"The key" not in seen or not seen.endswith(b"\n"):
        seen += await asyncio.to_thread(os.read, terminal, 4096)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    os.close(terminal)
    key = (tmp_path / "home/key").read_text().strip()
    assert (f"The key: {key}" in seen.decode()) == (not quiet)
    assert (f"The key is in {tmp_path / 'home/key'}" in seen.decode()) == quiet


@pytest.mark.requirement("http:listen")
async def test_a_terminal_that_closes_ends_the_server_as_sigterm_does(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        server.signal(signal.SIGHUP)
        code, _ = await server.wait_for_end()
        assert code == 0
        assert not (tmp_path / "home/server.json").exists()


@pytest.mark.requirement("http:key")
async def test_there_is_no_key_to_show_before_the_first_start(tmp_path: Path) -> None:
    code, out, err = await run_command(tmp_path, "config", "show", "--key")
    assert (code, out) == (1, "")
    assert "toolyard serve" in err


@pytest.mark.requirement("http:listen")
async def test_the_port_of_the_settings_is_taken_and_one_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.toml").write_text(f"port = {port}\n")
        code, _, err = await run_command(tmp_path, "serve")
    assert code == 1
    assert "cannot listen on 127.0.0.1" in err
    assert "choose another port with --port" in err
    assert not (tmp_path / "home" / "server.json").exists()


@pytest.mark.requirement("s:S-41")
async def test_other_machines_are_let_in_only_on_purpose_and_with_a_long_key(tmp_path: Path) -> None:
    code, _, err = await run_command(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (code, "--allow-remote" in err) == (2, True)
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "key").write_text("a-short-key\n")
    code, _, err = await run_command(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert (code, "32 characters" in err) == (2, True)
    config = load_config(tmp_path / "project", tmp_path / "home")
    with pytest.raises(UsageError):
        Server(config, ServerOptions(host="192.168.0.1"))
    with pytest.raises(UsageError):
        Server(config, ServerOptions(host="example.org", allow_remote=True))
    (tmp_path / "home" / "key").write_text("k" * 32)
    async with start_server(tmp_path, "--host", "0.0.0.0", "--allow-remote") as server:
        assert (await server.request("GET", "/v1/tools"))[0] == 200


@pytest.mark.requirement("r:R05")
async def test_a_second_server_on_one_home_exits_3(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        code, _, err = await run_command(tmp_path, "serve", "--port", "0")
        assert code == 3
        assert str(server.process.pid) in err
        assert (await server.request("GET", "/v1/tools"))[0] == 200


@pytest.mark.requirement("cli:through-server")
async def test_other_processes_find_the_server_while_it_runs(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        result = read_presence(server.home)
        assert (result["url"], result["pid"]) == (server.url, server.process.pid)
        assert (server.home / "server.json").stat().st_mode & 0o777 == 0o600
        server.signal(signal.SIGINT)
        assert (await server.wait_for_end())[0] == 0
    assert not (server.home / "server.json").exists()


@pytest.mark.requirement("r:R03")
async def test_sigterm_waits_for_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    folder = add_plugin(tmp_path, "Sleepy", SLEEPY)
    async with start_server(tmp_path, *plugin_options(tmp_path)) as server:
        running = asyncio.create_task(server.request("POST", "/v1/tools/Sleepy", {}))
        await wait_for_file(folder / "started")
        server.signal(signal.SIGTERM)
        status = 200
        async with asyncio.timeout(60):
            while status == 200:
                status, _ = await server.request("GET", "/v1/tools")
        assert status == 503
        assert (await server.request("GET", "/readyz"))[0] == 503
        (folder / "go").touch()
        _, envelope = await running
        assert envelope["status"] == "success"
        assert (await server.wait_for_end())[0] == 0
    assert await _states(tmp_path) == {"success"}


@pytest.mark.requirement("r:R04")
async def test_a_second_signal_stops_at_once_and_leaves_every_row_settled(tmp_path: Path) -> None:
    folder = add_plugin(tmp_path, "Sleepy", SLEEPY)
    async with start_server(tmp_path, *plugin_options(tmp_path)) as server:
        running = asyncio.create_task(server.request("POST", "/v1/tools/Sleepy", {}))
        await wait_for_file(folder / "started")
        server.signal(signal.SIGTERM)
        await wait_for_value(lambda: server.request("GET", "/readyz"), lambda answer: answer[0] != 200)
        server.signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            _, envelope = await running
        assert envelope["context"]["reason"] == "CANCELLED"
        assert (await server.wait_for_end())[0] == 0
    assert await _states(tmp_path) == {"cancelled"}


async def _states(place: Path) -> set[str]:
    code, out, _ = await run_command(place, "journal", "list", "--json")
    assert code == 0
    result = json.loads(out)
    rows = result if isinstance(result, list) else next(value for value in result.values() if isinstance(value, list))
    return {row["state"] for row in rows}


@pytest.mark.requirement("cli:through-server")
async def test_a_call_goes_through_the_server_of_its_home_and_project(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        (server.project / "a.txt").write_text("one\n")
        code, out, _ = await run_command(tmp_path, "call", "Read", "path=a.txt")
        assert (code, json.loads(out)["status"]) == (0, "success")
        write = json.dumps({"path": "a.txt", "content": "two\n"})
        code, out, _ = await run_command(tmp_path, "call", "Write", "--args", write, "--dialect", "backend")
        assert (code, json.loads(out)["tool_name"]) == (0, "Replace")  # it was read by the same caller
        code, out, _ = await run_command(tmp_path, "call", "Read", "path=none.txt")
        assert (code, json.loads(out)["error"]["code"]) == (1, "NOT_FOUND")
        _, calls = await server.request("GET", "/v1/calls")
        assert {(call["caller"], call["origin"]) for call in calls["data"]} == {(f"cli:{server.project}", "cli")}


@pytest.mark.requirement("cli:through-server")
async def test_a_call_of_another_project_runs_by_itself(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("b\n")
    async with start_server(tmp_path) as server:
        code, out, _ = await run_command(tmp_path, "call", "Read", "path=b.txt", project=other)
        assert (code, json.loads(out)["data"]["content"]) == (0, "1\tb")
        _, calls = await server.request("GET", "/v1/calls")
        assert [call["caller"] for call in calls["data"]] == [f"cli:{other}"]


@pytest.mark.requirement("cli:through-server")
async def test_the_server_runs_the_call_and_not_the_command(tmp_path: Path) -> None:
    add_plugin(
        tmp_path, "WhoRuns", "import json, os; print(json.dumps({'status': 'success', 'result': str(os.getppid())}))"
    )
    async with start_server(tmp_path, *plugin_options(tmp_path)) as server:
        code, out, err = await run_command(tmp_path, "call", "WhoRuns")  # the command itself knows no such plugin
        assert (code, err) == (0, "")
        assert json.loads(out)["status"] == "success"
        _, calls = await server.request("GET", "/v1/calls")
        assert calls["data"][0]["tool"] == "WhoRuns"


@pytest.mark.requirement("cli:through-server")
async def test_a_task_is_waited_for_through_the_server_unless_it_is_let_go(tmp_path: Path) -> None:
    folder = add_plugin(tmp_path, "Slow", ASYNC, pluginType="asynchronous")
    async with start_server(tmp_path, *plugin_options(tmp_path)):
        pipe = asyncio.subprocess.PIPE
        waits = await asyncio.create_subprocess_exec(
            *make_arguments(tmp_path, "call", "Slow"), stdout=pipe, stderr=pipe
        )
        assert waits.stderr is not None
        async with asyncio.timeout(60):
            await waits.stderr.readuntil(b"half way")
            (folder / "go").touch()
            out = (await waits.communicate())[0].decode()
        assert (waits.returncode, "the film is ready" in json.loads(out)["text"]) == (0, True)
        code, out, _ = await run_command(tmp_path, "call", "Slow", "--detach")
        receipt = json.loads(out)
        assert (code, receipt["data"]["tasks"][0]["task_id"]) == (0, "s-1")


@pytest.mark.requirement("cli:through-server")
async def test_python_programs_go_through_it_too(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        (server.project / "a.txt").write_text("one\n")
        program = (
            "import sys, toolyard\n"
            "with toolyard.open(project=sys.argv[1], home=sys.argv[2]) as yard:\n"
            "    print(yard.call('Read', {'path': 'a.txt'}).status.value)\n"
            "    print(yard.call('Write', {'path': 'a.txt', 'content': 'x'}, dialect='backend')['tool_name'])\n"
        )
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(server.project), str(server.home), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await done.communicate()
        assert out.decode().split() == ["success", "Replace"]
        _, calls = await server.request("GET", "/v1/calls")
        assert [call["caller"][:5] for call in calls["data"]] == ["yard:", "yard:"]


@pytest.mark.requirement("cli:through-server", "python:tool-call-id", "python:shown", "python:arguments-text")
async def test_python_programs_answer_a_model_through_it(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        (server.project / "a.txt").write_text("line\n" * 300)
        program = (
            "import json, sys, toolyard\n"
            "with toolyard.open(project=sys.argv[1], home=sys.argv[2]) as yard:\n"
            "    many = {f'path{number}': 'a.txt' for number in range(1, 40)}\n"
            "    message = yard.call('LS', '{\"path\": \".\"}', dialect='openai', tool_call_id='call_7')\n"
            "    broken = yard.call('LS', '{\"path', dialect='anthropic', tool_call_id='toolu_7')\n"
            "    shown = yard.call('Read', many, shown=True)\n"
            "    print(json.dumps([message, broken, shown.to_dict()]))\n"
        )
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(server.project), str(server.home), stdout=asyncio.subprocess.PIPE
        )
        message, broken, shown = json.loads((await done.communicate())[0])
        assert (message["role"], message["tool_call_id"]) == ("tool", "call_7")
        assert (broken["tool_use_id"], broken["is_error"]) == ("toolu_7", True)
        assert shown["data"]["truncation"]["direction"] == "head"


@pytest.mark.requirement("cli:exit:unreachable")
async def test_a_server_that_runs_but_does_not_answer_exits_4(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        result = read_presence(server.home)
        (server.home / "server.json").write_text(json.dumps({**result, "url": "http://127.0.0.1:9"}))
        code, out, err = await run_command(tmp_path, "call", "LS")
        assert (code, out) == (4, "")
        assert "http://127.0.0.1:9" in err


@pytest.mark.requirement("cli:through-server")
async def test_what_a_killed_server_left_behind_is_no_server(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        server.signal(signal.SIGKILL)
        await server.wait_for_end()
        assert (server.home / "server.json").exists()
        code, out, _ = await run_command(tmp_path, "call", "LS")
        assert (code, json.loads(out)["status"]) == (0, "success")
    async with start_server(tmp_path) as again:
        assert read_presence(again.home)["pid"] == again.process.pid


@pytest.mark.requirement("http:safe")
async def test_serve_has_a_safe_start(tmp_path: Path) -> None:
    add_plugin(tmp_path, "Sleepy", SLEEPY)
    async with start_server(tmp_path, "--safe", *plugin_options(tmp_path)) as server:
        _, tools = await server.request("GET", "/v1/tools")
        assert "Sleepy" not in [tool["name"] for tool in tools["data"]]


@pytest.mark.requirement("r:R06")
async def test_a_damaged_state_stops_the_start_and_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    state = tmp_path / "home" / "state.db"
    state.write_bytes(b"this is no database at all" * 1000)
    code, _, err = await run_command(tmp_path, "serve", "--port", "0")
    assert code == 1
    assert str(state) in err
    assert "restore" in err
    assert state.read_bytes() == b"this is no database at all" * 1000
    assert not (tmp_path / "home" / "server.json").exists()


@pytest.mark.requirement("cli:through-server", "runner:cancel")
async def test_ctrl_c_cancels_the_call_at_the_server_and_its_result_is_printed(tmp_path: Path) -> None:
    folder = add_plugin(tmp_path, "Sleepy", SLEEPY)
    async with start_server(tmp_path, *plugin_options(tmp_path)):
        calling = await asyncio.create_subprocess_exec(
            *make_arguments(tmp_path, "call", "Sleepy"), stdout=asyncio.subprocess.PIPE
        )
        await wait_for_file(folder / "started")
        calling.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            out, _ = await calling.communicate()
        assert (calling.returncode, json.loads(out)["context"]["reason"]) == (1, "CANCELLED")


@pytest.mark.requirement("cli:start-up", "cli:through-server")
async def test_a_call_through_the_server_does_not_load_the_engine(tmp_path: Path) -> None:
    packages = (
        "engine",
        "tools",
        "storage",
        "plugins",
        "workspace",
        "gateway",
        "app",
        "protocol.tool",
        "protocol.call",
    )
    probe = (
        "import sys, atexit\n"
        f"names = {[f'toolyard.{name}' for name in packages]!r}\n"
        "atexit.register(lambda: print([name for name in names if name in sys.modules], file=sys.stderr))\n"
        "from toolyard.cli import main\nmain()"
    )
    async with start_server(tmp_path) as server:
        call = make_arguments(tmp_path, "call", "LS")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", probe, *call[3:], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        assert (json.loads(out)["status"], err.decode().strip()) == ("success", "[]")
        _, calls = await server.request("GET", "/v1/calls")
        assert [call["tool"] for call in calls["data"]] == ["LS"]


@pytest.mark.requirement("cli:through-server")
async def test_words_of_a_call_are_typed_by_the_tool_of_the_server(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        for name in ("a", "b"):
            (server.project / name).touch()
        code, out, _ = await run_command(tmp_path, "call", "LS", "limit=1", "ignore=b")
        assert (code, [entry["path"] for entry in json.loads(out)["data"]["entries"]]) == (0, ["a"])
        code, out, _ = await run_command(tmp_path, "call", "Nothing", "limit=1")
        assert (code, json.loads(out)["error"]["code"]) == (1, "NOT_FOUND")


@pytest.mark.requirement("cli:start-up")
async def test_other_commands_do_not_load_the_server() -> None:
    heavy = ("fastapi", "starlette", "uvicorn", "pydantic", "aiohttp", "prometheus_client", "websockets")
    program = (
        "import sys, toolyard.blocking\n"
        "from toolyard.cli.commands import call, config, serve\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    out, _ = await done.communicate()
    assert out.decode().strip() == "[]"
