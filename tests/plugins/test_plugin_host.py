"""Plugins as tools: from the folder to the envelope, with real processes."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.plugins.yards import ECHO, PluginYard, entry
from tests.waiting import wait_until
from toolyard.plugins.call_queue import AT_ONCE_PER_PLUGIN
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.store import Query


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as opened:
        yield opened


@pytest.mark.requirement("plugin:type:synchronous", "plugin:stdin", "s:S-82", "plugin:name")
async def test_a_plugin_is_called_by_its_name_and_gets_what_the_caller_wrote(host: PluginYard) -> None:
    host.add("Parrot")
    arguments = {"text": "你好 $(rm) `x` \"'", "n": 5, "deep": {"a": [1, None]}, "Z": "1", "a": "2"}
    outcome = await host.call("Parrot", **arguments)
    assert outcome.envelope.status is Status.SUCCESS
    received = outcome.envelope.data["heard"]
    assert received == arguments
    assert list(received) == list(arguments)


@pytest.mark.requirement("batch:plugin", "plugin:commands")
async def test_a_numbered_batch_and_the_command_reach_a_plugin_unchanged(host: PluginYard) -> None:
    commands = [{"command": name, "description": "x"} for name in ("One", "Two")]
    host.add("Two", capabilities={"invocationCommands": commands})
    batch = {"command1": "One", "path1": "a", "command2": "Two", "path2": "b"}
    assert (await host.call("Two", **batch)).envelope.data["heard"] == batch
    assert (await host.call("Two", command="One", x="1")).envelope.data["heard"] == {"command": "One", "x": "1"}


@pytest.mark.requirement("plugin:extra-fields")
async def test_declared_parameters_are_checked_and_the_plugin_still_gets_them_as_written(host: PluginYard) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": False,
    }
    host.add("Typed", capabilities={"invocationCommands": [{"description": "x", "parameters": schema}]})
    assert (await host.call("Typed", n="5")).envelope.data["heard"] == {"n": "5"}
    for wrong in ({}, {"n": "many"}, {"n": 0}, {"n": 1, "m": 2}):
        envelope = (await host.call("Typed", **wrong)).envelope
        assert envelope.error is not None
        assert envelope.error.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("plugin:environment:shared", "s:S-80")
async def test_a_key_of_another_plugin_reaches_nobody_else_though_the_owner_shares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("THEIR_TOKEN", "MY_WORD"):
        monkeypatch.setenv(name, "from the host")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text('[shared_keys]\nProbe = ["THEIR_TOKEN", "MY_WORD"]\n')
    async with PluginYard(tmp_path) as host:
        host.add("Other", config="THEIR_TOKEN=theirs\n")
        tell = "import json, os\nprint(json.dumps({'status': 'success', 'result': {'seen': dict(os.environ)}}))\n"
        host.add("Probe", tell)
        seen = (await host.call("Probe")).envelope.data["seen"]
    assert isinstance(seen, dict)
    assert (seen.get("MY_WORD"), seen.get("THEIR_TOKEN")) == ("from the host", None)


@pytest.mark.requirement("plugin:any-language")
@pytest.mark.parametrize("language", ["python", "node", "shell", "compiled"])
async def test_plugins_of_every_language_run_alike(host: PluginYard, language: str) -> None:
    folder = host.add("Any", entryPoint=entry({"python": "python main.py", "node": "node main.js",
                                               "shell": "sh main.sh", "compiled": "./main"}[language]))  # fmt: skip
    if language == "node":
        if shutil.which("node") is None:
            pytest.skip("there is no Node here")
        (folder / "main.js").write_text(
            "let d='';process.stdin.on('data',c=>d+=c).on('end',()=>console.log(JSON.stringify("
            "{status:'success',result:{content:[],heard:JSON.parse(d)}})))"
        )
    elif language == "shell":
        (folder / "main.sh").write_text(
            'read -r line; printf \'{"status":"success","result":{"content":[],"heard":%s}}\' "$line"'
        )
    elif language == "compiled":
        if shutil.which("cc") is None:
            pytest.skip("there is no C compiler here")
        (folder / "main.c").write_text(
            "#include <stdio.h>\nint main(){char b[999];size_t n=fread(b,1,998,stdin);b[n]=0;"
            'printf("{\\"status\\":\\"success\\",\\"result\\":{\\"content\\":[],\\"heard\\":%s}}",b);}'
        )
        await (await asyncio.create_subprocess_exec("cc", "-o", folder / "main", folder / "main.c")).wait()
    outcome = await host.call("Any", text="hi")
    assert outcome.envelope.data.get("heard") == {"text": "hi"}, outcome.envelope.to_dict()


@pytest.mark.requirement("plugin:environment", "plugin:config:file", "s:S-80", "s:S-91")
async def test_a_child_sees_its_own_settings_and_none_of_the_hosts_secrets(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-host-secret-1234")
    monkeypatch.setenv("AdminPassword", "hunter2hunter2")
    monkeypatch.setenv("ANYTHING", "else")
    code = 'import json,os\nprint(json.dumps({"status":"success","result":dict(os.environ)}))'
    host.add("Env", code, config="MY_API_KEY=plugin-secret-777\nPLAIN=yes\n")
    outcome = await host.call("Env")
    seen = outcome.envelope.data
    assert seen["PLAIN"] == "yes"
    assert seen["MY_API_KEY"] == "plugin-secret-777"
    assert set(seen) - {"LC_CTYPE"} == {
        "PATH", "HOME", "LANG", "TZ", "TMPDIR", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PROJECT_BASE_PATH",
        "PYTHONPYCACHEPREFIX", "SERVER_PORT", "VCP_REQUEST_IP", "PLAIN", "MY_API_KEY",
    }  # fmt: skip
    assert seen["HOME"] == str(host.place / "home/plugin-data/Env")
    stored = await host.yard.state.journal.get((await host.yard.state.journal.page(Query(), limit=1))[0].id)
    assert "plugin-secret-777" not in json.dumps(stored)


@pytest.mark.requirement("s:S-83", "plugin:cli:state")
async def test_a_plugin_nobody_has_allowed_does_not_run(tmp_path: Path) -> None:
    async with PluginYard(tmp_path, trusted=False) as host:
        folder = host.add("New", "open('ran','w')")
        outcome = await host.call("New")
        assert outcome.envelope.context["reason"] == "DENIED"
        assert "toolyard plugin allow New" in outcome.envelope.text
        assert not (folder / "ran").exists()
        assert "New" not in [tool.spec.name for tool in host.yard.tools]


@pytest.mark.requirement("r:R31")
async def test_a_change_is_seen_by_the_next_call_and_a_running_one_finishes(host: PluginYard) -> None:
    slow = (
        "import json,sys,time\nsys.stdin.read()\nopen('on','w').close()\n"
        "import os\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        "print(json.dumps({'status':'success','result':'old'}))"
    )
    folder = host.add("Swap", slow)
    running = asyncio.ensure_future(host.call("Swap"))
    await wait_until((folder / "on").exists)
    (folder / "main.py").write_text('print(\'{"status":"success","result":"new"}\')')
    assert (await host.call("Swap")).envelope.text == "new"
    (folder / "go").touch()
    assert (await running).envelope.text == "old"
    shutil.rmtree(folder)
    gone = (await host.call("Swap")).envelope
    assert gone.error is not None


@pytest.mark.requirement("r:R31")
async def test_a_plugin_keeps_its_tool_until_it_changes(host: PluginYard) -> None:
    folder = host.add("Same")
    await host.call("Same")
    tool = host.yard.tools.get("Same")
    host.add("Other")
    await host.call("Other")  # all folders were read again
    assert host.yard.tools.get("Same") is tool
    manifest = folder / "plugin-manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"description": "another"}))
    await host.call("Same")
    assert host.yard.tools.get("Same") is not tool


@pytest.mark.requirement("r:R31", "s:S-83")
async def test_a_call_whose_turn_comes_after_its_plugin_was_disabled_does_not_run(host: PluginYard) -> None:
    slow = (
        "import json,os,time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        "print(json.dumps({'status':'success','result':'old'}))"
    )
    folder = host.add("Swap", slow)
    running = [asyncio.ensure_future(host.call("Swap")) for _ in range(AT_ONCE_PER_PLUGIN + 1)]
    queue = host.yard.plugins.host.queue
    await wait_until(lambda: (queue.running, queue.waiting) == (AT_ONCE_PER_PLUGIN, 1))
    plugins = host.yard.plugins.plugins
    swap = plugins.get("Swap")
    assert swap is not None
    plugins.disable(swap)
    (folder / "go").touch()
    texts = [one.envelope.text for one in await asyncio.gather(*running)]
    assert texts.count("old") == AT_ONCE_PER_PLUGIN
    assert sum("Swap cannot run" in text for text in texts) == 1


@pytest.mark.requirement("r:R10", "plugin:timeout")
async def test_a_plugin_that_takes_too_long_is_timed_out_at_its_own_limit(host: PluginYard) -> None:
    host.add("Sleepy", "import time\ntime.sleep(600)", communication={"protocol": "stdio", "timeout": 300})
    async with asyncio.timeout(60):
        envelope = (await host.call("Sleepy")).envelope
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.TIMEOUT
    assert "0.3 s" in envelope.error.message


@pytest.mark.requirement("p:P4", "r:R12")
async def test_cancelling_a_call_ends_its_process(host: PluginYard) -> None:
    code = (
        "import os,sys,time\nopen('pid.tmp','w').write(str(os.getpid()))\nos.rename('pid.tmp','pid')\ntime.sleep(600)"
    )
    folder = host.add("Sleepy", code)
    call = host.yard.calls.request("Sleepy", {})
    running = asyncio.ensure_future(host.yard.calls.settle(call))
    await wait_until((folder / "pid").exists)
    assert host.yard.calls.cancel(call.id)
    assert (await running).envelope.context["reason"] == "CANCELLED"
    pid = int((folder / "pid").read_text())
    await wait_until(lambda: not _alive(pid))


@pytest.mark.requirement("p:P5", "r:R32")
async def test_a_plugin_that_hangs_does_not_hold_up_another(host: PluginYard) -> None:
    host.add("Hang", "import time\ntime.sleep(600)", communication={"protocol": "stdio", "timeout": 600_000})
    host.add("Parrot")
    calls = [host.yard.calls.request("Hang", {}) for _ in range(20)]
    hanging = [asyncio.ensure_future(host.yard.calls.settle(call)) for call in calls]
    async with asyncio.timeout(60):
        for n in range(5):
            assert (await host.call("Parrot", n=n)).envelope.data["heard"] == {"n": n}
    for call in calls:
        host.yard.calls.cancel(call.id)
    done = await asyncio.gather(*hanging)
    assert {outcome.envelope.context["reason"] for outcome in done} == {"CANCELLED"}


@pytest.mark.requirement("p:P5")
async def test_of_many_calls_at_once_no_result_is_lost_or_mixed_up(host: PluginYard) -> None:
    host.add("Parrot", ECHO, maxConcurrency=8)
    outcomes = await asyncio.gather(*(host.call("Parrot", n=n) for n in range(64)))
    assert [outcome.envelope.data.get("heard") for outcome in outcomes] == [{"n": n} for n in range(64)]


@pytest.mark.requirement("r:R20")
async def test_noise_on_stdout_is_a_warning_that_shows_the_line(host: PluginYard) -> None:
    host.add("Noisy", 'print("loading model...")\nprint(\'{"status":"success","result":"ok"}\')\nprint("bye")')
    envelope = (await host.call("Noisy")).envelope
    assert envelope.status is Status.SUCCESS
    assert envelope.text.startswith("ok")
    assert "loading model..." in json.dumps(envelope.context["warnings"])


@pytest.mark.requirement("r:R28")
async def test_a_missing_dependency_names_the_package_and_the_command_that_installs_it(host: PluginYard) -> None:
    host.add("Needs", "import a_package_nobody_has")
    envelope = (await host.call("Needs")).envelope
    assert envelope.context["reason"] == "START_FAILED"
    assert "pip install a_package_nobody_has" in envelope.text


@pytest.mark.requirement("plugin:discovery")
async def test_a_plugin_added_while_the_yard_is_open_is_found(host: PluginYard) -> None:
    host.add("First")
    await host.call("First")
    host.add("Second")
    assert (await host.call("Second", a="b")).envelope.data["heard"] == {"a": "b"}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
