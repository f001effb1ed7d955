# mypy: ignore-errors
"""openai-python with ``responses``."""

import json

from driver import OURS, RECALL, RECALLS, WORD, recall, run_driver
from openai import OpenAI

TOOLS = [{"type": "function", "name": RECALL, "description": RECALLS, "parameters": WORD, "strict": False}]


def ask(client: OpenAI, is_streamed: bool, **body):
    """Return the response, and its text as the events told it."""
    if not is_streamed:
        response = client.responses.create(**body)
        return response, response.output_text
    said, response = "", None
    for event in client.responses.create(**body, stream=True):
        if event.type == "response.output_text.delta":
            said += event.delta
        elif event.type in ("response.completed", "response.incomplete"):
            response = event.response
        elif event.type == "response.failed":
            raise RuntimeError(event.response.error.message)
    if response is None:
        raise RuntimeError("the stream has no last event")
    assert said == response.output_text
    return response, said


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    return ask(OpenAI(base_url=url, api_key=key), is_streamed, model="scripted", input=text)[1]


def chat_with_tool(url: str, key: str, text: str, is_streamed: bool) -> str:
    """Goes on with the id of the response before, or streamed with all items and nothing stored."""
    client = OpenAI(base_url=url, api_key=key)
    same = {"model": "scripted+tools", "tools": TOOLS}
    items = [{"role": "user", "content": text}]
    if is_streamed:
        same["store"] = False
    response, said = ask(client, is_streamed, **same, input=items)
    while calls := [item for item in response.output if item.type == "function_call"]:
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": recall(**json.loads(call.arguments))}
            for call in calls
        ]
        if is_streamed:
            items += [item.model_dump(exclude_none=True) for item in response.output] + results
            response, said = ask(client, is_streamed, **same, input=items)
        else:
            response, said = ask(client, is_streamed, **same, input=results, previous_response_id=response.id)
    return said


def chat_and_decide(url: str, key: str, text: str, is_streamed: bool, is_allowed: bool) -> str:
    """Answers with the id of the response that has asked, or streamed with all items and nothing stored."""
    client = OpenAI(base_url=url, api_key=key)
    same = {"model": "scripted", "tools": [OURS]} | ({"store": False} if is_streamed else {})
    items = [{"role": "user", "content": text}]
    response, said = ask(client, is_streamed, **same, input=items)
    while questions := [item for item in response.output if item.type == "mcp_approval_request"]:
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": question.id, "approve": is_allowed}
            for question in questions
        ]
        if is_streamed:
            items += [item.model_dump(exclude_none=True) for item in response.output] + answers
            response, said = ask(client, is_streamed, **same, input=items)
        else:
            response, said = ask(client, is_streamed, **same, input=answers, previous_response_id=response.id)
    return said


run_driver(chat, chat_with_tool, chat_and_decide)
