"""The audit trail of the server: which requests it records, and ``/v1/audit``, which shows it.

Requests that allow or change something are recorded when they have succeeded. A route names its action (``audit=``),
and adds what its path does not say with ``add_audit_detail``. An entry is committed before the response is sent.
Approvals and rules have no action: ``engine.approvals`` records them itself.
"""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolyard.engine.history.audit import Audit, AuditFilter
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.audit_record import AuditEntry
from toolyard.protocol.store import read_text
from toolyard.web.answers import After, Limit, page_response
from toolyard.web.routing import Route, Routes
from toolyard.web.schemas.records import page_model, record_model
from toolyard.web.security.scope import PRINCIPAL, Principal
from toolyard.yard.yard import Yard

AuditPage = page_model("AuditPage", record_model("AuditRow", AuditEntry))


_Name = Annotated[str | None, Query(max_length=200)]


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/audit", tag="audit")

    @routes.get("", AuditPage)
    async def list_audit(
        after: After,
        limit: Limit = 50,
        since: Annotated[float | None, Query(ge=0, description="Unix time.")] = None,
        tool: _Name = None,
        plugin: _Name = None,
        by: Annotated[str | None, Query(max_length=200, description="A caller, such as `key:owner` or `cli`.")] = None,
        action: Annotated[
            str | None, Query(max_length=100, description="An action such as `plugin.allowed`, or its first part.")
        ] = None,
        text: Annotated[str | None, Query(max_length=200, description="Somewhere in the entry, in any case.")] = None,
        only: Annotated[Literal["decisions", "runs"] | None, Query(description="Only these entries.")] = None,
    ) -> Response:
        """List decisions and runs, newest first."""
        filter_ = AuditFilter(
            since=since, tool=tool, plugin=plugin, by=by, action=action, text=text, decisions=only != "runs",
            runs=only != "decisions",
        )  # fmt: skip
        entries = await yard.state.audit.page(filter_, limit=limit, after=after)
        return page_response(entries, limit, AuditEntry.to_json, lambda entry: entry.place)

    return routes


_DETAIL: Final = "toolyard.audit_detail"  # key of the ASGI scope


def add_audit_detail(scope: Scope, **detail: Any) -> None:
    """Add to the entry of this request; ``target``, ``tool`` and ``plugin`` become those of the entry."""
    scope[_DETAIL] = detail


class AuditTrail:
    """An ASGI application in front of the routes."""

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app, self._audit = app, audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def record_first(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < HTTPStatus.BAD_REQUEST:
                await self._record(scope)
            await send(message)

        await self._app(scope, receive, record_first)

    async def _record(self, scope: Scope) -> None:
        route = scope.get("route")
        audited = route.audited if isinstance(route, Route) else None
        principal, detail = scope.get(PRINCIPAL), scope.get(_DETAIL)
        if audited is None or not isinstance(principal, Principal) or (audited.only_with_detail and detail is None):
            return
        names: JsonObject = {name: str(value) for name, value in scope.get("path_params", {}).items()}
        given: JsonObject = {"target": next(iter(names.values()), ""), "plugin": names.get(audited.plugin, "")}
        given |= detail or {}
        await self._audit.record(
            audited.action,
            principal.actor,
            tool=read_text(given, "tool"),
            plugin=read_text(given, "plugin"),
            target=read_text(given, "target"),
            detail={name: value for name, value in given.items() if name not in ("tool", "plugin", "target")},
        )
