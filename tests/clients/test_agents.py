"""Programs that let a model use a Yard: the agent loops of the docs, and the adapters for agent frameworks."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.install import install_python_client
from tests.gateway.serving import request
from tests.gateway.test_idempotency_killed import effects
from tests.gateway.test_turns_killed import prepare
from tests.gateway.upstream import Call, Script, completion, provider, replies, says
from tests.web.server_process import start_server

ROOT: Final = Path(__file__).parents[2]
SOAK: Final = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
PATIENCE_S: Final = 300
USAGE: Final = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
SAID: Final = "Listed 2 entries in '.'. | NOT_FOUND: 'nope' does not exist. Check the path, or list its folder with LS."
CALLS: Final = (("call_1", "LS", {"path": "."}), ("call_2", "Read", {"path": "nope"}))
in_soak = pytest.mark.skipif(not SOAK, reason="installs packages from PyPI: only in soak")


def answer_as_openai(body: dict[str, Any]) -> Script:
    """A model that makes two calls at once, one of which fails, and repeats what the tools said."""
    assert {tool["function"]["name"] for tool in body["tools"]} >= {"LS", "Read"}
    results = {one["tool_call_id"]: one["content"] for one in body["messages"] if one["role"] == "tool"}
    if not results:
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id_, name, arguments in CALLS
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        return Script([completion(message, "tool_calls", USAGE)], kind="application/json")
    return says(join_texts([results[id_] for id_, _, _ in CALLS]), stream=False, usage=USAGE)


def answer_as_anthropic(call: Call) -> Script:
    """The same model behind Anthropic's API; it refuses what the real one refuses."""
    key = call.head.get("x-api-key") or call.head["Authorization"].removeprefix(
        "Bearer "
    )  # by the version of the package
    assert (call.path, "anthropic-version" in call.head, key) == ("/v1/messages", True, "sk-1")
    body = call.fields
    assert {tool["name"] for tool in body["tools"]} >= {"LS", "Read"}
    assert all(tool["input_schema"]["type"] == "object" for tool in body["tools"])
    assert body["max_tokens"] > 0
    last = body["messages"][-1]
    if isinstance(last["content"], str):
        content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": id_, "name": name, "input": arguments} for id_, name, arguments in CALLS
        ]
        return as_message([{"type": "text", "text": "I look."}, *content], "tool_use")
    asked = [block["id"] for block in body["messages"][-2]["content"] if block["type"] == "tool_use"]
    assert [(block["type"], block["tool_use_id"]) for block in last["content"]] == [
        ("tool_result", id_) for id_ in asked
    ]
    assert [block["is_error"] for block in last["content"]] == [False, True]
    text = join_texts([block["content"] for block in last["content"]])
    return as_message([{"type": "text", "text": text}], "end_turn")


def join_texts(contents: list[str]) -> str:
    """The first lines of what the tools said."""
    return " | ".join(content.split("\n")[0] for content in contents)


def as_message(content: list[dict[str, Any]], reason: str) -> Script:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    return Script([json.dumps(message).encode()], kind="application/json")


def read_loops(package: str) -> list[str]:
    """The agent loops of the docs that use a package: the blocking one and the asynchronous one."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    loops = [block for block in blocks if re.search(rf"^import {package}$", block, re.MULTILINE)]
    assert ["asyncio.run" in loop for loop in loops] == [False, True]
    return loops


async def run_program(place: Path, python: Path, code: str) -> tuple[str, list[dict[str, Any]]]:
    """Run a program beside ``my-project`` against the scripted model; what it prints, and the requests it made."""
    (place / "my-project/src").mkdir(parents=True)
    (place / "my-project/README.md").write_text("# My project\n")
    async with provider(answer_as_openai) as upstream:
        upstream.answer = answer_as_anthropic
        environment = {
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-1",
            "ANTHROPIC_BASE_URL": upstream.url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "sk-1",
            "TOOLYARD_HOME": str(place / "home"),
            "PYTHONPATH": str(ROOT / "docs/examples"),
        }
        process = await asyncio.create_subprocess_exec(
            *(python, "-c", code),
            cwd=place,
            env={"PATH": os.environ["PATH"], "HOME": str(place), **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode().strip(), [*upstream.bodies, *(dict(call.fields) for call in upstream.calls)]


@pytest.mark.requirement("python:agent-loop")
@pytest.mark.parametrize("number", [0, 1], ids=["blocking", "asynchronous"])
async def test_the_loop_for_the_openai_package_runs_as_it_is_written(tmp_path: Path, number: int) -> None:
    printed, bodies = await run_program(tmp_path, Path(sys.executable), read_loops("openai")[number])
    assert printed == SAID
    assert [len(body["messages"]) for body in bodies] == [1, 4]


@in_soak
@pytest.mark.requirement("python:agent-loop")
@pytest.mark.parametrize("number", [0, 1], ids=["blocking", "asynchronous"])
async def test_the_loop_for_the_anthropic_package_runs_as_it_is_written(tmp_path: Path, number: int) -> None:
    printed, bodies = await run_program(tmp_path, install_python_client("library"), read_loops("anthropic")[number])
    assert printed == SAID
    assert [len(body["messages"]) for body in bodies] == [1, 3]


VALIDATE: Final = """
import pathlib, toolyard
from anthropic.types import ToolParam, ToolResultBlockParam
from pydantic import TypeAdapter

results = TypeAdapter(ToolResultBlockParam)
pathlib.Path("my-project/a.gif").write_bytes(b"GIF89a")
with toolyard.open(project="my-project") as yard:
    tools = TypeAdapter(list[ToolParam]).validate_python(yard.tools(dialect="anthropic"), strict=True)
    for path in ("README.md", "a.gif", "nope"):
        result = yard.call("Read", {"path": path}, dialect="anthropic", tool_call_id="toolu_1")
        read = results.validate_python(result)
        content = read["content"] if isinstance(read["content"], str) else list(read["content"])
        assert {**read, "content": content} == result, result
print(len(tools) > 10)
"""


@in_soak
@pytest.mark.requirement("dialect:anthropic", "python:tools")
async def test_definitions_and_results_have_the_types_of_the_anthropic_package(tmp_path: Path) -> None:
    printed, _ = await run_program(tmp_path, install_python_client("library"), VALIDATE)
    assert printed == "True"


@in_soak
@pytest.mark.requirement("python:adapters")
@pytest.mark.parametrize("example", ["langchain_tools", "pydantic_ai_tools"])
@pytest.mark.parametrize("way", ["main()", "asyncio.run(main_async())"], ids=["blocking", "asynchronous"])
async def test_an_agent_framework_uses_the_tools_through_its_example(tmp_path: Path, example: str, way: str) -> None:
    code = f"import asyncio\nfrom {example} import main, main_async\n{way}\n"
    printed, bodies = await run_program(tmp_path, install_python_client("library"), code)
    assert printed == SAID
    assert len(bodies) == 2


ROUTER: Final = """
import sys
from litellm import Router
url, key = sys.argv[1:]
served = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": key}
router = Router(model_list=[{"model_name": "m", "litellm_params": served}], num_retries=3, timeout=4)
print(router.completion(model="m", messages=[{"role": "user", "content": "Hi."}]).choices[0].message.content)
"""
SLOW: Final = """
import json, sys, time
sys.stdin.read()
with open("effects", "a") as file:
    file.write("one\\n")
time.sleep(6)
print(json.dumps({"status": "success", "result": "counted"}))
"""


@in_soak
@pytest.mark.requirement("repeat:continue")
async def test_a_router_that_gives_up_while_a_tool_runs_and_asks_again_has_no_effect_twice(tmp_path: Path) -> None:
    """LiteLLM's, which marks no request as a retry."""
    python = await asyncio.to_thread(install_python_client, "litellm")
    async with provider(replies(request("Count"), "Done.")) as upstream:
        words = prepare(tmp_path, upstream.url, code=SLOW)
        async with start_server(tmp_path, *words) as server:
            client = await asyncio.create_subprocess_exec(
                python, "-c", ROUTER, server.url, server.key, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await asyncio.wait_for(client.communicate(), PATIENCE_S)
    assert output.decode().strip().endswith("Done.")
    assert effects(tmp_path) == 1
