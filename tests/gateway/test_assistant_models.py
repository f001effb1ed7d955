"""Assistants that clients name as models."""

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.serving import ME, Gateway, gateway
from tests.gateway.upstream import replies
from toolyard.engine.chats.assistants import Assistants
from toolyard.engine.clock import SystemClock
from toolyard.protocol.records.assistant_record import AssistantOptions, Mode, ReasoningEffort

pytestmark = pytest.mark.requirement("assistant:models")
REVIEWER = AssistantOptions(
    name="Reviewer",
    instructions="Review. {{style}}",
    model="big",
    tools=("Say",),
    mode=Mode.READ_ONLY,
    temperature=0.2,
    reasoning_effort=ReasoningEffort.HIGH,
)


async def add_assistant(one: Gateway, options: AssistantOptions, caller: str = ME) -> None:
    await Assistants(one.yard.state.store, SystemClock()).add(caller, options)


def write_prompt(place: Path, name: str, text: str) -> None:
    folder = place / "home/prompts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


async def test_an_assistant_brings_its_prompt_model_and_options_to_a_chat(tmp_path: Path) -> None:
    write_prompt(tmp_path, "style.md", "Be {{how}}.")
    write_prompt(tmp_path, "variables.toml", 'how = "short"\n')
    async with gateway(tmp_path, replies("Fine.", "Fine.", "Fine.")) as one:
        await add_assistant(one, REVIEWER)
        await one.complete("Look.", model="assistant/Reviewer")
        await one.complete("Look.", model="assistant/Reviewer+plain", system="Mine.", temperature=1)
        first, second = one.upstream.bodies
    assert (first["model"], first["temperature"], first["reasoning_effort"]) == ("big", 0.2, "high")
    assert first["messages"][0] == {"role": "system", "content": "Review. Be short."}
    assert [tool["function"]["name"] for tool in first["tools"]] == ["Say"]
    assert second["messages"][0] == {"role": "system", "content": "Review. Be short.\n\nMine."}
    assert second["temperature"] == 1
    assert "tools" not in second


async def test_a_client_sees_its_assistants_and_those_in_files_among_the_models(tmp_path: Path) -> None:
    write_prompt(tmp_path, "helper.md", "---\nmodel: small\n---\nHelp.")
    async with gateway(tmp_path, replies("Fine."), served=True) as one, one.client() as client:
        await add_assistant(one, REVIEWER, "key:me")
        await add_assistant(one, AssistantOptions(name="Secret"), "key:other")
        listed = [model.id async for model in client.models.list()]
        assert [name for name in listed if name.startswith("assistant/")] == ["assistant/Reviewer", "assistant/helper"]
        assert (await client.models.retrieve("assistant/helper")).id == "assistant/helper"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("assistant/Secret")
        asked: Any = [{"role": "user", "content": "Hi"}]
        answer = await client.chat.completions.create(model="assistant/helper", messages=asked)
        assert answer.choices[0].message.content == "Fine."
        with pytest.raises(openai.NotFoundError, match="there is no assistant 'Secret' for this key"):
            await client.chat.completions.create(model="assistant/Secret", messages=asked)
        assert one.upstream.bodies[-1]["messages"][0]["content"] == "Help."
