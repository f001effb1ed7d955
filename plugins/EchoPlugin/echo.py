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
        return {"status": "error", "error": '输入必须是一个 JSON 对象，例如 {"text": "你好"}。'}
    text = said.get("text")
    if text is None:
        return {"status": "error", "error": "缺少参数 text：请提供需要返回的文本内容。"}
    return {"status": "success", "result": prefix + (text if isinstance(text, str) else json.dumps(text))}


def main() -> int:
    """Reads, answers, and tells by the exit code whether it went well."""
    try:
        said = json.loads(sys.stdin.buffer.read() or b"{}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin 不是有效的 JSON：{problem}"}
    else:
        output = answer(said, os.environ.get("ECHO_PREFIX", "Echo: "))
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
