"""WriteFile, WriteEscapedFile, AppendFile, EditFile and ApplyDiff: the text of a file.

ApplyDiff's diffContent has one or more pieces of text to search for and what to put in their places:

    <<<<<<< SEARCH
    :start_line:12        optional; the number is not needed and not used
    -------               optional
    the old text
    =======
    the new text
    >>>>>>> REPLACE

Markers stand alone on their lines. Without an ``=======``, the last ``-------`` parts the old text from the new. Dashes
without a number above them may be text themselves: if they stand above the old text in the file, the new text must
begin with them as well, and else the block is refused. One that is not whole is refused too, never guessed at.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolyard.message import Message, join_sentences, replace_in_message
from toolyard.protocol.edits.text_edit import Edit, Match, Strategy, locate
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Result
from toolyard.tools.edit import describe_edit, describe_forgiveness
from toolyard.tools.file_changer import ChangedFile, FileChanger, require_file_name, require_no_new_mask
from toolyard.tools.operations.command import Request, format_size
from toolyard.tools.operations.reading import to_python_encoding
from toolyard.workspace.changes.arranger import Arranger
from toolyard.workspace.changes.trash import RETENTION, Trash, TrashEntry
from toolyard.workspace.changes.undo import Undo
from toolyard.workspace.changes.undo_records import checksum
from toolyard.workspace.document import UTF8, Document
from toolyard.workspace.encoding import Encoding, find_encoding
from toolyard.workspace.read_history import ReadHistory

_ESCAPED = {
    "「始ESCAPE」": "「始」",
    "「末ESCAPE」": "「末」",
    "<<<[TOOL_REQUEST_ESCAPE]>>>": "<<<[TOOL_REQUEST]>>>",
    "<<<[END_TOOL_REQUEST_ESCAPE]>>>": "<<<[END_TOOL_REQUEST]>>>",
}
_MARKED = {"utf-8-sig": ("utf-8", codecs.BOM_UTF8), "utf-16": ("utf-16-le", codecs.BOM_UTF16_LE)}
_START = re.compile(r"<{7} ?SEARCH[ \t]*")
_MIDDLE = re.compile(r"={7}[ \t]*")
_DASHES = re.compile(r"-{7}[ \t]*")
_END = re.compile(r">{7} ?REPLACE[ \t]*")
_HINT = re.compile(r":(?:start|end)_line:[ \t]*\d+[ \t]*")  # a line above the dashes
_DASHED = re.compile(r"-{7}[ \t]*(?:\n|\Z)")
_FORM = Message(
    "Write each block as <<<<<<< SEARCH, the old text, =======, the new text, >>>>>>> REPLACE, "
    "each marker on a line of its own."
)


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
                "'{requested}' exists already and was not changed: created '{path}' ({size}).",
                requested=placed.requested,
                path=placed.path,
                size=size,
            )
            if placed.is_renamed
            else Message("Created '{path}' ({size}).", path=placed.path, size=size)
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
            Message("Created '{path}' ({size} now).", path=changed.path, size=size)
            if changed.before is None
            else Message("Appended to '{path}' ({size} now).", path=changed.path, size=size)
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
            same = Message("'{path}' already has exactly this content.", path=changed.path)
            return self._build_result(changed, same)
        done = Message(
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
                ErrorCode.INVALID_PARAM, Message("searchString is empty."), hint=Message("Give the text to replace.")
            )
        return locate(text, edit)
    except Failure as failure:
        message = replace_in_message(failure.message, "old_string", "searchString")
        message = replace_in_message(message, "new_string", "replaceString")
        if of > 1:
            message = Message(
                "Block {number} of {total}: {message} Nothing was changed.", number=block, total=of, message=message
            )
        unique = failure.reason is Reason.NOT_UNIQUE
        raise Failure(
            failure.reason or failure.code,
            message,
            hint=Message("Give more of the text around the one you mean.") if unique else failure.hint,
            data=failure.data,
        ) from failure


def adopt_line_endings(before: str, content: str) -> str:
    """New text for a file whose lines all end in one way other than ``\\n``."""
    newlines, pairs, returns = (before.count(ending) for ending in ("\n", "\r\n", "\r"))
    if not returns or "\r" in content or (newlines and not newlines == pairs == returns):
        return content
    return content.replace("\n", "\r\n" if newlines else "\r")


@dataclass(frozen=True, slots=True)
class DiffBlock:
    old: str
    new: str
    number: int = 1
    dashes: str = ""  # the line above the old text, which may belong to it

    def to_edit(self, text: str) -> Edit:
        """Build the edit for a file with this text; raises Failure when the block is ambiguous."""
        whole = f"{self.dashes}\n{self.old}"
        if not self.dashes or _strip_lines(whole) not in _strip_lines(text):
            return Edit(self.old, self.new)
        if not _DASHED.match(self.new):
            raise _broken_block(
                self.number,
                Message("begins with '-------', which also stands above the old text in the file"),
                Message("If it is no text, write ':start_line:1' above it; if it is, give the line before it as well."),
            )
        return Edit(whole, self.new)


def _read_blocks(request: Request) -> list[DiffBlock]:
    blocks = request.get("diffContent")
    if blocks is None:
        request.require("searchString", "replaceString")
        return [DiffBlock(request["searchString"], request["replaceString"])]
    if request.get("searchString") is not None:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("ApplyDiff takes either searchString and replaceString, or diffContent, not both."),
            hint=Message("Leave one of them out."),
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
            Message("'{path}' does not exist.", path=path),
            hint=Message("Make it with WriteFile, or check the path."),
        )
    return before


def parse_blocks(text: str) -> list[DiffBlock]:
    """The blocks, in order; raises Failure when there is none or one is not whole."""
    blocks: list[DiffBlock] = []
    lines: list[str] | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        if _START.fullmatch(line):
            if lines is not None:
                raise _broken_block(len(blocks) + 1, Message("has no '>>>>>>> REPLACE' at its end"))
            lines = []
        elif lines is None:
            if line.strip():
                raise _broken_block(
                    len(blocks) + 1, Message("has {text} before its '<<<<<<< SEARCH'", text=repr(line.strip()[:60]))
                )
        elif _END.fullmatch(line):
            blocks.append(_parse_block(lines, len(blocks) + 1))
            lines = None
        else:
            lines.append(line)
    if lines is not None:
        raise _broken_block(len(blocks) + 1, Message("has no '>>>>>>> REPLACE' at its end"))
    if not blocks:
        raise _broken_block(1, Message("is missing: diffContent has no '<<<<<<< SEARCH'"))
    return blocks


def _parse_block(lines: Sequence[str], number: int) -> DiffBlock:
    middles = [at for at, line in enumerate(lines) if _MIDDLE.fullmatch(line)]
    dashes = [at for at, line in enumerate(lines) if _DASHES.fullmatch(line)]
    if len(middles) > 1:
        raise _broken_block(number, Message("has more than one line '=======', so nobody can say which one parts it"))
    if not middles and not dashes:
        raise _broken_block(number, Message("has no line '=======' between the old text and the new"))
    middle = middles[0] if middles else dashes[-1]
    begin = next((at + 1 for at in dashes[:1] if at < middle and all(map(_HINT.fullmatch, lines[:at]))), 0)
    old, new = "\n".join(lines[begin:middle]), "\n".join(lines[middle + 1 :])
    if not old.strip():
        raise _broken_block(number, Message("has no old text to search for"))
    return DiffBlock(old, new, number, lines[0] if begin == 1 else "")


def _strip_lines(text: str) -> str:
    """Lines without blanks at their ends: how a text may be found all the same."""
    return "\n".join(map(str.strip, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


def _broken_block(number: int, why: str, hint: str = _FORM) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("Block {number} of diffContent {why}: nothing was changed.", number=number, why=why),
        hint=hint,
    )
