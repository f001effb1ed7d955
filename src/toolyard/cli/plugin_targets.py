"""Which plugin a word of the command line means: a name, or the folder it is in."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from toolyard.cli.options import Common
from toolyard.config import Config, load
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugin_source import PluginSource
from toolyard.plugins.plugin import Plugin, Problem, State
from toolyard.plugins.plugin_files import signature_of
from toolyard.protocol.arguments import find_nearest


def is_folder(word: str) -> bool:
    """Whether a word is the path of a plugin's folder; a bare name is one only if it has a manifest inside."""
    return bool(signature_of(Path(word).absolute())) or "/" in word


def config_for(common: Common, words: Sequence[str], *, trusts: bool = False) -> Config:
    """The settings with the folders among ``words`` as plugins of this run, which then need no review."""
    folders = [word for word in words if is_folder(word)]
    missing = next((word for word in folders if not Path(word).is_dir()), None)
    if missing is not None:
        raise UsageError(f"there is no folder '{missing}'")
    given = folders if trusts else [*common.plugins, *folders]
    return load(common.project, common.home, plugin_folders=given, trusts_given=trusts or common.trust)


def named(source: PluginSource, word: str, *, waits_as: Collection[State] = ()) -> Plugin:
    """The plugin; ToolyardError when there is none. Of several with one name the first that ``waits_as`` these."""
    everything = source.plugins.all
    real = Path(os.path.realpath(word))
    found = next((plugin for plugin in everything if is_folder(word) and plugin.folder == real), None)
    if found is None and "/" not in word:
        waiting = (plugin for plugin in everything if plugin.name == word and plugin.state in waits_as)
        found = next(waiting, None) or source.plugins.get(word)
    if found is not None:
        return found
    if "/" in word:
        raise ToolyardError(f"'{word}' is none of the plugins: see 'toolyard plugin list' for where they are")
    guess = find_nearest(word, sorted({plugin.name for plugin in everything}))
    hint = f"did you mean '{guess}'?" if guess else "see 'toolyard plugin list'"
    raise ToolyardError(f"there is no plugin called '{word}': {hint}")


def told(problem: Problem, folder: Path) -> str:
    """A problem with a place that an editor can open."""
    where = f"{folder.name}/" if problem.file else f"{folder.name}: "
    return f"{where}{problem}"
