"""``/v1/plugins/{name}/cases``: test cases made from journalled calls.

Arguments and outcome come from the journal, not from the request, which names the call, the case, and a text that the
answer must contain. A call that the plugin did not answer, or whose arguments contain a secret, becomes no case.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Response

from toolyard.engine.journal import CUT
from toolyard.engine.masking import MASK
from toolyard.message import Message
from toolyard.plugins.case_file import add_case, is_own_plugin
from toolyard.plugins.cases import FILE
from toolyard.protocol.envelope import Status
from toolyard.protocol.failure import Reason
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.responses import json_response
from toolyard.web.routes.plugins import get_plugin
from toolyard.web.schemas.plugins import CreatedCase, NewCase
from toolyard.yard.yard import Yard

_NOT_ITS_OWN: Final = (Reason.BUSY, Reason.DENIED, Reason.CANCELLED, Reason.INTERRUPTED)


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/plugins", tags=["plugins"])

    @routes.post("/{name}/cases", status_code=201, responses={201: {"model": CreatedCase}})
    async def save_case(name: str, new: NewCase) -> Response:
        """Add a call to the plugin's `cases.json`, as a test for `toolyard plugin test`.

        The test expects the same status, and `text_contains` in the text of the result. Only for plugins in the plugin
        folder of the home or the project; 409 when the call has not been answered by the plugin.
        """
        plugin = get_plugin(yard, name, "")
        if not is_own_plugin(plugin, project=yard.config.project, home=yard.config.home):
            raise bad_request(
                Message(
                    "plugin.folder_not_writable",
                    "{name} is in {folder}, where Toolyard does not write: copy the test case and add it to {file} "
                    "there",
                    name=plugin.name,
                    folder=plugin.folder,
                    file=FILE,
                )
            )
        call = await yard.journal.get(new.call)
        if call is None or call["tool"] != plugin.name:
            raise not_found(
                Message("plugin.call_of_plugin", "call '{id}' of {plugin}", id=new.call[:100], plugin=plugin.name)
            )
        arguments, expect = _make_case(call, new.text_contains)
        got = await asyncio.to_thread(
            add_case, plugin, home=yard.config.home, name=new.name, arguments=arguments, expect=expect
        )
        case = {"name": got, "args": arguments, "expect": expect}
        return json_response({"name": got, "file": str(plugin.folder / FILE), "case": case}, HTTPStatus.CREATED)

    return routes


def _make_case(call: JsonObject, words: str) -> tuple[JsonObject, JsonObject]:
    """Return the arguments of the call and the expected result."""
    envelope: Any = call.get("envelope")
    if call["state"] not in list(Status) or not isinstance(envelope, dict) or call.get("reason") in _NOT_ITS_OWN:
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message("plugin.call_still_running", "the plugin has not answered this call: let it finish first"),
        )
    arguments: Json = call.get("arguments")
    if not isinstance(arguments, dict) or envelope.get("data") == CUT:
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message(
                "plugin.call_too_large",
                "this call is too large to be stored completely: write its test by hand",
            ),
        )
    if MASK.encode() in json_bytes({"arguments": arguments, "words": words}):
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message(
                "plugin.call_contains_secret",
                "the arguments of this call contain a secret, which does not belong in a test",
            ),
        )
    if call.get("tasks"):  # a test waits for the tasks, whose result differs from the receipt of this call
        if words:
            raise bad_request(
                Message(
                    "plugin.test_waits_for_task",
                    "the test waits for the task: omit 'text_contains', because the receipt is not its result",
                )
            )
        return arguments, {}
    if words not in str(envelope.get("text", "")):
        raise bad_request(
            Message("plugin.test_text_missing", "the text of the result does not contain 'text_contains'")
        )
    expect: JsonObject = {"status": str(envelope.get("status"))}
    return arguments, expect | ({"text_contains": words} if words else {})
