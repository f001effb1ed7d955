"""Signing in: the login page, browser sessions, tickets for WebSockets, login links, and ``/v1/keys``.

The page works without scripts, in English and Chinese; with one, the key can be shown. A one-time link only fills in
the form: opening it changes nothing, so that link previews do not use it up. ``next`` is the page to show after the
login: a path of this server, without the path of ``public_url``. The cookie is for that path alone, since other servers
may share the host.

Login links are for people who have no terminal of the server at hand. A link signs in with the key of whoever asks for
it, or with another key of the home, so that a phone can be given less.
"""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import parse_qs, quote, urlencode

from fastapi import Request, Response
from pydantic import BaseModel, Field

from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.protocol.json import JsonObject
from toolyard.settings import OfferMode
from toolyard.web.answers import CurrentPrincipal, json_response
from toolyard.web.feed import Feed
from toolyard.web.qr_matrix import make_qr_matrix
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routing import Audited, Routes
from toolyard.web.schemas.common import ChangedRecord, OkResponse, StrictModel
from toolyard.web.security.access import LINK_S, TICKET_S, Access
from toolyard.web.security.keys import OWNER, Keys
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import ANY_KEY, EVENT_SCOPES, PRINCIPAL, PUBLIC, Principal, Scope
from toolyard.web.security.sessions import SESSION_S


class NewLoginLinks(StrictModel):
    key: Annotated[
        str, Field(max_length=100, description="The id of the key to sign in with; empty: the key of this request.")
    ] = ""


class LoginLinks(BaseModel):
    url: Annotated[str, Field(description="For a browser on the machine of the server.")]
    remote_url: Annotated[str | None, Field(description="For other machines; null if they cannot reach the server.")]
    remote_qr: Annotated[
        list[str] | None,
        Field(description="`remote_url` as a QR code with its border: a text for each row, `1` is dark and `0` light."),
    ]
    expires_in: Annotated[int, Field(description="Seconds.")]


class NewKey(StrictModel):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)]
    offer: Annotated[OfferMode | None, Field(description="How tools are offered in its chats; null: the setting.")] = (
        None
    )


class KeySummary(BaseModel):
    id: str
    name: str
    scopes: list[Scope]
    created: float
    offer: OfferMode | None


class KeyList(BaseModel):
    data: list[KeySummary]


class CreatedKey(KeySummary):
    key: Annotated[str, Field(description="The secret. It is not stored and cannot be shown again.")]


class SessionInfo(BaseModel):
    key: str
    scopes: list[Scope]
    csrf: Annotated[str, Field(description="The value for X-CSRF-Token; empty when a key was sent.")]
    cursor: Annotated[
        int | None, Field(description="The number of the newest event; null for a key without access to events.")
    ]


class SocketTicket(BaseModel):
    ticket: str
    expires_in: int


_SIGNS = "/?&=%~+,:@!$'()*"  # beside letters, digits and - . _
_OURS = re.compile(rf"/(?![/\\])[\w\-.{re.escape(_SIGNS)}]*")
_PAGE: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_FIELDS: JsonObject = {name: {"type": "string"} for name in ("link", "key", "next", "lang")}
_FORM: JsonObject = {
    "requestBody": {
        "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": _FIELDS}}}
    },
    "security": [],
}
_SIGNED_IN: dict[int | str, dict[str, Any]] = {
    303: {"description": "Signed in."},
    401: {"description": "The page again: the key or the link is invalid.", "content": _PAGE},
    429: {"description": "The page again: too many failed attempts.", "content": _PAGE},
}
_STYLE = Path(__file__).parents[2] / "login.css"
_SCRIPT = Path(__file__).parents[2] / "login.js"
_LOGO = Path(__file__).parents[2] / "console" / "icon.svg"
_TEXTS = {
    "en": {
        "title": "Sign in to Toolyard",
        "key": "Key",
        "button": "Sign in",
        "where": "Where is my key? In a file on the server; its first start in a terminal shows it. Or use:",
        "show": "Show the key",
        "home": "If the server was started with --home, pass the same option.",
        "once": "This link signs in one browser, once. Press the button to make it this one.",
        "other": "中文",
        "wrong": "The key is invalid.",
        "used": "This link has been used or has expired: a link works once. Get a new one with “{}”, or sign in with "
        "the key.",
        "wait": "Too many failed attempts. Try again in {} s.",
    },
    "zh": {
        "title": "登录 Toolyard",
        "key": "密钥",
        "button": "登录",
        "where": "密钥在哪里？它保存在服务器上的文件里；在终端中首次启动时会显示一次。用这条命令可以查看：",
        "show": "显示密钥",
        "home": "如果启动服务器时用了 --home，这里也要加上。",
        "once": "这个链接只能登录一次。点击按钮，在这个浏览器中登录。",
        "other": "English",
        "wrong": "密钥无效。",
        "used": "这个链接已使用或已过期：每个链接只能用一次。用“{}”获取新链接，或用密钥登录。",
        "wait": "失败次数过多，请在 {} 秒后重试。",
    },
}


def router(access: Access, feed: Feed, cookie: str, version: str, own_command: OwnCommand) -> Routes:
    routes = Routes(tag="sessions", scope=ANY_KEY)
    show_page = partial(_login_page, version=version, names_home=own_command.home is not None)

    @routes.get("/login.css", scope=PUBLIC, include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE.read_bytes(), media_type="text/css")

    @routes.get("/login.js", scope=PUBLIC, include_in_schema=False)
    async def script() -> Response:
        return Response(_SCRIPT.read_bytes(), media_type="text/javascript")

    @routes.get(
        "/login",
        scope=PUBLIC,
        responses={200: {"description": "The page.", "content": _PAGE}},
        response_class=Response,
        openapi_extra={"security": []},
    )
    async def login_page(request: Request, link: str = "", next: str = "", lang: str = "") -> Response:  # noqa: A002
        """Return the login page; a browser that is signed in is redirected at once."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        if next and access.has_session(head.cookie(cookie)):
            return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": _locate_target(next, head)})
        return show_page(head, lang, link=link, goal=next)

    @routes.post(
        "/login",
        status=303,
        scope=PUBLIC,
        audit=Audited("session.signed_in", only_with_detail=True),
        responses=_SIGNED_IN,
        response_class=Response,
        openapi_extra=_FORM,
    )
    async def sign_in(request: Request) -> Response:
        """Sign a browser in with a one-time link or a key."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        link, key, goal, lang = ("".join(fields.get(name, [])[:1]) for name in ("link", "key", "next", "lang"))
        try:
            session = access.sign_in(link=link, key=key.strip(), address=head.address)
        except Refusal as refusal:
            return show_page(head, lang, goal=goal, refusal=refusal, was_link=bool(link))
        principal = access.authenticate_session(session, head.address)
        request.scope[PRINCIPAL] = replace(principal, address=head.address)
        add_audit_detail(request.scope, with_link=bool(link))
        before = head.cookie(cookie)
        if access.has_session(before):
            access.sign_out(before)  # its cookie is replaced
        signed_in = Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": _locate_target(goal, head)})
        signed_in.set_cookie(
            cookie,
            session,
            max_age=int(SESSION_S),
            path=head.prefix or "/",
            httponly=True,
            samesite="strict",
            secure=head.scheme == "https",
        )
        return signed_in

    @routes.post("/logout", OkResponse, audit="session.signed_out")
    async def sign_out(principal: CurrentPrincipal, request: Request) -> Response:
        """End the session; its cookie is no longer valid."""
        access.sign_out(principal.session)
        ended = json_response({"ok": True})
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        ended.delete_cookie(cookie, path=head.prefix or "/", httponly=True, samesite="strict")
        return ended

    @routes.get("/v1/session", SessionInfo)
    async def show_session(principal: CurrentPrincipal) -> Response:
        """Return the current key, its scopes, and the CSRF token that a browser session needs for changes."""
        cursor = await feed.read_newest_seq() if principal.has_any_scope(EVENT_SCOPES) else None
        return json_response(
            {"key": principal.key_id, "scopes": sorted(principal.scopes), "csrf": principal.csrf, "cursor": cursor}
        )

    @routes.post("/ws-ticket", SocketTicket)
    async def make_ticket(principal: CurrentPrincipal) -> Response:
        """Create a short-lived ticket for one WebSocket."""
        return json_response({"ticket": access.make_ticket(principal), "expires_in": int(TICKET_S)})

    return routes


def _safe_target(target: str) -> str:
    """Return a path of this server, quoted for a header; "/" for anything else."""
    return quote(target, safe=_SIGNS) if _OURS.fullmatch(target) else "/"


def _locate_target(target: str, head: RequestHead) -> str:
    """Return the address of a path of this server, for the browser that asks."""
    return head.base + _safe_target(target).removeprefix("/")


def _choose_language(requested: str, head: RequestHead) -> str:
    if requested in _TEXTS:
        return requested
    return "zh" if head.get("accept-language").lower().startswith("zh") else "en"


@cache
def _read_logo() -> str:
    """Return the logo as a part of the page: the files of the console are for those who are signed in."""
    return _LOGO.read_text(encoding="utf-8").replace("<svg ", '<svg aria-hidden="true" width="32" height="32" ', 1)


def _login_page(
    head: RequestHead,
    lang: str,
    *,
    version: str,
    names_home: bool,
    link: str = "",
    goal: str = "",
    refusal: Refusal | None = None,
    was_link: bool = False,
) -> Response:
    lang = _choose_language(lang, head)
    words = _TEXTS[lang]
    goal = html.escape(_safe_target(goal), quote=True)
    wait = (refusal.headers or {}).get("Retry-After") if refusal else None
    problem = (
        words["wait"].format(wait)
        if wait
        else words["used" if was_link else "wrong"].format(FOR_DEFAULT_HOME.format("login"))
    )
    alert = f'<p class="problem" role="alert">{html.escape(problem)}</p>' if refusal else ""
    field = (
        f'<input type="hidden" name="link" value="{html.escape(link, quote=True)}">'
        if link
        else f"<label>{words['key']}"
        '<input type="password" name="key" autocomplete="current-password" required autofocus></label>'
        f'<button type="button" id="show" aria-pressed="false" hidden>{words["show"]}</button>'
    )
    script = "" if link else f'<script src="{head.base}login.js" defer></script>'
    # The path of the home is not for those who have no key yet.
    home = f"<br>{words['home']}" if names_home else ""
    where = f"{words['where']}<br><code>{FOR_DEFAULT_HOME.format('config show --key')}</code>{home}"
    about = words["once"] if link else where
    switch = urlencode({"next": html.unescape(goal), "link": link, "lang": "en" if lang == "zh" else "zh"})
    text = f"""<!doctype html><html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8">
<title>{words["title"]}</title><meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="{head.base}login.css">{script}</head>
<body><main><h1>{_read_logo()}{words["title"]}</h1>{alert}
<form method="post" action="{head.base}login">{field}<input type="hidden" name="next" value="{goal}">
<input type="hidden" name="lang" value="{lang}"><button>{words["button"]}</button></form>
<p>{about}</p><footer><p>Toolyard {html.escape(version)} ·
<a href="{head.base}login?{html.escape(switch)}">{words["other"]}</a></p></footer></main></body></html>"""
    # Without a referrer a browser sends no Origin with a form, and the middleware would refuse it as cross-site.
    headers = {"Referrer-Policy": "same-origin", **((refusal and refusal.headers) or {})}
    return Response(text, refusal.status_code if refusal else 200, headers, "text/html")


def login_links_router(
    make_link: Callable[[str, Principal], str], get_remote_url: Callable[[], str], keys: Keys
) -> Routes:
    """``make_link`` returns a link below a URL, the server's own if that is empty."""
    routes = Routes("/v1/login-links", tag="sessions")

    @routes.post("", LoginLinks, audit="session.link_created")
    async def make_links(
        principal: CurrentPrincipal, request: Request, wanted: NewLoginLinks | None = None
    ) -> Response:
        """Create links that sign a browser in once: on this machine, and on others if they reach it."""
        id_ = wanted.key if wanted and wanted.key else principal.key_id
        key = next((key for key in keys.all() if key.id == id_), None)
        if key is None:
            raise not_found(Message("key '{id}'", id=id_[:100]))
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


def keys_router(keys: Keys, clock: Clock) -> Routes:
    routes = Routes("/v1/keys", tag="keys")

    @routes.get("", KeyList)
    async def list_keys() -> Response:
        """List the keys, without their secrets."""
        return json_response({"data": [key.to_json() for key in keys.all()]})

    @routes.post("", CreatedKey, status=201, audit="key.created")
    async def make_key(new: NewKey, request: Request) -> Response:
        """Create a key with the given scopes. Its secret is in this response only."""
        key, text = keys.add(new.name, new.scopes, clock.now().timestamp(), new.offer)
        add_audit_detail(request.scope, target=key.id, name=new.name, scopes=sorted(new.scopes))
        return json_response({**key.to_json(), "key": text}, HTTPStatus.CREATED)

    @routes.delete("/{id}", ChangedRecord, audit="key.revoked")
    async def remove_key(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Revoke a key."""
        if id == OWNER:
            raise Refusal(
                HTTPStatus.CONFLICT, Message("the owner's key is a file of the home: delete it and restart the server")
            )
        if not keys.remove(id):
            raise not_found(_describe_key(id[:100]))
        return json_response({"ok": True, "id": id})

    return routes


def _describe_key(id_: str) -> Message:
    return Message("key '{id}'", id=id_)
