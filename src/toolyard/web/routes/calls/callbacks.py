"""``POST /plugin-callback/~TOKEN/{plugin}/{id}``: results of asynchronous plugins.

The token is the credential: it is checked before a byte of the body is read. Responses have VCPToolBox's shape.
"""

from http import HTTPStatus
from typing import Any, cast

from fastapi import Request, Response

from toolyard.plugins.long_work.callback import CallbackResponse, parse_callback_path, refuse_callback
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.schemas.dialects import CallbackAnswer
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_body import require_valid_body
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import PUBLIC
from toolyard.web.server.metrics import Metrics
from toolyard.yard.yard import Yard

_BODY: JsonObject = {
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True},
    "security": [],
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The result is stored, or was already.", "model": CallbackAnswer},
    "default": {"description": "The callback is refused; `message` says why.", "model": CallbackAnswer | ErrorBody},
}


def router(yard: Yard, metrics: Metrics) -> Routes:
    routes = Routes(tag="callbacks", scope=PUBLIC)

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
        return refuse_callback(HTTPStatus.UNAUTHORIZED, "this URL has no token: use CALLBACK_BASE_URL unchanged")
    return await yard.plugins.receive_callback(address, lambda: _read_body(request))


async def _read_body(request: Request) -> bytes | CallbackResponse:
    try:
        require_valid_body(cast("RequestHead", request.scope[REQUEST_HEAD]))
        return await request.body()
    except Refusal as refusal:
        return refuse_callback(HTTPStatus(refusal.status_code), refusal.detail)
