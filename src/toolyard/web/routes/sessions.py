"""How browsers get in: the login page, their session, and tickets for WebSockets.

The page works without scripts. A one-time link only fills it in: looking at a link changes nothing, so that whatever
looks ahead of a person does not use it up.
"""

import html
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response

from toolyard.protocol.json import JsonObject
from toolyard.web.access import SESSION_S, TICKET_S, Access
from toolyard.web.answers import Who, answer
from toolyard.web.edge import HEAD
from toolyard.web.head import Head
from toolyard.web.refusal import Refusal
from toolyard.web.shapes import Done, Session, Ticket

_PAGE: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_FORM: JsonObject = {
    "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}},
    "security": [],
}
_SIGNED_IN: dict[int | str, dict[str, Any]] = {
    303: {"description": "Signed in."},
    401: {"description": "The page again: the key or the link is not valid.", "content": _PAGE},
    429: {"description": "The page again: too many attempts failed.", "content": _PAGE},
}
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f6f6f4;color:#1b1b1b}
main{max-width:40rem;margin:10vh auto;padding:2rem;background:#fff;border:1px solid #ddd;border-radius:8px}
input,button{font:inherit;padding:.5rem .75rem;width:100%;box-sizing:border-box;margin:.25rem 0}
.problem{color:#a00}@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}
main{background:#222;border-color:#444}a{color:#8cf}}"""


def router(access: Access, cookie: str) -> APIRouter:
    routes = APIRouter(tags=["sessions"])

    @routes.get("/login.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE, media_type="text/css")

    @routes.get(
        "/login", responses={200: {"description": "The page.", "content": _PAGE}}, openapi_extra={"security": []}
    )
    async def login_page(link: str = "") -> Response:
        """The login page."""
        return _page(link)

    @routes.post("/login", status_code=303, responses=_SIGNED_IN, openapi_extra=_FORM)
    async def sign_in(request: Request) -> Response:
        """Sign a browser in, by a one-time link or by a key."""
        head = cast("Head", request.scope[HEAD])
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        link, key = ("".join(fields.get(name, [])[:1]) for name in ("link", "key"))
        try:
            session = access.sign_in(link=link, key=key, address=head.address)
        except Refusal as refusal:
            return _page("", refusal.detail, refusal.status_code, refusal.headers)
        signed_in = Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
        signed_in.set_cookie(
            cookie, session, max_age=int(SESSION_S), httponly=True, samesite="strict", secure=head.scheme == "https"
        )
        return signed_in

    @routes.post("/logout", responses={200: {"model": Done}})
    async def sign_out(who: Who) -> Response:
        """End the session: its cookie opens nothing any more."""
        access.sign_out(who.session)
        ended = answer({"ok": True})
        ended.delete_cookie(cookie, httponly=True, samesite="strict")
        return ended

    @routes.get("/v1/session", responses={200: {"model": Session}})
    async def show_session(who: Who) -> Response:
        """Who is asking, and the token that a browser's session needs to change anything."""
        return answer({"key": who.key_id, "scopes": sorted(who.scopes), "csrf": who.csrf})

    @routes.post("/ws-ticket", responses={200: {"model": Ticket}})
    async def make_ticket(who: Who) -> Response:
        """A ticket that opens one WebSocket, soon."""
        return answer({"ticket": access.ticket(who), "expires_in": int(TICKET_S)})

    return routes


def _page(link: str, problem: str = "", status: int = 200, headers: object = None) -> Response:
    told = f'<p class="problem">{html.escape(problem)}</p>' if problem else ""
    field = (
        f'<input type="hidden" name="link" value="{html.escape(link, quote=True)}">'
        if link
        else '<label>Key<input type="password" name="key" autocomplete="current-password" required autofocus></label>'
    )
    text = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in to Toolyard</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="stylesheet" href="/login.css"></head>
<body><main><h1>Toolyard</h1>{told}<form method="post" action="/login">{field}<button>Sign in</button></form>
<p>The key is printed at the first start. <code>toolyard config show --key</code> prints it again.</p>
</main></body></html>"""
    return Response(text, status, dict(headers) if isinstance(headers, dict) else None, "text/html")
