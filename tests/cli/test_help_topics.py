"""``toolyard help`` and ``toolyard --version``: what a person looks up in a terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolyard import __version__
from toolyard.cli import toolyard
from toolyard.config import find_home
from toolyard.storage.sqlite_schema import latest_format

DOCS = Path(__file__).parents[2] / "docs"


def run(*words: str) -> str:
    return run_in("C.UTF-8", *words)


def run_in(language: str, *words: str) -> str:
    environment = {"COLUMNS": "80", "LC_ALL": "", "LC_MESSAGES": "", "LANG": language}
    done = CliRunner(env=environment).invoke(toolyard, ["help", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.requirement("cli:help:topics")
def test_every_page_of_the_documentation_is_a_topic() -> None:
    listed = json.loads(run("--json"))
    files = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md") if not file.name.endswith(".zh-CN.md")}
    pages = [page.removesuffix(".md").removesuffix("/README") for page in files - {"README.md"}]
    assert sorted(one["topic"] for one in listed) == sorted(pages)
    assert {"topic": "cli", "title": "Command line", "group": "Reference"} in listed
    assert all(one["title"] != one["topic"] for one in listed)
    assert re.search(r"^  cli +Command line$", run(), re.MULTILINE)


@pytest.mark.requirement("cli:help:topics")
def test_topics_are_in_the_groups_and_the_order_of_the_index() -> None:
    lines = run().splitlines()
    assert lines[0] == "Tutorial"
    assert re.fullmatch(r"  tutorial +Tutorial", lines[1])
    assert [line for line in lines if re.match(r"\w", line)][:-1] == [
        "Tutorial", "How-to guides", "Reference", "Explanation"
    ]  # fmt: skip
    topics = [line.split()[0] for line in lines if line.startswith("  ")]
    assert topics.index("clients") + 1 == topics.index("clients/openai-sdk") < topics.index("providers")


@pytest.mark.requirement("cli:help:topics")
def test_pages_are_chinese_where_the_language_of_the_environment_is() -> None:
    listing = run_in("zh_CN.UTF-8")
    assert listing.startswith("教程\n  tutorial ")
    assert "zh-CN" not in listing
    assert run_in("zh_CN.UTF-8", "tutorial") == run("tutorial.zh-CN") == run("tutorial.zh-CN.md") != run("tutorial")
    assert run_in("zh_CN.UTF-8", "0002-jsonschema-rs") == run("0002-jsonschema-rs")


@pytest.mark.requirement("cli:help:topics")
def test_a_page_is_drawn_for_the_terminal_with_links_as_words() -> None:
    shown = run("tutorial")
    assert "Write a plugin" in shown
    assert "toolyard plugin new Greeter --folder drafts" in shown
    assert "```" not in shown
    assert "](" not in shown
    assert "exits 1 -->" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.requirement("cli:help:topics")
@pytest.mark.parametrize("page", sorted(file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")))
def test_every_page_can_be_drawn(page: str) -> None:
    if page not in {"README.md", "README.zh-CN.md"}:
        assert len(run(page.replace("/README.", "."))) > 200


@pytest.mark.requirement("cli:help:topics")
def test_the_last_part_of_a_topic_is_enough_and_case_does_not_matter() -> None:
    assert run("curl") == run("clients/curl") == run("Clients/Curl.md")
    assert json.loads(run("curl", "--json"))["topic"] == "clients/curl"
    assert json.loads(run("curl", "--json"))["markdown"] == (DOCS / "clients/curl.md").read_text("utf-8")


@pytest.mark.requirement("cli:help:topics")
def test_a_command_without_a_page_shows_its_own_help() -> None:
    assert run("call").startswith("Usage: toolyard call")
    assert run("plugin", "install").startswith("Usage: toolyard plugin install")


@pytest.mark.requirement("cli:help:topics")
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["tutorail"], "there is no topic 'tutorail': did you mean 'tutorial'?"),
        (["journl"], "there is no topic 'journl': did you mean 'journal'?"),
        (["xyzzy"], "there is no topic 'xyzzy': 'toolyard help' lists them"),
        (["plugin", "instal"], "there is no topic 'plugin instal'"),
    ],
)
def test_an_unknown_topic_suggests_the_nearest(words: list[str], hint: str) -> None:
    done = CliRunner().invoke(toolyard, ["help", *words])
    assert (done.exit_code, hint in str(done.exception)) == (1, True)


@pytest.mark.requirement("cli:help:topics")
def test_on_a_terminal_a_page_goes_through_the_pager_with_colours(tmp_path: Path) -> None:
    pager = tmp_path / "less"  # of another one click takes the colours away
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    terminal, end = pty.openpty()
    environment = {**os.environ, "PAGER": str(pager), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    subprocess.run(
        [sys.executable, "-m", "toolyard", "help", "cli"],
        stdin=end,
        stdout=end,
        stderr=end,
        env=environment,
        check=True,
    )
    os.close(end)
    os.close(terminal)
    assert "\x1b[" in (tmp_path / "paged").read_text("utf-8")


@pytest.mark.requirement("cli:version")
def test_the_version_as_json_has_what_a_report_of_a_problem_needs(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("this is = not TOML")
    done = CliRunner().invoke(toolyard, ["--version", "--json", "--home", str(tmp_path)])
    told = json.loads(done.output)
    assert list(told) == ["version", "python", "executable", "platform", "home", "state_format"]
    assert (told["version"], told["home"], told["state_format"]) == (__version__, str(tmp_path), latest_format())
    assert CliRunner().invoke(toolyard, ["--version"]).output == f"toolyard, version {__version__}\n"
    assert json.loads(CliRunner().invoke(toolyard, ["--json", "--version"]).output)["home"] == str(find_home())
