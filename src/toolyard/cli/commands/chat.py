"""``toolyard chat``: a conversation in the terminal, and its screen.

A thread reads the lines, so that callbacks and schedules go on while nothing is typed. Ctrl-C stops the current reply;
a second one also gives up a server that does not stop it. At the prompt it only prints how to leave.

The screen shows streamed text, thinking as one line, a card per tool call, and images. A structured reply is rendered
once it is complete. Control characters of a model or a tool never reach the terminal.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Mapping, Sequence

import aiohttp
import click

from toolyard.cli.chat_client import ChatClient, open_chat_client
from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.table import format_arguments, to_one_line, truncate
from toolyard.errors import ToolyardError
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.reply import parse_reply
from toolyard.render import DEFAULT_WIDTH, Target, render_parsed
from toolyard.settings import OfferMode

_POLL_S = 0.3  # how often approvals of running calls are polled
_RETRY_S = 0.5
_EXIT_UNREACHABLE = 4
_TOUR = "tour"
_HELP = """\
/model NAME  switch to another model; without a name: list them
/tools       list the tools
/new         start a new conversation
/help        show this help
/quit        quit (or Ctrl-D)
Ctrl-C stops a reply."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_DATA = re.compile(r"data:image/\w+;base64,([A-Za-z0-9+/=]+)")
_MARKS = {"success": ("✓", "green"), "partial": ("◐", "yellow"), "error": ("✗", "red")}
_KITTY_CHUNK = 4096


@click.command("chat", cls=Command, short_help="Chat with a model in the terminal.")
@click.option("--model", default="", metavar="NAME", help="Model to chat with.")
@click.option(
    "--url",
    default="",
    metavar="URL",
    help="Server to use.  [default: the server of this home and project, if it is running]",
)
@click.option("--key", default="", metavar="KEY", help="Key for --url.")
@click.option(
    "--offer",
    type=click.Choice([mode.value for mode in OfferMode]),
    help="How tools are offered to the model.  [default: the setting 'offer']",
)
@common_options
def command(common: CommonOptions, model: str, url: str, key: str, offer: str | None) -> None:
    """Chat with a model in the terminal; it can call tools.

    Without a running server the tools run in this process. Without a model provider the built-in guide answers.
    """
    sys.exit(asyncio.run(_run_chat(common, model, url, key, offer)))


async def _run_chat(common: CommonOptions, model: str, url: str, key: str, offer: str | None) -> int:
    config = common.config()
    async with open_chat_client(
        config, url=url, key=key, names_project=bool(common.project), require_project=common.serving_config
    ) as talk:
        try:
            conversation = _Conversation(talk, Screen(config.environ), model, offer, config.own_command)
            return await conversation.run(quiet=common.quiet)
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            click.echo(f"toolyard: cannot reach the server at {talk.name}: {reason}", err=True)
            return _EXIT_UNREACHABLE


class _LineReader:
    """Reads typed lines; None at the end of the input."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    async def read(self, prompt: str, *, fresh: bool = False) -> str | None:
        """Print the prompt and read a line; with ``fresh``, lines typed before the prompt are dropped."""
        if fresh and sys.stdin.isatty():
            while not self._queue.empty():
                self._queue.get_nowait()
        click.echo(prompt, nl=False)
        return await self._queue.get()

    def _read(self) -> None:
        """Read stdin without Python's buffer, whose lock would block the end of the program."""
        rest = b""
        with contextlib.suppress(OSError, RuntimeError):
            while data := os.read(sys.stdin.fileno(), 65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._put(line.decode("utf-8", "replace").rstrip("\r"))
        with contextlib.suppress(RuntimeError):
            if rest:
                self._put(rest.decode("utf-8", "replace"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, line)


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


class _Conversation:
    def __init__(
        self,
        talk: ChatClient,
        screen: Screen,
        model: str,
        offer: str | None = None,
        own_command: OwnCommand = FOR_DEFAULT_HOME,
    ) -> None:
        self._client, self._screen, self._model, self._own_command = talk, screen, model, own_command
        self._options: JsonObject = {"offer": offer} if offer else {}
        self._messages: list[JsonObject] = []
        self._running: dict[str, str] = {}  # call id -> tool
        self._asked: set[str] = set()
        self._turn: asyncio.Task[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    async def run(self, *, quiet: bool) -> int:
        self._lines = _LineReader()
        known = await self._client.list_models()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._handle_interrupt)
        self._model = self._model or await self._choose_model(known)
        if not quiet:
            project = f", project {self._client.project}" if self._client.project else ""
            click.secho(f"Toolyard: {self._model} at {self._client.name}{project}. Type /help for commands.", dim=True)
        while (line := await self._lines.read(click.style("> ", bold=True))) is not None:
            if line.strip() in ("/quit", "/exit"):
                return 0
            if line.startswith("/"):
                await self._run_command(line.split(maxsplit=1))
            elif line.strip():
                self._turn = asyncio.create_task(self._answer(line))
                await asyncio.wait({self._turn})
                if self._turn.cancelled():
                    self._screen.show_note("(no longer waiting: the server may still work on the reply)")
                else:
                    self._turn.result()
                self._turn = self._stopping = None
        click.echo()
        return 0

    async def _choose_model(self, known: list[str]) -> str:
        """Return the first model; the guide only without a model provider. Raises ToolyardError."""
        model = known[0] if known else _TOUR
        errors = await self._client.list_provider_errors() if model == _TOUR else {}
        if not errors:
            return model
        described = "; ".join(error or f"the model provider '{name}' lists no models" for name, error in errors.items())
        raise ToolyardError(
            f"no model can be chosen: {described}. Check the provider's address and key "
            f"('{self._own_command.format('doctor')}' says more), or name a model with --model; '--model tour' is the "
            "built-in guide"
        )

    def _handle_interrupt(self) -> None:
        if self._turn is None:
            click.echo("\n(Ctrl-D or /quit to quit)")
        elif self._stopping is not None:  # the second time: whoever answers does not stop
            self._turn.cancel()
        else:
            self._stopping = asyncio.ensure_future(self._interrupt(self._turn))

    async def _interrupt(self, turn: "asyncio.Task[None]") -> None:
        """Interrupt a turn until it ends: its request may not have arrived yet."""
        while not turn.done():
            try:
                await self._client.interrupt()
            except (aiohttp.ClientError, OSError):
                turn.cancel()
            await asyncio.wait({turn}, timeout=_RETRY_S)

    async def _run_command(self, words: list[str]) -> None:
        match words:
            case ["/model", name]:
                self._model = name.strip()
            case ["/model"]:
                for name in await self._client.list_models():
                    click.echo(f"{'*' if name == self._model else ' '} {name}")
            case ["/tools"]:
                for name, text in await self._client.list_tools():
                    click.echo(f"{name:<18} {truncate(to_one_line(text.strip().partition(chr(10))[0]), 100)}")
            case ["/new"]:
                self._messages = []
            case ["/help"]:
                click.echo(_HELP)
            case _:
                click.echo(f"Unknown command {words[0]}.\n{_HELP}")

    async def _answer(self, line: str) -> None:
        self._screen.start_reply()
        self._messages.append({"role": "user", "content": line})
        looking = asyncio.create_task(self._poll_approvals())
        try:
            async for chunk in self._client.send({"model": self._model, "messages": [*self._messages]}, self._options):
                self._handle_chunk(chunk)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            self._running.clear()
            self._screen.end_reply()
        if self._screen.text:  # some providers refuse an empty message
            self._messages.append({"role": "assistant", "content": self._screen.text})

    def _handle_chunk(self, chunk: JsonObject) -> None:
        error, event, choices = chunk.get("error"), chunk.get("toolyard"), chunk.get("choices")
        if isinstance(error, dict):
            hint = f". {error['hint']}" if error.get("hint") else ""
            self._screen.show_error(f"{error.get('message')}{hint}")
        if isinstance(event, dict):
            self._handle_event(event)
        for choice in choices if isinstance(choices, list) else []:
            delta = choice.get("delta") if isinstance(choice, dict) else None
            if isinstance(delta, dict):
                if isinstance(thought := delta.get("reasoning_content"), str) and thought:
                    self._screen.show_thinking(thought)
                if isinstance(content := delta.get("content"), str) and content:
                    self._screen.show_text(content)

    def _handle_event(self, event: JsonObject) -> None:
        match event.get("type"):
            case "call.started":
                self._running[str(event.get("id"))] = str(event.get("tool"))
                self._screen.show_call_start(event)
            case "call.finished":
                self._running.pop(str(event.get("id")), None)
                self._screen.show_call_end(event)
            case "interrupted":
                self._screen.show_note("(stopped)")

    async def _poll_approvals(self) -> None:
        """Ask for each approval that a running call waits for, one at a time."""
        while True:
            await asyncio.sleep(_POLL_S)
            if not self._running:
                continue
            for approval in await self._client.list_approvals(set(self._running)):
                id_ = str(approval.get("id"))
                if id_ not in self._asked:
                    self._asked.add(id_)
                    await self._ask_approval(id_, approval)

    async def _ask_approval(self, id_: str, approval: JsonObject) -> None:
        self._screen.show_note(f"{approval.get('tool')} ({approval.get('risk')}) is waiting for your approval.")
        arguments = await self._client.get_arguments(id_)
        if arguments is None:  # never approve what cannot be shown
            self._screen.show_note("Its arguments cannot be shown here: open it in the console.")
            return
        self._screen.show_lines(format_arguments(arguments))
        masked = bool(approval.get("hidden"))
        answer = await self._ask_decision(masked=masked)
        if masked and answer == "r":
            revealed = await self._client.get_arguments(id_, reveal=True)
            self._screen.show_lines(
                format_arguments(revealed) if revealed else ["  (only the owner can see it, while the call waits)"]
            )
            answer = await self._ask_decision(masked=False)
        await self._client.answer_approval(id_, allowed=answer in ("y", "yes"))

    async def _ask_decision(self, *, masked: bool) -> str:
        answer = await self._lines.read(f"Allow? [y/N{', r = reveal masked values' if masked else ''}] ", fresh=True)
        return (answer or "").strip().lower()


def _replace_controls(text: str) -> str:
    return _CONTROLS.sub("�", text)


def _shorten(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"
