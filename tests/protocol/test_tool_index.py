"""The search among tools: what is found, in which order, in both languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import ToolSpec, Translation
from toolyard.protocol.tool_index import ToolIndex

pytestmark = pytest.mark.requirement("search:rank")


def spec(name: str, description: str = "", *parameters: str, chinese: str = "") -> ToolSpec:
    properties: JsonObject = {one: {"type": "string", "description": f"The {one}."} for one in parameters}
    translations = {"zh": Translation(description=chinese)} if chinese else {}
    return ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties},
        translations=translations,
    )


TOOLS = (
    spec("github_create_issue", "Creates an issue in a repository.", "repository", "title", "body"),
    spec("github_list_issues", "Lists the issues of a repository.", "repository", "state"),
    spec("githubMergePullRequest", "Merges a pull request.", "repository", "number"),
    spec("calendar_create_event", "Creates an event in a calendar.", "start", "end", "title"),
    spec("send_email", "Sends a message to somebody's mailbox.", "to", "subject", "body"),
    spec("WeatherReporter", "Tells the forecast of a city.", "city", chinese="查询城市的天气预报和空气质量。"),
    spec("DailyNote", "Writes the diary.", "text", chinese="写日记，或者修改已有的日记。"),
    spec("currency_rates", "Converts money by today's rates.", "amount", "from_currency"),
    *(spec(f"record_{kind}_list", f"Lists records of {kind}.", "limit") for kind in ("sales", "stock", "staff")),
)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("open a new issue on github", "github_create_issue"),
        ("which issues are there", "github_list_issues"),
        ("merging pull requests", "githubMergePullRequest"),
        ("add a meeting to my calendar", "calendar_create_event"),
        ("write an email", "send_email"),
        ("明天的天气怎么样", "WeatherReporter"),
        ("修改日记", "DailyNote"),
        ("convert 5 dollars, what is the rate", "currency_rates"),
        ("staff records", "record_staff_list"),
    ],
)
def test_the_tool_for_a_task_is_found_first(query: str, name: str) -> None:
    assert ToolIndex(TOOLS).search(query)[0].name == name


@pytest.mark.parametrize("query", ["record_stock_list", "RecordStockList", "record stock list"])
def test_an_exact_name_always_stands_first(query: str) -> None:
    assert ToolIndex(TOOLS).search(query)[0].name == "record_stock_list"


def test_a_part_of_a_name_finds_all_that_have_it_and_nothing_is_found_for_strange_words() -> None:
    index = ToolIndex(TOOLS)
    assert {one.name for one in index.search("github")} == {one.name for one in TOOLS if "github" in one.name}
    assert index.search("zebra") == []
    assert index.search("") == []
    assert ToolIndex(()).search("anything") == []


def test_only_tools_that_are_asked_for_are_found() -> None:
    found = ToolIndex(TOOLS).search("github issue", among={"github_list_issues", "send_email"})
    assert [one.name for one in found] == ["github_list_issues"]


@given(st.text(max_size=200))
def test_no_query_breaks_it_and_the_order_is_always_the_same(query: str) -> None:
    index = ToolIndex(TOOLS)
    assert index.search(query) == index.search(query)
    assert len(index.search(query, 3)) <= 3
