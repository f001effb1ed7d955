"""``/healthz``, ``/readyz`` and ``/metrics``: liveness, readiness with every limit by its name, and metrics."""

from http import HTTPStatus

from fastapi import Request, Response
from pydantic import BaseModel

from toolyard.config import Config
from toolyard.engine.approvals import ANSWER_S
from toolyard.engine.background.schedules import GRACE_S as SCHEDULE_GRACE_S
from toolyard.engine.background.tasks import MAX_EXPECTED
from toolyard.engine.clock import Clock
from toolyard.gateway import sse
from toolyard.gateway.providers import answer as provider_answer
from toolyard.gateway.providers import forwarded_answer, upstream
from toolyard.gateway.turns import turn_memory
from toolyard.gateway.turns.dialogue import MAX_ROUNDS
from toolyard.plugins import call_queue
from toolyard.plugins.long_work.asynchronous import CALLBACK_GRACE_S, MAX_CHILDREN, RECEIPT_S
from toolyard.plugins.plugin_host import QUEUE_S
from toolyard.plugins.process import children, process_output
from toolyard.protocol.json import MAX_DEPTH, JsonObject
from toolyard.protocol.manifests.manifest import Limits, PluginType
from toolyard.protocol.manifests.manifest_parser import DEFAULT_TIMEOUT_S, TIMEOUTS_S
from toolyard.protocol.replies import reply_values
from toolyard.protocol.requests import scanner
from toolyard.protocol.tool import MAX_ARGUMENTS
from toolyard.storage import media_store
from toolyard.tools.search_report import TIME_CAP_S
from toolyard.web import feed
from toolyard.web.answers import json_response
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import Readiness as ReadinessBody
from toolyard.web.security import access, keys, request_body, sessions
from toolyard.web.security.scope import PUBLIC, Scope
from toolyard.web.server import connection, listener, logs, websocket_client
from toolyard.web.server.health import GRACE_S, Drain, Readiness
from toolyard.web.server.metrics import Metrics
from toolyard.workspace.text_reader import SMALL_FILE
from toolyard.yard.yard import Yard


class Health(BaseModel):
    status: str
    version: str


_OPEN: JsonObject = {"security": []}
_TEXT: JsonObject = {"text/plain": {"schema": {"type": "string"}}}


def router(yard: Yard, drain: Drain, metrics: Metrics, version: str, clock: Clock) -> Routes:
    routes = Routes(tag="health", scope=PUBLIC)
    readiness = Readiness(yard.state.store, drain, clock)

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", Health, openapi_extra=_OPEN)
    async def healthz() -> Response:
        """Return 200 while the server is alive."""
        return json_response({"status": "ok", "version": version})

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", ReadinessBody, responses={503: {"model": ReadinessBody}}, openapi_extra=_OPEN)
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
        "/metrics",
        scope=Scope.ADMIN,
        responses={200: {"description": "For Prometheus.", "content": _TEXT}},
        response_class=Response,
    )
    async def show_metrics() -> Response:
        """Return counters and gauges in Prometheus text format."""
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")

    return routes


def list_limits(config: Config) -> JsonObject:
    """Return the limits: bytes, seconds and counts, as their names say."""
    plugin = Limits()
    return {
        "body_bytes": request_body.MAX_BODY,
        "chat_body_bytes": request_body.MAX_CHAT,
        "backup_body_bytes": request_body.MAX_BACKUP,
        "callback_body_bytes": request_body.MAX_CALLBACK,
        "body_seconds": request_body.BODY_S,
        "head_bytes": connection.MAX_HEAD,
        "head_seconds": connection.HEAD_S,
        "idle_connection_seconds": listener.IDLE_S,
        "json_depth": MAX_DEPTH,
        "arguments_bytes": MAX_ARGUMENTS,
        "approval_seconds": ANSWER_S,
        "drain_seconds": GRACE_S,
        "failures_per_address": access.MAX_PER_ADDRESS,
        "failures_of_all": access.MAX_TOTAL,
        "session_seconds": sessions.SESSION_S,
        "ticket_seconds": access.TICKET_S,
        "login_link_seconds": access.LINK_S,
        "keys": keys.MAX_KEYS,
        "websocket_messages": feed.MAX_EVENTS,
        "websocket_bytes": feed.MAX_BYTES,
        "websocket_message_bytes": websocket_client.MAX_MESSAGE,
        "websocket_messages_per_second": websocket_client.RATE,
        "websocket_ping_seconds": websocket_client.PING_S,
        "log_lines": logs.MAX_LINES,
        "plugins_at_once": config.settings.plugins_at_once,
        "calls_per_plugin_at_once": call_queue.AT_ONCE_PER_PLUGIN,
        "calls_waiting": call_queue.MAX_WAITING,
        "plugin_queue_seconds": QUEUE_S,
        "plugin_stdout_bytes": plugin.stdout_bytes,
        "plugin_memory_bytes": config.settings.plugin_memory_mib * 2**20,
        "plugin_cpu_seconds": config.settings.plugin_cpu_minutes * 60,
        "plugin_file_bytes": config.settings.plugin_file_mib * 2**20,
        "plugin_stderr_bytes": process_output.HEAD + process_output.TAIL,
        "plugin_seconds": DEFAULT_TIMEOUT_S,
        "asynchronous_plugin_seconds": TIMEOUTS_S[PluginType.ASYNCHRONOUS],
        "plugin_kill_seconds": children.GRACE_S,
        "plugin_receipt_seconds": RECEIPT_S,
        "plugin_callback_grace_seconds": CALLBACK_GRACE_S,
        "plugin_children": MAX_CHILDREN,
        "tasks_expected": MAX_EXPECTED,
        "schedule_grace_seconds": SCHEDULE_GRACE_S,
        "kept_seconds": config.settings.history_days * 86_400.0,
        "kept_bytes": config.settings.history_mib * 2**20,
        "media_bytes": media_store.MAX_BYTES,
        "media_files": media_store.MAX_FILES,
        "media_of_all_bytes": media_store.MAX_TOTAL,
        "media_seconds": media_store.KEPT.total_seconds(),
        "remembered_turns": turn_memory.MAX_TURNS,
        "remembered_turn_bytes": turn_memory.MAX_TURN,
        "remembered_of_all_bytes": turn_memory.MAX_TOTAL,
        "remembered_request_bytes": turn_memory.MAX_ADDED,
        "remembered_seconds": turn_memory.KEPT_S,
        "tool_rounds": MAX_ROUNDS,
        "provider_event_bytes": sse.MAX_EVENT,
        "provider_answer_bytes": provider_answer.MAX_UNSTREAMED,
        "provider_list_bytes": upstream.MAX_LIST,
        "forwarded_answer_bytes": forwarded_answer.MAX_ANSWER,
        "model_text_characters": scanner.MAX_CHARS,
        "reply_attachments": reply_values.MAX_ATTACHMENTS,
        "reply_attachment_bytes": reply_values.MAX_ATTACHMENT_BYTES,
        "search_seconds": TIME_CAP_S,
        "whole_file_bytes": SMALL_FILE,
    }
