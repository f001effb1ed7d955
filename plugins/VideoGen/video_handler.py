"""Wan2.1VideoGen: videos from text or from a picture, asynchronously.

``submit`` hands the task to the provider and prints a receipt with the placeholder at once; a thread that is no daemon
then polls until the task ends (or POLL_LIMIT_S is over: PollingTimeout) and calls the host back. ``query`` asks once.
After the receipt nothing more is written to stdout. Exit 1 when the request failed or the callback was never taken.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from callback import call_back, log
from provider import Refused, VideoApi

NAME = "Wan2.1VideoGen"
BASE = "https://api.siliconflow.cn/v1"
TEXT_MODEL = "Wan-AI/Wan2.1-T2V-14B-Turbo"
IMAGE_MODEL = "Wan-AI/Wan2.1-I2V-14B-720P-Turbo"
SIZES = ("1280x720", "720x1280", "960x960")
_SHAPES = {
    "landscape": SIZES[0],
    "16:9": SIZES[0],
    "portrait": SIZES[1],
    "9:16": SIZES[1],
    "square": SIZES[2],
    "1:1": SIZES[2],
}
_NAMES = {
    "command": ("command", "action"),
    "mode": ("mode", "type"),
    "prompt": ("prompt", "text", "description", "提示词"),
    "negative_prompt": ("negative_prompt", "negativeprompt", "负面提示词"),
    "resolution": ("resolution", "size", "image_size", "imagesize", "分辨率"),
    "image": ("image_url", "image", "imageurl", "image_base64", "图片"),
    "seed": ("seed",),
    "request_id": ("request_id", "requestid", "id", "task_id", "taskid"),
}


def given(args: Mapping[str, Any], name: str) -> str:
    """A parameter under any of its names and in any letter case."""
    lower = {str(key).strip().lower(): value for key, value in args.items()}
    return str(next((lower[key] for key in _NAMES[name] if lower.get(key) not in (None, "")), "")).strip()


def setting(env: Mapping[str, str], key: str, default: float) -> float:
    """A positive number from the settings."""
    text = env.get(key, "").strip()
    try:
        found = float(text) if text else default
    except ValueError:
        found = -1.0
    if not 0 < found <= 86_400:
        raise Refused(
            f"The setting {key}={text[:50]} is wrong: it must be a number of seconds above 0 and up to 86400."
        )
    return found


def api_from(env: Mapping[str, str]) -> VideoApi:
    """The provider as configured."""
    key = env.get("SILICONFLOW_API_KEY", "").strip()
    if not key:
        raise Refused("There is no API key: copy config.env.example to config.env and fill in SILICONFLOW_API_KEY.")
    return VideoApi(env.get("SILICONFLOW_API_BASE", "").strip() or BASE, key)


def body_from(args: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """What kind of task it is, and the request for the provider."""
    image, prompt = given(args, "image"), given(args, "prompt")
    mode = given(args, "mode").lower() or ("i2v" if image else "t2v")
    if mode not in ("t2v", "i2v"):
        raise Refused(f"Unknown mode '{mode[:50]}': use t2v for a video from text, i2v for one from an image.")
    if mode == "t2v" and not prompt:
        raise Refused("The argument prompt is missing: describe the video.")
    if mode == "i2v" and not image.startswith(("http://", "https://", "data:image/")):
        raise Refused(
            "A video from an image needs image_url: the http(s) address of the image, or data:image/...;base64,..."
        )
    size = given(args, "resolution").lower().replace("×", "x").replace("*", "x").replace(" ", "") or SIZES[0]
    size = _SHAPES.get(size, size)
    if size not in SIZES:
        raise Refused(f"Unsupported resolution '{size[:50]}'. Use {', '.join(SIZES)}.")
    key, default = ("Image2VideoModelName", IMAGE_MODEL) if mode == "i2v" else ("Text2VideoModelName", TEXT_MODEL)
    body: dict[str, Any] = {"model": env.get(key, "").strip() or default, "prompt": prompt, "image_size": size}
    if mode == "i2v":
        body["image"] = image
    if given(args, "negative_prompt"):
        body["negative_prompt"] = given(args, "negative_prompt")
    if re.fullmatch(r"\d{1,12}", given(args, "seed")):
        body["seed"] = int(given(args, "seed"))
    return mode, body


def submit(args: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, threading.Thread | None]:
    """Hands in the task; gives the receipt, in the words that VCPToolBox's plugin has, and the thread that follows."""
    api = api_from(env)
    mode, body = body_from(args, env)
    interval, limit = setting(env, "POLL_INTERVAL_S", 15), setting(env, "POLL_LIMIT_S", 1500)
    task = api.submit(body)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", task)  # what a placeholder may hold
    base = env.get("CALLBACK_BASE_URL", "").strip()
    kind = "图生视频" if mode == "i2v" else "文生视频"
    if not base:
        return f"{kind}任务 (ID: {task}) 已成功提交。请稍后用 query 命令和这个 ID 查询结果。", None
    plugin = env.get("PLUGIN_NAME_FOR_CALLBACK", "").strip() or NAME
    pause = setting(env, "CALLBACK_RETRY_S", 1)

    def follow() -> None:
        end = followed(api, task, interval, limit)
        if not call_back(base, plugin, name, {"requestId": name, "pluginName": plugin, **end}, pause):
            os._exit(1)  # the main thread has long ended with 0

    receipt = (
        f"{kind}任务 (ID: {task}) 已成功提交。\n"
        "这是一个动态上下文占位符，当任务完成时，它会被自动替换为实际结果。\n"
        f"请在你的回复中包含以下占位符原文：{{{{VCP_ASYNC_RESULT::{NAME}::{name}}}}}"
    )
    return receipt, threading.Thread(target=follow, name="follow")


def followed(api: VideoApi, task: str, interval: float, limit: float) -> dict[str, Any]:
    """Polls until the task ends; what passes by itself is tried again until the limit."""
    end = time.monotonic() + limit
    last = "InQueue"
    while time.monotonic() + interval <= end:
        time.sleep(interval)
        try:
            now = api.standing(task)
        except Refused as problem:
            log(f"[{task}] asking for the status failed: {problem}")
            if not problem.passing:
                return {
                    "status": "Failed",
                    "reason": str(problem),
                    "message": f"Asking for the video task (ID: {task}) failed: {problem}",
                }
            continue
        last = now.status
        log(f"[{task}] {now.status}")
        if now.status == "Succeed" and now.url:
            message = f"The video task (ID: {task}) is done. The video: {now.url} (the link expires, save it soon)"
            return {"status": "Succeed", "videoUrl": now.url, "message": message}
        if now.status in ("Succeed", "Failed"):
            reason = now.reason or (
                "the provider returned no address of the video"
                if now.status == "Succeed"
                else "the provider gave no reason"
            )
            return {"status": "Failed", "reason": reason, "message": f"The video task (ID: {task}) failed: {reason}"}
    message = (
        f"The video task (ID: {task}) was not done within {limit:g} seconds (last state {last}). "
        "Ask for it later with query."
    )
    return {"status": "PollingTimeout", "reason": f"last status {last}", "message": message}


def query(args: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Where a task stands now."""
    task = given(args, "request_id")
    if not task:
        raise Refused("The argument request_id is missing: give the ID that submit returned.")
    now = api_from(env).standing(task)
    if now.status == "Succeed":
        return f"The video task (ID: {task}) is done. The video: {now.url or '(the provider returned no address)'}"
    if now.status == "Failed":
        return f"The video task (ID: {task}) failed: {now.reason or 'the provider gave no reason'}"
    words = {"InQueue": "is queued", "InProgress": "is being made"}
    return f"The video task (ID: {task}) {words.get(now.status, 'has the state ' + now.status)}. Ask again later."


def main() -> int:
    """Reads, prints the one answer, and lets the thread live on."""
    follower: threading.Thread | None = None
    try:
        args = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(args, dict):
            raise Refused('The input must be a JSON object, such as {"command": "submit", "prompt": "..."}.')
        command = given(args, "command").lower() or ("query" if given(args, "request_id") else "submit")
        if command == "submit":
            result, follower = submit(args, os.environ)
        elif command == "query":
            result = query(args, os.environ)
        else:
            raise Refused(f"Unknown command '{command[:50]}'. Use submit or query.")
        output = {"status": "success", "result": result}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin is not valid JSON: {problem}"}
    except Refused as problem:
        output = {"status": "error", "error": f"The video could not be made: {problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    sys.stdout.flush()
    if follower:
        follower.start()
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
