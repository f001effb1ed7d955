"""EchoPlugin: gives back the text it was sent, behind the configured prefix.

One JSON object on stdin, one JSON object on stdout. It is the smallest complete synchronous plugin.
"""

import json
import os
import sys
from typing import Any


def answer(said: Any, prefix: str) -> dict[str, str]:
    """The object to print for what was read from stdin."""
    if not isinstance(said, dict):
        return {"status": "error", "error": 'The input must be a JSON object, such as {"text": "hello"}.'}
    text = said.get("text")
    if text is None:
        return {"status": "error", "error": "The argument text is missing: give the text to return."}
    return {"status": "success", "result": prefix + (text if isinstance(text, str) else json.dumps(text))}


def main() -> int:
    """Reads, answers, and tells by the exit code whether it went well."""
    try:
        said = json.loads(sys.stdin.buffer.read() or b"{}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin is not valid JSON: {problem}"}
    else:
        output = answer(said, os.environ.get("ECHO_PREFIX", "Echo: "))
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
