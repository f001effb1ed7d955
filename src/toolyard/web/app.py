"""The web application: routes behind the edge, and what they need, put together for one Yard."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from toolyard.app import Yard
from toolyard.engine.clock import Clock
from toolyard.engine.conversations import Conversations
from toolyard.errors import StorageError, StorageUnwritable, ToolyardError, is_disk_refusal
from toolyard.gateway.chat import Chat
from toolyard.gateway.media_link import MediaLinks
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.web.access import Access
from toolyard.web.answers import answer
from toolyard.web.bodies import BODY_S
from toolyard.web.drain import Drain
from toolyard.web.edge import HEAD, REQUEST, Edge
from toolyard.web.feed import Feed
from toolyard.web.head import Head, Neighbourhood
from toolyard.web.idempotent_runs import IdempotentRuns
from toolyard.web.metrics import Metrics
from toolyard.web.pushes import Pushes
from toolyard.web.refusal import Refusal, bug, error_body, problems
from toolyard.web.reloading import Reloading
from toolyard.web.routes import (
    approvals,
    callbacks,
    calls,
    chat,
    conversations,
    doctor,
    events,
    health,
    human,
    keys,
    mcp_servers,
    media,
    models,
    pages,
    passthrough,
    plugin_cases,
    plugin_install,
    plugins,
    replies,
    restore,
    rules,
    schedules,
    sessions,
    settings,
    setup,
    status,
    tasks,
    tools,
)
from toolyard.web.scope import is_nowhere
from toolyard.web.shapes import ErrorBody
from toolyard.web.sockets import deny
from toolyard.web.state_check import StateCheck

_UNROUTED = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
_STATUS = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one server is made of, beside its Yard."""

    version: str
    clock: Clock
    access: Access
    near: Neighbourhood
    feed: Feed
    pushes: Pushes
    drain: Drain
    runs: IdempotentRuns
    metrics: Metrics
    reloading: Reloading
    cookie: str
    links: MediaLinks
    state_check: StateCheck
    body_s: float = BODY_S
    chat: Chat | None = None
    more: tuple[APIRouter, ...] = ()  # routes of others


def make_app(yard: Yard, parts: Parts) -> Edge:
    """The application that a server runs."""
    app = routed(yard, parts)
    return Edge(
        chat.shortcut(app, parts.chat, parts.runs) if parts.chat else app,
        access=parts.access,
        near=parts.near,
        drain=parts.drain,
        metrics=parts.metrics,
        clock=parts.clock,
        cookie=parts.cookie,
        body_s=parts.body_s,
        nowhere=pages.nowhere,
    )


def routed(yard: Yard, parts: Parts) -> FastAPI:
    """The routes without their edge."""
    app = FastAPI(
        title="Toolyard",
        version=parts.version,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # ours is made beside the event loop
        redirect_slashes=False,
        responses={"default": {"model": ErrorBody, "description": "An error."}},
        separate_input_output_schemas=False,
    )
    access, metrics, drain = parts.access, parts.metrics, parts.drain
    chats = Conversations(yard.store, parts.clock)
    for router in (
        tools.router(yard, parts.runs),
        plugin_install.router(yard),
        plugins.router(yard),
        plugin_cases.router(yard),
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
        doctor.router(yard, parts.clock),
        restore.router(yard),
        human.router(yard, parts.clock),
        tasks.router(yard, parts.pushes, chats),
        schedules.router(yard, parts.clock, chats),
        rules.router(yard),  # before approvals: "rules" is no id
        approvals.router(yard, parts.clock, parts.chat),
        calls.router(yard, parts.clock),
        replies.router(),
        conversations.router(chats),
        callbacks.router(yard, metrics),
        keys.router(access.keys, parts.clock),
        sessions.router(access, parts.feed, parts.cookie, parts.version),
        health.router(yard, drain, metrics, parts.version, parts.clock),
        events.router(yard, parts.feed, access, parts.pushes),
        media.router(parts.links),
        pages.router(app),
        *(_chat_routers(parts.chat, parts.runs, yard) if parts.chat else ()),
        *parts.more,
    ):
        app.include_router(router)
    app.add_api_websocket_route("/{path:path}", _no_websocket)
    _answer_errors(app, drain, yard.config.home)
    _document(app)
    metrics.watch("toolyard_requests_running", "Requests that have not ended.", lambda: drain.running)
    metrics.watch("toolyard_websocket_clients", "Open WebSockets.", lambda: parts.feed.followers)
    metrics.watch("toolyard_failed_logins", "Attempts to get in that failed.", lambda: access.failures.total)
    return app


def _chat_routers(chats: Chat, runs: IdempotentRuns, yard: Yard) -> tuple[APIRouter, ...]:
    return chat.router(chats, runs), models.router(chats), passthrough.router(chats, yard.mask.text)


async def _no_websocket(socket: WebSocket) -> None:
    problem = "there is no WebSocket here: events are at /ws, VCPToolBox's channels open with the setting vcp_channels"
    await deny(socket, HTTPStatus.NOT_FOUND, problem)


def _answer_errors(app: FastAPI, drain: Drain, home: Path) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        status, message, code, headers = _told(error)
        head = request.scope.get(HEAD)
        if status == HTTPStatus.NOT_FOUND and isinstance(head, Head) and head.wants_page and is_nowhere(head.path):
            return await pages.nowhere()
        if isinstance(error, StorageError):
            drain.storage_fault = message
        if status in _UNROUTED and not isinstance(error, (Refusal, Failure)):
            message = f"{message}: {request.method} {request.url.path[:200]}. What there is stands in /docs."
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = (headers or {}) | {"Allow": ", ".join(_methods(app, request.scope))}
        return Response(error_body(status, message, code), status, headers, "application/json")

    async def broken(request: Request, _: Exception) -> Response:
        return await refused(request, bug(request.scope[REQUEST]))

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


def _methods(app: FastAPI, scope: Scope) -> list[str]:
    """What may be asked of a path: each method is a route of its own, and the first would name only its own."""
    asked = [(method, {**scope, "method": method}) for method in ("DELETE", "GET", "PATCH", "POST", "PUT")]
    return [method for method, one in asked if any(route.matches(one)[0] is Match.FULL for route in app.routes)]


def _told(error: Exception) -> tuple[int, str, str, dict[str, str] | None]:
    """Status, message, code and headers of an error that a route has raised."""
    match error:
        case HTTPException():
            headers = dict(error.headers) if error.headers else None
            return error.status_code, str(error.detail), getattr(error, "code", ""), headers
        case RequestValidationError():
            return HTTPStatus.UNPROCESSABLE_ENTITY, problems(error), "", None
        case Failure():
            status = _STATUS.get(error.code, HTTPStatus.BAD_REQUEST)
            return status, f"{error.message} {error.hint}".strip(), error.code.value, None
        case StorageError():
            unwritable = isinstance(error, StorageUnwritable)
            status = HTTPStatus.INSUFFICIENT_STORAGE if unwritable else HTTPStatus.SERVICE_UNAVAILABLE
            return status, str(error), "storage", None
        case _:
            return HTTPStatus.BAD_REQUEST, str(error), "", None


def _document(app: FastAPI) -> None:
    """``/openapi.json``: everything needs the key but what says otherwise. It is made when somebody asks for it."""
    plain, making = app.openapi, Lock()

    def documented() -> dict[str, Any]:
        with making:  # threads do it: it takes so long that every other request would feel it
            schema = plain()
            schema.setdefault("components", {})["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"key": []}]
            return schema

    app.openapi = documented  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return await asyncio.to_thread(lambda: answer(documented()))
