"""FileOperator: VCP's tool for files, one name with many commands (001 §3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolyard.message import Message, join_sentences
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINES
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.file_changer import FileChanger
from toolyard.tools.operations.arranging import Arranging
from toolyard.tools.operations.command import CANONICAL, Command, Request
from toolyard.tools.operations.fetching import Fetching
from toolyard.tools.operations.listing import MAX_ITEMS, MAX_RESULTS, Listing, Searching
from toolyard.tools.operations.reading import Reading
from toolyard.tools.operations.vcp_files import VcpFiles
from toolyard.tools.operations.writing import Writing
from toolyard.tools.tool_words import load_commands, load_text
from toolyard.workspace.changes.arranger import Arranger
from toolyard.workspace.changes.trash import RETENTION, Trash
from toolyard.workspace.changes.undo import Undo
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.safe_fetch import MAX_FETCH_BYTES, SafeFetch
from toolyard.workspace.workspace import Workspace

_MAX_ECHO = 100  # characters of an unknown command that are echoed


def _text_parameter(about: str, *, empty: bool = True) -> JsonObject:
    return {"type": "string", "description": about} | ({} if empty else {"minLength": 1})


_LIMITS = {
    "max_lines": MAX_LINES,
    "max_bytes": MAX_BYTES,
    "max_items": MAX_ITEMS,
    "max_results": MAX_RESULTS,
    "kept_days": RETENTION.days,
    "max_fetch_mib": MAX_FETCH_BYTES // 1024**2,
}
_TEXTS = load_commands(__file__, **_LIMITS)
_COMMANDS: list[Json] = [command.name for command in _TEXTS["commands"]]
_PROPERTIES: dict[str, Json] = {
    # Any other text comes through: the tool answers it as VCP does, and says what there is.
    "command": _text_parameter("The command to run.", empty=False)
    | {"anyOf": [{"enum": _COMMANDS}, {"type": "string"}]},
    "path": _text_parameter("The file or folder: filePath, directoryPath or searchPath.", empty=False),
    "source": _text_parameter("What to copy, move or rename: sourcePath.", empty=False),
    "destination": _text_parameter("Where to: destinationPath.", empty=False),
    "content": _text_parameter("The text to write."),
    "encoding": _text_parameter("The encoding to read in, or of a new file."),
    "lines": {"type": ["string", "integer"], "description": "Which lines to read: head:N, tail:N, M-N, M:N or N."},
    "searchString": _text_parameter("The text to replace, exactly as it stands there."),
    "replaceString": _text_parameter("The text to put in its place."),
    "diffContent": _text_parameter("Blocks of SEARCH and REPLACE."),
    "showHidden": {"type": "boolean", "default": False, "description": "List names that begin with a dot."},
    "pattern": _text_parameter("Which names to search for, such as *.txt.", empty=False),
    "options": {"type": ["object", "string"], "description": "How to search: caseSensitive, includeHidden, ..."},
    "url": _text_parameter("What to fetch: http or https.", empty=False),
    "downloadDir": _text_parameter("The folder to download into."),
    "fileName": _text_parameter("The name of the new file."),
}

SPEC = ToolSpec(
    **load_text(__file__, **_LIMITS),
    **_TEXTS,
    parameters={
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["command"],
        "additionalProperties": False,
    },
    examples=({"command": "ReadFile", "filePath": "README.md"},),
    on_request=True,
    synonyms=CANONICAL,
    risk=Risk.WRITE,
    reading_commands=("ListAllowedDirectories", "ReadFile", "ListDirectory", "FileInfo", "SearchFiles"),
    splits_batches=True,
)


class FileOperator:
    spec = SPEC

    def __init__(
        self,
        workspace: Workspace,
        files: FileChanger,
        arranger: Arranger,
        trash: Trash,
        undo: Undo,
        reads: ReadHistory,
        fetch: SafeFetch,
        *,
        fallback_encodings: Sequence[str],
    ) -> None:
        reading = Reading(workspace, reads, fallback_encodings)
        writing = Writing(files, arranger, trash, reads, undo)
        listing, searching = Listing(workspace), Searching(workspace)
        arranging = Arranging(arranger, trash, undo)
        fetching = Fetching(fetch, arranger, undo, fallback_encodings)
        special = VcpFiles(workspace.root, files, writing)
        file, folder, ends = ("filePath",), ("directoryPath",), ("sourcePath", "destinationPath")
        written, replaced = (*file, "content"), (*file, "searchString", "replaceString")
        self._commands: Mapping[str, Command] = {
            "ListAllowedDirectories": Command(listing.list_allowed_directories, reads=True),
            "ReadFile": Command(reading.read_file, file, reads=True),
            "WebReadFile": Command(fetching.web_read_file, reads=True),
            "WriteFile": Command(writing.write_file, written),
            "WriteEscapedFile": Command(writing.write_escaped_file, written),
            "AppendFile": Command(writing.append_file, written),
            "EditFile": Command(writing.edit_file, written),
            "ApplyDiff": Command(writing.apply_diff, file),
            "ListDirectory": Command(listing.list_directory, folder, reads=True),
            "FileInfo": Command(listing.file_info, file, reads=True),
            "SearchFiles": Command(searching.search_files, ("searchPath", "pattern"), reads=True),
            "CopyFile": Command(arranging.copy_file, ends),
            "MoveFile": Command(arranging.move_file, ends),
            "RenameFile": Command(arranging.rename_file, ends),
            "DeleteFile": Command(arranging.delete_file, file),
            "CreateDirectory": Command(arranging.create_directory, folder),
            "DownloadFile": Command(fetching.download_file, ("url",)),
            "UpdateHistory": Command(special.update_history, replaced),
            "CreateCanvas": Command(special.create_canvas, ("fileName", "content")),
        }

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(self._commands)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        request = Request(call, checkpoint)
        command = self._require_command(request)
        result = await command.run(request)
        return replace(result, extras=replace(result.extras, reads=command.reads))

    def check(self, call: ToolCall) -> None:
        self._require_command(Request(call, lambda: None))

    def _require_command(self, request: Request) -> Command:
        name = str(request["command"])
        command = self._commands.get(name)
        if command is None:
            raise self._unknown_command(name)
        request.require(*command.needs)
        return command

    def _unknown_command(self, name: str) -> Failure:
        shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name[:_MAX_ECHO])
        guess = find_nearest(name[:_MAX_ECHO], self._commands)
        meant = Message("Did you mean {guess}?", guess=guess) if guess else ""
        commands = Message("The commands are {names}.", names=", ".join(self._commands))
        return Failure(
            ErrorCode.INVALID_PARAM,
            Message("Unknown action: {shown}", shown=shown),
            hint=join_sentences(meant, commands),
        )
