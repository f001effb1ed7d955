"""The security middleware: every request passes it before a route, and every response after.

Checked in this order, from the request head alone: Host and proxy, Origin, whether the server accepts work,
authentication, scope, the CSRF token of a browser session, content type and size of the body. Only then is a byte of
the body read. Every response, errors included, gets a request id, the security headers and those of CORS. Pure ASGI: it
buffers and copies nothing. Requests of one burst take turns, so that none holds up everything else; only the probes of
those who watch the server do not wait for theirs.
"""

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Message as AsgiMessage
from starlette.types import Scope as AsgiScope

from toolyard.engine.clock import Clock
from toolyard.engine.step_limiter import StepLimiter
from toolyard.message import Message
from toolyard.web.refusal import Refusal, error_body, internal_error, write_error
from toolyard.web.security.access import Access, is_same_secret
from toolyard.web.security.address_page import Page, render_address_page
from toolyard.web.security.cors import is_own_page, is_preflight, preflight_headers, require_origin, response_headers
from toolyard.web.security.request_body import BODY_S, BoundedBody, body_timeout_s, max_body_bytes, require_valid_body
from toolyard.web.security.request_head import (
    HostPolicy,
    RequestHead,
    apply_head,
    has_forwarding,
    read_head,
    require_address,
)
from toolyard.web.security.scope import (
    CALLBACK_PREFIX,
    NODE_PREFIX,
    PRINCIPAL,
    PUBLISHED_PREFIXES,
    VCP_ADMIN,
    VCP_CHANNELS,
    AccessRules,
    PathRule,
    Principal,
)
from toolyard.web.security.ways_in import is_lost
from toolyard.web.server.health import Drain
from toolyard.web.server.metrics import Metrics

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; frame-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify service-worker"
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
REQUEST_ID: Final = "toolyard.request_id"
REQUEST_HEAD: Final = "toolyard.head"
_VCP_KEY = "VCP_Key="
_MAX_WARNINGS = 16  # about proxies that are not trusted, and about nodes
_PROBES = ("/healthz", "/readyz")
_EVENT_STREAM = b"text/event-stream"
_UNBUFFERED = (b"x-accel-buffering", b"no")  # nginx would hold events back until its buffer is full
_CLIENT_CLOSED = 499  # status in logs and metrics of a client that left before its request was complete
_log = logging.getLogger("toolyard.web")


class SecurityMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        *,
        rules: AccessRules,
        access: Access,
        policy: HostPolicy,
        drain: Drain,
        metrics: Metrics,
        clock: Clock,
        cookie: str,
        not_found_page: Callable[[RequestHead], Awaitable[ASGIApp]],
        body_s: float = BODY_S,
    ) -> None:
        self._app, self._access, self._drain, self._limiter = app, access, drain, StepLimiter()
        self.rules = rules
        self.policy = policy  # the owner may change it while the server runs
        self._metrics, self._clock, self._cookie, self._body_s = metrics, clock, cookie, body_s
        self._not_found_page = not_found_page  # for unknown paths
        self._unknown_proxies: set[str] = set()  # addresses that a warning has named
        self._refused_nodes: set[str] = set()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._handle_websocket(scope, receive, send)

    async def _handle_http(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["path"] not in _PROBES:
            await self._limiter.step()
        head = self._enter(scope)
        rule = self.rules.find(head.path)
        answer = _ResponseSender(send, head, self.policy, rule)
        scope[REQUEST_ID] = answer.id
        started = self._clock.monotonic()
        with self._drain:
            try:
                if is_preflight(head, self.policy, rule):
                    require_address(head, self.policy)
                    await answer.send_preflight()
                else:
                    app = self._app if self._admit(scope, head, rule) else await self._not_found_page(head)
                    patience = body_timeout_s(head.path, self._body_s)
                    await app(scope, BoundedBody(receive, max_body_bytes(head.path), patience), answer.send)
            except Refusal as refusal:
                await answer.send_refusal(refusal)
            except ClientDisconnect:
                answer.status = _CLIENT_CLOSED
            except Exception:  # noqa: BLE001 a bug of ours must still be answered
                _log.exception("a bug in Toolyard", extra={"fields": {"request": answer.id}})
                await answer.send_refusal(internal_error(answer.id))
        if not head.is_safe and answer.status < HTTPStatus.BAD_REQUEST:
            self._drain.has_new_writes = True
        route = getattr(scope.get("route"), "path", "") or "none"
        seconds = self._clock.monotonic() - started
        self._metrics.count_request(head.method, route, answer.status, seconds)
        _log.info("request", extra={"fields": _log_fields(head, answer.id, answer.status, route, seconds)})

    async def _handle_websocket(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        head, request = self._enter(scope), _make_request_id()
        started, status = self._clock.monotonic(), HTTPStatus.SWITCHING_PROTOCOLS.value

        async def note(message: AsgiMessage) -> None:
            nonlocal status
            if message["type"] == "websocket.http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._admit(scope, head, self.rules.find(head.path))
            await self._app(scope, receive, note)
        except Refusal as refusal:
            self._warn_of_node(head, refusal)
            headers = [(b"content-type", b"application/json"), *_encode_headers(refusal.headers)]
            start = {"type": "websocket.http.response.start", "status": refusal.status_code, "headers": headers}
            await note(start)
            body = error_body(refusal.status_code, refusal.detail, refusal.code)
            await send({"type": "websocket.http.response.body", "body": body})
        route = getattr(scope.get("route"), "path", "") or "none"
        seconds = self._clock.monotonic() - started
        _log.info("websocket", extra={"fields": _log_fields(head, request, status, route, seconds)})

    def _warn_of_node(self, head: RequestHead, refusal: Refusal) -> None:
        """Log why a node is refused, once for each address: the node itself shows nobody more than the status."""
        is_noted = head.address in self._refused_nodes or len(self._refused_nodes) >= _MAX_WARNINGS
        if head.path.startswith(NODE_PREFIX) and not is_noted:
            self._refused_nodes.add(head.address)
            _log.warning("a node at %s was refused: %s", head.address, refusal.detail)

    def _enter(self, scope: AsgiScope) -> RequestHead:
        """Return the head of a request, and make the routes see the path and the client that it names."""
        head = read_head(scope, self.policy)
        apply_head(head, scope)
        is_noted = head.peer in self._unknown_proxies or len(self._unknown_proxies) >= _MAX_WARNINGS
        if head.forwarding is None and not is_noted and has_forwarding(head.headers):
            self._unknown_proxies.add(head.peer)
            _log.warning(
                "%s sends forwarding headers such as X-Forwarded-For, which are ignored: if it is your proxy, add it "
                "to trusted_proxies, so that limits and the audit trail see its clients",
                head.peer,
            )
        return head

    def _admit(self, scope: AsgiScope, head: RequestHead, rule: PathRule) -> bool:
        """Check a request and put its principal into ``scope``; return False for an unknown page. Raises Refusal."""
        require_address(head, self.policy)
        require_origin(head, self.policy, rule)
        scope[REQUEST_HEAD] = head
        if rule.is_public:
            if not head.path.startswith(CALLBACK_PREFIX):  # its route checks the token first
                require_valid_body(head)
            return True
        self._drain.require_open()
        principal = self._authenticate(head)
        if not rule.is_known and is_lost(head.method, head.path):
            raise _describe_bases(head)
        if not principal.has_any_scope(rule.scopes):
            if head.is_page_request and is_mistyped_page(head.path, rule):
                return False  # no route runs: a path without a rule stays closed
            scopes = ", ".join(sorted(rule.scopes))
            raise Refusal(HTTPStatus.FORBIDDEN, Message("the key lacks the required scope: {scopes}", scopes=scopes))
        changes = head.method != "WEBSOCKET" and not head.is_safe
        if principal.csrf and changes and not is_same_secret(head.get("x-csrf-token"), principal.csrf):
            raise Refusal(
                HTTPStatus.FORBIDDEN, Message("send the session's CSRF token as X-CSRF-Token: see GET /v1/session")
            )
        require_valid_body(head)
        scope[PRINCIPAL] = replace(principal, address=head.address)
        return True

    def _authenticate(self, head: RequestHead) -> Principal:
        if key := head.key:
            return self._access.authenticate_key(key, head.address)
        if head.path.startswith(VCP_ADMIN) and (credentials := head.basic_credentials):
            return self._access.authenticate_panel(*credentials, head.address)
        if head.method == "WEBSOCKET":
            if ticket := _read_ticket(head):
                return self._access.authenticate_ticket(ticket, head.address)
            if head.path.startswith(VCP_CHANNELS) and _VCP_KEY in head.path:
                return self._access.authenticate_channel(_read_channel_keys(head), head.address)
        if (session := head.cookie(self._cookie)) and is_own_page(head, self.policy):
            return self._access.authenticate_session(session, head.address)
        raise self._access.missing_credentials(head.address)


class _ResponseSender:
    """Sends one response, with the headers that every response has."""

    __slots__ = ("_head", "_policy", "_rule", "_send", "id", "status")

    def __init__(self, send: Send, head: RequestHead, policy: HostPolicy, rule: PathRule) -> None:
        self._send, self._head, self._policy, self._rule = send, head, policy, rule
        self.id = _make_request_id()
        self.status = 0

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = dict(message["headers"])
            more = [pair for pair in _HEADERS if pair[0] not in own]
            if own.get(b"content-type", b"").startswith(_EVENT_STREAM) and b"x-accel-buffering" not in own:
                more.append(_UNBUFFERED)
            cors = response_headers(self._head, self._policy, self._rule)
            if self._head.speaks_messages:
                more.append((b"request-id", self.id.encode()))  # where Anthropic's clients look for it
            message["headers"] = [*message["headers"], *more, (b"x-request-id", self.id.encode()), *cors]
        await self._send(message)

    async def send_refusal(self, refusal: Refusal) -> None:
        if self.status:
            return  # the response has begun
        code = refusal.status_code
        page = _find_page(refusal, self._head) if self._head.accepts_page else None
        kind = b"text/html; charset=utf-8" if page else b"application/json"
        body = page.body if page else self._write_error(refusal)
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            *(((b"content-security-policy", page.policy.encode()),) if page else ()),
            *_encode_headers(refusal.headers),
        ]
        await self.send({"type": "http.response.start", "status": code, "headers": headers})
        await self.send({"type": "http.response.body", "body": body if self._head.method != "HEAD" else b""})

    def _write_error(self, refusal: Refusal) -> bytes:
        speaks_messages = self._head.speaks_messages
        return write_error(
            refusal.status_code, refusal.detail, refusal.code, speaks_messages=speaks_messages, request_id=self.id
        )

    async def send_preflight(self) -> None:
        start = {"type": "http.response.start", "status": HTTPStatus.NO_CONTENT.value}
        await self.send({**start, "headers": preflight_headers(self._head)})
        await self.send({"type": "http.response.body", "body": b""})


def is_mistyped_page(path: str, rule: PathRule) -> bool:
    """Return whether a path has no rule and is none of the API, so that a person may have mistyped it."""
    return not rule.is_known and not path.startswith("/v1/")


def _describe_bases(head: RequestHead) -> Refusal:
    """Return the answer to a client whose base URL leads nowhere."""
    base = f"{head.scheme}://{head.host}{head.prefix or ''}"
    return Refusal(
        HTTPStatus.NOT_FOUND,
        Message(
            "there is nothing at this path: the base URL is {openai} for clients of OpenAI, and {anthropic} for those "
            "of Anthropic",
            openai=f"{base}/v1",
            anthropic=base,
        ),
    )


def _find_page(refusal: Refusal, head: RequestHead) -> Page | None:
    """Return what a browser shows instead of JSON: the way to the login, or how the address can be corrected."""
    if refusal.status_code == HTTPStatus.UNAUTHORIZED:
        return Page(_render_sign_in_page(head), CSP)
    return render_address_page(refusal.detail, head.get("accept-language"))


def _render_sign_in_page(head: RequestHead) -> bytes:
    """Return a page that redirects to the login page; a page of our own, so that the browser sends its cookie."""
    goal = quote(head.path + (f"?{head.query}" if head.query else ""), safe="")
    login = f"{head.base}login?next={goal}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolyard</title><link rel="icon" href="data:,">'
        f'<meta http-equiv="refresh" content="0;url={login}"><link rel="stylesheet" href="{head.base}login.css">'
        f'<main><h1>Toolyard</h1><p><a href="{login}">Sign in</a></p></main></html>'
    ).encode()


def _encode_headers(headers: object) -> list[tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, dict) else ()
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


def _read_ticket(head: RequestHead) -> str:
    """Return the ticket in the query, or after ``bearer`` in the subprotocols."""
    words = [word.strip() for word in head.get("sec-websocket-protocol").split(",")]
    return words[1] if len(words) == 2 and words[0] == "bearer" else head.query_value("ticket")


def _read_channel_keys(head: RequestHead) -> list[str]:
    """Return what the key in the address of a channel may be: clients write it there with and without encoding."""
    raw = head.raw_path.decode("latin-1").partition("?")[0]
    return list(dict.fromkeys(path.partition(_VCP_KEY)[2] for path in (head.path, raw)))


def _make_request_id() -> str:
    return f"req_{random.getrandbits(64):016x}"  # it grants nothing, and os.urandom is slow


def _log_fields(head: RequestHead, request: str, status: int, route: str, seconds: float) -> dict[str, object]:
    """Return the log fields of a request, without its query and without a path that may carry a secret."""
    secret = (
        head.path.startswith((CALLBACK_PREFIX, *PUBLISHED_PREFIXES, *VCP_CHANNELS))
        or _VCP_KEY.lower() in head.path.lower()
    )
    path = route if secret else head.path
    return {
        "request": request,
        "method": head.method,
        "path": path,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "address": head.address,
    }
