"""``toolyard backup``: write the state and the settings of a home to one file."""

from pathlib import Path

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.output import print_json
from toolyard.storage.backup import back_up


@click.command("backup", cls=Command, short_help="Back up state and settings to one file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common_options
def command(common: CommonOptions, file: Path) -> None:
    """Back up the state and settings of this home to FILE, a .tar.gz that only you can read.

    Works while a server is running. FILE must not exist.
    """
    config = common.config()
    home = config.home
    if config.settings.database and not common.quiet:
        click.echo(
            "The state is in PostgreSQL and not part of this backup: back it up with the tools of PostgreSQL.", err=True
        )
    names = back_up(home, file.absolute())
    if common.json:
        print_json({"file": str(file), "home": str(home), "files": names, "bytes": file.stat().st_size})
    elif not common.quiet:
        click.echo(f"Saved {', '.join(names)} of {home} to {file} ({file.stat().st_size} bytes).")
