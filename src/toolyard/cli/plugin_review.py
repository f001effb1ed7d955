"""The review of a plugin: everything it would run and a model would read, with nothing hidden."""

import shlex

import click

from toolyard.cli.output import json_text
from toolyard.cli.plugin_targets import format_problem
from toolyard.cli.table import print_table
from toolyard.dialects.function_tool import to_function
from toolyard.plugins.archive_entries import escape_unprintable
from toolyard.plugins.plugin import Plugin
from toolyard.plugins.review import PluginReview
from toolyard.protocol.manifest import PluginType, tool_spec, write_plugin


def print_review(reviewed: PluginReview, plugin: Plugin) -> None:
    review, manifest = reviewed.review, reviewed.manifest
    click.echo(f"{click.style(escape_unprintable(review.name), bold=True)}  ({review.state}, {plugin.origin})\n")
    print_field("folder", str(review.folder))
    print_field("runs", review.command_line)
    print_field("as", shlex.join(review.argv))
    print_field("in a shell", "YES: the whole line is read by /bin/sh" if review.shell else "no")
    if manifest.type is PluginType.SYNCHRONOUS:
        print_field("works on", _describe_detached(reviewed))
    print_field("kind", f"{manifest.type}, risk {manifest.risk}, at most {manifest.timeout_s:g} s")
    if review.claims_read:
        standing = (
            "confirmed: models run it without asking" if review.read_confirmed else "not confirmed: models have to ask"
        )
        print_field("only reads", standing)
    print_table([("environment ", " ".join(map(escape_unprintable, review.environment)))])
    click.echo("\nFiles that count, with their sha256:")
    for path, digest in sorted(review.files.items()):
        click.echo(f"  {escape_unprintable(digest)}  {escape_unprintable(path)}")
    click.echo(f"  {review.digest}  (all of them, the manifest and the command)")
    _print_lines("Changed since it was allowed:", review.changed)
    _print_lines("The manifest, as it was allowed and now:", review.manifest_diff.splitlines())
    _print_lines("What a model reads about it:", tool_spec(manifest).description.split("\n"))
    _print_lines("What it reads about the parameters:", json_text(tool_spec(manifest).parameters).split("\n"))
    _print_lines("What it reads in a chat, as a function:", json_text(to_function(tool_spec(manifest))).split("\n"))
    _print_lines(f"What {{{{VCP{review.name}}}}} becomes in a prompt:", write_plugin(manifest).split("\n"))
    _print_lines("Worth a look:", [format_problem(problem, review.folder) for problem in reviewed.problems])


def _describe_detached(reviewed: PluginReview) -> str:
    """Say whether the plugin may work on after its answer, and how long."""
    if not reviewed.review.detached:
        return "no: what it leaves running when it has answered is stopped"
    minutes = reviewed.manifest.detached_timeout_s / 60
    return f"YES: after its answer, at most {minutes:g} min, as a task that can be cancelled"


def print_field(title: str, text: str) -> None:
    """Print a field, never truncated or wrapped."""
    click.echo(f"{title:<12}  {escape_unprintable(text)}")


def _print_lines(title: str, lines: "tuple[str, ...] | list[str]") -> None:
    if any(lines):
        click.echo(f"\n{title}")
        for line in lines:
            click.echo(f"  {escape_unprintable(line.replace(chr(9), '    '))}")
