"""What differs between providers of images: address, key, model, body of the request. The answers are read alike.

A key never reaches another vendor. The key that carries a vendor's name goes to that vendor's domains alone, over
https; IMAGE_API_KEY goes where IMAGE_PROVIDER and IMAGE_API_BASE say, unless the two name different vendors.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from web import Refused


class Preset(NamedTuple):
    """A provider as it comes: address, model and size can be set in config.env."""

    base: str
    model: str
    size: str
    key: str  # the variable that holds the key of this vendor and of no other
    domains: tuple[str, ...]


PRESETS = {
    "openai": Preset("https://api.openai.com/v1", "gpt-image-1", "1024x1024", "OPENAI_API_KEY", ("openai.com",)),
    "volcengine": Preset(
        "https://ark.cn-beijing.volces.com/api/v3",
        "doubao-seedream-3-0-t2i-250415",
        "1024x1024",
        "VOLCENGINE_API_KEY",
        ("volces.com", "volcengine.com", "bytepluses.com"),
    ),
    "siliconflow": Preset(
        "https://api.siliconflow.cn/v1",
        "Kwai-Kolors/Kolors",
        "1024x1024",
        "SILICONFLOW_API_KEY",
        ("siliconflow.cn", "siliconflow.com"),
    ),
}
OWN_KEY = "IMAGE_API_KEY"
SYNONYMS = {
    "doubao": "volcengine",
    "ark": "volcengine",
    "火山": "volcengine",
    "豆包": "volcengine",
    "custom": "openai",
}


class Account(NamedTuple):
    """Where requests go, and the key that pays for them."""

    provider: str
    base: str
    key_name: str
    key: str


class Order(NamedTuple):
    """One picture as it was asked for."""

    prompt: str
    size: str
    number: int
    negative: str
    seed: int | None
    image: str  # a data URI or an address of a picture to change; empty for a new one
    extra: dict[str, Any]


def choose_account(env: Mapping[str, str]) -> Account:
    """Return the account that the settings describe. A key whose vendor and address do not match is refused."""
    setting = {name: value.strip() for name, value in env.items()}
    base = setting.get("IMAGE_API_BASE", "").rstrip("/")
    provider = _choose_provider(setting, base)
    preset = PRESETS[provider]
    key_name = OWN_KEY if setting.get(OWN_KEY) else preset.key
    key = setting.get(key_name, "")
    if not key:
        others = [other.key for other in PRESETS.values() if setting.get(other.key)]
        why = f" ({', '.join(others)} is sent to its own provider only)" if others else ""
        raise Refused(
            f"There is no API key for {provider}{why}: set {OWN_KEY} or {preset.key} in the plugin's settings "
            "(config.env)."
        )
    base = base or preset.base
    _check_address(provider, key_name, base)
    return Account(provider, base, key_name, key)


def _choose_provider(setting: Mapping[str, str], base: str) -> str:
    name = setting.get("IMAGE_PROVIDER", "")
    if name:
        return _provider_called(name)
    if setting.get(OWN_KEY):
        return _vendor_of(base) or "openai"
    found = [provider for provider, preset in PRESETS.items() if setting.get(preset.key)]
    if len(found) > 1:
        keys = ", ".join(PRESETS[provider].key for provider in found)
        raise Refused(f"{keys} are set: choose one provider with IMAGE_PROVIDER ({', '.join(found)}).")
    return found[0] if found else "openai"


def _provider_called(name: str) -> str:
    lower = name.lower()
    found = SYNONYMS.get(lower, lower)
    if found not in PRESETS:
        raise Refused(
            f"There is no IMAGE_PROVIDER '{name}'. Use {', '.join(PRESETS)}; for another service that is compatible "
            "with OpenAI, openai and IMAGE_API_BASE."
        )
    return found


def _check_address(provider: str, key_name: str, base: str) -> None:
    vendor = _vendor_of(base)
    if key_name != OWN_KEY and (vendor != provider or urlsplit(base).scheme != "https"):
        raise Refused(
            f"{key_name} is sent over https to the addresses of {provider} only, and IMAGE_API_BASE is {base}. "
            f"Clear IMAGE_API_BASE, or set {OWN_KEY} for this address."
        )
    if vendor and provider not in (vendor, "openai"):  # openai is also the name of the protocol
        raise Refused(
            f"IMAGE_PROVIDER is {provider}, but IMAGE_API_BASE ({base}) belongs to {vendor}: no key was sent. Correct "
            "one of them."
        )


def _vendor_of(base: str) -> str | None:
    """Return the provider to which the host of an address belongs."""
    try:
        host = (urlsplit(base).hostname or "").rstrip(".").lower()
    except ValueError:
        return None
    for provider, preset in PRESETS.items():
        if any(host == domain or host.endswith("." + domain) for domain in preset.domains):
            return provider
    return None


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
        raise Refused(f"The provider sent no picture: {json.dumps(answer, ensure_ascii=False)[:300]}")
    return [item for item in items if isinstance(item, dict)]
