"""The Python API: the same calls as everywhere, without a server."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import toolyard
from toolyard.blocking import BlockingYard
from toolyard.errors import ConfigError, UsageError
from toolyard.protocol.envelope import Envelope, ErrorCode, Status


@pytest.mark.requirement("python:open", "python:call", "python:to-dict", "runner:one-way")
def test_a_call_returns_the_full_envelope(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("one\ntwo\n")
    envelope = yard.call("Read", {"path": "a.txt"})
    assert isinstance(envelope, Envelope)
    assert envelope.status is Status.SUCCESS
    assert envelope.data["content"] == "1\tone\n2\ttwo"
    assert Envelope.from_dict(json.loads(json.dumps(envelope.to_dict()))) == envelope


@pytest.mark.requirement("python:call")
def test_a_failed_tool_is_an_envelope_and_not_an_exception(yard: BlockingYard) -> None:
    envelope = yard.call("Nothing", {})
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.NOT_FOUND


@pytest.mark.requirement("python:call")
@pytest.mark.parametrize("tool", ["Read", "FileOperator"])
def test_a_name_that_is_no_text_is_refused_like_any_other(yard: BlockingYard, tool: str) -> None:
    unnamed: Any = {5: "a.txt"}
    envelope = yard.call(tool, unnamed)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.INVALID_PARAM


BLOCK = """<<<[TOOL_REQUEST]>>>
maid:「始」Nova「末」,
tool_name:「始」{tool}「末」,
{fields}
<<<[END_TOOL_REQUEST]>>>
"""


@pytest.mark.requirement("python:requests")
@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        ("LS", {"path": "."}),
        ("Read", {"path": "a.txt"}),
        ("Read", {"path1": "a.txt", "path2": "a.txt", "valet": "Nova"}),
        ("Grep", {"pattern": "one", "case_sensitive": "false"}),
        ("Write", {"path": "b.txt", "content": "x"}),
        ("Replace", {"path": "c.txt", "content": "x"}),
        ("Edit", {"path": "a.txt", "old_string": "one", "new_string": "two"}),
        ("FileOperator", {"command": "ReadFile", "filePath": "a.txt"}),
        ("FileOperator", {"command1": "ListDirectory", "directoryPath1": ".", "command2": "ListAllowedDirectories"}),
    ],
)
def test_a_request_of_a_text_can_be_called_as_it_was_parsed(
    project: Path, yard: BlockingYard, tool: str, fields: dict[str, str]
) -> None:
    (project / "a.txt").write_text("one\n")
    written = ",\n".join(f"{name}:「始」{value}「末」" for name, value in fields.items())
    (request,) = toolyard.parse_requests(BLOCK.format(tool=tool, fields=written))
    args = request["args"]
    assert isinstance(args, dict)
    envelope = yard.call(str(request["tool"]), args)
    assert envelope.status is Status.SUCCESS, envelope.text
    assert envelope.context["params_input"] == {"maid": "Nova", **fields}


@pytest.mark.requirement("python:requests")
async def test_the_signer_of_a_call_is_kept_with_it_and_is_no_argument(project: Path, tmp_path: Path) -> None:
    async with toolyard.open_async(project=project, home=tmp_path / "home") as yard:
        for name in ("maid", "valet"):
            call = yard.calls.request("LS", {name: "Nova"})
            outcome = await yard.calls.settle(call)
            assert (call.maid, outcome.envelope.status) == ("Nova", "success")
            assert name not in outcome.arguments
            kept = await yard.state.journal.get(call.id)
            assert kept is not None
            assert kept["maid"] == "Nova"
        refused = (await yard.calls.settle(yard.calls.request("LS", {"made": "Nova"}))).envelope
        assert "unknown parameter 'made'" in refused.text


@pytest.mark.requirement("tool:seed-names", "dialect:backend:names")
def test_the_names_of_the_seed_can_be_called(project: Path, yard: BlockingYard) -> None:
    message = yard.call("Replace", {"path": "a.txt", "content": "x"}, dialect="backend")
    assert (message["tool_name"], message["data"]["type"]) == ("Replace", "create")
    notebook: dict[str, Any] = {
        "cells": [{"cell_type": "code", "source": "", "metadata": {}, "outputs": [], "execution_count": None}]
    }
    (project / "a.ipynb").write_text(json.dumps({**notebook, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    cell = {"notebook_path": "a.ipynb", "cell_number": 0, "new_source": "1"}
    message = yard.call("NotebookEditCell", cell, dialect="backend")
    assert (message["tool_name"], message["data"]["edit_mode"]) == ("NotebookEditCell", "replace")


@pytest.mark.requirement("tool:seed-names")
@pytest.mark.parametrize(
    ("name", "meant"), [("Replce", "Replace"), ("replace", "Replace"), ("NotebookEditCel", "NotebookEditCell")]
)
def test_a_near_miss_of_a_name_of_the_seed_suggests_it(yard: BlockingYard, name: str, meant: str) -> None:
    envelope = yard.call(name, {})
    assert envelope.error is not None
    assert envelope.error.message == f"There is no tool called '{name}'. Did you mean '{meant}'?"


@pytest.mark.requirement("python:dialect", "dialect:envelope")
@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("envelope", ["status", "data", "text", "stats", "context"]),
        ("vcp", ["status", "result"]),
        ("backend", ["type", "tool_name", "tool_use_id", "uuid", "data"]),
        ("openai", ["role", "tool_call_id", "content"]),
        ("anthropic", ["type", "tool_use_id", "content", "is_error"]),
        ("mcp", ["content", "isError", "_meta"]),
    ],
)
def test_a_call_with_a_dialect_returns_a_dict_in_it(yard: BlockingYard, dialect: str, keys: list[str]) -> None:
    assert list(yard.call("LS", dialect=dialect)) == keys


@pytest.mark.requirement("python:dialect")
def test_an_unknown_dialect_is_refused_before_the_tool_runs(yard: BlockingYard) -> None:
    with pytest.raises(
        UsageError, match="unknown dialect 'xml': choose one of envelope, vcp, backend, openai, anthropic, mcp"
    ):
        yard.call("LS", dialect="xml")


@pytest.mark.requirement("python:open-async")
async def test_the_asynchronous_form_gives_the_same_results(project: Path, yard: BlockingYard) -> None:
    (project / "a.txt").write_text("x")
    async with toolyard.open_async(project=project) as other:
        both = [(await other.call("LS")).data, yard.call("LS").data]
        many = await asyncio.gather(*(other.call("Read", {"path": "a.txt"}) for _ in range(20)))
    assert both[0] == both[1]
    assert {str(envelope.data["content"]) for envelope in many} == {"1\tx"}


@pytest.mark.requirement("python:open-async", "runner:cancel")
async def test_a_call_can_be_made_in_steps_cancelled_and_expressed_in_several_dialects(
    project: Path, tmp_path: Path
) -> None:
    (project / "a.txt").write_text("text")
    async with toolyard.open_async(project=project, home=tmp_path / "home") as yard:
        call = yard.request("Read", {"path": "a.txt"})
        assert not yard.cancel(call.id)  # it does not run yet
        outcome = await yard.settle(call)
        full, shown = yard.express(call, outcome, "envelope"), yard.express(call, outcome, "openai", shown=True)
    assert full == outcome.envelope.to_dict()
    assert shown["tool_call_id"] == call.id


@pytest.mark.requirement("python:threads")
def test_each_of_many_threads_gets_its_own_answer(project: Path, yard: BlockingYard) -> None:
    for number in range(40):
        (project / f"{number}.txt").write_text(f"text {number}")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: yard.call("Read", {"path": f"{number}.txt"}).data["content"], range(40)))
    assert found == [f"1\ttext {number}" for number in range(40)]


@pytest.mark.requirement("python:open")
def test_a_closed_yard_says_so_and_may_be_closed_again(project: Path) -> None:
    yard = toolyard.open(project=project)
    yard.close()
    yard.close()
    with pytest.raises(RuntimeError, match=r"open another one with toolyard\.open"):
        yard.call("LS")


@pytest.mark.requirement("python:open", "python:threads")
def test_a_call_that_begins_while_another_thread_closes_is_told_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = toolyard.open(project=project)
    begins, go, real = threading.Event(), threading.Event(), yard._yard.call

    def slow(*given: Any, **more: Any) -> Any:
        begins.set()
        assert go.wait(60)
        return real(*given, **more)

    monkeypatch.setattr(yard._yard, "call", slow)
    with ThreadPoolExecutor(2) as pool:
        calling = pool.submit(yard.call, "LS")
        assert begins.wait(60)
        closing = pool.submit(yard.close)
        wait([closing], timeout=0.2)  # it waits for the call to be let in
        go.set()
        closing.result(60)
        try:
            envelope = calling.result(60)
        except RuntimeError as error:
            assert "this Yard is closed" in str(error)  # noqa: PT017
        else:
            assert envelope.error is None or envelope.context["reason"] == "CANCELLED"


@pytest.mark.requirement("python:open")
def test_opening_and_closing_leaves_no_descriptor_and_no_thread_behind(project: Path) -> None:
    def open_descriptors() -> set[str]:
        return set(os.listdir("/proc/self/fd"))

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    toolyard.open(project=project).close()
    descriptors, threads = open_descriptors(), set(threading.enumerate())
    for _ in range(5):
        with toolyard.open(project=project) as yard:
            yard.call("LS")
    assert open_descriptors() <= descriptors  # what others have left may go meanwhile
    assert set(threading.enumerate()) <= threads


@pytest.mark.requirement("python:open", "cli:project")
def test_a_project_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        toolyard.open(project=tmp_path / "missing")


@pytest.mark.requirement("cli:config:check")
def test_a_wrong_setting_is_refused_when_opening(project: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('truncation_direction = "left"\n')
    with pytest.raises(ConfigError, match='truncation_direction: expected "head" or "tail"'):
        toolyard.open(project=project, home=tmp_path)


@pytest.mark.requirement("truncation:direction", "truncation:full")
def test_the_openai_dialect_carries_the_shown_result_and_the_others_the_full_one(project: Path, tmp_path: Path) -> None:
    items = {f"path{number}": "a.txt" for number in range(1, 40)}
    (project / "a.txt").write_text("line\n" * 300)
    with toolyard.open(project=project, home=tmp_path / "home") as yard:
        full = yard.call("Read", dict(items), dialect="mcp")["_meta"]["toolyard/envelope"]
        shown = yard.call("Read", dict(items), dialect="openai")["content"]
    assert "truncation" not in full["data"]
    stored = re.search(r"The whole result as JSON is in (\S+\.json)\.\n", shown)
    assert stored
    assert (project / stored[1]).exists()


@pytest.mark.requirement("python:open")
def test_a_signal_may_close_a_yard_in_the_moment_a_call_begins(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = toolyard.open(project=project, home=tmp_path / "home")

    def handler(*_: object, **__: object) -> None:
        yard.close()
        raise SystemExit

    def run() -> None:
        with contextlib.suppress(SystemExit):
            yard.call("LS")

    monkeypatch.setattr(yard._yard, "call", handler)
    calling = threading.Thread(target=run, daemon=True)
    calling.start()
    calling.join(60)
    assert not calling.is_alive()


@pytest.mark.requirement("python:types")
def test_the_public_types_are_those_of_the_package_and_loaded_when_they_are_used() -> None:
    assert toolyard.BlockingYard is BlockingYard
    assert toolyard.Envelope is Envelope
    assert toolyard.UsageError is UsageError
    assert [name for name in toolyard.__all__ if not hasattr(toolyard, name)] == []
    assert set(toolyard.__all__) <= set(dir(toolyard))
    code = "import sys, toolyard; print([name for name in sys.modules if name.startswith('toolyard.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    code = "from toolyard import Yard, Status; print(Yard.__module__, Status.SUCCESS)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "toolyard.yard.yard success\n"


@pytest.mark.requirement("python:types")
def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Yards'"):
        toolyard.Yards  # type: ignore[attr-defined]  # noqa: B018
