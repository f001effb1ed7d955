# mypy: ignore-errors
"""The loop of a driver: each line of stdin is a chat to ask for, each line of stdout what the client made of it.

A driver runs in an environment of its own, so it imports nothing of the tests.
"""

import json
import sys
from collections.abc import Callable


def run_driver(chat: Callable[..., str]) -> None:
    """Answer each request with ``chat(url, key, text, is_streamed)``, or with the error that it raises."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a client prints is not an answer
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"text": chat(asked["url"], asked["key"], asked["text"], asked["is_streamed"])}
        except Exception as error:  # noqa: BLE001 whatever a client raises is what its user sees
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
