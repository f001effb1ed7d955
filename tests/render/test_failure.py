"""What is said in place of a reply that cannot be read."""

import re

import pytest

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import ProblemCode, Reply, ReplyError
from toolyard.protocol.reply import parse_reply
from toolyard.render.html import to_html
from toolyard.render.markdown import to_markdown
from toolyard.render.problem import FailureTexts, build_failure_texts
from toolyard.render.terminal import to_terminal

pytestmark = pytest.mark.requirement("reply:failure-shown")


def error_of(text: str) -> ReplyError:
    error = parse_reply(text)
    assert isinstance(error, ReplyError)
    return error


def test_the_failure_is_said_in_the_words_of_the_format_with_line_and_column() -> None:
    error = ReplyError("It broke.", 3, 7, "raw")
    assert build_failure_texts(error, Language.CHINESE) == FailureTexts(
        "⚠️ JSON 解析失败", "错误: It broke. (第 3 行第 7 列)", "原始内容:", "raw"
    )
    assert build_failure_texts(error, Language.ENGLISH) == FailureTexts(
        "⚠️ The JSON could not be read", "Error: It broke. (line 3, column 7)", "Original text:", "raw"
    )


def test_markdown_shows_title_error_and_the_raw_text_in_a_fence_it_cannot_leave() -> None:
    raw = "no JSON\n```\n<script>alert(1)</script>\n````"
    assert to_markdown(error_of(raw), Language.CHINESE) == (
        f"⚠️ JSON 解析失败\n\n错误: 文本中没有 JSON 对象。 (第 1 行第 1 列)\n\n原始内容:\n\n`````\n{raw}\n`````\n"
    )


@pytest.mark.requirement("reply:syntax-error")
def test_a_syntax_error_is_told_in_the_words_of_the_seed() -> None:
    """003: "错误: JSON 格式错误: Unexpected character at position 45"."""
    raw = '{"think": "用户询问天气，我需要提供简洁而且完整的回答。再附说明", "x" 今天}'
    raw = raw.replace("再附说明", "。" * (45 - raw.index("今") + 4))
    error = error_of(raw)
    assert raw[45] == "今"
    assert build_failure_texts(error, Language.CHINESE).error == (
        "错误: JSON 格式错误: Unexpected character at position 45 (第 1 行第 46 列)"
    )
    assert build_failure_texts(error, Language.ENGLISH).error == (
        "Error: Invalid JSON: Unexpected character at position 45 (line 1, column 46)"
    )
    assert to_markdown(error, Language.CHINESE).startswith(
        "⚠️ JSON 解析失败\n\n错误: JSON 格式错误: Unexpected character at position 45"
    )


@pytest.mark.parametrize("text", ["x", '{"a": 1}', '{"content": 1}', '{"content": ""}', "x" * (3 << 20), '{"a":' * 300])
def test_every_reason_is_said_in_chinese_to_who_asks_for_it(text: str) -> None:
    assert re.fullmatch(
        r"错误: .*[\u4e00-\u9fff]。 \(第 1 行第 \d+ 列\)", build_failure_texts(error_of(text), Language.CHINESE).error
    )


def test_a_terminal_shows_the_same_with_nothing_it_would_obey() -> None:
    output = to_terminal(error_of("a\x1b]0;title\x07b\x9b31m"), width=80, colour=False)
    assert output == (
        "⚠️ The JSON could not be read\n\n"
        "Error: There is no JSON object in the text. (line 1, column 1)\n\n"
        "Original text:\n\na␛]0;title␇b⟨U+009B⟩31m\n"
    )


def test_an_error_message_with_the_models_words_in_it_is_text_only() -> None:
    error = ReplyError("bad <img src=x> ![a](http://evil) \x1b[2J", 1, 1, "")
    assert not re.search(r"(?<!\\)<img|(?<!\\)!\[|\x1b", to_markdown(error))
    assert "\x1b" not in to_terminal(error, width=80, colour=False)


def test_a_raw_text_of_megabytes_is_cut_in_a_terminal_and_says_so() -> None:
    output = to_terminal(ReplyError("It broke.", 1, 1, "x" * 3_000_000), width=80, colour=False)
    assert len(output) < 110_000
    assert "2900000 more characters" in output


FAULTY = """{"content": "x", "Content": "x {{odd:q}}", "think": 5, "attachments": {
  "b": 1, "c": {"type": "code", "content": 5}, "d": {"type": "code", "content": "1", "Type": "code"}, "l": {
    "type": "code", "content": "%s"}}}"""


@pytest.mark.requirement("reply:placeholder-faults")
def test_all_that_is_wrong_with_a_reply_is_said_in_chinese_to_who_asks_for_it() -> None:
    many = '{"content": "x", "attachments": {' + ", ".join(f'"{number}": 1' for number in range(65)) + "}}"
    seen = set()
    for text in (FAULTY % ("x" * 1_048_577), many):
        reply = parse_reply(text)
        assert isinstance(reply, Reply)
        seen |= {problem.code for problem in reply.problems}
        for output in (to_html(reply, Language.CHINESE), to_markdown(reply, Language.CHINESE)):
            assert output.count("⚠️") > 1
            assert not re.search("[a-z]+ [a-z]+ [a-z]+", output)
    assert {*ProblemCode} - seen == {ProblemCode.MISSING_ATTACHMENT, ProblemCode.MISMATCHED_TYPE}
