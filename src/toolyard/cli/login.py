"""``toolyard login``: a login link of the running server."""

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.output import print_json
from toolyard.cli.qr_code import print_qr_code
from toolyard.errors import ServerUnreachable, ToolyardError


@click.command("login", cls=Command, short_help="Print a link that signs a browser or a phone in.")
@click.option("--qr", "shows_qr", is_flag=True, help="Show the link for a phone as a QR code.")
@common_options
def command(common: CommonOptions, shows_qr: bool) -> None:
    """Print a link that signs a browser in to the running server of this home, once, within 15 minutes."""
    from toolyard.web.server_client import find_home_server

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
