"""``/healthz``, ``/readyz`` and ``/metrics``: whether the server lives, whether it takes work, and how it is doing."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.engine.clock import Clock
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import answer
from toolyard.web.drain import Drain
from toolyard.web.limits import limits_of
from toolyard.web.metrics import Metrics
from toolyard.web.readiness import Readiness
from toolyard.web.shapes import Health

_OPEN: JsonObject = {"security": []}
_TEXT: JsonObject = {"text/plain": {"schema": {"type": "string"}}}


def router(yard: Yard, drain: Drain, metrics: Metrics, version: str, clock: Clock) -> APIRouter:
    routes = APIRouter(tags=["health"])
    readiness = Readiness(yard.store, drain, clock)

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", responses={200: {"model": Health}}, openapi_extra=_OPEN)
    async def healthz() -> Response:
        """That the server lives."""
        return answer({"status": "ok", "version": version})

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", responses={200: {"model": Health}, 503: {"model": Health}}, openapi_extra=_OPEN)
    async def readyz(request: Request) -> Response:
        """Whether it takes work; with `?verbose` every limit too."""
        problem = await readiness.problem()
        told: JsonObject = {"status": problem or "ready"}
        if "verbose" in request.query_params:
            told |= {"limits": limits_of(yard.config), "running": drain.running}
        if problem:
            return answer(told, HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "5"})
        return answer(told)

    @routes.get("/metrics", responses={200: {"description": "For Prometheus.", "content": _TEXT}})
    async def show_metrics() -> Response:
        """Counters and gauges in the text format of Prometheus."""
        return Response(metrics.page(), media_type="text/plain; version=0.0.4")

    return routes
