"""Offers: which tools fit, what they cost, and when one is made anew."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest

from tests.tokens import count_tokens
from toolyard.blocking import BlockingYard
from toolyard.dialects.tool_specs import to_function_tool
from toolyard.gateway.offer import MAX_TOKENS, MAX_TOOLS, Offers, Selection, estimate_tokens, left_out_warning
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.tool import ToolSpec
from toolyard.settings import OfferMode

ALL = Selection()
ROOT = Path(__file__).parents[2]


def offers(*specs: ToolSpec) -> Offers:
    return Offers(lambda: specs, lambda: 0)


def offers_of(yard: BlockingYard) -> Offers:
    return Offers(lambda: (tool.spec for tool in yard.tools.list_built_in_first()), yard.tools.version)


def spec(name: str, description: str = "Does it.", **more: object) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object"}, **more)  # type: ignore[arg-type]


@pytest.mark.requirement("offer:tokens")
def test_the_shipped_tools_together_take_few_tokens_in_every_form(yard: BlockingYard) -> None:
    offer = offers_of(yard).native(ALL)
    assert len(offer.tools) == 14
    assert offer.tools == orjson.loads(offer.tools_json)
    assert count_tokens(offer.tools_json.decode()) <= 2200
    assert count_tokens(json.dumps(offer.tools)) <= 2600, "a fifth more as Python writes them, with blanks"
    for language in ("en", "zh"):
        assert count_tokens(offers_of(yard).text(ALL, language).listing) <= 3500
    listed = yard.tools(dialect="mcp")
    assert len(listed) == 16, "and FileOperator and ToolSearch"
    assert count_tokens(orjson.dumps({"tools": listed}).decode()) <= 3500


@pytest.mark.requirement("offer:stable")
def test_the_same_tools_are_offered_in_the_same_bytes(project: Path, tmp_path: Path) -> None:
    """In another process and another home, with another order of everything that has none."""
    program = (
        "import orjson, sys, toolyard\n"
        "from toolyard.gateway.offer import Offers, Selection\n"
        "with toolyard.open(project=sys.argv[1], home=sys.argv[2]) as yard:\n"
        "    made = Offers(lambda: (tool.spec for tool in yard.tools.list_built_in_first()), yard.tools.version)\n"
        "    texts = [made.text(Selection(), language).listing for language in ('en', 'zh')]\n"
        "    offers = [made.native(Selection()).tools_json.decode(), *texts, yard.tools(dialect='mcp')]\n"
        "    sys.stdout.buffer.write(orjson.dumps(offers))\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program, str(project), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    native, english, chinese, mcp = orjson.loads(printed[0])
    assert orjson.loads(native)
    assert mcp
    assert english != chinese


@pytest.mark.requirement("offer:tokens")
def test_the_estimate_of_tokens_is_never_too_low(yard: BlockingYard) -> None:
    made = offers_of(yard)
    native = made.native(ALL)
    texts = [orjson.dumps(tool).decode() for tool in native.tools]
    texts += [made.text(ALL, language).listing for language in ("en", "zh")]
    texts += [(ROOT / name).read_text("utf-8") for name in ("README.md", "README.zh-CN.md", "docs/tools.md")]
    texts += [file.read_text("utf-8") for file in (ROOT / "plugins").glob("*/plugin-manifest.json")]
    assert [text[:80] for text in texts if estimate_tokens(text) < count_tokens(text)] == []
    assert native.tokens >= count_tokens(native.tools_json.decode())


@pytest.mark.requirement("offer:limits")
def test_no_offer_has_more_tools_than_allowed_and_the_first_ones_are_in_it(caplog: pytest.LogCaptureFixture) -> None:
    specs = [spec(f"Tool{number:03}") for number in range(200)]
    made = offers(*specs)
    names = [one.name for one in specs]
    with caplog.at_level(logging.WARNING):
        for offer in (made.native(ALL), made.text(ALL, "en"), made.native(ALL)):
            assert list(offer.names.values()) == names[:MAX_TOOLS]
            assert offer.left_out == tuple(names[MAX_TOOLS:])
            assert offer.tokens <= MAX_TOKENS
    assert caplog.messages == [left_out_warning(tuple(names[MAX_TOOLS:]))], "it warns once"
    assert "Tool128, " in caplog.messages[0]
    assert "and 52 more" in caplog.messages[0]


@pytest.mark.requirement("offer:limits", "offer:own-tools")
@pytest.mark.parametrize(("theirs", "ours"), [(100, 28), (128, 0), (200, 0)])
def test_the_tools_of_the_client_count_too(theirs: int, ours: int) -> None:
    made = offers(*(spec(f"Tool{number:03}") for number in range(200)))
    offer = made.native(Selection(client_names=frozenset(f"theirs{number}" for number in range(theirs))))
    assert (len(offer.tools), len(offer.left_out)) == (ours, 200 - ours)


@pytest.mark.requirement("offer:limits")
@pytest.mark.parametrize("mode", [OfferMode.NATIVE, OfferMode.TEXT])
def test_no_offer_has_more_tokens_than_allowed_and_a_giant_keeps_nobody_out(mode: OfferMode) -> None:
    text = "word " * 600  # 1,000 tokens by the estimate
    specs = [spec("A"), spec("Giant", text * 20), *(spec(f"B{number:02}", text) for number in range(30)), spec("Z")]
    made = offers(*specs)
    offer = made.native(ALL) if mode is OfferMode.NATIVE else made.text(ALL, "en")
    offered = list(offer.names.values())
    assert offered[:2] == ["A", "B00"]
    assert "Giant" in offer.left_out
    assert sorted([*offered, *offer.left_out]) == sorted(one.name for one in specs)
    assert 12 <= len(offered) <= 16
    assert count_tokens(offer.tools_json.decode() or offer.listing) <= MAX_TOKENS


@pytest.mark.requirement("offer:limits", "offer:cheap")
def test_of_a_thousand_tools_only_those_that_are_offered_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write(one: ToolSpec) -> JsonObject:
        written.append(one.name)
        return to_function_tool(one)

    monkeypatch.setattr("toolyard.gateway.offer.to_function_tool", write)
    made = offers(*(spec(f"Tool{number:04}") for number in range(1000)))
    assert len(made.native(ALL).tools) == MAX_TOOLS
    assert len(written) == MAX_TOOLS


@pytest.mark.requirement("offer:cheap")
def test_an_offer_is_kept_until_the_tools_change() -> None:
    state: list[tuple[int, Iterable[ToolSpec]]] = [(1, [spec("A")])]
    made = Offers(lambda: state[-1][1], lambda: state[-1][0])
    first, text = made.native(ALL), made.text(ALL, "zh")
    assert made.native(Selection()) is first
    assert made.text(ALL, "zh") is text
    assert made.text(ALL, "en") is not text
    state.append((2, [spec("A"), spec("B")]))
    assert list(made.native(ALL).names) == ["A", "B"]
    for number in range(200):
        made.native(Selection(frozenset({f"X{number}"})))
    assert len(made._offers) <= 64


@pytest.mark.requirement("offer:cheap")
def test_the_version_of_the_tools_changes_with_plugins_and_mcp_servers(yard: BlockingYard, tmp_path: Path) -> None:
    made = offers_of(yard)
    before, seen = made.native(ALL), yard.tools.version()
    assert made.native(ALL) is before
    yard._yard.plugins.plugins.refresh()
    assert yard.tools.version() == seen, "nothing has changed"
    echo = yard._yard.plugins.plugins.get("EchoPlugin")
    assert echo is not None
    yard._yard.plugins.plugins.disable(echo)
    yard._yard.plugins.plugins.refresh()
    assert "EchoPlugin" not in made.native(ALL).names
    seen = yard.tools.version()
    (yard._yard.config.project / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "true"}}}')
    assert yard.tools.version() != seen


@pytest.mark.requirement("offer:bounds")
def test_a_plugin_that_tells_models_nothing_is_not_offered() -> None:
    quiet = read_manifest(
        json.dumps(
            {
                "name": "Quiet",
                "pluginType": "synchronous",
                "entryPoint": {"command": "python x.py"},
                "capabilities": {"invocationCommands": [{"command": "Go"}]},
            }
        )
    ).manifest
    assert quiet is not None
    assert offers(tool_spec(quiet)).native(ALL).mode is OfferMode.NONE
    assert offers().text(ALL, "en").mode is OfferMode.NONE
