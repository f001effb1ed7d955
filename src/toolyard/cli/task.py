"""``toolyard task``: work that goes on after its call."""

import asyncio
import json
import sys

import click

from toolyard.app import Yard
from toolyard.cli.call import Request
from toolyard.cli.detach import detached, printed
from toolyard.cli.options import Common, Verbs, common_options
from toolyard.cli.output import print_json
from toolyard.cli.records import Wanted, ago, ask, list_options, print_one, print_page, say, unknown
from toolyard.cli.table import Row, state_cell
from toolyard.engine.tasks import repeat_arguments
from toolyard.errors import UsageError
from toolyard.protocol.store import Query
from toolyard.protocol.task import KIND, Task, TaskState, write_result

_HEADS = ("ID", "STATE", "PLUGIN", "STARTED", "WHAT")
_PAGE = 500


@click.group("task", cls=Verbs, short_help="List, show, cancel or retry tasks.")
@common_options
def command(common: Common) -> None:
    """Tasks: work of asynchronous plugins that goes on after its call."""


@command.command("list")
@list_options(TaskState)
@common_options
def list_(common: Common, wanted: Wanted) -> None:
    """The tasks, newest first."""
    tasks = [Task.from_record(record) for record in ask(common, lambda yard: wanted.page(yard, KIND))]
    print_page(common, wanted, _HEADS, [(task.to_json(), _row(task)) for task in tasks])


@command.command("show")
@click.argument("name", metavar="ID|PLUGIN::ID")
@common_options
def show(common: Common, name: str) -> None:
    """One task with its receipt, its progress and its result."""
    print_one(common, ask(common, lambda yard: _task(yard, name)).to_json())


@command.command("cancel")
@click.argument("names", metavar="[ID|PLUGIN::ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every task that still runs.")
@common_options
def cancel(common: Common, names: tuple[str, ...], every: bool) -> None:
    """End tasks that still run. The process that looks after a task stops its plugin within a second."""
    if bool(names) == every:
        raise UsageError("name the tasks to cancel, or say --all")
    cancelled, ended = ask(common, lambda yard: _cancel_all(yard) if every else _cancel(yard, names))
    if common.json:
        print_json({"cancelled": cancelled, "ended": ended})
    elif cancelled or not ended:
        click.echo(f"{len(cancelled)} task{'' if len(cancelled) == 1 else 's'} cancelled.")
    for id_ in ended:
        say(common, f"{id_} had ended already.")
    sys.exit(1 if ended else 0)


@command.command("retry")
@click.argument("name", metavar="ID|PLUGIN::ID")
@click.option("--detach", is_flag=True, help="Do not wait for the new task.")
@common_options
def retry(common: Common, name: str, detach: bool) -> None:
    """Call the plugin of a task again, with the same arguments, and wait for the new task as 'call' does."""

    async def work(yard: Yard) -> Request:
        task = await _task(yard, name)
        return Request(common, task.plugin, repeat_arguments(task), (), "envelope", shown=False, force=False)

    request = ask(common, work)
    sys.exit(detached(request.run) if detach else asyncio.run(request.run(printed, wait=True)))


async def _task(yard: Yard, name: str) -> Task:
    await yard.recover()
    task = await yard.tasks.get(name)
    if task is None:
        raise unknown("task", name)
    return task


async def _cancel(yard: Yard, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    tasks = [await _task(yard, name) for name in names]
    won = [await yard.tasks.cancel(task.id) for task in tasks]
    pairs = list(zip(tasks, won, strict=True))
    return [task.id for task, done in pairs if done], [task.id for task, done in pairs if not done]


async def _cancel_all(yard: Yard) -> tuple[list[str], list[str]]:
    cancelled: list[str] = []
    while page := await yard.tasks.page(Query(states=(TaskState.WAITING,)), limit=_PAGE):
        won = await asyncio.gather(*(yard.tasks.cancel(task.id) for task in page))
        cancelled += [task.id for task, done in zip(page, won, strict=True) if done]
    return cancelled, []


def _row(task: Task) -> Row:
    return task.id, state_cell(task.state), task.plugin, ago(task.created), _what(task)


def _what(task: Task) -> str:
    if task.is_ended:
        return write_result(task)
    done, text = task.progress.get("done"), task.progress.get("text")
    if isinstance(done, int | float):
        return f"{done:.0%} {text or ''}"
    return json.dumps(task.arguments, ensure_ascii=False)
