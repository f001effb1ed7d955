"""``translations``: texts about a plugin in other languages for people; the English ones also for native tool calls.

At most 50 languages, and in each 200 texts about parameters, commands and settings. What is no language, and a text
about a parameter, command or setting that the plugin does not have, is noted and left out.
"""

import re
from collections.abc import Iterable
from typing import Final

from toolyard.message import Message
from toolyard.protocol.manifests.commands import read_safe_text
from toolyard.protocol.manifests.fields import Fields
from toolyard.protocol.manifests.spec import SELECTOR
from toolyard.protocol.manifests.values import Command, ConfigKey
from toolyard.protocol.tool import Translation

MAX_LANGUAGES: Final = 50
MAX_PARAMETERS: Final = 200
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}")


def parse_translations(
    fields: Fields, commands: tuple[Command, ...], config: tuple[ConfigKey, ...] = ()
) -> dict[str, Translation]:
    """Parse translations by language. Texts have no hidden characters and a bounded length; empty ones are skipped."""
    known = {SELECTOR} if len(commands) > 1 else set()
    known.update(name for command in commands for name in command.properties)
    parsed: dict[str, Translation] = {}
    for language in list(fields.value)[:MAX_LANGUAGES]:
        if not _LANGUAGE.fullmatch(language):
            fields.note(
                language,
                Message("manifest.no_language_ignored", "This is no language. It is ignored."),
                Message("manifest.write_language_code", 'Write a code such as "en" or "zh".'),
            )
            continue
        one = fields.nested(language)
        parsed[language] = Translation(
            display_name=read_safe_text(one, "displayName").strip(),
            description=read_safe_text(one, "description"),
            parameters=dict(_parse_parameters(one.nested("parameters"), known)),
            commands=dict(_parse_texts(one.nested("commands"), {command.name for command in commands})),
            settings=dict(_parse_texts(one.nested("settings"), {key.name for key in config})),
        )
    return parsed


def _parse_parameters(fields: Fields, known: set[str]) -> Iterable[tuple[str, str]]:
    names = list(fields.value)
    if len(names) > MAX_PARAMETERS:
        message = Message(
            "manifest.too_many_parameters",
            "There are {count} parameters here; the first {max_parameters} are read.",
            count=len(names),
            max_parameters=MAX_PARAMETERS,
        )
        fields.note(None, message, Message("manifest.remove_others", "Remove the others."))
    for name in names[:MAX_PARAMETERS]:
        if name not in known and name.partition(".")[0] not in known:
            fields.note(
                name,
                Message("manifest.unknown_parameter_ignored", "No command has this parameter. It is ignored."),
                Message("manifest.correct_remove", "Correct or remove it."),
            )
        elif text := read_safe_text(fields, name).strip():
            yield name, text


def _parse_texts(fields: Fields, known: set[str]) -> Iterable[tuple[str, str]]:
    """Parse the texts about commands or settings, by their names."""
    for name in list(fields.value)[:MAX_PARAMETERS]:
        if name not in known:
            fields.note(
                name,
                Message(
                    "manifest.unknown_translation_ignored", "The manifest has nothing of this name. It is ignored."
                ),
                Message("manifest.correct_remove", "Correct or remove it."),
            )
        elif text := read_safe_text(fields, name).strip():
            yield name, text
