"""A tool's specification as JSON: exact text for transfer between hosts, as in ``outcome_json``, and client JSON."""

import json
from dataclasses import asdict
from typing import Any

from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import CommandForm, Risk, ToolCommand, ToolSpec, Translation


def spec_to_json(spec: ToolSpec) -> JsonObject:
    """Return the client JSON of a tool."""
    return {
        "name": spec.name,
        "description": spec.description,
        "risk": spec.risk.value,
        "parameters": spec.parameters,
        "output_schema": (spec.mcp or {}).get("output_schema"),
        "synonyms": dict(spec.synonyms),
        "aliases": list(spec.aliases),
        "timeout_s": spec.timeout_s,
    }


def spec_to_text(spec: ToolSpec) -> str:
    return json.dumps(
        {
            "name": spec.name, "description": spec.description, "parameters": spec.parameters,
            "translations": {language: translation_to_json(one) for language, one in spec.translations.items()},
            "examples": spec.examples, "commands": [asdict(command) for command in spec.commands],
            "display_name": spec.display_name, "forms": [_form_to_json(form) for form in spec.forms],
            "batch_example": spec.batch_example, "prompt_text": spec.prompt_text, "on_request": spec.on_request,
            "synonyms": dict(spec.synonyms), "aliases": spec.aliases, "risk": spec.risk.value,
            "reading_commands": spec.reading_commands, "exact_approval": spec.exact_approval,
            "ask_always_with": spec.ask_always_with, "fingerprint": spec.fingerprint,
            "plugin_id": spec.plugin_id, "hides_plugins": spec.hides_plugins, "timeout_s": spec.timeout_s,
            "splits_batches": spec.splits_batches, "verbatim": spec.verbatim, "idempotent": spec.idempotent,
            "at_once": spec.at_once, "mcp": spec.mcp,
        },
        separators=(",", ":"),
    )  # fmt: skip


def translation_to_json(one: Translation) -> JsonObject:
    """Return the texts about a tool and its parameters; those about commands and settings stand with them."""
    return {"display_name": one.display_name, "description": one.description, "parameters": dict(one.parameters)}


def spec_from_text(text: str) -> ToolSpec:
    """Read a specification; fields that a newer host adds are ignored, and those that an older one lacks are empty."""
    value = json.loads(text)
    known = {key: value[key] for key in ToolSpec.__dataclass_fields__ if key in value}
    lists = {key: tuple(value.get(key, ())) for key in ("aliases", "reading_commands", "examples", "ask_always_with")}
    translations = {language: Translation(**one) for language, one in value.get("translations", {}).items()}
    commands = tuple(ToolCommand(**{**one, "required": tuple(one["required"])}) for one in value.get("commands", ()))
    forms = tuple(map(_form_from_json, value.get("forms", ())))
    read = {"translations": translations, "commands": commands, "forms": forms, "risk": Risk(value["risk"])}
    return ToolSpec(**{**known, **lists, **read})


def _form_to_json(form: CommandForm) -> JsonObject:
    return {
        "name": form.name,
        "display_name": form.display_name,
        "description": form.description,
        "translations": {language: translation_to_json(one) for language, one in form.translations.items()},
        "parameters": form.parameters,
        "examples": [*form.examples],
    }


def _form_from_json(value: JsonObject) -> CommandForm:
    known: dict[str, Any] = {key: value[key] for key in CommandForm.__dataclass_fields__ if key in value}
    translations = {language: Translation(**one) for language, one in known.get("translations", {}).items()}
    return CommandForm(**{**known, "translations": translations, "examples": tuple(known.get("examples", ()))})
