"""Every limit of a server, by name, for ``/readyz?verbose``."""

from toolyard.config import Config
from toolyard.engine.approvals import ANSWER_S
from toolyard.engine.schedules import GRACE_S as SCHEDULE_GRACE_S
from toolyard.engine.tasks import MAX_EXPECTED
from toolyard.gateway import memory, sse
from toolyard.gateway.providers import answer as provider_answer
from toolyard.gateway.providers import forwarding, upstream
from toolyard.gateway.turn import MAX_ROUNDS
from toolyard.plugins import call_queue, children, stderr
from toolyard.plugins.asynchronous import CALLBACK_GRACE_S, MAX_CHILDREN, RECEIPT_S
from toolyard.plugins.plugin_host import QUEUE_S
from toolyard.protocol import markers
from toolyard.protocol.call import MAX_ARGUMENTS
from toolyard.protocol.json import MAX_DEPTH, JsonObject
from toolyard.protocol.manifest import Limits, PluginType
from toolyard.protocol.manifests.manifest_parser import DEFAULT_TIMEOUT_S, TIMEOUTS_S
from toolyard.protocol.replies import values
from toolyard.storage import media
from toolyard.tools.search_report import TIME_CAP_S
from toolyard.web import connection, drain, feed, listener, logs, websocket_client
from toolyard.web.security import access, attempt_limiter, keys, request_body, sessions
from toolyard.workspace.text_reader import SMALL_FILE


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
        "drain_seconds": drain.GRACE_S,
        "failures_per_address": attempt_limiter.MAX_PER_ADDRESS,
        "failures_of_all": attempt_limiter.MAX_TOTAL,
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
        "plugin_stderr_bytes": stderr.HEAD + stderr.TAIL,
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
        "media_bytes": media.MAX_BYTES,
        "media_files": media.MAX_FILES,
        "media_of_all_bytes": media.MAX_TOTAL,
        "media_seconds": media.KEPT.total_seconds(),
        "remembered_turns": memory.MAX_TURNS,
        "remembered_turn_bytes": memory.MAX_TURN,
        "remembered_of_all_bytes": memory.MAX_TOTAL,
        "remembered_request_bytes": memory.MAX_ADDED,
        "remembered_seconds": memory.KEPT_S,
        "tool_rounds": MAX_ROUNDS,
        "provider_event_bytes": sse.MAX_EVENT,
        "provider_answer_bytes": provider_answer.MAX_UNSTREAMED,
        "provider_list_bytes": upstream.MAX_LIST,
        "forwarded_answer_bytes": forwarding.MAX_ANSWER,
        "model_text_characters": markers.MAX_CHARS,
        "reply_attachments": values.MAX_ATTACHMENTS,
        "reply_attachment_bytes": values.MAX_ATTACHMENT_BYTES,
        "search_seconds": TIME_CAP_S,
        "whole_file_bytes": SMALL_FILE,
    }
