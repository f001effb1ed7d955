"""``/v1/audit``: who allowed or changed what, when and from where, and the confinement of each run."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from toolyard.engine.audit import AuditFilter
from toolyard.protocol.audit import AuditEntry
from toolyard.web.responses import After, Limit, page_response
from toolyard.web.schemas.records import AuditPage
from toolyard.yard.yard import Yard

_Name = Annotated[str | None, Query(max_length=200)]


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/audit", tags=["audit"])

    @routes.get("", responses={200: {"model": AuditPage}})
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
        entries = await yard.audit.page(filter_, limit=limit, after=after)
        return page_response(entries, limit, AuditEntry.to_json, lambda entry: entry.place)

    return routes
