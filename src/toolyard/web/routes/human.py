"""``POST /v1/human/tool``: tool requests in a person's text, answered in VCPToolBox's shape.

One block gives its result, several give a list in order. Blocks run concurrently.
"""

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from toolyard.dialects.vcp_server import human_answer, human_schedule_answer
from toolyard.engine.clock import Clock
from toolyard.protocol.call import Origin
from toolyard.protocol.json import JsonObject
from toolyard.protocol.markers import parse_requests
from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.routes.tools import require_begun
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.schemas.dialects import HumanAnswer, HumanRefusal
from toolyard.web.security.principal import Principal
from toolyard.yard.yard import Yard

_BODY: JsonObject = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}, "required": True}}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/human", tags=["tools"])

    @routes.post(
        "/tool",
        openapi_extra=_BODY,
        responses={
            200: {"description": "The results of the tools.", "model": HumanAnswer | list[HumanAnswer]},
            400: {"description": "The text has no block, or an invalid one.", "model": HumanRefusal | ErrorBody},
            500: {"description": "The tools failed.", "model": HumanAnswer | list[HumanAnswer] | ErrorBody},
        },
    )
    async def run_blocks(request: Request, principal: CurrentPrincipal) -> Response:
        """Run the tool requests in the text; the response has VCPToolBox's shape."""
        text = (await request.body()).decode("utf-8", "replace")
        blocks = parse_requests(text)
        bad = next((str(one["problem"]) for one in blocks if not one["ok"]), "")
        if bad or not blocks:
            return json_response({"error": bad or "the text has no tool request"}, HTTPStatus.BAD_REQUEST)
        is_alone = len(blocks) == 1  # of several, the others have run
        answers = await asyncio.gather(
            *(_run_block(yard, clock, principal, one, can_refuse=is_alone) for one in blocks)
        )
        status = HTTPStatus.INTERNAL_SERVER_ERROR if all("plugin_error" in one for one in answers) else HTTPStatus.OK
        return json_response(answers[0] if len(answers) == 1 else answers, status)

    return routes


async def _run_block(
    yard: Yard, clock: Clock, principal: Principal, block: JsonObject, *, can_refuse: bool
) -> JsonObject:
    arguments, tool = block["args"], str(block["tool"])
    given = arguments if isinstance(arguments, dict) else {}
    call = yard.request(tool, given, caller=principal.caller, origin=Origin.HTTP)
    now = clock.now().isoformat(timespec="seconds")
    if later := block.get("timely_contact"):
        outcome = await yard.submit(call, at=str(later))
        data = outcome.envelope.data
        if not outcome.envelope.error:
            due = str(data["scheduled_for"])
            return human_schedule_answer(str(data["schedule_id"]), tool, requested=now, due=due)
    else:
        outcome = await yard.settle(call)
        if can_refuse:
            require_begun(outcome)
    return human_answer(yard.express(call, outcome, "vcp"), maid=call.maid, at=now)
