"""The ledger of the observer: what clients were told, what runs did, and how that agrees with the journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REFUSED = "refused"  # an answer that is no envelope: the call was not taken
_CLOCK_S = 0.5  # what a child needs to say that it has begun
_ENDED = ("success", "partial", "error", "cancelled", "interrupted")


@dataclass
class Entry:
    """One call, as its client saw it."""

    id: str
    file: Path  # in which its run notes what it does
    sent: float
    told: str = ""  # a state of the journal, or REFUSED; nothing while there is no answer
    answered: float = 0.0
    text: str = ""
    seen_to_end: float = 0.0  # when the event of its end came


@dataclass(frozen=True)
class Run:
    """What the run of a call did by itself."""

    starts: tuple[float, ...]
    ends: tuple[float, ...]


@dataclass
class Findings:
    """What does not agree; each is one sentence."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    started_late: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        return [*self.lost, *self.doubled, *self.started_late, *self.disagreements]


def read_run(file: Path) -> Run:
    words = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    times = {kind: tuple(float(line[1]) for line in words if line[0] == kind) for kind in ("start", "end")}
    return Run(times["start"], times["end"])


def state_told(status: int, body: Mapping[str, Any]) -> str:
    """Return the state that an answer names, in the words of the journal."""
    if status != 200 or "status" not in body:
        return REFUSED
    reason = body.get("context", {}).get("reason")
    if reason == "INTERRUPTED":
        return "interrupted"
    return "cancelled" if reason in ("CANCELLED", "DENIED") else str(body["status"])


def compare(entries: list[Entry], journal: Mapping[str, Mapping[str, Any]]) -> Findings:
    findings = Findings()
    for entry in entries:
        _compare(entry, read_run(entry.file), journal.get(entry.id), findings)
    return findings


def _compare(entry: Entry, run: Run, kept: Mapping[str, Any] | None, findings: Findings) -> None:
    state = str(kept["state"]) if kept else ""
    story = f"{entry.id}: told {entry.told or 'nothing'} ({entry.text[:200]}), kept {state or 'nothing'}, ran {run}"
    if len(run.starts) > 1:
        findings.doubled.append(story)
    is_missing = not kept and (run.starts or entry.told in _ENDED)
    has_no_end = kept and state not in _ENDED
    did_nothing = "success" in (entry.told, state) and not run.ends
    if is_missing or has_no_end or did_nothing:
        findings.lost.append(story)
    over = [entry.answered] if entry.told in _ENDED else []
    over += [entry.seen_to_end] if entry.seen_to_end else []
    if run.starts and over and max(run.starts) > min(over) + _CLOCK_S:
        findings.started_late.append(f"{story}, over {over}")
    if entry.told in _ENDED and kept and entry.told != state:
        findings.disagreements.append(story)
    if entry.told == REFUSED and (run.starts or state in ("success", "partial")):
        findings.disagreements.append(story)
