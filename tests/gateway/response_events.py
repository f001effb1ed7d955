"""What a stream of Responses must be like: parsed by the types of the official client, and in the documented order."""

import json
from typing import Any

import aiohttp
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_ENDS = ("response.completed", "response.incomplete", "response.failed")
NULLABLE = (
    "completed_at", "conversation", "error", "incomplete_details", "instructions", "max_output_tokens",
    "max_tool_calls", "previous_response_id", "prompt_cache_key", "reasoning", "safety_identifier", "usage",
)  # fmt: skip


def parse_stream(raw: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, after looking at its form: each is named as its type is, and it ends with DONE."""
    frames = [frame for frame in raw.split(b"\n\n") if frame and not frame.startswith(b":")]
    assert frames.pop() == b"data: [DONE]"
    events = []
    for frame in frames:
        name, data = frame.split(b"\n")[-2:]
        event = json.loads(data.removeprefix(b"data: "))
        assert name == f"event: {event['type']}".encode()
        events.append(event)
    return events


def check_events(events: list[dict[str, Any]], *, start: int = 0) -> dict[str, Any]:
    """Look at the order of a whole stream; return the response of its last event."""
    for event in events:
        if event["type"] != "error":
            _EVENT.validate_python(event)
    assert [event["sequence_number"] for event in events] == [*range(start, start + len(events))]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "response.created"
    assert kinds[1] == "response.in_progress"
    assert [kind for kind in kinds if kind in _ENDS] == kinds[-1:]
    assert kinds.count("error") == (kinds[-1] == "response.failed")
    last: dict[str, Any] = events[-1]["response"]
    assert {event["response"]["id"] for event in events if "response" in event} == {last["id"]}
    items = _follow_items(events[2:-1])
    assert items == last["output"]
    check_response(last)
    return last


def check_response(response: dict[str, Any]) -> None:
    """Look at a response object: every field that may be null is there, and every item has an id of its own."""
    Response.model_validate(response)
    assert [key for key in NULLABLE if key not in response] == []
    ids = [item["id"] for item in response["output"]]
    assert len({*ids}) == len(ids)


def _follow_items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a stream: added one after the other, each done once, with all that came in pieces."""
    items: dict[int, dict[str, Any]] = {}
    texts: dict[tuple[int, Any, str], str] = {}
    opened: set[int] = set()
    for event in events:
        kind, at = event["type"], event.get("output_index")
        if kind == "error":
            continue
        if kind == "response.output_item.added":
            assert at == len(items)
            others = [items[one]["type"] for one in opened]
            assert others == ["mcp_call"] * len(others)
            opened.add(at)
            items[at] = event["item"]
            continue
        assert at in opened, kind
        if kind == "response.output_item.done":
            assert event["item"]["id"] == items[at]["id"]
            opened.discard(at)
            items[at] = event["item"]
            continue
        assert event["item_id"] == items[at]["id"]
        place = (at, event.get("content_index", event.get("summary_index")), kind.rpartition(".")[0])
        if kind.endswith(".delta"):
            texts[place] = texts.get(place, "") + event["delta"]
        elif kind.endswith(("text.done", "refusal.done", "arguments.done", "input.done")):
            whole = next(event[key] for key in ("text", "refusal", "arguments", "input") if key in event)
            assert texts.get(place, "") == whole
    assert opened == set()
    return [*items.values()]


async def post(url: str, body: Any, *, key: str = "me", path: str = "", **headers: str) -> tuple[int, bytes]:
    """The status and the body that a program without any client gets."""
    named = {"Authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/responses{path}", json=body, headers=named) as got,
    ):
        return got.status, await got.read()


async def get(url: str, path: str, *, key: str = "me", method: str = "GET") -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{url}/v1/responses{path}", headers={"Authorization": f"Bearer {key}"}) as got,
    ):
        return got.status, await got.read()


async def stream(url: str, body: dict[str, Any], **more: str) -> list[dict[str, Any]]:
    status, raw = await post(url, {"model": "m", **body, "stream": True}, **more)
    assert status == 200, raw
    return parse_stream(raw)


async def ask(url: str, body: dict[str, Any], **more: str) -> dict[str, Any]:
    """The response in one piece."""
    status, raw = await post(url, {"model": "m", **body}, **more)
    assert status == 200, raw
    response: dict[str, Any] = json.loads(raw)
    check_response(response)
    return response
