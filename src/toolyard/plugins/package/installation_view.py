"""The settings of a VCPToolBox installation as one of its plugins sees them: the keys that its own code names.

VCPToolBox gives every plugin all of its ``config.env`` and lets it read those of its siblings. Here the environment of
a plugin has, of the installation's variables, those of its schema and those that its reviewed code names. Where it
opens a ``config.env`` that is not its own, it reads a view of it: the same keys, and a first line that says so. A view
also has the variables of prompts, which are no secrets, and that of a sibling all of its keys if the code names both
the sibling and the file.

Siblings that the code names by a path (``../RAGDiaryPlugin``) are written too, as VCPToolBox's own plugins do: whatever
code is changed there makes the sibling ask for a new review.

A name that is an ordinary word (``Key``, ``API_Key``, ``API_URL``) counts only where code reads it as a variable, such
as ``process.env.Key``; so the model provider's key goes to plugins that ask the provider themselves, and a review names
it. Only files that the fingerprint covers are read: what a plugin writes gives it nothing.
"""

import glob
import hashlib
import os
import re
import stat
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from toolyard.plugins.package.config_env import edit_config, is_secret, parse_config
from toolyard.plugins.package.plugin import CONFIG, Plugin
from toolyard.workspace.home_folder import make_private_folder, write_private_file

_EXAMPLE = f"{CONFIG}.example"
VIEWS_FOLDER: Final = "vcp-views"
PACKAGES_FOLDER: Final = "vcp-packages"  # npm packages that were installed for the plugins of an installation
PYTHON_FOLDER: Final = "vcp-python"  # a virtual environment for them
_WORD = re.compile(r"[A-Za-z_]\w*")
_AS_VARIABLE = re.compile(
    r"""(?:env|ENV|[cC]onfig|environ)(?:\.get\(|\?)?[.\[]?['"]?(\w+)|getenv\(['"](\w+)|\.(?:get)\(['"](\w+)"""
)
_SIBLING = re.compile(r"""(?:\.\./|['"`](?:\.\.|Plugin)['"`],\s*['"`])([\w.-]+)""")
_PLAIN_WORDS = frozenset({"Key", "API_Key", "API_URL", "AdminUsername", "AdminPassword", "PORT"})
PROMPT_VARIABLE: Final = re.compile(r"(?:Tar|Var|Sar|Detector|SuperDetector)(?:_|[A-Z0-9])")
_SERVERS: Final = ("server.js", "adminServer.js")
_MAX_BYTES = 8 * 2**20
_MAX_FILES = 500


class InstallationSettings:
    """The settings of an installation: its variables as they were read, and views of its files as they are now."""

    def __init__(self, root: Path, variables: Mapping[str, str], *, image_key: str = "", file_key: str = "") -> None:
        """The keys are those of the addresses under which it publishes files."""
        self.root, self._variables = root, variables
        self._published = {name: key for name, key in (("Image_Key", image_key), ("File_Key", file_key)) if key}
        self._views: dict[Path, tuple[Hashable, tuple[tuple[str, str], ...]]] = {}

    def choose_for(self, plugin: Plugin, *, port: int) -> dict[str, str]:
        """Return the variables that the code or the manifest of a plugin names; PORT is that of this host."""
        wanted = {*find_named_variables(plugin)}
        if plugin.publish_keys:
            wanted |= self._published.keys()
        variables = {**self._variables, "PORT": str(port), **self._published}
        return {name: value for name, value in variables.items() if name in wanted}

    def list_views(self, plugin: Plugin, home: Path) -> tuple[tuple[str, str], ...]:
        """Write and return the views of a plugin: each ``config.env`` that is not its own, and what it sees instead.

        They are written anew, under another name, when one of these files or the plugin has changed: a process that was
        started before would see a file that has been replaced as it is, so it is given to no further call. Raises
        OSError.
        """
        files = self._list_files(plugin)
        seen = (plugin.fingerprint and plugin.fingerprint.digest, tuple(files.items()))
        before, views = self._views.get(plugin.folder, (None, ()))
        if before != seen:
            views = tuple(
                (str(file), str(self._write_view(plugin, file, repr(state), home))) for file, state in files.items()
            )
            self._views[plugin.folder] = (seen, views)
        return views

    def _write_view(self, plugin: Plugin, file: Path, state: str, home: Path) -> Path:
        folder = home / VIEWS_FOLDER / plugin.folder.name
        make_private_folder(folder)
        names, text = _find_names(plugin), _read(file)
        is_named_sibling = names.reads_settings and file.parent != self.root and file.parent.name in names.words
        content = (text if is_named_sibling else _filter(text, names)).encode()
        name = os.path.relpath(file, self.root).replace("/", "+")
        view = folder / f"{name}-{hashlib.sha256(content + state.encode()).hexdigest()[:16]}"
        write_private_file(view, content)
        for older in folder.glob(f"{glob.escape(name)}-*"):
            if older != view:
                older.unlink(missing_ok=True)
        return view

    def _list_files(self, plugin: Plugin) -> dict[Path, Hashable]:
        """Return the files of the root and of siblings that hold settings, with what changes when they do."""
        with os.scandir(self.root / "Plugin") as entries:
            folders = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        with os.scandir(self.root) as entries:  # with copies of it
            named = sorted(entry.path for entry in entries if entry.name.startswith(CONFIG) and entry.name != _EXAMPLE)
        files: dict[Path, Hashable] = {}
        for path in (*named, *(f"{folder}/{CONFIG}" for folder in folders if folder != str(plugin.folder))):
            with suppress(OSError):
                facts = os.lstat(path)
                if stat.S_ISREG(facts.st_mode):  # a link leads to where nothing is granted
                    files[Path(path)] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        return files


def _filter(text: str, names: "_Names") -> str:
    values = parse_config(text).values
    shown = {name: value for name, value in values.items() if names.sees(name, value)}
    try:
        kept = edit_config("", shown)
    except ValueError:  # one of them cannot be written in another file
        kept = ""
    return f"# Toolyard hides {len(values) - len(shown)} other settings of this file\n{kept}"


@dataclass(frozen=True, slots=True)
class _Names:
    words: frozenset[str]  # every word of the code
    named: frozenset[str]  # those that may be variables: ordinary words only where they are read as such
    siblings: frozenset[str]  # those that stand in a path behind ``..`` or ``Plugin``

    @property
    def reads_settings(self) -> bool:
        return "config" in self.words and "env" in self.words

    def sees(self, name: str, value: str) -> bool:
        return name in self.named or bool(PROMPT_VARIABLE.match(name) and not is_secret(name, value))


def find_named_variables(plugin: Plugin) -> frozenset[str]:
    """Return the names in the code or the manifest of a plugin that count as variables."""
    return _find_names(plugin).named | {key.name for key in (plugin.manifest.config if plugin.manifest else ())}


def list_process_settings(root: Path, variables: Mapping[str, str], plugins: Iterable[Plugin]) -> frozenset[str]:
    """Return which variables the process of VCPToolBox's plugins sees: of secrets those that they or its code name.

    What is no secret is all seen: VCPToolBox puts many of these names together when it runs.
    """
    named = [_find_host_names(root).named, *map(find_named_variables, plugins)]
    seen = {
        name for name, value in variables.items() if not is_secret(name, value) or any(name in one for one in named)
    }
    return frozenset(seen - {"AdminUsername", "AdminPassword"})  # of a panel that does not run here


def _find_host_names(root: Path) -> "_Names":
    """Return the names in VCPToolBox's own code, without that of its servers, which do not run here."""
    paths = sorted(path for path in (*root.glob("*.js"), *root.glob("modules/**/*.js")) if path.name not in _SERVERS)
    signature: list[tuple[str, int, int]] = []
    for path in paths[:_MAX_FILES]:
        with suppress(OSError):
            facts = path.stat()
            signature.append((os.path.relpath(path, root), facts.st_size, facts.st_mtime_ns))
    return _scan(root, repr(signature), tuple(name for name, *_ in signature), b"")


def find_named_siblings(plugin: Plugin) -> tuple[str, ...]:
    """Return the folders of siblings that the code of a plugin names by a path, relative to the installation."""
    if plugin.installation is None:
        return ()
    folders = (plugin.installation / "Plugin" / name for name in sorted(_find_names(plugin).siblings))
    return tuple(
        f"Plugin/{one.name}" for one in folders if one != plugin.folder and (one / "plugin-manifest.json").exists()
    )


def _find_names(plugin: Plugin) -> _Names:
    if plugin.fingerprint is None:
        return _Names(frozenset(), frozenset(), frozenset())
    return _scan(plugin.folder, plugin.fingerprint.digest, tuple(plugin.fingerprint.files), plugin.raw_manifest)


@lru_cache(maxsize=512)
def _scan(folder: Path, _digest: str, files: tuple[str, ...], manifest: bytes) -> _Names:
    words, room = set(_WORD.findall(manifest.decode("utf-8", "replace"))), _MAX_BYTES
    variables, siblings = set[str](), set[str]()
    for file in files[:_MAX_FILES]:
        text = _read(folder / file, room)
        room -= len(text)
        words.update(_WORD.findall(text))
        variables.update(name for match in _AS_VARIABLE.finditer(text) for name in match.groups() if name)
        siblings.update(_SIBLING.findall(text))
    return _Names(frozenset(words), frozenset(words - _PLAIN_WORDS | variables & words), frozenset(siblings))


def _read(file: Path, room: int = _MAX_BYTES) -> str:
    try:
        with open(file, "rb") as opened:
            return opened.read(max(0, room)).decode("utf-8", "replace")
    except OSError:
        return ""
