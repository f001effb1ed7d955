# mypy: ignore-errors
"""pydantic-ai with its default model of OpenAI."""

import asyncio
import os

from driver import RECALL, RECALLS, recall, run_driver
from pydantic_ai import Agent, AgentRunResultEvent, Tool


def make_agent(url: str, key: str, name: str, *tools: Tool) -> Agent:
    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY=key)
    return Agent(f"openai:{name}", tools=tools)


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    agent = make_agent(url, key, "scripted")
    if not is_streamed:
        return agent.run_sync(text).output
    return "".join(agent.run_stream_sync(text).stream_text(delta=True))


def chat_with_tool(url: str, key: str, text: str, is_streamed: bool) -> str:
    agent = make_agent(url, key, "scripted+tools", Tool(recall, name=RECALL, description=RECALLS))
    return asyncio.run(run_by_events(agent, text)) if is_streamed else agent.run_sync(text).output


async def run_by_events(agent: Agent, text: str) -> str:
    """Its ``run_stream`` would end at the first text, before the call that follows it."""
    async with agent.run_stream_events(text) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                return event.result.output
    raise RuntimeError("the run has no result")


run_driver(chat, chat_with_tool)
