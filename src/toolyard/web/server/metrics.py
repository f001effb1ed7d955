"""Prometheus metrics of one server, in a registry of its own."""

from collections.abc import Callable
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_MOST_ROUTES = 1000  # cached children


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "toolyard_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "toolyard_request_seconds", "How long requests took.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self._callbacks = Counter(
            "toolyard_callbacks_refused", "Callbacks that were not taken.", ["status"], registry=self._registry
        )

        self._cached_children = lru_cache(_MOST_ROUTES)(self._find_children)

    def add_gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge whose value is read at each scrape."""
        Gauge(name, about, registry=self._registry).set_function(value)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        counted, timed = self._cached_children(method, route, status)
        counted.inc()
        timed.observe(seconds)

    def count_refused_callback(self, status: int) -> None:
        self._callbacks.labels(str(status)).inc()

    def _find_children(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, str(status)), self._seconds.labels(route)

    def render(self) -> bytes:
        return generate_latest(self._registry)
