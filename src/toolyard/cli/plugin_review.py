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
    print_field("in a shell", "YES: /bin/sh runs the whole line" if review.shell else "no")
    if manifest.type is PluginType.SYNCHRONOUS:
        print_field("detached", _describe_detached(reviewed))
    print_field("kind", f"{manifest.type}, risk {manifest.risk}, at most {manifest.timeout_s:g} s")
    if review.claims_read:
        standing = (
            "confirmed: models run it without asking" if review.read_confirmed else "not confirmed: models must ask"
        )
        print_field("read-only", standing)
    _print_access(reviewed)
    print_table([("environment ", " ".join(map(escape_unprintable, review.environment)))])
    click.echo("\nApproved files, with their SHA-256:")
    for path, digest in sorted(review.files.items()):
        click.echo(f"  {escape_unprintable(digest)}  {escape_unprintable(path)}")
    click.echo(f"  {review.digest}  (all files, the manifest and the command)")
    _print_lines("Changed since the approval:", review.changed)
    _print_lines("Manifest, approved and current:", review.manifest_diff.splitlines())
    _print_lines("Description for models:", tool_spec(manifest).description.split("\n"))
    _print_lines("Parameters for models:", json_text(tool_spec(manifest).parameters).split("\n"))
    _print_lines("Function definition in a chat:", json_text(to_function(tool_spec(manifest))).split("\n"))
    _print_lines(f"{{{{VCP{review.name}}}}} in a prompt:", write_plugin(manifest).split("\n"))
    _print_lines("Warnings:", [format_problem(problem, review.folder) for problem in reviewed.problems])


def _describe_detached(reviewed: PluginReview) -> str:
    """Say whether the plugin may work on after its answer, and how long."""
    if not reviewed.review.detached:
        return "no: processes left after its answer are stopped"
    minutes = reviewed.manifest.detached_timeout_s / 60
    return f"YES: for at most {minutes:g} min after its answer, as a task that can be cancelled"


def _print_access(reviewed: PluginReview) -> None:
    """Print what it may reach as decided, and the other decisions."""
    others = []
    for option in reviewed.access:
        if option.choice is reviewed.review.access:
            print_field("may reach", "; ".join(option.reach))
            missing = f" ({'; '.join(option.confinement.missing)})" if option.confinement.missing else ""
            print_field("confinement", f"{option.confinement.level}{missing}")
        else:
            others.append(f"--access {option.choice}: {'; '.join(option.reach)}")
    for line in others:
        print_field("or", line)


def print_field(title: str, text: str) -> None:
    """Print a field, never truncated or wrapped."""
    click.echo(f"{title:<12}  {escape_unprintable(text)}")


def _print_lines(title: str, lines: "tuple[str, ...] | list[str]") -> None:
    if any(lines):
        click.echo(f"\n{title}")
        for line in lines:
            click.echo(f"  {escape_unprintable(line.replace(chr(9), '    '))}")
