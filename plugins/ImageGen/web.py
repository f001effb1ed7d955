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
    400: "请求参数不被服务商接受，请检查 prompt、resolution 和模型名",
    401: "API 密钥无效，请检查 config.env 里的 {key_name}",
    402: "账户余额不足，请到服务商处充值",
    403: "没有权限使用这个模型，请检查密钥的权限和 IMAGE_MODEL",
    404: "地址或模型不存在，请检查 IMAGE_API_BASE 和 IMAGE_MODEL",
    413: "请求太大，请缩小输入图片",
    429: "请求太频繁或额度用完，请稍后再试",
}


def post(url: str, body: bytes, headers: dict[str, str], seconds: float, key_name: str) -> dict[str, Any]:
    """Sends a request to the API and gives its JSON object. ``key_name`` is the setting that holds the key."""
    request = urllib.request.Request(_checked(url), data=body, headers=headers, method="POST")  # noqa: S310
    raw = _fetched(_API, request, seconds, MAX_ANSWER, key_name)
    try:
        answer = json.loads(raw)
    except ValueError:
        raise Refused(f"服务商的回答不是 JSON：{_start(raw)}。请检查 IMAGE_API_BASE 是否正确。") from None
    if not isinstance(answer, dict):
        raise Refused(f"服务商的回答不是 JSON 对象：{_start(raw)}")
    return answer


def download(url: str, seconds: float, most: int) -> bytes:
    """The bytes behind an address, without any key."""
    return _fetched(_PLAIN, urllib.request.Request(_checked(url)), seconds, most)  # noqa: S310


def _checked(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        raise Refused(f"只支持 http 和 https 地址：{url[:200]}")
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
                    raise Refused(f"{host} 的回答超过 {most // 2**20} MiB，已停止下载")
                if time.monotonic() > deadline:
                    raise TimeoutError
            return bytes(found)
    except urllib.error.HTTPError as problem:
        with problem:
            raise Refused(_told(problem, host, key_name)) from None
    except TimeoutError:
        raise Refused(f"{host} 在 {seconds:g} 秒内没有完成回答。请稍后重试，或调大 IMAGE_TIMEOUT_S。") from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as problem:
        reason = getattr(problem, "reason", problem)
        if isinstance(reason, TimeoutError):
            raise Refused(f"连接 {host} 超时（{seconds:g} 秒）。请检查网络，或调大 IMAGE_TIMEOUT_S。") from None
        raise Refused(f"无法连接 {host}：{reason}。请检查网络和 IMAGE_API_BASE。") from None


def _told(problem: urllib.error.HTTPError, host: str, key_name: str) -> str:
    try:
        raw = problem.read(CHUNK)
    except (OSError, http.client.HTTPException):
        raw = b""
    meaning = _MEANINGS.get(problem.code) or ("服务商内部错误，请稍后重试" if problem.code >= 500 else "请求被拒绝")
    wait = problem.headers.get("Retry-After", "")
    pause = f"（{wait[:20]} 秒后可再试）" if problem.code == 429 and wait.isdigit() else ""
    meaning = meaning.format(key_name=key_name)
    return f"HTTP {problem.code}（{host}）：{meaning}{pause}。服务商说：{_said(raw)}"


def _said(raw: bytes) -> str:
    try:
        answer = json.loads(raw)
    except ValueError:
        return _start(raw)
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:500]


def _start(raw: bytes) -> str:
    return raw[:200].decode("utf-8", "replace").strip() or "（空）"
