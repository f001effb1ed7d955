"""Next steps after a failure, added by the host where the plugin itself names none (002 §4)."""

import re
from collections.abc import Iterable

from toolyard.plugins.plugin_settings import PluginSetting
from toolyard.protocol.failure import Failure
from toolyard.protocol.next_step import has_next_step, step_after_error

_BREAK = re.compile(r"[^a-z0-9]+")
_PRINTED = ("stderr", "stdout")  # in the data of a failure


def add_next_step(failure: Failure, plugin: str, settings: Iterable[PluginSetting]) -> None:
    """Add a next step to a failure that has none: the settings it is about, else to look at the arguments."""
    lacking = [one.key for one in settings if one.is_missing and _is_about(failure, one.key)]
    if lacking:
        step = f"It needs settings that its owner has not set: {', '.join(lacking)}."
    elif failure.hint or has_next_step(failure.text or failure.message):
        return
    else:
        step = step_after_error(plugin)
    if failure.text:
        failure.text = f"{failure.text.rstrip()} {step}"
    else:
        failure.hint = f"{failure.hint} {step}".strip()


def _is_about(failure: Failure, key: str) -> bool:
    """Return whether a failure mentions a setting: by its name, also in printed text, or by all its words together."""
    printed = (str(failure.data.get(name, "")) for name in _PRINTED)
    words = [word for word in _BREAK.split(key.lower()) if word]
    phrase = re.compile(r"[\W_]*".join(map(re.escape, words)), re.IGNORECASE)
    return any(key in text for text in (failure.message, *printed)) or bool(words and phrase.search(failure.message))
