# mypy: ignore-errors
"""pydantic-ai."""

from driver import run_driver
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    agent = Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key=key)))
    if not is_streamed:
        return agent.run_sync(text).output
    return "".join(agent.run_stream_sync(text).stream_text(delta=True))


run_driver(chat)
