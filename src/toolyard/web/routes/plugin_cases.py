"""``/v1/plugins/{name}/cases``: a call that a plugin answered becomes one of its tests.

What is written comes from the journal and not from the request: which file it is, what the plugin was given, how it
ended. The request names the call, the test, and words of the answer. A call that says nothing about the plugin, or
whose arguments hold a secret, becomes no test.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Response

from toolyard.app import Yard
from toolyard.engine.journal import CUT
from toolyard.engine.masking import MASK
from toolyard.plugins.case_file import add_case, is_own_plugin
from toolyard.plugins.cases import FILE
from toolyard.protocol.envelope import Status
from toolyard.protocol.failure import Reason
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.plugins import named
from toolyard.web.shapes_plugins import CaseSaved, NewCase

_NOT_ITS_OWN: Final = (Reason.BUSY, Reason.DENIED, Reason.CANCELLED, Reason.INTERRUPTED)


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/plugins", tags=["plugins"])

    @routes.post("/{name}/cases", status_code=201, responses={201: {"model": CaseSaved}})
    async def save_case(name: str, said: NewCase) -> Response:
        """Write a call into the plugin's `cases.json`, as a test that `toolyard plugin test` runs.

        It expects the same status, and `text_contains` in the answer's text. Only for a plugin in the folder of plugins
        of the home or of the project; 409 when the call has not ended, or not by the plugin itself.
        """
        plugin = named(yard, name, "")
        if not is_own_plugin(plugin, project=yard.config.project, home=yard.config.home):
            raise bad_request(
                f"{plugin.name} is in {plugin.folder}, where Toolyard writes nothing: "
                f"copy the test case and add it to {FILE} there"
            )
        found = await yard.journal.get(said.call)
        if found is None or found["tool"] != plugin.name:
            raise not_found(f"call '{said.call[:100]}' of {plugin.name}")
        arguments, expect = _of(found, said.text_contains)
        got = await asyncio.to_thread(
            add_case, plugin, home=yard.config.home, name=said.name, arguments=arguments, expect=expect
        )
        case = {"name": got, "args": arguments, "expect": expect}
        return answer({"name": got, "file": str(plugin.folder / FILE), "case": case}, HTTPStatus.CREATED)

    return routes


def _of(found: JsonObject, words: str) -> tuple[JsonObject, JsonObject]:
    """What the plugin was given, and what it must answer."""
    envelope: Any = found.get("envelope")
    if found["state"] not in list(Status) or not isinstance(envelope, dict) or found.get("reason") in _NOT_ITS_OWN:
        raise Refusal(HTTPStatus.CONFLICT, "this call has no answer of the plugin: run it to its end first")
    arguments: Json = found.get("arguments")
    if not isinstance(arguments, dict) or envelope.get("data") == CUT:
        raise Refusal(HTTPStatus.CONFLICT, "this call was too large to be kept whole: write its test by hand")
    if MASK.encode() in json_bytes({"arguments": arguments, "words": words}):
        raise Refusal(HTTPStatus.CONFLICT, "this call was given a secret, which does not belong into a test")
    if found.get("tasks"):  # a test waits until they have ended, and what they say then is not what this call said
        if words:
            raise bad_request("the test waits for the task: leave 'text_contains' out, the receipt is not its answer")
        return arguments, {}
    if words not in str(envelope.get("text", "")):
        raise bad_request("the answer's text does not have what 'text_contains' says")
    expect: JsonObject = {"status": str(envelope.get("status"))}
    return arguments, expect | ({"text_contains": words} if words else {})
