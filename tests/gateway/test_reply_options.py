"""Options of a reply on their way to the provider, and the tokens that its rounds use."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.upstream import Script, says

OPTIONS: dict[str, Any] = {"temperature": 0.2, "max_tokens": 900, "reasoning_effort": "high"}
OTHER = "max_completion_tokens"


def refusal(message: str) -> Script:
    fault = {"error": {"message": message, "code": "unsupported_parameter", "param": "max_tokens"}}
    return Script([json.dumps(fault).encode()], status=400, kind="application/json")


@pytest.mark.requirement("chat:reply-options")
async def test_temperature_token_limit_and_effort_reach_the_provider_in_every_round_as_they_came(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, [says(request(text="once")), says("Done.")]) as one:
        await one.stream(**OPTIONS)
        await one.complete()
        first, second, plain = one.upstream.bodies
    for body in (first, second):
        assert {name: body[name] for name in OPTIONS} == OPTIONS
    assert not {*OPTIONS, OTHER} & set(plain), "nothing is added that was not set"


@pytest.mark.requirement("chat:reply-options")
async def test_a_model_that_wants_the_token_limit_under_its_other_name_is_asked_again_so(tmp_path: Path) -> None:
    def model(body: dict[str, Any]) -> Script:
        if "max_tokens" in body:
            return refusal(f"'max_tokens' is not supported with this model. Use '{OTHER}' instead.")
        return says(request(text="once")) if len(one.upstream.bodies) == 2 else says("Done.")

    async with gateway(tmp_path, model) as one:
        answer = await one.stream(**OPTIONS)
        bodies = one.upstream.bodies
        assert answer.text.endswith("Done.")
        assert [(body.get("max_tokens"), body.get(OTHER)) for body in bodies] == [(900, None), (None, 900), (None, 900)]
        assert len(one.ran) == 1


@pytest.mark.requirement("chat:reply-options")
async def test_another_refusal_of_an_option_is_told_as_it_is(tmp_path: Path) -> None:
    async with gateway(tmp_path, [refusal("'temperature' does not support 0.2 with this model.")]) as one:
        answer = await one.complete(**OPTIONS)
        assert "does not support 0.2" in answer["error"]["message"]
        assert len(one.upstream.bodies) == 1


@pytest.mark.requirement("chat:token-use")
async def test_a_client_that_draws_events_hears_the_tokens_of_each_round_and_of_the_offered_tools(
    tmp_path: Path,
) -> None:
    def model(_: dict[str, Any]) -> Script:
        number = len(one.upstream.bodies)
        script = says(request(text="once") if number == 1 else "Done.")
        use = {"choices": [], "usage": {"prompt_tokens": 100 * number, "completion_tokens": 5, "total_tokens": 1}}
        return Script([*script.pieces[:-1], f"data: {json.dumps(use)}\n\n".encode(), script.pieces[-1]])

    async with gateway(tmp_path, model) as one:
        answer = await one.stream(toolyard={"show": "events", "offer": "native"})
        rounds = [
            event["toolyard"] for event in answer.events if event.get("toolyard", {}).get("type") == "round.ended"
        ]
        assert [used["usage"]["prompt_tokens"] for used in rounds] == [100, 200]
        assert all(used["offer"]["tokens"] > 0 and used["offer"]["tools"] > 0 for used in rounds)
        quiet = await one.stream()
        assert not any("toolyard" in event for event in quiet.events)
