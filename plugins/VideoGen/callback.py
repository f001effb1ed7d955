"""The last word of an asynchronous plugin: one POST to the host, tried again until it is taken.

Five tries, each pause twice the one before. A host that answers with a 4xx other than 408, 425 and 429 does not want
this result: it is not asked again. Proxies are never used, because the host listens on loopback.
"""

import contextlib
import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

TRIES = 5
SECONDS = 30.0
_AGAIN = (408, 425, 429)
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def log(text: str) -> None:
    """A line for the owner; nobody reading is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def call_back(base: str, plugin: str, task: str, body: dict[str, Any], pause: float = 1.0) -> bool:
    """Delivers the body; True when the host took it."""
    url = f"{base.rstrip('/')}/{urllib.parse.quote(plugin, safe='.')}/{urllib.parse.quote(task, safe='')}"
    for attempt in range(1, TRIES + 1):
        problem = _tried(url, json.dumps(body).encode())
        if problem is None:
            log(f"[{task}] callback delivered")
            return True
        why, final = problem
        log(f"[{task}] callback try {attempt} of {TRIES} failed: {why}")
        if final:
            return False
        if attempt < TRIES:
            time.sleep(pause * 2 ** (attempt - 1))
    return False


def _tried(url: str, body: bytes) -> tuple[str, bool] | None:
    """None when it was taken, else why not and whether that is final."""
    if not url.startswith(("http://", "https://")):
        return f"not an http address: {url[:100]}", True
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"}, method="POST")  # noqa: S310
    try:
        with _DIRECT.open(request, timeout=SECONDS) as answer:
            answer.read(65_536)
            return None
    except urllib.error.HTTPError as problem:
        with problem:
            return f"HTTP {problem.code}", 400 <= problem.code < 500 and problem.code not in _AGAIN
    except (OSError, http.client.HTTPException) as problem:
        return str(getattr(problem, "reason", problem)) or type(problem).__name__, False
