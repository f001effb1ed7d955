"""Every place where a crash would be of interest has a crash point, and an unarmed one does nothing."""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from toolyard import crashpoint

Modules = dict[str, ast.Module]
NO_POINT = {
    "cli/detach.py": "it leaves the terminal; there is no state yet",
    "cli/commands/serve.py": "files of an example, which a start that was cut off leaves for the next one to make",
    "confinement/": "it starts processes for plugins/process/cold_starter.py and others, which have points",
    "engine/chats/assistants.py": "each change is one transaction of one record, after which nothing follows",
    "engine/chats/responses.py": "each change is one transaction of one record; its turn has points and tests",
    "engine/recovery.py": "it commits through tasks, schedules, approvals and the journal",
    "gateway/": "a chat that is cut off is told so by its client; its calls are in the journal",
    "hosts/": "killed workers have a test of their own, with processes of their own",
    "importing.py": "what it writes it can write again",
    "plugins/process/children.py": "it starts the guardian, between plugin.spawned and plugin.adopted",
    "plugins/process/guardian_main.py": "the host is gone already; the task whose ports it serves has tests of its own",
    "plugins/mcp/": "they are started by plugins/process/cold_starter.py",
    "plugins/package/trust.py": "without its copies a review cannot show a difference, and says so",
    "vcp/nodes/node_files.py": "the copy of a file is brought again when it is lost",
    "plugins/long_work/static_plugins.py": "the value is asked for again when it is lost",
    "plugins/process/warm/": "killed hosts with warm children have tests of their own; once started all are alike",
    "render/terminal_diagram.py": "it draws a picture and keeps nothing",
    "storage/state_file.py": "a copy of the state is made by storage/backup_archive.py",
    "tools/validation/program.py": "it looks at a file that is written already",
    "web/server/health.py": "its record says nothing: only whether it can be written",
    "workspace/search/ripgrep.py": "it reads only",
}
_RENAMES = {"os.replace", "os.rename", "os.link"}
_SPAWNS = {"Popen", "create_subprocess_exec", "posix_spawn", "fork"}


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _points(tree: ast.AST) -> list[str]:
    named = (call for call in _calls(tree) if getattr(call.func, "id", "") == "crashpoint")
    return [ast.literal_eval(call.args[0]) for call in named]


def _is_of_interest(call: ast.Call) -> bool:
    """A transaction of the store, a rename, a start of a process."""
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    if name.endswith("_store.commit") or last in _SPAWNS or name in _RENAMES:
        return True
    is_text = len(call.args) != 1 or call.keywords  # str.replace has two, dataclasses.replace names them
    return last in {"rename", "replace"} and isinstance(call.func, ast.Attribute) and not is_text


@pytest.mark.requirement("crash:invariants")
def test_every_crash_point_has_a_name_of_its_own(modules: Modules) -> None:
    names = Counter(name for tree in modules.values() for name in _points(tree))
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 40


@pytest.mark.requirement("crash:invariants")
def test_every_module_that_commits_renames_or_spawns_has_a_crash_point(modules: Modules) -> None:
    without = [
        name
        for name, tree in modules.items()
        if not _points(tree) and not name.startswith(tuple(NO_POINT)) and any(map(_is_of_interest, _calls(tree)))
    ]
    assert without == []


@pytest.mark.requirement("crash:invariants")
def test_no_exception_from_the_rule_is_out_of_date(modules: Modules) -> None:
    needless = [
        name for name in NO_POINT if all(_points(tree) for module, tree in modules.items() if module.startswith(name))
    ]
    assert needless == []


@pytest.mark.requirement("crash:invariants")
def test_a_crash_point_does_nothing_until_somebody_arms_it(modules: Modules) -> None:
    heard: list[str] = []
    crashpoint.crashpoint("before")
    crashpoint.arm(heard.append)
    try:
        crashpoint.crashpoint("now")
    finally:
        crashpoint.arm(None)
    crashpoint.crashpoint("after")
    assert heard == ["now"]
    armed = [name for name, tree in modules.items() for call in _calls(tree) if ast.unparse(call.func).endswith("arm")]
    assert armed == []
