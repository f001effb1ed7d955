"""Plugins named on the command line, by name or by folder."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from toolyard.cli.common_options import CommonOptions
from toolyard.config import Config
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.package.plugin import Origin, Plugin, PluginProblem, PluginState, read_signature
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.yard.plugin_source import PluginSource


def is_folder(word: str) -> bool:
    """Return whether a word is a folder path; a bare name is one only if it contains a manifest."""
    return bool(read_signature(Path(word).absolute())) or "/" in word


def load_config_with_plugins(common: CommonOptions, words: Sequence[str], *, trusts: bool = False) -> Config:
    """Load the settings with the folders among ``words`` as plugins of this run."""
    folders = [word for word in words if is_folder(word)]
    missing = next((word for word in folders if not Path(word).is_dir()), None)
    if missing is not None:
        raise UsageError(f"there is no folder '{missing}'")
    given = folders if trusts else [*common.plugins, *folders]
    return common._replace(plugins=tuple(given), trust=trusts or common.trust).config()


def find_plugin(source: PluginSource, word: str, *, waits_as: Collection[PluginState] = ()) -> Plugin:
    """Return a plugin, of several with one name the first in a state of ``waits_as``. Raises ToolyardError."""
    everything = source.plugins.all
    real = Path(os.path.realpath(word))
    match = next((plugin for plugin in everything if is_folder(word) and plugin.folder == real), None)
    if match is None and "/" not in word:
        waiting = (plugin for plugin in everything if plugin.name == word and plugin.state in waits_as)
        match = next(waiting, None) or source.plugins.get(word)
    if match is not None:
        return match
    if is_folder(word):
        require_usable(source, real)
        raise ToolyardError(f"'{word}' is not a known plugin folder: see '{source.own_command.format('plugin list')}'")
    guess = find_nearest(word, sorted({plugin.name for plugin in everything}))
    hint = f"did you mean '{guess}'?" if guess else f"see '{source.own_command.format('plugin list')}'"
    raise ToolyardError(f"there is no plugin called '{word}': {hint}")


def require_usable(source: PluginSource, folder: Path) -> None:
    """Raise ToolyardError with the problem of a folder whose manifest or command cannot be used."""
    plugin = source.inspect(folder) if folder.is_dir() else None
    if plugin is not None and plugin.state is PluginState.BROKEN:
        raise ToolyardError(f"the plugin in {folder} cannot be used: {plugin.reason}")


def warn_about_broken(common: CommonOptions, source: PluginSource) -> None:
    """Warn about broken plugins in the folders of ``--plugins``."""
    if not common.plugins or common.quiet:
        return
    for plugin in source.plugins.all:
        if plugin.origin is Origin.GIVEN and plugin.state is PluginState.BROKEN:
            click.echo(
                f"Warning: the plugin in {plugin.folder} cannot be used: {escape_unprintable(plugin.reason)}", err=True
            )


def format_problem(problem: PluginProblem, folder: Path) -> str:
    """Return a problem with a location that an editor can open."""
    where = f"{folder.name}/" if problem.file else f"{folder.name}: "
    return f"{where}{problem}"
