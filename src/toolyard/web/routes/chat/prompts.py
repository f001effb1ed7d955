"""``/v1/prompts``: the owner's prompts and those of an installation, and what a system message becomes."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from toolyard.gateway.chat_prompt import SYSTEM
from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.reply.chunks import read_text
from toolyard.message import to_fields
from toolyard.protocol.json import JsonObject
from toolyard.vcp.prompt_files import PromptFiles
from toolyard.web.answers import CurrentPrincipal, json_response
from toolyard.web.refusal import bad_request
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import MessageFields, StrictModel
from toolyard.yard.yard import Yard


class PromptRow(BaseModel):
    name: Annotated[str, Field(description="System messages name it as {{NAME}}.")]
    kind: Annotated[
        Literal["prompt", "variable", "agent", "toolbox"],
        Field(description="A prompt file or a variable; agent and toolbox: of a VCPToolBox installation."),
    ]
    place: Annotated[str, Field(description="The file that it stands in.")]
    text: Annotated[str, Field(description="Its text as it is written, cut after 2,000 characters.")]
    characters: Annotated[int, Field(description="The length of the whole text.")]
    description: str
    model: Annotated[str | None, Field(description="Of an assistant: its model, or empty. Null: it is none.")]


class PromptProblemRow(MessageFields):
    place: str


class UnfilledName(BaseModel):
    name: str
    requests: Annotated[int, Field(description="The requests whose system messages had it, since the server started.")]


class PromptList(BaseModel):
    folders: Annotated[list[str], Field(description="Where prompt files are looked for.")]
    installation: Annotated[str | None, Field(description="The VCPToolBox installation whose prompts are used.")]
    data: list[PromptRow]
    problems: list[PromptProblemRow]
    unfilled: Annotated[list[UnfilledName], Field(description="Names in system messages that nothing fills.")]


class PromptDraft(StrictModel):
    text: Annotated[str, Field(max_length=1_000_000, description="A system message.")]
    model: Annotated[str, Field(max_length=200, description="The model that it would be for.")] = ""


class FilledText(BaseModel):
    text: Annotated[str, Field(description="The system message as the model would get it.")]
    characters: int
    unfilled: Annotated[list[str], Field(description="Names in it that nothing fills.")]
    lists_tools: Annotated[bool, Field(description="Whether it lists tools, so that none are offered besides.")]


_MAX_TEXT = 2_000  # characters of a text in a list


def router(yard: Yard, chat: Chat) -> Routes:
    routes = Routes("/v1/prompts", tag="chat")
    root = yard.config.vcp
    installed = PromptFiles(root) if root is not None else None

    def read() -> JsonObject:
        own = sorted(yard.prompts.list_prompts().values(), key=lambda one: one.name.casefold())
        rows = [
            _row(
                one.name,
                "variable" if one.is_variable else "prompt",
                str(one.place),
                one.text,
                description=one.description,
                model=one.header.get("model"),
            )
            for one in own
        ]
        return {
            "folders": [str(folder) for folder in yard.prompts.folders],
            "installation": str(root) if root else None,
            "data": [*rows, *(_list_installed(installed) if installed else ())],
            "problems": [
                {"place": str(one.place), **to_fields("message", one.message)} for one in yard.prompts.list_problems()
            ],
            "unfilled": [{"name": name, "requests": count} for name, count in yard.prompts.unfilled.items()],
        }

    @routes.get("", PromptList)
    async def list_prompts() -> Response:
        """List the prompts, variables and assistants in files, and the names in system messages that nothing fills."""
        return json_response(await asyncio.to_thread(read))

    @routes.post("/fill", FilledText)
    async def fill_prompt(draft: PromptDraft, principal: CurrentPrincipal) -> Response:
        """Return what a model would get of a system message, with all that it names."""
        try:
            filled = await chat.fill_prompt(draft.text, draft.model, principal.caller)
        except ChatFailed as failed:
            raise bad_request(failed.fault.message) from failed
        texts = [
            read_text(one.get("content")) for one in filled.messages if isinstance(one, dict) and one["role"] in SYSTEM
        ]
        text = "\n\n".join(texts)
        return json_response(
            {
                "text": text,
                "characters": len(text),
                "unfilled": list(filled.unfilled),
                "lists_tools": filled.lists_tools,
            }
        )

    return routes


def _list_installed(files: PromptFiles) -> Iterator[JsonObject]:
    variables = files.variables
    for name, file in sorted(files.agents.items()):
        yield _row(name, "agent", f"{variables.get('AGENT_DIR_PATH') or 'Agent'}/{file}", files.read_agent(name))
    for name, box in sorted(files.toolboxes.items()):
        place = f"{variables.get('TVSTXT_DIR_PATH') or 'TVStxt'}/{box.file}"
        yield _row(name, "toolbox", place, files.read_toolbox(box), description=box.description)
    for name, value in variables.items():
        if name.startswith(("Tar", "Var")):
            yield _row(name, "variable", "config.env", value)


def _row(name: str, kind: str, place: str, text: str, *, description: str = "", model: str | None = None) -> JsonObject:
    return {
        "name": name,
        "kind": kind,
        "place": place,
        "text": text[:_MAX_TEXT],
        "characters": len(text),
        "description": description,
        "model": model,
    }
