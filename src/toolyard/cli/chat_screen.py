"""The output of ``toolyard chat``: streamed text, thinking as one line, a card per tool call, images.

A structured reply is rendered once it is complete. Control characters of a model or a tool never reach the terminal.
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
_KITTY_CHUNK = 4096


class Screen:
    """Shows one reply at a time."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        in_tmux = "TMUX" in environ
        self._kitty = not in_tmux and "KITTY_WINDOW_ID" in environ
        self._iterm = not in_tmux and environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm")
        self.start_reply()

    def start_reply(self) -> None:
        self._text: list[str] = []
        self._thought = 0
        self._is_held = False  # a possible structured reply is held until its end
        self._is_line_open = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    def show_thinking(self, text: str) -> None:
        if not self._thought:
            click.secho("▸ thinking…", dim=True)
        self._thought += len(text)

    def show_text(self, text: str) -> None:
        before = self.text.strip() if len(self._text) < 3 else "x"
        self._text.append(text)
        if not before and self.text.lstrip()[:1] in ("{", "`"):
            self._is_held = True
        if not self._is_held:
            self._write(text)

    def show_call_start(self, call: JsonObject) -> None:
        arguments = call.get("arguments")
        summary = (
            ", ".join(f"{key}={_shorten(value)}" for key, value in arguments.items())
            if isinstance(arguments, dict)
            else ""
        )
        self._end_line()
        click.secho(f"┌ {_replace_controls(str(call.get('tool')))} ", fg="cyan", bold=True, nl=False)
        click.secho(_replace_controls(summary), dim=True)

    def show_call_end(self, call: JsonObject) -> None:
        mark, colour = _MARKS.get(str(call.get("state")), ("•", "cyan"))
        text = " ".join(str(call.get("text", "")).split())
        self._end_line()
        click.secho(f"└ {mark} {_replace_controls(str(call.get('tool')))}: ", fg=colour, nl=False)
        click.echo(_replace_controls(text[:300]))
        media = call.get("media")
        for part in media if isinstance(media, list) else []:
            self._show_picture(part)

    def show_error(self, message: str) -> None:
        self._end_line()
        click.secho(f"error: {_replace_controls(message)}", fg="red", err=True)

    def show_note(self, text: str) -> None:
        self._end_line()
        click.secho(text, dim=True)

    def show_lines(self, lines: Sequence[str]) -> None:
        """Print lines that are safe for a terminal."""
        self._end_line()
        for line in lines:
            click.echo(line)

    def end_reply(self) -> None:
        """Finish the reply."""
        if self._is_held:
            reply = parse_reply(self.text)
            width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
            shown = (
                render_parsed(reply, Target.TERMINAL, width=width, colour=True)
                if reply.ok
                else _replace_controls(self.text)
            )
            click.echo(shown.rstrip("\n"))
            self._is_held = False
        self._end_line()

    def _write(self, text: str) -> None:
        if text:
            click.echo(_replace_controls(text), nl=False)
            self._is_line_open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._is_line_open:
            click.echo()
            self._is_line_open = False

    def _show_picture(self, part: Json) -> None:
        inner = part.get("image_url") if isinstance(part, dict) else None
        match = _DATA.match(str(inner.get("url"))) if isinstance(inner, dict) else None
        if match is None:
            return
        data = match[1]
        size = len(base64.b64decode(data))
        if self._iterm:
            click.echo(f"\x1b]1337;File=inline=1;size={size}:{data}\a")
        elif self._kitty and data.startswith("iVBOR"):
            pieces = [data[at : at + _KITTY_CHUNK] for at in range(0, len(data), _KITTY_CHUNK)]
            for number, piece in enumerate(pieces):
                head = "a=T,f=100," if number == 0 else ""
                click.echo(f"\x1b_G{head}m={int(number + 1 < len(pieces))};{piece}\x1b\\", nl=False)
            click.echo()
        else:
            click.secho(f"  [image, {size:,} bytes]", dim=True)


def _replace_controls(text: str) -> str:
    return _CONTROLS.sub("�", text)


def _shorten(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"
