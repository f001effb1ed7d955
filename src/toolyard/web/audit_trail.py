"""The audit trail of the server: requests that allow or change something are recorded when they have succeeded.

An entry is committed before the response is sent. Approvals and rules are missing here: ``engine.approvals`` records
them itself. A route adds what its path does not say with ``add_audit_detail``.
"""

from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolyard.engine.audit import Audit
from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_text
from toolyard.web.security.principal import PRINCIPAL, Principal

_DETAIL: Final = "toolyard.audit_detail"  # key of the ASGI scope


class AuditedRoute(NamedTuple):
    action: str
    plugin: str = ""  # the path parameter with the name of a plugin
    only_with_detail: bool = False  # the route says whether anything was done


AUDITED: Final = {
    ("POST", "/login"): AuditedRoute("session.signed_in", only_with_detail=True),
    ("POST", "/v1/login-links"): AuditedRoute("session.link_created"),
    ("POST", "/logout"): AuditedRoute("session.signed_out"),
    ("POST", "/v1/keys"): AuditedRoute("key.created"),
    ("DELETE", "/v1/keys/{id}"): AuditedRoute("key.revoked"),
    ("PUT", "/v1/settings"): AuditedRoute("settings.changed", only_with_detail=True),
    ("PATCH", "/v1/settings"): AuditedRoute("settings.changed", only_with_detail=True),
    ("POST", "/v1/plugins/install/{staged}/allow"): AuditedRoute("plugin.installed"),
    ("POST", "/v1/plugins/{name}/allow"): AuditedRoute("plugin.allowed", "name"),
    ("POST", "/v1/plugins/{name}/enable"): AuditedRoute("plugin.enabled", "name"),
    ("POST", "/v1/plugins/{name}/disable"): AuditedRoute("plugin.disabled", "name"),
    ("PUT", "/v1/plugins/{name}/config"): AuditedRoute("plugin.configured", "name"),
    ("DELETE", "/v1/plugins/{name}"): AuditedRoute("plugin.removed", "name"),
    ("POST", "/v1/mcp/servers"): AuditedRoute("mcp_server.added"),
    ("POST", "/v1/mcp/servers/{name}/allow"): AuditedRoute("mcp_server.allowed", "name"),
    ("POST", "/v1/mcp/servers/{name}/enable"): AuditedRoute("mcp_server.enabled", "name"),
    ("POST", "/v1/mcp/servers/{name}/disable"): AuditedRoute("mcp_server.disabled", "name"),
    ("DELETE", "/v1/mcp/servers/{name}"): AuditedRoute("mcp_server.removed", "name"),
    ("GET", "/v1/approvals/{id}/arguments"): AuditedRoute("approval.revealed"),
    ("POST", "/v1/schedules"): AuditedRoute("schedule.created"),
    ("POST", "/v1/schedule_task"): AuditedRoute("schedule.created", only_with_detail=True),
    ("PUT", "/v1/schedules/{id}"): AuditedRoute("schedule.changed"),
    ("POST", "/v1/schedules/{id}/allow"): AuditedRoute("schedule.allowed"),
    ("POST", "/v1/schedules/{id}/run"): AuditedRoute("schedule.run"),
    ("POST", "/v1/schedules/{id}/resume"): AuditedRoute("schedule.resumed"),
    ("POST", "/v1/schedules/{id}/pause"): AuditedRoute("schedule.paused"),
    ("POST", "/v1/schedules/{id}/cancel"): AuditedRoute("schedule.cancelled"),
    ("POST", "/v1/backup"): AuditedRoute("backup.downloaded"),
    ("POST", "/v1/backup/restore/{staged}/confirm"): AuditedRoute("restore.confirmed"),
    ("DELETE", "/v1/backup/restore"): AuditedRoute("restore.cancelled"),
}


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
        audited = AUDITED.get((scope["method"], getattr(scope.get("route"), "path", "")))
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
