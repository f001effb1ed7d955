"""``toolyard backup`` and ``toolyard restore``: the state and the settings of a home, in one file."""

from pathlib import Path

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, print_json
from toolyard.engine.clock import SystemClock
from toolyard.engine.ownership import OwnerLock
from toolyard.errors import ToolyardError
from toolyard.storage.backup_archive import back_up, list_contents
from toolyard.storage.backup_restore import restore


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


@click.command("restore", cls=Command, short_help="Restore a backup.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Move existing files aside, into a folder of the home.")
@common_options
def restore_(common: CommonOptions, file: Path, force: bool) -> None:
    """Restore the backup FILE into an empty home, or with --force into any. The backup is checked first.

    Work that was running when the backup was made is marked as interrupted. A running server of this home must be
    stopped first.
    """
    home = common.config().home
    lock = OwnerLock.acquire(home)
    try:
        there = list_contents(home)
        if there and not force:
            raise ToolyardError(
                f"{home} already has {', '.join(there)}: pass --force to move them aside, or use another --home"
            )
        stamp = SystemClock().now().strftime("%Y%m%d-%H%M%S")
        aside = home / f"before-restore-{stamp}"
        names = restore(file.absolute(), home, aside)
    finally:
        lock.release()
    moved_to = str(aside) if aside.exists() else None
    if common.json:
        print_json({"home": str(home), "files": names, "aside": moved_to})
    elif not common.quiet:
        click.echo(
            f"{', '.join(names)} of {file} are in {home}.{f' What was there is in {moved_to}.' if moved_to else ''}"
        )
