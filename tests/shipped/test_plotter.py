"""Plotter: the pictures are decoded and the curves looked for where they must be."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import run
from tests.shipped.pictures import Colour, Picture, from_uri, png

pytestmark = pytest.mark.requirement("shipped:plotter")
BLUE, ORANGE, GREEN = (31, 111, 214), (232, 89, 12), (26, 152, 80)


def plotted(args: dict[str, Any], home: Path) -> tuple[str, Picture]:
    said = run("Plotter", args, home)
    assert (said.answer["status"], said.code) == ("success", 0), said.answer
    text, image = said.answer["result"]["content"]
    assert (text["type"], image["type"]) == ("text", "image_url")
    return text["text"], png(from_uri(image["image_url"]["url"], "png"))


def area(picture: Picture) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the plotting area, found by its axes."""
    axis = (176, 183, 193)
    bottom = next(y for y in reversed(range(picture.height)) if _longest(picture, y, axis) > picture.width // 2)
    left = next(x for x in range(picture.width) if picture.at(x, bottom - 20) == axis)
    top = next(y for y in range(picture.height) if picture.at(left, y) == axis)
    right = max(x for x in range(picture.width) if picture.at(x, bottom) == axis) + 1
    return left, top, right, bottom


def _longest(picture: Picture, y: int, colour: Colour) -> int:
    return sum(picture.at(x, y) == colour for x in range(picture.width))


def near(picture: Picture, x: float, y: float, colour: Colour) -> bool:
    """Whether the colour stands within two pixels of the point."""
    return any(
        all(abs(a - b) <= 60 for a, b in zip(picture.at(x + dx, y + dy), colour, strict=True))
        for dx in range(-2, 3)
        for dy in range(-2, 3)
        if 0 <= x + dx < picture.width and 0 <= y + dy < picture.height
    )


def test_the_curve_of_a_function_runs_through_its_values(tmp_path: Path) -> None:
    args = {
        "functions": "y = sin(x); x^2/10",
        "range": "-5,5",
        "y_range": "-2,2",
        "size": "640x400",
        "title": "Two curves",
    }
    text, picture = plotted(args, tmp_path)
    assert (picture.width, picture.height) == (640, 400)
    assert "Two curves" in text
    left, top, right, bottom = area(picture)
    for step in range(1, 40):
        x = -5 + step / 4
        across = left + (x + 5) / 10 * (right - left)
        for value, colour in ((math.sin(x), BLUE), (x * x / 10, ORANGE)):
            if abs(value) < 1.95:
                down = bottom - (value + 2) / 4 * (bottom - top)
                assert near(picture, across, down, colour), (x, value)


def test_there_is_no_curve_where_the_function_is_not_defined(tmp_path: Path) -> None:
    _, picture = plotted({"functions": "sqrt(x)", "range": "-4,4", "size": "400x300"}, tmp_path)
    left, top, right, _ = area(picture)
    curve = [x for x, y in picture.where(BLUE) if y > top]
    assert min(curve) >= (left + right) / 2 - 3


def test_a_pole_neither_sets_the_scale_nor_draws_a_wall(tmp_path: Path) -> None:
    _, picture = plotted({"functions": "1/x", "range": "-5,5", "size": "400x300"}, tmp_path)
    left, top, right, bottom = area(picture)
    middle = round((left + right) / 2)
    assert not any(near(picture, middle, y, BLUE) for y in (top + 10, (top + bottom) // 2, bottom - 10))
    at_one = round(left + 0.6 * (right - left))
    heights = [(top + bottom) / 2 - y for y in range(top, bottom) if near(picture, at_one, y, BLUE)]
    assert min(heights) > 10


def test_bars_are_as_high_as_their_values(tmp_path: Path) -> None:
    _, picture = plotted({"data": '{"A": 10, "B": 5, "C": -5}', "size": "600x400"}, tmp_path)
    left, _, right, bottom = area(picture)
    columns = [left + (place - 0.4) / (3.2) * (right - left) for place in (1, 2, 3)]
    heights = [sum(picture.at(x, y) == BLUE for y in range(bottom)) for x in columns]
    assert heights[0] == pytest.approx(2 * heights[1], abs=3)
    assert heights[2] == pytest.approx(heights[1], abs=3)


def test_the_slices_of_a_pie_have_the_sizes_of_their_values(tmp_path: Path) -> None:
    _, picture = plotted({"type": "pie", "data": {"a": 50, "b": 30, "c": 20}, "size": "500x300"}, tmp_path)
    areas = [len(picture.where(colour)) for colour in (BLUE, ORANGE, GREEN)]
    assert [share / sum(areas) for share in areas] == pytest.approx([0.5, 0.3, 0.2], abs=0.02)


def test_a_histogram_counts(tmp_path: Path) -> None:
    _, picture = plotted({"type": "hist", "data": [1, 1, 1, 2, 9], "bins": "2", "size": "400x300"}, tmp_path)
    left, _, right, bottom = area(picture)
    heights = [
        sum(picture.at(left + share * (right - left), y) == BLUE for y in range(bottom)) for share in (0.25, 0.75)
    ]
    assert heights[0] == pytest.approx(4 * heights[1], abs=4)


def test_points_stand_where_they_belong(tmp_path: Path) -> None:
    points = [[0, 0], [1, 3], [2, 1]]
    _, picture = plotted(
        {"type": "scatter", "data": points, "range": "-1,3", "y_range": "-1,4", "size": "500x400"}, tmp_path
    )
    left, top, right, bottom = area(picture)
    for x, y in points:
        assert near(picture, left + (x + 1) / 4 * (right - left), bottom - (y + 1) / 5 * (bottom - top), BLUE)


def test_a_circle_is_round(tmp_path: Path) -> None:
    for args in (
        {"type": "polar", "functions": "1"},
        {"type": "parametric", "functions": "cos(t), sin(t)", "labels": "c"},
    ):
        _, picture = plotted({**args, "size": "700x300"}, tmp_path)
        left, top, _, _ = area(picture)
        curve = [(x, y) for x, y in picture.where(BLUE, 40) if x > left and y > top]
        width = max(x for x, _ in curve) - min(x for x, _ in curve)
        height = max(y for _, y in curve) - min(y for _, y in curve)
        assert width == pytest.approx(height, abs=4)


def test_chinese_words_stand_in_the_text_and_not_in_the_picture(tmp_path: Path) -> None:
    plain = plotted({"data": [1, 2], "size": "300x200"}, tmp_path)[1]
    text, picture = plotted({"data": [1, 2], "title": "销量", "x_label": "月份", "size": "300x200"}, tmp_path)
    assert picture == plain
    assert "Title: 销量" in text
    assert "x axis: 月份" in text
    text, _ = plotted({"type": "pie", "data": {"苹果": 1, "pear": 2}, "size": "300x200"}, tmp_path)
    assert "1 in the picture: 苹果" in text


@pytest.mark.parametrize(
    "data", ["1,3,2", "[1, 3, 2]", "1 3 2", [1, 3, 2], [[1, 1], [2, 3], [3, 2]], "1,1; 2,3; 3,2", {"": [1, 3, 2]}]
)
def test_data_is_taken_in_every_usual_shape(data: Any, tmp_path: Path) -> None:
    wanted = plotted({"type": "line", "data": [1, 3, 2], "size": "300x200"}, tmp_path)
    assert plotted({"type": "line", "data": data, "size": "300x200"}, tmp_path) == wanted


@pytest.mark.parametrize("formula", ["2x^2 - 3x", "2*x**2-3*x", "２x^2−3x", "y=2x^2-3x", "f(x) = 2x^2-3x"])
def test_a_formula_is_read_however_it_is_written(formula: str, tmp_path: Path) -> None:
    named = {"labels": "p", "size": "300x200"}
    wanted = plotted({"functions": "2*x^2-3*x", **named}, tmp_path)[1]
    assert plotted({"functions": formula, **named}, tmp_path)[1] == wanted


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ({}, "data"),
        ({"type": "spiral", "data": [1]}, "scatter"),
        ({"functions": "foo(x)"}, "foo"),
        ({"functions": "sin(y)"}, "y"),
        ({"functions": "__import__('os').system('id')"}, "not allowed"),
        ({"functions": "x.__class__"}, "not allowed"),
        ({"functions": "[c for c in ().__class__.__bases__]"}, "formula"),
        ({"functions": "(" * 400 + "x"}, "formula"),
        ({"functions": "x+" * 400 + "x"}, "too long"),
        ({"functions": "ln(x)", "range": "-5,-1"}, "nothing to draw"),
        ({"functions": "x", "range": "5,-5"}, "lower end"),
        ({"functions": "x", "size": "9000x9000"}, "2000"),
        ({"type": "pie", "data": [1, -1]}, "pie chart"),
        ({"type": "bar", "data": list(range(99))}, "60"),
        ({"data": [[1, 2, 3]]}, "[x, y]"),
        ({"data": ["a", "b"]}, "is not a number"),
        ({"data": [1e308, -1e308]}, "too large"),
        ({"data": [[0, float("inf")], [1, 2]]}, "is not a number"),
    ],
)
def test_what_cannot_be_drawn_is_told(args: dict[str, Any], word: str, tmp_path: Path) -> None:
    said = run("Plotter", args, tmp_path)
    assert (said.answer["status"], said.code) == ("error", 1), said.answer["result"]["content"][0]
    assert word in said.answer["error"]


def test_a_power_that_would_never_end_is_only_a_gap(tmp_path: Path) -> None:
    _, picture = plotted({"functions": "9^9^9^x; x", "range": "0,3", "size": "300x200"}, tmp_path)
    assert picture.where(ORANGE)
