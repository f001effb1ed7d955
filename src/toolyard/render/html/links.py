"""Links in a reply: addresses, bare addresses in a text, and square brackets that begin no link.

An address is http, https or mailto, or it is refused. Its host is the one a browser would contact, in ASCII, so that a
name in look-alike letters does not pass for another; an address that browsers might read differently is refused.

A bare address is in ASCII and has up to 2,000 characters. A character that is not ASCII ends it, so that Chinese text
may follow without a space; punctuation at its end belongs to the sentence. General link finders take quadratic time on
some texts; this one reads each character once.

Brackets one by one cost a long lookahead each. In a text with more than ``FEW`` of them, which nobody writes, one
begins a link or a picture only if it is closed again and at most ``DEEP`` others are nested in it. Linear in the text.
"""

import re
from dataclasses import dataclass
from typing import Final

from markdown_it.rules_inline import StateInline

MAX_ADDRESS = 4096
_WEB = re.compile(r"(https?)://([^/?#]*)((?:[/?#].*)?)", re.IGNORECASE)
_MAIL = re.compile(r"mailto:([^?]+@[^?]+)(?:\?.*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3000\ufeff\ud800-\udfff]")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_.])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])https?\Z", re.IGNORECASE)
_REST = re.compile(r"://([A-Za-z0-9-][A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{0,2000})")
_AFTER = ".,;:!?*_~'\"(&"
FEW: Final = 1000
DEEP: Final = 4


@dataclass(frozen=True, slots=True)
class Address:
    href: str
    host: str  # of a mail address, all of it

    @property
    def is_web(self) -> bool:
        return not self.href.startswith("mailto:")


def parse_address(url: str) -> Address | None:
    url = url.strip()
    if len(url) > MAX_ADDRESS or _UNSAFE.search(url):
        return None
    mail = _MAIL.fullmatch(url)
    if mail:
        return Address(f"mailto:{url[7:]}", mail[1])
    web = _WEB.fullmatch(url)
    host = _to_ascii(web[2].rpartition("@")[2]) if web else None
    return Address(f"{web[1].lower()}://{host}{web[3]}", host) if web and host else None


def parse_remote_address(url: str) -> Address | None:
    """Return the address of remote media; one without a scheme means https."""
    address = parse_address(f"https:{url.strip()}" if url.strip().startswith("//") else url)
    return address if address and address.is_web else None


def _to_ascii(host: str) -> str | None:
    if "xn--" in host.lower() or not host.isascii():
        name, colon, port = host.partition(":")
        try:
            name = name[:253].encode("idna").decode("ascii")
            name.encode("ascii").decode("idna")  # an ASCII name may still be invalid
        except UnicodeError:
            return None
        host = name + colon + port
    host = host.lower()
    return host if _HOST.fullmatch(host) else None


def bare_link_rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    at = state.pos
    if silent or state.linkLevel or not state.src.startswith("://", at):
        return False
    scheme = _SCHEME.search(state.src[max(0, at - 6) : at])
    rest = _REST.match(state.src, at, state.posMax)
    if not scheme or not rest or not state.pending.endswith(scheme[0]):
        return False
    end = at + 3 + len(_trim_address(rest[1]))
    if end == rest.end() and state.src[end : end + 1].isalnum() and not set("/?#") & set(rest[1]):
        return False  # a name that continues in other letters is another name
    url = scheme[0] + state.src[at:end]
    state.pending = state.pending[: -len(scheme[0])]
    state.push("link_open", "a", 1).attrs = {"href": state.md.normalizeLink(url)}
    state.push("text", "", 0).content = url
    state.push("link_close", "a", -1)
    state.pos = end
    return True


def _trim_address(rest: str) -> str:
    """Return ``rest`` without the sentence's punctuation; a closing bracket stays when its opening one is inside."""
    extra = rest.count(")") - rest.count("(")
    while rest and (rest[-1] in _AFTER or (rest[-1] == ")" and extra > 0)):
        extra += {"(": 1, ")": -1}.get(rest[-1], 0)
        rest = rest[:-1]
    return rest


class Brackets:
    """The brackets of one parser's current text."""

    def __init__(self) -> None:
        self._text = ""
        self._open: frozenset[int] | None = None

    def rule(self, state: StateInline, silent: bool) -> bool:  # noqa: FBT001
        """Consume all brackets that are only text in one step."""
        text, end = state.src, state.pos
        if text is not self._text:
            self._text, self._open = text, find_openings(text)
        if self._open is None:
            return False
        while end < state.posMax:
            size = 2 if text.startswith("![", end) else 1 if text[end] == "[" else 0
            if not size or end + size - 1 in self._open:
                break
            end += size
        if end == state.pos:
            return False
        if not silent:
            state.pending += text[state.pos : end]
        state.pos = end
        return True


def find_openings(text: str) -> frozenset[int] | None:
    """Return the positions where links and pictures may begin; None: few brackets, each checked by itself."""
    if text.count("[") <= FEW:
        return None
    openings: list[int] = []
    waiting: list[tuple[int, int]] = []  # position of a bracket, and the nesting depth inside it
    for at, sign in enumerate(text):
        if sign == "[":
            waiting.append((at, 0))
        elif sign == "]" and waiting:
            opened, inside = waiting.pop()
            if inside <= DEEP:
                openings.append(opened)
            if waiting:
                around, deepest = waiting[-1]
                waiting[-1] = around, max(deepest, inside + 1)
    return frozenset(openings)
