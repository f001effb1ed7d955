"""WriteFile, WriteEscapedFile, AppendFile, EditFile and ApplyDiff: the text of a file."""

import codecs
from collections.abc import Callable
from dataclasses import replace

from toolyard.message import Message, join_sentences, replace_in_message
from toolyard.protocol.edit import Edit, Match, Strategy
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.locate import locate
from toolyard.protocol.outcome import Result
from toolyard.tools.edit import describe_edit, describe_forgiveness
from toolyard.tools.file_changer import ChangedFile, FileChanger, require_file_name, require_no_new_mask
from toolyard.tools.operations.diff_block import DiffBlock, parse_blocks
from toolyard.tools.operations.file_facts import format_size
from toolyard.tools.operations.reading import to_python_encoding
from toolyard.tools.operations.request import Request
from toolyard.workspace.arranger import Arranger
from toolyard.workspace.changes import checksum
from toolyard.workspace.document import UTF8, Document
from toolyard.workspace.encoding import Encoding, find_encoding
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.trash import RETENTION, Trash, TrashEntry
from toolyard.workspace.undo import Undo

_ESCAPED = {
    "「始ESCAPE」": "「始」",
    "「末ESCAPE」": "「末」",
    "<<<[TOOL_REQUEST_ESCAPE]>>>": "<<<[TOOL_REQUEST]>>>",
    "<<<[END_TOOL_REQUEST_ESCAPE]>>>": "<<<[END_TOOL_REQUEST]>>>",
}
_MARKED = {"utf-8-sig": ("utf-8", codecs.BOM_UTF8), "utf-16": ("utf-16-le", codecs.BOM_UTF16_LE)}


class Writing:
    def __init__(self, files: FileChanger, arranger: Arranger, trash: Trash, reads: ReadHistory, undo: Undo) -> None:
        self._files, self._arranger, self._trash, self._reads, self._undo = files, arranger, trash, reads, undo

    def write_file(self, request: Request) -> Result:
        return self.create(request, request["path"], request["content"])

    def write_escaped_file(self, request: Request) -> Result:
        content: str = request["content"]
        for escaped, plain in _ESCAPED.items():
            content = content.replace(escaped, plain)
        return self.create(request, request["path"], content)

    def create(self, request: Request, path: str, content: str) -> Result:
        """A new file; one that is there is not touched, and the new one gets a number."""
        require_file_name(path)
        require_no_new_mask(request.call, path, "", content)
        document = _new_document(content, request.get("encoding"), path)
        placed = self._arranger.create(path, document.raw, request.checkpoint, access=request.access)
        self._undo.record_changes(request.call.id, [placed.change])
        self._reads.remember(request.call.caller, placed.path, checksum(document.raw))
        size = format_size(len(document.raw))
        done = (
            Message(
                "write.created_other",
                "'{requested}' exists already and was not changed: created '{path}' ({size}).",
                requested=placed.requested,
                path=placed.path,
                size=size,
            )
            if placed.is_renamed
            else Message("write.created_file", "Created '{path}' ({size}).", path=placed.path, size=size)
        )
        # The patch of a new file is what the caller just sent: not worth sending back.
        created = ChangedFile(
            placed.path, None, document, checksum(document.raw), applied=True, patch=None, checkpoint=request.checkpoint
        )
        return created.build_result(
            done,
            {
                "operation": "create",
                "path": placed.path,
                "originalPath": placed.requested,
                "renamed": placed.is_renamed,
                "size": len(document.raw),
            },
        )

    def append_file(self, request: Request) -> Result:
        content: str = request["content"]

        def compute(before: Document | None, path: str) -> bytes:
            if before is None:
                return _new_document(content, request.get("encoding"), path).raw
            return before.raw + before.encode_text(adopt_line_endings(before.text, content), path)

        changed = self._change_file(request, compute)
        size = format_size(len(changed.after.raw))
        done = (
            Message("write.created_now", "Created '{path}' ({size} now).", path=changed.path, size=size)
            if changed.before is None
            else Message("write.appended", "Appended to '{path}' ({size} now).", path=changed.path, size=size)
        )
        return self._build_result(changed, done)

    def edit_file(self, request: Request) -> Result:
        """All of an existing file. Callers of VCP do not read first, so the old content is kept in the trash."""
        content: str = request["content"]
        entries: list[TrashEntry] = []

        def compute(before: Document | None, path: str) -> bytes:
            document = _require_existing(before, path)
            new = document.encoding.bom + document.encode_text(adopt_line_endings(document.text, content), path)
            if new != document.raw:
                entries.append(self._trash.keep_version(path, document.raw))
            return new

        changed = self._change_file(request, compute)
        if not entries:
            same = Message("write.same_content", "'{path}' already has exactly this content.", path=changed.path)
            return self._build_result(changed, same)
        done = Message(
            "write.replaced",
            "Replaced the content of '{path}' ({size}). The old content is kept for {days} days in the trash as {id}.",
            path=changed.path,
            size=format_size(len(changed.after.raw)),
            days=RETENTION.days,
            id=entries[0].id,
        )
        return self._build_result(changed, done, {"trash_id": entries[0].id})

    def apply_diff(self, request: Request) -> Result:
        blocks = _read_blocks(request)
        strategies: list[Strategy] = []

        def compute(before: Document | None, path: str) -> bytes:
            document = _require_existing(before, path)
            for number, block in enumerate(blocks, 1):
                request.checkpoint()
                match = locate_vcp_edit(document.text, block.to_edit(document.text), number, len(blocks))
                document = Document.from_known(document.splice(match.splices, path), document.encoding)
                strategies.append(match.strategy)
            return document.raw

        changed = self._change_file(request, compute)
        forgiven = [strategy.value for strategy in strategies if strategy is not Strategy.EXACT]
        done = join_sentences(
            describe_edit(changed.path, len(blocks)), describe_forgiveness(", ".join(forgiven)) if forgiven else ""
        )
        data: JsonObject = {"occurrences": len(blocks), "strategy": (forgiven or [Strategy.EXACT.value])[0]}
        return self._build_result(changed, done, data)

    def _change_file(self, request: Request, compute: Callable[[Document | None, str], bytes]) -> ChangedFile:
        arguments: JsonObject = {"path": request["path"], "dry_run": False}
        return self._files.change(replace(request.call, arguments=arguments), request.checkpoint, compute)

    def _build_result(self, changed: ChangedFile, done: str, data: JsonObject | None = None) -> Result:
        operation = "create" if changed.before is None else "update"
        about: JsonObject = {"operation": operation, "path": changed.path, "size": len(changed.after.raw)}
        return changed.build_result(done, about | (data or {}))


def locate_vcp_edit(text: str, edit: Edit, block: int = 1, of: int = 1) -> Match:
    """Locate an edit, which is one ``block`` of several, as ``locate`` does; failures name VCP's parameters."""
    try:
        if not edit.old:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("file.searchstring_empty", "searchString is empty."),
                hint=Message("hint.give_text", "Give the text to replace."),
            )
        return locate(text, edit)
    except Failure as failure:
        message = replace_in_message(failure.message, "old_string", "searchString")
        message = replace_in_message(message, "new_string", "replaceString")
        if of > 1:
            message = Message(
                "edit.block_failed",
                "Block {number} of {total}: {message} Nothing was changed.",
                number=block,
                total=of,
                message=message,
            )
        unique = failure.reason is Reason.NOT_UNIQUE
        raise Failure(
            failure.reason or failure.code,
            message,
            hint=Message("hint.more_text", "Give more of the text around the one you mean.")
            if unique
            else failure.hint,
            data=failure.data,
        ) from failure


def adopt_line_endings(before: str, content: str) -> str:
    """New text for a file whose lines all end in one way other than ``\\n``."""
    newlines, pairs, returns = (before.count(ending) for ending in ("\n", "\r\n", "\r"))
    if not returns or "\r" in content or (newlines and not newlines == pairs == returns):
        return content
    return content.replace("\n", "\r\n" if newlines else "\r")


def _read_blocks(request: Request) -> list[DiffBlock]:
    blocks = request.get("diffContent")
    if blocks is None:
        request.require("searchString", "replaceString")
        return [DiffBlock(request["searchString"], request["replaceString"])]
    if request.get("searchString") is not None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "edit.conflicting_parameters",
                "ApplyDiff takes either searchString and replaceString, or diffContent, not both.",
            ),
            hint=Message("hint.leave_one_out", "Leave one of them out."),
        )
    return parse_blocks(blocks)


def _new_document(content: str, encoding: str | None, path: str) -> Document:
    """The document of a new file, in the encoding that the caller wants."""
    name, bom = _MARKED.get((encoding or "").lower(), (to_python_encoding(encoding), b""))
    chosen = Encoding(find_encoding(name, b"", whole=True).name, bom) if name else UTF8
    return Document(bom + Document(b"", chosen, "").encode_text(content, path), chosen, content)


def _require_existing(before: Document | None, path: str) -> Document:
    if before is None:
        raise Failure(
            ErrorCode.NOT_FOUND,
            Message("file.not_found", "'{path}' does not exist.", path=path),
            hint=Message("hint.make_with_write_file", "Make it with WriteFile, or check the path."),
        )
    return before
