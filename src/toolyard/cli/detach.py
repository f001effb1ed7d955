"""Detached commands: they print their answer and continue in the background."""

import asyncio
import json
import os
from collections.abc import Coroutine
from typing import Any, Protocol

import click

from toolyard.errors import ToolyardError
from toolyard.process_memory import protect_memory


class AnswerSink(Protocol):
    """Takes the answer of a command and its exit code."""

    def __call__(self, text: str, code: int) -> None: ...


class DetachableWork(Protocol):
    def __call__(self, say: AnswerSink, *, wait: bool) -> Coroutine[Any, Any, int]: ...


def print_answer(text: str, code: int) -> None:  # noqa: ARG001 the command itself returns it
    """Print an answer on stdout."""
    click.echo(text)


def run_detached(work: DetachableWork) -> int:
    """Run ``work`` in a child process; print its first answer and return its exit code without waiting for its end."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.close(ours)
        _run_in_child(work, theirs)
    os.close(theirs)
    with open(ours, encoding="utf-8") as answer:
        text = answer.read()
    reply: dict[str, Any] = (
        json.loads(text) if text else {"error": "the background process ended without an answer", "code": 1}
    )
    if "error" in reply:
        click.echo(f"toolyard: {reply['error']}", err=True)
        return int(reply["code"])
    click.echo(reply["text"])
    return int(reply["code"])


def _run_in_child(work: DetachableWork, pipe: int) -> None:
    """Run ``work`` in the child, without terminal or output; its answer goes through ``pipe``."""
    protect_memory()
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)

    answer = open(pipe, "w", encoding="utf-8")  # noqa: SIM115 closed with the answer

    def tell(value: dict[str, object]) -> None:
        with answer:
            json.dump(value, answer)

    try:
        asyncio.run(work(lambda text, code: tell({"text": text, "code": code}), wait=False))
    except ToolyardError as error:
        if not answer.closed:  # else the descriptor may belong to another file
            tell({"error": str(error), "code": error.exit_code})
    finally:
        os._exit(0)
