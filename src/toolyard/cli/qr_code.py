"""QR codes in a terminal: two modules per character, dark on light whatever the colours of the terminal are."""

import click

from toolyard.web.qr_matrix import make_qr_matrix

_DARK_ON_LIGHT, _RESET = "\x1b[38;5;16;48;5;231m", "\x1b[0m"
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


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
