"""The next step that the text of a failed or partial call must name (002 §4)."""

import re

from toolyard.message import Message

_STEPS = (
    "ask",
    "adjust",
    "change",
    "check",
    "choose",
    "configure",
    "consider",
    "contact",
    "correct",
    "ensure",
    "give",
    "increase",
    "install",
    "list",
    "make",
    "name",
    "narrow",
    "pass",
    "provide",
    "raise",
    "read",
    "reduce",
    "retry",
    "run",
    "see",
    "send",
    "set",
    "specify",
    "try",
    "use",
    "verify",
    "wait",
)
_ENGLISH = re.compile(
    rf"(?:^|[.!?;:,)]\s+|\n\s*|\b(?:please|then|or)\s+)(?:{'|'.join(_STEPS)})\b|\bdid you mean\b|\btry again\b"
    r"|\byou (?:can|could|may|must|should|need)\b|\bplease\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"请(?!求)|重试|再试|尝试|建议|改用|[你您]可以|(?:^|[，。；：！、\s])(?:检查|确认|使用|设置|提供|缩小|减少)"
)


def has_next_step(text: str) -> bool:
    """Return whether a text names a next step; a guess by its words, in English and Chinese."""
    return bool(_ENGLISH.search(text) or _CHINESE.search(text))


def step_after_error(tool: str) -> str:
    return Message(
        "hint.check_arguments",
        "Check the arguments against what {tool} takes, then try again or do without it.",
        tool=tool,
    )


def step_after_partial(tool: str) -> str:
    return Message(
        "hint.not_whole_result",
        "This is not the whole result: narrow the call, or call {tool} again for what is missing.",
        tool=tool,
    )
