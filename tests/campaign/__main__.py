"""A campaign by hand: ``python -m tests.campaign postgres --faults 200 --minutes 30``."""

import argparse
import asyncio
import logging
import tempfile
import time
from pathlib import Path

import click

from tests.campaign.campaign import run_campaign
from tests.campaign.faults import ON_FILE, ON_POSTGRES


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("store", choices=["file", "postgres"])
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=6)
    asked = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    place = Path(tempfile.mkdtemp(prefix="toolyard-campaign-"))
    report = asyncio.run(
        run_campaign(
            place, ON_FILE if asked.store == "file" else ON_POSTGRES, number=asked.faults,
            workers=0 if asked.store == "file" else asked.workers, clients=asked.clients, seed=asked.seed,
            until=time.monotonic() + 60 * asked.minutes,
        )
    )  # fmt: skip
    click.echo(f"{asked.store}: {report}")
    for problem in report.problems()[:50]:
        click.echo(f"  {problem}")
    click.echo(f"logs and ledger: {place}")
    return 1 if report.problems() else 0


if __name__ == "__main__":
    raise SystemExit(main())
