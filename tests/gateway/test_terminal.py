"""``toolyard chat`` in a real terminal."""

import asyncio
import contextlib
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.upstream import Script, provider, replies, streamed

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
pytestmark = pytest.mark.requirement("cli:chat")


class Terminal:
    def __init__(self, fd: int, process: asyncio.subprocess.Process) -> None:
        self._fd, self.process, self._raw, self._at = fd, process, b"", 0
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._raw += data
        self._news.set()

    @property
    def screen_text(self) -> str:
        """All that was shown, without its colours."""
        return _COLOURS.sub("", self._raw.decode("utf-8", "replace"))

    async def until(self, text: str) -> str:
        """Until the terminal shows it, after what was waited for before."""
        try:
            async with asyncio.timeout(180):
                while (position := self.screen_text.find(text, self._at)) < 0:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pytest.fail(f"{text!r} was not shown; the terminal has: {self.screen_text[self._at :]}")
        before = self.screen_text[self._at : position]
        self._at = position + len(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())


@asynccontextmanager
async def terminal(place: Path, *options: str, **environ: str) -> AsyncIterator[Terminal]:
    (place / "project").mkdir(parents=True, exist_ok=True)
    ours, theirs = pty.openpty()
    hidden = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "API_URL", "API_Key")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolyard", "chat", "--project", str(place / "project"), "--home", str(place / "home"),
        *options, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**clean, "TERM": "xterm-256color", "COLUMNS": "100", **environ},
    )  # fmt: skip
    os.close(theirs)
    console = Terminal(ours, process)
    try:
        yield console
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        os.close(ours)


async def test_the_guide_answers_without_any_server_and_tools_run(tmp_path: Path) -> None:
    async with terminal(tmp_path) as console:
        await console.until("tour at this process")
        console.type("what is 12 * (3 + 4)?\n")
        await console.until("▸ thinking")
        await console.until("┌ SciCalculator")
        await console.until("└ ✓ SciCalculator")
        await console.until("84")
        await console.until("What next?")
        console.type("/tools\n")
        await console.until("ApplyPatch")
        console.type("give me a structured reply\n")
        drawn = await console.until("lists a folder")
        assert '"attachments"' not in drawn
        console.type("/quit\n")
        async with asyncio.timeout(180):
            assert await console.process.wait() == 0


async def test_a_write_asks_and_the_answer_counts(tmp_path: Path) -> None:
    async with terminal(tmp_path) as console:
        await console.until("> ")
        for answer, outcome in (("n", "✗ Write"), ("y", "✓ Write")):
            console.type("write a file\n")
            await console.until("is waiting for your approval")
            await console.until("path: tour/hello.md")
            await console.until("content:")
            await console.until("[y/N]")
            assert not (tmp_path / "project/tour/hello.md").exists()
            console.type(f"{answer}\n")
            await console.until(outcome)
            await console.until("What next?")
    assert (tmp_path / "project/tour/hello.md").exists()


async def test_it_talks_to_a_server_and_ctrl_c_stops_a_reply(tmp_path: Path) -> None:
    answers = [
        Script([*streamed(f"Look.\n{request(text='x')}\n")]),
        Script(streamed("I never end, I")[:-2], then="hang"),
    ]
    async with gateway(tmp_path, answers, served=True) as one:
        async with terminal(tmp_path, "--url", one.url, "--key", "me", "--model", "scripted") as console:
            await console.until("> ")
            console.type("hello\n")
            await console.until("┌ Say text=x")
            await console.until("└ ✓ Say: Said it.")
            await console.until("I never end")
            os.kill(console.process.pid, signal.SIGINT)
            await console.until("(stopped)")
            await console.until("> ")
            console.type("\x04")
            async with asyncio.timeout(180):
                assert await console.process.wait() == 0
        assert len(one.ran) == 1


async def test_a_server_that_is_not_there_is_exit_code_4(tmp_path: Path) -> None:
    async with terminal(tmp_path, "--url", "http://127.0.0.1:9", "--key", "x") as console:
        await console.until("cannot reach")
        async with asyncio.timeout(180):
            assert await console.process.wait() == 4


@pytest.mark.parametrize("model", ["", "tour"])
async def test_a_provider_that_refuses_its_key_is_told_and_the_guide_answers_only_by_its_name(
    tmp_path: Path, model: str
) -> None:
    refusal = Script([b'{"error": {"message": "wrong key: sk-secret-one"}}'], kind="application/json", status=401)
    async with provider(replies("x")) as upstream:
        upstream.models = refusal
        environ = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "sk-secret-one"}
        async with terminal(tmp_path, *(["--model", model] if model else []), **environ) as console:
            if not model:
                await console.until("no model can be chosen: The model provider 'upstream' answered 401")
                await console.until("Check the provider's address and key")
                async with asyncio.timeout(180):
                    assert await console.process.wait() == 1
            else:
                await console.until("> ")
                console.type("hello\n")
                await console.until("A model provider is configured")
            assert "sk-secret-one" not in console.screen_text


async def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    model = replies("\x1b]0;evil\x07 and \u202e over.")
    async with gateway(tmp_path, model, served=True) as one, terminal(tmp_path, "--url", one.url) as console:
        await console.until("> ")
        console.type("hello\n")
        assert "evil" in await console.until("over.")
        assert "\x1b]0;" not in console.screen_text
