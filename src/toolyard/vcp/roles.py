"""The role divider: ``<<<[ROLE_DIVIDE_USER]>>>…<<<[END_ROLE_DIVIDE_USER]>>>`` in a message becomes one of that role.

The roles are SYSTEM, ASSISTANT and USER. Tags in a tool request are text. An end without any beginning before it turns
all text since the last division into a message of its role, a beginning without any end after it all text that follows;
where there are others, such a tag is text. The first message of a request is never divided.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.marks import END, START
from toolyard.vcp.folds import BLANKS

_ROLES: Final = ("system", "assistant", "user")
_TAG = re.compile(r"<<<\[(END_)?ROLE_DIVIDE_(SYSTEM|ASSISTANT|USER)\]>>>")
_IGNORED = str.maketrans("", "", "n\\ ")  # VCPToolBox means to leave out line breaks, but leaves out this letter


@dataclass(frozen=True, slots=True)
class RoleDivider:
    """Divides messages as config.env says."""

    is_on: bool = False
    roles: frozenset[str] = frozenset(_ROLES)  # whose tags count
    scanned: frozenset[str] = frozenset(_ROLES)  # whose messages are divided
    removes_others: bool = True  # tags of roles that do not count are removed
    ignored: frozenset[str] = field(default_factory=frozenset)  # texts whose tags stay

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> "RoleDivider":
        def is_set(name: str, *, usual: bool = True) -> bool:
            return (variables.get(name, "") or str(usual)).lower() == "true"

        try:
            ignored = json.loads(variables.get("RoleDividerIgnoreList", "") or "[]")
        except (ValueError, RecursionError):
            ignored = []
        texts = [one for one in ignored if isinstance(one, str)] if isinstance(ignored, list) else []
        return cls(
            is_on=is_set("EnableRoleDivider", usual=False),
            roles=frozenset(role for role in _ROLES if is_set(f"RoleDivider{role.title()}")),
            scanned=frozenset(role for role in _ROLES if is_set(f"RoleDividerScan{role.title()}")),
            removes_others=is_set("RoleDividerRemoveDisabledTags"),
            ignored=frozenset(text.translate(_IGNORED) for text in texts),
        )

    def divide(self, messages: list[Json]) -> list[Json]:
        """Return the messages of a request, divided; the same list where there is nothing to divide."""
        if not self.is_on:
            return messages
        made: list[Json] = messages[:1]
        for message in messages[1:]:
            made += self._divide_message(message) if isinstance(message, dict) else [message]
        return made

    def _divide_message(self, message: JsonObject) -> list[Json]:
        content = message.get("content")
        if isinstance(content, str):
            if not _TAG.search(content):
                return [message]
            return [
                {**message, "content": text} if role is None else {"role": role, "content": text}
                for role, text in self._divide_text(content, str(message.get("role")))
            ]
        if not isinstance(content, list):
            return [message]
        made: list[Json] = []
        parts: list[Json] = []
        for part in content:
            text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            if not isinstance(text, str):
                parts.append(part)
                continue
            pieces = self._divide_text(text, str(message.get("role")))
            first, last = pieces[0], pieces[-1]
            if len(pieces) == 1 or first[1].strip(BLANKS):
                parts.append({"type": "text", "text": first[1]})
            if len(pieces) > 1:
                made += [{**message, "content": parts}] if parts else []
                made += [{"role": role or str(message.get("role")), "content": inner} for role, inner in pieces[1:-1]]
                parts = [{"type": "text", "text": last[1]}] if last[1].strip(BLANKS) else []
        made += [{**message, "content": parts}] if parts else []
        return made or [message]

    def _divide_text(self, text: str, base: str) -> list[tuple[str | None, str]]:
        """Return the pieces of a text, each with its role; None: that of its message."""
        whole = text
        if self.removes_others:
            text = _TAG.sub(lambda tag: tag[0] if tag[2].lower() in self.roles else "", text)
        if base not in self.scanned:
            return [(None, text)]
        spans = _find_requests(text)
        tags = [tag for tag in _TAG.finditer(text) if tag[2].lower() in self.roles and not _is_in(tag.start(), spans)]
        first_begin = next((tag.start() for tag in tags if not tag[1]), len(text))
        last_end = next((tag.start() for tag in reversed(tags) if tag[1]), -1)
        ends = _find_ends(tags)
        pieces: list[tuple[str | None, str]] = []
        kept, at = "", 0
        for number, tag in enumerate(tags):
            if tag.start() < at:
                continue
            kept += text[at : tag.start()]
            at = tag.end()
            role = tag[2].lower()
            if tag[1]:
                if first_begin < tag.start() or not kept.translate(_IGNORED) or self._ignores(kept):
                    kept += tag[0]
                else:
                    pieces.append((role, kept))
                    kept = ""
                continue
            end = ends[number]
            inner = text[at : end.start()] if end else text[at:]
            if (end is None and last_end > tag.start()) or (end is not None and self._ignores(inner)):
                kept += tag[0] if end is None else f"{tag[0]}{inner}{end[0]}"
                at = tag.end() if end is None else end.end()
                continue
            if kept.strip(BLANKS):
                pieces.append((None, kept))
            kept = ""
            if end is not None or inner.strip(BLANKS):
                pieces.append((role, inner))
            at = end.end() if end else len(text)
        kept += text[at:]
        if kept.strip(BLANKS):
            pieces.append((None, kept))
        return pieces or [(None, whole)]

    def _ignores(self, text: str) -> bool:
        return text.translate(_IGNORED) in self.ignored


def _find_requests(text: str) -> list[tuple[int, int]]:
    """Return where tool requests are."""
    spans: list[tuple[int, int]] = []
    at = text.find(START)
    while at >= 0:
        end = text.find(END, at + len(START))
        if end < 0:
            break
        spans.append((at, end + len(END)))
        at = text.find(START, end + len(END))
    return spans


def _is_in(at: int, spans: list[tuple[int, int]]) -> bool:
    place = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return place >= 0 and at < spans[place][1]


def _find_ends(tags: list[re.Match[str]]) -> list[re.Match[str] | None]:
    """Return the next end of the same role after each tag."""
    following: dict[str, re.Match[str]] = {}
    ends: list[re.Match[str] | None] = []
    for tag in reversed(tags):
        ends.append(following.get(tag[2]))
        if tag[1]:
            following[tag[2]] = tag
    return ends[::-1]
