# mypy: ignore-errors
"""LangChain: ``langchain-openai``."""

from driver import run_driver
from langchain_openai import ChatOpenAI


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    model = ChatOpenAI(model="scripted", base_url=url, api_key=key)
    if not is_streamed:
        return model.invoke(text).content
    return "".join(chunk.content for chunk in model.stream(text))


run_driver(chat)
