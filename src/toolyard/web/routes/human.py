"""``POST /v1/human/tool``: a person's text with tool requests, answered as VCPToolBox answers it.

One block gives its result, several give a list in their order. Blocks run at the same time.
"""

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.dialects.vcp_server import human_answer, human_schedule_answer
from toolyard.engine.clock import Clock
from toolyard.protocol.call import Origin
from toolyard.protocol.json import JsonObject
from toolyard.protocol.markers import parse_requests
from toolyard.web.access import Visitor
from toolyard.web.answers import Who, answer

_BODY: JsonObject = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}, "required": True}}
_SHAPE = {"schema": {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/human", tags=["tools"])

    @routes.post(
        "/tool",
        openapi_extra=_BODY,
        responses={
            200: {"description": "What the tools gave.", "content": {"application/json": _SHAPE}},
            400: {"description": "There is no block, or one that cannot be run.", "content": {"application/json": {}}},
            500: {"description": "The tool failed.", "content": {"application/json": {}}},
        },
    )
    async def run_blocks(request: Request, who: Who) -> Response:
        """Run the request blocks in the text; the answer has VCPToolBox's shape."""
        text = (await request.body()).decode("utf-8", "replace")
        found = parse_requests(text)
        bad = next((str(one["problem"]) for one in found if not one["ok"]), "")
        if bad or not found:
            return answer({"error": bad or "there is no tool request in the text"}, HTTPStatus.BAD_REQUEST)
        told = await asyncio.gather(*(_run(yard, clock, who, one) for one in found))
        status = HTTPStatus.INTERNAL_SERVER_ERROR if all("plugin_error" in one for one in told) else HTTPStatus.OK
        return answer(told[0] if len(told) == 1 else told, status)

    return routes


async def _run(yard: Yard, clock: Clock, who: Visitor, block: JsonObject) -> JsonObject:
    arguments, tool = block["args"], str(block["tool"])
    given = arguments if isinstance(arguments, dict) else {}
    call = yard.request(tool, given, caller=who.caller, origin=Origin.HTTP)
    now = clock.now().isoformat(timespec="seconds")
    if later := block.get("timely_contact"):
        outcome = await yard.submit(call, at=str(later))
        data = outcome.envelope.data
        if not outcome.envelope.error:
            due = str(data["scheduled_for"])
            return human_schedule_answer(str(data["schedule_id"]), tool, requested=now, due=due)
    else:
        outcome = await yard.settle(call)
    return human_answer(yard.express(call, outcome, "vcp"), maid=call.maid, at=now)
