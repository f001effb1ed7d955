"""``toolyard --version``: the version, with ``--json`` also what a report of a problem needs."""

import click

from toolyard import __version__
from toolyard.cli.common_options import CommonOptions
from toolyard.cli.output import print_json


def print_version(common: CommonOptions) -> None:
    if not common.json:
        click.echo(f"toolyard, version {__version__}")
        return
    import platform
    import sys

    from toolyard.config import find_home
    from toolyard.storage.sqlite_schema import latest_format

    print_json(
        {
            "version": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "home": str(find_home(common.home)),
            "state_format": latest_format(),
        }
    )
