"""Media of tools as Markdown for people, and as markers for models."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes import bounded_work
from toolyard.gateway.media_parts import (
    ALL_KINDS,
    MAX_DATA_URL,
    part_kinds,
    replace_parts,
    replace_published,
    replace_published_messages,
    to_data_url,
    to_markdown,
)
from toolyard.protocol.content import Media

LINK = f"https://yard.example.org/media/{'ab' * 32}.png?expires=1790000000&signature={'cd' * 32}"
SOUND = LINK.replace(".png", ".mp3")
PNG = Media("image/png", b"\x89PNG\r\n\x1a\n" + b"x" * 50, "chart.png")


@pytest.mark.requirement("media:markdown")
def test_a_picture_is_an_image_and_a_sound_or_a_film_is_a_link() -> None:
    assert to_markdown(PNG, LINK, "Draw") == f"![chart.png]({LINK})"
    assert to_markdown(Media("image/png", b""), LINK, "Draw") == f"![Draw]({LINK})"
    assert to_markdown(Media("audio/mpeg", b"", "a.mp3"), SOUND, "Sing") == f"[audio: a.mp3]({SOUND})"
    assert to_markdown(Media("video/mp4", b"", "a.mp4"), "u", "Film") == "[video: a.mp4](u)"
    assert to_markdown(Media("image/tiff", b"", "a.tiff"), "u", "Scan") == "[picture: a.tiff](u)"  # browsers draw none


@pytest.mark.requirement("media:markdown")
def test_a_picture_up_to_16_kib_is_in_its_own_address_and_nothing_else_is() -> None:
    url = to_data_url(PNG)
    assert base64.b64decode(url.removeprefix("data:image/png;base64,")) == PNG.data
    fits = (MAX_DATA_URL - len("data:image/png;base64,")) // 4 * 3
    assert len(to_data_url(Media("image/png", b"x" * fits))) <= MAX_DATA_URL == 16_384
    assert to_data_url(Media("image/png", b"x" * (fits + 1))) == ""
    assert to_data_url(Media("audio/mpeg", b"x")) == ""
    assert to_data_url(Media("image/tiff", b"x")) == ""


@pytest.mark.requirement("media:markdown")
@given(st.text(max_size=200))
@example("{" * 100)
def test_no_name_that_a_tool_gives_breaks_out_of_the_markdown(name: str) -> None:
    made = to_markdown(Media("image/png", b"", name), LINK, "Draw")
    assert made.endswith(f"]({LINK})")
    inner = made.removeprefix("![").removesuffix(f"]({LINK})")
    assert not set(inner) & set("[]<>`\\\n\r")
    assert len(inner.replace("\u200b", "")) <= 80
    assert replace_published(made) == f"[picture: {inner}]"


@pytest.mark.requirement("media:back")
def test_what_comes_back_is_a_marker_wherever_it_stands_and_whoever_had_the_server_then() -> None:
    text = f"Look:\n\n![chart.png]({LINK})\n\n![small]({to_data_url(PNG)}) and [audio: a.mp3]({SOUND})."
    assert replace_published(text) == "Look:\n\n[picture: chart.png]\n\n[picture: small] and [audio: a.mp3]."
    for base in ("http://127.0.0.1:6005", "http://[::1]:80", "https://other.example.org"):
        assert replace_published(f"![a]({LINK.replace('https://yard.example.org', base)})") == "[picture: a]"


@pytest.mark.requirement("media:back")
@pytest.mark.parametrize(
    "text",
    [
        "![a](https://example.org/media/cat.png)",
        f"![a]({LINK}0)",
        f"![a]({LINK[:-1]})",
        "![a](data:image/svg+xml;base64,PHN2Zy8+)",  # a model may write one, and be asked to change it
        "![a](data:text/html;base64,AAAA)",
        f"![a](data:image/png;base64,{'A' * (MAX_DATA_URL + 1)})",
        LINK,
    ],
)
def test_what_is_not_ours_stays_as_it_is(text: str) -> None:
    assert replace_published(text) == text


@pytest.mark.requirement("media:back")
@pytest.mark.parametrize(
    "piece",
    [
        "![a](data:image/png;base64,AAAA",
        "![a](https://h/media/",
        "[" * 50,
        "![a](https://h",
        "](",
        "data:image/png;base64,",
    ],
)
def test_finding_them_takes_linear_time(piece: str) -> None:
    text = piece * (2_000_000 // len(piece)) + "/media/ ;base64,"
    with bounded_work():
        assert replace_published(text) == text


@pytest.mark.requirement("media:back")
def test_only_what_assistants_said_is_changed_and_a_request_without_any_stays_the_same_object() -> None:
    image = f"![a]({LINK})"
    plain: Any = [
        {"role": "user", "content": image},
        {"role": "assistant", "content": "Hi."},
        "odd",
        {"role": "assistant"},
    ]
    assert replace_published_messages(plain) is plain
    parts: Any = [{"type": "text", "text": image}, {"type": "refusal", "refusal": "no"}]
    made = replace_published_messages(
        [*plain, {"role": "assistant", "content": image}, {"role": "assistant", "content": parts}]
    )
    assert made[:4] == plain
    assert made[4] == {"role": "assistant", "content": "[picture: a]"}
    assert made[5] == {"role": "assistant", "content": [{"type": "text", "text": "[picture: a]"}, parts[1]]}


@pytest.mark.requirement("media:refused")
def test_parts_with_media_become_markers_and_a_message_of_texts_alone_becomes_one_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": PNG.data_uri()}}
    sound = {"type": "image_url", "image_url": {"url": "data:audio/mpeg;base64,AAAA"}}
    spoken = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
    film = {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}
    title = {"type": "text", "text": "Media:"}
    messages: Any = [
        {"role": "user", "content": [title, picture, sound, spoken, film]},
        {"role": "user", "content": "Hi"},
    ]
    assert part_kinds(messages) == {"image", "audio", "video"}
    assert replace_parts(messages, ALL_KINDS)[0] == {
        "role": "user",
        "content": "Media:\n[picture]\n[audio]\n[audio]\n[video]",
    }
    some: Any = replace_parts(messages, frozenset({"audio"}), ": none")
    assert some[0]["content"] == [title, picture, *[{"type": "text", "text": "[audio: none]"}] * 2, film]
    assert some[1] is messages[1]
    assert "base64" not in json.dumps(replace_parts(messages, ALL_KINDS))
