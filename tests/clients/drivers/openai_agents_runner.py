# mypy: ignore-errors
"""The OpenAI Agents SDK with its default model."""

import asyncio

from agents import Agent, HostedMCPTool, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from driver import OURS, recall, run_driver
from openai import AsyncOpenAI

set_tracing_disabled(True)
LOOP = asyncio.new_event_loop()  # one for all chats, because the SDK keeps its client
TOOLS = [function_tool(recall, name_override="Recall")]


async def run(url: str, key: str, text: str, is_streamed: bool, agent: Agent) -> str:
    set_default_openai_client(AsyncOpenAI(base_url=url, api_key=key))
    if not is_streamed:
        return (await Runner.run(agent, text)).final_output
    result = Runner.run_streamed(agent, text)
    async for _ in result.stream_events():
        pass
    return result.final_output


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    return LOOP.run_until_complete(run(url, key, text, is_streamed, Agent("Assistant", model="scripted")))


def chat_with_tool(url: str, key: str, text: str, is_streamed: bool) -> str:
    return LOOP.run_until_complete(
        run(url, key, text, is_streamed, Agent("Assistant", model="scripted+tools", tools=TOOLS))
    )


def chat_and_decide(url: str, key: str, text: str, is_streamed: bool, is_allowed: bool) -> str:
    def decide(_) -> dict:
        return {"approve": is_allowed}

    tools = [HostedMCPTool(tool_config=OURS, on_approval_request=decide)]
    return LOOP.run_until_complete(run(url, key, text, is_streamed, Agent("Assistant", model="scripted", tools=tools)))


run_driver(chat, chat_with_tool, chat_and_decide)
