"""Help texts and tables: aligned in Chinese, full sentences in the help, a suggestion for a mistyped command."""

import pytest
from click.testing import CliRunner

from toolyard.cli import toolyard
from toolyard.cli.table import display_width, print_table, wrap

CHINESE = "把函数和数据画成图片：函数曲线、折线、散点、柱状图。离线运行，不需要任何依赖。"


@pytest.mark.requirement("cli:tools:list")
@pytest.mark.parametrize("room", [2, 7, 20, 21, 200])
@pytest.mark.parametrize("text", [CHINESE, "use `npm install node-fetch` there", "x" * 50, f"Plotter {CHINESE}", ""])
def test_a_wrapped_text_fits_and_loses_nothing(text: str, room: int) -> None:
    lines = wrap(text, room)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(display_width, lines)) <= room


@pytest.mark.requirement("cli:tools:list")
def test_a_text_is_broken_between_words_and_never_before_a_full_stop() -> None:
    assert wrap("run 'npm install node-fetch' there", 16) == ["run 'npm install", "node-fetch'", "there"]
    assert wrap("一二三。四五六", 6) == ["一二", "三。四", "五六"]


@pytest.mark.requirement("home:hints")
def test_a_command_to_copy_stands_on_one_line() -> None:
    long = "'toolyard plugin allow Greeter --home '/a home' --project /srv/shop'"
    assert wrap(f"nobody has allowed it yet: look at it with {long}; until then another runs", 30) == [
        "nobody has allowed it yet:",
        "look at it with",
        f"{long};",
        "until then another runs",
    ]


@pytest.mark.requirement("cli:tools:list")
def test_columns_stay_straight_with_wide_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "26")
    print_table([("名字", "一二三四五六七八九十"), ("name", "text")])
    assert capsys.readouterr().out.splitlines() == ["名字  一二三四五六七八九十", "name  text"]
    print_table([("名字", "一二三四五六七八九十甲乙")])
    assert capsys.readouterr().out.splitlines() == ["名字  一二三四五六七八九十", "      甲乙"]


@pytest.mark.requirement("cli:exit:usage")
def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    done = CliRunner().invoke(toolyard, ["imort", "vcp", "."])
    assert done.exit_code == 2
    assert "No such command 'imort'. Did you mean 'import'?" in done.output
    assert "No such command 'xyzzy'.\n" in CliRunner().invoke(toolyard, ["xyzzy"]).output


@pytest.mark.requirement("cli:tools:list")
@pytest.mark.parametrize("group", ["tools", "plugin", "task", "schedule", "journal", "mcp", "reply", "request"])
def test_the_help_of_a_group_has_whole_sentences(group: str) -> None:
    result = CliRunner().invoke(toolyard, [group, "--help"]).output
    assert "Commands:" in result
    assert "..." not in result.partition("Commands:")[2]


@pytest.mark.requirement("cli:tools:list")
@pytest.mark.parametrize("words", ["serve", "plugin", "plugin allow", "approval rules add"])
def test_only_the_help_of_the_program_lists_the_common_options(words: str) -> None:
    whole = CliRunner().invoke(toolyard, ["--help"]).output
    own = CliRunner().invoke(toolyard, [*words.split(), "--help"]).output
    assert all(f"  {option} " in whole for option in ("--home", "--project", "--json"))
    assert not any(f"  {option} " in own for option in ("--home", "--project", "--json"))
    assert "see 'toolyard --help'" in own
