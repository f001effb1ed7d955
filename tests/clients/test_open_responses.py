"""The compliance test of Open Responses against a server as a person starts it.

It runs where the variable ``OPEN_RESPONSES`` names a checkout of ``openresponses/openresponses`` in which ``bun
install`` has run; nothing of it is kept here. Its tests ask a model to say something or to call the tool they bring.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.install import install_node_program
from tests.gateway.upstream import DONE, Script, chunk, completion, provider, says
from tests.web.server_process import start_server

CHECKOUT: Final = os.environ.get("OPEN_RESPONSES", "")
PATIENCE_S: Final = 300
TEST: Final = "bin/compliance-test.ts"


def answer(body: dict[str, Any]) -> Script:
    """A model that calls the tool of the test, and else says something."""
    is_streamed = bool(body.get("stream"))
    if not any(tool["function"]["name"] == "get_weather" for tool in body.get("tools", ())):
        return says("Ahoy, that is done.", stream=is_streamed)
    function = {"name": "get_weather", "arguments": '{"location": "San Francisco, CA"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if is_streamed:
        first = chunk({**message, "tool_calls": [{"index": 0, **call}]})
        return Script([first, chunk({}, "tool_calls"), DONE])
    return Script([completion(message, "tool_calls")], kind="application/json")


@pytest.mark.requirement("responses:compliance")
@pytest.mark.skipif(not CHECKOUT, reason="OPEN_RESPONSES names no checkout of openresponses/openresponses")
async def test_the_compliance_test_of_open_responses_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (Path(CHECKOUT) / TEST).exists():
        pytest.skip(f"{CHECKOUT} has no {TEST}")
    bun = await asyncio.to_thread(install_node_program, "bun")
    async with provider(answer) as upstream:
        monkeypatch.setenv("OPENAI_BASE_URL", upstream.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider")
        async with start_server(tmp_path) as server:
            testing = await asyncio.create_subprocess_exec(
                *(bun, "run", TEST, "--base-url", f"{server.url}/v1", "--api-key", server.key),
                *("--model", "scripted", "--json"),
                cwd=CHECKOUT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(PATIENCE_S):
                out, err = await testing.communicate()
    assert out, err.decode()
    report = json.loads(out)
    assert {one["id"]: one["errors"] for one in report["results"] if one["status"] != "passed"} == {}
    assert report["summary"]["passed"] > 0
