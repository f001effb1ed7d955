"""Models that stand in for one whose provider does not answer, in every round of a turn."""

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.drawing import asks_natively
from tests.gateway.serving import ME, Gateway, chat_body, gateway, request
from tests.gateway.upstream import Answers, Provider, Script, provider, replies, says, streamed
from toolyard.gateway.chat_request import ClientRequest
from toolyard.provider_settings import Provider as Setting
from toolyard.provider_settings import ProviderOptions

pytestmark = pytest.mark.requirement("clients:fallback")
LIST: Mapping[str, tuple[str, ...]] = {"main": ("second/b", "third/c")}


@asynccontextmanager
async def three(
    place: Path, first: Answers, second: Answers, third: Answers, **settings: Any
) -> AsyncIterator[tuple[Gateway, Provider, Provider]]:
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(provider(answers)) for answers in (second, third)]
        named = {
            "second": Setting(others[0].url, "sk-second", (), ProviderOptions(tool_rounds=2)),
            "third": Setting(others[1].url, "sk-third"),
        }
        values = {"upstreams": named, "fallbacks": LIST, **settings}
        yield await stack.enter_async_context(gateway(place, first, settings=values)), others[0], others[1]


def refusal(status: int) -> Script:
    return Script([b'{"error": {"message": "from %d"}}' % status], status=status, kind="application/json")


def closed_port() -> str:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


async def text_of(one: Gateway, *, stream: bool) -> str:
    if stream:
        return (await one.stream(model="main")).text
    answer = await one.complete(model="main")
    return str(answer["choices"][0]["message"]["content"])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_the_next_of_the_list_answers_under_its_own_name(tmp_path: Path, status: int, stream: bool) -> None:
    async with three(tmp_path, [refusal(status)], [refusal(status)], replies("From the third.")) as (
        one,
        second,
        third,
    ):
        assert await text_of(one, stream=stream) == "From the third."
        assert [body["model"] for body in (one.upstream.bodies[0], second.bodies[0], *third.bodies)] == [
            "main",
            "b",
            "c",
        ]


async def test_one_that_cannot_be_reached_is_passed_over(tmp_path: Path) -> None:
    async with three(tmp_path, [], replies("From the second."), [], upstream_url=closed_port()) as (one, second, _):
        assert await text_of(one, stream=True) == "From the second."
        assert [body["model"] for body in second.bodies] == ["b"]


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_request_that_is_wrong_is_wrong_for_all(tmp_path: Path, status: int) -> None:
    async with three(tmp_path, [refusal(status)], replies("No."), replies("No.")) as (one, second, third):
        run = await one.chat.complete(ClientRequest(chat_body("Hi", model="main"), caller=ME))
        assert (run.status, second.bodies, third.bodies) == (status, [], [])


async def test_when_none_answers_the_client_hears_of_the_model_it_asked_for(tmp_path: Path) -> None:
    async with three(tmp_path, [refusal(503)], [refusal(500)], [refusal(404)]) as (one, _, third):
        run = await one.chat.complete(ClientRequest(chat_body("Hi", model="main"), caller=ME))
        assert (run.status, json.loads(run.body)["error"]["message"]) == (503, "from 503")
        assert len(third.bodies) == 1


async def test_after_the_first_byte_nobody_else_is_asked(tmp_path: Path) -> None:
    cut = Script(streamed("Hello there.")[:3], then="cut")
    async with three(tmp_path, [cut], replies("No."), replies("No.")) as (one, second, third):
        heard = await one.stream(model="main")
        assert heard.errors[0]["code"] == "upstream_cut_off"
        assert (second.bodies, third.bodies) == ([], [])


@pytest.mark.parametrize("stream", [True, False])
async def test_who_answered_keeps_the_turn_with_its_name_of_the_model(tmp_path: Path, stream: bool) -> None:
    block = request(text="hello")
    async with three(tmp_path, [refusal(500)], replies(block, "Done."), replies("No.")) as (one, second, third):
        assert (await text_of(one, stream=stream)).endswith("Done.")
        assert [body["model"] for body in second.bodies] == ["b", "b"]
        assert (len(one.ran), third.bodies) == (1, [])
        asks = len(one.upstream.bodies)
        await one.stream(model="main")  # the next turn begins at the head of the list
        assert len(one.upstream.bodies) > asks


@pytest.mark.parametrize("stream", [True, False])
async def test_in_a_later_round_another_one_answers_with_the_results_and_no_tool_runs_again(
    tmp_path: Path, stream: bool
) -> None:
    answers = [asks_natively({"stream": stream}, "Say", reasoning="signed"), refusal(503)]
    second_answers = [asks_natively({"stream": stream}, "Say"), refusal(404)]
    async with three(tmp_path, answers, second_answers, replies("From the third.")) as (one, second, third):
        assert (await text_of(one, stream=stream)).endswith("From the third.")
        assert len(one.ran) == 2
        told = [body["messages"] for body in (*second.bodies, *third.bodies)]
        assert [[message["role"] for message in messages] for messages in told] == [
            ["user", "assistant", "tool"],
            *[["user", "assistant", "tool", "assistant", "tool", "user"]] * 2,  # the second one allows two rounds
        ]
        assert "signed" in json.dumps(one.upstream.bodies[1])
        assert "signed" not in json.dumps(told)  # what only the first one may read
        assert [body["model"] for body in (*second.bodies, *third.bodies)] == ["b", "b", "c"]


async def test_when_nobody_answers_a_later_round_the_one_that_kept_the_turn_is_named(tmp_path: Path) -> None:
    answers = [says(request(text="hello")), refusal(503)]
    async with three(tmp_path, answers, [refusal(500)], [refusal(404)]) as (one, second, third):
        message = (await one.stream(model="main", toolyard={"show": "events"})).errors[0]["message"]
        assert "answered 503: from 503. Tools have already run" in message
        assert (len(one.ran), len(third.bodies)) == (1, 1)
        assert second.bodies != []


async def test_a_later_round_that_is_wrong_is_wrong_for_all(tmp_path: Path) -> None:
    answers = [says(request(text="hello")), refusal(422)]
    async with three(tmp_path, answers, replies("No."), replies("No.")) as (one, second, third):
        assert (await one.stream(model="main")).errors
        assert (len(one.ran), second.bodies, third.bodies) == (1, [], [])


async def test_other_models_have_no_list_and_the_guide_may_stand_in(tmp_path: Path) -> None:
    async with gateway(tmp_path, [refusal(500)], settings={"fallbacks": {"main": ("tour",)}}) as one:
        assert (await one.stream(model="other")).errors
        heard = await one.stream("hello", model="main")
        assert (heard.errors, heard.finishes) == ([], ["stop"])


async def test_numbers_beyond_64_bits_stay_when_the_model_is_renamed(tmp_path: Path) -> None:
    async with three(tmp_path, [refusal(500)], replies("Hi."), []) as (one, second, _):
        await one.complete(model="main", seed=123456789012345678901234567890)
        assert second.bodies[0]["seed"] == 123456789012345678901234567890


async def test_the_rounds_of_tool_work_are_those_of_who_answers(tmp_path: Path) -> None:
    async with three(tmp_path, [refusal(500)], replies("Hi."), []) as (one, _, _third):
        upstream, name = one.chat.upstreams.pick("main")
        assert (name, upstream.name, upstream.max_rounds) == ("main", "upstream", None)
        (await upstream.ask(b'{"model": "main"}', stream=False, retry=True)).close()
        assert (upstream.name, upstream.max_rounds) == ("second", 2)
