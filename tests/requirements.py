"""Every requirement of Toolyard: where it comes from, what must be observable, what it waits for.

A test names the requirement it proves with ``@pytest.mark.requirement("id")``; ``test_requirements.py`` fails when a
requirement that waits for nothing has no test, when a test names none or an unknown one, and when a requirement that
waits already has a test.

A source is a section of one of the five founding documents, ``000`` to ``004``, or a section of a page in ``docs/``,
as ``tools.md#ls``; ``test_requirements.py`` fails when that page or its heading is not there. Where a founding document
and a page differ, the behaviour is the page's and both are cited. Within an area the numbered rows stand last: the
guarantees (``p:``) and faults (``r:``) of ``docs/reliability.md``, and attacks (``s:``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Area(Enum):
    """What a later requirement waits for."""

    PLUGINS = "plugins: manifests, configuration, child processes and trust"
    ENGINE = "durable state: tasks, callbacks, schedules, approvals, journal, events and many hosts"
    GATEWAY = "the server: HTTP, WebSocket, chat, upstream and keys"
    INTEROP = "other systems: MCP, the backend stream and import from VCPToolBox"
    CONSOLE = "the web console"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One observable behaviour, the place that asks for it, and the area it waits for, if any."""

    id: str
    source: str
    behaviour: str
    waits_for: Area | None = None


Row = tuple[str, str, str]
Table = tuple[Requirement, ...]


def _now(*rows: Row) -> Table:
    return tuple(Requirement(*row) for row in rows)


def _later(area: Area, *rows: Row) -> Table:
    return tuple(Requirement(*row, waits_for=area) for row in rows)


def _by_id(*tables: Table) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for table in tables:
        for requirement in table:
            if requirement.id in found:
                raise ValueError(f"two requirements are called {requirement.id}")
            found[requirement.id] = requirement
    return found


# The formatter would give each row six lines: by hand, id and source stand on one and the behaviour below.
# fmt: off

# --- Values, the runner and the first tools ---

ENVELOPE: Final = _now(
    ("envelope:keys", "002 §1, envelope.md#keys",
     ("An envelope in JSON has the keys status, data, text, error, stats and context in this order, and one with any "
      "other top-level key is refused.")),
    ("envelope:error:written", "002 §1, 002 §5, envelope.md#keys",
     "The key error is written only when status is error, and null is accepted when an envelope is read."),
    ("envelope:error:shape", "002 §1, 002 §3.3",
     ("An error is an object with a code of the closed set and a message, and an envelope of status error cannot be "
      "built without one.")),
    ("envelope:error:strict", "002 §1, envelope.md#error-codes",
     ("The error of an envelope has code and message and nothing else, in every dialect and also when an earlier "
      "version stored it; programs that ask for them get the codes of sentences in the context, a model never does.")),
    ("envelope:data-object", "002 §1, envelope.md#keys",
     "data is always an object: null, a list or a scalar is refused when the envelope is built or read."),
    ("envelope:status:closed", "002 §1, envelope.md#keys",
     "status is success, partial or error, and any other word is refused."),
    ("envelope:status:success", "002 §3.1",
     ("An envelope of status success cannot be built with data.truncated true, data.fallback, data.failed_items, "
      "data.applied false or an error.")),
    ("envelope:status:truncated", "002 §2, 002 §3.2",
     ("A result cut by a limit is partial with data.truncated true, and its text says why it was cut and what to do "
      "next.")),
    ("envelope:status:fallback", "002 §3.2, envelope.md#status",
     ("A complete result obtained by a slower path is partial with data.fallback naming that path, and its text says "
      "so.")),
    ("envelope:status:dry-run", "002 §3.2, envelope.md#status",
     "A dry run is partial with data.applied false, and its text says that nothing was written."),
    ("envelope:text", "002 §4, envelope.md#keys",
     ("text says what was done and how it ended, then why it is partial when it is, then what to do next when it is "
      "partial or an error.")),
    ("envelope:stats:time", "002 §1, envelope.md#stats",
     "stats.time_ms is always present and is a finite number of at least 0."),
    ("envelope:stats:values", "002 §1, envelope.md#keys",
     "Every value in stats is a number or a string, and anything else is refused."),
    ("envelope:context:cwd", "002 §1.1, envelope.md#context",
     ('context.cwd is always present: the folder in which the tool ran, relative to the project root. That is "." for '
      "built-in tools, its own folder for a plugin in the project, and what a plugin's own answer says, as Shell's.")),
    ("envelope:context:params-input", "002 §1, envelope.md#context",
     "context.params_input is exactly what the caller sent, with its own names, order and types."),
    ("envelope:context:params-masked", "envelope.md#context",
     "A secret inside context.params_input reads [masked]."),
    ("envelope:context:params-cut", "envelope.md#full-and-shown",
     ("A string over 4 KiB in context.params_input is cut with a marker in the shown envelope and stays whole in the "
      "full one.")),
    ("envelope:context:path-resolved", "002 §1, envelope.md#context",
     ("context.path_resolved is the resolved POSIX path relative to the project root, in every result and every "
      "failure that concerns a path, except one that leads outside.")),
    ("envelope:context:reason", "envelope.md#reasons",
     "A finer cause than the code stands in context.reason in upper snake case."),
    ("envelope:data-paths", "002 §2, envelope.md#context",
     "Every path in data is POSIX and relative to the project root."),
    ("envelope:beside", "dialects.md#dialects, dialects.md#special-actions",
     ("The bytes of parts, the action and the payload travel beside the envelope in memory and never appear in its "
      "JSON.")),
    ("envelope:round-trip", "002 §1, python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "An envelope written to JSON and read back is equal to the first one."),
    ("envelope:seed-example", "002 §5",
     "The seed's listing example is read as a valid envelope and LS answers in the same shape."),
)

ERROR_CODES: Final = _now(
    ("code:closed", "002 §3.3, envelope.md#error-codes",
     ("error.code is one of NOT_FOUND, ACCESS_DENIED, PERMISSION_DENIED, INVALID_PARAM, TIMEOUT, INTERNAL_ERROR, "
      "EXECUTION_ERROR, CONFLICT, IS_DIRECTORY and BINARY_FILE.")),
    ("code:unknown-tool", "envelope.md#error-codes", "A call of a tool that does not exist is NOT_FOUND."),
    ("code:missing-path", "002 §3.3, 002 §4, tools.md#paths",
     "A missing path is NOT_FOUND for Read and for LS, and the text says what to check."),
    ("code:outside-root", "002 §3.3, tools.md#paths", "A path outside the project root is ACCESS_DENIED."),
    ("code:os-refusal", "002 §3.3, envelope.md#error-codes", "A refusal by the operating system is PERMISSION_DENIED."),
    ("code:io-fault", "002 §3.3, envelope.md#error-codes", "Any other I/O fault is EXECUTION_ERROR."),
    ("code:reasons:edits", "envelope.md#reasons",
     ("NOT_FOUND_IN_FILE, NOT_UNIQUE, NO_CHANGE, TOO_LARGE and UNSUPPORTED_ENCODING come with INVALID_PARAM; STALE "
      "and ALREADY_EXISTS come with CONFLICT.")),
    ("code:reasons:plugins", "envelope.md#reasons",
     ("START_FAILED, NO_OUTPUT, INVALID_OUTPUT, OUTPUT_TOO_LARGE, CRASHED, BUSY, INTERRUPTED and CANCELLED come with "
      "EXECUTION_ERROR; DENIED comes with ACCESS_DENIED.")),
    ("items:some-failed", "002 §3.2, envelope.md#several-items",
     ("When some of several items fail, the others are still done and the result is partial with data.failed_items "
      "as objects of item, code and message.")),
    ("items:all-failed", "envelope.md#several-items", "When all of several items fail, the result is an error."),
)

TRUNCATION: Final = _now(
    ("truncation:lines", "002 §2, envelope.md#full-and-shown",
     "A result whose text to be shown has more than 2000 lines is shown with at most 2000."),
    ("truncation:bytes", "002 §2, envelope.md#full-and-shown",
     "A result whose text to be shown has more than 51200 bytes is shown with at most 51200."),
    ("truncation:exact-fit", "envelope.md#full-and-shown",
     "A result of exactly 2000 lines or exactly 51200 bytes is not truncated."),
    ("truncation:data", "002 §2, envelope.md#full-and-shown",
     ("A truncated data is exactly truncated true, preview, and truncation with direction, max_lines, max_bytes, "
      "original_lines, original_bytes, kept_lines, kept_bytes and full_output_path, all true.")),
    ("truncation:direction", "002 §2, envelope.md#full-and-shown",
     "Truncation keeps the beginning with direction head and the end with direction tail."),
    ("truncation:preview", "002 §2, envelope.md#full-and-shown",
     "preview is a piece of the original text: never re-escaped and never cut inside a character."),
    ("truncation:status", "002 §2, envelope.md#full-and-shown",
     "Truncation turns success into partial, and an error stays an error with its code and message."),
    ("truncation:keeps", "002 §2", "Truncation keeps the stats and the context of the original result."),
    ("truncation:text", "002 §2, 002 §4, envelope.md#full-and-shown",
     "The text of a truncated result says that it was cut, how much was kept and where the whole output is."),
    ("truncation:batch", "002 §2, envelope.md#full-and-shown",
     "A batch is measured by the lines and bytes of its items' texts, like single calls, and cut when they are many."),
    ("truncation:pages", "002 §2, envelope.md#full-and-shown",
     ("Beside the stored JSON lies a .txt with the text, named in context.full_text_path and in the text with the "
      "exact Read call that goes on; Read and Grep show every line of it, also of a result that is one endless line.")),
    ("truncation:skip", "002 §1, envelope.md#full-and-shown",
     "A result with context.truncation_skip true is shown whole up to 1 MiB."),
    ("truncation:hard-cap", "envelope.md#full-and-shown",
     "A result over 1 MiB is truncated even when context.truncation_skip is true."),
    ("truncation:paging", "envelope.md#full-and-shown",
     ("LS and Read stop at 2000 lines and 51200 bytes by themselves, keep their own data and set "
      "context.truncation_skip.")),
    ("truncation:before-dialects", "dialects.md#dialects",
     "Truncation comes before any dialect, so a dialect made for the model encodes the shown envelope."),
    ("truncation:full", "envelope.md#full-and-shown",
     "yard.call, toolyard call and the backend dialect give the full result unless the shown one is asked for."),
    ("saved:first", "002 §2, envelope.md#full-and-shown",
     "The whole result is stored as JSON before the shown envelope names its path."),
    ("saved:name", "002 §2, envelope.md#full-and-shown",
     ("A stored output is tool-output/tool_YYYYMMDD_HHMMSS_Tool.json under the project root, with the tool's name "
      "reduced to letters, digits, underscore and hyphen.")),
    ("saved:exclusive", "envelope.md#full-and-shown",
     "A stored output is created exclusively and never overwrites a file or follows a link that is there."),
    ("saved:ignored", "envelope.md#full-and-shown",
     "The folder tool-output ignores itself in git and in the listings of LS."),
    ("saved:retention", "envelope.md#full-and-shown",
     "A stored output older than 7 days is removed and a younger one is kept."),
)

VALUES: Final = _now(
    ("call:fields", "001 §4.1, architecture.md#glossary",
     "A ToolCall carries its id, tool name, arguments, signer (maid) and caller."),
    ("batch:split", "001 §4.2",
     ("A call with command1, filePath1, command2 and filePath2 splits into two calls, each with its own parameters "
      "and no number in their names.")),
    ("batch:order", "001 §4.2, envelope.md#several-items",
     "The calls of a batch are in the order of their numbers, so command10 comes after command2."),
    ("batch:gaps", "001 §4.2, envelope.md#several-items",
     "A gap in the numbers of a batch neither loses a call nor moves a parameter to another one."),
    ("batch:single", "001 §4.2",
     "A call without numbered commands is no batch, and its parameters keep digits at the end of their names."),
    ("content:text", "000 §1.1, 001 §3.2", "A text part is written as type text with its text."),
    ("content:media", "000 §3, 001 §3.2",
     "An image, audio or video part is written as type image_url with a base64 data URI that carries its MIME type."),
    ("content:sniff", "000 §3, tools.md#images-audio-and-video",
     "The MIME type of media comes from its leading bytes, not from its file name."),
    ("spec:tool", "python.md#yardtools",
     ("A ToolSpec gives the tool's name, the text the model reads and a JSON Schema of its parameters with their "
      "defaults.")),
    ("params:case", "001 §4.3, tools.md#common-behaviour", "Parameter names are matched without regard to case."),
    ("params:synonyms", "001 §4.3, tools.md#common-behaviour, tools.md#read",
     ("A parameter may be given under any of its synonyms: Read takes filePath and file_path for path, and offset "
      "for start_line.")),
    ("params:unknown", "tools.md#common-behaviour",
     "An unknown parameter is INVALID_PARAM and the message suggests the nearest known name."),
    ("params:required", "001 §4.3, envelope.md#error-codes",
     "A missing required parameter is INVALID_PARAM and the message names it."),
    ("params:defaults", "tools.md#ls, tools.md#glob, tools.md#grep, tools.md#read, tools.md#write, tools.md#edit",
     "A parameter that is not given has the default in its tool's table."),
    ("params:types", "002 §3.3, tools.md#common-behaviour",
     ("A value of the wrong type or out of range is INVALID_PARAM and the message names the parameter and what it "
      "takes.")),
    ("hunk:shape", "004 appendix, tools.md#common-behaviour-of-writing-tools",
     ("A hunk has exactly oldStart, oldLines, newStart, newLines and lines, and each line begins with a space, a "
      "minus, a plus, or is the mark of a missing final newline.")),
)

DIALECTS: Final = _now(
    ("dialect:pure", "dialects.md#dialects, architecture.md#layout",
     ("A dialect is a pure function of the call and its outcome with ids passed in: the same input gives the same "
      "output and its input is unchanged.")),
    ("dialect:envelope", "dialects.md#dialects", "The default dialect is envelope and gives the JSON of the envelope."),
    ("dialect:vcp:success", "000 §1.2, 001 §3, dialects.md#vcp",
     "The vcp dialect gives status success with result.content as parts and result.details as data."),
    ("dialect:vcp:error", "001 §3, dialects.md#vcp",
     "A failed call in the vcp dialect has status error and its message under error beside result."),
    ("dialect:vcp:partial", "dialects.md#vcp",
     "A partial result is success in the vcp dialect and its text says why it is partial."),
    ("dialect:vcp:action", "000 §1.1, 000 §1.2, dialects.md#special-actions",
     "_specialAction and payload stand at the top level of the vcp dialect when present and are absent otherwise."),
    ("action:reaches-clients", "000 §1.1, 000 §1.2, dialects.md#special-actions",
     ("The special action of a tool and its payload reach clients: in /v1/chatvcp, the chunks of a chat with events, "
      "/v1/human/tool, /v1/backend/stream, the events of /ws, the channels of VCPToolBox, the journal and the _meta "
      "of MCP; a model never reads them, and a payload beyond a limit is left out of what is stored and pushed.")),
    ("console:special-action", "000 §1.1, dialects.md#special-actions, console.md#chat",
     ("The console opens the file of a create_canvas that a call of its own chat or tool page asked for, once, and "
      "offers to open it again at the call; it leaves other actions alone.")),
    ("dialect:vcp:content:parts", "000 §1.1, dialects.md#vcp",
     "The content of the vcp dialect is the outcome's parts when it has any."),
    ("dialect:vcp:content:list", "000 §2.1, 000 §2.2, dialects.md#vcp",
     ("Without parts, data.items, results, entries, matches, paths or info gives one summary text and one JSON text "
      "indented by 2 spaces.")),
    ("dialect:vcp:content:text", "000 §2.2",
     "Without parts and without a list, the content of the vcp dialect is the envelope's text, so it is never empty."),
    ("dialect:vcp:message", "000 §1.1, dialects.md#vcp",
     "details.message in the vcp dialect is the first sentence of text."),
    ("dialect:vcp:validation", "000 §4, tools.md#common-behaviour-of-writing-tools",
     ("Validation findings become text parts at the end of the vcp content and leave the message before them "
      "unchanged.")),
    ("dialect:vcp:validation:members", "000 §4",
     "A finding without column, line, severity or message is written with what it has, never as None."),
    ("dialect:vcp:validation:file", "000 §4, 000 §2.3, tools.md#common-behaviour-of-writing-tools",
     "In a batch, and in a patch of several files, the validation findings name their file."),
    ("dialect:vcp:batch:reads", "000 §2.3, dialects.md#vcp",
     "In a batch the contents of reading calls are flattened into one content in their order."),
    ("dialect:vcp:batch:writes", "000 §2.3",
     "In a batch the messages of writing calls are collected in one summary text part placed first."),
    ("dialect:vcp:seed-examples", "000 §1, 000 §2, 000 §3, 001 §3",
     ("The seeds' result examples (read file, directory listing, plain text, text with image) come out in exactly "
      "their shape.")),
    ("dialect:backend:base", "004 base format, dialects.md#backend",
     "A backend message has exactly type backend_only, tool_name, tool_use_id, uuid and data."),
    ("dialect:backend:names", "004 §1-§4, dialects.md#backend",
     ("Write is called Replace and NotebookEdit is called NotebookEditCell in the backend dialect; Edit and "
      "MultiEdit keep their names.")),
    ("dialect:backend:other-tools", "dialects.md#backend",
     "Any other tool keeps its name in the backend dialect and sends its data."),
    ("dialect:backend:file-path", "004 §1-§3", "filePath in Replace, Edit and MultiEdit is absolute."),
    ("dialect:backend:replace-create", "004 §1",
     "Replace of a new file has type create, filePath, the whole content and an empty structuredPatch."),
    ("dialect:backend:replace-update", "004 §1",
     "Replace of an existing file has type update, filePath, the whole new content and the hunks as structuredPatch."),
    ("dialect:backend:edit", "004 §2",
     "Edit has filePath, oldString, newString, originalFile with the whole text before, and structuredPatch."),
    ("dialect:backend:multiedit", "004 §3",
     ('MultiEdit has filePath, wasNewFile, editsApplied, totalEdits, structuredPatch and the summary "Successfully '
      'applied N edits to NAME".')),
    ("dialect:backend:multiedit-edit", "004 §3",
     ("Each of editsApplied has editIndex from 1, success, old_string and new_string cut to 100 characters, and "
      "occurrences.")),
    ("dialect:backend:multiedit-failure", "004 §3, dialects.md#backend",
     ('A failed MultiEdit has data "Error in edit N: String not found: " with the first 50 characters and "...", or '
      'the other cause after "Error in edit N: "; also when the text is gone because somebody changed the file.')),
    ("dialect:backend:notebook", "004 §4",
     ("NotebookEditCell has exactly cell_number, new_source, cell_type, language and edit_mode, and no path, for "
      "replace, insert and delete.")),
    ("dialect:backend:notebook-failure", "004 §4",
     "A failed NotebookEditCell keeps its fields and adds error."),
    ("dialect:backend:failure", "dialects.md#backend",
     'Any other failure has data "Error: CODE: MESSAGE" in the backend dialect.'),
    ("dialect:backend:seed-examples", "004 §1-§4, 004 appendix, dialects.md#backend",
     "Every example of the backend document comes out in exactly its shape, context lines of hunks aside."),
    ("results:text", "envelope.md#what-a-model-reads, dialects.md#openai",
     ("A model reads a result as plain text, each fact once: the text, then what it does not carry; of a failure the "
      "code and the text. The three dialects for models, request blocks and MCP have the same one.")),
    ("results:tokens", "envelope.md#what-a-model-reads",
     ("A result costs a model hardly more o200k tokens than it says, in native calls, request blocks and MCP: a write "
      "40, an edit 45, five edits 80, Read 1.18 times the file, Grep 1.12 times grep -n, Glob 1.12 times the names, a "
      "folder of 50 500, errors 40 to 110, a plugin's text 15 more, its data 1.1 times its JSON and 20.")),
    ("results:language", "envelope.md#what-a-model-reads",
     "The host's own words of a result are in the language of the conversation, Chinese or English."),
    ("dialect:openai", "dialects.md#openai",
     ("The openai dialect gives a message of role tool, bound to the call's id, with the text that a model reads and "
      "media as content parts.")),
    ("dialect:mcp:result", "dialects.md#mcp",
     ("The mcp dialect gives a CallToolResult with content for the model, media blocks included, and with the envelope "
      "in _meta; only a tool of an MCP server has structuredContent and an output schema, as its server gave them.")),
    ("dialect:mcp:error", "dialects.md#mcp",
     "isError in the mcp dialect is true for status error and false for success and partial."),
)

RUNNER: Final = _now(
    ("runner:one-way", "architecture.md#rules",
     ("The command line and Python both run a tool through engine.runner.settle, and no other code of the product "
      "runs one.")),
    ("runner:validate", "architecture.md#how-a-call-flows",
     "A call whose arguments are invalid ends before the tool is started."),
    ("runner:time", "002 §1, envelope.md#stats",
     ("The runner measures stats.time_ms itself, without the wait for permission, and a number from the tool does not "
      "replace it.")),
    ("runner:catch", "architecture.md#rules, architecture.md#how-a-call-flows",
     "A tool that raises ends in an INTERNAL_ERROR envelope, and no exception reaches the caller."),
    ("runner:invalid-result", "architecture.md#how-a-call-flows, envelope.md#error-codes",
     "A tool that returns something other than a valid outcome ends in an INTERNAL_ERROR envelope."),
    ("records:typed", "architecture.md#rules",
     ("Stored calls, approvals, rules, schedules, conversations and hosts are typed values; records of earlier "
      "versions are read, and what is stored keeps its format.")),
    ("runner:journal", "architecture.md#how-a-call-flows",
     "The journal hook gets each call and its full envelope exactly once, failures included."),
    ("runner:deadline", "tools.md#common-behaviour, envelope.md#error-codes",
     "A tool that is still running at its deadline is stopped and the call ends as TIMEOUT."),
    ("runner:truth", "envelope.md#error-codes",
     ("A write that has begun at its deadline is waited for and told as done; a tool that goes on after its deadline "
      "is never told as stopped.")),
    ("runner:cancel", "envelope.md#reasons, python.md#toolyardopen_asyncproject-homenone",
     "A cancelled call ends as EXECUTION_ERROR with reason CANCELLED and its tool is stopped."),
    ("runner:bound", "envelope.md#full-and-shown",
     "The runner gives the full envelope and can make the shown one, and making it never changes the full one."),
)

LS: Final = _now(
    ("ls:defaults", "tools.md#ls",
     ("LS without parameters lists the project root with limit 100, offset 0, depth 1, and without hidden and "
      "ignored entries.")),
    ("ls:entries", "002 §2, tools.md#ls", "Each entry has path and type, and may have size and mtime."),
    ("ls:types", "002 §2, tools.md#ls",
     "The type of an entry is file, dir or link, and a link is link whatever it points to."),
    ("ls:folder-slash", "002 §5, tools.md#ls", "The path of a folder ends in a slash and the path of a file does not."),
    ("ls:sort", "tools.md#ls", "Entries are sorted by path with folders first."),
    ("ls:limit", "002 §3.2, 002 §5, tools.md#ls",
     ("With more entries than limit, LS is partial with data.truncated true, exactly limit entries, the total in "
      "stats.total_entries, and a text that gives it and how to see more.")),
    ("ls:exact-limit", "tools.md#ls",
     "With exactly limit entries LS is a success with data.truncated false."),
    ("ls:offset", "tools.md#ls", "Pages taken by offset and limit together give every entry exactly once."),
    ("ls:hidden", "tools.md#ls",
     "Names that begin with a dot are left out and counted in stats.hidden, unless include_hidden is true."),
    ("ls:ignored", "tools.md#ls",
     ("What the project's ignore files exclude is left out and counted in stats.ignored, unless include_ignored is "
      "true.")),
    ("ls:ignore", "tools.md#ls", "Entries that match a pattern of ignore are left out."),
    ("ls:depth", "tools.md#ls", "depth N lists N levels of folders, and links to folders are not entered."),
    ("ls:not-a-folder", "002 §3.3, tools.md#ls", "LS of a file is INVALID_PARAM."),
)

READ: Final = _now(
    ("read:content", "002 §2, tools.md#text", "data.content holds each line as its number, a tab and the line."),
    ("read:start-line", "002 §4, tools.md#read", "start_line N begins with line N, counted from 1."),
    ("read:limit", "002 §3.2, tools.md#read",
     "Read gives 2000 lines unless limit says otherwise; with lines left it is partial with data.truncated true."),
    ("read:next-line", "002 §4, tools.md#text",
     "A truncated Read gives data.next_line, and reading on from there gives every line exactly once."),
    ("read:exact-end", "tools.md#text",
     "A Read whose limit is exactly the lines left is a success with data.truncated false."),
    ("read:bytes", "tools.md#text",
     "Read stops at 51200 bytes of content, also within one long line, and then is partial."),
    ("read:encoding", "tools.md#text", "Read reports the file's encoding and reads in the encoding the caller names."),
    ("read:unsupported-encoding", "tools.md#text",
     "An encoding that cannot be read is INVALID_PARAM with reason UNSUPPORTED_ENCODING."),
    ("read:eol", "tools.md#text", "Read reports the file's line ending."),
    ("read:total-lines", "002 §3.2, tools.md#text",
     "stats.total_lines tells how many lines the file has, once they are counted."),
    ("read:hash", "tools.md#text",
     ("data.hash (sha256 in hex of the bytes) and data.total_lines are given when the end was reached or the file is "
      "at most 10 MiB, and are absent otherwise.")),
    ("read:media", "000 §3, tools.md#images-audio-and-video, tools.md#pdf",
     "Read gives an image, PDF, audio or video as a media part."),
    ("read:notebook", "tools.md#notebooks", "Read gives an .ipynb file as its cells."),
    ("read:binary", "002 §3.3, tools.md#text", "Read of any other binary file is BINARY_FILE."),
    ("read:directory", "002 §3.3, envelope.md#error-codes",
     "Read of a folder is IS_DIRECTORY and the text points to LS."),
)

PATHS: Final = _now(
    ("path:relative", "tools.md#paths", "A relative path counts from the project root."),
    ("path:absolute", "tools.md#paths",
     "An absolute path inside the project root is accepted and shown relative to it."),
    ("path:link-inside", "tools.md#paths",
     "A link whose target is inside the project root is followed, and stays a link."),
    ("s:S-10", "tools.md#paths",
     ("Reading a path that leads outside the root is ACCESS_DENIED and a NUL is INVALID_PARAM; tilde and URLs are "
      "not expanded, legal names such as x:stream are read, and names compare in NFC.")),
    ("s:S-11", "tools.md#paths",
     "With root /srv/data, the path /srv/data-secret/x is ACCESS_DENIED, since paths are compared by components."),
    ("s:S-12", "tools.md#paths",
     ("Reading through a link, a chain of links or a linked folder that leaves the root is ACCESS_DENIED, a dangling "
      "or looping link is refused, and a listing shows link.")),
    ("s:S-13", "tools.md#paths",
     "Swapping a folder for a link between check and open never lets a read leave the root."),
    ("s:S-14", "tools.md#paths",
     "Reading a file with several hard links and another owner than the project's is refused."),
    ("s:S-16", "tools.md#paths, tools.md#text",
     ("FIFOs, devices and other special files are refused without blocking, and a file of any size is read page by "
      "page in constant memory.")),
    ("s:S-17", "envelope.md#full-and-shown",
     ("A name that enters a file name is reduced to letters, digits, underscore and hyphen, so ../../evil makes one "
      "new file inside its folder.")),
    ("s:S-18:ls-ignore", "tools.md#ls",
     "An ignore pattern of LS has no effect outside the listed folder, its braces are not expanded, and none is slow."),
    ("s:S-27", "tools.md#common-behaviour",
     ("A tool is found only by its exact ASCII name; look-alike letters, other case and spaces give NOT_FOUND with a "
      "suggestion and run nothing.")),
    ("r:R96", "tools.md#text",
     "A file that grows or shrinks while it is read gives CONFLICT or one consistent snapshot."),
    ("r:R98", "envelope.md#full-and-shown",
     "Two truncated outputs of one tool in one second are two files, the second ending in _2 and the third in _3."),
)

COMMAND_LINE: Final = _now(
    ("cli:call", "cli.md#toolyard-call",
     "toolyard call TOOL runs the tool without a server and prints its full envelope as JSON."),
    ("cli:call:key-value", "cli.md#toolyard-call", "key=value arguments are coerced by the tool's schema."),
    ("cli:call:args", "cli.md#toolyard-call",
     "--args takes the arguments as JSON, as @file or from stdin with a hyphen."),
    ("cli:call:dialect", "cli.md#toolyard-call, dialects.md#dialects",
     "--dialect NAME prints the result in that dialect, and an unknown name is a usage error."),
    ("cli:call:shown", "cli.md#toolyard-call", "--shown prints the shown envelope in place of the full one."),
    ("cli:tools:list", "cli.md#toolyard-tools", "toolyard tools and toolyard tools list name every tool."),
    ("cli:tools:show", "cli.md#toolyard-tools",
     "toolyard tools show NAME prints the tool's text and parameters, and fails for an unknown name."),
    ("cli:doctor", "cli.md#toolyard-doctor",
     "toolyard doctor prints one line per check, names the fix of each failed one and exits 1 when one failed."),
    ("cli:config:show", "cli.md#toolyard-config",
     "toolyard config show prints the effective settings with secrets masked."),
    ("cli:config:check", "cli.md#toolyard-config",
     "toolyard config check exits 0 for valid settings and 1 with the fault named for invalid ones."),
    ("cli:project", "cli.md#common-options",
     "--project DIR sets the project root, which is the current folder by default."),
    ("cli:home", "configuration.md#project-and-home",
     "--home DIR sets the home, else TOOLYARD_HOME does, else it is the platform's data folder."),
    ("cli:json", "cli.md#common-options", "With --json a command prints its result as one JSON value."),
    ("cli:quiet", "cli.md#common-options", "--quiet leaves stderr empty on success."),
    ("cli:verbose", "cli.md#common-options", "--verbose adds detail on stderr and leaves stdout unchanged."),
    ("cli:exit:success", "cli.md#exit-codes", "A success and a partial result exit 0."),
    ("cli:exit:failure", "cli.md#exit-codes", "A failed tool or command exits 1."),
    ("cli:exit:usage", "cli.md#exit-codes", "A usage error exits 2."),
    ("cli:stdout", "cli.md#command-line", "stdout carries the result only, and progress and logs go to stderr."),
    ("cli:start-up", "architecture.md#rules",
     ("toolyard --help and toolyard call of a built-in tool start without importing other tools or web, database or "
      "plugin libraries, and a call through a running server without the engine.")),
)

FIRST_DAY: Final = _now(
    ("home:one", "configuration.md#project-and-home",
     ("make run, toolyard serve and every other command use the same default home: what the command line calls is in "
      "the journal that the server shows.")),
    ("cli:project:named", "cli.md#toolyard-chat, cli.md#toolyard-task, cli.md#toolyard-journal",
     ("chat, journal and task work on the project that they are told or stand in, whatever project a server of the "
      "home has, name it, and say which project a call or a task belongs to; what belongs to another one is refused "
      "with the command that works there.")),
    ("home:hints", "cli.md#toolyard-serve",
     ("Every command that a server or one of its messages names contains the options that reach its home, unless it "
      "is the default one, and its project, and works as it stands in any shell of the user and in any folder.")),
    ("make:run:example", "configuration.md#project-and-home, installing.md#a-checkout",
     ("make run serves an example project, which is created beside the home at the first start and then left alone; "
      "make run PROJECT=DIR serves another one.")),
    ("make:install:path", "installing.md#a-checkout", "make install ends by saying how to get toolyard on the PATH."),
    ("docs:one-form", "README.md#explanation",
     "The documentation types toolyard in one form throughout, and its commands run in a shell that has only that."),
    ("cli:completion", "cli.md#toolyard-completion",
     ("toolyard completion prints a script with which bash, zsh and fish complete commands, options, tools, plugins "
      "and topics; completing reads and changes nothing.")),
    ("cli:version", "cli.md#common-options",
     ("toolyard --version prints the version, and with --json also the Python, the platform, the home and the format "
      "of the state, whatever is wrong with the settings.")),
    ("cli:help:topics", "cli.md#toolyard-help",
     ("toolyard help lists the pages of the documentation and shows one in the terminal; it suggests the nearest topic "
      "for an unknown one, and shows the help of a command.")),
)

PYTHON_AND_MAKE: Final = _now(
    ("python:open", "python.md#python, python.md#toolyardopenproject-homenone",
     "toolyard.open(project, home) gives a Yard as a context manager and needs no server."),
    ("python:open-async", "python.md#toolyardopen_asyncproject-homenone",
     "toolyard.open_async gives the asynchronous form with the same results."),
    ("python:call", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone, python.md#errors",
     "yard.call(tool, arguments) returns the full Envelope and never raises for a failed tool."),
    ("python:to-dict", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "Envelope.to_dict() gives the JSON object of the envelope."),
    ("python:dialect", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "yard.call with dialect returns a dict in that dialect."),
    ("python:requests", "001 §4.1, python.md#toolyardparse_requeststext",
     ("yard.call of what parse_requests gave works for every tool: maid and valet are who signed, not unknown "
      "parameters.")),
    ("tool:seed-names", "004 §1, 004 §4, tools.md#tools",
     "Write can be called as Replace and NotebookEdit as NotebookEditCell, and near misses of the names suggest them."),
    ("python:threads", "python.md#threads",
     "One Yard is called from several threads at once and each call gets its own right result."),
    ("make:install", "installing.md#a-checkout",
     "make install makes the virtual environment .venv with the product on a machine that has Python 3.11 or newer."),
    ("python:versions", "installing.md#installing",
     "Every regular expression matches the same on every Python from 3.11.0 on, Debian 12's 3.11.2 included."),
    ("make:run", "installing.md#a-checkout", "make run starts the product from that virtual environment."),
    ("make:test", "reliability.md#reliability-the-guarantees-and-their-tests",
     "make test sets up and runs the whole suite."),
    ("make:check", "releasing.md#the-workflows",
     ("make check verifies format, lint, types and import rules; where Node and the console's packages are, also the "
      "console's format, lint, types and unit tests, and elsewhere it says that it does not.")),
)

LIBRARY: Final = _now(
    ("dialect:anthropic", "dialects.md#anthropic",
     ("The anthropic dialect gives a tool_result block, bound to the call's id, with the text that a model reads, the "
      "media that models read as blocks, and is_error.")),
    ("python:types", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "The public types can be imported from toolyard itself, and are loaded when they are first used."),
    ("python:tools", "python.md#yardtools",
     "yard.tools(dialect=...) gives the definitions of the tools as OpenAI, Anthropic, MCP and VCPToolBox take them."),
    ("python:tool-call-id", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "yard.call(..., tool_call_id=...) gives the message that answers this call of a model, over a server too."),
    ("python:shown", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "yard.call(..., shown=True) gives the result as a model sees it, as an envelope and in every dialect."),
    ("python:arguments-text", "python.md#yardcalltool-argumentsnone--dialectnone-shownfalse-tool_call_idnone",
     "yard.call takes arguments as the JSON text that a model wrote; other text is an envelope that says so."),
    ("python:database", "python.md#toolyardopenproject-homenone",
     "A Yard that a program opens uses the database of the settings: its journal is there, and other hosts' tools."),
    ("python:agent-loop", "python.md#answering-a-model",
     "The agent loops of the documentation run as written with the openai and the anthropic package."),
    ("python:adapters", "python.md#langchain-and-pydantic-ai",
     "The examples give Toolyard's tools to LangChain and pydantic-ai, blocking and asynchronous."),
    ("openapi:typed", "http.md#http-and-websocket",
     "The OpenAPI gives every object the members it has; those without a fixed shape are listed with the reason."),
    ("openapi:events", "http.md#events, clients/typescript.md#events",
     "The OpenAPI has the data of every type of event, and the TypeScript client tells events apart by their type."),
    ("openapi:complete", "http.md#http-and-websocket",
     "Answers of the server have no member that the OpenAPI does not name."),
    ("client:typescript", "clients/typescript.md#typescript",
     ("The TypeScript client is made from the OpenAPI of this version, compiles under strict rules, and calls tools, "
      "chats, streams and follows events of a real server.")),
)

HOUSE: Final = _now(
    ("house:imports-down", "architecture.md#imports",
     ("Imports point down only, in the order cli, web, app, gateway, (engine, tools, plugins, storage, render), "
      "workspace, dialects, protocol, errors.")),
    ("house:siblings", "architecture.md#imports",
     "The packages engine, tools, plugins, storage and render do not import each other."),
    ("house:plain-names", "architecture.md#rules",
     "Names, docstrings and texts for people use the field's ordinary English: verb and object, the standard noun."),
    ("messages:codes", "http.md#errors, architecture.md#layout",
     "A sentence for people has a code and parameters on the wire; a catalogue has the code and the Chinese of each."),
    ("house:pure", "architecture.md#layout, architecture.md#rules",
     "Modules of protocol and dialects do no I/O and use no clock and no randomness."),
    ("house:letter-case", "architecture.md#layout", "Names change between snake case and camel case only in dialects."),
    ("house:environment", "architecture.md#layout",
     "config.py is the only module that reads environment variables and settings files."),
    ("house:broad-except", "architecture.md#rules", "except Exception stands only in the runner, web and cli."),
    ("house:error-tree", "architecture.md#layout, architecture.md#rules",
     "Every host fault derives from ToolyardError and the docstring of errors.py draws the whole tree."),
    ("house:class-names", "architecture.md#rules",
     "No class is called Manager, Handler, Helper, Util, Processor or Service, alone or as the end of a name."),
    ("house:frozen", "architecture.md#rules",
     "Every dataclass of protocol and dialects is frozen, and closed sets are enums."),
    ("house:tool-files", "architecture.md#layout, architecture.md#rules",
     ("Each built-in tool is name.py with name.md beside it, and the limits in the text come from the code's "
      "constants.")),
    ("house:module-docstrings", "architecture.md#rules",
     "Every module begins with a docstring that says what it promises."),
    ("house:documented", "architecture.md#rules",
     "Every command line verb, error code, reason, setting and built-in tool appears in docs."),
    ("house:no-sleeps", "architecture.md#rules",
     "Tests wait for an event or a condition; only the places that the guard names with a reason sleep."),
    ("house:requirements", "architecture.md#rules",
     ("Every requirement that waits for nothing has a test, every test names a known requirement, and one that waits "
      "has none.")),
)

# --- The documentation ---

DOCUMENTATION: Final = _now(
    ("docs:site", "README.md#explanation",
     ("make docs builds a site of docs/ in English and Chinese, with search in both, light and dark, that asks no "
      "other server for anything, and in which every page stands in the navigation.")),
    ("docs:pages", "README.md#explanation, glossary.md#glossary, troubleshooting.md#troubleshooting",
     ("Every page is in an index; what a newcomer needs is there in Chinese, with the parts and commands of the "
      "English page; the glossary is the same in both, and troubleshooting quotes messages that Toolyard says.")),
    ("docs:limits", "limits.md#limits",
     "The page of limits has every limit that a server shows, with the number of the code."),
    ("docs:tutorial", "tutorial.md#tutorial",
     ("The tutorial, typed as it is written in an empty home, leads to a first call, an own tool, a chat with a model, "
      "an approval on a phone, and undo.")),
    ("docs:pictures", "console.md#developing-the-console",
     "Every picture of the documentation is taken by the suite, shows the console as it is, and stands on a page."),
    ("docs:readme", "README.md#explanation",
     "Both READMEs have the same parts, commands, outputs, pictures and links."),
)

# --- The tools that search and change files ---

SEARCH_TOOLS: Final = _now(
    ("path:every-kernel", "tools.md#paths, decisions/0003-one-walk-for-every-path.md#0003-one-path-walk-no-openat2",
     "The path rules are one walk by descriptors that gives the same answers with and without what only Linux has."),
    ("glob:pattern", "002 §2, tools.md#glob",
     ("Glob gives in data.paths the POSIX paths relative to the root that match pattern below path, sorted by path, "
      "or newest first with sort modified.")),
    ("glob:page", "002 §3.2, tools.md#glob",
     ("Glob takes offset and limit 100, is partial with data.truncated true when paths are left, and counts all in "
      "stats.total_matches.")),
    ("search:hidden-ignored", "tools.md#glob, tools.md#grep",
     "Glob and Grep leave out hidden and ignored files unless include_hidden or include_ignored is true."),
    ("grep:matches", "002 §2, tools.md#grep",
     ("Grep gives in data.matches one object of file, line and text per matching line, with column, and with the "
      "before and after lines asked for.")),
    ("grep:path", "tools.md#grep",
     "Grep searches a folder or a single file, and glob limits the files that are searched."),
    ("grep:modes", "tools.md#grep",
     ("Grep minds case unless case_sensitive is false, takes plain text with literal true and matches over lines "
      "with multiline true.")),
    ("grep:output", "tools.md#grep",
     ("With output files Grep gives each matching file once in data.files, and with count the pairs of file and "
      "count in data.counts.")),
    ("grep:limit", "002 §3.2, tools.md#grep",
     ("With more than limit matches (100) Grep is partial with data.truncated true and the total in "
      "stats.total_matches.")),
    ("grep:stats", "tools.md#grep",
     "Grep gives stats total_matches, files_searched and a skipped count for each reason to skip."),
    ("grep:bad-pattern", "002 §3.3, tools.md#grep", "A pattern that is no valid regular expression is INVALID_PARAM."),
    ("grep:fallback", "002 §3.2, tools.md#grep",
     'Without ripgrep, Grep gives the same matches as partial with data.fallback "python" and says so in text.'),
    ("grep:vectors", "tools.md#glob, tools.md#grep", "Glob and Grep agree with ripgrep and git on the search vectors."),
    ("saved:searches", "tools.md#grep, tools.md#ls", "Glob and Grep never search the folder tool-output."),
    ("truncation:paging:search", "envelope.md#full-and-shown",
     ("Glob and Grep stop at 2000 lines and 51200 bytes by themselves, keep their own data and set "
      "context.truncation_skip.")),
    ("r:R97", "tools.md#grep",
     ("Grep over 100000 files, binaries, a line of 1 GB and unreadable folders ends at its time cap as partial and "
      "lists what it skipped.")),
    ("s:S-18", "tools.md#glob",
     "A glob pattern that leaves its folder by .. is refused, and so is one whose braces multiply."),
    ("s:S-19", "tools.md#grep",
     ("A pattern that would take exponential time ends within its limit plus 1 s, in a linear engine or a process "
      "that is killed, and other calls are unaffected.")),
)

WRITING_TOOLS: Final = _now(
    ("tools:names", "tools.md#tools",
     ("The built-in tools are LS, Glob, Grep, Read, Write, Edit, MultiEdit, NotebookEdit, ApplyPatch, "
      "WebFetch and FileOperator, and none of them runs a shell.")),
    ("write:data", "002 §2, 002 §3.1, tools.md#write, tools.md#common-behaviour-of-writing-tools",
     ("Write is a success with data.applied true once the bytes are on disk, with operation create or update, hash "
      "of the new bytes and structured_patch.")),
    ("write:dry-run", "002 §3.2, tools.md#common-behaviour-of-writing-tools",
     "Every writing tool with dry_run true computes its patch, writes nothing and is partial with data.applied false."),
    ("write:create-only", "tools.md#write",
     "Write with create_only over an existing file is CONFLICT with ALREADY_EXISTS."),
    ("write:read-first", "tools.md#common-behaviour-of-writing-tools",
     ("Write over an existing file is CONFLICT unless this caller (not another) last read or wrote exactly these "
      "bytes, or gives expected_hash.")),
    ("write:expected-hash", "tools.md#write, tools.md#edit",
     "expected_hash, when given to any writing tool, is enforced, and another hash is CONFLICT with STALE."),
    ("write:force", "cli.md#toolyard-call",
     "A person at the command line or the console may write over a file with force."),
    ("write:bytes-outside", "tools.md#common-behaviour-of-writing-tools",
     ("A write keeps every byte outside the change (line endings, BOM, encoding, final newline) and mode, owner, "
      "extended attributes and symbolic link.")),
    ("write:atomic", "tools.md#common-behaviour-of-writing-tools",
     "A reader sees the old or the new bytes during a write, never a mixture."),
    ("write:stale-by-hash", "tools.md#common-behaviour-of-writing-tools",
     "Staleness is judged by content hash, so a touched file is not stale and a changed file of equal time is."),
    ("write:literal", "tools.md#edit",
     ("Replacement text is written without dollar expansion or re-escaping, and its newlines take the line ending of "
      "the lines they replace or join.")),
    ("edit:data", "tools.md#edit, tools.md#common-behaviour-of-writing-tools",
     "Edit gives data.applied, occurrences, hash, strategy and structured_patch."),
    ("edit:matching", "tools.md#edit",
     ("Edit takes an exact match first, then only a unique match that differs in line endings, trailing blanks, "
      "Unicode punctuation or uniform indentation, and reports which in data.strategy.")),
    ("edit:replace-all", "tools.md#edit", "replace_all replaces every occurrence and counts them in data.occurrences."),
    ("edit:not-found", "tools.md#edit",
     ("Text that is not in the file is INVALID_PARAM with NOT_FOUND_IN_FILE, and the answer shows the nearest lines "
      "with visible whitespace.")),
    ("edit:refused", "tools.md#edit",
     ("Text found more than once without replace_all is INVALID_PARAM with NOT_UNIQUE, and an edit that changes "
      "nothing is INVALID_PARAM with NO_CHANGE.")),
    ("edit:stale", "tools.md#common-behaviour-of-writing-tools",
     ("Edit, MultiEdit and ApplyPatch need no read first, but text missing from a file that changed since this "
      "caller read it is CONFLICT with STALE.")),
    ("edit:strict", "002 §3.3, tools.md#common-behaviour-of-writing-tools, configuration.md#settings",
     ("With strict_edits, Edit, MultiEdit, ApplyPatch and ApplyDiff refuse a file that has changed since its caller "
      "read it as CONFLICT with STALE, also where the edit would fit; without it, or unread, the file is edited.")),
    ("edit:create", "004 §3, tools.md#edit",
     ("An empty old_string in Edit, or in the first edit of MultiEdit, creates a missing file and is INVALID_PARAM "
      "on one with content.")),
    ("edit:vectors", "tools.md#edit", "Edit gives the required result or refusal on every case of the edit vectors."),
    ("multiedit:all-or-nothing", "004 §3, tools.md#multiedit",
     ("Each edit works on the result of the one before; when one fails, the file keeps its old bytes and the answer "
      "names that edit.")),
    ("multiedit:data", "004 §3, tools.md#multiedit",
     ("MultiEdit gives applied, edits_applied with edit_index from 1, total_edits, was_new_file, summary and "
      "structured_patch.")),
    ("notebook:modes", "004 §4, tools.md#notebookedit",
     ("NotebookEdit replaces the cell at cell_number (from 0) or of cell_id, inserts a new one at cell_number, or "
      "deletes it.")),
    ("notebook:data", "004 §4, tools.md#notebookedit",
     "NotebookEdit gives applied, cell_number, cell_type, language and structured_patch."),
    ("notebook:bounds", "004 §4",
     "A cell number out of bounds is INVALID_PARAM, and the message says how many cells there are."),
    ("notebook:valid", "004 §4, tools.md#notebookedit",
     "Every notebook written is valid for nbformat and equal to its vector."),
    ("applypatch:formats", "tools.md#applypatch", "ApplyPatch applies the Begin Patch format and unified diffs."),
    ("applypatch:all-or-none", "tools.md#applypatch",
     "When one file of a patch fails, ApplyPatch writes none of them."),
    ("applypatch:data", "tools.md#applypatch",
     "ApplyPatch gives applied and files with path, operation and structured_patch for each."),
    ("patch:npm", "python.md#toolyardstructured_patchold-new-context3, tools.md#common-behaviour-of-writing-tools",
     ("structured_patch and toolyard.structured_patch(old, new, context=3) equal structuredPatch of npm diff 7 on "
      "every vector.")),
    ("patch:budget", "python.md#toolyardstructured_patchold-new-context3, envelope.md#context",
     ("The search for a patch has a budget of steps and memory; beyond it the hunks are right but coarser, and "
      "context.patch is 'coarse'.")),
    ("validate:after-write", "000 §4, tools.md#common-behaviour-of-writing-tools",
     ("After a write to Python, JSON, YAML, TOML, JavaScript, TypeScript, CSS or HTML the file is checked and "
      "findings go to data.validation.")),
    ("validate:status", "000 §4, tools.md#common-behaviour-of-writing-tools",
     "Findings of validators never change the status or the success message."),
    ("r:R93", "tools.md#common-behaviour-of-writing-tools",
     ("Two edits of one file through us both land when both still match; against an outside writer exactly one "
      "applies and the other is CONFLICT with the current hash.")),
    ("s:S-15:home", "tools.md#paths",
     "No tool reads, lists, searches or writes Toolyard's own home, also when it stands inside the project."),
    ("r:R62:files", "envelope.md#error-codes, reliability.md#guarantees-and-their-tests",
     "A full disk at any step of a write is EXECUTION_ERROR, leaves the old file whole and no temporary file."),
    ("r:R94", "tools.md#common-behaviour-of-writing-tools",
     ("A crash between writing the temporary file and the rename leaves the old file whole, and the temporary file "
      "is swept.")),
    ("r:R95", "tools.md#common-behaviour-of-writing-tools, tools.md#paths",
     ("Edits of CRLF, BOM, UTF-16, no final newline, mode 0600, owner, xattr, links and large files change no other "
      "byte or attribute, and special files are INVALID_PARAM.")),
    ("s:S-10:write", "tools.md#paths",
     "Every writing tool treats the path attacks of S-10 as reading does and writes nothing."),
    ("s:S-12:write", "tools.md#paths",
     ("Creating, writing, moving or deleting through a link that leaves the root is ACCESS_DENIED, also for a new "
      "name in a linked folder.")),
    ("s:S-13:write", "tools.md#paths",
     "Swapping a folder for a link between check and open never lets a write leave the root."),
    ("s:S-14:write", "tools.md#common-behaviour-of-writing-tools",
     "A write to a file with several hard links replaces the name and leaves the other links unchanged."),
)

FILE_OPERATOR: Final = _now(
    ("s:S-70", "tools.md#webfetch, tools.md#fileoperator",
     ("Every fetch of a given URL refuses private, local and non-http targets in any spelling, checks each of at "
      "most 3 redirects and caps size and time.")),
    ("s:S-71", "tools.md#fileoperator",
     "A name that resolves to another address after the check is still reached at the checked address only."),
    ("fileoperator:names", "tools.md#fileoperator",
     "FileOperator answers to its alias ServerFileOperator and takes VCP's parameter names and meanings."),
    ("fileoperator:unknown", "001 §3.3, tools.md#fileoperator", 'Another command X answers "Unknown action: X".'),
    ("fileoperator:batch", "000 §2.3, 001 §4.2, tools.md#fileoperator, envelope.md#several-items",
     ("FileOperator runs numbered commands in order and reports each one; when some fail it is partial, when all "
      "fail an error.")),
    ("fileoperator:folders", "tools.md#fileoperator",
     "ListAllowedDirectories names the folders that may be used, and CreateDirectory makes a folder with its parents."),
    ("fileoperator:read", "000 §1.1, tools.md#fileoperator",
     ("ReadFile gives a text part about the file and one with its content, or a media part, and honours encoding and "
      "lines.")),
    ("fileoperator:write", "tools.md#fileoperator",
     "WriteFile never overwrites: a taken name gets a number, and the answer says so."),
    ("fileoperator:write-escaped", "tools.md#fileoperator",
     "WriteEscapedFile restores the escaped markers before it writes."),
    ("fileoperator:append-edit", "tools.md#fileoperator",
     ("AppendFile adds at the end and creates a missing file, EditFile replaces the content of an existing one, and "
      "both keep the line ending.")),
    ("fileoperator:apply-diff", "tools.md#fileoperator",
     ("ApplyDiff replaces a unique search text literally, and refuses an ambiguous one or a block without its "
      "separator.")),
    ("fileoperator:lists", "000 §2, tools.md#fileoperator",
     ("ListDirectory gives data.items, SearchFiles data.results and FileInfo data.info, each with a summary and "
      'JSON, and their options (showHidden "false" too) are honoured.')),
    ("fileoperator:copy-move", "tools.md#fileoperator",
     ("CopyFile and MoveFile stay inside the root and pick a free name on a clash, and RenameFile refuses when the "
      "target exists.")),
    ("fileoperator:delete", "tools.md#fileoperator, cli.md#toolyard-journal",
     "DeleteFile moves to a trash from which undo brings the file back."),
    ("fileoperator:history-canvas", "000 §1.2, tools.md#fileoperator",
     ("UpdateHistory edits the assistant's message in a JSON history, and CreateCanvas answers with _specialAction "
      "create_canvas and a payload that names the file.")),
    ("fileoperator:fetch", "tools.md#fileoperator",
     "WebReadFile and DownloadFile fetch by the safe fetch and say success only when the content is there."),
    ("webfetch:markdown", "tools.md#webfetch",
     "WebFetch gives a page as Markdown with its title, absolute links and the URL where it was in the end."),
    ("webfetch:types", "tools.md#webfetch",
     "HTML, text, JSON and PDF are text; a type that is not given is told by the content, and others are refused."),
    ("webfetch:charset", "tools.md#webfetch",
     "A page is read in the encoding of its byte-order mark, its server or itself, and never worse than by its bytes."),
    ("webfetch:pages", "tools.md#webfetch", "A long page comes in parts by offset that join to the whole."),
    ("webfetch:errors", "tools.md#webfetch",
     "What cannot be fetched says why: a private address, no such page, too large, too slow, no text."),
    ("webfetch:approval", "tools.md#webfetch", "WebFetch reaches the network, so a model's call of it asks."),
    ("fileoperator:input", "limits.md#calls-and-results, tools.md#fileoperator",
     "A request of more than 64 KiB works, and a missing parameter is INVALID_PARAM that names it."),
)

# --- Text languages ---

REPLY_TEXT: Final = _now(
    ("reply:parse", "003 JSON format, replies.md#parsing-a-reply",
     ("toolyard reply parse (of a file or stdin) and toolyard.parse_reply give ok, think, content, attachments, "
      "problems and repairs.")),
    ("reply:fields", "003 fields, 003 common errors, replies.md#structured-replies",
     "think and attachments are optional, and a missing or empty content is an error."),
    ("reply:failure", "003 error handling, replies.md#parsing-a-reply",
     "Text that cannot be read gives ok false with error message, line and column, and raw with the original text."),
    ("plugin:detached", "001 §1.5, operations.md#states, manifest.md#fields",
     ("What a synchronous plugin leaves running when it has answered goes on when its manifest or its owner's review "
      "says detached: at most 30 min unless set otherwise, as a task that ends with it and that can be cancelled.")),
    ("plugin:left-behind", "001 §1.5, operations.md#states, writing-a-plugin.md#limits",
     ("Without that it is stopped, which the envelope's warnings and the plugin's log tell, and lint says it before.")),
    ("plugin:same-name", "cli.md#toolyard-plugin",
     ("Of plugins with one name the one given with --plugins wins, then the home's, the project's, the shipped one; an "
      "unreviewed one never displaces a reviewed one, a reviewed one that changed or broke gives its name to no other, "
      "import takes it all the same, and the list says which one runs and which it hides.")),
    ("plugin:same-name:rules", "cli.md#toolyard-plugin",
     "A rule that was made for a plugin does not hold for another plugin that takes its name."),
    ("plugin:manifest-comments", "001 §5.2, manifest.md#the-plugin-manifest",
     "A manifest with // or /* */ comments, as the seed prints it, loads with a warning at the first of them."),
    ("plugin:config-cut", "001 §2.2, writing-a-plugin.md#settings",
     "A=b#c in config.env is read as b, as VCPToolBox reads it, and lint says that the value was cut."),
    ("reply:syntax-error",
     "003 error handling, 003 common errors, replies.md#parsing-a-reply, replies.md#rendering-a-reply",
     ('A syntax error that costs a reply its content is named with its position, as "Unexpected character at position '
      'N", in English and after "JSON 格式错误: " in Chinese, and not as a missing field.')),
    ("reply:entities", "003 compatibility, replies.md#what-is-repaired",
     "A reply whose quotes are HTML entities is read, with all characters that are escaped for pages restored once."),
    ("reply:code-language", "003 best practices, replies.md#what-is-reported",
     "A code attachment without a language is reported as a problem."),
    ("reply:fences", "003 compatibility, replies.md#what-is-repaired",
     "JSON in a code fence is read, also when strings in it hold fences."),
    ("reply:lenient", "003 compatibility, replies.md#what-is-repaired",
     "Comments, trailing commas and field names in any case are accepted."),
    ("reply:repaired", "replies.md#what-is-repaired",
     ("Prose and think tags around the object, single quotes and raw newlines in strings are repaired, and the "
      "repairs are listed.")),
    ("reply:truncated", "replies.md#what-is-repaired", "Truncated JSON gives its best prefix, marked as incomplete."),
    ("reply:prompt", "003 system prompt, replies.md#requesting-a-reply",
     "toolyard reply prompt prints the system prompt that asks for this format, in zh or en."),
)

TOOL_REQUESTS: Final = _now(
    ("request:output", "requests.md#tool-requests-in-text",
     ("toolyard request parse and toolyard.parse_requests give in order objects of tool, args, maid, timely_contact, "
      "archery, ok, problem, repaired and span (in code points), with null for absent fields.")),
    ("request:seed-examples", "001 §4.1, 001 §4.2",
     ("The seeds' blocks, with comments after fields and with numbered commands, give exactly their tool and "
      "arguments.")),
    ("request:line-start", "requests.md#what-is-not-a-request",
     "A start marker counts only as the first thing on its line."),
    ("request:plain-value", "requests.md#fields",
     ("A plain value ends at the first exact end mark, not at a word like it, and is trimmed at both ends but "
      "otherwise verbatim over many lines.")),
    ("request:escape", "requests.md#fields",
     "An ESCAPE value is verbatim but for one newline next to each mark, and escaped markers in it are restored."),
    ("request:lenient", "001 §4.1, requests.md#fields, requests.md#what-is-repaired",
     ("Comments after a field and missing or extra commas are tolerated; typed braces for marks, a full-width colon "
      "and markers with two or four angle brackets are too, and are listed in repaired.")),
    ("request:not-requests", "requests.md#what-is-not-a-request",
     ("A block inside think or thinking tags (nested, any case, unclosed), a code fence, inline code or a block "
      "quote is no request.")),
    ("request:malformed", "requests.md#what-is-rejected",
     "An unterminated block, a duplicate key or a missing tool_name is ok false with a problem the model can act on."),
    ("request:chunking", "requests.md#what-is-rejected", "Feeding the text in any chunks gives the same result."),
    ("request:special-keys", "requests.md#fields",
     "tool_name, archery, ink, river, timely_contact and tool_password never reach the plugin."),
    ("request:strings", "001 §4.1, requests.md#tool-requests-in-text, requests.md#fields",
     ("Everything else, maid and valet included, is one JSON object of strings in order of appearance, and maid is a "
      "label, never an identity.")),
    ("s:S-20", "requests.md#what-is-not-a-request",
     ("A block quoted from elsewhere (fences, quotes, JSON strings and 40 other wrappings) gives no call, and in "
      "nonce mode only the marker with this request's nonce counts.")),
    ("s:S-25", "requests.md#what-is-rejected",
     "Two megabytes of hostile marker text parse in linear time: twice the input takes at most 2.5 times as long."),
    ("s:S-26", "chat.md#tools", "A block cut by the end of the stream is not executed."),
    ("s:S-28", "requests.md#fields",
     ("Reserved keys such as __proto__, tool_password and __vcp_timed_call are stripped, and the caller comes from "
      "the key, not from the text.")),
    ("s:S-30", "requests.md#what-is-rejected", "Of 500 blocks in one reply 32 are taken and the rest are reported."),
    ("placeholder:one-pass", "requests.md#placeholders",
     ("Placeholders are filled in one pass, inserted text is never scanned again, and an unknown placeholder stays "
      "as it is.")),
    ("s:S-21:text", "requests.md#untrusted-text",
     "Neutralised tool output holds no live marker and no placeholder, and neutralising it again changes nothing."),
    ("s:S-22:text", "requests.md#what-is-rejected",
     "A value that holds the markers of another field cannot add or change one, and a duplicate key refuses the call."),
    ("s:S-23:text", "requests.md#placeholders",
     "Placeholders are filled in one pass: inserted text is never read again, and unknown ones stay."),
    ("s:S-24:text", "requests.md#what-is-not-a-request",
     "A marker in reasoning, in quoted text or in code is no request."),
)

REQUESTS: Final = _now(
    ("request:delivery", "chat.md#details",
     "archery true or no_reply makes a call fire and forget, and river full, text or last:N adds river_context."),
    ("request:built-in-values", "001 §4.1, tools.md#common-behaviour",
     ("A built-in tool called from text takes strings that spell a number, a boolean or JSON as the type its schema "
      "asks for.")),
    ("request:results", "chat.md#tools",
     "Results of text requests go back as a user message that begins with the VCP_TOOL_PAYLOAD comment."),
    ("s:S-21", "requests.md#untrusted-text, chat.md#details",
     ("Markers and placeholders in tool output that the model repeats word for word give no call and no expansion, "
      "also when characters that nobody sees were taken out: the model is told. The raw text stays available.")),
    ("s:S-22", "requests.md#what-is-rejected",
     ("A value that tries to open further fields cannot change the command, and a duplicate key refuses the whole "
      "call as INVALID_PARAM.")),
    ("s:S-23", "chat.md#placeholders",
     ("Placeholders typed by a user, in a file or in a callback are not expanded, and inserted text is never scanned "
      "again.")),
    ("s:S-24", "requests.md#what-is-not-a-request, chat.md#details",
     "A marker in reasoning, in a tool message, in alt text, in a file name or in stderr is never executed."),
)

PLACEHOLDERS: Final = _now(
    ("placeholder:plugin-text", "001 §2.1",
     ("A plugin's text has display name, name, command, description and example of each command as VCPToolBox lays "
      "them out.")),
    ("placeholder:async", "001 §5.2, requests.md#placeholders, chat.md#placeholders",
     ("The async result placeholder is filled with 2, 3 or 4 braces, in system and assistant messages, and only for "
      "tasks of this caller.")),
    ("placeholder:file-operator", "001 §2.1, 001 §4.2, tools.md#fileoperator",
     ("{{VCPFileOperator}} describes each command with its parameters and an example that runs, and shows a call with "
      "several commands.")),
    ("placeholder:plugin", "001 §2.1, requests.md#placeholders",
     "In a system message {{VCPName}} becomes the text of the plugin Name, and {{VCPAllTools}} those of all tools."),
    ("placeholder:once", "chat.md#placeholders",
     "A listing of tools is inserted once in a request; where its placeholder stands again, nothing is."),
    ("placeholder:budget", "chat.md#placeholders",
     "Placeholders make a prompt grow by at most 4 MiB; a request that asks for more is refused with a clear 400."),
    ("placeholder:values", "requests.md#placeholders",
     ("{{Date}}, {{Time}} and {{Today}} are filled in the configured zone, and a static plugin's placeholder with "
      "its latest value.")),
    ("placeholder:system-only", "chat.md#placeholders",
     "Tool, clock and static placeholders are filled in system messages only."),
    ("prompt:files", "prompts.md#prompt-files, prompts.md#variables",
     ("Prompt files and variables of the home and the project are named by system messages, a project's before a "
      "home's of the same name, and a change counts from the next request on.")),
    ("prompt:problems", "prompts.md#prompt-files",
     "A file that cannot be used is named with the reason, and hurts no other."),
    ("prompt:nesting", "prompts.md#nesting",
     ("A prompt is filled with what it names; one that would contain itself stays a placeholder, and prompts that "
      "are nested too deeply are refused.")),
    ("prompt:unfilled", "prompts.md#names-that-nothing-fills",
     ("A name in a system message that nothing fills stays there; it is logged once, counted, and named in the record "
      "of the chat.")),
    ("prompt:list", "prompts.md#looking-at-prompts",
     "GET /v1/prompts lists prompts, problems and names that nothing fills, and POST /v1/prompts/fill shows a result."),
    ("console:prompts", "console.md#prompts",
     "The page of prompts lists what is in files, with problems and names that nothing fills, and tries a message."),
    ("console:vcp", "console.md#a-vcptoolbox-installation",
     ("The page of an installation shows what becomes of each part of it and what its plugins may reach together, and "
      "one yes allows them as they were shown.")),
    ("assistant:models", "prompts.md#assistants-as-models",
     ("Clients see the assistants of their key and those in files as models, and an assistant named as model brings "
      "its prompt, model and options.")),
    ("assistant:files", "prompts.md#assistants-as-models",
     "A prompt file whose header has a model is an assistant for every key."),
    ("vcp:prompts", "vcp.md#prompts",
     ("The prompts of an installation of VCPToolBox are filled as its own message processor fills them: order, "
      "nesting, roles, and what is once in a request.")),
    ("vcp:prompts:folds", "vcp.md#prompts",
     ("Folds and toolboxes are compared with the conversation by the embeddings that the installation names; without "
      "them the base block is shown, and a provider that fails is left alone for a minute.")),
    ("vcp:prompts:served", "vcp.md#prompts",
     "With vcp set, chats and the list of prompts use the installation's prompts."),
    ("placeholder:async:text", "001 §5.1, writing-a-plugin.md#long-running-work, requests.md#placeholders",
     ("The async result placeholder says that a pending task is still running, and becomes a finished one's callback "
      "message, else its body as JSON.")),
)

REPLIES: Final = _now(
    ("reply:placeholders", "003 placeholder syntax, replies.md#structured-replies",
     "{{type:id}} in content is replaced by that attachment in one pass, and not inside code."),
    ("reply:placeholder-faults", "003 common errors, replies.md#what-is-reported",
     "A missing, mismatched or unused attachment is reported in problems and shown."),
    ("reply:attachments", "003 attachment types, replies.md#rendering-a-reply",
     ("mermaid, code with language, latex and image with title attachments render as diagram, code block, formula "
      "and picture.")),
    ("reply:attachments:more", "003 future types, replies.md#structured-replies",
     ("table (columns and rows, CSV or Markdown), chart (a Chart.js configuration), audio and video (data URI or "
      "URL) attachments render.")),
    ("reply:shown", "003 fields, replies.md#rendering-a-reply",
     "think renders as a folded section apart from the content, and content as Markdown."),
    ("parse:linear", "replies.md#what-is-reported, requests.md#what-is-rejected",
     "Every parser and renderer takes time in proportion to its text, whatever the text."),
    ("reply:render", "replies.md#rendering-a-reply",
     "toolyard reply render and toolyard.render_reply give html, markdown, terminal and json."),
    ("reply:failure-shown", "003 error handling, replies.md#rendering-a-reply",
     "A reply that cannot be parsed renders as a warning with the error and the raw text in a fence."),
    ("reply:inert", "replies.md#rendering-a-reply",
     ("Rendered output has no script, no event handler and no remote request, and its fences are longer than what "
      "they hold.")),
    ("reply:seed-examples", "003 full examples",
     "The four full examples of the seed parse and render with nothing missing."),
    ("s:S-60", "replies.md#rendering-a-reply",
     ("Script, event handler, frame, form, base and style payloads in a reply are shown as text or dropped, with no "
      "request and no dialog.")),
    ("s:S-61", "replies.md#rendering-a-reply",
     "Links keep only http, https and mailto, carry noopener noreferrer nofollow and show their host."),
    ("s:S-62", "replies.md#rendering-a-reply, console.md#chat",
     "Remote images in any form cause no request: a card shows the whole URL and a button to load it."),
    ("s:S-63:rendered", "replies.md#rendering-a-reply",
     "A rendered diagram is inert source within size caps, with directives and click lines removed."),
    ("s:S-64:rendered", "replies.md#rendering-a-reply",
     "A rendered formula is allow-listed MathML within caps on input and depth, and errors are escaped."),
    ("s:S-66:rendered", "replies.md#rendering-a-reply", "A rendered SVG stands in an image element only."),
    ("s:S-69:rendered", "replies.md#rendering-a-reply",
     "Titles, ids, problems and error messages of a reply are rendered as text only."),
    ("s:S-65", "replies.md#rendering-a-reply",
     "A code block's class comes from an allow-list, long code is capped and bidirectional controls are made visible."),
    ("s:S-67", "replies.md#rendering-a-reply, http.md#tools",
     "Media are shown only with an allowed type that their first bytes confirm, within size and pixel caps."),
    ("s:S-68", "replies.md#rendering-a-reply",
     ("Attachments are inert: a placeholder or HTML inside one is not expanded, ids keep to their character set and "
      "a missing one shows a warning.")),
    ("s:S-63", "replies.md#rendering-a-reply, console.md#chat",
     ("Diagrams are drawn at the strict level within size, node and 3 s caps with directives removed, and a failure "
      "shows the source.")),
    ("s:S-64", "replies.md#rendering-a-reply",
     "Formulas are drawn without trust and with caps on input, expansion and size, and errors are escaped."),
    ("s:S-66", "replies.md#rendering-a-reply",
     "SVG is shown through an image element only and is downloaded as an attachment with a sandbox policy."),
    ("s:S-69", "console.md#chat", "Manifest texts, file names, error messages and stderr are shown as text only."),
)


# --- Plugins ---

MANIFESTS: Final = _now(
    ("envelope:status:legacy-error", "002 §3.3, manifest.md#what-a-plugin-prints",
     ("A legacy result whose error is a string becomes status error with code EXECUTION_ERROR and that string as "
      "message.")),
    ("envelope:whole", "002 §1, envelope.md#what-plugins-answer",
     ("A plugin answer that is itself a whole envelope is taken as it is, with its context.cwd; what breaks the rules "
      "is put right and told in context.warnings, and the keys of the context that are the host's stay the host's.")),
    ("plugin:discovery", "001 §2, cli.md#toolyard-plugin",
     ("A folder with plugin-manifest.json is a plugin in plugins/ as shipped, in the home's plugins, in the "
      "project's Plugin/ or plugins/ and in each --plugins DIR.")),
    ("plugin:disabled", "cli.md#toolyard-plugin", "A plugin is disabled by plugin-manifest.json.block or by command."),
    ("plugin:unknown-fields", "manifest.md#the-plugin-manifest", "Unknown manifest fields are kept."),
    ("plugin:name", "001 §2.1, manifest.md#fields",
     "A plugin is called by its manifest name and shown by its displayName."),
    ("plugin:required-fields", "001 §2.1, manifest.md#the-plugin-manifest, manifest.md#fields",
     ("A manifest without name, pluginType, entryPoint or a command to run is refused, a missing displayName, "
      "communication or invocationCommands is a warning, and each message names the field, its place and a fix.")),
    ("plugin:type:synchronous", "001 §1, manifest.md#fields",
     "A synchronous plugin is started for each call and its result ends the call."),
    ("plugin:type:unsupported", "manifest.md#fields",
     "messagePreprocessor, service and hybridservice plugins are listed as not supported with the reason."),
    ("plugin:commands", "001 §2.1, 001 §3.3, manifest.md#fields",
     ("A plugin has one or several invocationCommands, each named by command or commandIdentifier, and the chosen "
      "one reaches stdin as command.")),
    ("plugin:timeout", "001 §2.1, manifest.md#fields",
     "communication.timeout is in ms and is 60000 for synchronous and 1800000 for asynchronous plugins by default."),
    ("plugin:extra-fields", "manifest.md#fields",
     "parameters as JSON Schema, risk, idempotent, maxConcurrency, limits and permissions of a manifest take effect."),
    ("plugin:seed-manifests", "001 §2.1, 001 §5.2",
     "The seed's EchoPlugin and Wan2.1VideoGen manifests load with all their fields."),
    ("plugin:documented", "manifest.md#the-plugin-manifest", "Every manifest field appears in docs."),
    ("r:R30", "manifest.md#the-plugin-manifest, cli.md#toolyard-plugin",
     ("A broken, half-written, huge, looping or duplicate manifest skips only that plugin, keeps its last good "
      "version and names line and column.")),
    ("r:R31", "writing-a-plugin.md#install",
     ("When a plugin's folder is deleted or replaced during a call, that call finishes or fails cleanly and new "
      "calls use the new manifest.")),
    ("s:S-83", "writing-a-plugin.md#install",
     "A change of a trusted plugin's manifest or files makes it need review, and it does not run until then."),
    ("plugin:messages", "manifest.md#the-plugin-manifest, cli.md#toolyard-plugin",
     ("A broken manifest that the command line names is told with its problem; types that cannot run are never "
      "offered; misspelt keys get did you mean; lint finds a SyntaxError with its line, and so does the text of a "
      "call; a Windows path in a command is told as such.")),
    ("plugin:missing-settings", "cli.md#toolyard-plugin, manifest.md#settings",
     ("Whether a plugin lacks a setting that it requires is one answer: its state is missing_config in every list, the "
      "doctor warns, lint says so, and it is offered to no model, until the setting is there.")),
    ("plugin:cli:test:uncounted", "writing-a-plugin.md#check-test-run",
     "plugin test leaves no calls, no tasks and no statistics behind."),
    ("plugin:access:read-project", "confinement.md#what-the-owner-decides",
     "An owner can let a plugin read the whole project without letting it change any of it or reach anything else."),
    ("plugin:cli:allow-several", "cli.md#toolyard-plugin",
     ("plugin allow takes several names; a wrong one approves none, and a no to one leaves the others to be asked "
      "about.")),
    ("plugin:dependencies", "writing-a-plugin.md#install",
     ("Installing or upgrading the dependencies of a plugin, in .venv or node_modules, takes its permission away from "
      "no plugin, and no other plugin answers in its place.")),
    ("plugin:bytecode", "writing-a-plugin.md#differences-from-vcptoolbox",
     ("Compiled Python without a source is part of what is reviewed; __pycache__ beside the sources is never read, for "
      "a cache of the host for each fingerprint is used, and it is refused in archives.")),
    ("plugin:risk:confirmed", "manifest.md#fields, cli.md#toolyard-plugin",
     ("A plugin's own risk read counts as execute until its owner confirmed it at the review of exactly these files; "
      "shipped plugins are believed.")),
    ("s:S-84", "manifest.md#what-the-model-reads, writing-a-plugin.md#check-test-run",
     ("Hidden characters are stripped from descriptions, length is capped, lint warns on commands to the model, and "
      "what the model reads is shown exactly.")),
    ("plugin:replaces-file-operator", "000, cli.md#toolyard-plugin, configuration.md#settings",
     ("With built_in.FileOperator = false a plugin of the name FileOperator or ServerFileOperator is used, once it is "
      "allowed, and imported; without it the plugin is told how it can win.")),
    ("s:S-85", "cli.md#toolyard-plugin",
     "A second plugin of the same name is refused, and names of built-in tools are reserved."),
    ("plugin:type:asynchronous", "001 §5.1, 001 §5.2, writing-a-plugin.md#long-running-work",
     "An asynchronous plugin gives a receipt at once and its process lives on."),
    ("plugin:type:static", "manifest.md#fields",
     "A static plugin gives the value of a placeholder, refreshed by refreshIntervalCron."),
    ("plugin:async-description", "001 §5.2, writing-a-plugin.md#long-running-work",
     "Lint warns when the submit command of an asynchronous plugin does not tell the model to repeat the placeholder."),
)

CHILDREN: Final = _now(
    ("plugin:config:file", "001 §2.2, writing-a-plugin.md#settings",
     "config.env in the plugin's folder holds KEY=VALUE lines, and each key is in the child's environment."),
    ("plugin:config:cascade", "001 §2.1, writing-a-plugin.md#settings",
     ("A setting comes from the plugin's config.env, else the host's configuration, else the configSchema default, "
      "and is typed by the schema.")),
    ("plugin:environment", "writing-a-plugin.md#settings",
     ("A child's environment has PATH, its own HOME, LANG, TZ, TMPDIR, the two Python settings, its configuration, "
      "PROJECT_BASE_PATH, SERVER_PORT, VCP_REQUEST_IP, the keys shared by name, and nothing else.")),
    ("plugin:environment:shared", "configuration.md#settings, import.md#hostenv",
     ("The owner shares host keys with a plugin by name in a reviewed list, and keys of the host, its upstream or "
      "other plugins cannot be shared.")),
    ("plugin:environment:publish-keys",
     "001 §3.2, writing-a-plugin.md#links-to-files, http.md#files-that-plugins-publish",
     ("A plugin that names IMAGESERVER_IMAGE_KEY or IMAGESERVER_FILE_KEY gets it, and the address of the server, after "
      "a review that shows it; both are random for each home and masked in logs.")),
    ("plugin:environment:async", "001 §5.3, writing-a-plugin.md#long-running-work",
     "An asynchronous child also has CALLBACK_BASE_URL and PLUGIN_NAME_FOR_CALLBACK."),
    ("plugin:command", "manifest.md#fields",
     ("entryPoint.command is split as a shell would and run in the plugin's folder, without a shell unless the "
      "manifest says shell true; python falls back to our interpreter.")),
    ("plugin:stdin", "001 §1, 001 §3, manifest.md#what-a-plugin-prints",
     "The arguments are one JSON object on stdin, nothing when there are none, and stdin is then closed."),
    ("plugin:any-language", "001 §1, writing-a-plugin.md#writing-a-plugin",
     "Plugins in Python, Node.js, shell and compiled languages run alike."),
    ("batch:plugin", "001 §4.2, writing-a-plugin.md#batches", "The keys of a numbered batch reach a plugin unchanged."),
    ("plugin:stdout", "001 §1, 001 §5.1, writing-a-plugin.md#input-and-answer, writing-a-plugin.md#long-running-work",
     ("The result of a synchronous plugin is the last complete JSON object with a status on stdout, an asynchronous "
      "one's receipt is the first, and other output is kept as a warning.")),
    ("plugin:result", "000 §1.2, 001 §3.1, 001 §3.2, manifest.md#what-a-plugin-prints",
     ("result may be a string (the text), an object with content (its parts, the rest in data) or any JSON, nothing of "
      "it is lost, and _specialAction and payload are kept.")),
    ("plugin:data",
     "001 §3.1, 001 §3.2, 002 §1, 004 base format, envelope.md#what-plugins-answer, dialects.md#dialects",
     ("A plugin's result is in data: a text as data.result, content parts as data.content with media as references "
      "(type, mime, size, name and a path or URL), never as Base64; media of built-in tools likewise.")),
    ("plugin:data:once", "002 §4, dialects.md#dialects",
     "A model never reads the same text twice: data that only repeat the text are not in the shown envelope."),
    ("plugin:vcp-v2", "000 §1.2, dialects.md#vcp",
     ("An answer in VCP v2 comes out of the vcp dialect as it went in, also of the shipped ImageGen and Plotter, and "
      "its details with the content are the envelope's data.")),
    ("plugin:older-forms", "000 §1.1, 001 §3.3, 002 §3.3, manifest.md#what-a-plugin-prints",
     ("{success, data}, {success: false, error} and a bare {error} are read when nothing else was printed, ok, fail "
      "and failed are read as statuses, all with a warning; any other word is named with the allowed ones.")),
    ("plugin:content-generated", "000 §2.2, dialects.md#vcp",
     "Empty content is made from items or results once, with the message first, and details.message is the message."),
    ("plugin:next-step", "002 §4, envelope.md#what-plugins-answer",
     "The text of a plugin's error or partial result ends with a next step when it has none of its own."),
    ("plugin:setting-hint", "001 §4.3, manifest.md#what-a-plugin-prints",
     "A setting that is not set is named in a plugin's failure only when the failure is about that setting."),
    ("plugin:lifecycle", "architecture.md#glossary",
     "The states of a plugin's child and its events are one table; an event that a state does not know is refused."),
    ("plugin:answered", "001 §1.5, 002 §3.3, manifest.md#what-a-plugin-prints",
     ("A complete answer counts after 1 s of silence on stdout although the process does not exit, with a warning; the "
      "process is stopped 10 s later, and TIMEOUT is only for a call without an answer.")),
    ("media:stored", "001 §3.2, dialects.md#dialects",
     "Media that came as bytes are stored once each under tool-output for 7 days, where Read can fetch them."),
    ("plugin:result:error", "001 §3, manifest.md#what-a-plugin-prints",
     "status error with an error string is EXECUTION_ERROR with that message."),
    ("platform:macos", "confinement.md#levels",
     "What only Linux offers is optional, so that plugins also run on macOS."),
    ("p:P4", "operations.md#guarantees, manifest.md#what-a-plugin-prints",
     ("5 s after a call ends no process that it started is alive, setsid and double forks included on Linux; one that "
      "has answered and does not exit has 10 s.")),
    ("p:P5", "operations.md#guarantees",
     ("One bad plugin hurts only itself: other calls go on and the p99 latency of an echo call stays under twice "
      "that of idle.")),
    ("r:R10", "writing-a-plugin.md#limits",
     ("A plugin that sleeps forever gets SIGTERM at its limit and SIGKILL 2 s later, and the call is TIMEOUT within "
      "limit plus 3 s.")),
    ("r:R11", "writing-a-plugin.md#limits",
     "A plugin that ignores SIGTERM, SIGINT and SIGHUP ends as one that sleeps forever."),
    ("r:R12", "operations.md#guarantees",
     "Of 50 forked, double-forked and setsid children none is alive 5 s after the call ends."),
    ("r:R13", "writing-a-plugin.md#limits",
     ("When a background child keeps stdout open, the result is decided 1 s after the parent's exit and the child is "
      "killed.")),
    ("r:R14", "limits.md#plugins",
     "1 GB on stdout ends as OUTPUT_TOO_LARGE at 16 MiB and the host grows by less than 64 MiB."),
    ("r:R15", "limits.md#plugins",
     "1 GB on stderr keeps 64 KiB of head, 256 KiB of tail and a count, and the result is unaffected."),
    ("r:R16", "operations.md#guarantees", "1 GB on both outputs with 50 MB of unread input causes no deadlock."),
    ("r:R17", "writing-a-plugin.md#input-and-answer",
     "A plugin that closes stdin at once is no error when valid JSON comes."),
    ("r:R18", "manifest.md#what-a-plugin-prints",
     ("Invalid UTF-8 on stdout gives partial with a note of the byte offset when the JSON still parses, else "
      "INVALID_OUTPUT with a hex preview.")),
    ("r:R19", "writing-a-plugin.md#errors",
     "Partial JSON followed by an exit or a signal fails with the first 2 KiB of stdout and the last 2 KiB of stderr."),
    ("r:R20", "writing-a-plugin.md#input-and-answer",
     ("With log lines around the JSON the last valid object with status is used, and the lines are a STDOUT_NOISE "
      "warning.")),
    ("r:R21", "limits.md#calls-and-results",
     ("JSON over many lines, braces in strings, a line of 10 MB, NaN and duplicate keys are handled in linear time, "
      "and depth over 200 is INVALID_OUTPUT.")),
    ("r:R22", "writing-a-plugin.md#input-and-answer",
     ("Of two JSON objects a synchronous call takes the last with a warning, and an asynchronous one takes the first "
      "as its receipt.")),
    ("r:R23", "writing-a-plugin.md#input-and-answer",
     "When exit code and status disagree, the JSON is trusted and the mismatch is recorded."),
    ("r:R24", "envelope.md#reasons", "A plugin that exits without output is NO_OUTPUT."),
    ("r:R25", "writing-a-plugin.md#long-running-work",
     ("A task whose process dies after the receipt without callback fails after 30 s, unless the manifest says "
      "detached.")),
    ("r:R26", "limits.md#plugins", "An asynchronous plugin that sends no receipt is killed and timed out at 60 s."),
    ("r:R27", "writing-a-plugin.md#long-running-work, limits.md#plugins",
     "An asynchronous child that runs past its total limit is killed and timed out."),
    ("r:R28", "envelope.md#reasons",
     ("A command that cannot start is START_FAILED with a message that names the file and suggests a fix, and other "
      "plugins are fine.")),
    ("r:R32", "limits.md#plugins, envelope.md#context",
     ("200 calls to a plugin of maxConcurrency 4 queue in order, and beyond the queue limit they are BUSY with a "
      "retry hint.")),
    ("r:R33", "limits.md#plugins, operations.md#guarantees",
     "Fork bombs, full disks, open files and CPU loops meet resource limits, and /healthz answers in under 1 s."),
    ("s:S-80", "writing-a-plugin.md#settings",
     ("A plugin that prints its environment shows only the allowed keys and no key of the host, its upstream or "
      "other plugins.")),
    ("s:S-81", "manifest.md#fields, writing-a-plugin.md#install",
     ("Shell syntax in entryPoint.command runs nothing else, the binary is in the plugin's folder or a known "
      "interpreter, and the review shows the command untruncated.")),
    ("s:S-82", "writing-a-plugin.md#input-and-answer", "Argument values reach a plugin only as JSON on stdin."),
    ("s:S-88", "manifest.md#fields, limits.md#plugins", "Resource limits bound what any plugin can use."),
    ("s:S-90", "confinement.md#levels, configuration.md#project-and-home",
     "config.env and state files are mode 0600, every plugin runs confined, and the level that was reached is shown."),
    ("confinement:own-processes", "confinement.md#levels",
     "With the setting bubblewrap, programs see no processes but their own; without the program, their level says so."),
    ("confinement:escape", "confinement.md#what-every-program-may-reach",
     ("A plugin in Python, Node or bash that tries to reach files, processes, sockets, networks or privileges which "
      "it was not granted is stopped, on every start path and by the level that the attempt names.")),
    ("confinement:escape:control", "confinement.md#what-the-owner-decides",
     "Every such attempt succeeds when the plugin runs unconfined, where trying that is harmless."),
    ("confinement:denied", "confinement.md#what-the-owner-decides",
     ("The error of a plugin or an MCP server that lacks access to a file or a host says that its confinement may be "
      "the reason, and how its owner allows more.")),
    ("confinement:missing-paths", "confinement.md#what-a-plugin-declares",
     ("A folder of the project that a program may write is created; of another path that does not exist, the review, "
      "lint and the error say that nothing is granted there.")),
    ("confinement:capabilities", "confinement.md#how-it-works",
     "A confined program has no capability, whoever the server runs as; of root's, it keeps those for files."),
    ("confinement:level", "confinement.md#levels",
     ("The level that is reached and everything that is missing for the next one are named, and nothing runs below a "
      "demanded one.")),
    ("confinement:files", "confinement.md#what-every-program-may-reach",
     ("A program reads the system, its interpreter and its own folder, and writes its data folder; what it is granted "
      "besides never holds the home of Toolyard, the home of the user or another plugin.")),
    ("confinement:landlock", "confinement.md#levels",
     "Landlock is used from the first version of its interface on, with whatever the version knows."),
    ("confinement:seccomp", "confinement.md#how-it-works",
     "System calls that no confined program needs are refused on every supported kind of machine, all others allowed."),
    ("confinement:chroot", "confinement.md#levels",
     "In a chroot whose root is no mount, programs start confined to files, and what cannot be enforced is named."),
    ("confinement:unprivileged", "confinement.md#how-it-works",
     "A user without privileges gets covered folders and a network of its own by user namespaces."),
    ("confinement:links", "confinement.md#links",
     ("No path of a profile is opened through a link, except to where its owner saw it lead in a review; what is now "
      "a link, or leads elsewhere, needs a new one. What is replaced during a start is not granted.")),
    ("confinement:root-only", "confinement.md#how-it-works",
     "Under root, what only root may read below /etc is not readable for programs, at any depth."),
    ("confinement:own-mounts", "confinement.md#what-every-program-may-reach",
     "Nothing but what a program may write can be changed in mode, owner, times or attributes at the level full."),
    ("s:S-91", "operations.md#where-the-state-lives, envelope.md#context",
     "A planted secret appears in no journal, log, event or upstream body: it is masked, and masking fails closed."),
    ("s:S-91:data", "http.md#tools, tools.md#common-behaviour-of-writing-tools",
     ("Over HTTP the exact secrets of the host and of plugins are masked in data as in text, and a write that would "
      "put the mask into a file is INVALID_PARAM.")),
    ("plugin:warm:same", "writing-a-plugin.md#warm-starts",
     "A plugin started warm gives the same result as one started cold."),
    ("plugin:warm:bounded", "writing-a-plugin.md#warm-starts",
     "Warm processes are bounded in number and memory, end when idle, and never outlive the host."),
    ("plugin:warm:random", "writing-a-plugin.md#warm-starts",
     "Each source of randomness that an import leaves is reseeded for every call, or is a reason not to fork."),
    ("plugin:warm:fallback", "writing-a-plugin.md#warm-starts",
     "Whatever goes wrong with a warm start ends in a cold one."),
    ("plugin:paused-host", "manifest.md#what-a-plugin-prints",
     ("A plugin that ended, answered or called back within its limit has done so in time, although its host stood "
      "still and sees the limit first.")),
    ("plugin:usual-limits", "manifest.md#fields, services.md#hardening, containers.md#one-machine",
     ("A plugin or MCP server that declares no limits has those of the settings: memory, processor time and the size "
      "of a file. The unit and the compose files limit all of them together, and images are named by their digest.")),
    ("server:address-space", "operations.md#guarantees",
     ("A server whose address space is limited answers every call: with its result, or by saying that it is short of "
      "memory. No hand-over to a thread waits for one that has ended, and the server lives on.")),
    ("plugin:warm:apart", "confinement.md#how-it-works",
     ("No call of a plugin can read, write or signal a process of another call of it, nor one that waits for a call, "
      "and whatever somebody puts into a waiting process never reaches a call.")),
    ("r:R29", "mcp.md#how-they-run",
     ("A long-lived plugin that crashes 5 times in 60 s restarts with backoff from 1 s to 60 s, then stays failed "
      "until started by hand.")),
    ("s:S-89", "writing-a-plugin.md#differences-from-vcptoolbox",
     "A plugin gets only its callback token, or a scoped token when its manifest's permissions ask for it."),
    ("network:own-network", "confinement.md#how-it-works",
     "A plugin with a list of hosts reaches these and nothing else; one without a network can still call back."),
    ("network:restart", "confinement.md#how-it-works",
     ("A task with a limited network outlives its server: it calls back to the next one and reaches its hosts, also "
      "while the server is away.")),
    ("network:hosts", "confinement.md#how-it-works",
     ("permissions.network lists names, names below a name, addresses and ranges, each with an optional port; without "
      "one they stand for the ports 80 and 443.")),
    ("network:proxy", "confinement.md#how-it-works",
     ("A plugin with a list of hosts reaches them with ordinary HTTP clients through the host's proxy, and a 403 says "
      "why it cannot reach another.")),
    ("network:proxy:addresses", "confinement.md#how-it-works",
     ("The proxy looks a name up once, refuses it when any of its addresses is neither public nor declared, and "
      "connects to the address that was checked.")),
    ("network:proxy:http", "confinement.md#how-it-works",
     ("Each request through the proxy is checked anew, and no client and server can read different messages in what "
      "passes through it.")),
    ("network:proxy:bounds", "operations.md#guarantees",
     "Connections, heads, look-ups and silence of the proxy and of forwarded ports are bounded."),
    ("network:ports", "confinement.md#how-it-works",
     ("The host serves listening sockets of a plugin's network namespace, also such that come through a channel, until "
      "it closes them with all their connections.")),
)

PLUGIN_COMMANDS: Final = _now(
    ("plugin:cli:state", "cli.md#toolyard-plugin",
     ("toolyard plugin list shows each plugin's state, allow records trust in exactly the present content, and "
      "enable and disable switch it without touching its manifest.")),
    ("shipped:echo", "001 §2.1, tools.md#shipped-plugins",
     "The shipped Echo plugin returns its text with the configured prefix."),
    ("shipped:calculator", "001 §3.1, tools.md#shipped-plugins",
     "The shipped SciCalculator evaluates an expression and answers in the seed's wording."),
    ("shipped:image", "001 §3.2, 001 §4.3, tools.md#shipped-plugins",
     "The shipped ImageGen returns text and an image and takes size for resolution."),
    ("shipped:image:keys", "001 §2.2, tools.md#shipped-plugins",
     "ImageGen sends a vendor's key to that vendor's address only; such a key alone chooses address and model."),
    ("shipped:video", "001 §5, tools.md#shipped-plugins",
     ("The shipped VideoGen gives a receipt with the placeholder, in the words of the document, and then calls back, "
      "with submit and query.")),
    ("shipped:plotter", "001 §3.2, tools.md#shipped-plugins",
     "The shipped Plotter draws functions and data to a picture, offline."),
    ("shipped:texts", "tools.md#shipped-plugins, cli.md#toolyard-plugin",
     ("The forms of the shipped plugins mark what is required, offer closed lists as choices, and are in English and "
      "Chinese; what they answer is in English; a plugin without any of the keys it can use needs configuration.")),
    ("shipped:timelapse", "001 §5, tools.md#shipped-plugins",
     "The shipped Timelapse renders an animation over many seconds with progress and then calls back, offline."),
    ("shipped:shell", "tools.md#shipped-plugins",
     ("The shipped Shell runs a command in the project within limits, and gives its exit code and its output in order, "
      "with what was left out.")),
    ("shipped:shell-off", "tools.md#shipped-plugins",
     "Shell is off until its owner enables it, and the list says how."),
    ("shipped:shell-confined", "tools.md#shipped-plugins",
     "A command of Shell writes the project, reaches no network, and is refused below the level files."),
    ("shipped:shell-sessions", "tools.md#shipped-plugins",
     "A session of Shell keeps the working folder and the exported variables; sessions are listed and removed."),
    ("shipped:shell-approval", "tools.md#shipped-plugins, cli.md#toolyard-approval",
     "Shell asks every time unless a rule is about exactly its arguments, and always inside a session."),
    ("approval:exact", "manifest.md#fields, cli.md#toolyard-approval",
     ("A tool with exact approval asks in the mode auto too, and a rule allows it only by its complete arguments, "
      "never with an argument that always asks.")),
    ("plugin:off-by-default", "manifest.md#fields",
     "A plugin with enabledByDefault false is disabled until its owner enables it."),
    ("plugin:progress", "writing-a-plugin.md#progress",
     ("PROGRESS lines on the stderr of a running plugin are events, which toolyard call shows and MCP clients get as "
      "progress.")),
    ("cli:trust", "cli.md#common-options",
     "--plugins DIR, which may be repeated, adds a plugin folder, and --trust accepts its plugins for this run only."),
    ("plugin:cli:new", "cli.md#toolyard-plugin", "toolyard plugin new makes a plugin that passes lint and test."),
    ("plugin:cli:lint", "cli.md#toolyard-plugin",
     "toolyard plugin lint names each fault of a manifest with its place."),
    ("plugin:cli:test", "cli.md#toolyard-plugin", "toolyard plugin test runs the plugin's own cases and reports each."),
    ("plugin:cli:test:saved", "console.md#tools",
     "A call is saved as a case of its plugin, which toolyard plugin test runs, and what may run stays the same."),
    ("plugin:cli:run", "cli.md#toolyard-plugin",
     "toolyard plugin run runs one plugin by its folder and shows its raw output."),
    ("plugin:cli:install", "cli.md#toolyard-plugin",
     ("toolyard plugin install takes an archive, a folder or a git address and runs nothing from it, and remove "
      "takes the plugin away.")),
    ("s:S-86", "writing-a-plugin.md#install",
     ("Hostile archives (paths, links, devices, sizes, names, modes) are refused and leave nothing behind; only "
      "regular files and folders within the caps are extracted.")),
    ("s:S-87", "writing-a-plugin.md#install",
     ("Install sources are https on an allow-list, git addresses cannot inject options or helpers, and the commit is "
      "pinned and shown.")),
)


# --- Durable state and many hosts ---

CALLBACKS_AND_TASKS: Final = _now(
    ("callback:address", "001 §5.3, http.md#callbacks",
     ("CALLBACK_BASE_URL is http://127.0.0.1:PORT/plugin-callback/~TOKEN, so that base, plugin and id make the "
      "address with a token per call.")),
    ("callback:stored", "001 §5.1.6, architecture.md#how-a-call-flows, http.md#callbacks",
     ("An accepted callback is stored with its event in one transaction before anything is pushed, and answers 200 "
      "with status success.")),
    ("callback:listener", "writing-a-plugin.md#long-running-work",
     "Every process that starts asynchronous children has a loopback callback listener of its own."),
    ("callback:status", "001 §5.3, writing-a-plugin.md#long-running-work",
     "Callback status Failed, error or PollingTimeout fails the task and anything else succeeds."),
    ("task:named", "001 §5.1, writing-a-plugin.md#long-running-work",
     "A receipt with the async result placeholder, or a callback, names a task by plugin and id."),
    ("task:query", "001 §5.2, writing-a-plugin.md#long-running-work",
     "An answer of an asynchronous plugin without a placeholder, such as query, is final."),
    ("task:readopted", "operations.md#after-a-crash, http.md#start-and-shutdown",
     ("A child after its receipt outlives a restart of the host: it is found by pid and start time, its token stays "
      "valid and its total limit holds.")),
    ("task:states", "operations.md#states",
     ("A task moves through the states of the table by compare and set, a terminal state is final, and each move and "
      "its numbered event are in one transaction.")),
    ("r:R50", "http.md#callbacks",
     "A duplicate callback of the same body answers 200 with duplicate true and makes no second event."),
    ("r:R51", "http.md#callbacks",
     "A duplicate callback of another body answers 409, the first is kept and the second is in the audit."),
    ("r:R52", "http.md#callbacks", "An unknown id, unknown plugin or bad token answers 404 or 401 and writes nothing."),
    ("r:R53", "writing-a-plugin.md#long-running-work",
     "A callback before the receipt is held and then applied in order."),
    ("r:R54", "http.md#callbacks", "A callback after cancel or timeout answers 409 and goes to the audit only."),
    ("r:R55", "http.md#callbacks, writing-a-plugin.md#long-running-work",
     "Callbacks are accepted while the host drains, and the example plugin tries 5 times with backoff."),
    ("r:R56", "http.md#callbacks",
     "Huge, slow, endless, mistyped, invalid and deep callback bodies answer 413, 408, 415 or 400 within the limits."),
    ("r:R57", "operations.md#performance",
     "1000 callbacks per second for 1000 tasks are all stored, at p99 under 50 ms."),
    ("r:R58", "writing-a-plugin.md#long-running-work, http.md#callbacks",
     "A task id with slashes, dots, NUL, escapes or 10 KB answers 400 and is never a file name."),
    ("s:S-01", "http.md#callbacks",
     ("A callback without its call's random 256-bit token answers 401 and leaves no trace; tokens are per call, "
      "stored as hashes and die with the task.")),
    ("s:S-02", "writing-a-plugin.md#long-running-work, http.md#callbacks",
     ("Callback ids outside letters, digits, underscore, dot and hyphen or over 128 characters answer 400, and no "
      "path appears on disk.")),
    ("s:S-03", "http.md#callbacks, operations.md#guarantees",
     "A second, different body for one id answers 409 and is audited, and the first stays."),
    ("s:S-04", "http.md#callbacks",
     ("Authorisation is checked before a body is read, and a body of 300 MB or extreme depth answers 413 or 400 "
      "before it is parsed.")),
    ("s:S-05", "http.md#records",
     "Ids of tasks, calls and approvals are random with at least 122 bits and never sequential."),
    ("task:call-waits", "cli.md#toolyard-call",
     "toolyard call of an asynchronous plugin waits for the task and shows progress, unless --detach is given."),
)

SCHEDULES_AND_APPROVALS: Final = _now(
    ("schedule:run", "001 §4.1, cli.md#toolyard-schedule",
     ("timely_contact as YYYY-MM-DD-HH:mm in the configured zone or ISO 8601 with offset runs the call at that time, "
      "and the model gets a receipt with its id and the time with offset.")),
    ("schedule:invalid", "cli.md#toolyard-schedule", "A past or malformed timely_contact is INVALID_PARAM."),
    ("approval:who", "chat.md#approvals, http.md#keys-and-scopes, python.md#answering-a-model",
     ("Calls from the command line, Python and a key with scope tools run without asking; calls from chat, MCP and "
      "schedules ask before write, execute and network in the default mode ask.")),
    ("auto-safe:kinds", "chat.md#approvals",
     ("auto-safe asks before files that other programs execute or load, told by their kind: hidden files, start-up "
      "files, code that configures, builds or starts, what stands in folders that frameworks load, definitions of "
      "builds, tasks and infrastructure, programs, and whatever begins with #!.")),
    ("approval:auto-safe", "chat.md#approvals",
     ("A chat in mode auto-safe, for keys that may answer approvals, runs undoable changes of our own file tools "
      "unasked and journals why; protected places, links to them, what other programs run or obey by themselves, and "
      "all else still ask.")),
    ("approval:checked-first", "chat.md#approvals",
     ("Arguments are checked before anybody is asked: each item of a batch, and those of a plugin against the command "
      "that it names.")),
    ("approval:survives", "chat.md#approvals",
     ("A question of a chat survives a crash of its server; its call runs once when it is allowed, and is told as "
      "never begun when it cannot be taken over.")),
    ("approval:refused", "envelope.md#reasons", "A refused approval is ACCESS_DENIED with reason DENIED."),
    ("r:R40", "operations.md#times",
     "After the clock jumps 2 h ahead, due schedules fire once each in due order and no timeout fires early."),
    ("r:R41", "operations.md#times", "After the clock jumps 2 h back nothing fires twice."),
    ("r:R42", "operations.md#times",
     ("A local time in a daylight saving gap means the next valid minute and in a fold the first, shown with offset; "
      "leap days and 2038 work.")),
    ("r:R43", "operations.md#times",
     ("After downtime a schedule overdue by at most 1 h runs once, marked late, and an older one is expired and can "
      "be run by hand.")),
    ("r:R44", "operations.md#times", "Suspend and resume of the machine is treated as downtime."),
    ("r:R45", "operations.md#times", "A schedule does not fire while the same id still runs."),
    ("schedule:clock-back", "operations.md#times",
     ("A repeating schedule goes on by the clock of now after that jumped ahead and back, and is not run again for the "
      "time that it ran for last.")),
    ("r:R46", "operations.md#performance",
     "10000 schedules in one minute are all claimed and queued with no stall over 100 ms."),
    ("r:R100", "chat.md#approvals", "An approval nobody answers is denied after 5 min and the model is told."),
    ("r:R101", "operations.md#after-a-crash",
     "A pending approval survives a restart or its call ends interrupted, and a late click gets 409."),
    ("r:R102", "cli.md#toolyard-approval", "Of allow and deny by two people the first wins and both see the result."),
    ("r:R103", "chat.md#approvals",
     "An approval binds to the hash of tool and arguments, and changed arguments need a new one."),
    ("r:R104", "cli.md#toolyard-approval",
     "An always rule still holds after restart and reload, and revoking it works at once."),
    ("s:S-15", "chat.md#approvals",
     ("Writing a protected path (.git/hooks, shell profiles, our configuration and data, manifests) needs approval "
      "even in auto mode and even when it is missing; a path counts by where it leads, in every mode.")),
    ("s:S-29", "operations.md#times",
     "A scheduled call is checked for approval when submitted and again when run, with the hash of its arguments."),
    ("s:S-95", "chat.md#approvals",
     "An approval binds to the sha256 of tool, canonical arguments, manifest hash and caller."),
    ("s:S-96", "chat.md#approvals",
     ("An always rule is never offered for the protected class or wider than tool and command: a call that names no "
      "command of a tool that has some makes none.")),
    ("s:S-97", "cli.md#toolyard-approval", "The deny list beats the allow list, which beats the mode."),
    ("caller:identity", "tools.md#common-behaviour-of-writing-tools",
     "A caller is the key, the Yard object or cli:PROJECT, and its reads are remembered in the store."),
    ("s:S-99", "chat.md#approvals", "Nothing said in chat text or in a tool result approves anything."),
    ("s:S-98", "console.md#approvals",
     ("An approval shows its full arguments as plain text with hidden characters visible, focuses Deny and ignores "
      "Enter for the first 500 ms.")),
)

STORAGE_AND_HOSTS: Final = _now(
    ("store:twins", "architecture.md#layout",
     "The in-memory, SQLite and PostgreSQL stores pass the same contract tests, and the in-memory one is public."),
    ("hosts:runner", "architecture.md#rules", "Schedules and workers run tools through the same runner as everyone."),
    ("p:P2", "operations.md#guarantees",
     ("One call runs at most once by itself: a run cut by a crash ends as interrupted and is rerun only by an "
      "explicit retry or when idempotent.")),
    ("p:P8", "operations.md#guarantees",
     ("The first terminal state wins: later callbacks change nothing, are recorded and answer 200 when equal and 409 "
      "when different.")),
    ("p:P9", "operations.md#guarantees",
     "A client that reconnects with its last event number gets each later event exactly once or is told of a gap."),
    ("trust:encrypted-secrets", "operations.md#encrypted-secrets",
     ("What has to be read again as it was, the arguments of schedules, calls between hosts and answers to idempotent "
      "requests, is encrypted in the state: with a 0600 key file of the home, or with the cluster_key in a shared "
      "database. Older records stay readable, and a lost or wrong key is an error that names the fix.")),
    ("trust:signed-announcements", "many-hosts.md#the-cluster-key",
     "With a cluster_key the tools of a host whose announcement is not signed, or was changed, are not offered."),
    ("trust:signed-calls", "many-hosts.md#the-cluster-key",
     ("With a cluster_key calls between hosts and their results are signed; unsigned, changed and repeated ones are "
      "refused with an event, and a host with another key does not start.")),
    ("r:R02", "reliability.md#guarantees-and-their-tests",
     ("After kill -9 of the host children of synchronous calls die within 2 s, and asynchronous children after their "
      "receipt are adopted again.")),
    ("r:R07", "envelope.md#reasons",
     "A plugin killed for memory fails as EXECUTION_ERROR that names signal 9, and the host lives."),
    ("cli:records", "cli.md#records",
     ("toolyard task list, show, cancel and retry, schedule list, add and cancel, approval list, allow, deny and "
      "rules, and journal list, show and tail do so.")),
    ("journal:undo", "cli.md#toolyard-journal",
     "Undo restores the file before a write or a delete when it is unchanged since."),
    ("backup:restore", "operations.md#back-up-and-restore",
     "A backup restored into an empty home gives the same tasks, schedules, rules and journal."),
    ("clock:one", "architecture.md#rules",
     "All time comes from one Clock, which tests replace, and no other module reads the time."),
    ("crash:invariants", "reliability.md#fault-injection, reliability.md#invariants",
     ("Every transaction, rename, spawn, write, store, publish and claim has a named crash point, and the ten "
      "invariants hold after a fault at each.")),
    ("hosts:shared", "many-hosts.md#many-hosts",
     ("toolyard serve and any number of toolyard worker on one PostgreSQL database share all state, and a call goes "
      "to a host whose plugins have the tool.")),
    ("hosts:forms", "many-hosts.md#which-host-runs-a-call",
     ("A plugin of another host has the same form for each of its commands as one of this host; announcements of the "
      "version before are read, and it can read those of this one.")),
    ("hosts:killed-worker", "many-hosts.md#guarantees",
     "The calls of a killed worker are found and end as the promises say."),
    ("hosts:fencing", "many-hosts.md#guarantees",
     ("A host confirms with a token that grows, as the last step before a child gets its input, that a call is still "
      "its own: what ended while it stood still never starts, and a result with an older token is refused.")),
    ("hosts:lease", "many-hosts.md#guarantees",
     ("A host is lost only when its lease ran out on the database's own clock. The lease outlasts the longest wait of "
      "its renewal, which waits behind no other lock, and host.up follows every host.lost that comes back.")),
    ("hosts:one-story", "many-hosts.md#guarantees",
     ("What a client was told about a call is what the journal keeps, and a database that does not answer is told as "
      "such.")),
    ("hosts:campaign", "reliability.md#fault-injection",
     ("While servers, workers, the database and the network are killed, paused and stalled, an observer with a ledger "
      "of its own finds no call lost, doubled, started after its end, or told differently from the journal.")),
    ("hosts:event-numbers", "many-hosts.md#guarantees",
     "The numbers of events that a client sees have no holes: what hosts tell each other takes none."),
    ("p:P1", "operations.md#guarantees",
     "What an HTTP call acknowledged with 2xx is on disk and survives kill -9 and power loss."),
    ("p:P3", "operations.md#guarantees",
     "Each started call reaches a terminal state within its total limit plus 10 s, also across restarts."),
    ("p:P6", "operations.md#guarantees",
     "Memory, disk, open files, queues and event backlog are bounded, and over a limit comes a clear error."),
    ("p:P7", "operations.md#guarantees",
     "Every file we write (user file, configuration, state) is the old or the new bytes after any crash."),
    ("p:P10", "operations.md#guarantees", "When an outcome is unknown, the state says unknown."),
    ("r:R01", "reliability.md#guarantees-and-their-tests",
     ("After kill -9 at every crash point the invariants hold, acknowledged work is there and cut calls are "
      "INTERRUPTED.")),
    ("r:R03", "http.md#start-and-shutdown",
     ("SIGTERM stops new work with 503, still takes callbacks, waits 20 s, kills the rest and exits 0 with every row "
      "terminal.")),
    ("r:R03b", "operations.md#after-a-crash", "After a crash every old row is terminal or can be cancelled."),
    ("r:R04", "http.md#start-and-shutdown", "A second SIGTERM or SIGINT stops at once with the same invariants."),
    ("r:R05", "http.md#http-and-websocket", "A second host on one home exits 3 with a clear message."),
    ("r:R06", "operations.md#when-the-state-is-damaged",
     ("A corrupt, truncated, read-only or newer database refuses to start with its path and how to fix it, and is "
      "never overwritten; a restore is suggested only for what is damaged.")),
    ("r:R08", "reliability.md#guarantees-and-their-tests",
     "After a simulated power cut everything acknowledged is there."),
    ("r:R60", "operations.md#performance",
     "With 10000 pending tasks start takes under 3 s, a list page under 200 ms and memory under 200 MiB."),
    ("r:R61", "operations.md#performance", "With a million journal rows listing and searching take under 300 ms."),
    ("r:R62", "reliability.md#guarantees-and-their-tests",
     "A full disk leaves the old file intact with EXECUTION_ERROR, refuses new work with 507 and recovers by itself."),
    ("r:R63", "reliability.md#guarantees-and-their-tests",
     ("Full inodes, quota, read-only remount and fsync errors are treated as a full disk, and no fsync error is "
      "ignored.")),
    ("r:R65", "http.md#health", "A slow log disk drops the oldest log lines with a counter, and calls do not wait."),
    ("r:R99", "operations.md#retention", "The retention sweep under heavy use never causes a locked database."),
    ("doctor:plugins", "troubleshooting.md#troubleshooting",
     "The doctor names each plugin that is broken, waits for a review or lacks settings, with what to do."),
    ("doctor:providers", "troubleshooting.md#troubleshooting",
     "The doctor asks each model provider and says what a failing one answered, with what to do; keys are masked."),
    ("project:wide", "troubleshooting.md#the-project-would-be-the-home-folder-or-the-whole-disk",
     ("A command that lets models use the project refuses the whole disk and the home folder unless --project names "
      "them; the doctor warns of them.")),
    ("doctor:integrity", "operations.md#when-the-state-is-damaged",
     ("A state is checked quickly at the start of a server, as a whole by the doctor and beside the work of a server "
      "each week; damage is told with the part it is in and what that is for.")),
    ("doctor:repair", "cli.md#toolyard-doctor",
     ("doctor --repair builds a state anew from its records and events, with every index, and keeps it as it was; "
      "records that cannot be read are left for a backup.")),
    ("schedule:damaged-index", "operations.md#when-the-state-is-damaged",
     "A schedule that is due is found although its index is damaged, or the damage is told."),
    ("home:unwritable", "operations.md#when-the-state-is-damaged, http.md#errors",
     ("A full disk at the start, in settings, keys and everything else that is stored answers 507 in words; a "
      "read-only home is named as such and no backup is suggested for it; a call that cannot be recorded does not "
      "run.")),
    ("state:size", "operations.md#retention",
     ("Large results are stored compressed, and the limit of the state's size holds for things of any age: whole "
      "results go before the calls themselves.")),
    ("plugin:left-out", "cli.md#toolyard-plugin",
     ("Of a folder with more than 2,000 plugin folders the first by name count, and how many are left out is told by "
      "the list of plugins and by the doctor.")),
    ("state:named-alike", "operations.md#when-the-state-is-damaged",
     ("A state file with a foreign table, a missing table or index, or without a format number is refused and named in "
      "the same words by the server, the commands and the doctor.")),
    ("store:migrations", "upgrade.md#what-happens-to-the-state",
     ("A state of any older format, from format 1 on, is brought to the latest one by numbered steps at the first use, "
      "in both stores: once under a lock, with a copy of it first, all steps or none.")),
    ("store:owner-lock", "operations.md#where-the-state-lives",
     "toolyard call and toolyard.open never take the owner's lock of a home."),
    ("make:soak", "reliability.md#reliability-the-guarantees-and-their-tests",
     "make soak runs the full sweeps: every crash point, kill sweep and long fuzz."),
    ("make:bench", "many-hosts.md#performance",
     "make bench measures side by side with peers and limits and prints ratios."),
    ("r:R64", "operations.md#limits",
     ("At the open file limit accepting pauses and recovers without a crash; before it, connections leave files for "
      "plugin starts.")),
    ("limits:defaults", "limits.md#limits, http.md#health",
     "Every limit has the default of the table and can be configured."),
    ("cli:journal:waits", "cli.md#toolyard-journal",
     "The journal says of a call that waits for approval that it waits."),
)

STORAGE_AND_HOSTS_TO_COME: Final = _later(
    Area.ENGINE,
    ("make:test-time", "reliability.md#reliability-the-guarantees-and-their-tests",
     "make test ends within 10 minutes on 2 cores, with long sweeps sampled."),
)

CONTAINERS: Final = _now(
    ("container:image", "containers.md#the-image, containers.md#one-machine",
     ("The image runs Toolyard as an unprivileged user behind an init, on a read-only root file system, with its home "
      "in a volume that survives, a health check and a graceful end; it has no build tools.")),
    ("container:lock", "containers.md#the-image",
     "The image installs the locked versions of what Toolyard and PostgreSQL need, and no build tools."),
    ("container:compose", "containers.md#one-machine",
     "compose.yaml starts a server with one command, and TOOLYARD_PUBLIC_URL says how it is reached."),
    ("container:cluster", "containers.md#a-cluster",
     "compose.cluster.yaml starts two servers, three workers and PostgreSQL with one command and keys of its own."),
    ("container:machine-name", "containers.md#the-image, operations.md#after-a-crash",
     ("What a process left behind under another name of the machine, such as that of an earlier container, is settled "
      "as soon as no process of that name uses the home.")),
    ("install:clean-debian", "installing.md#installing",
     ("On clean Debian 12 and 13, as root and as an ordinary user, the README's commands, the wheel with pip, pipx and "
      "uv, and a part of the suite work; without a network too once they are installed.")),
)

# --- The server and its chat ---

CHAT: Final = _now(
    ("chat:completions", "chat.md#chat", "POST /v1/chat/completions answers in OpenAI's shape, whole and streamed."),
    ("chat:loop", "chat.md#tools",
     "A reply with tool requests runs them and asks the model again with their results, until a reply has none."),
    ("chat:native", "chat.md#tools",
     "Native tool calls run through the same runner and go back as role tool."),
    ("chat:parallel", "chat.md#tools",
     "The calls of one reply run at the same time within the limits, and results keep the order of the blocks."),
    ("chat:forbidden", "chat.md#details",
     "[[VCPToolUse=Forbidden]] in a system message turns parsing off for that request."),
    ("chat:placeholders", "001 §5.1, chat.md#placeholders",
     "Placeholders of a chat request, finished async results included, are filled before it goes upstream."),
    ("chat:shown", "chat.md#tools", "The model gets the shown envelope of each call."),
    ("chat:reason-shown", "002 §4, chat.md#what-the-client-sees-of-tool-calls",
     "The line of a failed call in a reply, and the error of /v1/human/tool, have the reason and what to do next."),
    ("chat:media", "000 §3, chat.md#what-the-client-sees-of-tool-calls",
     ("Pictures, sounds and films of tools reach clients of /v1/chatvcp and of marked calls as what plays them, by "
      "MIME type, and play in the console's chat; their bytes do not go back to the model.")),
    ("chat:upstream", "chat.md#model-providers",
     "The upstream comes from OPENAI_BASE_URL and OPENAI_API_KEY or from API_URL and API_Key."),
    ("chat:fault-words", "chat.md#faults",
     ("A connection that fails is explained in plain words with advice, its details go to the log, and a provider's "
      "refusal shows its status, its code and its words.")),
    ("chat:tour", "chat.md#model-providers",
     ("Without an upstream the built-in model tour answers the same way each time and really calls tools, and GET "
      "/v1/models lists it or else the upstream's models.")),
    ("chat:interrupt", "chat.md#replies-that-survive", "POST /v1/interrupt with requestId or chat stops that turn."),
    ("chat:vcp-route", "chat.md#what-the-client-sees-of-tool-calls",
     "POST /v1/chatvcp/completions serves chat as VCP clients expect."),
    ("chat:stream-resume", "chat.md#replies-that-survive", "GET /v1/chats/{id}/stream continues a running reply."),
    ("media:store", "operations.md#retention, http.md#media",
     ("Media of tools are whole files under the hash of their bytes that only their owner reads, for seven days and "
      "within 512 MiB and 4096 files.")),
    ("media:markdown", "chat.md#pictures-and-other-media",
     ("A picture of a tool is a Markdown image, up to 16 KiB with its data in the address, and a sound or a film is a "
      "link.")),
    ("media:back", "chat.md#pictures-and-other-media",
     "Media of ours in an answer that a client sends back are short markers when the model sees them."),
    ("media:refused", "chat.md#tools",
     ("A provider that refuses the media of tools is asked once more with markers in their place, and that is "
      "remembered.")),
    ("memory:rounds", "chat.md#what-the-model-remembers",
     ("The tool rounds behind an answer are in the next request of the same key that has exactly its text, with the "
      "model's own last words in its place.")),
    ("memory:text-form", "chat.md#what-the-model-remembers",
     "Native rounds are text in a request that carries no tools."),
    ("memory:bounded", "chat.md#what-the-model-remembers",
     ("Of a turn 1 MiB is remembered, masked and without media, of all 1,000 turns and 32 MiB, for 24 hours, and a "
      "request grows by 8 MiB at most.")),
    ("memory:reasoning", "chat.md#what-the-model-remembers",
     "The reasoning behind a call comes back with the call, but not to another model."),
    ("window:fits", "chat.md#what-fits-the-model",
     ("Results that do not fit the context of the model are left out, the oldest first, each replaced by a line that "
      "names its call and says how to get it again; a result that does not fit alone is cut.")),
    ("window:prefix", "chat.md#what-fits-the-model",
     ("Between two steps a request begins with the one before, byte by byte, and what was left out stays left out.")),
    ("window:overflow", "chat.md#what-fits-the-model",
     ("A request that its model finds too long is sent once more with less; if that is not possible, the client gets "
      "the provider's own code and status, in every round.")),
    ("window:rejects", "chat.md#what-fits-the-model",
     "An overflow or missing reasoning does not switch a model to tools as text."),
    ("window:marks", "providers.md#protocols",
     "Conversations with tools have marks for Anthropic's cache, unless the client has set its own."),
    ("cli:chat", "chat.md#in-the-terminal", "toolyard chat holds a conversation in the terminal."),
    ("r:R70", "chat.md#faults, chat.md#tools",
     ("When the upstream drops in mid-stream the client gets an error and the end, never a made-up stop, and no "
      "incomplete block is executed.")),
    ("r:R71", "chat.md#tools",
     "A complete block is not executed when the stream did not end normally, unless an option allows it."),
    ("r:R72", "chat.md#model-providers, chat.md#requests-that-are-sent-again",
     ("Each round is retried while nothing of it was sent to the client, honouring Retry-After; no tool runs twice. "
      "When a later round fails for good the answer has status 400, x-should-retry: false and the ids of the calls.")),
    ("r:R73", "requests.md#what-is-rejected",
     "Markers and characters split at every byte give the same result as no stream."),
    ("r:R74", "chat.md#faults, providers.md#what-is-accepted",
     "HTML, empty choices, null content, reasoning only and a usage-only chunk pass through or give a clear error."),
    ("r:R74b", "chat.md#faults",
     "An error after the first byte gives one error, ends the request and leaves the CPU idle."),
    ("r:R75", "chat.md#model-providers",
     "A silent or slow upstream meets limits of 10 s to connect, 120 s to the first byte and 60 s idle."),
    ("r:R76", "chat.md#replies-that-survive",
     "When the client disconnects the upstream request ends within 1 s and tools follow the policy."),
    ("r:R77", "chat.md#replies-that-survive", "A slow client meets a buffer of 1 MiB and then pauses the upstream."),
    ("r:R78", "chat.md#tools",
     ("After 10 rounds of tools the model is asked for its answer without tools; the turn ends with finish_reason stop "
      "and toolyard.type round_limit, and with a visible note if the model asks for more.")),
    ("chat:reply-bounds", "limits.md#chats-and-models, providers.md#what-is-accepted",
     ("Text, reasoning, arguments and events of a provider's answer are bounded: 300 MB of any of them end it with a "
      "sentence and take at most 100 MB of memory, and very many requests of a reply are bounded work.")),
    ("chat:tool-choice", "chat.md#tools",
     "A tool_choice that demands a call is not sent again after that call."),
    ("chat:overflow", "chat.md#faults",
     ("A conversation that is too long for the model has the code context_length_exceeded in every round, streamed or "
      "not.")),
    ("chat:earlier-reasoning", "chat.md#tools",
     "An answer in one piece has the reasoning of all its rounds, as a stream has."),
    ("chat:structured-reply", "003 system prompt, 003 error handling, replies.md#requesting-a-reply",
     ("With toolyard.reply json the prompt of the document is added in the language of the conversation, and the "
      "answer is validated, repaired and returned parsed as well, streamed or not; an assistant may ask for that.")),
)

PROTOCOLS: Final = _now(
    ("protocols:matrix", "architecture.md#the-life-of-a-chat-turn",
     ("Every scenario of the gateway is the same with each protocol of a client, chat completions, Responses or "
      "Messages, in front of each protocol of a provider.")),
)

RESPONSES: Final = _now(
    ("responses:create", "responses.md#requests",
     "POST /v1/responses answers as the official client expects, whole and streamed."),
    ("responses:stored", "responses.md#stored-responses",
     ("A stored response is got, gone on from and deleted by its key alone; its input is listed; the next request "
      "brings what tools said before to the model once, and instructions are not carried over.")),
    ("responses:left-out", "chat.md#what-the-model-remembers",
     ("A client that leaves our calls out, as Codex, pydantic-ai and the AI SDK do, has them remembered: by its texts, "
      "joined or not, or by a call of its own tools; a reference to a stored item is that item.")),
    ("responses:conversation", "responses.md#stored-responses",
     "The turns of a conversation follow one another by its id; one that failed is no part of it."),
    ("responses:background", "responses.md#in-the-background",
     ("A response in the background goes on without its client, can be got, followed from an event on and cancelled, "
      "and is continued once after a crash without running a tool again; 200 run at the same time.")),
    ("responses:approvals", "responses.md#approvals",
     ("A client that lists our server is asked by an approval request item and decides by its answer, whoever answers "
      "first, also after a crash; a key without the scope approve cannot allow. For any other client the turn waits.")),
    ("responses:beside", "responses.md#requests",
     ("input_tokens estimates; compact, and a request that ends with a compaction trigger, replace a conversation by a "
      "summary that the next request can begin with; a side request of Codex gets no tools of ours.")),
    ("responses:forwarded", "responses.md#translation",
     ("Without tools of ours, and with a provider that speaks Responses, the bytes of a request and its answer pass "
      "unchanged; what is to be stored is stored.")),
    ("responses:socket", "responses.md#over-a-websocket",
     ("On a WebSocket each response.create is answered by its events, and the newest response stays for the next one, "
      "until one fails; one that generates nothing asks no model.")),
    ("responses:stream", "responses.md#answers",
     ("The events of a stream come in the documented order with sequence numbers, each item is added, gets its parts "
      "and is done, and the last event repeats all of them.")),
    ("responses:own_tools", "responses.md#tools",
     "A call of ours is an mcp_call item, with its output or its error; nothing is before the first."),
    ("responses:client_tools", "responses.md#tools",
     ("Function and custom tools of the client come back to it one after the other under the names that it gave them, "
      "also those in a namespace; hosted tools go only to a provider of the same protocol.")),
    ("responses:reasoning", "responses.md#answers",
     "Reasoning is an item of its own, and goes back to the provider as it came."),
    ("responses:ends", "responses.md#answers",
     "An answer that is cut for its length or content is incomplete, and says why."),
    ("responses:errors", "responses.md#answers",
     ("A request that fails has a status and an error in OpenAI's shape; a stream that fails ends with an error event "
      "and a failed response.")),
    ("responses:repeats", "responses.md#repeats",
     ("A request that is sent again after a tool has begun, with or without a stream, joins or continues its turn, so "
      "that a tool has one effect; where its client names the turn, also with all items in place of the response "
      "before.")),
)

OFFER: Final = _now(
    ("offer:default", "offering.md#tools-in-a-chat, offering.md#turning-tools-off-or-on",
     ("A chat request without tools of its own is offered ours natively by default, by a setting, toolyard.offer, the "
      "header X-Toolyard-Offer, a model alias or its key; what is nearest to the request counts.")),
    ("offer:nothing", "offering.md#turning-tools-off-or-on",
     ("Nothing is offered with offer none, to a request whose prompt lists or forbids tools, with tool_choice none, "
      "n over 1 or a JSON response_format, and to the model tour; then the request goes on byte for byte.")),
    ("offer:own-tools", "offering.md#turning-tools-off-or-on, chat.md#tools",
     ("A request with tools of its own is offered ours only when it, its alias or its key asks; ours shadow no name of "
      "the client, and a native name that neither listed nor offered is the client's: nothing of ours runs.")),
    ("offer:fallback", "offering.md#models-that-reject-tools",
     ("A provider that refuses native tools is asked again at once with the text listing, and later at once so, per "
      "provider and model.")),
    ("offer:limits", "offering.md#which-tools",
     ("No offer has more than 128 tools or 16,000 tokens; built-in tools come first, then the others by name, and what "
      "is left out is named in a warning and in the record of the chat.")),
    ("search:offer", "offering.md#tool-search",
     ("With many tools a chat is offered those that are always on, a search and a way to call what it finds; that is "
      "decided at the first request of a conversation, and stays.")),
    ("search:call", "offering.md#tool-search",
     ("A tool that was found, or is called by its own name, runs with its own schema, rules and approval; one that the "
      "chat may not use is neither found nor run.")),
    ("search:rank", "tools.md#toolsearch",
     ("Tools are found by rare words of names, descriptions, parameters and examples, in English and Chinese; an exact "
      "name always stands first.")),
    ("offer:tokens", "offering.md#which-tools",
     ("The offer of the shipped tools takes at most 2,200 o200k tokens natively, 3,500 as text in either language and "
      "3,500 over MCP; the estimate is never too low for it.")),
    ("offer:stable", "offering.md#the-texts",
     "The same set of tools is offered in the same order and the same bytes, so that a provider's prompt cache works."),
    ("offer:bounds", "offering.md#which-tools",
     "Only tools that the chat may use are offered; FileOperator only to a chat that names it."),
    ("offer:text", "offering.md#the-texts",
     ("The text listing is in the language of the conversation, explains the request block, shows what models may set, "
      "and every example in it runs as it is.")),
    ("offer:native-text", "offering.md#the-texts",
     ("A native definition has short texts and a schema that every provider takes, and carries the manifest's example; "
      "a plugin's request blocks stay out of it.")),
    ("offer:aliases", "offering.md#turning-tools-off-or-on",
     "NAME+tools and NAME+plain reach a model with and without tools; GET /v1/models lists them when that is set."),
    ("offer:record", "offering.md#which-tools", "The record of a chat shows what was offered and what was left out."),
    ("offer:cheap", "offering.md#which-tools", "What is made from all tools is kept until the tools change."),
    ("offer:off", "offering.md#turning-tools-off-or-on",
     ("Where a request, its alias, its key or the setting turns tools off, request blocks and native calls of a reply "
      "are passed on and never run, and the conversation reaches the model as it was sent.")),
    ("offer:configured", "offering.md#which-tools",
     "A tool that lacks a required setting is offered to no model, in no form, until it has it."),
)

REPEATS: Final = _now(
    ("repeat:retry", "chat.md#requests-that-are-sent-again",
     ("A request with x-stainless-retry-count of at least 1 and the same key and body joins the first turn, while it "
      "runs and for 10 minutes after a turn in which a tool has run.")),
    ("repeat:form", "chat.md#requests-that-are-sent-again",
     "A repeated request may ask for its answer in the other form, streamed or complete, and reads the same turn."),
    ("repeat:continue", "chat.md#requests-that-are-sent-again",
     ("After a turn in which tools have run failed, was cut or was left, the same key with the same body continues it "
      "within 10 minutes and runs nothing again; one that ended well is replayed to a marked retry only.")),
    ("repeat:crash", "chat.md#requests-that-are-sent-again",
     ("The calls of a turn are stored before they begin: the same request after a crash continues the turn, and a call "
      "whose end is not known is reported to the model, not repeated.")),
    ("repeat:told", "chat.md#approvals",
     ("After an answer that came early because a call waited for approval, the next message of the conversation tells "
      "the model what the call has come to; the waiting line says what would be done.")),
    ("repeat:approval", "chat.md#approvals",
     ("A request that is not streamed and waits for an approval is answered within 55 s with what waits; the same "
      "request within 10 minutes attaches to the turn, and the approved call runs once.")),
    ("repeat:mixed", "chat.md#tools",
     "A reply whose first call is the client's is handed over with the client's calls alone, streamed and whole."),
    ("chat:abandoned", "chat.md#replies-that-survive", "A named chat that nobody follows any more ends after a limit."),
    ("chat:long-reply", "requests.md#what-is-rejected",
     "A reply over 2 MiB without any request is passed through and asked for once."),
)

PROVIDERS: Final = _now(
    ("clients:providers", "providers.md#what-is-accepted",
     ("Answers that the official client reads are read: events under any content type or none, JSON in place of "
      "events, and any status from 200 to 299.")),
    ("clients:not-lost", "providers.md#what-is-accepted",
     "Events that a provider sent before it broke off, or before one that cannot be read, reach the client first."),
    ("clients:bounded", "providers.md#what-is-accepted",
     ("A provider's list of models, compressed answers, events without an end and values of very many parts are "
      "bounded in bytes and in work, so that no provider stops the server.")),
    ("clients:provider-options", "providers.md#options",
     ("Each provider may have headers, query parameters, an HTTP proxy, time limits and a number of tool rounds of its "
      "own; secrets among them are masked, and mistakes are told with provider and field.")),
    ("clients:several-keys", "providers.md#options",
     ("Several keys of a provider are used in turn; one that gets 401, 403 or 429 is passed over at once for the next "
      "and rests for a while.")),
    ("clients:fallback", "providers.md#fallbacks",
     ("For a model with a list of others the next one is asked when a provider does not answer, before the first byte "
      "of any round, which repeats no tool, and whoever answered keeps the turn while it answers.")),
    ("protocols:provider-request", "providers.md#protocols",
     ("A chat request becomes one of the provider's protocol that its official client accepts; what that has no word "
      "for is left out as documented.")),
    ("protocols:provider-answer", "providers.md#protocols",
     ("Answers of providers that speak Responses or Messages become chat answers, streamed and whole: text, reasoning "
      "with its signature byte for byte, calls, refusals, citations, usage and stop reasons.")),
    ("protocols:cut", "providers.md#protocols",
     "A stream that ends before the last event of its protocol counts as broken off, wherever it was cut."),
    ("protocols:provider", "providers.md#protocols",
     ("A provider of any protocol stands behind the same turn: tools, keys, retries, fallbacks, errors and lists of "
      "models.")),
    ("protocols:probe", "providers.md#protocols",
     "The test of a provider finds out which protocol it speaks."),
    ("clients:passthrough", "providers.md#other-endpoints",
     ("POST /v1/embeddings, /v1/completions, /v1/moderations, /v1/images/* and /v1/audio/* go to the provider of the "
      "model, bodies and answers byte for byte and bounded, with OpenAI's errors and without secrets.")),
    ("clients:models", "providers.md#other-endpoints",
     "GET /v1/models/{id} shows one model, also one whose id holds slashes."),
    ("clients:provider-json", "providers.md#what-is-accepted",
     ("NaN and Infinity in a provider's JSON go on as null, a surrogate pair split over two chunks becomes its "
      "character, and integers beyond 64 bits stay exact.")),
)

ROUTES: Final = _now(
    ("http:listen", "http.md#http-and-websocket", "toolyard serve listens on 127.0.0.1 port 6005."),
    ("http:safe", "http.md#start-and-shutdown", "toolyard serve --safe starts with no plugins."),
    ("http:tools", "http.md#tools", "GET /v1/tools lists the tools and GET /v1/tools/{name} shows one."),
    ("http:tool-summaries", "http.md#tools",
     "GET /v1/tool-summaries lists the tools without schemas, and other requests are answered while a list is built."),
    ("http:probes", "http.md#health",
     "/healthz and /readyz are answered while a burst of requests waits for its turn."),
    ("doctor:advice", "operations.md#when-the-state-is-damaged",
     "The doctor advises --repair exactly where it helps; a repair that fails changes nothing and says what is left."),
    ("backup:full-disk", "operations.md#back-up-and-restore",
     "A backup for which the disk has no room names a path that exists."),
    ("config:no-credentials", "configuration.md#errors",
     "An error about a setting quotes an address without its password and the values of its query."),
    ("http:too-much-work", "http.md#errors",
     "Too much work is refused with 429 and Retry-After before anything runs, and a repeat with the same key runs."),
    ("http:call", "http.md#tools, http.md#errors",
     "POST /v1/tools/{name} takes the arguments as body and answers 200 with any envelope, errors included."),
    ("http:call:dialect", "http.md#tools", "?dialect=NAME answers in that dialect."),
    ("http:idempotency", "http.md#requests-that-run-once",
     ("A chat or a tool call with an Idempotency-Key runs once per API key: a repeat joins it while it runs, gets its "
      "stored answer for 24 h, up to 4 MiB, is told interrupted when it was cut off, and another request gets a 422.")),
    ("http:runner", "architecture.md#rules", "HTTP and chat calls go through the same runner as the command line."),
    ("http:human-tool", "http.md#tools", "POST /v1/human/tool runs the request blocks in its text body."),
    ("http:records", "http.md#records",
     ("/v1/tasks, /v1/schedules, /v1/approvals and /v1/calls list, show and change what their command line verbs do, "
      "and /v1/schedule_task takes VCP's form.")),
    ("media:route", "http.md#media",
     ("GET /media/NAME with a signature that fits sends exactly that file to anybody for seven days, on a page of any "
      "origin, in ranges, and can run nothing.")),
    ("http:reply-render", "http.md#tools", "POST /v1/reply/render renders a structured reply."),
    ("http:conversations", "http.md#chat",
     "A key keeps its conversations on the server, and of two windows that write at once the second is told."),
    ("http:published", "001 §3.2, http.md#files-that-plugins-publish",
     ("/pw=KEY/images and /pw=KEY/files serve the image and file folders of the project and of plugins that have the "
      "key, with safe types and headers; links that plugins print open.")),
    ("http:published:confined", "001 §3.2, http.md#files-that-plugins-publish",
     "A published file is read-only and below its folder: no link, .., encoding or NUL leads out, nothing is listed."),
    ("http:published:keys", "001 §3.2, http.md#files-that-plugins-publish",
     "Published files need their key, compared in constant time; wrong ones get 404 and are slowed down."),
    ("http:plugins", "http.md#administration",
     "Plugins are listed, reviewed, allowed as shown, configured and installed over HTTP, and no secret leaves."),
    ("http:settings", "http.md#administration",
     "Settings are changed over HTTP whole or not at all, and secrets stay masked."),
    ("http:mcp-servers", "http.md#administration",
     "MCP servers are added, looked at and allowed exactly as shown over HTTP."),
    ("http:status", "http.md#administration",
     "One route tells version, state, disk, queue, event lag, plugins and memory, and whether this is the first run."),
    ("http:health", "http.md#health",
     "/healthz, /readyz and /metrics answer their state, and /readyz?verbose shows every limit."),
    ("http:documented", "http.md#http-and-websocket, http.md#browsers",
     "/docs, /openapi.json and the written docs describe every route."),
    ("http:errors", "http.md#errors", "HTTP errors have OpenAI's shape of error with message, type and code."),
    ("http:auth", "http.md#http-and-websocket",
     ("Every route but /healthz, /readyz and the login page needs a bearer key, the callback route its token, and a "
      "link to media its signature.")),
    ("http:key", "http.md#http-and-websocket",
     ("The key is made at first start, printed once, kept in a file of mode 0600 and shown by toolyard config show "
      "--key.")),
    ("cli:database:password", "many-hosts.md#setup",
     ("serve and worker with a password in --database warn and start themselves anew with it in the environment, so "
      "that the list of processes does not show it.")),
    ("home:private", "configuration.md#project-and-home",
     ("The home, trash, transactions and records are 0700 and 0600, also when the home existed with 0755; what is in "
      "the trash keeps its own mode in a closed folder.")),
    ("http:browser-session", "http.md#browsers, http.md#events",
     "Browsers use a SameSite=Strict cookie and a one-time ticket from POST /ws-ticket."),
    ("cli:through-server", "cli.md#toolyard-serve, http.md#start-and-shutdown",
     "With a server on the same home toolyard call and toolyard.open go through it."),
    ("cli:exit:unreachable", "cli.md#exit-codes", "A command that cannot reach the server exits 4."),
    ("ws:messages", "http.md#events",
     ("/ws messages have seq, type, at and data, with types call.started, call.finished, task, schedule, approval, "
      "plugin and gap.")),
    ("ws:push", "001 §5.2, manifest.md#fields, http.md#events",
     ("With webSocketPush.enabled a callback is pushed as messageType and body to clients of targetClientType; "
      "usePluginResultAsMessage false leaves plugin, id, status and message.")),
    ("ws:callback-event", "http.md#events", "/ws has the event of every callback, pushed or not."),
    ("ws:vcp-paths", "http.md#events",
     "/VCPlog and /vcpinfo with VCP_Key work only when the compatibility switch is on."),
    ("ws:vcp-approval-time", "clients/vcpchat.md#vcpchat",
     "An approval request on /VCPlog tells its time as VCPToolBox does, local and readable, as VCPChat shows it."),
    ("supply:floors", "releasing.md#building-the-same-bytes",
     "Locked dependencies have hashes and are at or above the safe versions of the list."),
    ("r:R80", "http.md#events",
     ("A client that never reads is dropped with 1013 at 1000 messages or 4 MiB and can resume, and others are "
      "unaffected.")),
    ("r:R81", "http.md#events", "A half-open connection is pinged every 20 s and dead after 40 s."),
    ("r:R82", "http.md#events", "A reconnect with a cursor gets each later event exactly once or a gap."),
    ("r:R83", "operations.md#performance", "500 clients at 1000 events per second cause no stall over 100 ms."),
    ("r:R84", "http.md#events",
     "After a server restart clients reconnect with jitter and their cursor is valid or they get a gap."),
    ("r:R85", "http.md#events", "Garbage, frames of 100 MB and floods from a client are closed with 1009 or 1008."),
    ("s:S-40", "http.md#http-and-websocket",
     "From the first start every route without the key answers 401, apart from the open ones."),
    ("s:S-41", "http.md#start-and-shutdown",
     "Binding to another address is refused without --allow-remote and a key of at least 32 characters."),
    ("s:S-42", "http.md#errors, proxy.md#when-something-is-wrong",
     "A Host that is not allowed, or none, answers 421 or 403, on WebSocket and MCP too."),
    ("s:S-43", "http.md#other-origins-cors, http.md#browsers",
     ("Cross-site forms, plain-text JSON and images change nothing: origin, content type and CSRF token are checked "
      "and GET has no effect. The session cookie counts for pages of this server alone.")),
    ("trust:memory", "operations.md#memory-of-the-processes",
     ("A server, a worker and an MCP server cannot be traced by their own user, and neither their memory nor their "
      "environment can be read under /proc; plugins run as before.")),
    ("trust:callback-token", "http.md#callbacks",
     ("The token of a callback opens the callbacks of its own call and nothing else: not as a key, session, ticket, "
      "login link or the key in a URL, on any route.")),
    ("trust:audit", "operations.md#audit-trail",
     ("toolyard audit and GET /v1/audit show who allowed or changed what, when and from where: answers to approvals, "
      "rules, plugins, MCP servers, keys, settings, sign-ins and schedules; and the confinement of each run. Every "
      "route that changes something is in it or named as an exception.")),
    ("s:S-44", "http.md#other-origins-cors",
     "A WebSocket from a foreign origin is rejected at the handshake, also from that of a program."),
    ("cors:programs", "http.md#other-origins-cors",
     ("A desktop application, an extension or a local file, by an origin of null or of another scheme than http, is "
      "served with a key in the Authorization header, and with nothing else.")),
    ("cors:preflight", "http.md#other-origins-cors",
     ("A preflight of a served origin is answered without a key and allows every header that a request with a key may "
      "send; credentials are never allowed.")),
    ("cors:readable", "http.md#other-origins-cors",
     "Answers, streams and errors to a served origin can be read by its page, with our headers."),
    ("cors:browser", "http.md#other-origins-cors",
     "OpenAI's client works in pages of Chromium: of a file, of a sandboxed frame and of an extension."),
    ("clients:matrix", "chat.md#requests-that-are-sent-again",
     ("With default settings openai-python, openai-node, llm, LangChain, pydantic-ai, the AI SDK, litellm, the Agents "
      "SDK, Codex, the Anthropic SDKs and Claude Code cause a tool's effect once, in each protocol that they speak, "
      "however the provider fails after it and if their own connection breaks.")),
    ("clients:waits", "chat.md#approvals",
     "Each of these clients waits until the owner has answered, with its answer after an approval and after a denial."),
    ("clients:decide", "responses.md#approvals",
     ("openai-python, openai-node, the Agents SDK, LangChain and the AI SDK, where they list our server, are asked "
      "whether a call may run, and their answer decides.")),
    ("clients:own-tools", "offering.md#turning-tools-off-or-on",
     "A tool that one of these clients runs itself works beside a tool of the server: the model sees both results."),
    ("responses:compliance", "clients/README.md#clients",
     "The compliance test of Open Responses passes, where a checkout of it is named."),
    ("spec:exported-name", "offering.md#which-tools, python.md#yardtools",
     ("A tool is called by its own name or by the one in its exported definition: in Python, over HTTP, over MCP and "
      "on the command line.")),
    ("clients:pages", "clients/README.md#clients",
     ("Each page about a client can be walked as it is written, ends with a tool call that works, and says how to "
      "switch the tools off.")),
    ("s:S-45", "http.md#events",
     "No key stands in a URL: a header, a subprotocol or a ticket valid once for 30 s is used, and logs hold no key."),
    ("s:S-46", "operations.md#encrypted-secrets", "Keys are compared in constant time on their hashes."),
    ("s:S-47", "http.md#errors, limits.md#keys-and-sessions",
     "Every failed login counts per address and globally on all paths, with backoff; a right key is never locked out."),
    ("s:S-48", "proxy.md#trusted_proxies", "X-Forwarded-For is ignored unless the peer is a trusted proxy."),
    ("s:S-49", "http.md#browsers", "The session cookie is a random id kept on the server, and logout ends it."),
    ("s:S-50", "http.md#browsers", "A URL may prefill a prompt or an install but never sends it."),
    ("s:S-51", "http.md#browsers", "Every page has frame-ancestors none, nosniff, no-referrer and an opener policy."),
    ("s:S-52", "http.md#keys-and-scopes",
     "Keys have the scopes chat, tools, approve, admin and callback, and each route refuses the others."),
    ("s:S-53", "http.md#health",
     "Control and bidirectional characters in logged names are escaped, and logs are JSON."),
    ("s:S-73", "http.md#callbacks", "A plugin's configuration cannot replace the callback base."),
    ("make:run:serve", "installing.md#a-checkout", "make run starts the server."),
    ("r:R90", "http.md#start-and-shutdown",
     "A half-written configuration keeps the last good one, warns and is read again after 300 ms of quiet."),
    ("r:R92", "http.md#start-and-shutdown",
     "A configuration saved by rename or on a drive without notices is detected by its content."),
    ("s:S-72", "http.md#administration",
     "Only the admin scope changes the upstream address, and the upstream key is bound to its origin."),
    ("r:R91", "http.md#start-and-shutdown, configuration.md#errors",
     "A configuration with an error is refused with line and column, and the file stays untouched."),
)


# --- Behind a proxy ---

PROXIES: Final = _now(
    ("config:public-url", "proxy.md#public_url",
     ("public_url, an address with or without a path, is all that a server behind a proxy needs to be reached: its "
      "host and its pages are the server's own, links begin with it, and https keeps the session cookie to TLS.")),
    ("proxy:subpath", "proxy.md#below-a-path",
     ("Below the path of public_url the console, the API, MCP, media and WebSockets work, whether the proxy removes "
      "the path or not.")),
    ("proxy:headers", "proxy.md#trusted_proxies",
     ("Forwarding headers count from trusted proxies alone; limits, the log and the audit trail then have the address "
      "of the client.")),
    ("proxy:explained", "proxy.md#when-something-is-wrong",
     ("A wrong host, origin or proxy header is answered with the setting that mends it: a page in English or Chinese "
      "for browsers, JSON for programs.")),
    ("proxy:samples", "proxy.md#behind-a-proxy",
     ("The samples for nginx, Caddy and Traefik pass sign-in, streams without buffering, WebSockets and large bodies, "
      "on a host name and below a path.")),
    ("proxy:doctor", "proxy.md#when-something-is-wrong",
     "The doctor warns of a public_url that does not fit the other settings."),
)


# --- Other systems ---

INTEROP: Final = _now(
    ("mcp:server", "mcp.md#toolyard-as-a-server",
     "toolyard mcp serve and POST /mcp offer every tool to an MCP client."),
    ("mcp:runner", "architecture.md#how-a-call-flows, mcp.md#approvals",
     "MCP calls go through the same runner, with approvals."),
    ("mcp:client", "cli.md#toolyard-mcp, mcp.md#mcp-servers-as-tools",
     ("toolyard mcp add makes the tools of an MCP server callable like any other, and toolyard mcp list shows the "
      "servers.")),
    ("mcp:pinned", "mcp.md#the-review",
     ("The exact command of a local MCP server is shown before it first runs, and a changed name, description or "
      "schema of its tools needs review.")),
    ("mcp:output-schema", "mcp.md#how-they-run, mcp.md#the-review",
     ("The output schema of a tool of an MCP server is pinned and shown as its input schema is; results are checked "
      "against it in a process that can be killed, and nothing is fetched for a reference.")),
    ("mcp:http-limit", "mcp.md#how-they-run",
     "An answer of an MCP server over HTTP has the limit of 16 MiB that a line over stdio has, after decompression."),
    ("mcp:early-answer", "mcp.md#approvals",
     ("An MCP client that cannot ask its user is told before 45 s what waits for approval and how to allow it; once "
      "approved the call runs once, the same call within 10 minutes gets its result, and one whose client left ends.")),
    ("mcp:quick-calls", "mcp.md#toolyard-as-a-server",
     ("Over stdio, calls that end at once are answered without the SDK, with the results that the SDK gives; one that "
      "waits, fails or is cancelled is handed over to the SDK and runs once.")),
    ("mcp:tools-change", "mcp.md#the-review",
     ("Of a server that adds or changes tools while it runs the reviewed ones keep working; new and changed ones wait "
      "for a review of the difference, and then work.")),
    ("mcp:results-once", "mcp.md#how-they-run",
     "A structured result of an MCP server appears once in what a model reads."),
    ("mcp:closed-schemas", "mcp.md#mcp-servers-as-tools",
     "additionalProperties: false of a tool of an MCP server is offered to models and clients as it was declared."),
    ("mcp:one-bad-tool", "mcp.md#the-review",
     ("A tool of an MCP server that cannot be offered does not refuse the others; which one and why is told, and so "
      "are names that two servers give.")),
    ("mcp:start-failure", "mcp.md#how-they-run",
     "A failed start of an MCP server names its cause: what the program printed and how it ended, or the HTTP status."),
    ("mcp:live-states", "mcp.md#the-review", "toolyard mcp list shows the states that the running server knows."),
    ("mcp:catalogue", "mcp.md#how-they-run",
     "The tools of MCP servers are read once, not for each call: a call costs the same with ten tools and a thousand."),
    ("backend:stream", "004 intro, http.md#events",
     "/v1/backend/stream sends each tool result as raw backend_only JSON, full and in order."),
    ("backend:stream:websocket", "004 base format, http.md#events",
     "/v1/backend/stream sends over a WebSocket the same frames as in server-sent events."),
    ("import:vcp", "import.md#migrating-from-vcptoolbox",
     "toolyard import vcp brings in the plugins and settings of a VCPToolBox folder without running anything."),
    ("import:vcp-timed", "import.md#migrating-from-vcptoolbox",
     ("Timed calls are imported as proposals: each needs the same approval as a model's call, and the report shows the "
      "whole call; toolyard schedule allow lets one run.")),
    ("import:trust", "cli.md#toolyard-import",
     "With --trust an import allows the plugins that it copies, and none that its report calls skipped."),
    ("import:vcp-plugins", "001, writing-a-plugin.md#differences-from-vcptoolbox",
     "Unchanged VCPToolBox plugins of the supported types run after import."),
    ("vcp:installation", "vcp.md#what-is-used-in-place",
     "An installation of VCPToolBox is read where it is: its plugins, settings, agents and keys, without running it."),
    ("vcp:one-decision", "vcp.md#one-decision",
     ("toolyard vcp allow shows what all plugins of an installation may reach together and approves each by its "
      "fingerprint; a changed one asks again, and a decision on one of them stays.")),
    ("confinement:views", "vcp.md#settings-and-keys",
     ("A program reads a view in place of a file that holds what it must not see; where nothing can be mounted, that "
      "file cannot be opened, and everything around it can.")),
    ("docs:vcp-walk", "vcp.md#the-first-chat",
     "Typed from the page, an owner comes in three minutes from --vcp to a chat in which an agent writes its diary."),
    ("vcp:provider", "vcp.md#the-first-chat",
     "While the settings name no model provider, it is that of the installation."),
    ("vcp:check", "vcp.md#what-is-used-in-place",
     "toolyard vcp check says of each plugin, variable, agent, schedule, key and client what becomes of it, and why."),
    ("http:installation", "vcp.md#one-decision, http.md#administration",
     ("GET /v1/installation is the review of an installation, and POST /v1/installation/allow approves its plugins as "
      "shown; a change in between needs another look.")),
    ("vcp:dependencies", "vcp.md#what-plugins-need",
     ("Packages, native modules and programs that a plugin needs are named before its first call, and what can be "
      "installed is installed in the home.")),
    ("vcp:access", "vcp.md#what-its-plugins-may-reach",
     ("With the access installation a plugin reads the tree, its siblings too, and writes its own folder, the shared "
      "folders and siblings that its code names; no access shows a folder empty that is not.")),
    ("vcp:settings-view", "vcp.md#settings-and-keys",
     ("A plugin gets of config.env what its code names, in its environment and in the file; what belongs to siblings, "
      "to the host and to the model provider is not in it.")),
    ("vcp:no-silent-refusals", "vcp.md#what-its-plugins-may-reach",
     "What a plugin of an installation was kept from stands in its result, also when it swallowed the error."),
    ("vcp:keys", "vcp.md#settings-and-keys",
     "Links to published files open with the keys of the installation, and existing clients keep their keys."),
    ("vcp:plugin-list", "vcp.md#what-is-used-in-place",
     "Beside a server with --vcp, toolyard plugin list has every plugin of the installation, services too."),
    ("vcp:one-host", "vcp.md#beside-vcptoolbox",
     "A tree is run by one server, unless its owner starts it beside VCPToolBox, which then keeps the timers."),
    ("vcp:same-answers", "vcp.md#what-is-used-in-place",
     "The stdio and static plugins of a real installation answer in place as they do in VCPToolBox."),
    ("vcp:load", "vcp.md#compared-with-vcptoolbox",
     "Of the plugins of a real installation, no call is lost with 8 and with 32 at the same time."),
    ("vcp:bridge:call", "vcp.md#plugins-in-vcptoolboxs-process",
     ("A plugin that lives in VCPToolBox's process is a tool like any other: found, permitted, timed, journalled and "
      "cancelled, with its own result or error.")),
    ("vcp:bridge:only", "vcp.md#plugins-in-vcptoolboxs-process",
     ("The process starts only when such a plugin is switched on, and loads nothing that its owner has not allowed as "
      "it is now, VCPToolBox's own code included.")),
    ("vcp:bridge:noise", "vcp.md#plugins-in-vcptoolboxs-process",
     "Nothing that such a plugin prints is taken for an answer."),
    ("vcp:bridge:survives", "vcp.md#when-something-fails",
     ("The process survives plugins that end it, throw or cannot be loaded, and a vector engine that this system "
      "cannot load; one that blocks or crashes is started again with a pause, and calls in flight are answered.")),
    ("vcp:bridge:confined", "vcp.md#what-the-process-may-reach",
     "The process writes the folders that plugins share and those of its plugins, and no code of others."),
    ("vcp:bridge:server", "vcp.md#what-these-plugins-ask-of-the-server",
     ("What these plugins ask of VCPToolBox's server is answered here: PORT and Key lead to it, their calls are "
      "settled, and their pushes and placeholders arrive.")),
    ("vcp:bridge:messages", "vcp.md#plugins-in-vcptoolboxs-process",
     "Message preprocessors see the messages of a chat in VCPToolBox's order."),
    ("vcp:bridge:routes", "vcp.md#pages-and-routes-of-plugins",
     ("Routes of plugins answer at VCPToolBox's own paths, with the keys of this server, and their pages have no "
      "access to its sessions.")),
    ("vcp:bridge:approvals", "vcp.md#approvals",
     "The approval file of the tree is made into rules once, and VCPToolBox's code asks nobody again."),
    ("vcp:bridge:alone", "vcp.md#beside-vcptoolbox",
     "The process runs in one host alone, and not while VCPToolBox itself runs there."),
    ("vcp:bridge:same-answers", "vcp.md#plugins-in-vcptoolboxs-process",
     ("Every such plugin of a real tree is loaded, or listed with a reason, and its calls are answered as in "
      "VCPToolBox.")),
    ("vcp:nodes:call", "vcp.md#nodes",
     ("A tool of a connected node is a tool like any other: listed, permitted, timed and journalled, with its own "
      "result or error.")),
    ("vcp:nodes:key", "vcp.md#nodes",
     ("The VCP_Key, or a key with the scope node, connects a node; a wrong key is called wrong, a right one never is, "
      "however it is written in the address.")),
    ("vcp:nodes:names", "vcp.md#nodes",
     "A name that two nodes have, or that is taken here, stays callable as NAME@NODE; so is every other one."),
    ("vcp:nodes:cancel", "vcp.md#nodes",
     "A call that is cancelled or takes too long is cancelled in its node, if that can."),
    ("vcp:nodes:gone", "vcp.md#nodes",
     ("Calls of a node that leaves fail at once, its tools and placeholders go with it, and come back when it does; no "
      "other node can answer for it.")),
    ("vcp:nodes:bounds", "vcp.md#nodes, limits.md#http-and-websocket",
     "Messages, tools, placeholders and connections of nodes are bounded."),
    ("vcp:nodes:prompts", "vcp.md#nodes",
     "Placeholders and tools of nodes and the list of nodes are filled in prompts, as text that means nothing."),
    ("vcp:nodes:review", "vcp.md#nodes",
     "With node_review a node waits until exactly its tools are allowed."),
    ("vcp:nodes:tasks", "vcp.md#nodes",
     "The callback of an asynchronous plugin that a node forwards ends its task and is pushed as its manifest says."),
    ("vcp:nodes:files", "vcp.md#nodes",
     "A file that only a node has is brought here before a plugin of the installation runs with it."),
    ("vcp:nodes:shown", "vcp.md#nodes, cli.md#toolyard-vcp",
     "toolyard vcp nodes lists and allows nodes, and toolyard doctor names them and what waits."),
    ("vcp:nodes:real", "vcp.md#nodes",
     "VCPChat's own, unmodified distributed server connects, and its tools, placeholders and files are used."),
    ("vcp:admin-api", "vcp.md#the-admin-api",
     ("Clients read plugins, agents, emoji and the log from VCPToolBox's admin API, with its name and password, which "
      "open nothing else; anything else there is answered with its page in the console.")),
    ("vcp:vcpchat", "clients/vcpchat.md#vcpchat",
     ("VCPChat's own request code lists models, chats, calls tools, interrupts, answers approvals and reads its "
      "channels here.")),
    ("export:tools", "cli.md#toolyard-tools, python.md#yardtools",
     "Every tool's definition is given in OpenAI's and in MCP's shape from the same ToolSpec."),
    ("mcp:results-as-sent", "mcp.md#how-they-run",
     ("Structured results and output schemas of an MCP server reach MCP clients, models and programs as the server "
      "sent them.")),
    ("mcp:unreadable-reply", "mcp.md#how-they-run",
     "A reply of an MCP server that cannot be parsed, such as one nested 200,000 levels deep, ends its call at once."),
    ("mcp:answers-after-eof", "mcp.md#toolyard-as-a-server",
     "Over stdio, all that was asked before the input ended is answered, as long as somebody reads the answers."),
    ("mcp:asks-at-once", "mcp.md#approvals",
     "An MCP client that can ask its user gets the question as soon as it is there."),
)

# --- The console ---

CONSOLE: Final = _now(
    ("console:root", "console.md#the-console, console.md#pages",
     "/ serves the console from the host with no request to another origin."),
    ("console:shell", "console.md#the-console, console.md#finding-things, console.md#accessibility",
     ("The shell has navigation, connection state, running count, approval badge, language, theme and a "
      "finder, and works by keyboard with visible focus.")),
    ("console:lists", "console.md#pages",
     "Every list has loading, empty, error with code and request id, partial and stale states."),
    ("console:live", "console.md#pages",
     "After a lost connection the console catches up by cursor with no missing and no double row."),
    ("console:login", "http.md#browsers",
     "The login page takes the key, says where it is and answers every wrong key alike."),
    ("console:first-run", "console.md#first-steps",
     "The first run connects a provider, asks its model for a tool call, and shows language, zone and folder."),
    ("console:chat:parts", "003 fields, console.md#chat",
     ("A message shows folded thinking, Markdown, code, formulas, diagrams, attachments, tool cards and async chips "
      "in place.")),
    ("console:chat:faults", "003 error handling, console.md#chat",
     "A broken reply, diagram or formula shows an error card with its source and leaves the rest intact."),
    ("console:chat:stream", "001 §5.1, console.md#chat",
     ("Streaming does not shift the layout, Stop works, and after a reload the text is identical and an async chip "
      "becomes its result in place.")),
    ("console:chat:sent", "console.md#chat", "A drawer shows what was sent upstream, with secrets masked."),
    ("console:tools", "console.md#tools",
     "The tool catalogue shows kind, state, calls and errors of each tool, with search and filters."),
    ("console:tools:try", "console.md#tools",
     "Try it builds a form from the schema, runs, stops and shows the rendered and raw result."),
    ("console:tools:review", "console.md#tools",
     ("A plugin's page shows its full command, environment keys, what changed since review and typed settings with "
      "their source, and never a secret.")),
    ("console:activity", "console.md#activity",
     "Activity lists calls live with filters and opens input, full output, timeline, process and retries of each."),
    ("console:activity:patch", "004 appendix, console.md#activity",
     "The patch view shows hunks exactly as structuredPatch, and whole files and undo while the file is unchanged."),
    ("console:tasks", "console.md#tasks",
     ("The task page shows receipt, callbacks, limits and pushes of each task, with cancel, retry and send again, and "
      "stays smooth at 10000 rows.")),
    ("console:schedule", "console.md#schedules",
     ("The schedule page shows each run with offset and countdown, says what is late or blocked and why, takes a time "
      "as people type it and refuses a past one.")),
    ("console:approvals", "console.md#approvals",
     ("The approval inbox shows full arguments and rules, focuses Deny, counts down and follows other people's "
      "answers.")),
    ("console:settings", "console.md#settings",
     ("Settings show each effective value with its source, save nothing half valid, and offer doctor, backup and "
      "restore.")),
    ("console:status", "console.md#pages",
     ("The status page shows in plain words health, queue, disk, live connections and whether they are up to date, "
      "restarts and top errors.")),
    ("console:audit", "console.md#audit-trail",
     "The audit page shows who allowed what, when and from where, with the confinement of runs, by action and text."),
    ("console:progress", "console.md#activity",
     "A running call shows its progress and its last lines in the chat and in Activity, until it has ended."),
    ("console:no-errors", "console.md#the-console",
     "No page has a console error, a policy violation or a foreign request."),
    ("console:layout", "console.md#pages",
     "No page scrolls sideways, overlaps or clips text on desktop, tablet and phone."),
    ("console:accessible", "console.md#accessibility",
     ("No page has a serious accessibility fault, contrast is at least 4.5 in the light and the dark theme, and no "
      "page flashes.")),
    ("console:languages", "console.md#the-console", "Every page is wholly in Chinese or in English."),
    ("console:languages:sentences", "console.md#settings",
     ("In the Chinese console all sentences of Toolyard's own are Chinese: results and failures of calls with their "
      "hints, ends of tasks, schedules and approvals, reviews.")),
    ("console:weight", "console.md#developing-the-console",
     "Diagrams, formulas and the pages that are not shown load when needed."),
    ("console:url-state", "console.md#pages", "Reload, back and forward keep filters and open panels."),
    ("console:inert", "console.md#chat",
     ("The attack corpus in every place of the console causes no dialog, no foreign request and no active node, and "
      "a remote image loads only after the click.")),
    ("console:offline", "console.md#pages, console.md#on-a-phone",
     "A killed server shows a banner within 3 s, and a restarted one is found again by itself."),
)

CONSOLE_CRAFT: Final = _now(
    ("craft:first-load", "console.md#developing-the-console",
     ("The first load of every page has at most 100 kB of script on the wire; other pages are loaded ahead, so that "
      "going there loads nothing.")),
    ("craft:no-waiting", "console.md#developing-the-console",
     ("A page asks for the session while its scripts are on their way, and an empty chat does not load what draws "
      "texts; a text stays readable when that cannot be loaded.")),
    ("craft:many-tools", "console.md#tools",
     "The catalogue of 1000 tools is scrolled and searched with only those near the view in the page."),
    ("craft:no-findings", "console.md#accessibility",
     "axe finds nothing on any page, nor in panels, dialogs and tabs."),
    ("craft:announced", "console.md#accessibility",
     "A finished reply and a waiting approval are announced to those who hear the page, not each word of a reply."),
    ("craft:focus", "console.md#accessibility",
     ("The skip link works, a new page is read from its heading, and the focus comes back from dialogs and outlives "
      "what is deleted.")),
    ("craft:forced-colours", "console.md#accessibility",
     "In forced colours, what is chosen and every state are shown by lines and words."),
    ("craft:titles", "console.md#accessibility",
     "The title of the window names what is open, its page and the product."),
    ("craft:style-page", "console.md#developing-the-console",
     "A page of all components is compared by picture in both themes, both languages and three widths."),
    ("craft:words", "console.md#settings",
     "Counts have the forms of their language, and no word of the program stands where people read."),
)

CONSOLE_WAITING: Final = _now(
    ("console:approvals:card", "console.md#approvals, console.md#chat",
     ("The approval card in a chat is the one of the approvals page: changes first, all arguments, once, this chat or "
      "always with the rule, denial with a reason; an answer in one place is seen in the other.")),
    ("console:approvals:link", "console.md#approvals",
     "A link to one approval opens its card, also after signing in, and tells how it was answered."),
    ("console:flow:approve", "console.md#approvals, tutorial.md#5-approve-on-your-phone",
     "Approving from a phone takes two steps, or four with signing in."),
    ("console:chat:waiting", "console.md#chat",
     ("A reply that waits says for what and for how long: the provider and its next try, another provider, an "
      "approval with the time left, a tool with its progress.")),
    ("chat:waits", "chat.md#what-the-client-sees-of-tool-calls",
     ("A chat that shows events tells of each pause before a provider is asked again and of each fallback; other "
      "clients see nothing of it.")),
    ("console:chat:models", "console.md#chat",
     "Until the models are known, the choice of a model says that it is loading, not that there is none."),
    ("console:chat:rows", "console.md#on-a-phone", "A tool row in a chat shows its arguments on a phone as well."),
    ("console:right-to-left", "console.md#chat",
     "Text that is written from right to left stands so, beside text that is not."),
    ("console:zoom", "console.md#pages", "At 400 % zoom no page scrolls sideways, and nothing is covered."),
    ("console:print", "console.md#chat",
     "A conversation prints whole, in light colours and without controls; so do approvals and the panel of a call."),
    ("console:chat:tasks", "001 §5, console.md#chat",
     ("The result of a task stands in the chat that began it, once: where the reply has its placeholder, else under "
      "the call, whatever the reply says and however long the receipt is.")),
    ("console:chat:undo", "console.md#chat",
     "What a call did to files is undone at its card in the chat, which says what is restored and what is deleted."),
    ("console:approvals:together", "console.md#chat",
     ("Different calls of a chat that wait together are allowed or denied with one press, once each of them is shown "
      "in full.")),
    ("console:approvals:scroll", "console.md#approvals",
     ("Where the changes or the arguments of an approval end, wheel and finger move the page; nothing but a dialog "
      "holds them.")),
)

FINDING: Final = _now(
    ("finder:ranked", "console.md#finding-things",
     ("The finder ranks exact names first, then beginnings, word beginnings, parts and letters in order, and finds "
      "tools in both languages, conversations, calls, tasks, schedules, settings, pages, error codes and actions.")),
    ("finder:touch", "console.md#finding-things",
     "The finder works by keyboard and by touch, fills a phone's screen, and begins with what was opened last."),
    ("finder:bounded", "console.md#finding-things",
     "Local results appear at once; questions to the server wait for a pause, are cancelled, and have a bound."),
    ("activity:codes", "console.md#activity",
     "Calls are found by the codes and reasons of their errors, by tool, caller, state, time and words, page by page."),
    ("activity:search", "console.md#activity",
     ("The search of Activity understands keys such as code:NOT_FOUND, suggests keys and values, explains what it "
      "does not know, and stands in the address.")),
    ("flow:yesterday", "console.md#activity",
     "What went wrong yesterday is found from any page in no more steps than recorded, on a desktop and on a phone."),
    ("review:files", "console.md#tools",
     ("The review of a plugin shows its files with line numbers and hidden characters, binary files with size and "
      "hash, and no more than a bound.")),
    ("review:difference", "console.md#tools",
     "The review of a changed plugin shows the difference of each file against the version that was reviewed."),
    ("review:reach", "console.md#tools",
     "The review says in plain words, in both languages, which files, network, project and variables a plugin gets."),
)
# --- Composing messages in the console ---

COMPOSE: Final = _now(
    ("console:compose:attach", "console.md#chat",
     ("Text files, PDFs, project files and several images are attached by button, paste and drop, shown as chips with "
      "name and size, kept with the message, bounded with a message, and can be opened.")),
    ("console:compose:inert", "console.md#chat, http.md#chat",
     "An attached file goes to the model as text under its name; tool requests in it never run."),
    ("console:compose:options", "console.md#chat",
     "Temperature, longest reply and reasoning effort are set per conversation and sent only when set."),
    ("console:compose:use", "console.md#chat",
     ("Each reply and the conversation show their tokens and the share of the context window, with a warning and a way "
      "to choose fewer tools when tools fill the prompt.")),
    ("console:compose:assistants", "console.md#chat",
     "Assistants are created, edited, duplicated, deleted, saved from a chat, and start a chat in one press."),
    ("console:compose:enter", "console.md#chat",
     "Enter sends on a hardware keyboard and makes a new line on a touch keyboard."),
    ("http:assistants", "http.md#chat",
     "Assistants are stored per key with name, prompt, model, tools, mode and reply options, all checked."),
    ("http:attachments", "http.md#chat",
     ("The text of an uploaded file or PDF, and of a project file found by words, is returned bounded, and what has no "
      "text is refused with the reason.")),
    ("chat:reply-options", "chat.md#tools",
     "Temperature, token limit and reasoning effort reach the provider, under the name that its model takes."),
    ("chat:token-use", "chat.md#tools",
     "A client that draws events hears the tokens of each round and of the offered tools."),
)

CONVERSATIONS: Final = _now(
    ("http:conversations:search", "http.md#chat",
     ("A search for conversations finds the words of messages in all branches, in Chinese too, and says where they "
      "stand; it stays fast with thousands of them.")),
    ("http:conversations:activity", "http.md#chat",
     ("Conversations are listed by their last message, the pinned ones first, and pages fit together whatever moves "
      "between them.")),
    ("http:conversations:pinned", "http.md#chat",
     "A conversation can be pinned, renamed and opened at another branch without its messages being sent."),
    ("console:chat:branches", "console.md#chat",
     ("A message can be edited and sent again, a reply generated again, and every branch can be walked to, by keyboard "
      "too; all windows and a reload show the same branch.")),
    ("console:chat:copies", "console.md#chat",
     ("A message and a conversation can be copied as Markdown with their tool calls, exported as Markdown or JSON, and "
      "imported from both, from JSON with all branches; a file that cannot be imported is explained.")),
    ("console:chat:find", "console.md#chat",
     ("The list shows pinned conversations first, then the last active, and follows what happens elsewhere; a search "
      "shows the words around each hit, and opening a hit leads to its message on whatever branch it stands.")),
)

PHONE: Final = _now(
    ("phone:install", "console.md#on-a-phone",
     ("On localhost and over trusted HTTPS the console can be installed, also below a path, with icons, shortcuts and "
      "the colour of the theme; elsewhere the settings say why not and what to do.")),
    ("phone:offline", "console.md#on-a-phone",
     ("Without its server the installed console opens, says so and comes back by itself; the service worker stores the "
      "page and its files and never an answer of the API, and has a policy of its own.")),
    ("phone:upgrade", "console.md#on-a-phone",
     "After an upgrade of the server its new console is shown, the stored one is replaced, and an open one says so."),
    ("phone:toasts", "console.md#on-a-phone",
     "A toast covers neither Send nor the bottom bar nor the answers to an approval, and can be closed in a dialog."),
    ("phone:copy", "console.md#on-a-phone", "Every copy button works without HTTPS too, or says what to do."),
    ("phone:sign-in", "console.md#on-a-phone",
     ("The settings show a one-time link as a QR code that scanners read; it signs a phone in once, with this key or "
      "one that may do less.")),
    ("phone:notifications", "console.md#approvals",
     "A notification about an approval is shown by the service worker, as phones demand, and leads to the approval."),
    ("phone:safe-areas", "console.md#on-a-phone",
     ("Notches, the bar of the system and the on-screen keyboard cover nothing that is pressed; pulling down reloads "
      "as the browser has it, and behind a dialog nothing moves.")),
)

CONSOLE_PROVIDERS: Final = _now(
    ("console:providers", "console.md#providers",
     ("Providers are added from presets, tested with their exact answer and a hint, edited, disabled and removed "
      "without a file; no stored key reaches the browser, or an origin that it was not stored for.")),
    ("console:providers:models", "providers.md#the-default-model, providers.md#one-or-several",
     ("The default model is first in the list and answers requests that name none; a model goes to the provider that "
      "lists it, and a disabled provider has none.")),
    ("console:providers:rename", "providers.md#rename-a-provider",
     ("A provider can be renamed: its key, the default model and the fallbacks follow, and under the name that it had "
      "its models still answer, for conversations, assistants and programs.")),
    ("console:providers:fallbacks", "console.md#providers", "Fallback models are chosen and put in order on the page."),
    ("console:providers:away", "console.md#chat, chat.md#model-providers",
     ("While a provider does not answer, its models stay listed and chosen and are marked as not reachable, with a way "
      "to the providers; the built-in guide answers only where there is no provider.")),
    ("console:first-minute", "console.md#first-steps",
     "From the first sign-in to an answer of a real model with a tool call takes no more steps than it did."),
    ("console:first-run:kept", "console.md#first-steps",
     ("The first steps take an address without a scheme, offer only models that can chat, and go on where they were "
      "left, with the answer that was there.")),
    ("console:settings:kept", "console.md#settings",
     "Unsaved edits stay when the tab or the page changes, with a mark, and the browser asks before it loses them."),
    ("console:settings:words", "console.md#settings",
     ("Settings have examples, choices in words and a link to the documentation, which the server has itself; changes "
      "that wait for a restart are listed with how to restart.")),
)
# --- The tool page ---

TOOL_PAGE: Final = _now(
    ("tool-page:commands", "console.md#tools",
     ("The form of a tool with several commands lets one choose a command, shows only its fields with the required "
      "ones first, and sends nothing before they are right.")),
    ("tool-page:fields", "console.md#tools",
     ("Dates, secrets, files, maps, choices of several values, lists and unions have fields of their own, and a "
      "secret is not stored in the browser.")),
    ("tool-page:paths", "console.md#tools",
     ("The path picker walks through the folders of the project by name, never outside, and its listings are not in "
      "the journal.")),
    ("tool-page:starters", "console.md#tools",
     "The examples of a tool and its last inputs are one press away; the examples name files that are in the project."),
    ("tool-page:copy", "console.md#tools",
     "The call copied as a command or as Python does the same, in the right home and project."),
    ("tool-page:result", "console.md#tools",
     ("A result is shown once, its media play, later too, and it can become the draft of a new chat, which nothing "
      "sends.")),
    ("tool-page:own-tool", "console.md#tools", "To try an own tool takes no more steps than it did."),
)

# --- Packages and releases ---

PACKAGES: Final = _now(
    ("package:complete", "releasing.md#building-the-same-bytes",
     "The wheel has every file of the sources and of the plugins, and nothing else."),
    ("package:licences", "console.md#settings",
     ("The licences of all third-party packages in the built console are in the wheel and on the About page, with "
      "their texts; a package that is not named turns the suite red.")),
    ("package:metadata", "releasing.md#each-release",
     "The metadata name author, licences, keywords, and the machines and Pythons that are tested."),
    ("package:sdist", "releasing.md#building-the-same-bytes",
     "The sdist has all sources, no keys, and builds the same wheel, bit for bit."),
    ("package:reproducible", "releasing.md#building-the-same-bytes",
     "The same sources give the same packages, bit for bit, in another folder at another time."),
    ("package:extras", "many-hosts.md#setup, troubleshooting.md#postgresql-is-not-supported-by-this-installation",
     "Missing packages for PostgreSQL are told with the command that installs them."),
    ("ci:workflows", "releasing.md#the-workflows",
     ("The workflows of GitHub are valid, pinned by commit, have the least rights and a time limit, and run commands "
      "that exist.")),
    ("release:check", "releasing.md#each-release",
     "A release whose tag, version, changelog or repository do not agree is refused with the reason."),
)

SERVICES_AND_TLS: Final = _now(
    ("service:activation", "services.md#restarts-and-upgrades",
     ("A server takes the listening socket of its service manager, and while it restarts connections wait there: none "
      "is refused or answered with an error.")),
    ("service:notify", "services.md#restarts-and-upgrades",
     "A server tells its service manager when it is ready, that it is alive, and when it stops."),
    ("service:streams", "chat.md#streams-that-outlast-a-shutdown",
     ("A stream that outlasts the grace period of a shutdown ends with an error event that says how to go on; one that "
      "ends within it is whole.")),
    ("service:units", "services.md#install", "systemd accepts the units of a service, whatever its paths contain."),
    ("service:hardening", "services.md#hardening",
     "The units are hardened, and leave plugins the namespaces that confine them."),
    ("service:boot", "services.md#hardening, services.md#restarts-and-upgrades",
     ("Under a real systemd the unit starts, plugins are confined as without it, and a restart refuses no "
      "connection.")),
    ("service:install", "services.md#install",
     ("toolyard service installs, shows, changes and removes a service of the user or the machine, prints its files "
      "without installing them, and refuses what cannot work.")),
    ("service:launchd", "services.md#install, services.md#restarts-and-upgrades",
     "On macOS the same service is a property list for launchd."),
    ("tls:files", "tls.md#a-certificate-of-your-own",
     "The server speaks HTTPS with a certificate and a key from files."),
    ("tls:self-signed", "tls.md#a-self-signed-certificate",
     ("A self-signed certificate is made once and kept in the home for its owner alone, names this machine, and is "
      "shown with its fingerprint; it sends no HSTS.")),
    ("tls:renewal", "tls.md#a-certificate-of-your-own, tls.md#a-self-signed-certificate",
     "A certificate is renewed before it ends, and a changed one is used without a restart."),
    ("tls:session", "tls.md#one-port-for-both", "Over HTTPS cookies are Secure, and links begin with https."),
    ("tls:plain", "tls.md#one-port-for-both",
     ("Programs on the machine of the server go on with plain HTTP on the same port; other machines are sent to "
      "HTTPS.")),
    ("tls:errors", "troubleshooting.md#the-certificate-cannot-be-used",
     "A certificate that cannot be used is refused at the start with the reason."),
    ("tls:phone", "tls.md#a-phone",
     ("A server that a phone can reach says which URL to open there, and shows a login link as a QR code that "
      "scanners read.")),
)

MESSAGES: Final = _now(
    ("anthropic:create", "messages.md#what-is-supported",
     ("The official client of Anthropic gets answers, streams and errors from POST /v1/messages, with one block open "
      "at a time and the same message streamed or whole.")),
    ("anthropic:request", "messages.md#what-is-supported",
     ("A request of Messages becomes a chat with everything chat has a word for; the rest reaches a provider that "
      "speaks Messages unchanged, and what is malformed is named with its place.")),
    ("anthropic:tools", "messages.md#how-our-tools-appear",
     ("Calls of ours are lines in the text, or blocks for a client that lists our server, streamed without deltas of "
      "their input and after a text; calls of the client are streamed with their arguments.")),
    ("anthropic:fed-back", "messages.md#how-our-tools-appear",
     "Calls of ours that a client sends back reach the model once, with their results."),
    ("anthropic:thinking", "messages.md#what-is-translated",
     "Thinking comes first, with its signature byte for byte, and goes back as it came."),
    ("anthropic:stops", "messages.md#what-is-translated",
     ("Each answer ends with the right stop reason and the tokens of all rounds; before the provider has counted they "
      "are estimated.")),
    ("anthropic:faults", "messages.md#errors",
     ("Every error of these paths has Anthropic's shape with the type of its status, and says when a request is not to "
      "be repeated.")),
    ("anthropic:once", "messages.md#repeats",
     ("A request that is sent again, streamed or not, joins the turn in which a tool has begun, so its effect happens "
      "once.")),
    ("anthropic:waits", "messages.md#how-our-tools-appear",
     "While a call waits for an approval a stream is kept alive with pings."),
    ("anthropic:plain", "messages.md#what-is-translated",
     "Without tools, a request and its answer pass unchanged to and from a provider that speaks Messages."),
    ("anthropic:tokens", "messages.md#what-is-supported",
     ("POST /v1/messages/count_tokens counts at a provider that can, and elsewhere answers an estimate that says so.")),
    ("anthropic:models", "messages.md#what-is-supported",
     "A client that sends anthropic-version gets the list of models, and one model, in Anthropic's shape."),
    ("anthropic:claude-code", "messages.md#claude-code",
     "The side requests of Claude Code are answered without our tools, and its probes without a key."),
    ("http:ways-in", "http.md#other-base-urls",
     "A base URL without /v1, with it twice, with a slash at the end or of the other vendor leads to the same routes."),
)

# fmt: on
REQUIREMENTS: Final[Mapping[str, Requirement]] = _by_id(
    TOOL_REQUESTS,
    REPLY_TEXT,
    ENVELOPE,
    ERROR_CODES,
    TRUNCATION,
    VALUES,
    DIALECTS,
    RUNNER,
    LS,
    READ,
    PATHS,
    COMMAND_LINE,
    FIRST_DAY,
    PYTHON_AND_MAKE,
    LIBRARY,
    HOUSE,
    DOCUMENTATION,
    SEARCH_TOOLS,
    WRITING_TOOLS,
    FILE_OPERATOR,
    REQUESTS,
    PLACEHOLDERS,
    REPLIES,
    MANIFESTS,
    CHILDREN,
    PLUGIN_COMMANDS,
    CALLBACKS_AND_TASKS,
    SCHEDULES_AND_APPROVALS,
    STORAGE_AND_HOSTS,
    STORAGE_AND_HOSTS_TO_COME,
    CONTAINERS,
    CHAT,
    PROTOCOLS,
    RESPONSES,
    OFFER,
    REPEATS,
    PROVIDERS,
    ROUTES,
    PROXIES,
    SERVICES_AND_TLS,
    INTEROP,
    CONSOLE,
    CONSOLE_CRAFT,
    CONSOLE_WAITING,
    CONVERSATIONS,
    FINDING,
    COMPOSE,
    PHONE,
    CONSOLE_PROVIDERS,
    TOOL_PAGE,
    PACKAGES,
    MESSAGES,
)
