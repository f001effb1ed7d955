"""The options of a server, for ``toolyard serve`` and for the service that runs it; ``--database`` also for a worker.

Every user of a machine can read the command lines of all processes, but only the owner of a process its environment. So
a process with a password on its command line re-executes itself, with the same pid and the URL in
``TOOLYARD_DATABASE``.
"""

import functools
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
_OPTIONS = (
    click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option(
        "--port",
        metavar="NUMBER",
        type=click.IntRange(0, 65535),
        help="Port to listen on; 0 for any free one.  [default: the setting 'port']",
    ),
    click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach."),
    click.option("--tls-cert", metavar="FILE", type=_FILE, help="Certificate for HTTPS, PEM with its chain."),
    click.option("--tls-key", metavar="FILE", type=_FILE, help="Private key of --tls-cert, PEM without a password."),
    click.option("--tls-self-signed", is_flag=True, help="HTTPS with a certificate made by Toolyard."),
    click.option("--safe", is_flag=True, help="Start without plugins."),
)
_DATABASE: Final = "--database"
_DATABASE_VARIABLE: Final = "TOOLYARD_DATABASE"
_PASSWORD = re.compile(r"://[^@]*:[^@]+@|password=", re.IGNORECASE)
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The values of these options."""

    host: str
    port: int | None  # None: the setting
    allow_remote: bool
    tls_cert: Path | None
    tls_key: Path | None
    tls_self_signed: bool
    safe: bool

    def to_words(self) -> list[str]:
        """Return the options as words of a command line, without those that have their default."""
        words = [] if self.host == "127.0.0.1" else ["--host", self.host]
        values = (("--port", self.port), ("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key))
        for name, value in values:
            words += [] if value is None else [name, str(value)]
        flags = (
            ("--allow-remote", self.allow_remote),
            ("--tls-self-signed", self.tls_self_signed),
            ("--safe", self.safe),
        )
        return words + [name for name, is_set in flags if is_set]


def serve_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as ``ServeOptions`` named ``serve``."""

    @functools.wraps(command)
    def with_options(*args: Any, **given: Any) -> Any:
        names = ServeOptions.__dataclass_fields__
        return command(*args, serve=ServeOptions(**{name: given.pop(name) for name in names}), **given)

    return functools.reduce(lambda inner, option: option(inner), reversed(_OPTIONS), with_options)


def database_option(help_text: str) -> Callable[[F], F]:
    """Add ``--database`` to a command."""
    return click.option(_DATABASE, metavar="URL", help=help_text, callback=_hide_password)


def _hide_password(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url and _PASSWORD.search(url) and any(url in word for word in sys.orig_argv):
        _restart(url)
    return url


def _restart(url: str) -> NoReturn:
    click.echo(
        f"Warning: the password in {_DATABASE} was visible in the process list. Set {_DATABASE_VARIABLE} in the "
        "environment instead.",
        err=True,
    )
    sys.stderr.flush()
    os.putenv(_DATABASE_VARIABLE, url)
    os.execv(sys.executable, remove_option(sys.orig_argv))  # noqa: S606 ourselves again, without a shell


def remove_option(words: list[str]) -> list[str]:
    """Return a command line without the option and its value."""
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == _DATABASE:
            next(rest, None)
        elif not word.startswith(f"{_DATABASE}="):
            remaining.append(word)
    return remaining
