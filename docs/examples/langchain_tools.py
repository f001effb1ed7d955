"""Toolyard's tools for LangChain: copy ``make_tools`` or ``make_async_tools`` into your program.

    pip install /path/to/toolyard langchain-openai

The path is that of a checkout of Toolyard or of its wheel.

A tool that fails gives the model a message with the status ``error``. Calls run without asking for approval.
"""

import asyncio
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import StructuredTool, ToolException
from langchain_openai import ChatOpenAI

import toolyard

QUESTION = "What is in this project?"
MAX_ROUNDS = 20


def make_tools(yard: toolyard.BlockingYard) -> list[StructuredTool]:
    """Return the tools of a Yard from ``toolyard.open``."""

    def make_tool(definition: dict[str, Any]) -> StructuredTool:
        def run(**arguments: Any) -> Any:
            return read_content(yard.call(definition["name"], arguments, dialect="anthropic"))

        return StructuredTool.from_function(run, **describe(definition))

    return [make_tool(definition) for definition in yard.tools(dialect="anthropic")]


def make_async_tools(yard: toolyard.Yard) -> list[StructuredTool]:
    """Return the tools of a Yard from ``toolyard.open_async``."""

    def make_tool(definition: dict[str, Any]) -> StructuredTool:
        async def run(**arguments: Any) -> Any:
            return read_content(await yard.call(definition["name"], arguments, dialect="anthropic"))

        return StructuredTool.from_function(coroutine=run, **describe(definition))

    return [make_tool(definition) for definition in yard.tools(dialect="anthropic")]


def describe(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": definition["name"],
        "description": definition["description"],
        "args_schema": definition["input_schema"],
        "handle_tool_error": True,
    }


def read_content(result: dict[str, Any]) -> Any:
    """Return the text for the model, or text and pictures; an error is raised, as LangChain expects it."""
    if result["is_error"]:
        raise ToolException(result["content"])
    return result["content"]


def main() -> None:
    messages: list[AnyMessage] = [HumanMessage(QUESTION)]
    with toolyard.open(project="my-project") as yard:
        tools = {tool.name: tool for tool in make_tools(yard)}
        model = ChatOpenAI(model="gpt-5.5").bind_tools(list(tools.values()))
        for _ in range(MAX_ROUNDS):
            reply = model.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                break
            messages += [tools[call["name"]].invoke(call) for call in reply.tool_calls]
    print(messages[-1].content)


async def main_async() -> None:
    messages: list[AnyMessage] = [HumanMessage(QUESTION)]
    async with toolyard.open_async(project="my-project") as yard:
        tools = {tool.name: tool for tool in make_async_tools(yard)}
        model = ChatOpenAI(model="gpt-5.5").bind_tools(list(tools.values()))
        for _ in range(MAX_ROUNDS):
            reply = await model.ainvoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                break
            messages += await asyncio.gather(*(tools[call["name"]].ainvoke(call) for call in reply.tool_calls))
    print(messages[-1].content)


if __name__ == "__main__":
    main()
