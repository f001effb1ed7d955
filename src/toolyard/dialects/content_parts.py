"""The content of an answer of VCP Protocol v2 (000 §2), and the words for what checkers found in a file."""

import json
from collections.abc import Iterator

from toolyard.protocol.content import Part, Text
from toolyard.protocol.envelope import Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.plugin_answers.plugin_content import find_listing
from toolyard.protocol.tool import BatchItem, Outcome


def list_parts(outcome: Outcome) -> tuple[Part, ...]:
    """Return the parts to show: the tool's own; else a summary and its structured data; else the text alone."""
    if outcome.batch:
        return tuple(_list_batch(outcome.batch))
    if outcome.extras.details is not None and outcome.extras.parts:  # unchanged, whatever its details are
        return outcome.extras.parts
    return (*_list_body(outcome), *_write_findings(outcome))


def _list_body(outcome: Outcome) -> tuple[Part, ...]:
    parts, note = outcome.extras.parts, outcome.extras.note
    if parts:
        return (*parts, Text(note)) if note else parts
    listing = find_listing(outcome.envelope.data)
    if listing is None or outcome.envelope.status is Status.ERROR:
        return (Text(outcome.envelope.text),)
    return Text(outcome.envelope.text), Text(json.dumps(listing[1], ensure_ascii=False, indent=2))


def _list_batch(items: tuple[BatchItem, ...]) -> Iterator[Part]:
    """Yield messages of writes and failures in one text, then what was read, in order (000 §2.3), then findings."""
    answers = [item.outcome for item in items if _is_answer(item)]
    others = [item.outcome for item in items if not _is_answer(item)]
    if others:
        yield Text("\n".join(["Batch Operations Summary:", *(f"- {other.envelope.text}" for other in others)]))
    for answer in answers:
        yield from (*_list_body(answer), *_write_findings(answer, names_file=True))
    for other in others:
        yield from _write_findings(other, names_file=True)


def _is_answer(item: BatchItem) -> bool:
    return item.reads and item.outcome.envelope.status is not Status.ERROR


def _write_findings(outcome: Outcome, *, names_file: bool = False) -> Iterator[Part]:
    """Yield the validators' findings after a write, one text per file: never a failure, always visible (000 §4)."""
    by_file: dict[str, list[str]] = {}
    resolved = outcome.envelope.context.get("path_resolved")
    for finding in list_findings(outcome.envelope.data):
        file = finding.get("file") if isinstance(finding, dict) else None
        by_file.setdefault(str(file or resolved or ""), []).append(write_finding(finding))
    for file, lines in by_file.items():
        of = f" for '{file}'" if file and (names_file or len(by_file) > 1) else ""
        yield Text("\n".join([f"Code Validation Results{of}:", *lines]))


def list_findings(data: JsonObject) -> Iterator[Json]:
    """Yield the findings of a result, of all its files."""
    files = data.get("files")
    for holder in (data, *(files if isinstance(files, list) else ())):
        findings = holder.get("validation") if isinstance(holder, dict) else None
        if isinstance(findings, list):
            yield from findings


def write_finding(finding: Json) -> str:
    """Return a finding in words. Those of plugins may lack any member; a severity that is a number says nothing."""
    if not isinstance(finding, dict):
        return f"- {finding}"
    place = ", ".join(f"{name} {finding[name]}" for name in ("line", "column") if _is_number(finding.get(name)))
    severity, message = finding.get("severity"), finding.get("message")
    said = message if isinstance(message, str) and message.strip() else json.dumps(finding, ensure_ascii=False)
    if isinstance(severity, str) and severity.strip():
        return " ".join(filter(None, ("-", place, f"[{severity}]", said)))
    return f"- {place}: {said}" if place else f"- {said}"


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool) and str(value).isdigit()
