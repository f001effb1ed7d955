"""The dialect of config.env."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import bounded_work
from toolyard.plugins.package.config_env import edit_config, parse_config

pytestmark = pytest.mark.requirement("plugin:config:file")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("KEY=value", {"KEY": "value"}),
        ("KEY = value  \n", {"KEY": "value"}),
        ("  export KEY=value", {"KEY": "value"}),
        ("exported=1", {"exported": "1"}),
        ("KEY: value", {"KEY": "value"}),
        ("KEY=http://host:80/a:b", {"KEY": "http://host:80/a:b"}),
        ("KEY=a=b==", {"KEY": "a=b=="}),
        ("KEY=", {"KEY": ""}),
        ("KEY=\nNEXT=1", {"KEY": "", "NEXT": "1"}),
        ("\ufeffKEY=value", {"KEY": "value"}),
        ("A=1\r\nB=2\rC=3", {"A": "1", "B": "2", "C": "3"}),
        ("A=1\nA=2", {"A": "2"}),
        ("名=1\nA=值", {"A": "值"}),
        ("a.b-c@d#e%f&g^h+i=1", {"a.b-c@d#e%f&g^h+i": "1"}),
        ("A=$HOME ${B}", {"A": "$HOME ${B}"}),
    ],
)
def test_a_line_sets_a_key(text: str, values: dict[str, str]) -> None:
    assert parse_config(text).values == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K=value # comment", "value"),
        ("K=value#comment", "value"),
        ("K=#comment", ""),
        ('K="a # b" # comment', "a # b"),
        ("K='a # b'", "a # b"),
        ('K=`it\'s "here"`', 'it\'s "here"'),
        ('K="first\nsecond"', "first\nsecond"),
        ("K='first\r\n  second'", "first\n  second"),
        (r'K="a\nb\rc\td"', "a\nb\rc\\td"),
        (r"K='a\nb'", r"a\nb"),
        (r"K=`a\nb`", r"a\nb"),
        (r"K=a\nb", r"a\nb"),
        (r'K="say \"hi\""', r"say \"hi\""),
        ('K="C:\\dir\\"\nL="x"', "C:\\dir\\"),
        ('K="a" b', '"a" b'),
        ("K='", "'"),
        ('K=""', ""),
    ],
)
def test_quotes_comments_and_escapes(text: str, value: str) -> None:
    assert parse_config(text).values["K"] == value


def test_comments_and_blank_lines_are_no_problem() -> None:
    file = parse_config("# KEY=no\n\n   # more\n#OTHER=no\n\t\nA=1\n")
    assert (file.values, file.problems) == ({"A": "1"}, ())


@pytest.mark.requirement("plugin:config-cut")
@pytest.mark.parametrize(
    ("text", "value"), [("A=b#c", "b"), ("A=#fff", ""), ("A: http://x/#top", "http://x/"), ("A=p#ss # mine", "p")]
)
def test_a_value_that_is_cut_at_its_number_sign_is_named_and_not_shown(text: str, value: str) -> None:
    file = parse_config(f"B=1\n{text}\n")
    assert file.values == {"A": value, "B": "1"}
    (problem,) = file.problems
    assert (problem.line, problem.fatal) == (2, False)
    assert problem.message == "the value of A is cut at its #: what follows counts as a comment"


@pytest.mark.requirement("plugin:config-cut")
@pytest.mark.parametrize("text", ["A=b #c", "A= # c", "A=", 'A="b#c"', "A='#fff' # colour", "A=b\t#c", "#A=b#c"])
def test_a_comment_behind_a_blank_and_a_quoted_value_are_no_problem(text: str) -> None:
    assert parse_config(text).problems == ()


def test_a_line_that_is_no_setting_is_skipped_and_named() -> None:
    file = parse_config('A="x\ny"\nwhat is this\nB=2\n=3\n')
    assert file.values == {"A": "x\ny", "B": "2"}
    assert [(p.line, p.fatal) for p in file.problems] == [(3, False), (5, False)]
    assert "KEY=value" in file.problems[0].fix


@pytest.mark.requirement("r:R30")
def test_a_quote_that_is_never_closed_is_fatal_and_names_its_line() -> None:
    problem = parse_config('A=1\nTOKEN="half of a secr')
    assert [(p.line, p.fatal) for p in problem.problems] == [(2, True)]
    assert "TOKEN" in problem.problems[0].message
    assert parse_config('A="one\nB="two"\n').problems[0].line == 1


def test_a_nul_reaches_no_environment() -> None:
    file = parse_config("A=x\0y\nB=2")
    assert file.values == {"B": "2"}
    assert file.problems[0].line == 1


@given(st.text(alphabet=st.sampled_from("AB=:#'\"`\\n \n\r\t\0é")))
def test_any_text_is_read_without_a_crash(text: str) -> None:
    file = parse_config(text)
    assert all("\0" not in value for value in file.values.values())
    assert all(1 <= p.line <= text.count("\n") + text.count("\r") + 1 for p in file.problems)


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True), st.text("ab '\"#=\n\\", max_size=9))
)
def test_what_is_quoted_in_backticks_comes_back_as_it_was(values: dict[str, str]) -> None:
    plain = {key: value.rstrip("\\") for key, value in values.items()}
    assert parse_config("".join(f"{key}=`{value}`\n" for key, value in plain.items())).values == plain


@pytest.mark.parametrize("line", ['A="', "A='x\\'", 'A="\\"', "A=`\n`x", "A", 'A="x" y', "A=" + "\\" * 50])
def test_a_megabyte_of_odd_lines_is_read_in_time(line: str) -> None:
    text = (line + "\n") * (1_000_000 // len(line))
    with bounded_work():
        parse_config(text)


@pytest.mark.parametrize(
    ("text", "values", "after"),
    [
        ("", {"A": "1"}, "A=1\n"),
        ("# mine\nA=1 # one\nB=2", {"A": "3", "C": "x y"}, "# mine\nA=3 # one\nB=2\nC=x y\n"),
        ("A=1\nexport B: 'x' # b\nA=2\n", {"A": None, "B": "a#b"}, "export B: 'a#b' # b\n"),
        ("A=1\nA=2\n", {"A": "3"}, "A=1\nA=3\n"),
        ("A=1\r\nB=2\r\n", {"B": "3"}, "A=1\r\nB=3\r\n"),
        ('A="one\ntwo"\nB=2\n', {"A": "three"}, "A=three\nB=2\n"),
        ("A=\n", {"A": "two\nlines"}, "A='two\nlines'\n"),
        ("A=# none\n", {"A": "1"}, "A=1# none\n"),
        ("what is this\nA=1\n", {"A": ""}, "what is this\nA=\n"),
        ("A=1\n", {"A": "'"}, "A='''\n"),
        ("A=1\n", {"A": '"x'}, "A='\"x'\n"),
    ],
)
def test_single_settings_are_changed_and_the_rest_stays(text: str, values: dict[str, str | None], after: str) -> None:
    assert edit_config(text, values) == after


@pytest.mark.parametrize("text", ['A="one\nB=2\n', "A=1\nB='x\n"])
def test_a_file_with_an_open_quote_is_not_edited(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d: the value of [AB] begins with"):
        edit_config(text, {"C": "1"})


def test_what_cannot_be_written_is_refused_and_no_value_is_named() -> None:
    for value in ('it\'s "all" `quotes`\n\\n', "nul\0"):
        with pytest.raises(ValueError, match="A: neither") as refused:
            edit_config("", {"A": value})
        assert value not in str(refused.value)


_KEY = st.sampled_from(["A", "B", "C", "a.b"])


@given(
    st.text(alphabet=st.sampled_from("ABC=:#'\"`\\n \n\r\té")),
    st.dictionaries(_KEY, st.none() | st.text(alphabet=st.sampled_from("ab '\"`#=\n\r\\é"), max_size=9), max_size=3),
)
def test_an_edited_file_says_what_was_asked_for_and_nothing_else_has_changed(
    text: str, values: dict[str, str | None]
) -> None:
    try:
        after = edit_config(text, values)
    except ValueError:
        return
    expected = {**parse_config(text).values, **values}
    assert parse_config(after).values == {key: value for key, value in expected.items() if value is not None}
    assert parse_config(after).fatal_problem is None
    assert edit_config(text, {}).replace("\r\n", "\n") == text.replace("\r\n", "\n").replace("\r", "\n")
