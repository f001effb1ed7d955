"""The language of a file, by its name and, where the name does not tell, its first line."""

import re
from enum import StrEnum
from pathlib import PurePosixPath


class Language(StrEnum):
    PYTHON = "python"
    JSON = "json"
    JSONC = "jsonc"  # with comments and trailing commas
    JSON5 = "json5"
    JSON_LINES = "jsonl"
    YAML = "yaml"
    TOML = "toml"
    XML = "xml"
    JAVASCRIPT = "javascript"  # JSX is a part of it
    TYPESCRIPT = "typescript"
    TSX = "tsx"
    CSS = "css"
    HTML = "html"
    SHELL = "shell"
    MARKDOWN = "markdown"


def detect_language(path: str, text: str) -> Language | None:
    """None for a language that has no checker."""
    file = PurePosixPath(path.lower())
    if file.suffix == ".json" and (_COMMENTED.fullmatch(file.name) or set(file.parts[:-1]) & _COMMENTED_FOLDERS):
        return Language.JSONC
    known = _BY_NAME.get(file.name) or _BY_SUFFIX.get(file.suffix)
    if known is Language.TYPESCRIPT and text.lstrip().startswith("<?xml"):
        return Language.XML  # Qt's translations
    if known in (None, Language.SHELL) and text.startswith("#!") and (known or not file.suffix):
        return _detect_by_first_line(text)
    return known


def _detect_by_first_line(text: str) -> Language | None:
    program = _PROGRAM.match(text)
    return _BY_PROGRAM.get(program[1]) if program else None


_COMMENTED = re.compile(
    r"(ts|js)config([.-].*)?\.json|\.(eslintrc|swcrc|jshintrc|babelrc|hintrc)\.json|babel\.config\.json|tslint\.json"
    r"|devcontainer\.json|deno\.json|turbo\.json|wrangler\.json|api-extractor\.json|language-configuration\.json"
)
_COMMENTED_FOLDERS = {".vscode", ".devcontainer", ".codesandbox"}
_PROGRAM = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?([a-z]+)")
_BY_PROGRAM = {
    "sh": Language.SHELL,
    "bash": Language.SHELL,
    "dash": Language.SHELL,
    "python": Language.PYTHON,
    "node": Language.JAVASCRIPT,
}
_NAMES = {
    Language.JSON: "composer.lock flake.lock .all-contributorsrc",
    Language.JSONC: ".babelrc .eslintrc .jshintrc .swcrc .hintrc",
    Language.TOML: "cargo.lock pipfile poetry.lock uv.lock",
    Language.SHELL: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile",
}
_SUFFIXES = {
    Language.PYTHON: ".py .pyi .pyw",
    Language.JSON: ".json .ipynb .geojson .jsonld .webmanifest .har",
    Language.JSONC: ".jsonc .code-workspace .code-snippets",
    Language.JSON5: ".json5",
    Language.JSON_LINES: ".jsonl .ndjson",
    Language.YAML: ".yaml .yml",
    Language.TOML: ".toml",
    Language.XML: ".xml .svg .xhtml .xsd .xsl .xslt .plist .rss .atom .csproj .props .targets .resx .xaml .kml .gpx",
    Language.JAVASCRIPT: ".js .mjs .cjs .jsx",
    Language.TYPESCRIPT: ".ts .mts .cts",
    Language.TSX: ".tsx",
    Language.CSS: ".css",
    Language.HTML: ".html .htm",
    Language.SHELL: ".sh .bash",
    Language.MARKDOWN: ".md .markdown .mdx .mdc",
}
_BY_NAME = {name: language for language, names in _NAMES.items() for name in names.split()}
_BY_SUFFIX = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
