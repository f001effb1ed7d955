# mypy: ignore-errors
"""LangChain: ``langchain-openai`` with Responses."""

from driver import OURS, RECALL, RECALLS, WORD, recall, run_driver
from langchain_openai import ChatOpenAI

TOOLS = [{"type": "function", "function": {"name": RECALL, "description": RECALLS, "parameters": WORD}}]


def ask(model, messages, is_streamed):
    if not is_streamed:
        return model.invoke(messages)
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    model = ChatOpenAI(model="scripted", base_url=url, api_key=key, use_responses_api=True)
    return ask(model, text, is_streamed).text


def chat_with_tool(url: str, key: str, text: str, is_streamed: bool) -> str:
    model = ChatOpenAI(model="scripted+tools", base_url=url, api_key=key, use_responses_api=True).bind_tools(TOOLS)
    messages = [{"role": "user", "content": text}]
    while (answer := ask(model, messages, is_streamed)).tool_calls:
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": recall(**call["args"])}
            for call in answer.tool_calls
        ]
        messages += [answer, *results]
    return answer.text


def chat_and_decide(url: str, key: str, text: str, is_streamed: bool, is_allowed: bool) -> str:
    model = ChatOpenAI(model="scripted", base_url=url, api_key=key, use_responses_api=True).bind_tools([OURS])
    answer = ask(model, text, is_streamed)
    while questions := [block for block in answer.content if block["type"] == "mcp_approval_request"]:
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": is_allowed}
            for question in questions
        ]
        before = answer.response_metadata["id"]
        answer = ask(model.bind(previous_response_id=before), [{"role": "user", "content": answers}], is_streamed)
    return answer.text


run_driver(chat, chat_with_tool, chat_and_decide)
