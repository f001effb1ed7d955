"""Next steps after a failure, added by the host where the plugin itself names none (002 §4)."""

import re
from collections.abc import Iterable

from toolyard.own_command import OwnCommand
from toolyard.plugins.plugin_settings import PluginSetting
from toolyard.protocol.failure import Failure
from toolyard.protocol.next_step import has_next_step, step_after_error

_BREAK = re.compile(r"[^a-z0-9]+")
_DENIED = re.compile(r"Permission denied|Operation not permitted|\bE(?:ACCES|PERM)\b")
_PRINTED = ("stderr", "stdout")  # in the data of a failure


def add_next_step(
    failure: Failure, plugin: str, settings: Iterable[PluginSetting], *, confined: bool, own_command: OwnCommand
) -> None:
    """Add a next step to a failure that has none: the settings or the access it is about, else its arguments."""
    lacking = [one.key for one in settings if one.is_missing and _is_about(failure, one.key)]
    if lacking:
        step = f"It needs settings that its owner has not set: {', '.join(lacking)}."
    elif confined and _is_access_denied(failure):
        step = (
            "It tried to reach something that its access does not include. "
            f"Its owner can allow more: {own_command.format(f'plugin allow {plugin} --access wide')}."
        )
    elif failure.hint or has_next_step(failure.text or failure.message):
        return
    else:
        step = step_after_error(plugin)
    if failure.text:
        failure.text = f"{failure.text.rstrip()} {step}"
    else:
        failure.hint = f"{failure.hint} {step}".strip()


def _is_access_denied(failure: Failure) -> bool:
    """Return whether a failure mentions that the system refused access to something."""
    return any(_DENIED.search(text) for text in (failure.message, *_printed_texts(failure)))


def _printed_texts(failure: Failure) -> tuple[str, ...]:
    return tuple(str(failure.data.get(name, "")) for name in _PRINTED)


def _is_about(failure: Failure, key: str) -> bool:
    """Return whether a failure mentions a setting: by its name, also in printed text, or by all its words together."""
    words = [word for word in _BREAK.split(key.lower()) if word]
    phrase = re.compile(r"[\W_]*".join(map(re.escape, words)), re.IGNORECASE)
    return any(key in text for text in (failure.message, *_printed_texts(failure))) or bool(
        words and phrase.search(failure.message)
    )
