"""A command that goes on after it has answered."""

import asyncio
import json
import os
from collections.abc import Coroutine
from typing import Any, Protocol

import click

from toolyard.errors import ToolyardError


class Say(Protocol):
    """Takes the answer of a command and the exit code that goes with it."""

    def __call__(self, text: str, code: int) -> None: ...


class Work(Protocol):
    def __call__(self, say: Say, *, wait: bool) -> Coroutine[Any, Any, int]: ...


def printed(text: str, code: int) -> None:  # noqa: ARG001 the command itself gives it back at its end
    """Says it on stdout."""
    click.echo(text)


def detached(work: Work) -> int:
    """Run ``work`` in a process of its own; its first answer is printed and its exit code given at once."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.close(ours)
        _go_on(work, theirs)
    os.close(theirs)
    with open(ours, encoding="utf-8") as answer:
        said = answer.read()
    told = json.loads(said) if said else {"error": "it ended before it had answered"}
    if "error" in told:
        raise ToolyardError(told["error"])
    click.echo(told["text"])
    return int(told["code"])


def _go_on(work: Work, pipe: int) -> None:
    """The process that stays: no terminal, no output; its answer goes through ``pipe``."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)

    answer = open(pipe, "w", encoding="utf-8")  # noqa: SIM115 closed when it is told

    def tell(value: dict[str, object]) -> None:
        with answer:
            json.dump(value, answer)

    try:
        asyncio.run(work(lambda text, code: tell({"text": text, "code": code}), wait=False))
    except ToolyardError as error:
        if not answer.closed:  # else nobody listens any more, and the descriptor may be that of another file
            tell({"error": str(error)})
    finally:
        os._exit(0)
