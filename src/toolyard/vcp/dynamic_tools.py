"""``{{VCPDynamicTools}}``: all tools in a line each, and the whole text of those that the conversation is about.

A tool is about the conversation if its last messages name it, or share words with its name and description that few
other tools have; ``[[VCPDynamicTools:tool=NAME]]`` and ``[[VCPDynamicTools:category=WORD:all]]`` in a message show it
in any case. ``ToolConfigs/dynamic_tool_bridge.config.json`` has the limits. VCPToolBox sorts tools into categories by
rules, a small model or embeddings; words do without any of them, so the choice may differ.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from toolyard.dialects.vcp_install import DynamicToolLimits
from toolyard.gateway.reply.chunks import read_text
from toolyard.protocol.json import Json
from toolyard.protocol.search_words import list_words

_MAX_MESSAGES: Final = 12
_MAX_TEXT: Final = 50_000  # characters of them
_MAX_LINE: Final = 100  # characters of a description in the list
_MIN_WORD: Final = 2
_NAMED: Final = 10.0  # for a tool whose name occurs
_COMMON: Final = 0.2  # words that more of the tools have say nothing
_DIRECTIVE = re.compile(r"\[\[VCPDynamicTools:(?:tool=([^\]]{1,200})|category=([^:\]]{1,200}):all)\]\]", re.IGNORECASE)


class ListedTool(NamedTuple):
    name: str
    display_name: str
    description: str
    text: str  # for prompts


def write_dynamic_tools(tools: Sequence[ListedTool], messages: Sequence[Json], limits: DynamicToolLimits) -> str:
    """Return the text for a conversation."""
    said = _read_conversation(messages)
    forced = _list_forced(tools, said, limits)
    scores = _score(tools, said)
    others = sorted((tool for tool in tools if scores[tool.name] > 0), key=lambda tool: -scores[tool.name])
    chosen = [*forced, *[tool for tool in others if tool not in forced][: limits.expanded]]
    lines = [f"Tools ({len(tools)}); those that fit this conversation are described below:"]
    lines += [f"- {_name(tool)}: {_shorten(tool.description)}" for tool in tools[: limits.listed]]
    if len(tools) > limits.listed:
        lines.append(f"- and {len(tools) - limits.listed} more")
    lines += [f"\n{tool.text}" for tool in chosen]
    text = "\n".join(lines)
    return text if len(text) <= limits.characters else f"{text[: limits.characters].rstrip()}\n…"


def _read_conversation(messages: Sequence[Json]) -> str:
    texts = [read_text(one.get("content")) for one in messages[-_MAX_MESSAGES:] if isinstance(one, dict)]
    return "\n".join(texts)[-_MAX_TEXT:]


def _list_forced(tools: Sequence[ListedTool], said: str, limits: DynamicToolLimits) -> list[ListedTool]:
    forced: dict[str, ListedTool] = {}
    for match in _DIRECTIVE.finditer(said):
        wanted = (match[1] or match[2]).strip().lower()
        if match[1]:
            found = [tool for tool in tools if wanted in (tool.name.lower(), tool.display_name.lower())]
        else:
            found = [tool for tool in tools if wanted in f"{_name(tool)} {tool.description}".lower()]
        forced |= {tool.name: tool for tool in found[: limits.forced]}
    return list(forced.values())


def _score(tools: Sequence[ListedTool], said: str) -> dict[str, float]:
    words = {tool.name: _words(f"{_name(tool)} {tool.description}") for tool in tools}
    having = Counter(word for own in words.values() for word in own)
    most = max(1.0, _COMMON * len(tools))
    wanted = {word for word in _words(said) if 0 < having[word] <= most}
    lowered = said.lower()
    return {
        tool.name: sum(1 / having[word] for word in words[tool.name] & wanted)
        + (_NAMED if tool.name.lower() in lowered else 0)
        for tool in tools
    }


@lru_cache(maxsize=1_000)
def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in list_words(text) if len(word) >= _MIN_WORD)


def _name(tool: ListedTool) -> str:
    is_same = tool.display_name in ("", tool.name)
    return tool.name if is_same else f"{tool.display_name} ({tool.name})"


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_LINE else f"{words[:_MAX_LINE].rstrip()}…"
