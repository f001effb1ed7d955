# mypy: ignore-errors
"""anthropic, the Python SDK."""

from anthropic import Anthropic
from driver import RECALL, RECALLS, WORD, recall, run_driver

TOOLS = [{"name": RECALL, "description": RECALLS, "input_schema": WORD}]


def ask(client: Anthropic, is_streamed: bool, **body):
    if not is_streamed:
        return client.messages.create(max_tokens=1000, **body)
    with client.messages.stream(max_tokens=1000, **body) as stream:
        said = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert said == text_of(message)
    return message


def text_of(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    client = Anthropic(base_url=url, api_key=key)
    message = ask(client, is_streamed, model="scripted", messages=[{"role": "user", "content": text}])
    return message.content[0].text  # as the first example of its README reads it


def chat_with_tool(url: str, key: str, text: str, is_streamed: bool) -> str:
    client = Anthropic(base_url=url, api_key=key)
    messages = [{"role": "user", "content": text}]
    while True:
        message = ask(client, is_streamed, model="scripted+tools", tools=TOOLS, messages=messages)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": recall(**block.input)}
            for block in message.content
            if block.type == "tool_use"
        ]
        if not results:
            return text_of(message)
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


run_driver(chat, chat_with_tool)
