"""``toolyard backup``: write the state and the settings of a home to one file."""

from pathlib import Path

import click

from toolyard.cli.common_options import CommonOptions, common_options
from toolyard.cli.output import print_json
from toolyard.storage.backup import back_up


@click.command("backup", short_help="Write the state and the settings to one file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common_options
def command(common: CommonOptions, file: Path) -> None:
    """Write the state and the settings of this home to FILE, a .tar.gz that only you can read.

    It works while a server runs. FILE must not exist.
    """
    config = common.config()
    home = config.home
    if config.settings.database and not common.quiet:
        click.echo("The state is in PostgreSQL, and not in this backup: back it up with its own tools.", err=True)
    names = back_up(home, file.absolute())
    if common.json:
        print_json({"file": str(file), "home": str(home), "files": names, "bytes": file.stat().st_size})
    elif not common.quiet:
        click.echo(f"{', '.join(names)} of {home} are in {file} ({file.stat().st_size} bytes).")
