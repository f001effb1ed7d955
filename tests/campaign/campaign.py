"""Runs a campaign: one fault after the other while clients work, then the ledger beside the journal."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.campaign.clients import EventReader
from tests.campaign.faults import Fault
from tests.campaign.ledger import Findings, compare
from tests.campaign.world import opened


@dataclass
class Report:
    faults: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)
    holes: list[str] = field(default_factory=list)  # in the numbers of events
    unreturned: list[str] = field(default_factory=list)  # hosts that came back without a word
    losses: int = 0  # how often a host was told to be lost
    events: int = 0
    seconds: float = 0.0

    def problems(self) -> list[str]:
        return [*self.findings.all(), *self.holes, *self.unreturned]

    def __str__(self) -> str:
        found = self.findings
        return (
            f"{self.faults.total()} faults in {self.seconds:.0f} s, {self.told.total()} calls: "
            f"lost {len(found.lost)}, doubled {len(found.doubled)}, started after their end {len(found.started_late)}, "
            f"disagreements {len(found.disagreements)}; {self.events} events, holes {len(self.holes)}; hosts lost "
            f"{self.losses}, back without a word {len(self.unreturned)}\n"
            f"faults {dict(self.faults)}\ntold {dict(self.told)}"
        )


async def run_campaign(
    place: Path, faults: Sequence[Fault], *, number: int, workers: int, clients: int, seed: int, until: float = 0.0
) -> Report:
    """Inject ``number`` faults, in order and again; ``until`` (monotonic) ends it earlier."""
    report, chance, begun = Report(), Random(seed), time.monotonic()
    async with opened(place, workers=workers, clients=clients, seed=seed) as (world, at_work, events):
        for count in range(number):
            if until and time.monotonic() > until:
                break
            fault = faults[count % len(faults)]
            await asyncio.sleep(chance.uniform(0.2, 1.0))  # at a moment that nobody chose
            await fault(world, chance)
            report.faults[fault.__name__] += 1
            await world.is_well(at_work)
        await at_work.stop()
        await _read_all(events)
        journal = await world.journal()
        for entry in at_work.entries:
            entry.seen_to_end = events.ends.get(entry.id, 0.0)
        report.findings = compare([entry for entry in at_work.entries if entry.id in journal or entry.told], journal)
        report.findings.lost += [
            f"{entry.id} ran, and is not in the journal"
            for entry in at_work.entries
            if entry.id not in journal and not entry.told and entry.file.exists()
        ]
        report.told.update(entry.told or "no answer" for entry in at_work.entries)
        report.holes, report.events = events.holes, events.cursor
        report.unreturned = events.unreturned(await world.hosts())
        report.losses = sum(type_ == "host.lost" for type_, _ in events.hosts)
    report.seconds = time.monotonic() - begun
    return report


async def _read_all(events: EventReader) -> None:
    """Give the reader of events time to come to the newest one."""
    before = -1
    while events.cursor != before:
        before = events.cursor
        await asyncio.sleep(0.5)
