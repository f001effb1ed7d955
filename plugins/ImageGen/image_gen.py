"""ImageGen: pictures from text through an OpenAI-compatible images endpoint or Volcengine (Doubao).

One JSON object on stdin, one on stdout; on success ``result.content`` is a text part and one image part per picture
(data URIs). Parameter names are taken in any case and with their synonyms. Each picture is also kept as a file in
``$HOME/ImageGen`` (or IMAGE_SAVE_DIR); when that cannot be written the picture is still returned.
"""

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pictures
import providers
import web
from web import Refused

MAX_PROMPT = 8000
MAX_COUNT = 4
_SYNONYMS = {
    "prompt": ("prompt", "text", "description", "提示词", "描述"),
    "size": ("resolution", "size", "image_size", "imagesize", "dimensions", "分辨率", "尺寸"),
    "count": ("n", "count", "num", "num_images", "batch_size", "数量"),
    "negative": ("negative_prompt", "negativeprompt", "negative", "负面提示词"),
    "seed": ("seed", "种子"),
    "image": ("image", "image_url", "imageurl", "image_base64", "图片"),
    "model": ("model", "模型"),
}
_SHAPES = {
    "square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536", "正方形": "1024x1024",
    "横屏": "1536x1024",
    "竖屏": "1024x1536", "1:1": "1024x1024", "3:2": "1536x1024", "2:3": "1024x1536", "16:9": "1280x720",
    "9:16": "720x1280",
}  # fmt: skip


def given(args: Mapping[str, Any], name: str) -> str:
    """A parameter under any of its names, or the empty text."""
    lower = {str(key).strip().lower(): value for key, value in args.items()}
    found = next((lower[key] for key in _SYNONYMS[name] if lower.get(key) not in (None, "")), "")
    return str(found).strip()


def size_of(text: str, default: str) -> str:
    """1024x1024 from any usual way to write it."""
    if not text:
        return default
    if text.lower() in _SHAPES:
        return _SHAPES[text.lower()]
    if text.lower() in ("auto", "1k", "2k", "4k"):
        return text.lower() if text.lower() == "auto" else text.upper()
    match = re.fullmatch(r"(\d{2,5})\s*[xX×*＊✕,，]\s*(\d{2,5})", text)
    if not match:
        raise Refused(f"The resolution '{text[:50]}' is wrong: write width x height, such as 1024x1024.")
    return f"{match[1]}x{match[2]}"


def whole(text: str, name: str, least: int, most: int) -> int:
    """A whole number within its bounds."""
    if not re.fullmatch(r"-?\d{1,12}", text) or not least <= int(text) <= most:
        raise Refused(f"{name} must be a whole number from {least} to {most}, not '{text[:50]}'.")
    return int(text)


def order_from(args: Mapping[str, Any], default_size: str) -> providers.Order:
    """The request as a value; what is wrong is refused here."""
    prompt = given(args, "prompt")
    if not prompt:
        raise Refused("prompt is missing: describe the picture in words.")
    if len(prompt) > MAX_PROMPT:
        raise Refused(f"prompt is too long: {len(prompt)} characters, at most {MAX_PROMPT}.")
    seed, count = given(args, "seed"), given(args, "count")
    passed = {"quality", "style", "background", "guidance_scale", "num_inference_steps"}
    return providers.Order(
        prompt=prompt,
        size=size_of(given(args, "size"), default_size),
        number=whole(count, "n", 1, MAX_COUNT) if count else 1,
        negative=given(args, "negative"),
        seed=whole(seed, "seed", -1, 2**31 - 1) if seed else None,
        image=given(args, "image"),
        extra={key.lower(): _typed(value) for key, value in args.items() if key.lower() in passed and value},
    )


def _typed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def number(env: Mapping[str, str], key: str, default: float) -> float:
    """A positive number from the settings."""
    text = env.get(key, "").strip()
    try:
        found = float(text) if text else default
    except ValueError:
        found = -1.0
    if not 0 < found <= 3600:
        raise Refused(f"The setting {key}={text} is wrong: it must be a number above 0 and at most 3600.")
    return found


def generate(args: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Asks the provider and gives the result with its parts."""
    order = order_from(args, env.get("IMAGE_DEFAULT_SIZE", "").strip())
    account = providers.choose_account(env)
    preset = providers.PRESETS[account.provider]
    order = order._replace(size=order.size or preset.size)
    model = given(args, "model") or env.get("IMAGE_MODEL", "").strip() or preset.model
    seconds = number(env, "IMAGE_TIMEOUT_S", 110)
    most = int(number(env, "IMAGE_MAX_MB", 10) * 2**20)
    path, body, content_type = providers.request(account.provider, model, order)
    headers = {"Authorization": f"Bearer {account.key}", "Content-Type": content_type, "Accept": "application/json"}
    until = time.monotonic() + seconds
    answer = web.post(account.base + path, body, headers, seconds, account.key_name)
    items = providers.pictures_in(answer)[:MAX_COUNT]
    found = [_bytes(item, max(1.0, until - time.monotonic()), most) for item in items]
    return _result(order, model, found, env)


def _bytes(item: Mapping[str, Any], seconds: float, most: int) -> bytes:
    if isinstance(item.get("b64_json"), str):
        picture = pictures.from_base64(item["b64_json"])
    elif str(item.get("url", "")).startswith("data:"):
        picture = pictures.from_base64(item["url"])
    elif item.get("url"):
        picture = web.download(str(item["url"]), seconds, most)
    else:
        raise Refused("The provider's answer has neither b64_json nor url.")
    if len(picture) > most:
        raise Refused(f"The picture has {len(picture)} bytes, more than IMAGE_MAX_MB allows.")
    pictures.kind_of(picture)
    return picture


def _result(order: providers.Order, model: str, found: list[bytes], env: Mapping[str, str]) -> dict[str, Any]:
    folder = Path(env.get("IMAGE_SAVE_DIR", "").strip() or Path(env.get("HOME") or Path.home()) / "ImageGen")
    kept: list[str] = []
    for index, picture in enumerate(found, 1):
        try:
            kept.append(str(pictures.keep(picture, folder, index)))
        except OSError as problem:
            sys.stderr.write(f"could not keep the picture: {problem}\n")
    saved = "".join(f"\n- File: {file}" for file in kept)
    facts = f"- Prompt: {order.prompt}\n- Resolution: {order.size}\n- Model: {model}\n- Pictures: {len(found)}"
    text = f"The picture was generated.\n{facts}{saved}"
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    parts += [{"type": "image_url", "image_url": {"url": pictures.data_uri(picture)}} for picture in found]
    details = {"prompt": order.prompt, "resolution": order.size, "model": model, "count": len(found), "files": kept}
    return {"content": parts, "details": details}


def main() -> int:
    """Reads, answers, and tells by the exit code whether it went well."""
    try:
        args = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(args, dict):
            raise Refused('The input must be a JSON object, such as {"prompt": "a cat", "resolution": "1024x1024"}.')
        output: dict[str, Any] = {"status": "success", "result": generate(args, os.environ)}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin is not valid JSON: {problem}"}
    except Refused as problem:
        output = {"status": "error", "error": f"The picture failed: {problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
