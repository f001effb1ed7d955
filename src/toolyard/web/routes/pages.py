"""Pages for people: the console at ``/``, its files, and ``/docs``, which needs no script and no other server.

The console is one page that draws what its address says, so each of its addresses answers with the same file. Its files
are built ahead and part of the package. What draws diagrams runs apart: in a frame without an origin of its own, with
a policy of its own, so that whatever a diagram might do there reaches neither the session nor the page.
"""

import asyncio
import gzip
import hashlib
import html
import re
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response

from toolyard.protocol.json import JsonObject
from toolyard.web.refusal import not_found
from toolyard.web.scope import CONSOLE_PAGES

FOLDER: Final = Path(__file__).parent.parent / "console"
_DRAWING: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts; "
        "frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-resource-policy": "cross-origin",
}
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
_PACKED: Final = frozenset((".html", ".js", ".css", ".svg", ".json"))
_PAGE: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1b1b}
h2{margin-top:2rem}code{font-family:ui-monospace,monospace}.verb{display:inline-block;width:4.5rem;font-weight:600}
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
        """The console."""
        return await _served("index.html", request)

    for address in ("/", *(place for page in CONSOLE_PAGES for place in (page, f"{page}/{{name:path}}"))):
        routes.add_api_route(
            address,
            console,
            methods=["GET"],
            include_in_schema=address == "/",
            responses={200: {"description": "A page.", "content": _PAGE}},
        )

    @routes.get("/console/{path:path}", include_in_schema=False)
    async def file(path: str, request: Request) -> Response:
        return await _served(path, request)

    @routes.get("/docs", responses={200: {"description": "A page.", "content": _PAGE}})
    async def docs() -> Response:
        """Every route, from the OpenAPI."""
        return _page("Toolyard: HTTP", await asyncio.to_thread(lambda: _listed(app.openapi())))

    @routes.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE, media_type="text/css")

    return routes


async def nowhere() -> Response:
    """The console, which says that it has no such page and leads home; the same for every address and every key."""
    found = await asyncio.to_thread(_read, "index.html")
    return Response(found.plain, HTTPStatus.NOT_FOUND, {"cache-control": "no-store"}, found.kind)


async def _served(path: str, request: Request) -> Response:
    """One file of the console: packed for whoever can unpack it, and kept by the browser while it is the same."""
    found = await asyncio.to_thread(_read, path)
    lasting = path.startswith("assets/")  # their names have their hash
    headers = {
        "etag": found.tag,
        "cache-control": "private, max-age=31536000, immutable" if lasting else "no-cache",
        "vary": "accept-encoding",
        **(_DRAWING if path.startswith("draw/") else {}),
    }
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if found.packed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "content-encoding": "gzip"}, media_type=found.kind)
    return Response(found.plain, headers=headers, media_type=found.kind)


@lru_cache(maxsize=256)
def _read(path: str) -> _File:
    place = FOLDER / path  # of a path that begins with a slash nothing but that path is left
    kind = _KINDS.get(place.suffix)
    if kind is None or not place.is_relative_to(FOLDER) or ".." in place.parts or not place.is_file():
        raise not_found(f"file '{path[:100]}'")
    plain = place.read_bytes()
    packed = gzip.compress(plain, 6, mtime=0) if place.suffix in _PACKED else b""
    return _File(plain, packed, kind, f'"{hashlib.sha256(plain).hexdigest()[:32]}"')


def _page(title: str, body: str) -> Response:
    return Response(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="stylesheet" href="/docs.css"></head><body>{body}</body></html>',
        media_type="text/html",
    )


def _listed(openapi: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in openapi["paths"].items():
        for verb, operation in operations.items():
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(_operation(verb, path, operation))
    parts = [f"<h2>{html.escape(name)}</h2><dl>{''.join(lines)}</dl>" for name, lines in groups.items()]
    return (
        f"<h1>Toolyard {html.escape(openapi['info']['version'])}: HTTP</h1><p>The same for programs: "
        f'<a href="/openapi.json">/openapi.json</a>.</p>{"".join(parts)}'
    )


def _operation(verb: str, path: str, operation: dict[str, Any]) -> str:
    about = _prose(operation.get("description") or operation.get("summary") or "")
    given = [
        f"<br><code>{html.escape(one['name'])}</code> {_prose(one.get('description', ''))}".rstrip()
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    ]
    return (
        f'<dt><span class="verb">{verb.upper()}</span><code>{html.escape(path)}</code></dt>'
        f"<dd>{about}{''.join(given)}</dd>"
    )


def _prose(text: str) -> str:
    """Text whose `code` stands in backquotes."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
