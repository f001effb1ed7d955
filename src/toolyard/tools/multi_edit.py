"""MultiEdit: several pieces of text in one file, all or none, each edit made in the result of the one before.

Every edit must prove that its text stands in one place only. To look through the whole text for each of a thousand is
most of their work, so a long series is prepared: the text is kept as slots of whole lines, and one pass over it notes
which slots hold a piece of which edit; a slot that changes is noted again. An edit whose text stands exactly once in
the slots so noted is made there. Every other one is looked for in the whole text: what the notes cannot prove they do
not decide, so the outcome is always that of one edit after the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolyard.message import Message
from toolyard.protocol.edits.text_edit import Edit, Splice, apply_splices, cuts_line_ending, find_occurrences, locate
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.counts import count_edits
from toolyard.tools.edit import NEW_STRING, OLD_STRING, REPLACE_ALL, encode_new_file, require_existing
from toolyard.tools.file_changer import DRY_RUN, EXPECTED_HASH, ChangingTool
from toolyard.tools.tool_words import load_text
from toolyard.workspace.document import UTF8, Document

SPEC = ToolSpec(
    **load_text(__file__),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the root."},
            "edits": {
                "type": "array",
                "minItems": 1,
                "description": "The edits, in the order in which they are made. "
                "Each has old_string, new_string and maybe replace_all.",
                "items": {
                    "type": "object",
                    "properties": {"old_string": OLD_STRING, "new_string": NEW_STRING, "replace_all": REPLACE_ALL},
                    "required": ["old_string", "new_string"],
                    "additionalProperties": False,
                },
            },
            "dry_run": DRY_RUN,
            "expected_hash": EXPECTED_HASH,
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
    },
    synonyms={"filePath": "path", "file_path": "path"},
    risk=Risk.WRITE,
    examples=(
        {
            "path": "README.md",
            "edits": [
                {"old_string": "Hello world", "new_string": "Hello, world!"},
                {"old_string": "colour", "new_string": "color", "replace_all": True},
            ],
        },
    ),
    splits_batches=True,
    unlisted=("dry_run", "expected_hash"),
)
MANY = 100  # edits for which the notes cost less than looking for each, whatever the size of the text
_MOST_NOTED = 4 * 1024 * 1024  # characters of a text, whose lines are then held one by one
_SHORTEST = 16  # characters of a line of an edit: a shorter one may stand anywhere
_LONGEST_PIECE = 32
_STRIDE = 4  # a text is noted at every so many characters; of so many pieces in a row, one is always met
_MOST_SLOTS = 16  # that an edit may stand in
_MOST_AROUND = 8 * 1024  # characters that are looked at around such a slot


class MultiEdit(ChangingTool):
    spec = SPEC

    def change(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        arguments: Mapping[str, Any] = call.arguments
        edits = [Edit(e["old_string"], e["new_string"], e.get("replace_all", False)) for e in arguments["edits"]]
        applied: list[Json] = []

        def compute(before: Document | None, path: str) -> bytes:
            applied.clear()
            if not edits[0].old:
                document = Document.from_known(
                    encode_new_file(before, edits[0].new, path), before.encoding if before else UTF8
                )
                applied.append(_build_report(1, edits[0], 1))
            else:
                document = require_existing(before, path)
            rest = edits[len(applied) :]
            edited = EditedText(document.text, rest)
            for number, edit in enumerate(rest, len(applied) + 1):
                checkpoint()
                seen = edited.text if document.encoding.guessed else ""
                put = _make_edit(edited, edit, number, len(edits))
                for text in put:
                    document.encode_text(text, path)  # refused here, before anything is written
                if seen:
                    Document.from_known(document.encode_whole(seen), document.encoding).splice(
                        locate(seen, edit).splices, path
                    )
                applied.append(_build_report(number, edit, len(put)))
            return document.encode_whole(edited.text)

        changed = self._files.change(call, checkpoint, compute)
        name = changed.path.rpartition("/")[2]
        summary = f"Successfully applied {len(edits)} edits to {name}"
        data: JsonObject = {
            "edits_applied": applied,
            "total_edits": len(edits),
            "was_new_file": changed.before is None,
            "summary": summary,
        }
        made = Message("Made {edits} in '{path}'.", edits=count_edits(len(edits)), path=changed.path)
        return changed.build_result(made, data)


class EditedText:
    """A text in which a series of edits is made, one after the other."""

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self._text, self._edits = text, edits
        self._made = self._indexed_at = 0
        self._lines = self._index_lines()

    @property
    def text(self) -> str:
        return self._text if self._lines is None else "".join(self._lines.slots)

    def make_next(self) -> tuple[str, ...]:
        """Make the next edit; returns what was put in, once for each place. Raises Failure as ``locate`` does."""
        edit = self._edits[self._made]
        if self._lines is not None:
            put = self._lines.make_edit(edit)
            if put is not None:
                self._made += 1
                return (put,)
        text = self.text
        match = locate(text, edit)
        self._text = apply_splices(text, match.splices)
        was_worth_it = self._lines is not None and self._made - self._indexed_at >= MANY
        self._made += 1
        self._lines = self._index_lines() if was_worth_it else None
        return tuple(splice.text for splice in match.splices)

    def _index_lines(self) -> "_IndexedLines | None":
        self._indexed_at = self._made
        coming = self._edits[self._made :]
        return _IndexedLines(self._text, coming) if len(coming) >= MANY and len(self._text) <= _MOST_NOTED else None


def _make_edit(edited: EditedText, edit: Edit, number: int, total: int) -> tuple[str, ...]:
    try:
        if not edit.old:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("old_string is empty."),
                hint=Message("Only the first edit may make a new file."),
            )
        return edited.make_next()
    except Failure as failure:
        raise Failure(
            failure.reason or failure.code,
            Message(
                "Edit {number} of {total} failed, so none was made: {message}",
                number=number,
                total=total,
                message=failure.message,
            ),
            hint=failure.hint,
            data={"failed_edit": number, **failure.data},
        ) from failure


def _build_report(number: int, edit: Edit, occurrences: int) -> dict[str, Json]:
    return {
        "edit_index": number,
        "success": True,
        "old_string": edit.old,
        "new_string": edit.new,
        "occurrences": occurrences,
    }


class _Anchor(NamedTuple):
    """Pieces of one line of a text, each beginning one character after the other; the first one at ``lead``."""

    lead: int
    pieces: list[str]


class _IndexedLines:
    """A text in slots, each of whole lines or empty, with the slots in which the coming edits may stand."""

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        *lines, last = text.split("\n")
        self.slots = [*(line + "\n" for line in lines), last]
        self._anchors, self._size = _choose_anchors({edit.old for edit in edits})
        self._pieces = {piece for anchor in self._anchors.values() for piece in anchor.pieces}
        self._where: defaultdict[str, set[int]] = defaultdict(set)  # by piece: the slots that hold it, or held it
        self._index_pieces(enumerate(self.slots))

    def make_edit(self, edit: Edit) -> str | None:
        """Make an edit that certainly stands in one place; returns what was put in, or None when nothing is certain."""
        place = self._find_only_place(edit.old)
        if place is None:
            return None
        first, window, at = place
        if "\n" in edit.new and "\n" not in window[at + len(edit.old) :]:
            return None  # at the end of the text, lines further up may decide the line ending
        splice = Splice(at, at + len(edit.old), edit.new)
        if "\n" in edit.new or edit.old == edit.new:  # line endings, and what would change nothing
            (splice,) = locate(window, edit).splices
        self._apply_splice(first, splice)
        return splice.text

    def _find_only_place(self, text: str) -> tuple[int, str, int] | None:
        """Find the first slot of those that hold ``text``, their text, and its index; None unless it stands once."""
        anchor = self._anchors.get(text)
        slots = {slot for piece in anchor.pieces for slot in self._where.get(piece, ())} if anchor else ()
        if anchor is None or len(slots) > _MOST_SLOTS:
            return None
        places: list[tuple[int, str, int]] = []
        for slot in slots:
            first, last = self._slots_around(slot, anchor.lead, len(text) - anchor.lead)
            window = "".join(self.slots[first:last])
            if len(window) > _MOST_AROUND:
                return None
            start = sum(map(len, self.slots[first:slot])) - anchor.lead
            end = start + len(self.slots[slot])
            places += [(first, window, at) for at in find_occurrences(window, text) if start <= at < end]
        if len(places) != 1 or cuts_line_ending(places[0][1], places[0][2], places[0][2] + len(text)):
            return None
        return places[0]

    def _slots_around(self, slot: int, before: int, after: int) -> tuple[int, int]:
        """The range of slots that holds ``slot`` and so many characters before and after it."""
        first, last = slot, slot + 1
        while first > 0 and before > 0:
            first -= 1
            before -= len(self.slots[first])
        while last < len(self.slots) and after > 0:
            after -= len(self.slots[last])
            last += 1
        return first, last

    def _apply_splice(self, slot: int, splice: Splice) -> None:
        """Put a splice, whose place is counted from the beginning of ``slot``, into the slots that it touches."""
        start, end = splice.start, splice.end
        while start >= len(self.slots[slot]):
            start, end = start - len(self.slots[slot]), end - len(self.slots[slot])
            slot += 1
        first, text = slot, self.slots[slot]
        while len(text) < end:
            slot += 1
            text += self.slots[slot]
        text = text[:start] + splice.text + text[end:]
        while text and not text.endswith("\n") and slot + 1 < len(self.slots):
            slot += 1
            text += self.slots[slot]
        self.slots[first : slot + 1] = [text, *[""] * (slot - first)]
        self._index_pieces([(first, text)])

    def _index_pieces(self, slots: Iterable[tuple[int, str]]) -> None:
        """Note which pieces are met in these slots; a piece has no newline, so none stands across two of them."""
        size, pieces, where = self._size, self._pieces, self._where
        for slot, text in slots:
            for at in range(0, len(text) - size + 1, _STRIDE):
                if (piece := text[at : at + size]) in pieces:
                    where[piece].add(slot)


def _choose_anchors(texts: Iterable[str]) -> tuple[dict[str, _Anchor], int]:
    """The anchors of those texts that have a line long enough for one, and the size of all their pieces.

    An anchor stands at the beginning of the longest line; if others begin alike, there or in the middle or at the end:
    where it is shared with the fewest, for what only one edit has is seldom found elsewhere.
    """
    lines = {text: max(text.split("\n"), key=len) if "\n" in text else text for text in texts}
    lines = {text: line for text, line in lines.items() if len(line) >= _SHORTEST}
    size = min([_LONGEST_PIECE, *(len(line) - _STRIDE + 1 for line in lines.values())])
    leads = {text: text.index(line) for text, line in lines.items()}
    shared = Counter(text[lead : lead + size] for text, lead in leads.items())
    crowded = [text for text, lead in leads.items() if shared[text[lead : lead + size]] > 1]
    choices = {text: _list_starts(leads[text], len(lines[text]) - size - _STRIDE + 1) for text in crowded}
    shared = Counter(text[start : start + size] for text, starts in choices.items() for start in starts)
    for text, starts in choices.items():
        leads[text] = min((shared[text[start : start + size]], start) for start in starts)[1]
    return {text: _Anchor(lead, _list_pieces(text, lead, size)) for text, lead in leads.items()}, size


def _list_pieces(text: str, lead: int, size: int) -> list[str]:
    return [text[at : at + size] for at in range(lead, lead + _STRIDE)]


def _list_starts(lead: int, room: int) -> set[int]:
    return {lead, lead + room // 2, lead + room}
