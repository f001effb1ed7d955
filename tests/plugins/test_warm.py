"""Warm processes: bounded, gone when they are not needed, never the reason why a call fails."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.children import LINUX, ZOO, is_gone
from tests.plugins.test_warm_same import (
    PER_CALL,
    Refuses,
    call,
    folder_with,
    launch_of,
    make_warm,
    run,
    stand_by,
    starters,
)
from tests.waiting import run_loop_once, wait_until
from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.plugins.process.child import RunTimes, run_child
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdStarter
from toolyard.plugins.process.launch import ChildProcess, Launch, Starter
from toolyard.plugins.process.warm import fork_server, standby_pool, warm_starter
from toolyard.plugins.process.warm.prestarted_process import FOLDER, Interpreter, parse_warm_command
from toolyard.plugins.process.warm.warm_starter import WarmStarter
from toolyard.process_numbers import find_processes
from toolyard.protocol.manifests.manifest import Limits

pytestmark = pytest.mark.skipif(not LINUX, reason="warm starts need Linux")
ECHO = "import sys\nprint(sys.stdin.read(), sys.argv[1:])"


def echo(folder: Path, *arguments: str) -> Launch:
    if not (folder / "main.py").exists():
        folder_with(folder, "main.py", ECHO)
    return launch_of(folder, sys.executable, "main.py", *arguments)


def about(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_text("utf-8")


def close_pipes(child: ChildProcess) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        os.close(pipe)


def is_dead(pid: int) -> bool:
    try:
        return re.search(r"State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text("ascii")) is not None
    except OSError:
        return True


async def on_standby(children: Children, warm: WarmStarter, launch: Launch) -> None:
    warm.servers.mark_unfit(warm.launch_key(launch, PER_CALL), "for this test")
    await stand_by(children, warm, launch)


@pytest.mark.requirement("plugin:warm:bounded")
async def test_a_server_that_is_not_used_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_starter, "IDLE_S", 8.0)
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        (pid,) = warm.servers.pids
        monkeypatch.setattr(warm_starter, "IDLE_S", 0.1)  # from the next look on
        await wait_until(lambda: not warm.servers.pids and is_dead(pid))
        assert (await call(children, warm, echo(tmp_path)))[0] == 0


@pytest.mark.requirement("plugin:warm:bounded")
async def test_a_server_that_was_slow_to_make_is_kept_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_starter, "SLOW_S", -1.0)
    monkeypatch.setattr(warm_starter, "IDLE_S", 0.1)
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        warm.servers._end_idle()
        assert warm.servers.pids
        monkeypatch.setattr(warm_starter, "SLOW_IDLE_S", 0.0)
        await wait_until(lambda: not warm.servers.pids)


@pytest.mark.requirement("plugin:warm:bounded")
async def test_a_standby_that_is_not_used_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby_pool, "IDLE_S", 8.0)
    async with starters() as (children, _, warm):
        await on_standby(children, warm, echo(tmp_path))
        pids = warm.standbys.pids
        assert pids
        monkeypatch.setattr(standby_pool, "IDLE_S", 0.1)  # from the next look on
        await wait_until(lambda: not warm.standbys.pids and all(map(is_dead, pids)))


@pytest.mark.requirement("plugin:warm:bounded")
async def test_there_are_so_many_servers_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_starter, "MAX_SERVERS", 2)
    async with starters() as (children, _, warm):
        for word in ("a", "b", "c"):
            assert await make_warm(children, warm, echo(tmp_path, word))
        assert len(warm.servers.pids) == 2
        assert not warm.servers.is_ready(warm.launch_key(echo(tmp_path, "a"), PER_CALL))
        assert warm.servers.is_ready(warm.launch_key(echo(tmp_path, "c"), PER_CALL))


@pytest.mark.requirement("plugin:warm:bounded")
async def test_servers_take_so_much_memory_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path, "a"))
        (pid,) = warm.servers.pids
        size = int(about(pid, "statm").split()[1]) * os.sysconf("SC_PAGESIZE")
        monkeypatch.setattr(warm_starter, "MAX_BYTES", size + size // 2)
        assert await make_warm(children, warm, echo(tmp_path, "b"))
        assert warm.servers.pids != [pid]
        assert len(warm.servers.pids) == 1


@pytest.mark.requirement("plugin:warm:bounded")
async def test_standbys_follow_the_use_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby_pool, "MAX_PROCESSES", 3)
    async with starters() as (children, _, warm):
        await on_standby(children, warm, echo(tmp_path, "a"))
        assert len(warm.standbys.pids) == 1
        for _ in range(3):
            await asyncio.gather(*(call(children, warm, echo(tmp_path, "a")) for _ in range(6)))
        await wait_until(lambda: warm.standbys.count_ready(warm.launch_key(echo(tmp_path, "a"), PER_CALL)) == 3)
        await call(children, warm, echo(tmp_path, "b"))
        assert len(warm.standbys.pids) <= 3


@pytest.mark.requirement("plugin:warm:bounded")
async def test_standbys_take_so_much_memory_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby_pool, "MAX_BYTES", 1)
    async with starters() as (children, _, warm):
        await on_standby(children, warm, echo(tmp_path))
        for _ in range(2):
            await asyncio.gather(*(call(children, warm, echo(tmp_path)) for _ in range(3)))
            await wait_until(lambda: warm.standbys.count_ready(warm.launch_key(echo(tmp_path), PER_CALL)) == 1)
            assert len(warm.standbys.pids) == 1


@pytest.mark.requirement("plugin:warm:bounded")
async def test_nothing_is_left_when_the_host_closes(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        await on_standby(children, warm, echo(tmp_path, "other"))
        child = await warm.spawn(echo(tmp_path), PER_CALL)
        await wait_until(lambda: bool(warm.servers.spares))
        pids = [*warm.servers.pids, *warm.servers.spares, *warm.standbys.pids, child.pid]
        assert len(pids) >= 4
        assert not any(map(is_dead, pids))
    await wait_until(lambda: all(map(is_gone, pids)))
    close_pipes(child)


@pytest.mark.requirement("plugin:warm:bounded")
async def test_nothing_is_left_when_the_host_is_killed(tmp_path: Path) -> None:
    folder_with(tmp_path, "main.py", ECHO)
    root = str(Path(__file__).parents[2])
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.plugins.warm_host", str(tmp_path), cwd=root, stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout
    async with asyncio.timeout(60):
        pids = json.loads(await host.stdout.readline())
    assert len(pids) >= 4
    assert not any(map(is_dead, pids))
    host.kill()
    await host.wait()
    await wait_until(lambda: all(map(is_dead, pids)))


@pytest.mark.requirement("plugin:warm:bounded")
async def test_a_forked_call_is_contained_like_any_other(tmp_path: Path) -> None:
    source = (
        "import os, subprocess\nsubprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3, start_new_session=True)\n"
        "print(os.getpid())\ninput()"
    )
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    launch = replace(launch, limits=Limits(cpu_s=7, open_files=77))
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        child = await warm.spawn(launch, PER_CALL)
        number = children.number_of(child.pid)
        limits = about(child.pid, "limits")
        assert re.search(rf"Max file locks +{number} +{number}", limits)
        assert re.search(r"Max cpu time +7 +8", limits)
        assert re.search(r"Max open files +77 +77", limits)

        def of_the_call() -> list[int]:
            return [
                one.pid for one in find_processes(children.numbers.prefix) if one.number == number and not one.zombie
            ]

        await wait_until(lambda: len(of_the_call()) == 2)
        assert (await run(children, child))[1] == f"{child.pid}\n"
        await wait_until(lambda: not of_the_call())


@pytest.mark.requirement("plugin:warm:bounded")
async def test_a_forked_call_can_be_stopped(tmp_path: Path) -> None:
    source = "import os, time\nif input() == 'wait':\n    os.mkdir('on')\n    time.sleep(600)"
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        child = await warm.spawn(launch, PER_CALL)
        running = asyncio.create_task(run_child(child, b"wait", children=children, limits=Limits()))
        await wait_until((tmp_path / "on").exists)
        running.cancel()
        assert await child.wait() == -signal.SIGTERM


@pytest.mark.requirement("plugin:warm:bounded")
async def test_what_a_launch_was_before_ends(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        (old,) = warm.servers.pids
        changes = [replace(echo(tmp_path), version="2"), replace(echo(tmp_path), environment={"PATH": "/bin"})]
        for changed in changes:
            assert await make_warm(children, warm, changed)
            (new,) = warm.servers.pids
            await wait_until(lambda old=old: is_dead(old))  # type: ignore[misc]
            old = new


def confined(launch: Launch) -> Launch:
    folder = str(launch.cwd)
    trees = (*list_program_trees(launch.argv[0]), folder, FOLDER)
    return replace(launch, profile=Profile(read=trees, write=(folder,)))


def list_descriptors(pid: int) -> dict[str, str]:
    folder = Path(f"/proc/{pid}/fd")
    return {name: os.readlink(folder / name) for name in os.listdir(folder)}


@pytest.mark.requirement("plugin:warm:apart")
async def test_what_is_written_into_a_child_that_waits_reaches_no_call(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        await wait_until(lambda: bool(warm.servers.spares))
        (spare,) = warm.servers.spares
        forged = (8).to_bytes(4, "big") + b"\nCALL=no" + b'{"forged": true}'
        for number, target in list_descriptors(spare).items():
            if target.startswith("pipe:"):
                pipe = os.open(f"/proc/{spare}/fd/{number}", os.O_RDWR | os.O_NONBLOCK)
                os.write(pipe, forged)
                os.close(pipe)
            else:  # a socket cannot be opened a second time, by nobody
                with pytest.raises(OSError, match="No such device"):
                    os.open(f"/proc/{spare}/fd/{number}", os.O_RDWR | os.O_NONBLOCK)
        child = await warm.spawn(echo(tmp_path), PER_CALL)
        assert child.pid == spare
        assert await run(children, child, b"mine") == (0, "mine []\n", "")


@pytest.mark.requirement("plugin:warm:apart", "plugin:warm:same")
async def test_a_confined_child_of_a_fork_server_moves_files_between_folders(tmp_path: Path) -> None:
    source = "import os\nos.rename('a/file', 'b/file')\nprint(os.listdir('b'))\nos.rename('b/file', 'a/file')"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/file").touch()
    launch = confined(launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py"))
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        assert await make_warm(children, warm, launch)
        warm.cold = Refuses()
        assert await call(children, warm, launch) == expected == (0, "['file']\n", "")


@pytest.mark.requirement("plugin:warm:fallback")
@pytest.mark.parametrize("enabled", [True, False])
async def test_both_the_manifest_and_the_host_can_switch_it_off(enabled: bool, tmp_path: Path) -> None:
    children = Children()
    warm = WarmStarter(children, ColdStarter(children), enabled=enabled)
    launch = replace(echo(tmp_path), warm=not enabled)
    try:
        for _ in range(2):
            assert (await call(children, warm, launch))[0] == 0
        assert (warm.servers.pids, warm.standbys.pids) == ([], [])
    finally:
        await warm.close()
        await children.close()


@pytest.mark.requirement("plugin:warm:fallback")
async def test_without_numbers_all_starts_are_cold(tmp_path: Path) -> None:
    children = Children(numbered=False)
    warm = WarmStarter(children, ColdStarter(children))
    try:
        for _ in range(2):
            assert (await call(children, warm, echo(tmp_path)))[0] == 0
        assert (warm.servers.pids, warm.standbys.pids) == ([], [])
    finally:
        await warm.close()
        await children.close()


@pytest.mark.requirement("plugin:warm:fallback")
async def test_a_dead_server_costs_no_call_and_comes_back(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        os.kill(warm.servers.pids[0], signal.SIGKILL)
        assert (await call(children, warm, echo(tmp_path)))[0] == 0
        assert await make_warm(children, warm, echo(tmp_path))


@pytest.mark.requirement("plugin:warm:fallback")
async def test_the_end_of_an_old_server_is_not_that_of_the_one_that_followed_it(tmp_path: Path) -> None:
    launch = echo(tmp_path)
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        (old,) = warm.servers.pids
        os.utime(tmp_path / "main.py", (1, 1))  # the next call finds it out of date, and makes another one
        await call(children, warm, launch)
        await wait_until(lambda: is_dead(old))
        await wait_until(lambda: warm.servers.is_ready(warm.launch_key(launch, PER_CALL)))


@pytest.mark.requirement("plugin:warm:fallback")
async def test_a_child_for_a_call_that_was_given_up_does_not_wait_at_a_server_that_is_over(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        (server,) = warm.servers._servers.values()
        asking = asyncio.create_task(server._request_and_wait())
        await run_loop_once()  # it has begun
        answer = server._requests[-1][1]
        assert answer is not None
        answer.add_done_callback(lambda _: asking.cancel())
        answer.add_done_callback(lambda _: server.retire())
        await asyncio.wait({asking})
        assert asking.cancelled()
        assert not server.spares


@pytest.mark.requirement("plugin:warm:fallback")
async def test_a_server_that_dies_takes_no_running_call_with_it(tmp_path: Path) -> None:
    source = "import sys\nprint(sys.stdin.read())\nsys.exit(3)"
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        running = [await warm.spawn(launch, PER_CALL) for _ in range(3)]
        (server,) = warm.servers.pids
        os.kill(server, signal.SIGKILL)
        await wait_until(lambda: is_dead(server))
        for child in running:
            assert await run(children, child, b"told") == (3, "told\n", "")


@pytest.mark.requirement("plugin:warm:fallback")
async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        (server,) = warm.servers.pids
        os.kill(server, signal.SIGSTOP)
        monkeypatch.setattr(fork_server, "_FORK_S", 0.2)
        for _ in range(3):  # the first ones find children that were forked ahead
            child = await warm.spawn(echo(tmp_path), PER_CALL)
            if "fork_main" not in about(child.pid, "cmdline"):
                assert (await run(children, child))[0] == 0
                break
            children.end(child.pid)
            close_pipes(child)
        await wait_until(lambda: is_dead(server))


@pytest.mark.requirement("plugin:warm:fallback")
async def test_a_call_that_is_given_up_while_it_starts_harms_no_other(tmp_path: Path) -> None:
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, echo(tmp_path))
        spawned = []
        for turns in range(8):
            start = asyncio.create_task(warm.spawn(echo(tmp_path), PER_CALL))
            for _ in range(turns):
                await run_loop_once()
            if start.done() or not start.cancel():
                spawned.append(start.result())
        ran = await asyncio.gather(*(call(children, warm, echo(tmp_path)) for _ in range(6)))
        ran += [await run(children, child) for child in spawned]
        assert {one[0] for one in ran} == {0}
        assert len(set(ran)) == 1


PACKAGES = {
    "an import starts a thread": "from threading import *\nThread(target=Event().wait, daemon=True).start()",
    "an import prints": "print('hello from a package')",
    "an import leaves a file open": "kept = open('/dev/null')",
    "an import changes sys.path": "import sys\nsys.path.append('/nowhere')",
    "an import seeds a source of randomness with a value of its own": "import random\nown = random.Random(5)",
    "its imports fail": "1 / 0",
}


@pytest.mark.requirement("plugin:warm:fallback", "plugin:warm:same")
@pytest.mark.parametrize("reason", PACKAGES)
async def test_packages_that_do_not_survive_a_fork_are_not_forked(reason: str, tmp_path: Path) -> None:
    source = (
        "import sys\ntry:\n    import odd\nexcept ZeroDivisionError:\n    print('odd')\nprint('done', sys.path[-1])"
    )
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "odd.py").write_text(PACKAGES[reason], encoding="utf-8")
    launch = replace(launch, environment={**launch.environment, "PYTHONPATH": str(installed)})
    async with starters() as (children, cold, warm):
        expected = await call(children, cold, launch)
        assert "done" in expected[1]
        assert not await make_warm(children, warm, launch)
        assert warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL)) == reason
        assert await call(children, warm, launch) == expected


@pytest.mark.requirement("plugin:warm:fallback")
async def test_the_last_words_of_a_server_are_heard_though_its_death_is_seen_first(tmp_path: Path) -> None:
    folder_with(tmp_path, "main.py", "import odd")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/odd.py").write_text(PACKAGES["an import prints"], encoding="utf-8")
    launch = launch_of(tmp_path, sys.executable, "main.py")
    launch = replace(launch, environment={**launch.environment, "PYTHONPATH": str(tmp_path / "site-packages")})
    async with starters() as (children, _, warm):
        child = await warm.spawn(launch, PER_CALL)
        (server,) = warm.servers._servers.values()
        asyncio.get_running_loop().remove_reader(server._socket)
        await run(children, child)
        await wait_until(lambda: bool(warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL))))
        assert warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL)) == "an import prints"


@pytest.mark.requirement("plugin:warm:fallback")
async def test_an_import_that_takes_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_READY_S", 4.0)  # by then it says hello
    launch = launch_of(folder_with(tmp_path, "main.py", "import slow"), sys.executable, "main.py")
    launch = replace(launch, environment={**launch.environment, "PYTHONPATH": str(tmp_path / "site-packages")})
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/slow.py").write_text("import time\ntime.sleep(600)", encoding="utf-8")
    async with starters() as (children, _, warm):
        child = await warm.spawn(launch, PER_CALL)
        (server,) = warm.servers.pids
        await wait_until(lambda: is_dead(server) and not warm.servers.pids)
        assert warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL))
        await children.stop(child, 0.0)
    close_pipes(child)


@pytest.mark.requirement("plugin:warm:same")
async def test_no_line_of_a_plugin_runs_before_its_call(tmp_path: Path) -> None:
    source = "import json, local\nwith open('ran', 'a') as file:\n    file.write('x')\n"
    launch = launch_of(folder_with(tmp_path, "main.py", source), sys.executable, "main.py")
    (tmp_path / "local.py").write_text("with open('local_ran', 'a') as file:\n    file.write('x')\n", encoding="utf-8")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        await call(children, warm, launch)
        await wait_until(lambda: bool(warm.servers.spares))
        other = replace(launch, argv=(*launch.argv, "other"))
        await on_standby(children, warm, other)
    assert (tmp_path / "ran").read_text("ascii") == "xxx"
    assert (tmp_path / "local_ran").read_text("ascii") == "xxx"


@pytest.mark.requirement("plugin:warm:fallback")
@pytest.mark.parametrize(("name", "word"), [("python3", "fork_main"), ("node", "--require")])
async def test_an_interpreter_that_cannot_be_made_warm_stays_cold(name: str, word: str, tmp_path: Path) -> None:
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\ncase "$*" in *{word}*) exit 1;; esac\necho ran\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "main.js").touch()
    (tmp_path / "main.py").touch()
    launch = launch_of(tmp_path, str(program), "main.js" if name == "node" else "main.py")
    async with starters() as (children, _, warm):
        for _ in range(6):
            assert await call(children, warm, launch) == (0, "ran\n", "")
            await wait_until(lambda: not warm.servers.pids and not warm.standbys.pids)
        assert not warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL))


@pytest.mark.requirement("plugin:warm:fallback")
@pytest.mark.parametrize(
    "words",
    [("python3", "-m", "main"), ("python3", "-c", "pass"), ("python3", "-X", "dev", "main.py"), ("python3",),
     ("python3", "missing.py"), ("bash", "main.py"), ("node", "--inspect", "main.js"), ("ruby", "main.py")],
)  # fmt: skip
def test_odd_commands_have_no_warm_start(words: tuple[str, ...], tmp_path: Path) -> None:
    folder_with(tmp_path, "main.py", ECHO)
    (tmp_path / "main.js").touch()
    assert parse_warm_command(launch_of(tmp_path, f"/usr/bin/{words[0]}", *words[1:])) is None


@pytest.mark.requirement("plugin:warm:fallback")
def test_variables_that_run_code_first_forbid_a_warm_start(tmp_path: Path) -> None:
    (tmp_path / "main.js").touch()
    launch = launch_of(tmp_path, "/usr/bin/node", "main.js")
    recipe = parse_warm_command(launch)
    assert recipe
    assert recipe.interpreter is Interpreter.NODE
    assert parse_warm_command(replace(launch, environment={"NODE_OPTIONS": "--require ./x.js"})) is None


@pytest.mark.requirement("plugin:warm:same")
@pytest.mark.parametrize("name", ["scatters.py", "floods_both.py", "leaves_stdout_open.py", "closes_stdin.py"])
async def test_the_zoo_behaves_the_same_when_forked(name: str, tmp_path: Path) -> None:
    shutil.copy(ZOO / name, tmp_path / name)
    launch = launch_of(tmp_path, sys.executable, name)

    async def ends(starter: Starter) -> tuple[object, ...]:
        child = await starter.spawn(launch, PER_CALL)
        ended = await run_child(child, b"{}", children=children, limits=Limits(), times=RunTimes(drain_s=0.2))
        return ended.answer, ended.exit_code, ended.signal, ended.stdout_bytes, ended.warnings

    async with starters() as (children, cold, warm):
        expected = await ends(cold)
        assert await ends(warm) == expected
        await wait_until(lambda: bool(warm.servers.spares))
        warm.cold = Refuses()
        assert await ends(warm) == expected
