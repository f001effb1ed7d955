"""``POST /plugin-callback/~TOKEN/{plugin}/{id}``: the results of asynchronous plugins.

The token is the credential: it is checked before a byte of the body is read. Answers have VCPToolBox's shape.
"""

import asyncio
from http import HTTPStatus
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.plugin_source import answered
from toolyard.plugins.callback import CallbackAddress, CallbackResponse, parse_body, parse_callback_path
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import answer
from toolyard.web.bodies import require_sound_body
from toolyard.web.edge import HEAD
from toolyard.web.head import Head
from toolyard.web.metrics import Metrics
from toolyard.web.refusal import Refusal

_LARGE = 256 * 1024  # bytes that are read beside the event loop
_OBJECT: JsonObject = {"application/json": {"schema": {"type": "object"}}}
_BODY: JsonObject = {
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True},
    "security": [],
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "It is stored, or it was already.", "content": _OBJECT},
    "default": {"description": "It is not taken; `message` says why.", "content": _OBJECT},
}


def router(yard: Yard, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["callbacks"])

    async def take(request: Request) -> Response:
        told = await _taken(yard, request)
        if told.status >= HTTPStatus.BAD_REQUEST:
            metrics.callback_refused(told.status)
        return answer(told.body, told.status)

    @routes.post("/plugin-callback/~{token}/{plugin}/{id}", responses=_ANSWERS, openapi_extra=_BODY)
    async def take_callback(token: str, plugin: str, id: str, request: Request) -> Response:  # noqa: A002, ARG001
        """The result of a task, from its plugin. The same again changes nothing; another one answers 409."""
        return await take(request)

    @routes.post("/plugin-callback/{rest:path}", include_in_schema=False)
    async def refuse_callback(rest: str, request: Request) -> Response:  # noqa: ARG001
        return await take(request)

    return routes


async def _taken(yard: Yard, request: Request) -> CallbackResponse:
    raw = request.scope.get("raw_path") or request.url.path.encode()
    address = parse_callback_path(raw.decode("ascii", "replace"))
    if address is None:
        return _refused(HTTPStatus.UNAUTHORIZED, "this address has no token: use CALLBACK_BASE_URL as it was given")
    refused = await yard.tasks.check_callback(address.token, address.plugin, address.task_id)
    if refused is not None:
        return answered(refused)
    try:
        require_sound_body(cast("Head", request.scope[HEAD]))
        body = await request.body()
    except Refusal as refusal:
        return _refused(HTTPStatus(refusal.status_code), refusal.detail)
    return await _stored(yard, address, body)


async def _stored(yard: Yard, address: CallbackAddress, body: bytes) -> CallbackResponse:
    value, problem = await asyncio.to_thread(parse_body, body) if len(body) > _LARGE else parse_body(body)
    if problem:
        return _refused(HTTPStatus.BAD_REQUEST, problem)
    taking = yard.tasks.take_callback(address.token, address.plugin, address.task_id, value)
    return answered(await asyncio.shield(taking))


def _refused(status: HTTPStatus, message: str) -> CallbackResponse:
    return CallbackResponse(status, {"status": "error", "message": message})
