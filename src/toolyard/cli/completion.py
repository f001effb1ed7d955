"""``toolyard completion``: completion of commands, options and names in a shell."""

from typing import TYPE_CHECKING, Final

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

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
