"""Prompt injection in texts of a manifest: words to the model beyond the plugin's own use (S-84).

A list of shapes, not a proof: what it finds deserves a look, and what it does not find may still be wrong. Pure.
"""

import re
from collections.abc import Iterator

from toolyard.message import Message
from toolyard.protocol.manifests.safe_text import has_hidden, strip_hidden

_TAKES = r"(?:read|send|include|pass|attach|upload|copy|append|quote|repeat|forward|post|put)\w*"
_SHAPES = {
    Message("it tells the model to forget its instructions"): (
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|any|other|"
        r"system|safety|your)\b[^.\n]{0,20}\b(?:instruction|prompt|rule|message|guideline|restriction|policy)\w*"
        r"|(?:忽略|无视|忘记|忘掉|绕过)[^。\n]{0,12}(?:指令|指示|提示|规则|限制|设定)"
    ),
    Message("it keeps something from the user"): (
        r"\b(?:do not|don't|never|without)\b[^.\n]{0,25}\b(?:tell|mention|show|inform|reveal|notify)\w*\b[^.\n]{0,30}"
        r"\b(?:user|human|person|anyone)\b|\bsecretly\b|(?:不要|不得|别|勿)(?:告诉|告知|提及|透露|通知|让)[^。\n]{0,6}"
        r"(?:用户|使用者|任何人)|(?:悄悄|偷偷|秘密地?)(?:地|的)?(?:读|发|传|写|附|执行|调用)"
    ),
    Message("it wants what is none of its business"): (
        rf"\b{_TAKES}\b[^.\n]{{0,60}}\b(?:api[ _-]?keys?|passwords?|private keys?|system prompt|credentials?|"
        r"access tokens?|chat history|conversation|other tools?)\b"
        r"|(?:读取|发送|附上|附带|传入|上传|复制)[^。\n]{0,20}(?:密码|私钥|密钥|系统提示|对话(?:内容|历史|记录)|聊天记录)"
        r"|\.ssh\b|\bid_(?:rsa|ed25519)\b|/etc/(?:passwd|shadow)|\.aws/credentials|~/\.env\b"
    ),
    Message("it gives the model an order beyond its own use"): (
        r"\b(?:important|critical|mandatory|attention|warning)\b[^.\n]{0,40}\b(?:also|first|always|before|must)\b"
        r"[^.\n]{0,40}\b(?:read|send|call|run|execute|open|pass|fetch|visit|download)\b"
        r"|(?:重要|务必|必须)[^。\n]{0,12}(?:先|同时|还要|另外)(?:读取|发送|调用|执行|打开|访问|下载)"
    ),
    Message("it wants to be used in place of other tools"): (
        r"\b(?:instead of|before|rather than)\b[^.\n]{0,20}\b(?:any|all|every|other)\b[^.\n]{0,15}\btools?\b"
        r"|\b(?:do not|don't|never) (?:use|call)\b[^.\n]{0,20}\b(?:any|other|another)\b[^.\n]{0,15}\btools?\b"
        r"|(?:代替|优先于|取代|不要使用|禁止使用)[^。\n]{0,8}(?:其他|其它|所有|任何)[^。\n]{0,4}(?:工具|插件)"
    ),
    Message("it has a comment, which people do not see when it is shown"): r"<!--",
    Message("it has marks that look like a message of the system"): (
        r"</?\s*(?:system|important|instructions?|assistant|user|secret|admin)\b[^>\n]{0,40}>|\[/?(?:INST|SYSTEM)\]"
        r"|<\|[a-z_]{2,20}\|>"
    ),
    Message("it has a picture or a script from elsewhere, which can carry data away"): (
        r"!\[[^\]\n]{0,200}\]\(\s*https?://|<(?:img|script|iframe)\b"
    ),
    Message("it has a long run of encoded data"): r"[A-Za-z0-9+/]{240}",
}
_PATTERNS = {message: re.compile(shape, re.IGNORECASE) for message, shape in _SHAPES.items()}
HIDDEN = Message("it has characters that nobody can see")


def find_injections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each suspicion with the matched words; hidden characters are removed first."""
    if has_hidden(text):
        yield HIDDEN, ""
    clear = " ".join(strip_hidden(text).replace("\n", " \n ").split(" "))
    for message, shape in _PATTERNS.items():
        match = shape.search(clear)
        if match:
            yield message, match[0][:80]
