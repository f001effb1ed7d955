"""The tutorial, typed as it is written by a newcomer with an empty home, a browser and a phone.

The shell has what a newcomer's has; where the page says that a value has to be put in, it is put in. In the soak the
first step is typed as well: a clone, and the whole installation.
"""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page, expect
from playwright.async_api import Error as PlaywrightError

from tests.console.talking import replies
from tests.console.visit import DESKTOP, PATIENCE_MS, PHONE
from tests.docs.shell_examples import TypedLine, list_lines
from tests.fakes import free_port
from tests.gateway.upstream import Provider, Script, provider, says
from tests.waiting import wait_for_value, wait_until
from toolyard.gateway.vcp import PAYLOAD
from toolyard.protocol.request_text import format_request

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text("utf-8")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
COMMAND_S = 900.0
GREET: Final = "Please greet Ada with the Greeter tool."
WRITE: Final = "Please write a short poem into poem.txt."
POEM: Final = "A yard of tools,\na gate of rules.\n"
_END: Final = re.compile(r"<<ended (\d+)>>\n")

pytestmark = pytest.mark.requirement("docs:tutorial")


class Shell:
    """A shell of a newcomer: what is typed runs line by line, and folder and variables stay."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def type(self, line: str) -> tuple[int, str]:
        """Return the exit code of a line, and what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{{ {line}\n}} </dev/null; echo "<<ended $?>>"\n'.encode())
        printed = ""
        async with asyncio.timeout(COMMAND_S):
            while not (end := _END.search(printed)):
                piece = await self._process.stdout.readline()
                assert piece, f"the shell ended at {line!r}: {printed}"
                printed += piece.decode()
        return int(end[1]), printed[: end.start()]

    async def start(self, line: str, log: Path) -> int:
        """Run a line in the background, as in a terminal of its own; its process id."""
        _, printed = await self.type(f'{line} >"{log}" 2>&1 & echo "started $!"')
        return int(re.findall(r"started (\d+)", printed)[0])


@asynccontextmanager
async def _open_shell(folder: Path, port: int) -> AsyncIterator[Shell]:
    kept = ("PATH", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CACHE_DIR", "SSL_CERT_FILE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"HOME": str(folder), "LANG": "C.UTF-8", "TOOLYARD_PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        "bash", "--norc", "--noprofile", cwd=folder, env=environment, start_new_session=True,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        shell = Shell(process)
        await shell.type("shopt -s expand_aliases")  # as every terminal has it
        yield shell
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


class Tutorial:
    """The steps of the page, each with its lines of shell."""

    def __init__(self) -> None:
        parts = re.split(r"^## (\d)\. ", PAGE, flags=re.MULTILINE)
        self.steps = {int(number): list_lines(text) for number, text in zip(parts[1::2], parts[2::2], strict=True)}

    def sentence(self, text: str) -> str:
        """The text, which the page must tell the reader to say or press."""
        assert f"“{text}”" in PAGE.replace("\n   ", " ")
        return text


async def _type_all(shell: Shell, lines: list[TypedLine], **values: str) -> list[str]:
    printed = []
    for line in lines:
        text = line.text
        for name, value in values.items():
            text = text.replace(name, value)  # the reader puts it in
        code, output = await shell.type(text)
        assert (text, code, output if code != line.exit_code else "") == (text, line.exit_code, "")
        printed.append(output)
    return printed


async def _serve(shell: Shell, line: str, log: Path) -> tuple[int, str]:
    """Start the server; its process and the link that it prints."""
    process = await shell.start(line, log)
    links = await wait_until(lambda: re.findall(r"sign in: (\S+)", log.read_text() if log.exists() else ""))
    return process, links[0]


async def _sign_in(browser: Browser, link: str, size: tuple[int, int]) -> Page:
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, has_touch=size == PHONE, locale="en-US"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(re.compile(r"^(?!.*/login)"))
    return page


async def _ask(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.keyboard.press("Enter")


async def _allow_once(page: Page) -> None:
    """Press the button until it is gone: what is pressed in the very moment in which it appears does not count."""
    button = page.get_by_role("button", name=Tutorial().sentence("Allow once"), disabled=False)
    await expect(button).to_be_visible()

    async def press() -> int:
        with suppress(PlaywrightError):  # it went away meanwhile
            await button.click(timeout=1000)
        return await button.count()

    await wait_for_value(press, lambda left: left == 0)


def _answer(body: dict[str, Any]) -> Script:
    """A model that does what the tutorial asks of it, and nothing else."""
    texts = [one["content"] for one in body["messages"] if one["role"] == "user" and isinstance(one["content"], str)]
    has_result = texts[-1].startswith(PAYLOAD) or body["messages"][-1]["role"] == "tool"
    asked = next(text for text in reversed(texts) if not text.startswith(PAYLOAD))
    if has_result:
        return says("That is done.")
    if GREET in asked:
        return says(format_request("Greeter", {"name": "Ada"}))
    return says(format_request("Write", {"path": "poem.txt", "content": POEM}))


def _find_address() -> str:
    """An address of this machine by which another would reach it, if there is a network at all."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.2"


async def _install(shell: Shell, folder: Path, lines: list[TypedLine]) -> None:
    if SOAK:
        await _type_all(shell, lines[:-2], REPOSITORY_URL=str(ROOT))
    else:
        (folder / "toolyard/.venv").mkdir(parents=True)
        (folder / "toolyard/.venv/bin").symlink_to(Path(sys.executable).parent)
        await shell.type("cd toolyard")
    await _type_all(shell, lines[-2:])


async def _chat_with_the_model(
    shell: Shell, folder: Path, lines: list[TypedLine], upstream: Provider, browser: Browser
) -> None:
    tutorial, log = Tutorial(), folder / "first.log"
    values = {"https://api.example.org/v1": upstream.url}
    await _type_all(shell, lines[:-1], **values)
    process, link = await _serve(shell, lines[-1].text, log)
    page = await _sign_in(browser, link, DESKTOP)
    await page.goto(link.partition("/login")[0] + "/chat")
    await _ask(page, tutorial.sentence(GREET))
    await _allow_once(page)
    await expect(replies(page).last).to_contain_text("That is done.")
    assert any("Ada" in str(body["messages"][-1]) for body in upstream.bodies)
    await page.context.close()
    os.kill(process, signal.SIGINT)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_tutorial_can_be_typed_as_it_is_written(browser: Browser, tmp_path: Path) -> None:
    tutorial = Tutorial()
    port, address = free_port(), _find_address()
    async with provider(_answer) as upstream, _open_shell(tmp_path, port) as shell:
        await _install(shell, tmp_path, tutorial.steps[1])
        await _type_all(shell, tutorial.steps[2])
        await _type_all(shell, tutorial.steps[3])
        await _chat_with_the_model(shell, tmp_path, tutorial.steps[4], upstream, browser)

        (serve,) = tutorial.steps[5]
        await shell.type("wait")
        _, link = await _serve(shell, serve.text.replace("ADDRESS", address), tmp_path / "second.log")
        phone = await _sign_in(browser, link, PHONE)
        await phone.goto(link.partition("/login")[0] + "/approvals")
        desk = await _sign_in_with_the_key(shell, browser, f"http://{address}:{port}")
        await _ask(desk, tutorial.sentence(WRITE))
        await expect(phone.get_by_role("article", name="Write")).to_contain_text("a gate of rules.")
        await _allow_once(phone)
        await expect(replies(desk).last).to_contain_text("That is done.")
        poem = tmp_path / "toolyard-tutorial/poem.txt"
        assert poem.read_text() == POEM

        listing, undo = tutorial.steps[6]
        (calls,) = await _type_all(shell, [listing])
        await _type_all(shell, [undo], CALL=re.findall(r"^call_\w+", calls, re.MULTILINE)[0])
        assert not poem.exists()
        assert (tmp_path / "toolyard-tutorial/hello.txt").read_text() == "Hello, Toolyard"
        await phone.context.close()
        await desk.context.close()


async def _sign_in_with_the_key(shell: Shell, browser: Browser, url: str) -> Page:
    _, key = await shell.type("toolyard config show --key")
    context = await browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}, locale="en-US")
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    await page.goto(url)
    await page.get_by_label("Key").fill(key.strip())
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(re.compile(r"^(?!.*/login)"))
    await page.goto(f"{url}/chat")
    return page


def test_the_chinese_tutorial_has_the_sentences_that_the_model_understands() -> None:
    chinese = (ROOT / "docs/tutorial.zh-CN.md").read_text("utf-8")
    assert f"“{GREET}”" in chinese
    assert f"“{WRITE}”" in chinese
