"""The parts that stand for a result in dialects made of content parts (000 §2)."""

import json
from collections.abc import Iterator

from toolyard.protocol.content import Part, Text
from toolyard.protocol.envelope import Status
from toolyard.protocol.json import Json
from toolyard.protocol.outcome import BatchItem, Outcome

_LISTS = ("items", "results", "entries", "matches", "paths", "info")


def content_of(outcome: Outcome) -> tuple[Part, ...]:
    """What the reader sees: the tool's own parts; else a summary and its structured data; else the text alone."""
    if outcome.batch:
        return (*_batch(outcome.batch), *_findings(outcome))
    return (*_body(outcome), *_findings(outcome))


def _body(outcome: Outcome) -> tuple[Part, ...]:
    if outcome.extras.parts:
        return outcome.extras.parts
    data = outcome.envelope.data
    listed = next((data[name] for name in _LISTS if name in data), None)
    if listed is None or outcome.envelope.status is Status.ERROR:
        return (Text(outcome.envelope.text),)
    return Text(outcome.envelope.text), Text(json.dumps(listed, ensure_ascii=False, indent=2))


def _batch(items: tuple[BatchItem, ...]) -> Iterator[Part]:
    """Messages of writes and of failures in one text first, then what was read, in order (000 §2.3), then findings."""
    answers = [item.outcome for item in items if _answers(item)]
    others = [item.outcome for item in items if not _answers(item)]
    if others:
        yield Text("\n".join(["Batch Operations Summary:", *(f"- {other.envelope.text}" for other in others)]))
    for answer in answers:
        yield from content_of(answer)
    for other in others:
        yield from _findings(other)


def _answers(item: BatchItem) -> bool:
    return item.reads and item.outcome.envelope.status is not Status.ERROR


def _findings(outcome: Outcome) -> Iterator[Part]:
    """What the validators said after a write: never a failure, always visible (000 §4)."""
    findings = outcome.envelope.data.get("validation")
    if isinstance(findings, list) and findings:
        yield Text("\n".join(["Code Validation Results:", *map(_finding, findings)]))


def _finding(finding: Json) -> str:
    if not isinstance(finding, dict):
        return f"- {finding}"
    place = f"line {finding.get('line')}, column {finding.get('column')}"
    return f"- {place} [{finding.get('severity')}] {finding.get('message')}"
