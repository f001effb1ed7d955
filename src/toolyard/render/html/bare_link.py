"""Bare addresses in a text become links: http and https, in ASCII, up to 2,000 characters.

A character that is not ASCII ends one, so that Chinese text may follow without a space; punctuation at its end belongs
to the sentence. General link finders take quadratic time on some texts; this one reads each character once.
"""

import re

from markdown_it.rules_inline import StateInline

_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])https?\Z", re.IGNORECASE)
_REST = re.compile(r"://([A-Za-z0-9-][A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{0,2000})")
_AFTER = ".,;:!?*_~'\"(&"


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
