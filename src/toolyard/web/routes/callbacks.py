"""``POST /plugin-callback/~TOKEN/{plugin}/{id}``: results of asynchronous plugins.

The token is the credential: it is checked before a byte of the body is read. Responses have VCPToolBox's shape.
"""

import asyncio
from http import HTTPStatus
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.plugin_source import answered
from toolyard.plugins.callback import CallbackAddress, CallbackResponse, parse_body, parse_callback_path
from toolyard.protocol.json import JsonObject
from toolyard.web.metrics import Metrics
from toolyard.web.refusal import Refusal
from toolyard.web.responses import json_response
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_body import require_valid_body
from toolyard.web.security.request_head import RequestHead

_LARGE_BODY = 256 * 1024  # bytes from which a body is parsed in a thread
_OBJECT: JsonObject = {"application/json": {"schema": {"type": "object"}}}
_BODY: JsonObject = {
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True},
    "security": [],
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The result is stored, or was already.", "content": _OBJECT},
    "default": {"description": "The callback is refused; `message` says why.", "content": _OBJECT},
}


def router(yard: Yard, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["callbacks"])

    async def take(request: Request) -> Response:
        answer = await _receive_callback(yard, request)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            metrics.count_refused_callback(answer.status)
        return json_response(answer.body, answer.status)

    @routes.post("/plugin-callback/~{token}/{plugin}/{id}", responses=_ANSWERS, openapi_extra=_BODY)
    async def take_callback(token: str, plugin: str, id: str, request: Request) -> Response:  # noqa: A002, ARG001
        """Take the result of a task from its plugin. A repeat changes nothing; a different result gets 409."""
        return await take(request)

    @routes.post("/plugin-callback/{rest:path}", include_in_schema=False)
    async def refuse_callback(rest: str, request: Request) -> Response:  # noqa: ARG001
        return await take(request)

    return routes


async def _receive_callback(yard: Yard, request: Request) -> CallbackResponse:
    raw = request.scope.get("raw_path") or request.url.path.encode()
    address = parse_callback_path(raw.decode("ascii", "replace"))
    if address is None:
        return _refuse(HTTPStatus.UNAUTHORIZED, "this URL has no token: use CALLBACK_BASE_URL unchanged")
    refused = await yard.tasks.check_callback(address.token, address.plugin, address.task_id)
    if refused is not None:
        return answered(refused)
    try:
        require_valid_body(cast("RequestHead", request.scope[REQUEST_HEAD]))
        body = await request.body()
    except Refusal as refusal:
        return _refuse(HTTPStatus(refusal.status_code), refusal.detail)
    return await _store_callback(yard, address, body)


async def _store_callback(yard: Yard, address: CallbackAddress, body: bytes) -> CallbackResponse:
    value, problem = await asyncio.to_thread(parse_body, body) if len(body) > _LARGE_BODY else parse_body(body)
    if problem:
        return _refuse(HTTPStatus.BAD_REQUEST, problem)
    taking = yard.tasks.take_callback(address.token, address.plugin, address.task_id, value)
    return answered(await asyncio.shield(taking))


def _refuse(status: HTTPStatus, message: str) -> CallbackResponse:
    return CallbackResponse(status, {"status": "error", "message": message})
