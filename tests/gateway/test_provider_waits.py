"""Waits for a provider: a chat that shows events is told of each, and no other client sees anything of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import Gateway, StreamedAnswer, gateway, request
from tests.gateway.test_fallback import refusal, three
from tests.gateway.upstream import Script, replies, says, streamed

pytestmark = pytest.mark.requirement("chat:waits")
TOLD = {"show": "events", "chat": "waits"}


def waits(heard: StreamedAnswer) -> list[dict[str, Any]]:
    found = [event["toolyard"] for event in heard.events if "toolyard" in event]
    return [one for one in found if one["type"].startswith("provider.") and one.pop("at") > 1_700_000_000]


async def listen(one: Gateway, **toolyard: str) -> StreamedAnswer:
    return await one.stream(toolyard=toolyard)


async def test_each_pause_tells_the_reason_the_length_and_the_attempt(tmp_path: Path) -> None:
    busy = Script([b"{}"], status=429, kind="application/json", headers={"Retry-After": "1"})
    rounds = [busy, refusal(503), says(request(text="a")), refusal(500), says("Hi.")]
    async with gateway(tmp_path, rounds) as one:
        heard = await listen(one, **TOLD)
        shared = {"type": "provider.retry", "provider": "upstream", "attempts": 3}
        assert waits(heard) == [
            shared | {"code": "upstream_429", "status": 429, "pause_s": 1.0, "attempt": 2},
            shared | {"code": "upstream_503", "status": 503, "pause_s": 0.02, "attempt": 3},
            shared | {"code": "upstream_500", "status": 500, "pause_s": 0.01, "attempt": 2},
        ]
        kinds = [event["toolyard"]["type"] for event in heard.events if "toolyard" in event]
        assert kinds[2:] == ["round.ended", "call.started", "call.finished", "provider.retry", "round.ended"]
        assert (heard.text.strip(), heard.done) == ("Hi.", 1)
        assert all(event["choices"] == [] for event in heard.events if "toolyard" in event)


async def test_an_answer_that_broke_off_before_its_first_word_is_told_as_well(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(then="cut"), says("Hi.")]) as one:
        heard = await listen(one, **TOLD)
        (wait,) = waits(heard)
        assert (wait["code"], wait["status"], wait["pause_s"], heard.text) == ("upstream_cut_off", None, 0, "Hi.")


async def test_a_fallback_names_the_provider_that_is_asked_instead(tmp_path: Path) -> None:
    async with three(tmp_path, [refusal(401)], [refusal(404)], replies("From the third.")) as (one, _, _):
        heard = await one.stream(model="main", toolyard=TOLD)
        assert waits(heard) == [
            {"type": "provider.fallback", "provider": "upstream", "code": "upstream_401", "status": 401,
             "next": "second"},
            {"type": "provider.fallback", "provider": "second", "code": "upstream_404", "status": 404, "next": "third"},
        ]  # fmt: skip
        assert heard.text == "From the third."


async def test_a_provider_that_never_answers_is_an_error_of_the_stream_once_a_wait_was_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, [refusal(503)]) as one:
        heard = await listen(one, **TOLD)
        assert [wait["attempt"] for wait in waits(heard)] == [2, 3]
        assert (heard.status, heard.errors) == (200, [{"message": "from 503", "code": "upstream_503"}])
    async with gateway(tmp_path / "wrong", [refusal(400)]) as one:
        heard = await listen(one, **TOLD)  # nothing was waited for
        assert (heard.status, heard.errors) == (400, [{"message": "from 400"}])


@pytest.mark.parametrize("toolyard", [{"chat": "c"}, {"show": "raw", "chat": "c"}, {"show": "hidden"}, {}])
async def test_other_clients_see_nothing_of_it(tmp_path: Path, toolyard: dict[str, str]) -> None:
    plain = streamed("Hi.")
    async with gateway(tmp_path, [refusal(503), Script(plain)]) as one:
        heard = await listen(one, **toolyard)
        assert heard == StreamedAnswer.from_bytes(b"".join(plain))
    async with gateway(tmp_path / "failing", [refusal(503)]) as one:
        assert (await listen(one, **toolyard)).status == 503
