"""The ASGI application of one Yard: its routes, their dependencies, and the security middleware in front."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from toolyard.engine.chats.assistants import Assistants
from toolyard.engine.chats.conversations import Conversations
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError, StorageUnwritable, ToolyardError, is_disk_refusal
from toolyard.gateway.chats import Chat
from toolyard.gateway.media_links import MediaLinks
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.message import add_hint
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.web.answers import json_response
from toolyard.web.feed import Feed
from toolyard.web.idempotency import IdempotentRequests
from toolyard.web.refusal import Refusal, describe_validation_error, internal_error, write_error
from toolyard.web.routes.admin import health, pages, restore, sessions, settings, setup, status
from toolyard.web.routes.calls import approvals, audit, callbacks, calls, events, rules, schedules, tasks, tools
from toolyard.web.routes.chat import (
    chats,
    conversations,
    files,
    messages,
    models,
    passthrough,
    prompts,
    replies,
    responses,
)
from toolyard.web.routes.plugins import installation, mcp_servers, nodes, plugin_install, plugins
from toolyard.web.routing import DirectAnswers, Routes, route_first
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.schemas.components import add_components, refer_to
from toolyard.web.security.access import Access
from toolyard.web.security.middleware import REQUEST_HEAD, REQUEST_ID, SecurityMiddleware, is_mistyped_page
from toolyard.web.security.request_body import BODY_S
from toolyard.web.security.request_head import HostPolicy, RequestHead
from toolyard.web.security.scope import ANY_KEY, AccessRules
from toolyard.web.server.health import Drain, StateCheck
from toolyard.web.server.metrics import Metrics
from toolyard.web.server.websocket_client import deny_websocket
from toolyard.web.settings.live_settings import SettingsReloader
from toolyard.yard.yard import Yard

_FASTAPI_INVALID: Final = "Validation Error"  # how FastAPI describes its response to an invalid request
_UNROUTED = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
_STATUS = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppParts:
    """The parts of a server beside its Yard."""

    version: str
    clock: Clock
    access: Access
    policy: HostPolicy
    feed: Feed
    pushes: events.Pushes
    drain: Drain
    idempotent: IdempotentRequests
    metrics: Metrics
    reloading: SettingsReloader
    cookie: str
    links: MediaLinks
    state_check: StateCheck
    body_s: float = BODY_S
    chat: Chat | None = None
    responses: ResponseTurns | None = None  # beside the chat
    more: tuple[Routes, ...] = ()  # routes of others


def make_app(yard: Yard, parts: AppParts) -> SecurityMiddleware:
    """Build the application that a server runs."""
    app = make_api(yard, parts)
    audited = audit.AuditTrail(app, yard.state.audit)
    return SecurityMiddleware(
        route_first(audited, app.state.direct_answers),
        rules=app.state.rules,
        access=parts.access,
        policy=parts.policy,
        drain=parts.drain,
        metrics=parts.metrics,
        clock=parts.clock,
        cookie=parts.cookie,
        body_s=parts.body_s,
        not_found_page=pages.not_found_page,
    )


def make_api(yard: Yard, parts: AppParts) -> FastAPI:
    """Build the routes without the security middleware."""
    app = FastAPI(
        title="Toolyard",
        version=parts.version,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # ours is built in a thread
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    access, metrics, drain = parts.access, parts.metrics, parts.drain
    stored_chats = Conversations(yard.state.store, parts.clock)
    areas: tuple[Routes, ...] = (
        tools.router(yard, parts.idempotent),
        tools.summary_router(yard),
        files.project_router(yard),
        plugin_install.router(yard),
        plugins.router(yard),
        plugins.cases_router(yard),
        installation.router(yard),
        mcp_servers.router(yard, parts.clock),
        settings.router(yard, parts.reloading),
        setup.router(yard, parts.reloading, parts.clock),
        status.router(
            yard,
            drain,
            parts.feed,
            parts.reloading,
            parts.chat,
            version=parts.version,
            clock=parts.clock,
            state_check=parts.state_check,
        ),
        audit.router(yard),
        status.doctor_router(yard, parts.clock),
        restore.router(yard),
        tools.human_router(yard, parts.clock),
        tasks.router(yard, parts.pushes, stored_chats),
        schedules.router(yard, parts.clock, stored_chats),
        rules.router(yard),  # before approvals: "rules" is no id
        approvals.router(yard, parts.clock, parts.chat),
        calls.router(yard, parts.clock),
        replies.router(),
        conversations.router(stored_chats),
        conversations.assistants_router(Assistants(yard.state.store, parts.clock)),
        files.attachments_router(yard),
        callbacks.router(yard, metrics),
        sessions.keys_router(access.keys, parts.clock),
        sessions.router(access, parts.feed, parts.cookie, parts.version, yard.config.own_command),
        health.router(yard, drain, metrics, parts.version, parts.clock),
        events.router(yard, parts.feed, access, parts.pushes),
        files.router(parts.links),
        nodes.router(yard.nodes.nodes),
        nodes.socket_router(yard.nodes.nodes, access.is_still_valid),
        pages.router(app),
        *(_make_chat_routers(parts.chat, parts.responses, parts, yard) if parts.chat and parts.responses else ()),
        *parts.more,
    )
    for area in areas:
        # Not include_router: it builds every route a second time, which takes half as long as starting the server.
        app.router.routes.extend(area.routes)
    app.state.rules = AccessRules(({"/openapi.json": ANY_KEY}, *(area.rules for area in areas)))
    app.state.direct_answers = _list_direct_answers(parts, yard.mask.text)
    app.add_api_websocket_route("/{path:path}", _deny_unknown_websocket)
    _add_exception_handlers(app, drain, yard.config.home)
    _add_openapi(app)
    metrics.add_gauge("toolyard_requests_running", "Requests in progress.", lambda: drain.running_count)
    metrics.add_gauge("toolyard_websocket_clients", "Open WebSockets.", lambda: parts.feed.client_count)
    metrics.add_gauge("toolyard_failed_logins", "Failed login attempts.", lambda: access.limiter.total)
    return app


def _list_direct_answers(parts: AppParts, mask: Callable[[str], str]) -> DirectAnswers:
    chat, turns, idempotent = parts.chat, parts.responses, parts.idempotent
    if chat is None or turns is None:
        return {}
    return {
        **chats.direct_answers(chat, idempotent),
        **responses.direct_answers(turns, idempotent),
        **messages.direct_answers(chat, idempotent, mask),
    }


def _make_chat_routers(chat: Chat, turns: ResponseTurns, parts: AppParts, yard: Yard) -> tuple[Routes, ...]:
    return (
        chats.router(chat, parts.idempotent),
        responses.router(turns, parts.idempotent, parts.access.is_still_valid),
        messages.router(chat, parts.idempotent, yard.mask.text),
        models.router(chat),
        prompts.router(yard, chat),
        passthrough.router(chat, yard.mask.text),
    )


async def _deny_unknown_websocket(socket: WebSocket) -> None:
    problem = "there is no WebSocket here: events are at /ws; VCPToolBox's channels need the setting vcp_channels"
    await deny_websocket(socket, HTTPStatus.NOT_FOUND, problem)


def _add_exception_handlers(app: FastAPI, drain: Drain, home: Path) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        status, message, code, headers = _describe_error(error)
        head = request.scope.get(REQUEST_HEAD)
        if (
            status == HTTPStatus.NOT_FOUND
            and isinstance(head, RequestHead)
            and head.is_page_request
            and is_mistyped_page(head.path, app.state.rules.find(head.path))
        ):
            return await pages.not_found_page(head)
        if isinstance(error, StorageError):
            drain.storage_fault = message
        if status in _UNROUTED and not isinstance(error, (Refusal, Failure)):
            message = f"{message}: {request.method} {request.url.path[:200]}. See /docs for all routes."
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = (headers or {}) | {"Allow": ", ".join(_list_methods(app, request.scope))}
        speaks_messages = isinstance(head, RequestHead) and head.speaks_messages
        body = write_error(
            status, message, code, speaks_messages=speaks_messages, request_id=request.scope.get(REQUEST_ID, "")
        )
        return Response(body, status, headers, "application/json")

    async def broken(request: Request, _: Exception) -> Response:
        return await refused(request, internal_error(request.scope[REQUEST_ID]))

    async def unwritable(request: Request, error: Exception) -> Response:
        if not isinstance(error, OSError) or not is_disk_refusal(error):
            raise error
        return await refused(
            request, StorageUnwritable.from_os_error(home / Path(str(error.filename or "")).name, error)
        )

    app.add_exception_handler(Exception, broken)
    app.add_exception_handler(OSError, unwritable)
    for kind in (HTTPException, RequestValidationError, Failure, ToolyardError):
        app.add_exception_handler(kind, refused)


def _list_methods(app: FastAPI, scope: Scope) -> list[str]:
    """List the methods of a path: each is a route of its own, so Starlette would name only the first."""
    candidates = [(method, {**scope, "method": method}) for method in ("DELETE", "GET", "PATCH", "POST", "PUT")]
    return [method for method, one in candidates if any(route.matches(one)[0] is Match.FULL for route in app.routes)]


def _describe_error(error: Exception) -> tuple[int, str, str, dict[str, str] | None]:
    """Return status, message, code and headers for an error that a route raised."""
    match error:
        case HTTPException():
            headers = dict(error.headers) if error.headers else None
            return error.status_code, str(error.detail), getattr(error, "code", ""), headers
        case RequestValidationError():
            return HTTPStatus.UNPROCESSABLE_ENTITY, describe_validation_error(error), "", None
        case Failure():
            status = _STATUS.get(error.code, HTTPStatus.BAD_REQUEST)
            return status, add_hint(error.message, error.hint), error.code.value, None
        case StorageError():
            unwritable = isinstance(error, StorageUnwritable)
            status = HTTPStatus.INSUFFICIENT_STORAGE if unwritable else HTTPStatus.SERVICE_UNAVAILABLE
            return status, str(error), "storage", None
        case _:
            return HTTPStatus.BAD_REQUEST, str(error), "", None


def _describe_errors(schema: dict[str, Any]) -> None:
    """Give every operation our error as its default response, in place of FastAPI's own for invalid requests."""
    error = {"description": "An error.", "content": {"application/json": {"schema": refer_to(ErrorBody)}}}
    for operation in (one for path in schema["paths"].values() for one in path.values()):
        responses = operation["responses"]
        responses.setdefault("default", error)
        if responses.get("422", {}).get("description") == _FASTAPI_INVALID:
            del responses["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)


def _add_openapi(app: FastAPI) -> None:
    """Add ``/openapi.json``, built on the first request. Every operation needs a key unless it says otherwise."""
    plain, making = app.openapi, Lock()

    def documented() -> dict[str, Any]:
        with making:  # built in a thread: it would hold up every other request
            schema = plain()
            add_components(schema)
            _describe_errors(schema)
            schema.setdefault("components", {})["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"key": []}]
            return schema

    app.openapi = documented  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        public = cast("RequestHead", request.scope[REQUEST_HEAD]).public
        servers = {"servers": [{"url": public.url}]} if public else {}
        return await asyncio.to_thread(lambda: json_response({**documented(), **servers}))
