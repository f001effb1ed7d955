"""Prompt files and variables of the home and the project."""

import logging
import os
from pathlib import Path

import pytest

from toolyard.engine.chats.prompts import MAX_FILE, Prompts


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


@pytest.mark.requirement("prompt:files")
def test_prompts_and_variables_come_from_home_and_project_and_the_project_counts(tmp_path: Path) -> None:
    home, project = tmp_path / "home/prompts", tmp_path / "project/.toolyard/prompts"
    prompts = Prompts(tmp_path / "home", tmp_path / "project")
    assert prompts.list_prompts() == {}
    write(
        home, style__md="Be short.", team__txt="Home.", 风格__md="简短", variables__toml='city = "Paris"\nstyle = "x"\n'
    )
    write(project, team__md="---\ndescription: who\n---\nProject.", variables__toml='city = "Oslo"\n', notes__rst="no")
    texts = {name: prompt.text for name, prompt in prompts.list_prompts().items()}
    assert texts == {"style": "Be short.", "team": "Project.", "city": "Oslo", "风格": "简短"}
    assert prompts.list_prompts()["team"].description == "who"
    assert prompts.list_problems() == []
    write(home, style__md="Be long.")
    os.utime(home / "style.md", ns=(1, 1))
    (project / "team.md").unlink()
    changed = prompts.list_prompts()
    assert (changed["style"].text, changed["team"].text) == ("Be long.", "Home.")


@pytest.mark.requirement("prompt:problems")
def test_files_that_cannot_be_used_are_named_and_hurt_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    write(
        folder,
        good__md="Good.",
        variables__toml='fine = "yes"\nnumber = 3\n"a b" = "x"\n',
        odd__md="---\nmodel: gpt\ntemperatur: 1\n---\nOdd.",
        hot__md="---\nmodel: gpt\ntemperature: very\n---\nHot.",
    )
    (folder / "a b.md").write_text("x")
    (folder / "large.md").write_text("x" * (MAX_FILE + 1))
    (folder / "folder.md").mkdir()
    (folder / "dead.md").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.md")
    prompts = Prompts(tmp_path, tmp_path / "project")
    assert {"good", "fine", "odd", "hot"} <= prompts.list_prompts().keys()
    problems = {problem.place.name: problem.message for problem in prompts.list_problems()}
    assert problems.keys() >= {"variables.toml", "odd.md", "hot.md", "a b.md", "large.md", "folder.md", "dead.md"}
    assert "'temperatur' in its header means nothing" in problems["odd.md"]
    assert "it is larger than 1024 KiB" in problems["large.md"]
    assert [one.name for one in prompts.list_assistants()] == ["odd"]
    write(folder, variables__toml="not toml")
    assert "it is not valid TOML" in str([one.message for one in prompts.list_problems()])


@pytest.mark.requirement("assistant:files")
def test_a_prompt_with_a_model_is_an_assistant(tmp_path: Path) -> None:
    header = "---\nmodel: gpt-5\ntemperature: 0.2\nmax_tokens: 900\nreasoning_effort: high\n# a remark\n---\n"
    write(tmp_path / "prompts", reviewer__md=f"{header}Review.", any__md="---\nmodel:\n---\nAny.", plain__md="Plain.")
    any_, reviewer = Prompts(tmp_path, tmp_path / "project").list_assistants()
    assert (any_.name, any_.model, any_.instructions) == ("any", "", "Any.")
    assert (reviewer.name, reviewer.model, reviewer.instructions) == ("reviewer", "gpt-5", "Review.")
    assert (reviewer.temperature, reviewer.max_tokens, reviewer.reasoning_effort) == (0.2, 900, "high")


@pytest.mark.requirement("prompt:unfilled")
def test_a_name_that_nothing_fills_is_logged_once_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prompts = Prompts(tmp_path, tmp_path)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            prompts.report_unfilled(["Nova", "Other"])
        prompts.report_unfilled([f"N{number}" for number in range(2_000)])
    assert prompts.unfilled["Nova"] == 3
    assert caplog.records[0].getMessage() == ("nothing fills {{Nova}} in a system message: it stays there as it is")
    assert len(prompts.unfilled) == len(caplog.records) == 500
