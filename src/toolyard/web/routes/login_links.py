"""Login links: URLs that sign a browser in once, for people who have no terminal of the server at hand.

A link signs in with the key of whoever asks for it, or with another key of the home, so that a phone can be given less.
"""

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from toolyard.message import Message
from toolyard.web.audit_trail import add_audit_detail
from toolyard.web.qr_matrix import make_qr_matrix
from toolyard.web.refusal import not_found
from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.schemas.admin import LoginLinks, NewLoginLinks
from toolyard.web.security.access import LINK_S
from toolyard.web.security.keys import Keys
from toolyard.web.security.principal import Principal


def router(make_link: Callable[[str, Principal], str], get_remote_url: Callable[[], str], keys: Keys) -> APIRouter:
    """``make_link`` returns a link below a URL, the server's own if that is empty."""
    routes = APIRouter(prefix="/v1/login-links", tags=["sessions"])

    @routes.post("", responses={200: {"model": LoginLinks}})
    async def make_links(
        principal: CurrentPrincipal, request: Request, wanted: NewLoginLinks | None = None
    ) -> Response:
        """Create links that sign a browser in once: on this machine, and on others if they reach it."""
        id_ = wanted.key if wanted and wanted.key else principal.key_id
        key = next((key for key in keys.all() if key.id == id_), None)
        if key is None:
            raise not_found(Message("http.key", "key '{id}'", id=id_[:100]))
        add_audit_detail(request.scope, target=key.id)
        user = Principal(key_id=key.id, scopes=key.scopes)
        remote = get_remote_url()
        remote_link = make_link(remote, user) if remote else None
        return json_response(
            {
                "url": make_link("", user),
                "remote_url": remote_link,
                "remote_qr": _to_rows(make_qr_matrix(remote_link)) if remote_link else None,
                "expires_in": int(LINK_S),
            }
        )

    return routes


def _to_rows(matrix: list[list[bool]]) -> list[str]:
    return ["".join("1" if module else "0" for module in row) for row in matrix]
