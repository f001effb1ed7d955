"""What differs between providers of images: address, model, body of the request. The answers are read alike."""

import json
import uuid
from typing import Any, NamedTuple

from web import Refused


class Preset(NamedTuple):
    """A provider as it comes: each value can be set in config.env."""

    base: str
    model: str
    size: str


PRESETS = {
    "openai": Preset("https://api.openai.com/v1", "gpt-image-1", "1024x1024"),
    "volcengine": Preset("https://ark.cn-beijing.volces.com/api/v3", "doubao-seedream-3-0-t2i-250415", "1024x1024"),
    "siliconflow": Preset("https://api.siliconflow.cn/v1", "Kwai-Kolors/Kolors", "1024x1024"),
}
SYNONYMS = {
    "doubao": "volcengine",
    "ark": "volcengine",
    "火山": "volcengine",
    "豆包": "volcengine",
    "custom": "openai",
    "": "openai",
}


class Order(NamedTuple):
    """One picture as it was asked for."""

    prompt: str
    size: str
    number: int
    negative: str
    seed: int | None
    image: str  # a data URI or an address of a picture to change; empty for a new one
    extra: dict[str, Any]


def provider_named(name: str) -> str:
    """The name of a preset."""
    lower = name.strip().lower()
    found = SYNONYMS.get(lower, lower)
    if found not in PRESETS:
        raise Refused(
            f"不认识的 IMAGE_PROVIDER：{name}。可用：{'、'.join(PRESETS)}。"
            "其他兼容 OpenAI 的服务请写 openai 并设置 IMAGE_API_BASE。"
        )
    return found


def request(provider: str, model: str, order: Order) -> tuple[str, bytes, str]:
    """Path, body and content type of the request."""
    if order.image and provider == "openai":
        return "/images/edits", *_form(model, order)
    body: dict[str, Any] = {"model": model, "prompt": order.prompt}
    if provider == "siliconflow":
        body |= {"image_size": order.size, "batch_size": order.number}
    else:
        body |= {"size": order.size, "n": order.number}
    if provider == "volcengine":
        body |= {"response_format": "b64_json", "watermark": False}
        del body["n"]
    elif model.startswith("dall-e"):
        body["response_format"] = "b64_json"
    optional = {"negative_prompt": order.negative, "seed": order.seed, "image": order.image}
    body |= {key: value for key, value in optional.items() if value not in ("", None)}
    body |= order.extra
    return "/images/generations", json.dumps(body, ensure_ascii=False).encode(), "application/json"


def _form(model: str, order: Order) -> tuple[bytes, str]:
    """A multipart form, as the edits endpoint wants it."""
    from pictures import decoded

    picture, kind = decoded(order.image)
    mark = uuid.uuid4().hex
    fields = {"model": model, "prompt": order.prompt, "size": order.size, "n": str(order.number)}
    head = "".join(f'--{mark}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items())
    head += f'--{mark}\r\nContent-Disposition: form-data; name="image"; filename="image.{kind}"\r\n'
    head += f"Content-Type: image/{kind}\r\n\r\n"
    return head.encode() + picture + f"\r\n--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def pictures_in(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of an answer: each has ``b64_json`` or ``url``."""
    items = answer.get("data") or answer.get("images")
    if not isinstance(items, list) or not items:
        raise Refused(f"服务商没有返回图片：{json.dumps(answer, ensure_ascii=False)[:300]}")
    return [item for item in items if isinstance(item, dict)]
