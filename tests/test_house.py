"""The rules of the house, checked on the code itself."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolyard import errors
from toolyard.errors import ToolyardError

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/toolyard"
Modules = dict[str, ast.Module]


@pytest.fixture(scope="module")
def pure(modules: Modules) -> Modules:
    return {name: tree for name, tree in modules.items() if name.startswith(("protocol/", "dialects/"))}


@pytest.fixture(scope="module")
def texts(modules: Modules) -> dict[str, str]:
    """Their code without comments, in one form."""
    return {name: ast.unparse(tree) for name, tree in modules.items()}


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def _decorators(node: ast.ClassDef) -> Iterator[str]:
    yield from map(ast.unparse, node.decorator_list)


@pytest.mark.requirement("house:imports-down", "house:siblings")
def test_every_part_has_a_layer_for_make_check(modules: Modules) -> None:
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layered = {name.strip().removeprefix("toolyard.") for layer in contract["layers"] for name in layer.split("|")}
    parts = {name.partition("/")[0].removesuffix(".py") for name in modules}
    assert layered == parts - {"__init__", "__main__"}


@pytest.mark.requirement("house:pure")
def test_protocol_and_dialects_import_nothing_that_does_io_or_tells_the_time(pure: Modules) -> None:
    forbidden = {"os", "io", "sys", "time", "datetime", "random", "secrets", "uuid", "socket", "subprocess", "asyncio",
                 "threading", "pathlib", "logging", "tempfile", "shutil", "urllib.request"}  # fmt: skip
    found = {name: sorted(set(_imports(tree)) & forbidden) for name, tree in pure.items()}
    assert {name: modules for name, modules in found.items() if modules} == {}


@pytest.mark.requirement("house:frozen")
def test_every_dataclass_of_protocol_and_dialects_is_frozen(pure: Modules) -> None:
    thawed = [
        f"{name}:{node.name}"
        for name, tree in pure.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for decorator in _decorators(node)
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    ]
    assert thawed == []


@pytest.mark.requirement("house:environment")
def test_only_config_reads_the_environment(texts: dict[str, str]) -> None:
    readers = [name for name, text in texts.items() if re.search(r"os\.(environ|getenv)", text)]
    assert readers == ["config.py"]


@pytest.mark.requirement("house:broad-except")
def test_broad_excepts_stand_in_runner_web_and_cli_only(modules: Modules) -> None:
    broad = [
        name
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or re.search(r"\b(Base)?Exception\b", ast.unparse(node.type)))
        and ast.unparse(node.body[-1]) != "raise"  # clearing up on the way out catches nothing
    ]
    assert [name for name in broad if not name.startswith(("cli/", "web/")) and name != "engine/runner.py"] == []


@pytest.mark.requirement("house:class-names")
def test_no_class_has_a_name_that_says_nothing(modules: Modules) -> None:
    empty_words = re.compile(r"(Manager|Handler|Helper|Utils?|Processor|Service)$")
    names = [node.name for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name in names if empty_words.search(name)] == []


@pytest.mark.requirement("house:module-docstrings")
def test_every_module_begins_with_what_it_is(modules: Modules) -> None:
    assert [name for name, tree in modules.items() if not ast.get_docstring(tree)] == []


@pytest.mark.requirement("house:error-tree")
def test_every_host_fault_is_in_the_tree_drawn_in_errors() -> None:
    faults = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ToolyardError)]
    tree = errors.__doc__ or ""
    assert [fault.__name__ for fault in faults if fault.__name__ not in tree] == []
    drawn = dict(re.findall(r"── (\w+).*\((\d)\)", tree))
    assert drawn == {fault.__name__: str(fault.exit_code) for fault in faults if fault is not ToolyardError}


@pytest.mark.requirement("house:letter-case")
def test_camel_case_keys_stand_in_dialects_only(modules: Modules) -> None:
    camel = re.compile(r"[a-z]+[A-Z][a-z]+[A-Za-z]*")
    theirs = {"additionalProperties", "minLength", "maxLength", "minItems", "maxItems"}  # words of the JSON Schema
    theirs |= {"filePath", "oldStart", "oldLines", "newStart", "newLines"}  # a synonym, and the keys of a hunk
    theirs |= {"anyOf", "allOf", "oneOf", "requestBody", "securitySchemes"}  # of JSON Schema and OpenAPI
    others_words = (  # made to speak as others do
        "dialects/", "tools/file_operator.py", "tools/operations/", "protocol/manifests/",
        "protocol/plugin_answers/plugin_result.py",
        "protocol/plugin_answers/plugin_content.py",
        "plugins/authoring/lint.py", "plugins/authoring/lint.py", "gateway/vcp_blocks.py",
    )  # fmt: skip
    found = {
        name: {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and camel.fullmatch(node.value)
        }
        - theirs
        for name, tree in modules.items()
        if not name.startswith(others_words)
    }
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.requirement("house:tool-files")
def test_each_built_in_tool_has_its_text_beside_it_and_its_limits_from_the_code(texts: dict[str, str]) -> None:
    tools = [name for name, text in texts.items() if name.startswith("tools/") and "SPEC" in text]
    assert tools
    for name in tools:
        text = (SOURCE / name).with_suffix(".md").read_text("utf-8")
        numbers = re.findall(r"(?<!UTF-)\b\d{2,}\b", text)
        assert (name, numbers) == (name, [])


@pytest.mark.requirement("runner:one-way")
def test_only_the_runner_runs_a_tool(texts: dict[str, str]) -> None:
    runs = [name for name, text in texts.items() if re.search(r"\btool\.run\(", text)]
    assert runs == ["engine/runner.py"]


@pytest.mark.requirement("house:pure", "clock:one")
def test_nobody_but_the_clock_asks_for_the_time(texts: dict[str, str]) -> None:
    askers = [
        name
        for name, text in texts.items()
        if re.search(r"time\.(time|monotonic|perf_counter)\(|datetime\.now\(|\.utcnow\(", text)
    ]
    assert askers == ["engine/clock.py"]


@pytest.mark.requirement("records:typed")
def test_only_values_of_the_protocol_read_the_bodies_of_records(modules: Modules) -> None:
    """A stored record becomes a value by its ``from_record``; the bodies of HTTP requests have names of their own."""
    of_http = ("self", "ask", "request", "response", "run", "message")
    reads = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in modules.items()
        if not name.startswith("protocol/")
        for node in ast.walk(tree)
        for body in _read_bodies(node)
        if ast.unparse(body.value).rpartition(".")[2] not in of_http
    ]
    assert reads == []


def _read_bodies(node: ast.AST) -> Iterator[ast.Attribute]:
    """Yield each ``x.body`` of which ``node`` reads members: ``x.body[…]``, ``x.body.get`` or ``{**x.body}``."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="body") as body):
            yield body
        case ast.Attribute(value=ast.Attribute(attr="body") as body, attr="get" | "items" | "keys" | "values" | "pop"):
            yield body
        case ast.Dict(keys=keys, values=values):
            spread = (value for key, value in zip(keys, values, strict=True) if key is None)
            yield from (one for one in spread if isinstance(one, ast.Attribute) and one.attr == "body")


BARE_WORDS = frozenset(
    [
        "told",
        "shown",
        "whole",
        "straight",
        "asked",
        "found",
        "wanted",
        "said",
        "kept",
        "unseen",
        "listed",
        "heard",
        "seen",
        "meant",
        "spoken",
        "brought_back",
    ]
)
PYTHON_FILES = [file for folder in ("src", "tests", "bench") for file in (ROOT / folder).rglob("*.py")]


@pytest.mark.requirement("house:plain-names")
def test_no_function_or_module_is_named_by_a_bare_participle_or_adjective() -> None:
    bad = [str(file.relative_to(ROOT)) for file in PYTHON_FILES if file.stem.strip("_") in BARE_WORDS]
    bad += [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in PYTHON_FILES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in BARE_WORDS
    ]
    assert bad == []


@pytest.mark.requirement("house:plain-names")
def test_docstrings_say_what_a_thing_is_or_does(modules: Modules) -> None:
    question = re.compile(r"(What|Who|Whose|How|Where|Whether|Why|Which)\b")
    bad = [
        f"{name}:{getattr(node, 'name', '')}"
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and question.match(ast.get_docstring(node) or "")
    ]
    assert bad == []


@pytest.mark.requirement("house:plain-names")
def test_texts_for_people_use_the_words_of_the_field() -> None:
    private = re.compile(
        r"has not the scope|prints what holds|an address that there is not|lets one never run again"
        r"|that are written down"
        r"|\bmends?\b|\bGo on\b|Again and again|日程|最近动静|正在书写|没有成功|信封的键|去答复|查找一切|词元"
    )
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    sources = [
        *(SOURCE / "cli").rglob("*.py"),
        *(ROOT / "console/src").rglob("*.ts*"),
        *(ROOT / "console/src").rglob("*.json"),
    ]
    bad = [
        f"{file.relative_to(ROOT)}:{number} {match[0]}"
        for file in (*pages, *sources)
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if (match := private.search(line))
    ]
    assert bad == []


SLEEPING_PLACES = {
    "waiting.py": "the poll loops that everybody uses",
    "campaign/": "clients and faults that keep their own time",
    "zoo/": "programs that run as children",
    "escape/attacker.py": "a program that runs as a child",
    "gateway/metered.py": "a program that measures its event loop by the beat",
    "gateway/upstream.py": "a provider that is as slow as its script says",
    "gateway/test_faults.py": "counts how often an idle event loop wakes up",
    "plugins/test_host_ports.py": "lets the event loop go round once",
    "mcp/conformance.py": "a tool that takes as long as the conformance suite expects",
    "hosts/test_paused_hosts.py": "a database that is blocked for longer than a lease",
}


@pytest.mark.requirement("house:no-sleeps")
def test_tests_wait_for_something_and_never_just_sleep() -> None:
    """Scripts that tests write for child processes are texts here, and may sleep."""
    sleeps = [
        f"{name}:{node.lineno}"
        for file in (ROOT / "tests").rglob("*.py")
        if not (name := file.relative_to(ROOT / "tests").as_posix()).startswith(tuple(SLEEPING_PLACES))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and re.search(r"(^|\.)(sleep|wait_for_timeout)$", ast.unparse(node.func))
    ]
    assert sleeps == []
