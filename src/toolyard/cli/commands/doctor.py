"""``toolyard doctor``: find problems and say how to fix them."""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, print_json
from toolyard.doctor import Check, CheckStatus, check_nodes, delete_lost_secrets, repair_state, run_checks
from toolyard.engine.clock import SystemClock
from toolyard.errors import ServerUnreachable, ToolyardError
from toolyard.web.server.running_server import find_home_server

_MARKS = {
    CheckStatus.OK: ("✓", "green"),
    CheckStatus.MISSING_CONFIG: ("-", "blue"),
    CheckStatus.WARN: ("!", "yellow"),
    CheckStatus.FAIL: ("✗", "red"),
}


@click.command("doctor", cls=Command, short_help="Find problems on this machine and show how to fix them.")
@click.option(
    "--repair", is_flag=True, help="First rebuild a damaged state from its records; no server may be running."
)
@click.option(
    "--forget-secrets",
    is_flag=True,
    help="First delete records whose key is lost for good; no server may be running.",
)
@common_options
def command(common: CommonOptions, repair: bool, forget_secrets: bool) -> None:
    """Find problems on this machine and show how to fix them. Exits with 1 if something must be fixed.

    --repair rebuilds the indexes of a damaged state. The original file is kept in a folder of the home.
    --forget-secrets deletes what was encrypted with a secret.key that is lost.
    """
    checks = []
    stamp = SystemClock().now().strftime("%Y%m%d-%H%M%S")
    repairs = [repair_state(common.project, common.home, stamp)] if repair else []
    if forget_secrets:
        repairs.append(delete_lost_secrets(common.project, common.home))
    for check in itertools.chain(repairs, run_checks(common.project, common.home), _check_server(common)):
        checks.append(check)
        if not common.json:
            mark, colour = _MARKS[check.health]
            click.echo(f"{click.style(mark, fg=colour)} {check.name}: {check.detail}")
            if check.fix:
                click.echo(f"  → {check.fix}")
    if common.json:
        print_json([asdict(check) for check in checks])
    sys.exit(any(check.health is CheckStatus.FAIL for check in checks))


def _check_server(common: CommonOptions) -> Iterator[Check]:
    """Yield a check of the running server of this home; nothing without one."""
    try:
        server = find_home_server(common.config())
    except ToolyardError:
        return  # the check of the settings says so
    if server is None:
        return
    try:
        server.check()
    except ServerUnreachable as error:
        yield Check(
            "server",
            CheckStatus.FAIL,
            str(error),
            f"If it was suspended with Ctrl-Z, `kill -CONT {server.pid}` lets it go on; otherwise restart it.",
        )
    else:
        yield Check("server", CheckStatus.OK, f"process {server.pid} answers at {server.url}")
        nodes = server.list_nodes()
        if nodes["is_open"]:
            yield from check_nodes(nodes["data"], common.own_command)
