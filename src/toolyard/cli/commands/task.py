"""``toolyard task``: work that continues after its call."""

import asyncio
import json
import sys

import click

from toolyard.cli.commands.call import CallRequest
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.detach import print_answer, run_detached
from toolyard.cli.records import (
    RecordFilter,
    describe_project,
    filter_options,
    format_age,
    print_note,
    print_page,
    print_record,
    require_project,
    run_in_yard,
    unknown_record,
)
from toolyard.cli.table import Row, state_cell
from toolyard.engine.background.tasks import repeat_arguments
from toolyard.errors import UsageError
from toolyard.protocol.records.task_record import KIND, Task, TaskState, write_result
from toolyard.protocol.store import Query
from toolyard.yard.yard import Yard

_HEADS = ("ID", "STATE", "PLUGIN", "STARTED", "WHAT")
_PAGE = 500


@click.group("task", cls=CommandGroup, short_help="List, show, cancel and retry background tasks.")
@common_options
def command(common: CommonOptions) -> None:
    """List, show, cancel and retry background tasks of plugins."""


@command.command("list")
@filter_options(TaskState, by_project=True)
@common_options
def list_(common: CommonOptions, filter_: RecordFilter) -> None:
    """List the tasks of the project, newest first."""
    tasks = [Task.from_record(record) for record in run_in_yard(common, lambda yard: filter_.find(yard, KIND))]
    print_page(common, filter_, _HEADS, [(task.to_json(), _row(task)) for task in tasks])


@command.command("show")
@click.argument("name", metavar="ID|PLUGIN::ID")
@common_options
def show(common: CommonOptions, name: str) -> None:
    """Show a task with its receipt, progress and result."""
    print_record(common, run_in_yard(common, lambda yard: _get_task(yard, name)).to_json())


@command.command("cancel")
@click.argument("names", metavar="[ID|PLUGIN::ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Cancel every running task of the project.")
@common_options
def cancel(common: CommonOptions, names: tuple[str, ...], every: bool) -> None:
    """Cancel running tasks. The owning process stops the plugin within a second."""
    if bool(names) == every:
        raise UsageError("name the tasks to cancel, or pass --all")
    cancelled, is_ended = run_in_yard(common, lambda yard: _cancel_all(yard) if every else _cancel(yard, names))
    if common.json:
        print_json({"cancelled": cancelled, "ended": is_ended})
    elif cancelled or not is_ended:
        project = common.config().project.resolve()
        click.echo(f"{len(cancelled)} task{'' if len(cancelled) == 1 else 's'} cancelled in {project}.")
    for id_ in is_ended:
        print_note(common, f"{id_} has already ended.")
    sys.exit(1 if is_ended else 0)


@command.command("retry")
@click.argument("name", metavar="ID|PLUGIN::ID")
@click.option("--detach", is_flag=True, help="Do not wait for the new task.")
@common_options
def retry(common: CommonOptions, name: str, detach: bool) -> None:
    """Run a task again with the same arguments, and wait for it like 'call'."""

    async def work(yard: Yard) -> CallRequest:
        task = await _get_task(yard, name)
        require_project(yard, task.project, f"the task {name}", "task retry", name)
        return CallRequest(common, task.plugin, repeat_arguments(task), (), "envelope", shown=False, force=False)

    request = run_in_yard(common, work)
    print_note(common, describe_project(common))
    sys.exit(run_detached(request.run) if detach else asyncio.run(request.run(print_answer, wait=True)))


async def _get_task(yard: Yard, name: str) -> Task:
    await yard.state.recover()
    task = await yard.state.tasks.get(name)
    if task is None:
        raise unknown_record(yard.config.own_command, "task", name)
    return task


async def _cancel(yard: Yard, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    tasks = [await _get_task(yard, name) for name in names]
    for name, task in zip(names, tasks, strict=True):
        require_project(yard, task.project, f"the task {name}", "task cancel", name)
    won = [await yard.state.tasks.cancel(task.id) for task in tasks]
    pairs = list(zip(tasks, won, strict=True))
    return [task.id for task, done in pairs if done], [task.id for task, done in pairs if not done]


async def _cancel_all(yard: Yard) -> tuple[list[str], list[str]]:
    cancelled: list[str] = []
    while page := await yard.state.tasks.page(Query(states=(TaskState.WAITING,), project=yard.project), limit=_PAGE):
        won = await asyncio.gather(*(yard.state.tasks.cancel(task.id) for task in page))
        cancelled += [task.id for task, done in zip(page, won, strict=True) if done]
    return cancelled, []


def _row(task: Task) -> Row:
    return task.id, state_cell(task.state), task.plugin, format_age(task.created), _describe(task)


def _describe(task: Task) -> str:
    if task.is_ended:
        return write_result(task)
    done, text = task.progress.get("done"), task.progress.get("text")
    if isinstance(done, int | float):
        return f"{done:.0%} {text or ''}"
    return json.dumps(task.arguments, ensure_ascii=False)
