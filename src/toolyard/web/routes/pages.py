"""Pages: the console at ``/``, its files, and ``/docs`` with the documentation: no script, and no other server.

The console is a single-page application, so each of its paths returns the same file, which says where the server
begins. Its files are built ahead and part of the package. Diagrams are drawn in a frame without an origin and with a
policy of its own, so that whatever a diagram does there reaches neither the session nor the page. The service worker
shows the console's page while the server cannot be reached; it may send requests to this server and do nothing else.
"""

import asyncio
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, FastAPI, Query, Request, Response

from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.web.doc_page import render_doc_page
from toolyard.web.refusal import not_found
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import CONSOLE_PAGES, SERVICE_WORKER

FOLDER: Final = Path(__file__).parent.parent / "console"
_DRAWING: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts; "
        "frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-resource-policy": "cross-origin",
}
_WORKER: Final = {
    "content-security-policy": (
        "default-src 'none'; connect-src 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
}
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_PACKED: Final = frozenset((".html", ".js", ".css", ".svg", ".json", ".webmanifest"))
_FIRST_PAGE: Final = "chat"
DocLanguage = Annotated[Literal["en", "zh"], Query(description="`zh`: the translation, if there is one.")]
_PAGE: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1b1b}
h2{margin-top:2rem}code{font-family:ui-monospace,monospace}.verb{display:inline-block;width:4.5rem;font-weight:600}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{border:1px solid #8884;padding:.4rem .6rem;
text-align:left;vertical-align:top}:target{background:#fd03}h1[id],h2[id],h3[id],tr[id]{scroll-margin-top:1rem}
dt{margin-top:1rem}dd{margin:0 0 0 4.5rem;color:#444}pre{background:#f4f4f2;padding:1rem;overflow:auto}
@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}dd{color:#bbb}pre{background:#222}a{color:#8cf}}"""


@dataclass(frozen=True, slots=True)
class _File:
    plain: bytes
    packed: bytes
    kind: str
    tag: str


def router(app: FastAPI) -> APIRouter:
    routes = APIRouter(tags=["pages"])

    async def console(request: Request) -> Response:
        """Return the console."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        page = request.scope["route"].path.split("/")[1] or _FIRST_PAGE
        return _send_file(await asyncio.to_thread(_read_index, head.base, page), request, "no-cache")

    for address in ("/", *(place for page in CONSOLE_PAGES for place in (page, f"{page}/{{name:path}}"))):
        routes.add_api_route(
            address,
            console,
            methods=["GET"],
            response_class=Response,
            include_in_schema=address == "/",
            responses={200: {"description": "A page.", "content": _PAGE}},
        )

    @routes.get(SERVICE_WORKER, include_in_schema=False)
    async def service_worker(request: Request) -> Response:
        """Return the service worker: a browser lets it serve what is below its own address."""
        return _send_file(await asyncio.to_thread(_read_worker), request, "no-cache", _WORKER)

    @routes.get("/console/{path:path}", include_in_schema=False)
    async def file(path: str, request: Request) -> Response:
        return await _serve_file(path, request)

    @routes.get("/docs", response_class=Response, responses={200: {"description": "A page.", "content": _PAGE}})
    async def docs(request: Request) -> Response:
        """Return a page that lists every route."""
        base = cast("RequestHead", request.scope[REQUEST_HEAD]).base
        body = await asyncio.to_thread(lambda: _render_operations(app.openapi(), base))
        return _html_page("Toolyard: HTTP", body, base)

    @routes.get(
        "/docs/{topic:path}", response_class=Response, responses={200: {"description": "A page.", "content": _PAGE}}
    )
    async def doc_page(topic: str, request: Request, lang: DocLanguage = "en") -> Response:
        """Return a page of the documentation, such as `configuration`."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        page = await asyncio.to_thread(render_doc_page, topic, head.base, chinese=lang == "zh")
        if page is None and head.is_page_request:
            return await not_found_page(head)
        if page is None:
            raise not_found(Message("http.page", "page '{name}'", name=topic[:100]))
        top = f'<nav><a href="{head.base}docs/README">Toolyard</a></nav>'
        return _html_page(page.title, f"{top}{page.body}", head.base, page.language)

    @routes.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE, media_type="text/css")

    return routes


async def not_found_page(head: RequestHead) -> Response:
    """Return the console with status 404; it is the same for every unknown path and every key."""
    file = await asyncio.to_thread(_read_index, head.base)
    return Response(file.plain, HTTPStatus.NOT_FOUND, {"cache-control": "no-store"}, file.kind)


async def _serve_file(path: str, request: Request) -> Response:
    """Return a file of the console."""
    lasting = path.startswith("assets/")  # their names contain their hash
    cache = "private, max-age=31536000, immutable" if lasting else "no-cache"
    more = _DRAWING if path.startswith("draw/") else {}
    return _send_file(await asyncio.to_thread(_read_file, path), request, cache, more)


def _send_file(file: _File, request: Request, cache: str, more: Mapping[str, str] = MappingProxyType({})) -> Response:
    """Return a file, compressed if the client supports it, with cache headers."""
    headers = {"etag": file.tag, "cache-control": cache, "vary": "accept-encoding", **more}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if file.packed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.kind)
    return Response(file.plain, headers=headers, media_type=file.kind)


@lru_cache(maxsize=128)
def _read_index(base: str, page: str = "") -> _File:
    """Return the console's file for a server whose ``/`` is at ``base``: the build has addresses relative to itself.

    It names the scripts of ``page``, if there is one, so that the browser asks for all of them at once.
    """
    plain = (FOLDER / "index.html").read_bytes()
    scripts = json.loads((FOLDER / "build.json").read_bytes())["pages"].get(page, [])
    links = "".join(f'<link rel="modulepreload" crossorigin href="./{name}">' for name in scripts).encode()
    own = html.escape(base, quote=True).encode()
    plain = plain.replace(b"</head>", links + b"</head>").replace(b'="./', b'="%bconsole/' % own)
    return _make_file(plain.replace(b'name="base" content="/"', b'name="base" content="%b"' % own), ".html")


@lru_cache(maxsize=1)
def _read_worker() -> _File:
    """Return the service worker, which knows the pages that it can show."""
    pages = "|".join(page.removeprefix("/") for page in (*CONSOLE_PAGES, "/login"))
    plain = (FOLDER / SERVICE_WORKER.removeprefix("/")).read_bytes()
    return _make_file(plain.replace(b"__PAGES__", pages.encode()), ".js")


@lru_cache(maxsize=256)
def _read_file(path: str) -> _File:
    place = FOLDER / path  # an absolute path replaces FOLDER, and is refused below
    if place.suffix not in _KINDS or not place.is_relative_to(FOLDER) or ".." in place.parts or not place.is_file():
        raise not_found(Message("http.file", "file '{path}'", path=path[:100]))
    return _make_file(place.read_bytes(), place.suffix)


def _make_file(plain: bytes, suffix: str) -> _File:
    packed = gzip.compress(plain, 6, mtime=0) if suffix in _PACKED else b""
    return _File(plain, packed, _KINDS[suffix], f'"{hashlib.sha256(plain).hexdigest()[:32]}"')


def _html_page(title: str, body: str, base: str, language: str = "en") -> Response:
    return Response(
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{base}docs.css"></head><body>{body}</body></html>',
        media_type="text/html",
    )


def _render_operations(openapi: dict[str, Any], base: str) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in openapi["paths"].items():
        for verb, operation in operations.items():
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(_render_operation(verb, path, operation))
    parts = [f"<h2>{html.escape(name)}</h2><dl>{''.join(lines)}</dl>" for name, lines in groups.items()]
    return (
        f"<h1>Toolyard {html.escape(openapi['info']['version'])}: HTTP</h1><p>The same for programs: "
        f'<a href="{base}openapi.json">/openapi.json</a>. Guides: <a href="{base}docs/README">documentation</a>.'
        f"</p>{''.join(parts)}"
    )


def _render_operation(verb: str, path: str, operation: dict[str, Any]) -> str:
    about = _render_code_spans(operation.get("description") or operation.get("summary") or "")
    given = [
        f"<br><code>{html.escape(one['name'])}</code> {_render_code_spans(one.get('description', ''))}".rstrip()
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    ]
    return (
        f'<dt><span class="verb">{verb.upper()}</span><code>{html.escape(path)}</code></dt>'
        f"<dd>{about}{''.join(given)}</dd>"
    )


def _render_code_spans(text: str) -> str:
    """Return HTML for a text with `code` in backquotes."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
