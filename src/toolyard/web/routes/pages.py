"""Pages for people: what stands at ``/``, and ``/docs``, which needs no script and no other server."""

import html
from typing import Any

from fastapi import APIRouter, FastAPI, Response

from toolyard.protocol.json import JsonObject

_PAGE: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1b1b}
h2{margin-top:2rem}code{font-family:ui-monospace,monospace}.verb{display:inline-block;width:4.5rem;font-weight:600}
dt{margin-top:1rem}dd{margin:0 0 0 4.5rem;color:#444}pre{background:#f4f4f2;padding:1rem;overflow:auto}
@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}dd{color:#bbb}pre{background:#222}a{color:#8cf}}"""


def router(app: FastAPI) -> APIRouter:
    routes = APIRouter(tags=["pages"])

    @routes.get("/", responses={200: {"description": "A page.", "content": _PAGE}})
    async def front() -> Response:
        """What this server is."""
        return _page("Toolyard", "<h1>Toolyard</h1><p>The server runs. The console comes later.</p>")

    @routes.get("/docs", responses={200: {"description": "A page.", "content": _PAGE}})
    async def docs() -> Response:
        """Every route, from the OpenAPI."""
        return _page("Toolyard: HTTP", _listed(app.openapi()))

    @routes.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_STYLE, media_type="text/css")

    return routes


def _page(title: str, body: str) -> Response:
    return Response(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
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
    about = html.escape(operation.get("description") or operation.get("summary") or "")
    given = [
        f"<code>{html.escape(one['name'])}</code> {html.escape(one.get('description', ''))}".strip()
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    ]
    more = f"<br>{'; '.join(given)}" if given else ""
    return f'<dt><span class="verb">{verb.upper()}</span><code>{html.escape(path)}</code></dt><dd>{about}{more}</dd>'
