"""Plugins that live in VCPToolBox's process: called like any other, and nothing that they do ends the others."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.vcp.tree import ECHO, Tree
from tests.waiting import wait_until
from toolyard.config import load_config
from toolyard.confinement.level import measure_confinement
from toolyard.confinement.profile import Profile
from toolyard.protocol.access import AccessChoice, ConfinementLevel
from toolyard.protocol.envelope import ErrorCode, Reason
from toolyard.protocol.tool import Origin
from toolyard.vcp.bridge import connection as connections
from toolyard.yard.yard import Yard

CONFINED = measure_confinement(Profile()).level is not ConfinementLevel.NONE


def make_plugin(body: str, more: str = "") -> str:
    return f"{more}\nmodule.exports = {{ async processToolCall(args, context) {{ {body} }} }};"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.requirement("vcp:bridge:call")
async def test_a_call_of_such_a_plugin_is_a_call_like_any_other(tree: Tree) -> None:
    tree.add("Diary")
    async with tree.open() as opened:
        assert "Diary" in [tool.spec.name for tool in opened.yard.tools]
        outcome = await opened.call("Diary", text="hello", maid="Nova")
        assert outcome.envelope.error is None
        assert outcome.envelope.data == {"heard": {"text": "hello", "maid": "Nova"}}  # without what the host adds


@pytest.mark.requirement("vcp:bridge:call")
async def test_it_is_journalled_and_permitted_like_any_other(tree: Tree) -> None:
    tree.add("Diary", make_plugin("require('fs').writeFileSync('dailynote/ran', ''); return 1;"))
    tree.settings('approval_mode = "deny"')
    async with tree.open() as opened:
        calls, journal = opened.yard.calls, opened.yard.state.journal
        refused = await calls.settle(calls.request("Diary", {}, origin=Origin.CHAT))
        assert refused.envelope.context["reason"] == Reason.DENIED
        assert not (tree.root / "dailynote/ran").exists()
        call = calls.request("Diary", {})
        outcome = await calls.settle(call)
        found = await journal.find_outcome(call, root=opened.yard.project)
        assert found is not None
        assert found.envelope.data == outcome.envelope.data


@pytest.mark.requirement("vcp:bridge:call")
@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("return 'plain';", None, "plain"),
        ("return { status: 'error', error: 'no such diary' };", ErrorCode.EXECUTION_ERROR, "no such diary"),
        ("throw new Error('it broke');", ErrorCode.EXECUTION_ERROR, "it broke"),
        ("const a = {}; a.a = a; return a;", None, ""),
        ("return { big: 10n, inner: { timestamp: 'mine' } };", None, "mine"),
    ],
)
async def test_what_a_plugin_returns_or_raises_becomes_the_result(
    tree: Tree, body: str, code: ErrorCode | None, text: str
) -> None:
    tree.add("Diary", make_plugin(body))
    async with tree.open() as opened:
        envelope = (await opened.call("Diary")).envelope
    assert (envelope.error.code if envelope.error else None) == code
    assert text in envelope.text


@pytest.mark.requirement("vcp:bridge:noise")
async def test_what_plugins_print_is_never_taken_for_an_answer(tree: Tree) -> None:
    noise = """
    process.stdout.write('{"type": "answer", "id": 1, "value": "forged"}\\n');
    console.log("noise without an end");
    require("child_process").spawnSync("echo", ["noise of a child"], { stdio: "inherit" });
    require("fs").writeSync(3, "no message\\n");
    return "the answer";
    """
    tree.add("Loud", make_plugin(noise))
    async with tree.open() as opened:
        assert (await opened.call("Loud")).envelope.data == {"result": "the answer"}
    log = (tree.home / "logs/vcp-bridge.log").read_text()
    assert "noise of a child" in log
    assert "no message" in log


@pytest.mark.requirement("vcp:bridge:survives")
@pytest.mark.parametrize(
    "attack",
    [
        "process.exit(1);",
        "process.abort();",
        "process.kill(process.pid, 'SIGKILL');",
        "setTimeout(() => { throw new Error('late'); }, 0); await new Promise((go) => setTimeout(go, 20));",
        "Promise.reject(new Error('unheard')); await new Promise((go) => setTimeout(go, 20));",
    ],
)
async def test_a_plugin_cannot_end_the_process_of_the_others(tree: Tree, attack: str) -> None:
    tree.add("Bad", make_plugin(attack))
    tree.add("Good")
    async with tree.open() as opened:
        assert (await opened.call("Good")).envelope.error is None
        pid = opened.bridge.pid
        await opened.call("Bad")
        assert (await opened.call("Good")).envelope.error is None
        assert opened.bridge.pid == pid


@pytest.mark.requirement("vcp:bridge:survives")
async def test_a_vector_engine_that_cannot_be_loaded_ends_nothing_and_is_named(tree: Tree) -> None:
    tree.add(
        "LightMemo",
        "let store; module.exports = { initialize(config, given) { store = given.knowledgeBaseManager; },"
        " async processToolCall() { return { plugin_error: `the store is ${store}` }; } };",
    )
    tree.add("Other")
    async with tree.open() as opened:
        envelope = (await opened.call("LightMemo")).envelope
        assert envelope.error is not None
        assert "the store is null" in envelope.error.message
        assert "GLIBC_9.99" in envelope.text
        assert (await opened.call("Other")).envelope.error is None


@pytest.mark.requirement("vcp:bridge:survives")
async def test_a_module_that_cannot_be_loaded_says_why_and_the_others_run(tree: Tree) -> None:
    tree.add("Broken", "require('no-such-package');")
    tree.add("Good")
    async with tree.open() as opened:
        envelope = (await opened.call("Broken")).envelope
        assert envelope.error is not None
        assert "no-such-package" in envelope.error.message
        assert (await opened.call("Good")).envelope.error is None


@pytest.mark.requirement("vcp:bridge:survives")
async def test_a_plugin_that_blocks_is_stopped_and_calls_in_flight_are_answered(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BLOCKED_S", 0.5)
    monkeypatch.setattr(connections, "_PING_S", 0.05)
    tree.add("Stuck", make_plugin("for (;;);"))
    tree.add("Slow", make_plugin("await new Promise(() => {});"))
    async with tree.open() as opened:
        await opened.bridge.connect()
        slow = asyncio.create_task(opened.call("Slow"))
        stuck = (await opened.call("Stuck")).envelope
        assert stuck.error is not None
        assert "did not answer" in stuck.error.message
        assert (await slow).envelope.error is not None


@pytest.mark.requirement("vcp:bridge:survives")
async def test_a_crash_answers_calls_in_flight_and_the_next_start_waits(tree: Tree) -> None:
    tree.add("Slow", make_plugin("if (args.go) return 1; await new Promise(() => {});"))
    async with tree.open() as opened:
        bridge = opened.bridge
        now = [0.0]
        bridge._backoff._monotonic = lambda: now[0]
        connection = await bridge.connect()
        call = asyncio.create_task(opened.call("Slow"))
        await wait_until(lambda: not connection.idle.is_set())
        os.kill(connection.pid, signal.SIGKILL)
        envelope = (await call).envelope
        assert envelope.error is not None
        assert "Slow" in envelope.error.message
        waiting = (await opened.call("Slow", go=1)).envelope
        assert waiting.context["reason"] == Reason.BUSY
        now[0] = 10.0
        assert (await opened.call("Slow", go=1)).envelope.error is None


@pytest.mark.requirement("vcp:bridge:call")
async def test_a_cancelled_call_is_cancelled_in_the_plugin(tree: Tree) -> None:
    code = """
    await new Promise((go) => context.signal.addEventListener("abort", go));
    require("fs").writeFileSync("Plugin/Slow/stopped.txt", "x");
    """
    folder = tree.add("Slow", make_plugin(code))
    async with tree.open() as opened:
        connection = await opened.bridge.connect()
        call = opened.yard.calls.request("Slow", {})
        settling = asyncio.create_task(opened.yard.calls.settle(call))
        await wait_until(lambda: not connection.idle.is_set())
        opened.yard.calls.cancel(call.id)
        envelope = (await settling).envelope
        assert envelope.error is not None
        assert envelope.context["reason"] == Reason.CANCELLED
        await wait_until((folder / "stopped.txt").exists)


@pytest.mark.requirement("vcp:bridge:only")
async def test_nothing_is_loaded_that_is_not_switched_on(tree: Tree) -> None:
    mark = "require('fs').writeFileSync('dailynote/NAME', '');" + ECHO
    tree.add("On", mark.replace("NAME", "On"))
    tree.add("Off", mark.replace("NAME", "Off"))
    stdio: dict[str, Any] = {"entryPoint": {"command": "node main.js"}, "communication": {"protocol": "stdio"}}
    tree.add("Stdio", mark.replace("NAME", "Stdio"), kind="synchronous", **stdio)
    async with tree.open() as opened:
        off = opened.yard.plugins.plugins.get("Off")
        assert off is not None
        opened.yard.plugins.plugins.disable(off)
        opened.yard.plugins.plugins.refresh()
        assert opened.bridge.pid is None  # until somebody asks for one
        assert (await opened.call("On")).envelope.error is None
    assert os.listdir(tree.root / "dailynote") == ["On"]


@pytest.mark.requirement("vcp:bridge:only")
async def test_without_such_a_plugin_nothing_is_started_and_an_unreviewed_one_is_refused(tmp_path: Path) -> None:
    tree = Tree(tmp_path, trusted=False)
    tree.add("Diary")
    async with tree.open() as opened:
        envelope = (await opened.call("Diary")).envelope
        assert envelope.error is not None
        assert envelope.context["reason"] == Reason.DENIED
        assert opened.bridge.pid is None


@pytest.mark.requirement("vcp:bridge:only")
@pytest.mark.parametrize("file", ["Plugin/Diary/main.js", "Plugin.js", "modules/more.js"])
async def test_changed_code_of_the_plugin_or_of_its_host_needs_another_review(tmp_path: Path, file: str) -> None:
    tree = Tree(tmp_path, trusted=False)
    tree.add("Diary")
    (tree.root / "modules/more.js").touch()
    async with tree.open() as opened:
        plugins = opened.yard.plugins
        plugin = plugins.plugins.get("Diary")
        assert plugin is not None
        plugins.allow(plugins.review(plugin))
        plugins.plugins.refresh()
        assert (await opened.call("Diary")).envelope.error is None
        with (tree.root / file).open("a") as changed:
            changed.write("\n// changed\n")
        envelope = (await opened.call("Diary")).envelope
        assert envelope.error is not None
        assert envelope.context["reason"] == Reason.DENIED


@pytest.mark.requirement("vcp:bridge:messages")
async def test_message_preprocessors_and_placeholders_are_answered(tree: Tree) -> None:
    code = """
    module.exports = {
      initialize(config, { pluginManager }) { pluginManager.staticPlaceholderValues.set("Page", { value: "a page" }); },
      processMessages: async (messages, config) => [...messages, { role: "user", content: `NAME ${config.extra}` }],
    };"""
    tree.add("First", code.replace("NAME", "first"), kind="messagePreprocessor")
    tree.add("Second", code.replace("NAME", "second"), kind="messagePreprocessor")
    tree.add("Third", "module.exports = { processMessages() { throw new Error('no'); } };", kind="messagePreprocessor")
    async with tree.open() as opened:
        connection = await opened.bridge.connect()
        assert connection.inventory.preprocessors == ("First", "Second", "Third")
        messages: list[Any] = [{"role": "user", "content": "hi"}]
        told = await connection.preprocess(["Second", "First", "Third"], messages, {"extra": "x"})
        assert [one["content"] for one in told if isinstance(one, dict)] == ["hi", "second x", "first x"]
        assert await connection.list_placeholders() == {"Page": "a page"}


@pytest.mark.requirement("vcp:bridge:server")
async def test_port_and_key_lead_to_this_host_and_other_secrets_are_not_seen(tree: Tree) -> None:
    body = """
    const fs = require("fs");
    const read = (file) => fs.readFileSync(file, "utf8");
    return { port: process.env.PORT, key: process.env.Key, name: process.env.VarName, file: read("config.env"),
             sibling: read("Plugin/Stdio/config.env"), admin: process.env.AdminPassword };
    """
    tree.add("Diary", make_plugin(body))
    with (tree.root / "config.env").open("a") as settings:
        settings.write("SEARCH_API_KEY=x\n")
    tree.add("Stdio", "", kind="synchronous", entryPoint={"command": "node main.js"}, communication={})
    (tree.root / "Plugin/Stdio/config.env").write_text("STDIO_KEY=hidden\n")
    async with tree.open() as opened:
        envelope = (await opened.call("Diary")).envelope
        assert envelope.error is None, envelope.error
        data, port = envelope.data, opened.yard.config.settings.port
        assert data["port"] == str(port)
        assert data["name"] == "Nova"
        assert data["key"] == opened.bridge.key
        if CONFINED:
            assert f"Key={opened.bridge.key}" in str(data["file"])
            assert "admin" not in data
            assert "of-vcptoolbox" not in str(data["file"])
            assert "AdminPassword" not in str(data["file"])
            assert "SEARCH_API_KEY" not in str(data["file"]), "neither this plugin nor VCPToolBox's own code names it"
            assert "hidden" not in str(data["sibling"])


@pytest.mark.requirement("vcp:bridge:server")
async def test_a_call_that_a_plugin_makes_is_settled_here(tree: Tree) -> None:
    (tree.place / "project/notes.txt").write_text("a note\n")
    tree.add(
        "Agent",
        make_plugin(
            "return await host.processToolCall('Read', { filePath: 'notes.txt' });",
            "const host = require('../../Plugin.js');",
        ),
    )
    async with tree.open() as opened:
        envelope = (await opened.call("Agent")).envelope
        assert envelope.error is None, envelope.error
        assert "a note" in envelope.text


@pytest.mark.requirement("vcp:bridge:server")
async def test_what_plugins_push_is_given_to_the_host(tree: Tree) -> None:
    tree.add(
        "Push",
        make_plugin(
            "host.getVCPLogFunctions().pushVcpLog({ a: 1 }); return 1;", "const host = require('../../Plugin.js');"
        ),
    )
    pushed: list[object] = []
    async with tree.open() as opened:
        opened.yard.vcp.on_push(pushed.append)
        await opened.call("Push")
    assert pushed == [{"type": "push", "data": {"type": "vcp_log", "data": {"a": 1}}, "target": "VCPLog"}]


@pytest.mark.requirement("vcp:bridge:alone")
async def test_one_host_runs_the_plugins_of_an_installation(tree: Tree, tmp_path: Path) -> None:
    tree.add("Diary")
    async with tree.open() as first, tree.open() as second:
        assert (await first.call("Diary")).envelope.error is None
        envelope = (await second.call("Diary")).envelope
        assert envelope.error is not None
        assert "another server of Toolyard" in envelope.error.message
        await first.bridge.close()


@pytest.mark.requirement("vcp:bridge:alone")
async def test_it_does_not_start_beside_a_running_vcptoolbox(tree: Tree) -> None:
    tree.add("Diary")
    (tree.root / "server.js").write_text("setInterval(() => {}, 1000);")
    server = await asyncio.create_subprocess_exec("node", "server.js", cwd=tree.root)
    try:
        async with tree.open() as opened:
            envelope = (await opened.call("Diary")).envelope
            assert envelope.error is not None
            assert str(server.pid) in envelope.error.message
            assert opened.bridge.pid is None
        config = load_config(tree.place / "project", tree.home, beside=True)
        async with Yard(config) as yard:
            envelope = (await yard.calls.settle(yard.calls.request("Diary", {}))).envelope
            assert envelope.error is not None
            assert "beside" in envelope.error.message
    finally:
        server.kill()
        await server.wait()


@pytest.mark.requirement("vcp:bridge:confined")
@pytest.mark.skipif(not CONFINED, reason="this machine confines nothing")
async def test_it_writes_what_plugins_share_and_its_own_folders_and_nothing_else(tree: Tree) -> None:
    (tree.place / "outside.txt").write_text("outside")
    body = """
    const tried = {};
    for (const file of args.files) {
      try { require("fs").writeFileSync(file, "x"); tried[file] = "written"; }
      catch (error) { tried[file] = error.code; }
    }
    return tried;
    """
    tree.add("Diary", make_plugin(body))
    tree.add("Stdio", "", kind="synchronous", entryPoint={"command": "node main.js"}, communication={})
    allowed = ["dailynote/x", "VectorStore/x", "image/x", "Plugin/Diary/x"]
    refused = [
        "Plugin.js",
        "modules/new.js",
        "Plugin/Stdio/main.js",
        "config.env",
        str(tree.place / "outside.txt"),
        str(tree.home / "config.toml"),
    ]
    async with tree.open() as opened:
        tried = (await opened.call("Diary", files=[*allowed, *refused])).envelope.data
    assert [tried[file] for file in allowed] == ["written"] * len(allowed)
    assert all(tried[file] in ("EACCES", "EROFS", "EPERM", "ENOENT") for file in refused), tried


@pytest.mark.requirement("vcp:bridge:call")
async def test_it_is_stopped_with_its_yard_and_plugins_may_save_first(tree: Tree) -> None:
    code = f"{ECHO} module.exports.shutdown = async () => require('fs').writeFileSync('dailynote/saved', '');"
    tree.add("Diary", code)
    async with tree.open() as opened:
        await opened.call("Diary")
        pid = opened.bridge.pid
        assert pid is not None
    assert (tree.root / "dailynote/saved").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.requirement("vcp:bridge:survives")
async def test_a_start_that_fails_says_what_the_process_said(tree: Tree) -> None:
    tree.add("Diary")
    (tree.root / "Plugin.js").write_text("throw new Error('half an update');")
    async with tree.open() as opened:
        envelope = (await opened.call("Diary")).envelope
        assert envelope.error is not None
        assert "half an update" in envelope.error.message


@pytest.mark.requirement("vcp:bridge:survives")
async def test_the_log_of_the_process_that_floods_is_bounded(tree: Tree) -> None:
    tree.add("Loud", make_plugin("for (let i = 0; i < 300; i++) console.log('x'.repeat(10000)); return 1;"))
    with mock.patch("toolyard.plugins.mcp.server_health.MAX_BYTES", 100_000):
        async with tree.open() as opened:
            assert (await opened.call("Loud")).envelope.error is None
    assert sum(path.stat().st_size for path in (tree.home / "logs").iterdir()) < 400_000


@pytest.mark.requirement("vcp:bridge:call")
async def test_an_error_keeps_what_the_plugin_said_beside_it(tree: Tree) -> None:
    tree.add("Diary", make_plugin("throw new Error(JSON.stringify({ status: 'error', error: 'why', code: 7 }));"))
    async with tree.open() as opened:
        envelope = (await opened.call("Diary")).envelope
    assert envelope.error is not None
    assert envelope.error.message == "why"
    assert envelope.data["code"] == 7


@pytest.mark.requirement("vcp:bridge:call")
async def test_no_answer_is_lost_when_many_calls_run_at_once(tree: Tree) -> None:
    tree.add("Big", make_plugin("return { number: args.number, text: 'x'.repeat(1 << 20) };"))
    async with tree.open() as opened:
        outcomes = await asyncio.gather(*(opened.call("Big", number=number) for number in range(64)))
    assert [one.envelope.data.get("number") for one in outcomes] == list(range(64))


@pytest.mark.requirement("vcp:bridge:call")
async def test_a_call_ends_at_the_time_limit_of_its_manifest(tree: Tree) -> None:
    tree.add("Slow", make_plugin("await new Promise(() => {});"), communication={"protocol": "direct", "timeout": 200})
    tree.add("Good")
    async with tree.open() as opened:
        envelope = (await opened.call("Slow")).envelope
        assert envelope.error is not None
        assert envelope.error.code is ErrorCode.TIMEOUT
        assert (await opened.call("Good")).envelope.error is None


@pytest.mark.requirement("vcp:bridge:confined")
@pytest.mark.skipif(not CONFINED, reason="this machine confines nothing")
@pytest.mark.parametrize("after", ["return [];", "throw new Error('it failed');"])
async def test_what_a_call_was_kept_from_stands_in_its_result_though_it_swallowed_the_error(
    tree: Tree, after: str
) -> None:
    write = "await require('fs').promises.writeFile('Plugin.js', '').catch(() => {});"
    tree.add("Quiet", make_plugin(f"if (args.quiet) return 1; {write} {after}"))
    async with tree.open() as opened:
        for _ in range(2):  # each call says it, not the first alone
            envelope = (await opened.call("Quiet")).envelope
            assert str(tree.root / "Plugin.js") in envelope.text
        assert "Plugin.js" not in (await opened.call("Quiet", quiet=1)).envelope.text


@pytest.mark.requirement("vcp:bridge:only")
async def test_a_plugin_that_may_reach_nothing_is_not_loaded_beside_others(tmp_path: Path) -> None:
    tree = Tree(tmp_path, trusted=False)
    for name in ("Strict", "Usual"):
        tree.add(name, f"require('fs').writeFileSync('dailynote/{name}', '');" + ECHO)
    async with tree.open() as opened:
        plugins = opened.yard.plugins
        for name, access in (("Strict", AccessChoice.STRICT), ("Usual", AccessChoice.INSTALLATION)):
            plugin = plugins.plugins.get(name)
            assert plugin is not None
            reviewed = plugins.review(plugin)
            plugins.allow(replace(reviewed, review=replace(reviewed.review, access=access)))
        plugins.plugins.refresh()
        assert (await opened.call("Usual")).envelope.error is None
        assert (await opened.call("Strict")).envelope.context["reason"] == Reason.DENIED
    assert os.listdir(tree.root / "dailynote") == ["Usual"]
