"""A server for the official conformance suite, which asks for fixtures by name. ``python -m tests.mcp.conformance DIR``

What Toolyard offers goes through Toolyard: tools that give text, media and errors, progress, resources, connections.
What it does not offer to clients (prompts, completion, sampling, log messages, forms of a tool's own) stands beside it
on the same SDK server, so that the whole suite can run.
"""

import asyncio
import base64
import json
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.fakes import FakeTool
from tests.tools.media import PNG, WAV
from toolyard.config import load_config
from toolyard.mcp.calls import Answer
from toolyard.mcp.server import Context, McpServer
from toolyard.protocol.content import Media, Part, Text
from toolyard.protocol.envelope import ErrorCode, Extras, Failure
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.yard.yard import Yard

PDF = b"%PDF-1.4\n%%EOF\n"
IMAGE, AUDIO, FILE = Media("image/png", PNG), Media("audio/wav", WAV), Media("application/pdf", PDF, "a.pdf")
PARTS: dict[str, tuple[Part, ...]] = {
    "test_simple_text": (Text("This is a simple text response for testing."),),
    "test_image_content": (IMAGE,),
    "test_audio_content": (AUDIO,),
    "test_embedded_resource": (FILE,),
    "test_multiple_content_types": (Text("Multiple content types test:"), IMAGE, FILE),
}
CHOICES = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
OPTIONS = ["option1", "option2", "option3"]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": CHOICES},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": CHOICES}},
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
PERSON = {"username": {"type": "string"}, "email": {"type": "string"}}
FORMS = {
    "test_elicitation": PERSON,
    "test_elicitation_sep1034_defaults": DEFAULTS,
    "test_elicitation_sep1330_enums": ENUMS,
}


def tools() -> list[FakeTool]:
    async def parts(call: ToolCall, _: Checkpoint) -> Result:
        return Result(data={}, text="Done.", extras=Extras(parts=PARTS[call.tool]))

    async def fails(_: ToolCall, __: Checkpoint) -> Result:
        raise Failure(ErrorCode.EXECUTION_ERROR, "This tool intentionally returns an error for testing")

    async def slowly(_: ToolCall, __: Checkpoint) -> Result:
        await asyncio.sleep(0.5)
        return Result(data={}, text="Done.")

    works = {**dict.fromkeys(PARTS, parts), "test_error_handling": fails, "test_tool_with_progress": slowly}
    return [FakeTool(work, name=name) for name, work in works.items()]


class Fixtures:
    """Features that the suite asks for and Toolyard does not offer."""

    def __init__(self, server: McpServer) -> None:
        self._call = server.sdk.get_request_handler("tools/call")
        self._read = server.sdk.get_request_handler("resources/read")
        for method, params, answer in (
            ("tools/call", types.CallToolRequestParams, self.call),
            ("resources/read", types.ReadResourceRequestParams, self.read),
            ("resources/subscribe", types.SubscribeRequestParams, self.nothing),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self.nothing),
            ("logging/setLevel", types.SetLevelRequestParams, self.nothing),
            ("completion/complete", types.CompleteRequestParams, self.complete),
            ("prompts/list", types.PaginatedRequestParams, self.prompts),
            ("prompts/get", types.GetPromptRequestParams, self.prompt),
        ):
            server.sdk.add_request_handler(method, params, answer)  # type: ignore[arg-type]

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        name, session = params.name, ctx.session
        if name in FORMS:
            schema = {"type": "object", "properties": FORMS[name]}
            form = await session.elicit_form("Please answer.", schema, related_request_id=ctx.request_id)
            return _text(f"Elicitation completed: action={form.action}, content={json.dumps(form.content)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            if name == "test_tool_with_logging":
                for text in ("started", "processing", "completed"):
                    await session.send_log_message("info", text, related_request_id=ctx.request_id)
                return _text("Logged.")
            if name == "test_sampling":
                question = types.SamplingMessage(role="user", content=types.TextContent(text="Say something."))
                reply = await session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
                return _text(f"LLM response: {reply.content}")
        assert self._call is not None
        return await self._call.handler(ctx, params)  # type: ignore[return-value]

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        if uri == "test://static-binary":
            blob = base64.b64encode(PNG).decode()
            contents: Any = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=blob)
        elif uri in ("test://static-text", "test://template/123/data"):
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"The content of {uri}.")
        else:
            assert self._read is not None
            return await self._read.handler(ctx, params)
        return types.ReadResourceResult(contents=[contents])

    async def nothing(self, _: Context, __: Any) -> types.EmptyResult:
        return types.EmptyResult()

    async def complete(self, _: Context, __: types.CompleteRequestParams) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["paris"]))

    async def prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        words = ("simple_prompt", "prompt_with_arguments", "prompt_with_embedded_resource", "prompt_with_image")
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=f"test_{word}", description="For the suite.") for word in words]
        )

    async def prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = params.arguments or {}
        content: Any = types.TextContent(text=f"A prompt with {json.dumps(arguments)}.")
        if params.name == "test_prompt_with_image":
            content = types.ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")
        elif params.name == "test_prompt_with_embedded_resource":
            inner = types.TextResourceContents(uri=arguments["resourceUri"], mime_type="text/plain", text="Here.")
            content = types.EmbeddedResource(resource=inner)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def serve(place: Path, listener: socket.socket) -> None:
    for folder in ("project", "home"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    async with Yard(load_config(place / "project", place / "home")) as yard:
        for tool in tools():
            yard.tools.add(tool)
        server = McpServer(yard, lambda _: "key:suite", beat_s=0.05)
        Fixtures(server)
        app = server.sdk.streamable_http_app()
        config = uvicorn.Config(
            app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, timeout_keep_alive=600
        )
        web = uvicorn.Server(config)
        async with server.sdk.session_manager.run(), server.running(refresh=False):
            await web.serve([listener])


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    asyncio.run(serve(Path(sys.argv[1]), listening))
