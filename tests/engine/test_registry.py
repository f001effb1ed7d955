"""The tools of a Yard, by their exact names."""

from dataclasses import dataclass, replace

import pytest

from tests.fakes import FakeTool, says
from toolyard.dialects.plain_name import plain_name
from toolyard.engine.registry import Registry
from toolyard.errors import DuplicateTool
from toolyard.protocol.tool import ToolSpec


@dataclass
class Aliased(FakeTool):
    aliases: tuple[str, ...] = ()

    @property
    def spec(self) -> ToolSpec:
        return replace(super().spec, aliases=self.aliases)


@pytest.mark.requirement("spec:tool")
def test_a_tool_is_found_by_its_name_and_by_each_alias() -> None:
    tool = Aliased(says, name="One", aliases=("Uno", "Eins"))
    registry = Registry([tool])
    assert [registry.get(name) for name in ("One", "Uno", "Eins")] == [tool, tool, tool]
    assert list(registry) == [tool]


@pytest.mark.requirement("spec:tool")
@pytest.mark.parametrize("second", [Aliased(says, name="Uno"), Aliased(says, name="Two", aliases=("One",))])
def test_two_tools_cannot_share_a_name(second: Aliased) -> None:
    registry = Registry([Aliased(says, name="One", aliases=("Uno",))])
    with pytest.raises(DuplicateTool, match="two tools are called"):
        registry.add(second)


@pytest.mark.requirement("spec:exported-name")
def test_the_name_of_an_exported_definition_leads_to_its_tool_and_any_other_name_to_nothing_new() -> None:
    exported = plain_name("Film 2.1")
    registry = Registry([FakeTool(says, name=name) for name in ("Film 2.1", "One", "One-0123abcd")])
    assert registry.resolve_name(exported) == "Film 2.1"
    for name in ("Film 2.1", "One", "One-0123abcd", "Film_2_1-0123abcd", f"{exported} ", "Film_2_1"):
        assert registry.resolve_name(name) == name


@pytest.mark.requirement("cli:tools:list")
def test_tools_are_listed_by_name() -> None:
    registry = Registry([FakeTool(says, name=name) for name in ("b", "C", "a")])
    assert [tool.spec.name for tool in registry] == ["C", "a", "b"]
