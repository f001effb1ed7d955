# mypy: ignore-errors
"""openai-python."""

from driver import run_driver
from openai import OpenAI


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    client = OpenAI(base_url=url, api_key=key)
    messages = [{"role": "user", "content": text}]
    answer = client.chat.completions.create(model="scripted", messages=messages, stream=is_streamed)
    if not is_streamed:
        return answer.choices[0].message.content
    return "".join(choice.delta.content or "" for chunk in answer for choice in chunk.choices)


run_driver(chat)
