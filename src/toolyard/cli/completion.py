"""``toolyard completion``, and the completers: the values that a shell offers for an argument.

Completers only read, and offer nothing rather than fail.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.errors import ToolyardError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

    from toolyard.config import Config

PROGRAM: Final = "toolyard"
_VARIABLE = "_TOOLYARD_COMPLETE"  # click answers a shell that sets it
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(_SHELLS))
@common_options
def command(common: CommonOptions, shell: str) -> None:  # noqa: ARG001
    """Print the completion script of a shell. toolyard must be on the PATH for it to work.

    \b
    bash: add to ~/.bashrc    eval "$(toolyard completion bash)"
    zsh:  add to ~/.zshrc     eval "$(toolyard completion zsh)"
    fish: run once            toolyard completion fish > ~/.config/fish/completions/toolyard.fish
    """
    click.echo(_make_completer(shell).source())


def _make_completer(shell: str) -> "ShellComplete":
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    if completer is None:
        raise RuntimeError(f"click does not know the shell {shell}")
    root = click.get_current_context().find_root().command
    return completer(root, {}, PROGRAM, _VARIABLE)


def complete_files(_context: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_plugins(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    config = _load_config(context)
    return _filter(_list_plugins(config), incomplete) if config else []


def complete_plugin_folders(
    context: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Offer the names of plugins, and folders."""
    from click.shell_completion import CompletionItem

    names = complete_plugins(context, param, incomplete)
    return [CompletionItem(incomplete, type="dir"), *(CompletionItem(name) for name in names)]


def complete_tools(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the built-in tools and the plugins."""
    config = _load_config(context)
    if config is None:
        return []
    return _filter([*_list_built_in(config), *_list_plugins(config)], incomplete)


def complete_topics(context: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Offer the pages of the documentation and the commands, for the first word."""
    root = context.find_root()
    if context.params.get(param.name or "") or not isinstance(root.command, click.Group):
        return []
    from click.shell_completion import CompletionItem

    from toolyard.cli.commands.help import list_pages

    titles = dict.fromkeys(root.command.list_commands(root), "")
    with suppress(ToolyardError):
        titles |= {page.topic: page.title for page in list_pages()}
    return [CompletionItem(name, help=titles[name]) for name in _filter(titles, incomplete)]


def _filter(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _list_built_in(config: "Config") -> tuple[str, ...]:
    from toolyard.engine.clock import SystemClock
    from toolyard.engine.registry import Registry
    from toolyard.workspace.workspace import Workspace
    from toolyard.yard.built_in import BuiltInTools

    workspace = Workspace(config.project)
    try:
        return BuiltInTools(config, workspace, SystemClock().now, Registry).names
    finally:
        workspace.close()


def _list_plugins(config: "Config") -> Iterator[str]:
    """Yield the names of the plugins, whether they may run or not."""
    from toolyard.plugins.package.discovery import find_plugin_folders, list_roots
    from toolyard.plugins.package.plugin import read_plugin_files, read_signature

    for folder, _, problem in find_plugin_folders(
        list_roots(config.project, config.home, config.plugin_folders, config.vcp)
    ):
        signature = None if problem else read_signature(folder)
        manifest = read_plugin_files(folder, signature, None).manifest if signature else None
        if manifest is not None:
            yield manifest.name


def _load_config(context: click.Context) -> "Config | None":
    """Return the settings for the options that were typed so far; None when they are wrong."""
    from toolyard.config import load_config

    with suppress(ToolyardError):
        return load_config(
            _find_option(context, "project"),
            _find_option(context, "home"),
            plugin_folders=_find_option(context, "plugins") or (),
        )
    return None


def _find_option(context: click.Context, name: str) -> Any:
    """Return the value of a common option, the one nearest to the cursor first."""
    return next((one.params[name] for one in _walk_up(context) if one.params.get(name)), None)


def _walk_up(context: click.Context | None) -> Iterator[click.Context]:
    while context is not None:
        yield context
        context = context.parent
