"""``toolyard config``: show and check the effective settings."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.table import print_table
from toolyard.config import FILE_NAME, Config
from toolyard.errors import ToolyardError
from toolyard.protocol.mask import MASK
from toolyard.provider_settings import Provider, ProviderOptions
from toolyard.settings import SETTINGS, Setting


@click.group("config", cls=CommandGroup, short_help="Show and check the effective settings.")
@common_options
def command(common: CommonOptions) -> None:
    """Show and check the effective settings."""


@command.command("show")
@click.option("--key", "shows_key", is_flag=True, help="Print only the key of the server.")
@common_options
def show(common: CommonOptions, shows_key: bool) -> None:
    """Print the effective settings: value, source and description. Secrets are masked."""
    config = common.config()
    if shows_key:
        _print_key(common, config)
        return
    if common.json:
        print_json(
            {
                "project": str(config.project.resolve()),
                "home": str(config.home),
                "file": str(config.home / FILE_NAME),
                "settings": {
                    s.name: {"value": _value_to_json(config, s), "source": config.sources[s.name]} for s in SETTINGS
                },
            }
        )
        return
    print_table(
        [("project", str(config.project.resolve())), ("home", str(config.home)), ("file", str(config.home / FILE_NAME))]
    )
    for setting in SETTINGS:
        value = json.dumps(_value_to_json(config, setting))
        click.echo(f"\n{click.style(setting.name, bold=True)} = {value}  ({config.sources[setting.name]})")
        click.echo(f"  {setting.about}")
        by = f", or with {' or '.join(setting.environment)}" if setting.environment else ""
        click.echo(f"  Set it in {FILE_NAME}{by}.")


@command.command("check")
@common_options
def check(common: CommonOptions) -> None:
    """Check the settings and report every problem with its location."""
    config = common.config()
    file = config.home / FILE_NAME
    if common.json:
        print_json({"ok": True, "file": str(file), "exists": file.exists()})
    elif not common.quiet:
        click.echo(f"The settings are valid ({file}{'' if file.exists() else ', which does not exist'}).")


def _print_key(common: CommonOptions, config: Config) -> None:
    from toolyard.web.security.owner_key import read_owner_key

    key = read_owner_key(config.home)
    if key is None:
        raise ToolyardError(f"{config.home} has no key yet: '{config.own_command.format('serve')}' creates one")
    if common.json:
        print_json({"key": key})
    else:
        click.echo(key)


def _value_to_json(config: Config, setting: Setting) -> object:
    value = getattr(config.settings, setting.name)
    if isinstance(value, ProviderOptions):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: one.to_json() if isinstance(one, Provider) else one for name, one in value.items()}
    if setting.secret and value:
        return MASK
    if isinstance(value, Path):
        return str(value)
    return list(map(str, value)) if isinstance(value, tuple) else value
