"""``/v1/keys``: the keys of this home; requires ``admin``."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.web.audit_trail import add_audit_detail
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.responses import json_response
from toolyard.web.schemas.common import ChangedRecord, CreatedKey, KeyList, NewKey
from toolyard.web.security.keys import OWNER, Keys


def router(keys: Keys, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/keys", tags=["keys"])

    @routes.get("", responses={200: {"model": KeyList}})
    async def list_keys() -> Response:
        """List the keys, without their secrets."""
        return json_response({"data": [key.to_json() for key in keys.all()]})

    @routes.post("", status_code=201, responses={201: {"model": CreatedKey}})
    async def make_key(new: NewKey, request: Request) -> Response:
        """Create a key with the given scopes. Its secret is in this response only."""
        key, text = keys.add(new.name, new.scopes, clock.now().timestamp(), new.offer)
        add_audit_detail(request.scope, target=key.id, name=new.name, scopes=sorted(new.scopes))
        return json_response({**key.to_json(), "key": text}, HTTPStatus.CREATED)

    @routes.delete("/{id}", responses={200: {"model": ChangedRecord}})
    async def remove_key(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Revoke a key."""
        if id == OWNER:
            raise Refusal(
                HTTPStatus.CONFLICT,
                Message(
                    "key.owner_key_file",
                    "the owner's key is a file of the home: delete it and restart the server",
                ),
            )
        if not keys.remove(id):
            raise not_found(_name_key(id[:100]))
        return json_response({"ok": True, "id": id})

    return routes


def _name_key(id_: str) -> Message:
    return Message("http.key", "key '{id}'", id=id_)
