"""Every limit on the page of limits: the sections and rows of ``docs/limits.md``, with the numbers of the code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolyard.engine import retention, rules
from toolyard.engine.background import schedules
from toolyard.engine.background.schedule_time import MAX_PREVIEWED
from toolyard.engine.chats import assistants, conversations, idempotency, responses
from toolyard.engine.history import audit
from toolyard.gateway import chats, offer
from toolyard.gateway.protocols.responses import response_turns
from toolyard.gateway.providers.answer import Limits as ProviderLimits
from toolyard.gateway.reply import streamed_reply
from toolyard.gateway.tool_calls import jobs, native_calls
from toolyard.gateway.turns import turn_log
from toolyard.hosts import directory, lease
from toolyard.hosts.host import DRAIN_S as HOST_DRAIN_S
from toolyard.plugins.long_work import asynchronous
from toolyard.plugins.mcp import definition, mcp_tool, server_health, server_start
from toolyard.plugins.package import discovery, fingerprint, trust
from toolyard.plugins.process import process_output
from toolyard.protocol import envelope, json, result_limits
from toolyard.protocol.manifests import manifest_parser
from toolyard.protocol.manifests.manifest import Limits
from toolyard.protocol.replies import reply_values
from toolyard.protocol.requests import scanner
from toolyard.settings import Settings
from toolyard.storage import backup_archive
from toolyard.tools import grep, ls, project_files, validation, web_fetch
from toolyard.vcp.nodes import node, node_files, nodes
from toolyard.web import idempotency as idempotency_keys
from toolyard.web.routes.chat import responses_socket
from toolyard.web.routes.plugins import nodes as node_routes
from toolyard.web.security import keys, sessions
from toolyard.web.server import health, listener
from toolyard.workspace import document, folder_listing, safe_fetch
from toolyard.workspace.changes import trash, undo_records

_UNITS: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_TIMES: Final = (("days", 86_400, 86_401), ("h", 3600, 3600), ("min", 60, 61))  # unit, seconds, used from here on


@dataclass(frozen=True, slots=True)
class Row:
    """One limit: the words of the page, and the number as the page has it."""

    label: str
    value: str


def _bytes(number: float) -> str:
    name, size = next(((name, size) for name, size in _UNITS if number >= size and number % size == 0), ("bytes", 1))
    return f"{int(number) // size:,} {name}"


def _seconds(number: float) -> str:
    fitting = ((name, size) for name, size, least in _TIMES if number >= least and number % size == 0)
    name, size = next(fitting, ("s", 1))
    return f"{number / size:g} {name}"


def _count(number: float) -> str:
    return f"{number:,}"


def list_rows(server: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the sections of the page; ``server`` has the limits as ``/readyz?verbose`` shows them."""
    plugin, provider, settings = Limits(), ProviderLimits(), Settings()
    return {
        "Calls and results": [
            Row("arguments of a call", _bytes(server["arguments_bytes"])),
            Row("result that a model sees: lines", _count(result_limits.MAX_LINES)),
            Row("result that a model sees: size", _bytes(result_limits.MAX_BYTES)),
            Row("result of a tool that pages by itself", _bytes(result_limits.HARD_CAP_BYTES)),
            Row("one line of a file that `Read` shows, in characters", _count(result_limits.MAX_LINE_CHARS)),
            Row("time to answer an approval", _seconds(server["approval_seconds"])),
            Row("rules of approvals", _count(rules.MAX_RULES)),
            Row("rules for single chats", _count(rules.MAX_FOR_CHATS)),
            Row("command that a rule is about, in characters", _count(rules.MAX_RULE_COMMAND)),
            Row("nesting of JSON", _count(server["json_depth"])),
            Row("values in the JSON of a request", _count(json.MAX_VALUES)),
        ],
        "Files and web pages": [
            Row("text file that can be changed", _bytes(document.MAX_BYTES)),
            Row("file that is read whole: media, PDF, notebooks", _bytes(server["whole_file_bytes"])),
            Row("file that is checked after a write", _bytes(validation.MAX_BYTES)),
            Row("depth of `LS`", _count(ls.MAX_DEPTH)),
            Row("entries that one `LS` looks at", _count(ls.MAX_SEEN)),
            Row("entries of a folder that the console shows", _count(folder_listing.MAX_ENTRIES)),
            Row("pattern of `Grep`, in characters", _count(grep.MAX_PATTERN)),
            Row("context lines of `Grep`", _count(grep.MAX_CONTEXT)),
            Row("time of a search", _seconds(server["search_seconds"])),
            Row("download of `WebFetch`", _bytes(safe_fetch.MAX_FETCH_BYTES)),
            Row("time of `WebFetch`", _seconds(safe_fetch.MAX_FETCH_S)),
            Row("redirects of `WebFetch`", _count(safe_fetch.MAX_REDIRECTS)),
            Row("characters that one `WebFetch` returns", _count(web_fetch.MAX_LIMIT)),
            Row("undo data of one call", _bytes(undo_records.MAX_BYTES)),
            Row("undo data in total", _bytes(undo_records.MAX_TOTAL)),
            Row("undo data is kept for", _seconds(undo_records.RETENTION.total_seconds())),
            Row("trash is kept for", _seconds(trash.RETENTION.total_seconds())),
        ],
        "Plugins": [
            Row("plugin calls at the same time", _count(server["plugins_at_once"])),
            Row("calls of one plugin at the same time", _count(server["calls_per_plugin_at_once"])),
            Row("calls that wait for their turn", _count(server["calls_waiting"])),
            Row("time that a call waits for its turn", _seconds(server["plugin_queue_seconds"])),
            Row("time of a call", _seconds(server["plugin_seconds"])),
            Row("time of an asynchronous task", _seconds(server["asynchronous_plugin_seconds"])),
            Row("longest time that a manifest may ask for", _seconds(manifest_parser.MAX_TIMEOUT_S)),
            Row("from SIGTERM to SIGKILL", _seconds(server["plugin_kill_seconds"])),
            Row("receipt of an asynchronous plugin", _seconds(server["plugin_receipt_seconds"])),
            Row("late callback after the process has ended", _seconds(server["plugin_callback_grace_seconds"])),
            Row("body of a callback", _bytes(server["callback_body_bytes"])),
            Row("processes of asynchronous plugins", _count(server["plugin_children"])),
            Row("tasks that wait for a callback", _count(server["tasks_expected"])),
            Row("background work after an answer, if allowed", _seconds(manifest_parser.DETACHED_TIMEOUT_S)),
            Row("background tasks at the same time", _count(asynchronous.MAX_BACKGROUND_TASKS)),
            Row("stdout of a call", _bytes(server["plugin_stdout_bytes"])),
            Row("stderr that is kept of a call", _bytes(server["plugin_stderr_bytes"])),
            Row("open files of a plugin", _count(plugin.open_files)),
            Row("memory of a process of a plugin or MCP server", _bytes(server["plugin_memory_bytes"])),
            Row("processor time of a process of a plugin", _seconds(server["plugin_cpu_seconds"])),
            Row("file that a plugin or MCP server writes", _bytes(server["plugin_file_bytes"])),
            Row("processes of a plugin", _count(plugin.processes)),
            Row("progress reports of a call", _count(process_output.MAX_REPORTS)),
            Row("payload of a special action in events and records", _bytes(envelope.MAX_PAYLOAD)),
            Row("plugins in one folder", _count(discovery.MAX_FOLDERS)),
            Row("code files of a plugin that can be reviewed", _count(fingerprint.MAX_FILES)),
            Row("code of a plugin that can be reviewed", _bytes(fingerprint.MAX_BYTES)),
            Row("files of a plugin that are kept to show what an update changes", _count(trust.MAX_FILES)),
            Row("one of these files", _bytes(trust.MAX_FILE_BYTES)),
            Row("all of these files", _bytes(trust.MAX_BYTES)),
        ],
        "MCP servers": [
            Row("time of a call", _seconds(mcp_tool.TIMEOUT_S)),
            Row("response", _bytes(server_start.MAX_LINE)),
            Row("tools of one server", _count(definition.MAX_TOOLS)),
            Row("crashes within a minute after which it stays down", _count(server_health.MAX_CRASHES)),
        ],
        "Chats and models": [
            Row("rounds of tool calls in one reply", _count(server["tool_rounds"])),
            Row("tool calls in one round", _count(native_calls.MAX_CALLS)),
            Row("tool calls of a round at the same time", _count(jobs.AT_ONCE)),
            Row("tools offered to a model", _count(offer.MAX_TOOLS)),
            Row("tokens of the offer", _count(offer.MAX_TOKENS)),
            Row("reply in which requests are looked for, in characters", _count(server["model_text_characters"])),
            Row("requests in the text of one reply", _count(scanner.MAX_CALLS)),
            Row("requests in the text of one reply that are read", _count(scanner.MAX_REQUESTS)),
            Row("connection to a provider", _seconds(provider.connect_s)),
            Row("first byte of a provider", _seconds(provider.first_byte_s)),
            Row("silence in a provider's stream", _seconds(provider.idle_s)),
            Row("whole answer of a provider that does not stream", _seconds(provider.whole_s)),
            Row("attempts at a provider", _count(provider.tries)),
            Row("one event of a provider's stream", _bytes(server["provider_event_bytes"])),
            Row("events of one streamed reply", _count(streamed_reply.MAX_EVENTS)),
            Row("text of one streamed reply", _bytes(streamed_reply.MAX_TEXT)),
            Row(
                "text, reasoning and arguments of one streamed answer, over all rounds",
                _bytes(streamed_reply.MAX_KEPT),
            ),
            Row("size of an answer that is not streamed", _bytes(server["provider_answer_bytes"])),
            Row("list of models of a provider", _bytes(server["provider_list_bytes"])),
            Row("forwarded answer: images, audio, embeddings", _bytes(server["forwarded_answer_bytes"])),
            Row("a chat that nobody follows ends after", _seconds(settings.chat_unfollowed_minutes * 60)),
            Row("an approval in a chat without a stream holds the answer for", _seconds(chats.APPROVAL_WAIT_S)),
            Row("replies that can be resumed", _count(turn_log.MAX_LOGS)),
            Row("one reply that can be resumed", _bytes(turn_log.MAX_LOG)),
            Row("replies that can be resumed, in total", _bytes(turn_log.MAX_KEPT)),
            Row("remembered tool results of one turn", _bytes(server["remembered_turn_bytes"])),
            Row("remembered turns", _count(server["remembered_turns"])),
            Row("remembered tool results in total", _bytes(server["remembered_of_all_bytes"])),
            Row("remembered tool results added to one request", _bytes(server["remembered_request_bytes"])),
            Row("tool results are remembered for", _seconds(server["remembered_seconds"])),
            Row("stored conversation", _bytes(conversations.MAX_BYTES)),
            Row("stored response", _bytes(responses.MAX_STORED)),
            Row("stored responses that follow one another", _count(responses.MAX_CHAIN)),
            Row("their items", _bytes(responses.MAX_HISTORY)),
            Row("responses in the background at the same time", _count(response_turns.MAX_BACKGROUND)),
            Row("stored conversations of one key", _count(conversations.MAX_PER_CALLER)),
            Row(
                "characters of a conversation that a search looks at, the newest",
                _count(conversations.MAX_SEARCHED),
            ),
            Row("assistants of one key", _count(assistants.MAX_PER_CALLER)),
            Row("text of a file attached to a message, in characters", _count(project_files.MAX_CHARACTERS)),
            Row("PDF or image attached to a message", _bytes(project_files.MAX_FILE)),
            Row("structured reply", _bytes(reply_values.MAX_BYTES)),
            Row("attachments of a structured reply", _count(server["reply_attachments"])),
            Row("one attachment", _bytes(server["reply_attachment_bytes"])),
        ],
        "HTTP and WebSocket": [
            Row("body of a request", _bytes(server["body_bytes"])),
            Row("body of a request to a model", _bytes(server["chat_body_bytes"])),
            Row("backup that is uploaded", _bytes(server["backup_body_bytes"])),
            Row("time for a body to arrive", _seconds(server["body_seconds"])),
            Row("head of a request", _bytes(server["head_bytes"])),
            Row("time for a head to arrive", _seconds(server["head_seconds"])),
            Row("an idle connection is closed after", _seconds(server["idle_connection_seconds"])),
            Row("open files that the server asks the system for", _count(listener.MAX_OPEN_FILES)),
            Row("requests with an `Idempotency-Key` at the same time", _count(idempotency_keys.MAX_RUNS)),
            Row("an `Idempotency-Key` is remembered for", _seconds(idempotency.KEPT_S)),
            Row("response stored for an `Idempotency-Key`", _bytes(idempotency.MAX_RESPONSE)),
            Row("events that wait for a slow WebSocket", _count(server["websocket_messages"])),
            Row("size of these events", _bytes(server["websocket_bytes"])),
            Row("message of a WebSocket client", _bytes(server["websocket_message_bytes"])),
            Row("the same, at `/v1/responses`", _bytes(server["chat_body_bytes"])),
            Row("requests of Responses that wait on a WebSocket", _count(responses_socket.MAX_WAITING)),
            Row("messages of a WebSocket client in a second", _count(server["websocket_messages_per_second"])),
            Row("nodes", _count(nodes.MAX_NODES)),
            Row("message of a node", _bytes(node_routes.MAX_MESSAGE)),
            Row("message to a node", _bytes(node.MAX_SENT)),
            Row("messages of a node in a second that nobody waits for", _count(node_routes.RATE)),
            Row("messages that wait until a node takes them", _count(node.MAX_UNSENT)),
            Row("calls in a node at the same time", _count(node.AT_ONCE)),
            Row("tools of a node", _count(node.MAX_TOOLS)),
            Row("placeholders of a node", _count(node.MAX_PLACEHOLDERS)),
            Row("value of one, in characters", _count(node.MAX_VALUE)),
            Row("copies of files of nodes", _bytes(node_files.MAX_CACHE)),
            Row("ping of a WebSocket", _seconds(server["websocket_ping_seconds"])),
            Row("log lines that wait to be written", _count(server["log_lines"])),
            Row("running work at shutdown has", _seconds(server["drain_seconds"])),
        ],
        "Keys and sessions": [
            Row("keys of a server", _count(server["keys"])),
            Row("length of a key that other machines may use, in characters", _count(keys.MIN_REMOTE_LENGTH)),
            Row("failed attempts of one address before it has to wait", _count(server["failures_per_address"])),
            Row("failed attempts of all addresses before all have to wait", _count(server["failures_of_all"])),
            Row("a session of a browser lasts", _seconds(server["session_seconds"])),
            Row("sessions of one key", _count(sessions.MAX_PER_KEY)),
            Row("a sign-in link is valid for", _seconds(server["login_link_seconds"])),
            Row("a WebSocket ticket is valid for", _seconds(server["ticket_seconds"])),
        ],
        "History and schedules": [
            Row("finished calls, results, tasks and approvals are kept for", _seconds(server["kept_seconds"])),
            Row("size of the state above which the oldest go earlier", _bytes(server["kept_bytes"])),
            Row("events are kept for", _seconds(retention.EVENTS_S)),
            Row("the audit trail is kept for", _seconds(audit.AUDIT_S)),
            Row("media file", _bytes(server["media_bytes"])),
            Row("media files", _count(server["media_files"])),
            Row("media files in total", _bytes(server["media_of_all_bytes"])),
            Row("media files are kept for", _seconds(server["media_seconds"])),
            Row("files in a backup", _count(backup_archive.MAX_FILES)),
            Row("content of a backup", _bytes(backup_archive.MAX_BYTES)),
            Row("state that is checked before the server starts", _bytes(health.MAX_QUICK_BYTES)),
            Row("the whole state is checked every", _seconds(health.INTERVAL_S)),
            Row("a schedule counts as late after", _seconds(schedules.LATE_S)),
            Row("a late schedule still runs within", _seconds(server["schedule_grace_seconds"])),
            Row("times of a schedule that are previewed", _count(MAX_PREVIEWED)),
        ],
        "Many hosts": [
            Row("hosts on one database", _count(directory.MAX_HOSTS)),
            Row("a host that is silent counts as dead after", _seconds(lease.LEASE_S)),
            Row("heartbeat of a host", _seconds(lease.HEARTBEAT_S)),
            Row("calls of a host that stops have", _seconds(HOST_DRAIN_S)),
        ],
    }
