"""``/v1/keys``: the keys of this home. Only ``admin`` gets here."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from toolyard.engine.clock import Clock
from toolyard.web.answers import answer
from toolyard.web.keys import OWNER, Keys
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import Done, KeyList, KeyMade, NewKey


def router(keys: Keys, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/keys", tags=["keys"])

    @routes.get("", responses={200: {"model": KeyList}})
    async def list_keys() -> Response:
        """The keys, without themselves."""
        return answer({"data": [key.to_dict() for key in keys.all()]})

    @routes.post("", status_code=201, responses={201: {"model": KeyMade}})
    async def make_key(new: NewKey) -> Response:
        """Make a key with some scopes. Its text is in this answer and nowhere else."""
        key, text = keys.add(new.name, new.scopes, clock.now().timestamp(), new.offer)
        return answer({**key.to_dict(), "key": text}, HTTPStatus.CREATED)

    @routes.delete("/{id}", responses={200: {"model": Done}})
    async def remove_key(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Let a key open nothing any more, from now on."""
        if id == OWNER:
            raise Refusal(HTTPStatus.CONFLICT, "the owner's key is a file of the home: remove it and start again")
        if not keys.remove(id):
            raise not_found(f"key '{id[:100]}'")
        return answer({"ok": True, "id": id})

    return routes
