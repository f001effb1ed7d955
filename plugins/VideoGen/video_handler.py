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
        raise Refused(f"设置 {key}={text[:50]} 不对：需要大于 0、不超过 86400 的秒数。")
    return found


def api_from(env: Mapping[str, str]) -> VideoApi:
    """The provider as configured."""
    key = env.get("SILICONFLOW_API_KEY", "").strip()
    if not key:
        raise Refused("没有配置 API 密钥：请把 config.env.example 复制为 config.env，并填写 SILICONFLOW_API_KEY。")
    return VideoApi(env.get("SILICONFLOW_API_BASE", "").strip() or BASE, key)


def body_from(args: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """What kind of task it is, and the request for the provider."""
    image, prompt = given(args, "image"), given(args, "prompt")
    mode = given(args, "mode").lower() or ("i2v" if image else "t2v")
    if mode not in ("t2v", "i2v"):
        raise Refused(f"mode“{mode[:50]}”不对：文生视频写 t2v，图生视频写 i2v。")
    if mode == "t2v" and not prompt:
        raise Refused("缺少参数 prompt：请描述要生成的视频。")
    if mode == "i2v" and not image.startswith(("http://", "https://", "data:image/")):
        raise Refused("图生视频需要参数 image_url：图片的 http(s) 地址或 data:image/...;base64,... 数据。")
    size = given(args, "resolution").lower().replace("×", "x").replace("*", "x").replace(" ", "") or SIZES[0]
    size = _SHAPES.get(size, size)
    if size not in SIZES:
        raise Refused(f"不支持的分辨率“{size[:50]}”。可用：{'、'.join(SIZES)}。")
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
    """Hands in the task; gives the receipt and the thread that will follow it."""
    api = api_from(env)
    mode, body = body_from(args, env)
    interval, limit = setting(env, "POLL_INTERVAL_S", 15), setting(env, "POLL_LIMIT_S", 1500)
    task = api.submit(body)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", task)  # what a placeholder may hold
    base = env.get("CALLBACK_BASE_URL", "").strip()
    kind = "图生视频" if mode == "i2v" else "文生视频"
    if not base:
        return f"{kind}任务 (ID: {task}) 已成功提交。没有回调地址，请稍后用 query 命令和这个 ID 查询结果。", None
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
                    "message": f"视频任务 (ID: {task}) 查询失败：{problem}",
                }
            continue
        last = now.status
        log(f"[{task}] {now.status}")
        if now.status == "Succeed" and now.url:
            message = f"视频任务 (ID: {task}) 已完成。视频地址：{now.url}（链接有时效，请尽快保存）"
            return {"status": "Succeed", "videoUrl": now.url, "message": message}
        if now.status in ("Succeed", "Failed"):
            reason = now.reason or ("服务商没有返回视频地址" if now.status == "Succeed" else "服务商没有说明原因")
            return {"status": "Failed", "reason": reason, "message": f"视频任务 (ID: {task}) 生成失败。原因：{reason}"}
    message = (
        f"视频任务 (ID: {task}) 在 {limit:g} 秒内没有完成（最后状态 {last}），已停止等待。可以稍后用 query 命令查询。"
    )
    return {"status": "PollingTimeout", "reason": f"last status {last}", "message": message}


def query(args: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Where a task stands now."""
    task = given(args, "request_id")
    if not task:
        raise Refused("缺少参数 request_id：请提供 submit 返回的任务 ID。")
    now = api_from(env).standing(task)
    if now.status == "Succeed":
        return f"视频任务 (ID: {task}) 已完成。视频地址：{now.url or '（服务商没有返回地址）'}"
    if now.status == "Failed":
        return f"视频任务 (ID: {task}) 生成失败。原因：{now.reason or '服务商没有说明原因'}"
    words = {"InQueue": "正在排队", "InProgress": "正在生成"}
    return f"视频任务 (ID: {task}) {words.get(now.status, '状态：' + now.status)}，请稍后再查询。"


def main() -> int:
    """Reads, prints the one answer, and lets the thread live on."""
    follower: threading.Thread | None = None
    try:
        args = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(args, dict):
            raise Refused('输入必须是一个 JSON 对象，例如 {"command": "submit", "prompt": "..."}。')
        command = given(args, "command").lower() or ("query" if given(args, "request_id") else "submit")
        if command == "submit":
            result, follower = submit(args, os.environ)
        elif command == "query":
            result = query(args, os.environ)
        else:
            raise Refused(f"不认识的命令“{command[:50]}”。可用：submit、query。")
        output = {"status": "success", "result": result}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin 不是有效的 JSON：{problem}"}
    except Refused as problem:
        output = {"status": "error", "error": f"视频生成失败：{problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    sys.stdout.flush()
    if follower:
        follower.start()
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
