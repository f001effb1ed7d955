"""``toolyard approval``: calls that wait for approval, and approval rules."""

import json

import click

from toolyard.cli.commands.audit import cli_actor
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_tools
from toolyard.cli.records import (
    RecordFilter,
    filter_options,
    format_age,
    print_note,
    print_page,
    run_in_yard,
    unknown_record,
)
from toolyard.cli.table import Row, escape_unprintable, format_arguments, print_rows, state_cell
from toolyard.errors import ToolyardError, UsageError
from toolyard.protocol.access import ApprovalState, Effect
from toolyard.protocol.envelope import Failure
from toolyard.protocol.records.approval_record import APPROVAL, Approval, Rule
from toolyard.yard.yard import Yard


@click.group("approval", cls=CommandGroup, short_help="Approve or deny waiting calls, and manage approval rules.")
@common_options
def command(common: CommonOptions) -> None:
    """Approve or deny waiting calls, and manage approval rules."""


@command.command("list")
@filter_options(ApprovalState)
@common_options
def list_(common: CommonOptions, filter_: RecordFilter) -> None:
    """List approvals, newest first; --state pending lists the waiting ones."""
    approvals = map(Approval.from_record, run_in_yard(common, lambda yard: filter_.find(yard, APPROVAL)))
    heads = ("ID", "STATE", "TOOL", "ASKED", "EXPIRES", "ARGUMENTS")
    print_page(common, filter_, heads, [(approval.to_json(), _row(approval)) for approval in approvals])


@command.command("show")
@click.argument("id_", metavar="ID")
@common_options
def show(common: CommonOptions, id_: str) -> None:
    """Show an approval with its full arguments; masked values show their length."""
    approval = run_in_yard(common, lambda yard: yard.state.approvals.get(id_))
    if approval is None:
        raise unknown_record(common.own_command, "approval", id_)
    if common.json:
        print_json(approval.to_json())
        return
    about = (approval.id, state_cell(approval.state), approval.tool, approval.risk, format_age(approval.created))
    print_rows(("ID", "STATE", "TOOL", "RISK", "ASKED"), [about])
    click.echo(f"\n{escape_unprintable(approval.reason)}\n\nArguments:")
    click.echo("\n".join(format_arguments(approval.arguments)))
    if approval.hidden:
        print_note(common, "\nThe owner can see masked values in the console while the call waits.")


@command.command("allow")
@click.argument("id_", metavar="ID")
@click.option("--always", is_flag=True, help="Also make a rule for this tool and command.")
@common_options
def allow(common: CommonOptions, id_: str, always: bool) -> None:
    """Approve a waiting call."""
    _answer_approval(common, id_, allowed=True, always=always, reason="")


@command.command("deny")
@click.argument("id_", metavar="ID")
@click.option("--always", is_flag=True, help="Also make a rule for this tool and command.")
@click.option("--reason", metavar="TEXT", default="", help="Reason that is passed to the model.")
@common_options
def deny(common: CommonOptions, id_: str, always: bool, reason: str) -> None:
    """Deny a waiting call."""
    _answer_approval(common, id_, allowed=False, always=always, reason=reason)


@command.group("rules", cls=CommandGroup, invoke_without_command=True)
@common_options
def rules(common: CommonOptions) -> None:
    """List the rules in effect; deny beats allow."""
    if click.get_current_context().invoked_subcommand is None:
        _print_rules(common)


@rules.command("add")
@click.argument("tool", shell_complete=complete_tools)
@click.argument("command_", metavar="[COMMAND]", default="")
@click.option("--allow", "effect", flag_value=Effect.ALLOW.value, help="Run it without asking.")
@click.option("--deny", "effect", flag_value=Effect.DENY.value, help="Never run it.")
@common_options
def add(common: CommonOptions, tool: str, command_: str, effect: str | None) -> None:
    """Add a rule for a tool, or for one of its commands."""
    if effect is None:
        raise UsageError("one of --allow and --deny is required")

    async def work(yard: Yard) -> tuple[Rule, bool]:
        try:
            spec = yard.tools.get(tool).spec
        except Failure:
            return await yard.state.approvals.add_rule(tool, command_, Effect(effect), by=cli_actor(yard.config)), False
        rule = await yard.state.approvals.add_rule(
            spec.name, command_, Effect(effect), by=cli_actor(yard.config), plugin=spec.plugin_id
        )
        return rule, True

    rule, known = run_in_yard(common, work)
    if common.json:
        print_json(rule.to_json())
    else:
        click.echo(f"{rule.id}: {effect} {rule.tool}{f' {command_}' if command_ else ''}")
    if not known:
        print_note(common, f"There is no tool called '{tool}' yet: the rule takes effect once there is one.")


@rules.command("revoke")
@click.argument("id_", metavar="ID")
@common_options
def revoke(common: CommonOptions, id_: str) -> None:
    """Revoke a rule."""
    if not run_in_yard(common, lambda yard: yard.state.approvals.revoke(id_, by=cli_actor(yard.config))):
        raise ToolyardError(f"there is no rule '{id_}': '{common.own_command.format('approval rules')}' shows them")
    if common.json:
        print_json({"revoked": id_})
    else:
        click.echo(f"{id_} is revoked.")


def _answer_approval(common: CommonOptions, id_: str, *, allowed: bool, always: bool, reason: str) -> None:
    async def work(yard: Yard) -> ApprovalState | None:
        await yard.state.recover()
        return await yard.state.approvals.answer(
            id_, allowed=allowed, by=cli_actor(yard.config), always=always, reason=reason
        )

    state = run_in_yard(common, work)
    if state is None:
        raise unknown_record(common.own_command, "approval", id_)
    if state is not (ApprovalState.ALLOWED if allowed else ApprovalState.DENIED):
        raise ToolyardError(f"{id_} is already {state.value}: the first answer counts")
    if common.json:
        print_json({"id": id_, "state": state.value})
    else:
        click.echo(f"{id_} is {state.value}.")


def _print_rules(common: CommonOptions) -> None:
    stored = run_in_yard(common, lambda yard: yard.state.approvals.rules())
    if common.json:
        print_json([rule.to_json() for rule in stored])
    elif stored:
        rows = [
            (rule.id, state_cell(rule.effect), rule.tool, rule.command, rule.plugin or "", format_age(rule.created))
            for rule in stored
        ]
        print_rows(("ID", "EFFECT", "TOOL", "COMMAND", "PLUGIN", "CREATED"), rows)
    else:
        print_note(common, "No rules.")


def _row(approval: Approval) -> Row:
    arguments = escape_unprintable(json.dumps(approval.arguments, ensure_ascii=False))
    made, expires = format_age(approval.created), format_age(approval.expires)
    return approval.id, state_cell(approval.state), approval.tool, made, expires, arguments
