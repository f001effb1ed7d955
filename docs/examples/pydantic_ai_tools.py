"""Toolyard's tools for pydantic-ai: copy ``make_tools`` or ``make_async_tools`` into your program.

    pip install /path/to/toolyard "pydantic-ai-slim[openai]"

The path is that of a checkout of Toolyard or of its wheel.

A tool that fails gives the model its envelope, which says why, like any other result. Calls run without asking for
approval.
"""

from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel

import toolyard

QUESTION = "What is in this project?"


def make_tools(yard: toolyard.BlockingYard) -> list[Tool[Any]]:
    """Return the tools of a Yard from ``toolyard.open``."""

    def make_tool(definition: dict[str, Any]) -> Tool[Any]:
        def run(**arguments: Any) -> dict[str, Any]:
            return yard.call(definition["name"], arguments, dialect="envelope", shown=True)

        return Tool.from_schema(run, **describe(definition))

    return [make_tool(definition) for definition in yard.tools(dialect="anthropic")]


def make_async_tools(yard: toolyard.Yard) -> list[Tool[Any]]:
    """Return the tools of a Yard from ``toolyard.open_async``."""

    def make_tool(definition: dict[str, Any]) -> Tool[Any]:
        async def run(**arguments: Any) -> dict[str, Any]:
            return await yard.call(definition["name"], arguments, dialect="envelope", shown=True)

        return Tool.from_schema(run, **describe(definition))

    return [make_tool(definition) for definition in yard.tools(dialect="anthropic")]


def describe(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": definition["name"],
        "description": definition["description"],
        "json_schema": definition["input_schema"],
    }


def main() -> None:
    with toolyard.open(project="my-project") as yard:
        agent = Agent(OpenAIChatModel("gpt-5.5"), tools=make_tools(yard))
        print(agent.run_sync(QUESTION).output)


async def main_async() -> None:
    async with toolyard.open_async(project="my-project") as yard:
        agent = Agent(OpenAIChatModel("gpt-5.5"), tools=make_async_tools(yard))
        print((await agent.run(QUESTION)).output)


if __name__ == "__main__":
    main()
