"""``/healthz``, ``/readyz`` and ``/metrics``: liveness, readiness and metrics."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from toolyard.engine.clock import Clock
from toolyard.protocol.json import JsonObject
from toolyard.web.drain import Drain
from toolyard.web.limits import list_limits
from toolyard.web.metrics import Metrics
from toolyard.web.readiness import Readiness
from toolyard.web.responses import json_response
from toolyard.web.schemas.common import Health
from toolyard.web.schemas.common import Readiness as ReadinessBody
from toolyard.yard.yard import Yard

_OPEN: JsonObject = {"security": []}
_TEXT: JsonObject = {"text/plain": {"schema": {"type": "string"}}}


def router(yard: Yard, drain: Drain, metrics: Metrics, version: str, clock: Clock) -> APIRouter:
    routes = APIRouter(tags=["health"])
    readiness = Readiness(yard.store, drain, clock)

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", responses={200: {"model": Health}}, openapi_extra=_OPEN)
    async def healthz() -> Response:
        """Return 200 while the server is alive."""
        return json_response({"status": "ok", "version": version})

    @routes.head("/readyz", include_in_schema=False)
    @routes.get(
        "/readyz", responses={200: {"model": ReadinessBody}, 503: {"model": ReadinessBody}}, openapi_extra=_OPEN
    )
    async def readyz(request: Request) -> Response:
        """Return 200 when the server accepts work, else 503; `?verbose` adds every limit."""
        problem = await readiness.find_problem()
        body: JsonObject = {"status": problem or "ready"}
        if "verbose" in request.query_params:
            body |= {"limits": list_limits(yard.config), "running": drain.running_count}
        if problem:
            return json_response(body, HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "5"})
        return json_response(body)

    @routes.get(
        "/metrics", response_class=Response, responses={200: {"description": "For Prometheus.", "content": _TEXT}}
    )
    async def show_metrics() -> Response:
        """Return counters and gauges in Prometheus text format."""
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")

    return routes
