"""Rounds of tool work as messages: small enough to keep, and native ones as text."""

import json
from typing import Any

import pytest

from toolyard.gateway.tool_calls.rounds import call_keys, fit_rounds, write_as_text
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.requests.scanner import format_request


def native_round(id_: str = "c1", result: str = "2 files", **arguments: Any) -> list[Any]:
    function = {"name": "LS", "arguments": json.dumps(arguments)}
    call = {"id": id_, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "I look.", "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": id_, "content": result},
    ]


def size(rounds: Any) -> int:
    return len(json.dumps(rounds, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.requirement("memory:bounded")
def test_short_rounds_stay_as_they_are_but_for_media() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    media: Any = {"role": "user", "content": [{"type": "text", "text": "Media:"}, picture]}
    (made,) = fit_rounds([[*native_round(path="."), media]], 10_000)
    assert made == [*native_round(path="."), {"role": "user", "content": "Media:\n[picture]"}]


@pytest.mark.requirement("memory:bounded")
def test_long_results_are_cut_in_the_middle_and_long_arguments_stay_json() -> None:
    long = "begin" + "x" * 100_000 + "end"
    made = fit_rounds([native_round("c1", long), native_round("c2", "short", content=long, size=2**70)], 64 * 1024)
    assert size(made) <= 64 * 1024
    first: Any = made[0][1]
    assert first["content"].startswith("begin")
    assert first["content"].endswith("end")
    assert "[… 83624 characters left out …]" in first["content"]
    second: Any = made[1]
    arguments = json.loads(second[0]["tool_calls"][0]["function"]["arguments"])
    assert "characters left out" in arguments["content"]
    assert arguments["size"] == 2**70
    assert second[1]["content"] == "short"


@pytest.mark.requirement("memory:bounded")
def test_the_oldest_rounds_go_when_cutting_is_not_enough_and_each_that_stays_is_whole() -> None:
    many = [native_round(f"c{number}", "y" * 2000) for number in range(400)]
    made = fit_rounds(many, 64 * 1024)
    assert 10 < len(made) < 400
    assert size(made) <= 64 * 1024
    assert call_keys([message for one in made for message in one]) == {
        (f"c{n}", "LS") for n in range(400 - len(made), 400)
    }
    assert fit_rounds([native_round("c" * 5000)], 1000) == []


@pytest.mark.requirement("memory:text-form")
def test_native_rounds_become_blocks_and_one_message_with_the_results() -> None:
    one, two = native_round("c1", "a and b", path="."), native_round("c2", "three lines", path="a", limit=3)
    two[0]["content"] = None
    parallel = [{**two[0], "tool_calls": [*one[0]["tool_calls"], *two[0]["tool_calls"]]}, one[1], two[1]]
    more = {"role": "user", "content": f"{PAYLOAD}\nMedia of the results above:\n[picture]"}
    rest = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}]
    messages = [{"role": "user", "content": "Go."}, *one, *parallel, more, *rest]
    blocks = [format_request("LS", {"path": "."}), format_request("LS", {"path": "a", "limit": "3"})]
    assert write_as_text(messages, frozenset({("c1", "LS"), ("c2", "LS")})) == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": f"I look.\n{blocks[0]}"},
        {"role": "user", "content": f"{PAYLOAD}\n\nLS:\na and b"},
        {"role": "assistant", "content": "\n".join(blocks)},
        {
            "role": "user",
            "content": f"{PAYLOAD}\n\nLS:\na and b\n\nLS:\nthree lines\n\nMedia of the results above:\n[picture]",
        },
        *rest,
    ]
    assert write_as_text(messages, frozenset()) is messages


@pytest.mark.requirement("memory:text-form")
@pytest.mark.parametrize("arguments", ["[]", "{", '{"a b": 1}', "null"])
def test_a_call_that_no_block_can_carry_is_told_in_words(arguments: str) -> None:
    messages = native_round("c1")
    messages[0]["tool_calls"][0]["function"]["arguments"] = arguments
    made: Any = write_as_text(messages, frozenset({("c1", "LS")}))
    assert made[0] == {"role": "assistant", "content": f"I look.\nLS {arguments}"}


@pytest.mark.requirement("memory:text-form")
def test_calls_of_the_clients_own_tools_stay_native() -> None:
    messages = native_round("c1")
    messages[0]["tool_calls"][0]["function"]["name"] = "theirs"
    assert write_as_text(messages, frozenset({("c1", "LS")})) == messages
