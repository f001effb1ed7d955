# mypy: ignore-errors
"""The loop of a driver: each line of stdin is a chat to ask for, each line of stdout what the client made of it.

A driver runs in an environment of its own, so it imports nothing of the tests.
"""

import json
import sys
from collections.abc import Callable

RECALL = "Recall"  # a tool of the client's own
RECALLS = "Recall a word that was said earlier."
OURS = {"type": "mcp", "server_label": "toolyard", "server_url": "http://127.0.0.1", "require_approval": "always"}
WORD = {"type": "object", "properties": {"about": {"type": "string"}}, "required": ["about"]}


def recall(about: str) -> str:
    """Recall a word that was said earlier."""
    return f"violet for {about}"


def run_driver(
    chat: Callable[..., str],
    chat_with_tool: Callable[..., str] | None = None,
    chat_and_decide: Callable[..., str] | None = None,
) -> None:
    """Answer each request with ``chat(url, key, text, is_streamed)``, or with the error that it raises.

    ``chat_with_tool`` takes the same and gives the model ``recall`` beside the tools of the server. So does
    ``chat_and_decide``, with whether calls of the server may run, about which it lets itself be asked.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a client prints is not an answer
    for line in sys.stdin:
        asked = json.loads(line)
        ask = chat_with_tool if asked["has_tool"] else chat
        given = [asked["url"], asked["key"], asked["text"], asked["is_streamed"]]
        if asked["is_allowed"] is not None:
            ask, given = chat_and_decide, [*given, asked["is_allowed"]]
        try:
            answer = {"text": ask(*given)}
        except Exception as error:  # noqa: BLE001 whatever a client raises is what its user sees
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
