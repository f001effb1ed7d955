"""``toolyard chat``: a conversation in the terminal.

A thread reads the lines, so that callbacks and schedules go on while nothing is typed. Ctrl-C stops the current reply;
a second one also gives up a server that does not stop it. At the prompt it only prints how to leave.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading

import aiohttp
import click

from toolyard.cli.arguments import format_arguments
from toolyard.cli.chat_client import ChatClient, open_chat_client
from toolyard.cli.chat_screen import Screen
from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.table import to_one_line, truncate
from toolyard.errors import ToolyardError
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.protocol.json import JsonObject
from toolyard.protocol.offer import OfferMode

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
