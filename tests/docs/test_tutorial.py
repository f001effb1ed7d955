"""The tutorial, typed as it is written by a newcomer with an empty home, a browser and a phone.

The shell has what a newcomer's has; where the page says that a value has to be put in, it is put in. In the soak the
first step is typed as well: a clone, and the whole installation.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
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
from toolyard.gateway.tour_model import Topic, find_topic, write_reply
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.requests.scanner import format_request

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text("utf-8")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
COMMAND_S = 900.0
GREET: Final = "Please greet Ada with the Greeter tool."
LOOK: Final = "What is in this project?"
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
        viewport={"width": size[0], "height": size[1]},
        has_touch=size == PHONE,
        locale="en-US",
        ignore_https_errors=True,
    )  # a reader looks at the certificate, and continues
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


async def _install(shell: Shell, folder: Path, lines: list[TypedLine]) -> None:
    if SOAK:
        await _type_all(shell, lines[:-2], REPOSITORY_URL=str(ROOT))
    else:
        (folder / "toolyard/.venv").mkdir(parents=True)
        (folder / "toolyard/.venv/bin").symlink_to(Path(sys.executable).parent)
        await shell.type("cd toolyard")
    await _type_all(shell, lines[-2:])


async def _chat_with_the_model(
    shell: Shell, folder: Path, lines: list[TypedLine], upstream: Provider, browser: Browser, port: int
) -> Page:
    """Chat as in the fourth step; the page stays open."""
    tutorial, log = Tutorial(), folder / "first.log"
    values = {"https://api.example.org/v1": upstream.url}
    await _type_all(shell, lines[:-1], **values)
    process, link = await _serve(shell, lines[-1].text, log)
    page = await _sign_in(browser, link, DESKTOP)
    assert link.partition("/login")[0] == f"http://127.0.0.1:{port}"
    await page.goto(f"http://127.0.0.1:{port}/chat")
    await _ask(page, tutorial.sentence(GREET))
    await _allow_once(page)
    await expect(replies(page).last).to_contain_text("That is done.")
    assert any("Ada" in str(body["messages"][-1]) for body in upstream.bodies)
    os.kill(process, signal.SIGINT)
    return page


@pytest.mark.asyncio(loop_scope="session")
async def test_the_tutorial_can_be_typed_as_it_is_written(browser: Browser, tmp_path: Path) -> None:
    tutorial = Tutorial()
    port = free_port()
    async with provider(_answer) as upstream, _open_shell(tmp_path, port) as shell:
        await _install(shell, tmp_path, tutorial.steps[1])
        await _type_all(shell, tutorial.steps[2])
        await _type_all(shell, tutorial.steps[3])
        desk = await _chat_with_the_model(shell, tmp_path, tutorial.steps[4], upstream, browser, port)

        (serve,) = tutorial.steps[5]
        await shell.type("wait")
        await _serve(shell, serve.text, tmp_path / "second.log")
        link = await _scan_the_code(shell)
        phone = await _sign_in(browser, link, PHONE)
        await phone.goto(link.partition("/login")[0] + "/approvals")
        assert phone.url.startswith("https:")
        await desk.goto(f"http://127.0.0.1:{port}/chat")
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


async def _scan_the_code(shell: Shell) -> str:
    """The link of a QR code as the server prints it; without a network, one for this machine."""
    _, printed = await shell.type("toolyard login --json")
    login = json.loads(printed)
    return str(login["remote_url"] or login["url"])


def test_the_chinese_tutorial_has_sentences_that_the_guide_understands_too() -> None:
    chinese = (ROOT / "docs/tutorial.zh-CN.md").read_text("utf-8")
    for page, sentences in (
        (PAGE, (LOOK, WRITE)),
        (chinese, ("这个项目里有什么？", "请写一首短诗，保存到 poem.txt。")),
    ):
        assert [one for one in sentences if f"“{one}”" not in page.replace("\n   ", " ")] == []
        assert [find_topic(one) for one in sentences] == [Topic.FILES, Topic.APPROVAL]
    assert "“请用 Greeter 工具问候 Ada。”" in chinese
    assert write_reply(WRITE, None, "", datetime(2026, 1, 1, tzinfo=UTC)).text.count("tour/hello.md") == 1
