"""The video API (SiliconFlow's shape): submit a task, ask for its status. Bounded in time and size."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

SECONDS = 60.0
MAX_ANSWER = 4 * 2**20
_MEANINGS = {
    400: "the provider does not accept the request; check prompt, resolution and the name of the model",
    401: "the API key is not valid; check SILICONFLOW_API_KEY in config.env",
    402: "the account has no balance left; top it up at the provider",
    403: "the account may not use this model; it may have to be verified or topped up",
    404: "the task, the address or the model does not exist",
    429: "too many requests, or the quota is used up; try again later",
}


class Refused(Exception):
    """The API did not do it; ``passing`` when the same request may succeed later."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class Standing(NamedTuple):
    """Where a task stands: InQueue, InProgress, Succeed or Failed."""

    status: str
    reason: str
    url: str
    body: dict[str, Any]


class _Stay(urllib.request.HTTPRedirectHandler):
    """The key follows no redirect."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


class VideoApi:
    """One provider with its key."""

    def __init__(self, base: str, key: str) -> None:
        self.base = base.rstrip("/")
        self.key = key

    def submit(self, body: dict[str, Any]) -> str:
        """Hands in a task and gives its id."""
        answer = self._post("/video/submit", body)
        task = answer.get("requestId") or answer.get("request_id")
        if not isinstance(task, str) or not task:
            raise Refused(f"The provider returned no requestId: {json.dumps(answer, ensure_ascii=False)[:300]}")
        return task

    def standing(self, task: str) -> Standing:
        """Asks how far a task is."""
        answer = self._post("/video/status", {"requestId": task})
        results = answer.get("results")
        videos = results.get("videos") if isinstance(results, dict) else None
        first = videos[0] if isinstance(videos, list) and videos else {}
        url = first.get("url", "") if isinstance(first, dict) else ""
        return Standing(str(answer.get("status", "")), str(answer.get("reason") or ""), str(url), answer)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if not self.base.lower().startswith(("http://", "https://")):
            raise Refused(f"SILICONFLOW_API_BASE is not an http(s) address: {self.base[:100]}")
        request = urllib.request.Request(  # noqa: S310
            self.base + path,
            data=json.dumps(body, ensure_ascii=False).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method="POST",
        )
        try:
            with _OPENER.open(request, timeout=SECONDS) as answer:
                raw = answer.read(MAX_ANSWER + 1)
        except urllib.error.HTTPError as problem:
            with problem:
                raise _refusal(problem) from None
        except (OSError, http.client.HTTPException) as problem:
            reason = getattr(problem, "reason", problem)
            raise Refused(
                f"{request.host} cannot be reached: {reason}. Check the network and SILICONFLOW_API_BASE.", passing=True
            ) from None
        return _object(raw)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw) if len(raw) <= MAX_ANSWER else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(
            f"The answer of the provider is not a JSON object: {raw[:200].decode('utf-8', 'replace')}", passing=True
        )
    return found


def _refusal(problem: urllib.error.HTTPError) -> Refused:
    try:
        raw = problem.read(65_536)
    except (OSError, http.client.HTTPException):
        raw = b""
    try:
        answer = json.loads(raw)
        said = str(answer.get("message") or answer.get("error") or answer) if isinstance(answer, dict) else str(answer)
    except ValueError:
        said = raw[:300].decode("utf-8", "replace")
    passing = problem.code >= 500 or problem.code in (408, 425, 429)
    meaning = _MEANINGS.get(problem.code) or (
        "an internal error of the provider; try again later" if passing else "the request was refused"
    )
    return Refused(f"HTTP {problem.code}: {meaning}. The provider says: {said[:300] or '(nothing)'}", passing=passing)
