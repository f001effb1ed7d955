"""``toolyard doctor``: what is wrong here, and how to mend it."""

import sys
from dataclasses import asdict

import click

from toolyard.cli.options import Common, common_options
from toolyard.cli.output import print_json
from toolyard.doctor import Health, examine

_MARKS = {Health.OK: ("✓", "green"), Health.WARN: ("!", "yellow"), Health.FAIL: ("✗", "red")}


@click.command("doctor", short_help="Say what is wrong on this machine and how to mend it.")
@common_options
def command(common: Common) -> None:
    """Say what is wrong on this machine and how to mend it. Exits 1 when something must be mended."""
    checks = []
    for check in examine(common.project, common.home):
        checks.append(check)
        if not common.json:
            mark, colour = _MARKS[check.health]
            click.echo(f"{click.style(mark, fg=colour)} {check.name}: {check.detail}")
            if check.fix:
                click.echo(f"  → {check.fix}")
    if common.json:
        print_json([asdict(check) for check in checks])
    sys.exit(any(check.health is Health.FAIL for check in checks))
