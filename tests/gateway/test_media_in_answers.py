"""Pictures and other media of tools in the text of an answer, and in what a model sees of it later."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.drawing import LARGE, SMALL, SOUND, add_draw
from tests.gateway.serving import ME, PUBLIC_URL, Gateway, chat_body, gateway, request
from tests.gateway.upstream import replies
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.media_links import MAX_SHOWN
from toolyard.protocol.content import Media

DRAW = request("Draw")
LINK = re.escape(f"{PUBLIC_URL}/media/") + r"[0-9a-f]{64}\.(?:png|mp3)\?expires=\d+&signature=[0-9a-f]{64}"


async def text_of(one: Gateway, *, stream: bool, **more: Any) -> str:
    if stream:
        return (await one.stream("Draw.", **more)).text
    return str((await one.complete("Draw.", **more))["choices"][0]["message"]["content"])


@pytest.mark.requirement("media:markdown")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("show", "line"), [("summary", "> ✓ Draw: Drew it.\n\n"), ("hidden", "")])
async def test_a_picture_stands_in_the_answer_as_markdown_between_the_call_and_what_follows(
    tmp_path: Path, show: str, line: str, stream: bool
) -> None:
    async with gateway(tmp_path, replies(f"I draw.\n{DRAW}", "Here it is.")) as one:
        add_draw(one, LARGE, SMALL, SOUND)
        text = await text_of(one, stream=stream, toolyard={"show": show})
    gap = "\n" if not text.startswith("I draw.\n\n") else "\n\n"
    assert re.fullmatch(
        rf"I draw\.{gap}{re.escape(line)}"
        rf"!\[chart\.png\]\({LINK}\)\n\n!\[dot\.png\]\({re.escape(SMALL.data_uri())}\)\n\n"
        rf"\[audio: song\.mp3\]\({LINK}\)\n\nHere it is\.",
        text,
    ), text


@pytest.mark.requirement("media:markdown")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "more",
    [
        {"toolyard": {"show": "raw"}},
        {"toolyard": {"show": "events"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema"}, "toolyard": {"show": "summary"}},
    ],
)
async def test_no_media_stand_in_json_or_in_the_forms_of_clients_that_draw_them_themselves(
    tmp_path: Path, more: dict[str, Any], stream: bool
) -> None:
    async with gateway(tmp_path, replies(DRAW, '{"a": 1}')) as one:
        add_draw(one, LARGE, SMALL)
        text = await text_of(one, stream=stream, **more)
    assert "](" not in text
    assert '{"a": 1}' in text
    assert not (tmp_path / "home/media").exists()


@pytest.mark.requirement("media:markdown")
async def test_the_same_picture_is_shown_once_and_very_many_are_counted(tmp_path: Path) -> None:
    many = [Media("image/png", f"\x89PNG{number}".encode(), f"{number}.png") for number in range(MAX_SHOWN + 5)]
    async with gateway(tmp_path, replies(DRAW + "\n" + DRAW, "Done.")) as one:
        add_draw(one, *many)
        text = await text_of(one, stream=True)
    assert len(re.findall(r"!\[\d+\.png\]", text)) == MAX_SHOWN
    assert "\n\n(5 more are not shown.)\n\nDone." in text


@pytest.mark.requirement("media:markdown")
async def test_without_a_place_for_links_only_small_pictures_are_shown(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/media").write_text("in the way")
    async with gateway(tmp_path, replies(DRAW, "Done.")) as one:
        add_draw(one, LARGE, SMALL, SOUND)
        text = await text_of(one, stream=True)
    assert text == f"> ✓ Draw: Drew it.\n\n![dot.png]({SMALL.data_uri()})\n\nDone."


@pytest.mark.requirement("media:back")
@pytest.mark.parametrize("remembers", [True, False])
async def test_a_model_that_is_asked_again_sees_a_marker_and_no_address(tmp_path: Path, remembers: bool) -> None:
    settings = {"remember_tool_results": remembers}
    async with gateway(tmp_path, replies(DRAW, "Here it is.", "Thanks."), settings=settings) as one:
        add_draw(one, LARGE, SMALL)
        text = await text_of(one, stream=False)
        history: Any = [{"role": "user", "content": "Draw."}, {"role": "assistant", "content": text}]
        await one.chat.complete(
            ClientRequest({"messages": [*history, {"role": "user", "content": "Nice!"}]}, caller=ME)
        )
        sent = one.upstream.bodies[2]["messages"]
    written = json.dumps(sent)
    assert PUBLIC_URL not in written
    assert "base64" not in written
    if remembers:
        assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
        assert sent[2]["content"].endswith("Drew it.\n[picture]\n[picture]")
    else:
        assert sent[1]["content"] == "[picture: chart.png]\n\n[picture: dot.png]\n\nHere it is."


@pytest.mark.requirement("media:back")
async def test_what_a_person_sends_stays_as_it_is(tmp_path: Path) -> None:
    link = f"![a]({PUBLIC_URL}/media/{'a' * 64}.png?expires=1&signature={'b' * 64})"
    async with gateway(tmp_path, replies("Hm.")) as one:
        await one.complete(f"What is {link}?", toolyard={"offer": "none"})
        assert one.upstream.bodies[0] == chat_body(f"What is {link}?")
