"""Routes that say themselves who may use them and what the audit trail records of them.

    routes = Routes("/v1/keys", tag="keys")  # no scope: the key needs ``admin``

    @routes.post("", answer=CreatedKey, status=201, audit="key.created")
    async def make_key(new: NewKey) -> Response: ...

``answer`` is the model of the response in the OpenAPI document. A scope of ``Routes`` is that of each of its routes and
of everything below its prefix; a route may have its own. The server takes its access rules from here
(``security.scope``), and the audit trail its actions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from toolyard.web.security.scope import Scope

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Needed = Scope | frozenset[Scope]
ADMIN = frozenset({Scope.ADMIN})


DirectAnswers = Mapping[str, Callable[[Request], Awaitable[Response]]]
"""By path, what answers a POST to it without FastAPI."""


class _RouteLabel(NamedTuple):
    path: str  # for metrics and logs


def route_first(app: ASGIApp, answers: DirectAnswers) -> ASGIApp:
    """Return the application with these requests routed first, past FastAPI (bench row "chat routed first")."""
    labels = {path: _RouteLabel(path) for path in answers}

    async def direct(scope: Connection, receive: Receive, send: Send) -> None:
        label = labels.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if label is None:
            await app(scope, receive, send)
            return
        scope["route"] = label
        response = await answers[label.path](Request(scope, receive))
        await response(scope, receive, send)

    return direct


class Audited(NamedTuple):
    """The entry of the audit trail for a request that succeeded; a route that only gives an action has the defaults."""

    action: str
    plugin: str = ""  # the path parameter with the name of a plugin
    only_with_detail: bool = False  # the route says whether anything was done


class Route(APIRoute):
    audited: Audited | None = None


class Routes:
    """The routes of one area."""

    def __init__(self, prefix: str = "", *, tag: str = "", scope: Needed | None = None) -> None:
        self._router = APIRouter(prefix=prefix, tags=[tag] if tag else None, route_class=Route)
        self._scopes = ADMIN if scope is None else _with_admin(scope)
        self.rules: dict[str, frozenset[Scope]] = {}  # by path; ``*`` stands for any rest
        if prefix and scope is not None:
            self.rules |= {prefix: self._scopes, f"{prefix}/*": self._scopes}

    @property
    def routes(self) -> Sequence[BaseRoute]:
        return self._router.routes

    def get(self, path: str, answer: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("GET", path, answer, **options)

    def head(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("HEAD", path, None, **options)

    def post(self, path: str, answer: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("POST", path, answer, **options)

    def put(self, path: str, answer: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PUT", path, answer, **options)

    def patch(self, path: str, answer: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PATCH", path, answer, **options)

    def delete(self, path: str, answer: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("DELETE", path, answer, **options)

    def websocket(self, path: str) -> Callable[[Endpoint], Endpoint]:
        self.allow(path, self._scopes)
        return self._router.websocket(path)

    def mount(self, route: BaseRoute) -> None:
        """Add an ASGI application below the prefix."""
        self._router.routes.append(route)

    def allow(self, path: str, scope: Needed) -> None:
        """Set who may use a path; one with a parameter covers all that begin as it does before that."""
        beginning, parameter, _ = path.partition("{")
        self.rules[f"{beginning}*" if parameter else path] = _with_admin(scope)

    def _add(
        self,
        method: str,
        path: str,
        answer: Any,
        *,
        status: int = 200,
        scope: Needed | None = None,
        audit: str | Audited = "",
        responses: Mapping[int | str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that adds a route. Further options are those of FastAPI's ``add_api_route``."""
        documented: dict[int | str, dict[str, Any]] = {} if answer is None else {status: {"model": answer}}

        def decorate(endpoint: Endpoint) -> Endpoint:
            self._router.add_api_route(
                path,
                endpoint,
                methods=[method],
                status_code=None if status == 200 else status,
                responses=documented | dict(responses or {}),
                **options,
            )
            route = self._router.routes[-1]
            assert isinstance(route, Route)  # noqa: S101 add_api_route has just made it
            route.audited = Audited(audit) if isinstance(audit, str) and audit else audit or None
            if scope is not None or not self._is_covered(route.path):
                self.allow(route.path, self._scopes if scope is None else scope)
            return endpoint

        return decorate

    def _is_covered(self, path: str) -> bool:
        return any(path == rule or (rule.endswith("*") and path.startswith(rule[:-1])) for rule in self.rules)


def _with_admin(scope: Needed) -> frozenset[Scope]:
    """Return the scopes of which one is enough; none at all, for what is public, stays none."""
    needed = frozenset({scope}) if isinstance(scope, Scope) else scope
    return needed | ADMIN if needed else needed
