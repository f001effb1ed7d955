"""Pages: the console at ``/``, its files, and ``/docs`` with the documentation: no script, and no other server.

The console is a single-page application, so each of its paths returns the same file, which says where the server
begins. Its files are built ahead and part of the package, under names that stay the same from build to build, so that
a change of one page is a change of few files. In a browser their addresses have a version: it keeps the files of a
version for good, and a page that was loaded before an upgrade gets no part of the next version. Diagrams are drawn in
a frame without an origin and with a policy of its own, so that whatever a diagram does there reaches neither the
session nor the page. The service worker shows the console's page while the server cannot be reached; it may send
requests to this server and do nothing else.

The documentation comes as HTML without scripts, so that help works offline. Headings have the anchors that links in the
pages expect, and so has each row of a table that begins with a name, such as that of a setting. The headings of a
translation have those of the original too, so that a link needs no translation.
"""

import asyncio
import gzip
import hashlib
import html
import json
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from fastapi import FastAPI, Query, Request, Response

from toolyard.message import Message, read_catalogue
from toolyard.protocol.json import JsonObject
from toolyard.server_paths import CONSOLE_PAGES, SERVICE_WORKER
from toolyard.shipped_files import find_shipped_folder
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routing import Routes
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import ANY_KEY, PUBLIC

if TYPE_CHECKING:
    from markdown_it.token import Token


FOLDER: Final = Path(__file__).parents[2] / "console"
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
_ASSETS: Final = "assets/"
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


def router(app: FastAPI) -> Routes:
    routes = Routes(tag="pages", scope=ANY_KEY)

    async def console(request: Request) -> Response:
        """Return the console."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        page = request.scope["route"].path.split("/")[1] or _FIRST_PAGE
        return _send_file(await asyncio.to_thread(_read_index, head.base, page), request, "no-cache")

    for address in ("/", *(place for page in CONSOLE_PAGES for place in (page, f"{page}/{{name:path}}"))):
        routes.get(
            address,
            responses={200: {"description": "A page.", "content": _PAGE}},
            response_class=Response,
            include_in_schema=address == "/",
        )(console)

    @routes.get(SERVICE_WORKER, scope=PUBLIC, include_in_schema=False)
    async def service_worker(request: Request) -> Response:
        """Return the service worker: a browser lets it serve what is below its own address."""
        return _send_file(await asyncio.to_thread(_read_worker), request, "no-cache", _WORKER)

    routes.allow("/console/draw/{path}", PUBLIC)  # a frame without an origin, which sends no cookie; nothing secret
    routes.allow("/console/install/{path}", PUBLIC)  # manifests and icons: the system loads them without a cookie

    @routes.get("/console/messages.zh.json", include_in_schema=False)
    async def messages(request: Request) -> Response:
        """Return the Chinese of the server's messages by their codes."""
        return _send_file(await asyncio.to_thread(_read_messages), request, "no-cache")

    @routes.get("/console/{path:path}", include_in_schema=False)
    async def file(path: str, request: Request) -> Response:
        return await _serve_file(path, request)

    @routes.get("/docs", responses={200: {"description": "A page.", "content": _PAGE}}, response_class=Response)
    async def docs(request: Request) -> Response:
        """Return a page that lists every route."""
        base = cast("RequestHead", request.scope[REQUEST_HEAD]).base
        body = await asyncio.to_thread(lambda: _render_operations(app.openapi(), base))
        return _html_page("Toolyard: HTTP", body, base)

    @routes.get(
        "/docs/{topic:path}", responses={200: {"description": "A page.", "content": _PAGE}}, response_class=Response
    )
    async def doc_page(topic: str, request: Request, lang: DocLanguage = "en") -> Response:
        """Return a page of the documentation, such as `configuration`."""
        head = cast("RequestHead", request.scope[REQUEST_HEAD])
        page = await asyncio.to_thread(render_doc_page, topic, head.base, chinese=lang == "zh")
        if page is None and head.is_page_request:
            return await not_found_page(head)
        if page is None:
            raise not_found(Message("page '{name}'", name=topic[:100]))
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
    lasting = path.startswith(_ASSETS)
    cache = "private, max-age=31536000, immutable" if lasting else "no-cache"
    more = _DRAWING if path.startswith("draw/") else {}
    return _send_file(await asyncio.to_thread(_read_asset if lasting else _read_file, path), request, cache, more)


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
    plain = _add_version(plain.replace(b"</head>", links + b"</head>")).replace(b'="./', b'="%bconsole/' % own)
    return _make_file(plain.replace(b'name="base" content="/"', b'name="base" content="%b"' % own), ".html")


@lru_cache(maxsize=1)
def _read_worker() -> _File:
    """Return the service worker, which knows the pages that it can show."""
    pages = "|".join(page.removeprefix("/") for page in (*CONSOLE_PAGES, "/login"))
    plain = (FOLDER / SERVICE_WORKER.removeprefix("/")).read_bytes()
    return _make_file(plain.replace(b"__PAGES__", pages.encode()), ".js")


@lru_cache(maxsize=1)
def _read_messages() -> _File:
    chinese = {row.get("code", text): row["zh"] for text, row in read_catalogue().items() if "zh" in row}
    return _make_file(json.dumps(chinese, ensure_ascii=False, separators=(",", ":")).encode(), ".json")


def _read_version() -> str:
    """Return the version of the built files: whenever one changes, so does ``build.json``, which has their hash."""
    return hashlib.sha256((FOLDER / "build.json").read_bytes()).hexdigest()[:12]


def _add_version(page: bytes) -> bytes:
    return page.replace(b'="./assets/', b'="./assets/%b/' % _read_version().encode())


@lru_cache(maxsize=256)
def _read_asset(path: str) -> _File:
    """Return a file of ``assets/VERSION/``. It is not there once the files on disk are those of another version."""
    version, _, name = path.removeprefix(_ASSETS).partition("/")
    if version != _read_version():
        raise _no_file(path)
    return _read_file(_ASSETS + name)


@lru_cache(maxsize=256)
def _read_file(path: str) -> _File:
    place = FOLDER / path  # an absolute path replaces FOLDER, and is refused below
    if place.suffix not in _KINDS or not place.is_relative_to(FOLDER) or ".." in place.parts or not place.is_file():
        raise _no_file(path)
    plain = place.read_bytes()
    return _make_file(_add_version(plain) if path == "index.html" else plain, place.suffix)


def _no_file(path: str) -> Refusal:
    return not_found(Message("file '{path}'", path=path[:100]))


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


_INDEX: Final = "README"
_CHINESE: Final = ".zh-CN"
_DOC_PAGE: Final = re.compile(r"(?P<path>[\w./-]+)\.md(?P<anchor>#.*)?")


@dataclass(frozen=True, slots=True)
class DocPage:
    title: str
    body: str  # HTML
    language: str


@lru_cache(maxsize=64)
def render_doc_page(topic: str, base: str, *, chinese: bool = False) -> DocPage | None:
    """Return a page by its path without the ending; None when there is none. ``base``: where the server's ``/`` is.

    ``chinese``: its translation, if it has one. Reads files.
    """
    folder = find_shipped_folder("docs")
    files = (
        {file.relative_to(folder).with_suffix("").as_posix(): file for file in folder.rglob("*.md")} if folder else {}
    )
    topic = topic or _INDEX
    found = next((name for name in (f"{topic}{_CHINESE}" if chinese else topic, topic) if name in files), None)
    return _render(files, found, base) if found else None


def _render(files: Mapping[str, Path], topic: str, base: str) -> DocPage:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False})
    tokens = parser.parse(files[topic].read_text("utf-8"))
    titles = _name_headings(tokens)
    if topic.endswith(_CHINESE):
        original = parser.parse(files[topic.removesuffix(_CHINESE)].read_text("utf-8"))
        _name_headings(original)
        _add_anchors(tokens, original)
    for at, token in enumerate(tokens):
        if token.type == "tr_open" and (name := _read_row_name(tokens, at)):
            token.attrSet("id", name)
    for token in _walk(tokens):
        if token.type == "link_open":
            token.attrSet("href", _find_target(str(token.attrGet("href") or ""), topic, files, base))
        elif token.type == "image":  # pictures are not part of an installation
            token.type = "text"
    body = str(parser.renderer.render(tokens, parser.options, {}))
    return DocPage(titles[0] if titles else topic, body, "zh-CN" if topic.endswith(_CHINESE) else "en")


def _walk(tokens: list["Token"]) -> Iterator["Token"]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _name_headings(tokens: list["Token"]) -> list[str]:
    """Set the anchor of each heading, as GitHub makes it, and return their texts."""
    titles = []
    for heading, text in pairwise(tokens):
        if heading.type == "heading_open":
            title = "".join(one.content for one in text.children or ())
            heading.attrSet("id", re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
            titles.append(title)
    return titles


def _add_anchors(tokens: list["Token"], original: list["Token"]) -> None:
    """Give each heading the anchor of the heading in its place in the original, in addition to its own."""
    from markdown_it.token import Token

    there = [token for token in original if token.type == "heading_open"]
    here = [(heading, text) for heading, text in pairwise(tokens) if heading.type == "heading_open"]
    for (heading, text), other in zip(here, there, strict=False):
        anchor = str(other.attrGet("id"))
        if text.children is not None and anchor != heading.attrGet("id"):
            text.children.insert(0, Token("html_inline", "", 0, content=f'<span id="{html.escape(anchor)}"></span>'))


def _read_row_name(tokens: list["Token"], at: int) -> str:
    """Return the name that a row of a table begins with; empty when it begins with something else."""
    first = next((one for one in tokens[at:] if one.type == "inline"), None)
    code = first.children[0] if first and first.children and first.children[0].type == "code_inline" else None
    return code.content if code and re.fullmatch(r"\w+", code.content) else ""


def _find_target(href: str, topic: str, topics: Container[str], base: str) -> str:
    """Return the address of a link: of another page here, of an anchor, or of somewhere else."""
    if href.startswith(("#", "http://", "https://")):
        return href
    match = _DOC_PAGE.fullmatch(href)
    if match is None:
        return f"{base}docs/{_INDEX}"
    parts: list[str] = topic.split("/")[:-1]
    for part in match["path"].split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    place = "/".join(parts)
    return f"{base}docs/{html.escape(place if place in topics else _INDEX)}{match['anchor'] or ''}"
