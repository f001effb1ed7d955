"""The edge of the server: what every request passes before a route sees it, and every answer after.

In this order, from the head alone: the Host, the Origin, whether the server takes work, who asks, their scope, the CSRF
token of a browser's session, the kind and size of the body. Only then is a byte of the body read. Each answer, also to
what is refused, has the id of its request, the headers that keep pages in their place, and those of CORS. Pure ASGI: it
holds nothing back and copies nothing. Requests that come in one burst take turns, so that none of them stops everything
else.
"""

import logging
import random
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from toolyard.engine.clock import Clock
from toolyard.gateway.step_limiter import StepLimiter
from toolyard.web.access import Access, Visitor, same
from toolyard.web.bodies import BODY_S, Bounded, limit_of, patience_of, require_sound_body
from toolyard.web.cors import answer_headers, is_own_page, is_preflight, preflight_headers, require_origin
from toolyard.web.drain import Drain
from toolyard.web.head import Head, Neighbourhood, read_head, require_host
from toolyard.web.metrics import Metrics
from toolyard.web.refusal import Refusal, bug, error_body
from toolyard.web.scope import CALLBACK, PUBLISHED, VCP_CHANNELS, is_nowhere, is_open, needed

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
_HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
REQUEST: Final = "toolyard.request"
VISITOR: Final = "toolyard.visitor"
HEAD: Final = "toolyard.head"
_VCP_KEY = "VCP_Key="
_GONE = 499  # what logs and metrics call a client that left before its request was whole
_log = logging.getLogger("toolyard.web")


class Edge:
    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        near: Neighbourhood,
        drain: Drain,
        metrics: Metrics,
        clock: Clock,
        cookie: str,
        nowhere: Callable[[], Awaitable[ASGIApp]],
        body_s: float = BODY_S,
    ) -> None:
        self._app, self._access, self._drain, self._fair = app, access, drain, StepLimiter()
        self.near = near  # the owner may change it while the server runs
        self._metrics, self._clock, self._cookie, self._body_s = metrics, clock, cookie, body_s
        self._nowhere = nowhere  # the page of every address that there is not

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        await self._fair.step()
        head = read_head(scope, self.near)
        answer = _Answer(send, head, self.near)
        scope[REQUEST] = answer.id
        started = self._clock.monotonic()
        with self._drain:
            try:
                if is_preflight(head, self.near):
                    require_host(head, self.near)
                    await answer.preflight()
                else:
                    app = self._app if self._admit(scope, head) else await self._nowhere()
                    patience = patience_of(head.path, self._body_s)
                    await app(scope, Bounded(receive, limit_of(head.path), patience), answer.send)
            except Refusal as refusal:
                await answer.refuse(refusal)
            except ClientDisconnect:
                answer.status = _GONE
            except Exception:  # noqa: BLE001 a bug of ours must still be answered
                _log.exception("a bug in Toolyard", extra={"fields": {"request": answer.id}})
                await answer.refuse(bug(answer.id))
        if not head.is_safe and answer.status < HTTPStatus.BAD_REQUEST:
            self._drain.worked = True
        route = getattr(scope.get("route"), "path", "") or "none"
        seconds = self._clock.monotonic() - started
        self._metrics.request(head.method, route, answer.status, seconds)
        _log.info("request", extra={"fields": _told(head, answer.id, answer.status, route, seconds)})

    async def _websocket(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        head, request = read_head(scope, self.near), _request_id()
        started, status = self._clock.monotonic(), HTTPStatus.SWITCHING_PROTOCOLS.value

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "websocket.http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._admit(scope, head)
            await self._app(scope, receive, note)
        except Refusal as refusal:
            headers = [(b"content-type", b"application/json"), *_encoded(refusal.headers)]
            start = {"type": "websocket.http.response.start", "status": refusal.status_code, "headers": headers}
            await note(start)
            body = error_body(refusal.status_code, refusal.detail, refusal.code)
            await send({"type": "websocket.http.response.body", "body": body})
        route = getattr(scope.get("route"), "path", "") or "none"
        seconds = self._clock.monotonic() - started
        _log.info("websocket", extra={"fields": _told(head, request, status, route, seconds)})

    def _admit(self, scope: AsgiScope, head: Head) -> bool:
        """Whether there is a way in; leaves in ``scope`` who it is. Raises Refusal."""
        require_host(head, self.near)
        require_origin(head, self.near)
        scope[HEAD] = head
        if is_open(head.path):
            if not head.path.startswith(CALLBACK):  # its route looks at the token first
                require_sound_body(head)
            return True
        self._drain.require_open()
        visitor = self._visitor(head)
        if not visitor.may(needed(head.path)):
            if head.wants_page and is_nowhere(head.path):
                return False  # no route is asked: one that no rule names stays closed
            scopes = ", ".join(sorted(needed(head.path)))
            raise Refusal(HTTPStatus.FORBIDDEN, f"this key may not do that: it takes the scope {scopes}")
        changes = head.method != "WEBSOCKET" and not head.is_safe
        if visitor.csrf and changes and not same(head.get("x-csrf-token"), visitor.csrf):
            raise Refusal(HTTPStatus.FORBIDDEN, "send the session's token as X-CSRF-Token: see GET /v1/session")
        require_sound_body(head)
        scope[VISITOR] = visitor
        return True

    def _visitor(self, head: Head) -> Visitor:
        if key := head.bearer_key:
            return self._access.by_key(key, head.address)
        if head.method == "WEBSOCKET":
            if ticket := _ticket(head):
                return self._access.by_ticket(ticket, head.address)
            if head.path.startswith(VCP_CHANNELS) and _VCP_KEY in head.path:
                return self._access.by_key(unquote(head.path.partition(_VCP_KEY)[2]), head.address)
        if (session := head.cookie(self._cookie)) and is_own_page(head):
            return self._access.by_session(session, head.address)
        raise self._access.by_nothing(head.address)


class _Answer:
    """One answer on its way out."""

    __slots__ = ("_head", "_near", "_send", "id", "status")

    def __init__(self, send: Send, head: Head, near: Neighbourhood) -> None:
        self._send, self._head, self._near = send, head, near
        self.id = _request_id()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message["headers"]}
            more = [pair for pair in _HEADERS if pair[0] not in own]
            cors = answer_headers(self._head, self._near)
            message["headers"] = [*message["headers"], *more, (b"x-request-id", self.id.encode()), *cors]
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:
            return  # the answer has begun: nothing can be taken back
        code = refusal.status_code
        page = code == HTTPStatus.UNAUTHORIZED and "text/html" in self._head.get("accept")
        kind, body = (b"text/html; charset=utf-8", _sign_in(self._head)) if page else (b"application/json", b"")
        body = body or error_body(code, refusal.detail, refusal.code)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *_encoded(refusal.headers)]
        await self.send({"type": "http.response.start", "status": code, "headers": headers})
        await self.send({"type": "http.response.body", "body": body if self._head.method != "HEAD" else b""})

    async def preflight(self) -> None:
        start = {"type": "http.response.start", "status": HTTPStatus.NO_CONTENT.value}
        await self.send({**start, "headers": preflight_headers(self._head)})
        await self.send({"type": "http.response.body", "body": b""})


def _sign_in(head: Head) -> bytes:
    """A page that goes on to the login page: a step of our own, so that the browser sends the cookie it has."""
    goal = quote(head.path + (f"?{head.query}" if head.query else ""), safe="")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolyard</title>'
        f'<meta http-equiv="refresh" content="0;url=/login?next={goal}"><link rel="stylesheet" href="/login.css">'
        f'<main><h1>Toolyard</h1><p><a href="/login?next={goal}">Sign in</a></p></main></html>'
    ).encode()


def _encoded(headers: object) -> list[tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, dict) else ()
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


def _ticket(head: Head) -> str:
    """From the query, or as the word after ``bearer`` in the subprotocols."""
    words = [word.strip() for word in head.get("sec-websocket-protocol").split(",")]
    return words[1] if len(words) == 2 and words[0] == "bearer" else head.asked("ticket")


def _request_id() -> str:
    return f"req_{random.getrandbits(64):016x}"  # it opens nothing, and asking the system takes long


def _told(head: Head, request: str, status: int, route: str, seconds: float) -> dict[str, object]:
    """What the log says of a request: no query, and no path that may carry a secret."""
    secret = head.path.startswith((CALLBACK, *PUBLISHED, *VCP_CHANNELS)) or _VCP_KEY.lower() in head.path.lower()
    path = route if secret else head.path
    return {
        "request": request,
        "method": head.method,
        "path": path,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "address": head.address,
    }
