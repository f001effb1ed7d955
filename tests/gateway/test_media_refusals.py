"""Providers that take no pictures: asked again without them, and remembered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from tests.gateway.drawing import SMALL, SOUND, add_draw, asks_natively, refuses
from tests.gateway.serving import gateway, request
from tests.gateway.upstream import Script, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFault, bad_request, refused_request
from toolyard.gateway.media_parts import KEPT_S, MAX_MODELS, MediaRefusals, may_refuse_media

pytestmark = pytest.mark.requirement("media:refused")
DRAW = request("Draw")


def model(refusal: Script, *, native: bool = False, takes: str = "") -> Callable[[dict[str, Any]], Script]:
    """One that asks for a drawing and refuses every request with media in it, but those it ``takes``."""

    def answer(body: dict[str, Any]) -> Script:
        written = json.dumps(body["messages"][1:])
        if ";base64," in (written.replace(f"data:{takes}", "") if takes else written) or "input_audio" in written:
            return refusal
        stream = bool(body.get("stream"))
        if body["messages"][-1]["content"] == "Hi.":
            return asks_natively(body, "Draw") if native else says(DRAW, stream=stream)
        return says("Done.", stream=stream)

    return answer


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("unknown variant `image_url`, expected `text`", 400),
        ("No endpoints found that support image input", 404),
        ("Bad request.", 400),
        ("this model is not multimodal", 422),
    ],
)
async def test_the_round_is_asked_once_more_with_a_marker_and_the_turn_goes_on(
    tmp_path: Path, message: str, status: int, native: bool, stream: bool
) -> None:
    async with gateway(tmp_path, model(refuses(message, status), native=native)) as one:
        add_draw(one, SMALL)
        for _ in range(2):
            if stream:
                heard = await one.stream("Hi.")
                assert (heard.errors, heard.text.endswith("Done.")) == ([], True)
            else:
                assert (await one.complete("Hi."))["choices"][0]["message"]["content"].endswith("Done.")
        with_media = [";base64," in json.dumps(body["messages"]) for body in one.upstream.bodies]
    assert with_media == [False, True, False, False, False]  # the second turn knows it
    assert "[picture: this model takes none]" in json.dumps(one.upstream.bodies[-1])


async def test_only_the_kinds_that_were_refused_are_left_out_later(tmp_path: Path) -> None:
    async with gateway(tmp_path, model(refuses("audio is not supported"), takes="image/png;base64,")) as one:
        drawn = add_draw(one, SOUND)
        await one.complete("Hi.")
        drawn[:] = [SMALL, SOUND]
        await one.complete("Hi.")
        last = one.upstream.bodies[-1]["messages"][-1]["content"]
    assert [part["type"] for part in last] == ["text", "image_url", "text"]
    assert last[2]["text"] == "[audio: this model takes none]"


async def test_a_provider_that_refuses_anyway_ends_the_turn_with_its_own_words(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Script:
        return says(DRAW, stream=False) if len(body["messages"]) == 1 else refuses("This conversation is not allowed")

    async with gateway(tmp_path, answer) as one:
        drawn = add_draw(one, SMALL)
        failed = await one.complete("Hi.")
        assert "This conversation is not allowed" in failed["error"]["message"]
        assert len(one.upstream.bodies) == 3
        drawn.clear()
        await one.complete("Hi.")
        assert len(one.upstream.bodies) == 5  # without media there is nothing to leave out


async def test_pictures_of_the_client_are_its_own_business(tmp_path: Path) -> None:
    parts: Any = [{"type": "text", "text": "Hi."}, {"type": "image_url", "image_url": {"url": SMALL.data_uri()}}]
    async with gateway(tmp_path, [refuses("no image input")]) as one:
        run = await one.chat.complete(
            ClientRequest({"messages": [{"role": "user", "content": parts}]}, caller="key:me")
        )
    assert run.status == 400
    assert len(one.upstream.bodies) == 1


def fault(status: int, message: str = "no") -> ChatFault:
    return refused_request("upstream", status, json.dumps({"error": {"message": message}}).encode()).fault


@pytest.mark.parametrize(
    ("refusal", "is_new", "expected"),
    [
        (fault(400), True, True),
        (fault(400), False, False),
        (fault(400, "image_url is not supported"), False, True),
        (fault(413), True, True),
        (fault(415), True, True),
        (fault(500, "image input is not supported"), True, True),
        (fault(500), True, False),
        (fault(401, "image"), True, False),
        (fault(429, "image"), True, False),
        (bad_request("image").fault, True, False),
    ],
)
def test_what_may_be_a_refusal_of_media(refusal: ChatFault, is_new: bool, expected: bool) -> None:
    assert may_refuse_media(refusal, is_new=is_new) is expected


def test_refusals_are_kept_by_provider_and_model_for_an_hour_and_are_bounded() -> None:
    clock = FakeClock()
    refusals = MediaRefusals(clock.monotonic)
    refusals.note(("a", "m"), frozenset({"image"}), fault(400))
    refusals.note(("a", "m"), frozenset({"audio"}), fault(400))
    assert refusals.find(("a", "m")) == {"image", "audio"}
    assert refusals.find(("b", "m")) == refusals.find(("a", "n")) == frozenset()
    clock.advance(KEPT_S)
    assert refusals.find(("a", "m")) == frozenset()
    for number in range(MAX_MODELS + 1):
        refusals.note(("a", str(number)), frozenset({"image"}), fault(400))
    assert not refusals.find(("a", "0"))
    assert refusals.find(("a", "1")) == {"image"}


@pytest.mark.parametrize(
    "too_large", [fault(413), fault(400, "image too large"), fault(400, "context length exceeded")]
)
def test_media_that_were_too_large_say_nothing_about_the_next_ones(too_large: ChatFault) -> None:
    refusals = MediaRefusals(FakeClock().monotonic)
    refusals.note(("a", "m"), frozenset({"image"}), too_large)
    assert refusals.find(("a", "m")) == frozenset()
