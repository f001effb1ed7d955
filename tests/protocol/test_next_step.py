"""Whether a text says what to do next."""

import pytest

from toolyard.protocol.plugin_answers.plugin_result import has_next_step, step_after_error, step_after_partial

pytestmark = pytest.mark.requirement("plugin:next-step")


@pytest.mark.parametrize(
    "text",
    [
        "No such file. Check the path.",
        "Quota exceeded; try again tomorrow",
        "Please provide a prompt.",
        "There is no city Pariss. Did you mean Paris?",
        "You can ask for less.",
        "Read 2 of 9 rows. Ask for the next page.",
        "Half.\nUse page=2 for the rest.",
        "必须提供 prompt，请补充后重试。",
        "文件过大，建议缩小范围",
        "路径不存在。检查路径",
        "请先设置 IMAGE_API_KEY",
    ],
)
def test_a_text_that_tells_what_to_do_has_a_next_step(text: str) -> None:
    assert has_next_step(text)


@pytest.mark.parametrize(
    "text",
    ["Error: boom", "half", "The request used up its quota.", "Cannot read the file", "请求失败", "文件不存在", ""],
)
def test_a_text_that_only_tells_what_happened_has_none(text: str) -> None:
    assert not has_next_step(text)


def test_what_the_host_adds_is_a_next_step_itself() -> None:
    assert has_next_step(step_after_error("Say"))
    assert "Say" in step_after_partial("Say")
