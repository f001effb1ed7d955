"""Login links: URLs that sign a browser in once, for people who have no terminal of the server at hand."""

from collections.abc import Callable

from fastapi import APIRouter, Response

from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.schemas.admin import LoginLinks
from toolyard.web.security.access import LINK_S
from toolyard.web.security.principal import Principal


def router(make_link: Callable[[str, Principal], str], get_remote_url: Callable[[], str]) -> APIRouter:
    """``make_link`` returns a link below a URL, the server's own if that is empty."""
    routes = APIRouter(prefix="/v1/login-links", tags=["sessions"])

    @routes.post("", responses={200: {"model": LoginLinks}})
    async def make_links(principal: CurrentPrincipal) -> Response:
        """Create links that sign a browser in once with this key: on this machine, and on others if they reach it."""
        remote = get_remote_url()
        return json_response(
            {
                "url": make_link("", principal),
                "remote_url": make_link(remote, principal) if remote else None,
                "expires_in": int(LINK_S),
            }
        )

    return routes
