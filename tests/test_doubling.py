"""Twice the text takes twice the time: every parser and renderer, on text that is made to be hard.

By CPU time, so in the soak alone; ``make test`` runs each of them once on a small text.
"""

import contextlib
import gc
import json
import os
import time
from collections.abc import Callable
from typing import Final

import pytest

import toolyard
from toolyard.errors import ToolyardError
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.gateway.sse import Events
from toolyard.plugins.package import config_env
from toolyard.protocol.envelope import Failure
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.patching import patch_plan
from toolyard.protocol.placeholders import fill_placeholders
from toolyard.protocol.plugin_answers.plugin_output import OutputDecoder
from toolyard.protocol.requests.scanner import neutralise

UNITS: Final = (
    "!", "[", "]", "(", "`", "*", "_", "<", "&", "\\", "$", "~", "|", ">", "#", "-", "\n", "{", "}", '"', "'", ":",
    "![", "](", "[[", "<!--", "$$", "\\(", "**a", "`a", "<think>", "</think>", "```\n", "- ", "1. ", "> ",
    "|a|b|\n|-|-|\n", "&#", "http://a", "//", "/*", "{{", "{{VCP", "「始」", "「末」", "<<<[TOOL_REQUEST]>>>\n", "a:b ",
    '{"a":', '"a",', "\ufeff", "\\n", "\u200b", "@@ ", "+a\n", "--- a\n+++ b\n", "*** Update File: a\n", "A=b\n", 'A="',
)  # fmt: skip
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
SMALL, LARGE = 8_000, 16_000
_MOST = 3.2  # times the time for twice the text, where 4 would be quadratic
_NOISE_S = 0.02


def _reply(to: str) -> Callable[[str], object]:
    return lambda text: toolyard.render_reply(json.dumps({"content": f"x{text}"}), to=to)


def _filter_requests(text: str) -> object:
    request_filter = RequestFilter(hides=True)
    return [request_filter.feed(text[at : at + 7]) for at in range(0, len(text), 7)], request_filter.finish()


def _output(text: str) -> object:
    output = OutputDecoder()
    output.feed(text.encode("utf-8", "replace"))
    return output.finish()


PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "requests": toolyard.parse_requests,
    "request filter": _filter_requests,
    "reply": toolyard.parse_reply,
    "terminal": _reply("terminal"),
    "html": _reply("html"),
    "markdown": _reply("markdown"),
    "placeholders": lambda text: fill_placeholders(text, lambda _: ""),
    "neutralise": neutralise,
    "patch": patch_plan.parse_patch,
    "patch in a file": lambda text: patch_plan.parse_patch(f"*** Begin Patch\n*** Add File: a\n{text}\n*** End Patch"),
    "config.env": config_env.parse_config,
    "manifest": read_manifest,
    "plugin output": _output,
    "events": lambda text: Events().feed(text.encode("utf-8", "replace")),
}


def _run(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(Failure, ToolyardError, ValueError):
        parse(text)


def _seconds(parse: Callable[[str], object], text: str) -> float:
    times = []
    for _ in range(3):  # the least is that of the work alone
        gc.collect()
        begin = time.process_time()
        _run(parse, text)
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.requirement("parse:linear")
@pytest.mark.parametrize("name", PARSERS)
def test_twice_the_text_takes_about_twice_the_time(name: str) -> None:
    parse = PARSERS[name]
    for unit in UNITS:
        if not SOAK:
            _run(parse, unit * (500 // len(unit)))
            continue
        small, large = (_seconds(parse, unit * (size // len(unit))) for size in (SMALL, LARGE))
        assert large <= _MOST * small + _NOISE_S, f"{unit!r}: {small:.3f} s, then {large:.3f} s"
