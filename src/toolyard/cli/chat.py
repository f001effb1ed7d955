"""``toolyard chat``: a conversation in the terminal.

Lines are read by a thread of their own, so that callbacks and schedules go on while nothing is typed. Ctrl-C stops the
reply that is being written; at the prompt it only says how to leave.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading

import aiohttp
import click

from toolyard.cli.arguments import argument_lines
from toolyard.cli.chat_screen import Screen
from toolyard.cli.chat_talk import Talk, talk_of
from toolyard.cli.options import Common, common_options
from toolyard.cli.table import cut, one_line
from toolyard.protocol.json import JsonObject
from toolyard.protocol.offer import OfferMode

_LOOK_S = 0.3  # how often a running call is looked at for an approval it waits for
_AGAIN_S = 0.5
_UNREACHABLE = 4
_HELP = """\
/model NAME  talk to another model; without a name: list them
/tools       the tools a model may use
/new         forget what was said
/help        this
/quit        leave (or Ctrl-D)
Ctrl-C stops a reply."""


@click.command("chat", short_help="Talk to a model in the terminal; tools run on the way.")
@click.option("--model", default="", metavar="NAME", help="The model to talk to.")
@click.option("--url", default="", metavar="URL", help="A server elsewhere.  [default: the one of this home, or none]")
@click.option("--key", default="", metavar="KEY", help="The key for --url.")
@click.option(
    "--offer",
    type=click.Choice([mode.value for mode in OfferMode]),
    help="How the model is offered the tools.  [default: as the setting says]",
)
@common_options
def command(common: Common, model: str, url: str, key: str, offer: str | None) -> None:
    """Talk to a model in the terminal; tools run on the way.

    Without a server the tools run in this process. Without a model provider the built-in guide answers.
    """
    sys.exit(asyncio.run(_chat(common, model, url, key, offer)))


async def _chat(common: Common, model: str, url: str, key: str, offer: str | None) -> int:
    config = common.config()
    async with talk_of(config, url=url, key=key) as talk:
        try:
            return await _Conversation(talk, Screen(config.environ), model, offer).hold(quiet=common.quiet)
        except (aiohttp.ClientError, OSError) as error:
            click.echo(f"toolyard: cannot reach {talk.place}: {error}", err=True)
            return _UNREACHABLE


class _Lines:
    """What is typed, line by line; None when there is no more."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    async def next(self, prompt: str, *, fresh: bool = False) -> str | None:
        """``fresh``: what was typed before the question is no answer to it."""
        if fresh and sys.stdin.isatty():
            while not self._queue.empty():
                self._queue.get_nowait()
        click.echo(prompt, nl=False)
        return await self._queue.get()

    def _read(self) -> None:
        """Without Python's buffer, whose lock would outlive the end of the program."""
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
    def __init__(self, talk: Talk, screen: Screen, model: str, offer: str | None = None) -> None:
        self._talk, self._screen, self._model = talk, screen, model
        self._options: JsonObject = {"offer": offer} if offer else {}
        self._messages: list[JsonObject] = []
        self._running: dict[str, str] = {}  # call id -> tool
        self._asked: set[str] = set()
        self._turn: asyncio.Task[None] | None = None

    async def hold(self, *, quiet: bool) -> int:
        self._lines = _Lines()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop)
        known = await self._talk.models()
        self._model = self._model or (known[0] if known else "tour")
        if not quiet:
            click.secho(f"Toolyard: {self._model} at {self._talk.place}. /help shows the commands.", dim=True)
        while (line := await self._lines.next(click.style("> ", bold=True))) is not None:
            if line.strip() in ("/quit", "/exit"):
                return 0
            if line.startswith("/"):
                await self._obey(line.split(maxsplit=1))
            elif line.strip():
                self._turn = asyncio.create_task(self._answer(line))
                await self._turn
                self._turn = None
        click.echo()
        return 0

    def _stop(self) -> None:
        if self._turn is None:
            click.echo("\n(Ctrl-D or /quit leaves)")
        else:
            self._stopping = asyncio.ensure_future(self._interrupt(self._turn))

    async def _interrupt(self, turn: "asyncio.Task[None]") -> None:
        """Until it ends: whoever answers may not have got the question yet."""
        while not turn.done():
            await self._talk.interrupt()
            await asyncio.wait({turn}, timeout=_AGAIN_S)

    async def _obey(self, words: list[str]) -> None:
        match words:
            case ["/model", name]:
                self._model = name.strip()
            case ["/model"]:
                for name in await self._talk.models():
                    click.echo(f"{'*' if name == self._model else ' '} {name}")
            case ["/tools"]:
                for name, text in await self._talk.tools():
                    click.echo(f"{name:<18} {cut(one_line(text.strip().partition(chr(10))[0]), 100)}")
            case ["/new"]:
                self._messages = []
            case ["/help"]:
                click.echo(_HELP)
            case _:
                click.echo(f"There is no {words[0]}.\n{_HELP}")

    async def _answer(self, line: str) -> None:
        self._screen.begin()
        self._messages.append({"role": "user", "content": line})
        looking = asyncio.create_task(self._look())
        try:
            async for chunk in self._talk.say({"model": self._model, "messages": [*self._messages]}, self._options):
                self._take(chunk)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            self._running.clear()
            self._screen.end()
        if self._screen.text:  # an empty message is refused by some providers
            self._messages.append({"role": "assistant", "content": self._screen.text})

    def _take(self, chunk: JsonObject) -> None:
        error, told, choices = chunk.get("error"), chunk.get("toolyard"), chunk.get("choices")
        if isinstance(error, dict):
            self._screen.fails(str(error.get("message")))
        if isinstance(told, dict):
            self._told(told)
        for choice in choices if isinstance(choices, list) else []:
            delta = choice.get("delta") if isinstance(choice, dict) else None
            if isinstance(delta, dict):
                if isinstance(thought := delta.get("reasoning_content"), str) and thought:
                    self._screen.thinks(thought)
                if isinstance(content := delta.get("content"), str) and content:
                    self._screen.says(content)

    def _told(self, told: JsonObject) -> None:
        match told.get("type"):
            case "call.started":
                self._running[str(told.get("id"))] = str(told.get("tool"))
                self._screen.begins(told)
            case "call.finished":
                self._running.pop(str(told.get("id")), None)
                self._screen.ended(told)
            case "interrupted":
                self._screen.notes("(stopped)")

    async def _look(self) -> None:
        """Ask for each approval that a running call waits for, one after the other."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if not self._running:
                continue
            for approval in await self._talk.waiting(set(self._running)):
                id_ = str(approval.get("id"))
                if id_ not in self._asked:
                    self._asked.add(id_)
                    await self._approve(id_, approval)

    async def _approve(self, id_: str, approval: JsonObject) -> None:
        self._screen.notes(f"{approval.get('tool')} waits for your approval ({approval.get('risk')}).")
        arguments = await self._talk.arguments(id_)
        if arguments is None:  # nobody allows what they cannot see
            self._screen.notes("Its arguments cannot be shown here: look at it in the console.")
            return
        self._screen.lists(argument_lines(arguments))
        masked = bool(approval.get("hidden"))
        said = await self._asks(masked=masked)
        if masked and said == "r":
            revealed = await self._talk.arguments(id_, reveal=True)
            self._screen.lists(argument_lines(revealed) if revealed else ["  (only its owner sees it, while it waits)"])
            said = await self._asks(masked=False)
        await self._talk.answer(id_, allowed=said in ("y", "yes"))

    async def _asks(self, *, masked: bool) -> str:
        said = await self._lines.next(f"allow it? [y/N{', r reveals what is masked' if masked else ''}] ", fresh=True)
        return (said or "").strip().lower()
