"""Hostile replies as HTML: nothing runs, nothing is fetched, nothing reaches out of its place."""

import json
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.render.attacks import ATTACKS, Attack
from tests.render.elements import faults, root
from toolyard.protocol.json import Json
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment, AttachmentType, Problem, ProblemCode, Reply, ReplyError
from toolyard.protocol.reply import parse_reply
from toolyard.render.html import to_html

ROWS = ("S-60", "S-61", "S-62", "S-63", "S-64", "S-65", "S-66", "S-67", "S-68", "S-69")


def with_one(content: str, id_: str, type_: str, data: Json, **named: str) -> Reply:
    written = {"content": content, "attachments": {id_: {"type": type_, "content": data, **named}}}
    reply = parse_reply(json.dumps(written))
    assert isinstance(reply, Reply)
    return reply


def _attached(type_: str) -> Callable[[str], Reply]:
    return lambda text: with_one(f"{{{{{type_}:x}}}} in a line {{{{{type_}:x}}}} too", "x", type_, text)


PLACES: dict[str, Callable[[str], Reply | ReplyError]] = {
    "content": Reply,
    "think": lambda text: Reply("x", think=text),
    "a cell": lambda text: Reply("| a |\n|---|\n| " + text.replace("\n", " ") + " |"),
    "a list and a quote": lambda text: Reply("- " + text.replace("\n", "\n  ") + "\n\n> " + text.replace("\n", "\n> ")),
    "a link": lambda text: Reply(f"[{text}](https://example.com) [x]({text}) [x](<{text}> '{text}')"),
    "a picture": lambda text: Reply(f"![{text}](https://example.com/x.png) ![x]({text}) ![x](<{text}>)"),
    "a formula": lambda text: Reply(f"${text}$ $$\n{text}\n$$"),
    "a fence": lambda text: Reply(f"```{text}\n{text}\n```\n\n~~~mermaid\n{text}\n~~~"),
    "a footnote": lambda text: Reply(f"x[^{text}] y[^1]\n\n[^{text}]: {text}\n[^1]: {text}"),
    "an id": lambda text: with_one(f"{{{{code:{text}}}}}", text, "code", "x"),
    "an unused id": lambda text: with_one("x", text, "code", text),
    "a type": lambda text: Reply("{{code:x}}", attachments={"x": Attachment("x", text, text)}),
    "a title": lambda text: Reply(
        " ".join(f"{{{{{kind}:{kind}}}}}" for kind in AttachmentType),
        attachments={kind: Attachment(kind, kind, "x", language=text, title=text) for kind in AttachmentType},
    ),
    "table cells": lambda text: with_one("{{table:x}}", "x", "table", {"columns": [text], "rows": [[text], {text: 1}]}),
    "chart labels": lambda text: with_one(
        "{{chart:x}}",
        "x",
        "chart",
        {"type": text, "data": {"labels": [text], "datasets": [{"label": text, "data": [text, {"x": text}]}]},
         "options": {"plugins": {"title": {"text": text}}, text: text}},
    ),
    "a problem": lambda text: Reply("x", problems=(Problem(ProblemCode.WRONG_TYPE, text, text),)),
    "an error": lambda text: ReplyError(text, 1, 1, text),
    **{f"an attachment: {kind}": _attached(kind) for kind in AttachmentType},
}  # fmt: skip


def _of(row: str) -> list[Attack]:
    return [attack for attack in ATTACKS if attack.row == row]


def _live(attacks: list[Attack], places: Iterable[str] = PLACES) -> dict[tuple[str, str], list[str]]:
    tried = ((attack, place) for attack in attacks for place in places)
    live = {(attack.name, place): faults(to_html(PLACES[place](attack.text))) for attack, place in tried}
    return {where: what for where, what in live.items() if what}


@pytest.mark.requirement(
    "reply:inert", "s:S-60", "s:S-61", "s:S-62", "s:S-63:rendered", "s:S-64:rendered", "s:S-65", "s:S-66:rendered",
    "s:S-67", "s:S-68", "s:S-69:rendered",
)  # fmt: skip
@pytest.mark.parametrize("row", ROWS)
def test_no_attack_is_live_in_any_place(row: str) -> None:
    assert len(_of(row)) >= 10
    assert _live(_of(row)) == {}


@pytest.mark.requirement("reply:inert")
def test_no_attack_is_live_even_without_the_last_net(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.render.html.sanitise", lambda html: html)
    assert "rel=" not in to_html(Reply("[x](https://example.com)"))  # the net is really away
    assert _live(list(ATTACKS), ("content", "think", "a link", "a picture", "a title", "table cells", "an error")) == {}


@pytest.mark.requirement("reply:inert")
def test_the_check_itself_finds_what_is_live() -> None:
    live = ["<script>", "<img src=x>", "<img src='https://e.example/'>", "<a href='javascript:x'>", "<p onclick=x>",
            "<p style=x>", "<a href='//e.example'>", "<p id=x>", "<video poster=x>", "<form>", "<!-- x -->",
            "<button data-src='javascript:x'>", "<img src='data:text/html;base64,eA=='>", "</p>", "<p>"]  # fmt: skip
    assert [one for one in live if not faults(f"<article>{one}</article>")] == []
    assert faults("<article></article><p></p>") != []


@pytest.mark.requirement("s:S-60", "s:S-69:rendered")
@pytest.mark.parametrize("place", ["content", "think", "an error", "a problem", "an unused id", "an attachment: code"])
def test_markup_is_shown_as_the_text_it_is(place: str) -> None:
    text = '<b title="x">bold</b> & <script>1 < 2</script>'
    assert text in root(to_html(PLACES[place](text))).text


@pytest.mark.requirement("reply:inert")
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<", ">", '"', "'", "`", "$", "[", "](", ")", "![", "{{code:", "}}", "|", "\n", " ", "&#", ";"]
        )
        | st.sampled_from(
            ["javascript:", "onerror=", "<script", "https://e.example/", "\\", "x", "\u202e", "\x00", "*"]
        )
        | st.characters(),
        max_size=40,
    ).map("".join),
    st.sampled_from(sorted(PLACES)),
    st.sampled_from(list(Language)),
)
def test_whatever_the_text_is_the_html_is_inert(text: str, place: str, language: Language) -> None:
    assert faults(to_html(PLACES[place](text), language)) == []
