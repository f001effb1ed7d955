"""Prompts over HTTP, and prompts of an installation in chats of a real server."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.upstream import provider, replies
from tests.vcp.prompts import Tree
from tests.web.conftest import RunningServer, run_server
from toolyard.web.security.scope import Scope

PATH = "/v1/prompts"


@pytest.mark.requirement("prompt:list")
async def test_prompts_are_listed_and_a_system_message_is_shown_as_the_model_gets_it(
    running_server: RunningServer,
) -> None:
    folder = running_server.home / "prompts"
    folder.mkdir()
    (folder / "style.md").write_text("---\nmodel: gpt\ndescription: how to write\n---\nBe {{how}}.")
    (folder / "variables.toml").write_text('how = "short"\nbad = 1\n')
    shown = (await running_server.post(f"{PATH}/fill", {"text": "{{style}} {{Nobody}} {{VCPRead}}"})).json
    assert shown["text"].startswith("Be short. {{Nobody}} - Read")
    assert (shown["unfilled"], shown["lists_tools"]) == (["Nobody"], True)
    listed = (await running_server.get(PATH)).json
    rows = {row["name"]: row for row in listed["data"]}
    assert (rows["style"]["kind"], rows["style"]["model"], rows["style"]["text"]) == ("prompt", "gpt", "Be {{how}}.")
    assert (rows["how"]["kind"], rows["how"]["model"], rows["style"]["description"]) == (
        "variable", None, "how to write",
    )  # fmt: skip
    assert listed["problems"][0]["message"] == "'bad' is no text: put it in quotes"
    assert listed["unfilled"] == [{"name": "Nobody", "requests": 1}]
    assert listed["installation"] is None
    checks = [row for row in (await running_server.get("/v1/doctor")).json["data"] if row["name"] == "prompts"]
    assert [row["level"] for row in checks] == ["warn", "warn"]
    assert checks[1]["message"] == "Nothing fills these names in system messages: {{Nobody}}"
    assert (await running_server.get(PATH, key=running_server.make_key(Scope.CHAT))).status == 403
    deep = {f"{number}.md": f"{{{{p{number + 1}}}}}" for number in range(40)}
    for name, text in deep.items():
        (folder / f"p{name}").write_text(text)
    refused = await running_server.post(f"{PATH}/fill", {"text": "{{p0}}"})
    assert refused.status == 400
    assert "longer by more than" in str(refused.json)


@pytest.mark.requirement("vcp:prompts:served", "prompt:unfilled", "assistant:files")
async def test_chats_of_a_server_use_the_prompts_of_its_installation(tmp_path: Path) -> None:
    tree = Tree(
        root=tmp_path / "VCP",
        agents={"Nova": "I am Nova in {{VarCity}} at {{Port}}. {{style}} {{VCPNobody}}"},
        settings="VarCity=Paris\nPORT=1\nSuperDetector1=bad\nSuperDetector_Output1=good\n",
    ).write()
    (tree / "Plugin").mkdir(exist_ok=True)
    folder = tmp_path / "home/prompts"
    folder.mkdir(parents=True)
    (folder / "style.md").write_text("Be short.")
    (folder / "nova.md").write_text("---\nmodel: gpt\n---\n{{Nova}}")
    async with provider(replies("Fine.", "Fine.")) as upstream:
        settings = f'vcp = "{tree}"\nupstream_url = "{upstream.url}"\nupstream_key = "sk"\noffer = "none"\n'
        async with run_server(tmp_path, settings=settings) as running:
            port = running.server.internal_url.rpartition(":")[2]
            prompt = f"I am Nova in Paris at {port}. Be short. {{{{VCPNobody}}}}"
            asked: Any = {"model": "assistant/nova", "messages": [{"role": "user", "content": "bad {{VarCity}}"}]}
            answer = await running.post("/v1/chat/completions", asked)
            assert answer.json["choices"][0]["message"]["content"] == "Fine."
            assert upstream.bodies[0]["messages"] == [
                {"role": "system", "content": prompt},
                {"role": "user", "content": "good {{VarCity}}"},
            ]
            (tree / "config.env").write_text("VarCity=Oslo\n")
            named = {"X-Toolyard-Chat": "mine"}
            await running.post("/v1/chat/completions", asked, headers=named)
            assert upstream.bodies[1]["messages"][0]["content"] == prompt.replace("Paris", "Oslo")
            assert (await running.get("/v1/chats/mine")).json["unfilled"] == ["VCPNobody"]
            listed = (await running.get(PATH)).json
            assert listed["installation"] == str(tree)
            assert {("Nova", "agent"), ("VarCity", "variable"), ("style", "prompt")} <= {
                (row["name"], row["kind"]) for row in listed["data"]
            }
            assert "assistant/nova" in [one["id"] for one in (await running.get("/v1/models")).json["data"]]
