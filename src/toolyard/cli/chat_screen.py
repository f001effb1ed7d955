"""What ``toolyard chat`` draws: text as it comes, thinking folded to one line, a card per tool call, pictures.

A structured reply is shown when it is whole, rendered. Control characters of a model or a tool never reach the
terminal.
"""

import base64
import json
import re
import shutil
from collections.abc import Mapping, Sequence

import click

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.reply import parse_reply
from toolyard.render.render import DEFAULT_WIDTH, Target, render_parsed

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_DATA = re.compile(r"data:image/\w+;base64,([A-Za-z0-9+/=]+)")
_MARKS = {"success": ("✓", "green"), "partial": ("◐", "yellow"), "error": ("✗", "red")}
_KITTY_PIECE = 4096


class Screen:
    """One reply at a time."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        in_tmux = "TMUX" in environ
        self._kitty = not in_tmux and "KITTY_WINDOW_ID" in environ
        self._iterm = not in_tmux and environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm")
        self.begin()

    def begin(self) -> None:
        self._text: list[str] = []
        self._thought = 0
        self._held = False  # what looks like a structured reply waits for its end
        self._open_line = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    def thinks(self, text: str) -> None:
        if not self._thought:
            click.secho("▸ thinking…", dim=True)
        self._thought += len(text)

    def says(self, text: str) -> None:
        before = self.text.strip() if len(self._text) < 3 else "x"
        self._text.append(text)
        if not before and self.text.lstrip()[:1] in ("{", "`"):
            self._held = True
        if not self._held:
            self._write(text)

    def begins(self, call: JsonObject) -> None:
        arguments = call.get("arguments")
        told = (
            ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
            if isinstance(arguments, dict)
            else ""
        )
        self._line()
        click.secho(f"┌ {_safe(str(call.get('tool')))} ", fg="cyan", bold=True, nl=False)
        click.secho(_safe(told), dim=True)

    def ended(self, call: JsonObject) -> None:
        mark, colour = _MARKS.get(str(call.get("state")), ("•", "cyan"))
        text = " ".join(str(call.get("text", "")).split())
        self._line()
        click.secho(f"└ {mark} {_safe(str(call.get('tool')))}: ", fg=colour, nl=False)
        click.echo(_safe(text[:300]))
        media = call.get("media")
        for part in media if isinstance(media, list) else []:
            self._picture(part)

    def fails(self, message: str) -> None:
        self._line()
        click.secho(f"error: {_safe(message)}", fg="red", err=True)

    def notes(self, text: str) -> None:
        self._line()
        click.secho(text, dim=True)

    def lists(self, lines: Sequence[str]) -> None:
        """Print lines that are safe for a terminal."""
        self._line()
        for line in lines:
            click.echo(line)

    def end(self) -> None:
        """The reply is whole."""
        if self._held:
            reply = parse_reply(self.text)
            width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
            shown = render_parsed(reply, Target.TERMINAL, width=width, colour=True) if reply.ok else _safe(self.text)
            click.echo(shown.rstrip("\n"))
            self._held = False
        self._line()

    def _write(self, text: str) -> None:
        if text:
            click.echo(_safe(text), nl=False)
            self._open_line = not text.endswith("\n")

    def _line(self) -> None:
        if self._open_line:
            click.echo()
            self._open_line = False

    def _picture(self, part: Json) -> None:
        inner = part.get("image_url") if isinstance(part, dict) else None
        found = _DATA.match(str(inner.get("url"))) if isinstance(inner, dict) else None
        if found is None:
            return
        data = found[1]
        size = len(base64.b64decode(data))
        if self._iterm:
            click.echo(f"\x1b]1337;File=inline=1;size={size}:{data}\a")
        elif self._kitty and data.startswith("iVBOR"):
            pieces = [data[at : at + _KITTY_PIECE] for at in range(0, len(data), _KITTY_PIECE)]
            for number, piece in enumerate(pieces):
                head = "a=T,f=100," if number == 0 else ""
                click.echo(f"\x1b_G{head}m={int(number + 1 < len(pieces))};{piece}\x1b\\", nl=False)
            click.echo()
        else:
            click.secho(f"  [a picture of {size:,} bytes]", dim=True)


def _safe(text: str) -> str:
    return _CONTROLS.sub("�", text)


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"
