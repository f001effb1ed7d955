"""The words a model reads about a tool: a Markdown file beside its code, with the code's own limits filled in."""

from pathlib import Path


def description(module_file: str, **limits: int) -> str:
    return Path(module_file).with_suffix(".md").read_text(encoding="utf-8").strip().format(**limits)
