"""HTTP for a plugin that talks to one provider: bounded in time and size, no redirect ever sees the key.

Every failure is a ``Refused`` whose message says what happened and what to do about it.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Any

CHUNK = 65_536
MAX_ANSWER = 64 * 2**20  # of the provider: several images in base64


class Refused(Exception):
    """The request failed; the message is for the person who asked."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """An API that answers with a redirect is not followed: the key would travel along."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_API = urllib.request.build_opener(_Stay)
_PLAIN = urllib.request.build_opener()
_MEANINGS = {
    400: "the provider rejects the request: check prompt, resolution and the model",
    401: "the API key is not valid: check {key_name} in the plugin's settings",
    402: "the account has no credit left",
    403: "the key may not use this model: check its permissions and IMAGE_MODEL",
    404: "there is no such address or model: check IMAGE_API_BASE and IMAGE_MODEL",
    413: "the request is too large: make the input picture smaller",
    429: "too many requests, or the quota is used up: try again later",
}


def post(url: str, body: bytes, headers: dict[str, str], seconds: float, key_name: str) -> dict[str, Any]:
    """Sends a request to the API and gives its JSON object. ``key_name`` is the setting that holds the key."""
    request = urllib.request.Request(_checked(url), data=body, headers=headers, method="POST")  # noqa: S310
    raw = _fetched(_API, request, seconds, MAX_ANSWER, key_name)
    try:
        answer = json.loads(raw)
    except ValueError:
        raise Refused(f"The provider's answer is not JSON: {_start(raw)}. Check IMAGE_API_BASE.") from None
    if not isinstance(answer, dict):
        raise Refused(f"The provider's answer is not a JSON object: {_start(raw)}")
    return answer


def download(url: str, seconds: float, most: int) -> bytes:
    """The bytes behind an address, without any key."""
    return _fetched(_PLAIN, urllib.request.Request(_checked(url)), seconds, most)  # noqa: S310


def _checked(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        raise Refused(f"Only http and https addresses work: {url[:200]}")
    return url


def _fetched(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    seconds: float,
    most: int,
    key_name: str = "",
) -> bytes:
    deadline = time.monotonic() + seconds
    host = request.host
    try:
        with opener.open(request, timeout=seconds) as answer:
            found = bytearray()
            while chunk := answer.read(CHUNK):
                found += chunk
                if len(found) > most:
                    raise Refused(f"The answer of {host} is larger than {most // 2**20} MiB")
                if time.monotonic() > deadline:
                    raise TimeoutError
            return bytes(found)
    except urllib.error.HTTPError as problem:
        with problem:
            raise Refused(_told(problem, host, key_name)) from None
    except TimeoutError:
        raise Refused(f"{host} did not finish within {seconds:g} s: try again, or raise IMAGE_TIMEOUT_S.") from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as problem:
        reason = getattr(problem, "reason", problem)
        if isinstance(reason, TimeoutError):
            raise Refused(f"{host} did not take the connection within {seconds:g} s: check the network.") from None
        raise Refused(f"{host} cannot be reached: {reason}. Check the network and IMAGE_API_BASE.") from None


def _told(problem: urllib.error.HTTPError, host: str, key_name: str) -> str:
    try:
        raw = problem.read(CHUNK)
    except (OSError, http.client.HTTPException):
        raw = b""
    meaning = _MEANINGS.get(problem.code) or (
        "the provider has a problem: try again later" if problem.code >= 500 else "refused"
    )
    wait = problem.headers.get("Retry-After", "")
    pause = f" (in {wait[:20]} s)" if problem.code == 429 and wait.isdigit() else ""
    meaning = meaning.format(key_name=key_name)
    return f"HTTP {problem.code} from {host}: {meaning}{pause}. The provider says: {_said(raw)}"


def _said(raw: bytes) -> str:
    try:
        answer = json.loads(raw)
    except ValueError:
        return _start(raw)
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:500]


def _start(raw: bytes) -> str:
    return raw[:200].decode("utf-8", "replace").strip() or "(nothing)"
