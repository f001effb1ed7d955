"""Plugins as client JSON: a row for each, and the detail of one. Values of secrets are in neither."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from toolyard.dialects.tool_specs import to_function
from toolyard.errors import ToolyardError
from toolyard.message import to_fields
from toolyard.plugins.authoring.cases import is_own_plugin
from toolyard.plugins.authoring.lint import has_hidden_characters, lint_plugin
from toolyard.plugins.package.environment import SettingSource, data_folder
from toolyard.plugins.package.plugin import CONFIG, MANIFEST, Plugin
from toolyard.plugins.package.plugin_settings import PluginSetting
from toolyard.plugins.package.review import ListedFile, list_files, problems_to_json, read_content
from toolyard.plugins.package.trust import digest_manifest
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.tool import translation_to_json
from toolyard.protocol.tool_text import write_plugin
from toolyard.yard.yard import Yard

KINDS: Final = {
    PluginType.SYNCHRONOUS: "sync",
    PluginType.ASYNCHRONOUS: "async",
    PluginType.STATIC: "static",
}
_DOCS = ("README", "CHANGELOG")
_FREE_TEXTS = ("manifest", "description", "native", "prompt_text", "lint", "problems", "docs", "reason")
_MAX_DOC_BYTES = 200_000
_MAX_DOCS = 8


def to_row_json(yard: Yard, plugin: Plugin) -> dict[str, Any]:
    manifest = plugin.manifest
    _add_secrets(yard, plugin)
    callable_ = plugin.is_ready and manifest is not None and manifest.type is not PluginType.STATIC
    return {
        "name": plugin.name,
        "display_name": manifest.display_name if manifest else plugin.name,
        "translations": translations_to_json(manifest),
        "version": manifest.version if manifest else "",
        "kind": KINDS.get(manifest.type, "service") if manifest else "unknown",
        "state": plugin.state.value,
        **to_fields("reason", plugin.reason),
        "folder": str(plugin.folder),
        "origin": plugin.origin.value,
        "confinement": _confinement_level(yard, plugin),
        "hidden_by": str(plugin.hidden_by) if plugin.hidden_by else None,
        "hides": [str(folder) for folder in plugin.hides],
        "tools": [plugin.name] if callable_ else [],
        "commands": [command.name for command in manifest.commands if command.name] if manifest else [],
        "problems": problems_to_json(plugin.problems),
    }


def _confinement_level(yard: Yard, plugin: Plugin) -> str | None:
    if plugin.manifest is None or plugin.command is None:
        return None
    return yard.plugins.host.measure_confinement(plugin, plugin.manifest).level.value


def translations_to_json(manifest: Manifest | None) -> dict[str, dict[str, Any]]:
    """Return the translations by language; an empty text is untranslated."""
    return {language: translation_to_json(one) for language, one in manifest.translations.items()} if manifest else {}


def to_json(yard: Yard, plugin: Plugin) -> dict[str, Any]:
    """Return the detail of a plugin, without its documents: see ``render_documents``."""
    manifest = plugin.manifest
    spec = tool_spec(manifest) if manifest else None
    description = spec.description if spec else ""
    remarks = yard.plugins.host.list_remarks(plugin)
    return to_row_json(yard, plugin) | {
        "manifest": plugin.raw_manifest.decode(errors="replace"),
        "description": description,
        "description_length": len(description),
        "native": to_function(spec) if spec else None,
        "prompt_text": write_plugin(manifest) if manifest else "",
        "hidden_characters": manifest is not None and has_hidden_characters(manifest),
        "lint": problems_to_json(lint_plugin(plugin, remarks, yard.config.own_command)),
        "review": review_to_json(yard, plugin),
        "config": settings_to_json(yard, plugin),
        "takes_tests": is_own_plugin(plugin, project=yard.config.project, home=yard.config.home),
    }


def settings_to_json(yard: Yard, plugin: Plugin) -> list[dict[str, Any]]:
    changed = _modified_time(plugin.folder / CONFIG)
    return [
        {
            "key": one.key,
            "type": one.type,
            "description": one.description,
            "translations": dict(one.translations),
            "required": one.required,
            "secret": one.secret,
            "value": None if one.value is None else yard.mask.text(one.value),
            "set": one.is_set,
            "source": one.source.value,
            "in_schema": one.in_schema,
            "changed": changed if one.source is SettingSource.PLUGIN else None,
        }
        for one in _list_settings(yard, plugin)
    ]


def mask_secrets(yard: Yard, detail: dict[str, Any]) -> dict[str, Any]:
    """Mask secrets in free texts; names and paths stay as they are, because requests refer to them."""
    return detail | {key: yard.mask.mask_known(detail[key]) for key in _FREE_TEXTS if key in detail}


def render_documents(folder: Path, language: Language) -> list[dict[str, str]]:
    """Render README and CHANGELOG files of a plugin as safe HTML. Reads files."""
    from toolyard.render.html import markdown_to_html

    return [{"name": name, "html": markdown_to_html(text, language=language)} for name, text in _read_documents(folder)]


def _list_settings(yard: Yard, plugin: Plugin) -> tuple[PluginSetting, ...]:
    """Return the settings of a plugin, and add its secrets to the mask."""
    _add_secrets(yard, plugin)
    return yard.plugins.host.settings(plugin, plugin.manifest) if plugin.manifest else ()


def _add_secrets(yard: Yard, plugin: Plugin) -> None:
    """Add the secrets of a plugin to the mask."""
    if plugin.manifest is not None:
        yard.mask.add(yard.plugins.host.environment(plugin, plugin.manifest).secrets)


def review_to_json(yard: Yard, plugin: Plugin) -> dict[str, Any] | None:
    try:
        reviewed = yard.plugins.review(plugin)
    except ToolyardError:
        return None
    review, config = reviewed.review, yard.config
    return {
        "command_line": review.command_line,
        "argv": list(review.argv),
        "shell": review.shell,
        "detached": review.detached,
        "detached_s": _detached_timeout_s(plugin),
        "env": list(review.environment),
        "files": dict(review.files),
        "folders": [str(place) for place in (plugin.folder, data_folder(config.home, plugin.name))],
        "access": review.access.value,
        "access_options": [option.to_json() for option in reviewed.access],
        "fingerprint": review.shown_digest,
        "changed": [to_fields("text", line) for line in review.changed],
        "diff": review.manifest_diff,
        "claims_read": review.claims_read,
        "read_confirmed": review.read_confirmed,
    }


def files_to_json(yard: Yard, plugin: Plugin) -> dict[str, Any]:
    """Return the files of a plugin for its review. Reads files."""
    files, left_out = _list_files(yard, plugin)
    return {"data": [one.to_json() for one in files], "left_out": left_out}


def file_to_json(yard: Yard, plugin: Plugin, path: str) -> JsonObject | None:
    """Return one of these files with its text; None when there is no such file. Reads files."""
    file = next((one for one in _list_files(yard, plugin)[0] if one.path == path), None)
    if file is None:
        return None
    _add_secrets(yard, plugin)
    before = yard.plugins.trust.reviewed_text(plugin.folder, path)
    try:
        content = read_content(plugin.folder, file, before)
    except OSError:
        return None
    hide = yard.mask.text
    return replace(
        content,
        text=None if content.text is None else hide(content.text),
        before=None if before is None else hide(before),
    ).to_json()


def _list_files(yard: Yard, plugin: Plugin) -> tuple[list[ListedFile], int]:
    files = plugin.fingerprint.files if plugin.fingerprint else {}
    counted = {**files, MANIFEST: digest_manifest(plugin.raw_manifest)}
    return list_files(plugin.folder, counted, yard.plugins.trust.reviewed_files(plugin.folder))


def _detached_timeout_s(plugin: Plugin) -> float | None:
    """Return how long a synchronous plugin may work on after its answer, if allowed; None for other types."""
    manifest = plugin.manifest
    return manifest.detached_timeout_s if manifest and manifest.type is PluginType.SYNCHRONOUS else None


def _modified_time(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def _read_documents(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.upper().startswith(_DOCS))[:_MAX_DOCS]
    except OSError:
        return
    for name in names:
        if Path(name).suffix.lower() not in ("", ".md", ".txt"):
            continue
        try:
            fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                yield name, file.read(_MAX_DOC_BYTES).decode(errors="replace")
