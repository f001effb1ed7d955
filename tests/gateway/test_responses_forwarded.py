"""Requests of Responses without tools of ours to a provider of the same protocol: what passes unchanged, what not."""

import json
from pathlib import Path

import pytest

from tests.gateway.native_providers import Reply, events, scripted, to_body, using
from tests.gateway.response_events import get, post
from tests.gateway.serving import gateway
from tests.gateway.upstream import Script

HELLO = Reply(text="Hello.")
STREAM = b"".join(events(HELLO, "responses"))


@pytest.mark.requirement("responses:forwarded")
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_bytes_pass_unchanged_both_ways(tmp_path: Path, is_streamed: bool) -> None:
    body = {"model": "m", "input": "Hi", "stream": is_streamed, "odd": {"b": 1, "a": 2}}
    async with gateway(tmp_path, scripted("responses", HELLO), settings=using("responses"), served=True) as one:
        status, raw = await post(one.url, body, x_toolyard_offer="none")
        sent = one.upstream.raw[-1]
        status_alias, _ = await post(one.url, {**body, "model": "m+plain"})
        made = json.loads(to_body(HELLO, "responses"))
        stored = json.loads((await get(one.url, f"/{made['id']}"))[1])
    assert (status, raw) == (200, STREAM if is_streamed else to_body(HELLO, "responses"))
    assert json.loads(sent) == body
    assert b'"odd":{"b":1,"a":2}' in sent.replace(b" ", b"")
    assert (status_alias, json.loads(one.upstream.raw[-1])["model"]) == (200, "m")
    assert stored["output"] == made["output"]


@pytest.mark.requirement("responses:forwarded")
async def test_a_stream_that_breaks_off_ends_with_an_error(tmp_path: Path) -> None:
    cut = Script([STREAM[:200]], then="cut")
    async with gateway(tmp_path, [cut], settings=using("responses"), served=True) as one:
        _, raw = await post(one.url, {"model": "m+plain", "input": "Hi", "stream": True})
    assert raw.startswith(STREAM[:200])
    assert json.loads(raw.rsplit(b"data: ", 1)[1])["error"]["code"] == "upstream_cut_off"


@pytest.mark.requirement("responses:forwarded")
async def test_with_tools_or_an_id_of_ours_it_is_a_turn(tmp_path: Path) -> None:
    async with gateway(tmp_path, scripted("responses", HELLO), settings=using("responses"), served=True) as one:
        first = json.loads((await post(one.url, {"model": "m", "input": "Hi"}))[1])
        more = {"model": "m+plain", "input": "And?", "previous_response_id": first["id"]}
        status, _ = await post(one.url, more)
        sent = json.loads(one.upstream.raw[-1])
    assert (status, first["id"] == json.loads(to_body(HELLO, "responses"))["id"]) == (200, False)
    assert "previous_response_id" not in sent
    assert len(sent["input"]) == 3
