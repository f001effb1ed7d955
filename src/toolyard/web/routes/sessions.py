"""How browsers get in: the login page, their session, and tickets for WebSockets.

The page works without scripts, in English and Chinese. A one-time link only fills it in: looking at a link changes
nothing, so that whatever looks ahead of a person does not use it up. ``next`` is where a person wanted to go: a place
of this server and nothing else.
"""

import html
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlencode

from fastapi import APIRouter, Request, Response

from toolyard.protocol.json import JsonObject
from toolyard.web.access import TICKET_S, Access
from toolyard.web.answers import Who, answer
from toolyard.web.edge import HEAD
from toolyard.web.feed import Feed
from toolyard.web.head import Head
from toolyard.web.refusal import Refusal
from toolyard.web.scope import EVENTS
from toolyard.web.sessions import SESSION_S
from toolyard.web.shapes import Done, Session, Ticket

_SIGNS = "/?&=%~+,:@!$'()*"  # beside letters, digits and - . _
_OURS = re.compile(rf"/(?![/\\])[\w\-.{re.escape(_SIGNS)}]*")
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
_STYLE = Path(__file__).parent.parent / "login.css"
_TEXTS = {
    "en": {
        "title": "Sign in to Toolyard",
        "key": "Key",
        "button": "Sign in",
        "where": "Where is my key? It is printed at the first start, and by this command:",
        "home": "If the server was started with --home, add the same here.",
        "once": "This link signs in one browser, once. Press the button to make it this one.",
        "other": "中文",
        "wrong": "That key or link is not valid.",
        "wait": "Too many attempts failed. Try again in {} s.",
    },
    "zh": {
        "title": "登录 Toolyard",
        "key": "密钥",
        "button": "登录",
        "where": "密钥在哪里？首次启动时会显示，也可以用这条命令查看：",
        "home": "如果启动服务器时用了 --home，这里也要加上。",
        "once": "这个链接只能登录一次。点击按钮，在这个浏览器中登录。",
        "other": "English",
        "wrong": "密钥或链接无效。",
        "wait": "失败次数过多，请在 {} 秒后重试。",
    },
}


def router(access: Access, feed: Feed, cookie: str, version: str) -> APIRouter:
    routes = APIRouter(tags=["sessions"])

    @routes.get("/login.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE.read_bytes(), media_type="text/css")

    @routes.get(
        "/login", responses={200: {"description": "The page.", "content": _PAGE}}, openapi_extra={"security": []}
    )
    async def login_page(request: Request, link: str = "", next: str = "", lang: str = "") -> Response:  # noqa: A002
        """The login page; whoever is signed in already goes on at once."""
        head = cast("Head", request.scope[HEAD])
        if next and access.is_session(head.cookie(cookie)):
            return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": _place(next)})
        return _page(_language(lang, head), version, link=link, goal=next)

    @routes.post("/login", status_code=303, responses=_SIGNED_IN, openapi_extra=_FORM)
    async def sign_in(request: Request) -> Response:
        """Sign a browser in, by a one-time link or by a key."""
        head = cast("Head", request.scope[HEAD])
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        link, key, goal, lang = ("".join(fields.get(name, [])[:1]) for name in ("link", "key", "next", "lang"))
        try:
            session = access.sign_in(link=link, key=key.strip(), address=head.address)
        except Refusal as refusal:
            return _page(_language(lang, head), version, goal=goal, refusal=refusal)
        before = head.cookie(cookie)
        if access.is_session(before):
            access.sign_out(before)  # nobody has its cookie any more who should
        signed_in = Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": _place(goal)})
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
        cursor = await feed.newest() if who.may(EVENTS) else None
        return answer({"key": who.key_id, "scopes": sorted(who.scopes), "csrf": who.csrf, "cursor": cursor})

    @routes.post("/ws-ticket", responses={200: {"model": Ticket}})
    async def make_ticket(who: Who) -> Response:
        """A ticket that opens one WebSocket, soon."""
        return answer({"ticket": access.ticket(who), "expires_in": int(TICKET_S)})

    return routes


def _place(wanted: str) -> str:
    """A place of this server, as a header can carry it: it begins with one slash, and nothing in it leads elsewhere."""
    return quote(wanted, safe=_SIGNS) if _OURS.fullmatch(wanted) else "/"


def _language(asked: str, head: Head) -> str:
    if asked in _TEXTS:
        return asked
    return "zh" if head.get("accept-language").lower().startswith("zh") else "en"


def _page(lang: str, version: str, *, link: str = "", goal: str = "", refusal: Refusal | None = None) -> Response:
    words = _TEXTS[lang]
    goal = html.escape(_place(goal), quote=True)
    wait = (refusal.headers or {}).get("Retry-After") if refusal else None
    problem = words["wait"].format(wait) if wait else words["wrong"]
    told = f'<p class="problem" role="alert">{html.escape(problem)}</p>' if refusal else ""
    field = (
        f'<input type="hidden" name="link" value="{html.escape(link, quote=True)}">'
        if link
        else f"<label>{words['key']}"
        '<input type="password" name="key" autocomplete="current-password" required autofocus></label>'
    )
    about = words["once"] if link else f"{words['where']}<br><code>toolyard config show --key</code><br>{words['home']}"
    switch = urlencode({"next": html.unescape(goal), "link": link, "lang": "en" if lang == "zh" else "zh"})
    text = f"""<!doctype html><html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8">
<title>{words["title"]}</title><meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/login.css"></head>
<body><main><h1>{words["title"]}</h1>{told}
<form method="post" action="/login">{field}<input type="hidden" name="next" value="{goal}">
<input type="hidden" name="lang" value="{lang}"><button>{words["button"]}</button></form>
<p>{about}</p><footer><p>Toolyard {html.escape(version)} ·
<a href="/login?{html.escape(switch)}">{words["other"]}</a></p></footer></main></body></html>"""
    # Without a referrer a browser sends no Origin with a form, and the edge would take it for one of another site.
    headers = {"Referrer-Policy": "same-origin", **((refusal and refusal.headers) or {})}
    return Response(text, refusal.status_code if refusal else 200, headers, "text/html")
