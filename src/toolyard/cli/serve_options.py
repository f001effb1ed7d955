"""The options of a server, for ``toolyard serve`` and for the service that runs it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
