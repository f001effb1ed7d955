"""``toolyard login``: a login link of the running server, also as a QR code.

A QR code has two modules per character, dark on light whatever the colours of the terminal are.
"""

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, print_json
from toolyard.errors import ServerUnreachable, ToolyardError
from toolyard.web.qr_matrix import make_qr_matrix

_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


@click.command("login", cls=Command, short_help="Print a link that signs a browser or a phone in.")
@click.option("--qr", "shows_qr", is_flag=True, help="Show the link for a phone as a QR code.")
@common_options
def command(common: CommonOptions, shows_qr: bool) -> None:
    """Print a link that signs a browser in to the running server of this home, once, within 15 minutes."""
    from toolyard.web.server.running_server import find_home_server

    server = find_home_server(common.config())
    if server is None:
        raise ServerUnreachable(f"no server runs on this home: start one with '{common.own_command.format('serve')}'")
    links = server.make_login_links()
    if common.json:
        print_json(links)
    elif not shows_qr:
        click.echo(links["url"])
        if links["remote_url"]:
            click.echo(f"On another machine, such as a phone: {links['remote_url']}")
    elif links["remote_url"]:
        print_qr_code(links["remote_url"], "Scan this code once to sign in on a phone:")
    else:
        raise ToolyardError(
            "no phone can reach this server: start it with --host 0.0.0.0 --allow-remote and, to encrypt, "
            "--tls-self-signed; or set public_url"
        )


_DARK_ON_LIGHT, _RESET = "\x1b[38;5;16;48;5;231m", "\x1b[0m"


def print_qr_code(text: str, title: str) -> None:
    """Print a title, and ``text`` as a QR code."""
    click.echo(title)
    click.echo(render_qr_code(text), color=True)


def render_qr_code(text: str) -> str:
    """Return ``text`` as a QR code of half blocks, one line for each two rows of modules."""
    rows = make_qr_matrix(text)
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    lines = ("".join(_HALVES[halves] for halves in zip(upper, lower, strict=True)) for upper, lower in pairs)
    return "\n".join(f"{_DARK_ON_LIGHT}{line}{_RESET}" for line in lines)
