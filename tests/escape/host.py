"""A host that runs the attackers on every start path: ``host.py FOLDER``. Writes FOLDER/results.json."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from tests.escape.attempts import ATTEMPTS, CONTROLLED, Kind
from tests.escape.scene import Scene, make_set_id_program
from tests.plugins.folders import manifest_text
from tests.waiting import PATIENCE_S, wait_until
from toolyard.config import load_config
from toolyard.confinement import landlock, seccomp
from toolyard.confinement.level import list_missing_everywhere
from toolyard.errors import ToolyardError
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.plugins.package.install import GitSource, fetch_commit
from toolyard.plugins.process.cold_starter import ColdChild
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.warm.warm_starter import WarmStarter
from toolyard.protocol.access import AccessChoice, ConfinementLevel
from toolyard.protocol.envelope import Failure
from toolyard.tools.validation import program
from toolyard.yard.yard import Yard

HERE = Path(__file__).parent
VCP_HOST = HERE.parent / "vcp/host"
PROGRAMS = {
    "python": ("attacker.py", "python main.py"),
    "node": ("attacker.js", "node main.js"),
    "bash": ("attacker.sh", "bash main.sh"),
}
CLOSED: dict[str, Any] = {"network": []}  # everything else is closed by default
MCP_SERVER = "attacker"
PER_CALL = {"VCP_REQUEST_IP": ""}
PATIENT = {"protocol": "stdio", "timeout": 600_000}
VICTIM = """
import os, pathlib, time
pathlib.Path(os.environ["HOME"], "pid").write_text(str(os.getpid()))
print('{"status": "success", "result": "Submitted: {{VCP_ASYNC_RESULT::Victim::job}}"}', flush=True)
time.sleep(600)
"""


@dataclass(frozen=True)
class StartPath:
    """One way in which an attacker is started, and what that way grants to it."""

    name: str
    language: str
    run: "Callable[[Host, StartPath], Awaitable[None]]"
    granted: Collection[Kind] = ()
    choice: AccessChoice = AccessChoice.DECLARED
    permissions: Mapping[str, Any] | None = None  # None: an old plugin, which declares nothing
    only: Callable[[Any], bool] = lambda _: True

    @property
    def plugin(self) -> str:
        return "".join(word.capitalize() for word in self.name.replace(",", "").split())


class RefusingStarter:
    """A stand-in for the cold starter: a warm start that falls back is found out."""

    async def close(self) -> None:
        """Nothing was started."""

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ColdChild:
        raise AssertionError("it was started cold")


class Host:
    def __init__(self, scene: Scene, yard: Yard) -> None:
        self.scene, self.yard = scene, yard
        self.results: dict[str, dict[str, tuple[str, str]]] = {}
        self.levels: dict[str, str] = {}

    async def run(self, path: StartPath) -> None:
        self.scene.refresh()
        signals = self.scene.signals
        self.write_attempts(path)
        await path.run(self, path)
        report = self.data_folder(path) / "report.tsv"
        await wait_until(report.exists)
        self.results[path.name] = {
            name: await self._judge(result, text, within_s=1 if path in CONTROLS else PATIENCE_S)
            for name, result, text in (line.split("\t", 2) for line in report.read_text().splitlines())
        }
        if path not in CONTROLS and self.scene.signals != signals:
            self.results[path.name]["signal every process"] = ("escaped", "the server got a signal")

    async def _judge(self, result: str, text: str, within_s: float) -> tuple[str, str]:
        """Look whether a process that was left behind lives on."""
        if result == "escaped" and text.startswith("process "):
            pid = int(text.split()[1])
            try:
                await wait_until(lambda: not is_alive(pid), within_s=within_s)
            except TimeoutError:
                os.kill(pid, 9)
                return "escaped", "its process lived on"
            return "stopped", "its process was ended"
        return result, text

    def add_plugin(self, path: StartPath, **fields: Any) -> None:
        program, command = PROGRAMS[path.language]
        folder = self.scene.given / path.plugin
        folder.mkdir()
        shutil.copy(HERE / program, folder / command.split()[1])
        make_set_id_program(folder / "set-id")
        (folder / "helper.txt").touch()
        limits = {"limits": {"openFiles": 512, "memoryMb": 4096}} if path.language == "python" else {}
        permissions = {} if path.permissions is None else {"permissions": dict(path.permissions)}
        text = manifest_text(
            path.plugin,
            communication=PATIENT,
            **{"entryPoint": {"type": path.language, "command": command}, **limits, **permissions, **fields},
        )
        (folder / "plugin-manifest.json").write_text(text)
        self.yard.plugins.plugins.refresh()
        if path.choice is not AccessChoice.DECLARED:
            reviewed = self.yard.plugins.review(self.get_plugin(path))
            self.yard.plugins.allow(replace(reviewed, review=replace(reviewed.review, access=path.choice)))
            self.yard.plugins.plugins.refresh()

    def get_plugin(self, path: StartPath) -> Any:
        plugin = self.yard.plugins.plugins.get(path.plugin)
        assert plugin is not None
        return plugin

    def data_folder(self, path: StartPath) -> Path:
        if path.run in (run_checker, run_git):  # they have none: the files of the test are there
            return self.scene.place / path.name
        shared = "vcp-bridge" if path.run is run_in_bridge else path.plugin
        name = f"mcp-{MCP_SERVER}" if path.run is run_mcp_server else shared
        return self.scene.home / "plugin-data" / name

    def own_folder(self, path: StartPath) -> Path:
        if path.run in (run_mcp_server, run_checker):
            return HERE
        return (self.scene.place / "VCP/Plugin" if path.run is run_in_bridge else self.scene.given) / path.plugin

    def write_attempts(self, path: StartPath, *, none: bool = False) -> None:
        folder = self.data_folder(path)
        folder.mkdir(parents=True, exist_ok=True)
        facts = {
            **self.scene.facts,
            "own": str(self.own_folder(path)),
            "run": path.plugin,
            "wait_s": "60" if path in CONTROLS else "0",
        }
        rows = [
            "\t".join((attempt.name, attempt.operation, attempt.target.format(**facts), attempt.other.format(**facts)))
            for attempt in ATTEMPTS
            if attempt.kind not in path.granted and path.only(attempt) and not none
        ]
        (folder / "attempts.tsv").write_text("".join(row + "\n" for row in rows))

    async def call(self, path: StartPath) -> None:
        outcome = await self.yard.calls.settle(self.yard.calls.request(path.plugin, {}))
        assert outcome.envelope.error is None, f"{path.name}: {outcome.envelope.error}"
        self.levels[path.name] = str(outcome.envelope.context["confinement"])

    async def start_victim(self) -> None:
        folder = self.scene.given / "Victim"
        folder.mkdir()
        (folder / "main.py").write_text(VICTIM)
        (folder / "config.env").write_text("SECRET=ESCAPE-SECRET\n")
        (folder / "plugin-manifest.json").write_text(
            manifest_text("Victim", pluginType="asynchronous", communication=PATIENT)
        )
        self.yard.plugins.plugins.refresh()
        outcome = await self.yard.calls.settle(self.yard.calls.request("Victim", {}))
        assert outcome.envelope.error is None, outcome.envelope.error
        pid = (self.scene.home / "plugin-data/Victim/pid").read_text()
        guardian = self.yard.plugins.host.children.guardian_pid
        self.scene.facts |= {"other_plugin": pid, "guardian": str(guardian)}
        self.scene.facts |= dict.fromkeys(("other_call", "waiting", "forks"), pid)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def run_cold(host: Host, path: StartPath) -> None:
    host.add_plugin(path, warmStart=False)
    await host.call(path)


async def run_asynchronous(host: Host, path: StartPath) -> None:
    host.add_plugin(path, pluginType="asynchronous")
    await host.call(path)


async def run_static(host: Host, path: StartPath) -> None:
    placeholders = {"systemPromptPlaceholders": [{"placeholder": "{{Attack}}"}]}
    host.add_plugin(path, pluginType="static", capabilities=placeholders)
    values = StaticValues(host.yard.plugins.host, host.yard.state.store, host.yard.plugins.host.now)
    plugin = host.get_plugin(path)
    host.yard.plugins.host.make_data_folder(plugin.name)
    await values.update(plugin, plugin.manifest)


async def run_in_fork_server(host: Host, path: StartPath) -> None:
    await _run_warm(host, path, forked=True)


async def run_in_standby(host: Host, path: StartPath) -> None:
    await _run_warm(host, path, forked=False)


async def _run_warm(host: Host, path: StartPath, *, forked: bool) -> None:
    host.add_plugin(path)
    plugin, starter = host.get_plugin(path), host.yard.plugins.host.starter
    assert isinstance(starter, WarmStarter)
    key = starter.launch_key(host.yard.plugins.host.build_launch(plugin, plugin.manifest), PER_CALL)
    if not forked:
        starter.servers.mark_unfit(key, "for this test")
    host.write_attempts(path, none=True)
    await host.call(path)
    (host.data_folder(path) / "report.tsv").unlink()
    await wait_until(lambda: starter.servers.is_ready(key) if forked else starter.standbys.count_ready(key))
    async with contextlib.AsyncExitStack() as stack:
        if path.language == "python":
            await stack.enter_async_context(_other_calls(host, path, starter, key))
        host.write_attempts(path)
        with mock.patch.object(starter, "cold", RefusingStarter()):
            await host.call(path)


@contextlib.asynccontextmanager
async def _other_calls(host: Host, path: StartPath, starter: WarmStarter, key: Hashable) -> AsyncIterator[None]:
    """Run other calls of a warm plugin, with processes that wait for the next ones."""
    facts, server = host.scene.facts, starter.servers._servers.get(key)
    began = host.data_folder(path) / "wait"
    began.mkdir()
    calls = [asyncio.create_task(host.yard.calls.settle(host.yard.calls.request(path.plugin, {}))) for _ in range(2)]
    await wait_until(lambda: len(os.listdir(began)) == len(calls))
    await wait_until(lambda: (len(server.spares) if server else starter.standbys.count_ready(key)) > 1)
    host.scene.facts = facts | {
        "other_call": os.listdir(began)[0],
        "waiting": str((server.spares if server else starter.standbys.pids)[-1]),  # the first one gets the next call
        "forks": str(server.process.pid) if server else facts["forks"],
    }
    shutil.rmtree(began)
    try:
        yield
    finally:
        host.scene.facts = facts
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


async def run_mcp_server(host: Host, path: StartPath) -> None:
    servers = {MCP_SERVER: {"command": sys.executable, "args": [str(HERE / "attacker.py")]}}
    (host.scene.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    entry = host.yard.mcp.servers.declarations.get(MCP_SERVER)
    assert entry is not None
    with contextlib.suppress(Failure):  # it attacks, and speaks no MCP
        await host.yard.mcp.servers.inspect_tools(entry)


async def run_checker(host: Host, path: StartPath) -> None:
    """Start as the checkers that look at a file after a write."""
    folder = host.data_folder(path)
    command = (sys.executable, "-I", "-S", str(HERE / "attacker.py"))
    with mock.patch.object(program, "MAX_SECONDS", PATIENCE_S):
        output = await asyncio.to_thread(
            program.run_program, command, (folder / "attempts.tsv").read_text(), lambda: None
        )
    (folder / "report.tsv").write_text(output.out)


async def run_git(host: Host, path: StartPath) -> None:
    """Start as the git that fetches a plugin: a program of that name, which attacks when it is to make a repository."""
    folder, program_folder = host.data_folder(path), host.scene.given / path.plugin
    program_folder.mkdir()
    make_set_id_program(program_folder / "set-id")
    (program_folder / "helper.txt").touch()
    (program_folder / "plugin-manifest.json").write_text("{}")
    git = program_folder / "git"
    copy = "import shutil; shutil.copy('../attempts.tsv', '.')"
    git.write_text(f"#!{sys.executable}\n{copy}\n{(HERE / 'attacker.py').read_text()}")
    git.chmod(0o755)
    source, environ = GitSource("https://declared.invalid/plugin"), {"PATH": f"{program_folder}:/usr/bin:/bin"}
    with contextlib.suppress(ToolyardError):  # it fetches nothing
        await asyncio.to_thread(fetch_commit, source, folder / "repository", folder / "archive.tar", environ)
    (folder / "repository/report.tsv").rename(folder / "report.tsv")


async def run_with_files_only(host: Host, path: StartPath) -> None:
    """Start cold as on a kernel with the first Landlock and without seccomp."""
    list_missing_everywhere.cache_clear()
    with (
        mock.patch.object(landlock, "interface_version", return_value=landlock.VERSION_TRUNCATE),
        mock.patch.object(seccomp, "is_available", return_value=False),
    ):
        await run_cold(host, path)
    list_missing_everywhere.cache_clear()


async def run_in_wide_project(host: Host, path: StartPath) -> None:
    """Start cold in a project that holds everything: what is protected in it is covered."""
    async with open_yard(host.scene, project=host.scene.place) as yard:
        wide = Host(host.scene, yard)
        await run_cold(wide, path)
    host.levels |= wide.levels


async def run_in_bridge(host: Host, path: StartPath) -> None:
    """Attack from inside the process of VCPToolBox's plugins, whose host in this test is that of the bridge's tests."""
    tree = host.scene.place / "VCP"
    shutil.copytree(VCP_HOST, tree)
    folder = host.own_folder(path)
    folder.mkdir(parents=True)
    make_set_id_program(folder / "set-id")
    (folder / "helper.txt").touch()
    shutil.copy(HERE / "attacker.js", folder)
    (folder / "main.js").write_text("exports.processToolCall = async () => { require('./attacker.js'); return 'on'; };")
    fields = {"name": path.plugin, "displayName": path.plugin, "pluginType": "hybridservice"}
    start = {"entryPoint": {"script": "main.js"}, "communication": {"protocol": "direct", "timeout": 600_000}}
    (folder / "plugin-manifest.json").write_text(json.dumps({**fields, **start}))
    (tree / "config.env").write_text("SECRET=ESCAPE-SECRET\n")
    async with open_yard(host.scene, project=host.scene.project, vcp=tree) as yard:
        inside = Host(host.scene, yard)
        plugin = inside.get_plugin(path)
        yard.plugins.allow(yard.plugins.review(plugin))
        yard.plugins.plugins.refresh()
        await inside.call(path)
        await wait_until((host.data_folder(path) / "report.tsv").exists)
    host.levels |= inside.levels


def open_yard(scene: Scene, project: Path, vcp: Path | None = None) -> Yard:
    return Yard(load_config(project, scene.home, plugin_folders=[scene.given], trusts_given=True, vcp=vcp))


NETWORKS = {Kind.NETWORK, Kind.LISTENING}
OLD = {Kind.OWN_CODE, *NETWORKS}
WIDE = {*NETWORKS, Kind.PROJECT, Kind.OWN_CODE, Kind.LOCAL_SOCKET, Kind.SHARED}
UNCONFINED = AccessChoice.UNCONFINED
START_PATHS = (
    StartPath("cold Python", "python", run_cold, permissions=CLOSED),
    StartPath("cold Node", "node", run_cold, permissions=CLOSED),
    StartPath("cold bash", "bash", run_cold, permissions=CLOSED),
    StartPath("fork server", "python", run_in_fork_server, permissions=CLOSED),
    StartPath("standby Python", "python", run_in_standby, permissions=CLOSED),
    StartPath("standby Node", "node", run_in_standby, permissions=CLOSED),
    StartPath("asynchronous", "python", run_asynchronous, {Kind.LISTENING}, permissions=CLOSED),
    StartPath("list of hosts", "python", run_cold, {Kind.LISTENING}, permissions={"network": ["declared.invalid"]}),
    StartPath("static", "python", run_static, permissions=CLOSED),
    StartPath("MCP server", "python", run_mcp_server, NETWORKS),
    StartPath("checker", "python", run_checker),
    StartPath("git", "python", run_git, NETWORKS),
    StartPath("process of VCPToolBox", "node", run_in_bridge, OLD),
    StartPath("declares nothing", "python", run_cold, OLD),
    StartPath("strict", "python", run_cold, choice=AccessChoice.STRICT),
    StartPath("reads the project", "python", run_in_wide_project, {Kind.PROJECT},
              permissions={**CLOSED, "project": "read"}),
    StartPath("wide", "python", run_in_wide_project, WIDE, choice=AccessChoice.WIDE),
    StartPath("files only", "python", run_with_files_only, permissions=CLOSED,
              only=lambda attempt: attempt.level is ConfinementLevel.FILES),
)  # fmt: skip
CONTROLS = tuple(
    StartPath(f"unconfined {language}", language, run_cold, choice=UNCONFINED,
              only=lambda attempt: attempt in CONTROLLED)
    for language in PROGRAMS
)  # fmt: skip


async def main(place: Path) -> None:
    scene = Scene(place)
    try:
        async with open_yard(scene, scene.project) as yard:
            host = Host(scene, yard)
            await host.start_victim()
            for path in (*START_PATHS, *CONTROLS):
                if path.language == "python" or shutil.which(path.language):
                    await host.run(path)
    finally:
        scene.close()
    results = {"results": host.results, "levels": host.levels}
    (place / "results.part").write_text(json.dumps(results))
    (place / "results.part").rename(place / "results.json")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
