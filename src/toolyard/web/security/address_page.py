"""The page for a browser that asked under an address which the server does not know, in English and Chinese.

Its style is inside it: under a wrong address the browser could load no other file.
"""

import base64
import hashlib
import html
from dataclasses import dataclass
from typing import Final

from toolyard.message import Message

_STYLE = (
    ":root{color-scheme:light dark}"
    'body{font:16px/1.55 system-ui,"PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif;'
    "margin:10vh auto 2rem;max-width:38rem;padding:0 1.5rem}"
    "h1{font-size:1.4rem}code,pre{font-family:ui-monospace,monospace;overflow-wrap:anywhere}"
    "pre{padding:.7rem .9rem;border:1px solid #8886;border-radius:6px;white-space:pre-wrap;user-select:all}"
)
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_READ_AT_ONCE = {
    "en": "The server reads the change at once: reload this page. For a container, set TOOLYARD_PUBLIC_URL instead.",
    "zh": "服务器会立即读取更改：刷新此页面即可。对于容器，请改用环境变量 TOOLYARD_PUBLIC_URL。",
}
_NOT_YOURS = {
    "en": "If you do not run this server, or did not expect this page, close it.",
    "zh": "如果你不是此服务器的管理员，或没想到会看到此页面，请关闭它。",
}
_SEE_DOCS = {
    "en": "The page docs/proxy.md of Toolyard has samples for nginx, Caddy and Traefik.",
    "zh": "Toolyard 文档 docs/proxy.md 中有 nginx、Caddy 和 Traefik 的配置示例。",
}
# Title and paragraphs by the code of the message; a paragraph that begins with "=" is a line to copy.
_TEXTS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "http.host_not_allowed": {
        "en": (
            "This server does not know the host name {host}",
            "If it is yours, put the address under which people reach the server into config.toml:",
            '=public_url = "{example}"',
            "For a further name beside that one, use allowed_hosts instead:",
            '=allowed_hosts = ["{host}"]',
            _READ_AT_ONCE["en"],
            _NOT_YOURS["en"],
        ),
        "zh": (
            "此服务器不认识主机名 {host}",
            "如果它属于你，请在 config.toml 中写入访问此服务器的地址：",
            '=public_url = "{example}"',
            "如果只是另外再加一个主机名，请改用 allowed_hosts：",
            '=allowed_hosts = ["{host}"]',
            _READ_AT_ONCE["zh"],
            _NOT_YOURS["zh"],
        ),
    },
    "http.host_of_unknown_proxy": {
        "en": (
            "This server does not know the host name {host}",
            "The request came through a proxy at {proxy}. If both are yours, put this into config.toml:",
            '=public_url = "{example}"\ntrusted_proxies = ["{proxy}"]',
            _READ_AT_ONCE["en"],
            _SEE_DOCS["en"],
            _NOT_YOURS["en"],
        ),
        "zh": (
            "此服务器不认识主机名 {host}",
            "此请求经过了位于 {proxy} 的代理。如果两者都属于你，请在 config.toml 中写入：",
            '=public_url = "{example}"\ntrusted_proxies = ["{proxy}"]',
            _READ_AT_ONCE["zh"],
            _SEE_DOCS["zh"],
            _NOT_YOURS["zh"],
        ),
    },
    "http.origin_differs": {
        "en": (
            "The address of this page is not that of the server",
            (
                "Your browser is at {origin}, but the server was asked as {own}. A proxy in front of it probably does "
                "not pass the host name or the scheme on. Put this into config.toml:"
            ),
            '=public_url = "{origin}"',
            "If the proxy serves it below a path, add the path, such as {origin}/yard.",
            _READ_AT_ONCE["en"],
            _SEE_DOCS["en"],
        ),
        "zh": (
            "此页面的地址与服务器的地址不一致",
            (
                "浏览器中的地址是 {origin}，但服务器收到的请求地址是 {own}。很可能是前面的代理没有传递主机名或协议。"
                "请在 config.toml 中写入："
            ),
            '=public_url = "{origin}"',
            "如果代理把它放在某个路径下，请加上该路径，例如 {origin}/yard。",
            _READ_AT_ONCE["zh"],
            _SEE_DOCS["zh"],
        ),
    },
    "http.proxy_disagrees": {
        "en": (
            "The proxy names another address than public_url",
            "The proxy at {proxy} says that it was asked for {seen}, but the setting public_url is {public}.",
            "Open the address of public_url:",
            "={public}",
            (
                "If you did, the proxy sends a wrong X-Forwarded-Proto or X-Forwarded-Prefix: it must send the scheme "
                "and the path that browsers see, even if another proxy before it ends TLS. Or correct public_url."
            ),
            _SEE_DOCS["en"],
        ),
        "zh": (
            "代理给出的地址与 public_url 不一致",
            "位于 {proxy} 的代理称请求的地址是 {seen}，但设置 public_url 是 {public}。",
            "请打开 public_url 的地址：",
            "={public}",
            (
                "如果你打开的就是它，说明代理发送的 X-Forwarded-Proto 或 X-Forwarded-Prefix 有误：它必须发送浏览器"
                "看到的协议和路径，即使 TLS 由更前面的代理终止也是如此。或者更正 public_url。"
            ),
            _SEE_DOCS["zh"],
        ),
    },
    "http.invalid_forwarding_header": {
        "en": (
            "The proxy sent a header that cannot be understood",
            "The proxy at {proxy} is in trusted_proxies, but its header {name} is invalid. Correct its configuration.",
            _SEE_DOCS["en"],
        ),
        "zh": (
            "代理发送的请求头无法识别",
            "位于 {proxy} 的代理在 trusted_proxies 中，但它的请求头 {name} 无效。请更正代理的配置。",
            _SEE_DOCS["zh"],
        ),
    },
}


@dataclass(frozen=True, slots=True)
class Page:
    body: bytes
    policy: str  # its Content-Security-Policy


def render_address_page(message: str, accept_language: str) -> Page | None:
    """Return the page of a message about the address of a request; None for any other message."""
    texts = _TEXTS.get(message.code) if isinstance(message, Message) else None
    if texts is None or not isinstance(message, Message):
        return None
    lang = "zh" if accept_language.lower().startswith("zh") else "en"
    values = {name: html.escape(str(value)) for name, value in message.params.items()}
    title, *parts = (part.format(**values) for part in texts[lang])
    lines = [f"<pre>{part[1:]}</pre>" if part.startswith("=") else f"<p>{part}</p>" for part in parts]
    text = (
        f'<!doctype html><html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8">'
        f'<title>{title} · Toolyard</title><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1>{''.join(lines)}</main></body></html>"
    )
    return Page(text.encode(errors="replace"), _POLICY)
