"""The option ``--database``: a URL with a password is removed from the process list.

Every user of a machine can read the command lines of all processes, but only the owner of a process its environment. So
a process with a password on its command line re-executes itself, with the same pid and the URL in
``TOOLYARD_DATABASE``.
"""

import os
import re
import sys
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

import click

NAME: Final = "--database"
VARIABLE: Final = "TOOLYARD_DATABASE"
_PASSWORD = re.compile(r"://[^@]*:[^@]+@|password=", re.IGNORECASE)

F = TypeVar("F", bound=Callable[..., object])


def database_option(help_text: str) -> Callable[[F], F]:
    """Add ``--database`` to a command."""
    return click.option(NAME, metavar="URL", help=help_text, callback=_hide_password)


def _hide_password(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url and _PASSWORD.search(url) and any(url in word for word in sys.orig_argv):
        _restart(url)
    return url


def _restart(url: str) -> NoReturn:
    words = (
        f"Warning: the password in {NAME} was visible in the process list. Set {VARIABLE} in the environment instead."
    )
    click.echo(words, err=True)
    sys.stderr.flush()
    os.putenv(VARIABLE, url)
    os.execv(sys.executable, remove_option(sys.orig_argv))  # noqa: S606 ourselves again, without a shell


def remove_option(words: list[str]) -> list[str]:
    """Return a command line without the option and its value."""
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == NAME:
            next(rest, None)
        elif not word.startswith(f"{NAME}="):
            remaining.append(word)
    return remaining
