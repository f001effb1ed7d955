"""``toolyard help``: the pages of the documentation in the terminal, as topics.

The tables of the index, ``docs/README.md``, give the groups and the order. ``NAME.zh-CN.md`` is the Chinese page of the
topic ``NAME``; without one, the page is English.
"""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_topics
from toolyard.cli.table import print_table
from toolyard.config import prefers_chinese
from toolyard.errors import ToolyardError, UsageError
from toolyard.shipped_files import find_shipped_folder

_MAX_WIDTH = 100
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)  # for programs and translators
_RELATIVE_LINK = re.compile(r"!?\[([^\]]+)\]\((?!\w+:)[^)]*\)")
CHINESE_ENDING = ".zh-cn"  # of a topic, when case does not matter
_FOLDER = "docs"
_INDEX = "README.md"
_CHINESE = ".zh-CN.md"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^## (.+)$|^\| \[[^\]]+\]\(([^)#:]+\.md)\)", re.MULTILINE)


@click.command("help", cls=Command, short_help="Show a page of the documentation, or the help of a command.")
@click.argument("words", metavar="[TOPIC|COMMAND]", nargs=-1, shell_complete=complete_topics)
@common_options
def command(common: CommonOptions, words: tuple[str, ...]) -> None:
    """Show a page of the documentation, or the help of a command. Without a topic, list the pages.

    \b
    toolyard help
    toolyard help tutorial
    toolyard help plugin install

    Pages are shown in Chinese where the language of the environment (LC_ALL, LC_MESSAGES, LANG) is Chinese and there is
    a Chinese page; 'toolyard help tutorial.zh-CN' always shows that.
    """
    is_named_chinese = bool(words) and words[-1].casefold().removesuffix(".md").endswith(CHINESE_ENDING)
    pages = list_pages(in_chinese=is_named_chinese or prefers_chinese())
    page = find_page(pages, words[0]) if len(words) == 1 else None
    if not words:
        _print_list(common, pages)
    elif page is not None:
        _print_page(common, page)
    elif help_text := _find_command_help(words):
        click.echo(help_text)
    else:
        raise UsageError(f"there is no topic '{' '.join(words)}': {_suggest(pages, words)}")


@dataclass(frozen=True, slots=True)
class DocPage:
    """A page; its topic is its path without the ending, or the folder that it introduces."""

    topic: str
    title: str
    text: str
    group: str


def _print_list(common: CommonOptions, pages: Sequence[DocPage]) -> None:
    if common.json:
        print_json([{"topic": page.topic, "title": page.title, "group": page.group} for page in pages])
        return
    rows: list[tuple[str, str]] = []
    width = max(len(page.topic) for page in pages)
    for group, members in groupby(pages, key=lambda page: page.group):
        click.echo(f"\n{group}" if rows else group)
        rows = [(f"  {page.topic:{width}}", page.title) for page in members]
        print_table(rows)
    click.echo("\nRead one with 'toolyard help TOPIC'. 'toolyard help COMMAND' shows the options of a command.")


def _print_page(common: CommonOptions, page: DocPage) -> None:
    if common.json:
        print_json({"topic": page.topic, "title": page.title, "markdown": page.text})
        return
    text = _render(page)
    if sys.stdout.isatty() and sys.stdin.isatty():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def _render(page: DocPage) -> str:
    """Return the page as text for this terminal: with colours if it has them, and links to other pages as words."""
    import io

    from rich.console import Console

    from toolyard.render.terminal import ReplyMarkdown

    terminal = Console(file=sys.stdout)
    width = min(_MAX_WIDTH, shutil.get_terminal_size((_MAX_WIDTH, 24)).columns)
    has_colour = terminal.is_terminal and not terminal.no_color
    drawn = Console(
        file=io.StringIO(), width=width, force_terminal=has_colour, no_color=not has_colour, legacy_windows=False
    )
    with drawn.capture() as capture:
        text = _RELATIVE_LINK.sub(r"\1", _COMMENT.sub("", page.text))
        drawn.print(ReplyMarkdown(text, "… {} more lines"))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _find_command_help(words: Sequence[str]) -> str:
    """Return the help of a command; empty when there is none of this name."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            return ""
        context = click.Context(found, info_name=word, parent=context)
    return context.get_help()


def _suggest(pages: Sequence[DocPage], words: Sequence[str]) -> str:
    from toolyard.protocol.arguments import find_nearest

    root = click.get_current_context().find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    guess = find_nearest(words[0], [*(page.topic for page in pages), *commands])
    return f"did you mean '{guess}'?" if guess else "'toolyard help' lists them"


def list_pages(*, in_chinese: bool = False) -> tuple[DocPage, ...]:
    """Return all pages but the index, in its order. Raises ToolyardError when there are none."""
    folder = find_shipped_folder(_FOLDER)
    if folder is None:
        raise ToolyardError("the documentation is not part of this installation: install the package again")
    entries = _list_entries(folder / _INDEX, in_chinese=in_chinese)
    return tuple(_read_page(folder, file, group, in_chinese=in_chinese) for group, file in entries)


def _list_entries(index: Path, own_group: str = "", *, in_chinese: bool) -> Iterator[tuple[str, Path]]:
    """Yield the English file of each page that an index lists, with its group; those of a folder follow its own."""
    group = own_group
    for heading, target in _ENTRY.findall(_find_translation(index, in_chinese=in_chinese).read_text("utf-8")):
        if heading:
            group = own_group or heading
        if target:
            file = index.parent / target.replace(_CHINESE, ".md")
            yield group, file
            if file.name == _INDEX:
                yield from _list_entries(file, group, in_chinese=in_chinese)


def _find_translation(file: Path, *, in_chinese: bool) -> Path:
    chinese = file.with_name(file.name.removesuffix(".md") + _CHINESE)
    return chinese if in_chinese and chinese.exists() else file


def _read_page(folder: Path, file: Path, group: str, *, in_chinese: bool) -> DocPage:
    text = _find_translation(file, in_chinese=in_chinese).read_text("utf-8")
    topic = file.relative_to(folder).as_posix().removesuffix(f"/{_INDEX}").removesuffix(".md")
    title = _TITLE.search(text)
    return DocPage(topic, title[1] if title else topic, text, group)


def find_page(pages: Sequence[DocPage], name: str) -> DocPage | None:
    """Return the page of a topic; the last part of a topic is enough if no other page has it."""
    name = name.casefold().removesuffix(".md").removesuffix(CHINESE_ENDING)
    exact = [page for page in pages if page.topic.casefold() == name]
    last = [page for page in pages if page.topic.casefold().rpartition("/")[2] == name]
    return exact[0] if exact else last[0] if len(last) == 1 else None
