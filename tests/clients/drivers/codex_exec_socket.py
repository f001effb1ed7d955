# mypy: ignore-errors
"""Codex CLI over a WebSocket."""

from codex_exec import run
from driver import run_driver


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    return run(url, key, text, "scripted+tools", supports_websockets=True)


run_driver(chat, chat)
