# mypy: ignore-errors
"""litellm."""

import litellm
from driver import run_driver


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    messages = [{"role": "user", "content": text}]
    answer = litellm.completion(
        model="openai/scripted", api_base=url, api_key=key, messages=messages, stream=is_streamed
    )
    if not is_streamed:
        return answer.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer)


run_driver(chat)
