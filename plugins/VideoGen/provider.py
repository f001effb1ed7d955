"""The video API (SiliconFlow's shape): submit a task, ask for its status. Bounded in time and size."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

SECONDS = 60.0
MAX_ANSWER = 4 * 2**20
_MEANINGS = {
    400: "请求参数不被服务商接受，请检查 prompt、resolution 和模型名",
    401: "API 密钥无效，请检查 config.env 里的 SILICONFLOW_API_KEY",
    402: "账户余额不足，请到服务商处充值",
    403: "没有权限使用这个模型，可能需要实名认证或充值",
    404: "任务、地址或模型不存在",
    429: "请求太频繁或额度用完，请稍后再试",
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
            raise Refused(f"服务商没有返回 requestId：{json.dumps(answer, ensure_ascii=False)[:300]}")
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
            raise Refused(f"SILICONFLOW_API_BASE 不是 http(s) 地址：{self.base[:100]}")
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
                f"无法连接 {request.host}：{reason}。请检查网络和 SILICONFLOW_API_BASE。", passing=True
            ) from None
        return _object(raw)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw) if len(raw) <= MAX_ANSWER else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(f"服务商的回答不是 JSON 对象：{raw[:200].decode('utf-8', 'replace')}", passing=True)
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
    meaning = _MEANINGS.get(problem.code) or ("服务商内部错误，请稍后重试" if passing else "请求被拒绝")
    return Refused(f"HTTP {problem.code}：{meaning}。服务商说：{said[:300] or '（空）'}", passing=passing)
