"""Documentation is asserted: what is public and undocumented turns the build red."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

import toolyard
from tests.docs.shell_examples import TypedLine, list_lines
from toolyard.cli import toolyard as command_line
from toolyard.dialects import DIALECTS
from toolyard.protocol.envelope import ErrorCode, Reason
from toolyard.settings import SETTINGS

ROOT = Path(__file__).parents[1]
PAGES = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in sorted((ROOT / "docs").rglob("*.md"))}
FRONT = {
    name: (ROOT / name).read_text("utf-8")
    for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md")
}
DOCS = "\n".join(PAGES.values())

pytestmark = pytest.mark.requirement("house:documented")


def _verbs(group: click.Group, words: str = "toolyard") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from _verbs(command, f"{words} {name}")


def _fences(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_error_code_reason_setting_and_dialect_is_documented() -> None:
    names = [*ErrorCode, *Reason, *DIALECTS]
    names += [word for setting in SETTINGS for word in (setting.name, *setting.environment)]
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_every_verb_and_option_of_the_command_line_is_documented() -> None:
    page = PAGES["docs/cli.md"]
    verbs = dict(_verbs(command_line))
    assert [verb for verb in verbs if verb not in page] == []
    options = {
        word for command in verbs.values() for option in command.params for word in option.opts if word[:2] == "--"
    }
    assert [option for option in sorted(options) if f"`{option}" not in page] == []


def test_every_tool_with_its_parameters_is_documented(tmp_path: Path) -> None:
    page = PAGES["docs/tools.md"]
    with toolyard.open(project=tmp_path) as yard:
        for tool in (tool for tool in yard.tools if not tool.spec.verbatim):  # those of plugins have their own pages
            names = [*tool.spec.parameter_names, *tool.spec.synonyms]
            assert f"## {tool.spec.name}\n" in page
            assert (tool.spec.name, [name for name in names if f"`{name}`" not in page]) == (tool.spec.name, [])


def test_json_in_the_documentation_is_valid() -> None:
    blocks = [block for text in (*PAGES.values(), *FRONT.values()) for block in _fences(text, "json")]
    assert blocks
    for block in blocks:
        json.loads(block)


@pytest.mark.parametrize("page", [*PAGES, *FRONT])
def test_links_lead_somewhere(page: str) -> None:
    text = {**PAGES, **FRONT}[page]
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


@pytest.mark.requirement("docs:readme")
def test_both_readmes_have_the_same_parts_commands_outputs_pictures_and_links() -> None:
    english, chinese = FRONT["README.md"], FRONT["README.zh-CN.md"]
    for language in ("sh", "text"):
        assert _fences(english, language) == _fences(chinese, language)
    for heading in ("\n## ", "\n### ", "\n- ", "\n| "):
        assert (heading, english.count(heading)) == (heading, chinese.count(heading))
    assert "](README.zh-CN.md)" in english
    assert "](README.md)" in chinese
    assert _links(english) == _links(chinese)


@pytest.mark.requirement("package:metadata")
def test_the_readmes_name_the_pythons_of_the_metadata() -> None:
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert f"(tests run with {named[0]} to {named[-1]})" in FRONT["README.md"]
    assert f"（测试覆盖 {named[0]} 到 {named[-1]}）" in FRONT["README.zh-CN.md"]


def _links(text: str) -> list[str]:
    """The targets of the links and pictures, in order, of pages that are translated the English one."""
    targets = re.findall(r"\]\(([^)]+)\)", text)
    return [target.replace(".zh-CN.md", ".md") for target in targets]


@pytest.mark.requirement("docs:one-form")
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/cli.md",
        "docs/tools.md",
        "docs/dialects.md",
        "docs/requests.md",
        "docs/replies.md",
        "docs/troubleshooting.md",
        "docs/upgrade.md",
    ],
)
def test_the_commands_of_the_documentation_run(page: str, tmp_path: Path) -> None:
    """Every ``toolyard`` line of a shell example exits 0 in a small project, unless the page says otherwise."""
    before = ["toolyard call LS"] if page == "docs/upgrade.md" else []  # an unused home has nothing to back up
    _run_commands(page, tmp_path, quiet=page != "README.md", before=before)  # a test of a plugin tells its progress


@pytest.mark.requirement("plugin:cli:new", "plugin:cli:test", "plugin:cli:install")
def test_the_way_to_a_plugin_can_be_walked_as_it_is_written(tmp_path: Path) -> None:
    """A translation has the very same commands: see ``tests/docs/test_pages.py``, and for the tutorial its own test."""
    page = "docs/writing-a-plugin.md"
    _run_commands(page, tmp_path, quiet=False)  # a run tells its command line, a task its progress


@pytest.mark.requirement("docs:one-form")
def test_every_page_types_the_command_in_the_same_form() -> None:
    """Where the program is installed is nobody's business but that of the alias in the first steps."""
    other = re.compile(r"(?:^|[`$;|&] ?)((?:\S*/)?(?:\.?venv/bin/toolyard|python3? -m toolyard) \w\S*)", re.MULTILINE)
    pages = {**PAGES, **FRONT}
    assert [(page, found) for page, text in pages.items() for found in other.findall(text)] == []


@pytest.mark.requirement("docs:one-form")
def test_no_line_to_type_has_a_comment() -> None:
    """The zsh of macOS knows no comments when it is typed into: ``#`` and what follows would be arguments."""
    pages = {**PAGES, **FRONT}
    lines = [(page, line.text) for page, text in pages.items() for line in list_lines(text)]
    assert [(page, line) for page, line in lines if re.search(r"(?:^|\s)#", line)] == []


_TYPED = ("toolyard ", "echo ", "printf ", "cat ")  # the lines of an example that are run


def _run_commands(page: str, tmp_path: Path, *, quiet: bool, before: Sequence[str] = ()) -> None:
    """Type the lines of a page into a shell that has the command ``toolyard`` and the default home."""
    project, environment = tmp_path / "project", _make_shell_environment(tmp_path)
    (project / "src").mkdir(parents=True)
    (project / "docs").mkdir()
    for name in ("README.md", "src/main.py", "notes.txt", "args.json"):
        (project / name).write_text('{"path": "README.md"}\n' * 30 if name != "args.json" else '{"path": "README.md"}')
    lines = [line for line in list_lines({**PAGES, **FRONT}[page]) if line.text.startswith(_TYPED)]
    commands = [line for line in lines if "<" not in line.text]
    assert any(line.text.startswith("toolyard ") for line in commands)
    for line in (*(TypedLine(text, 0) for text in before), *commands):
        done = subprocess.run(
            ["sh", "-c", line.text],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        said = done.stderr if line.exit_code == 0 and (quiet or done.returncode) else ""
        assert (line.text, done.returncode, said) == (line.text, line.exit_code, "")


def _make_shell_environment(tmp_path: Path) -> dict[str, str]:
    """A user who has installed the command, and nothing else of this checkout."""
    program = tmp_path / "bin/toolyard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m toolyard "$@"\n')
    program.chmod(0o755)
    (tmp_path / "user").mkdir()
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "toolyard").exists()]
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLYARD_", "XDG_"))}
    path = os.pathsep.join([str(program.parent), *folders])
    return ours | {"PATH": path, "HOME": str(tmp_path / "user")}
