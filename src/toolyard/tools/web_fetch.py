"""WebFetch: a URL as text for a model, HTML as Markdown, by the safe fetch."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import Text
from toolyard.protocol.envelope import ErrorCode, Extras, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec
from toolyard.tools.readers.html_markdown import convert_page
from toolyard.tools.readers.pdf import extract_text
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.encoding import Encoding, detect_encoding, find_encoding, looks_binary
from toolyard.workspace.safe_fetch import MAX_FETCH_BYTES, MAX_REDIRECTS, FetchedBody, SafeFetch

DEFAULT_LIMIT = 20_000
MAX_LIMIT = 100_000
_HTML = frozenset(["text/html", "application/xhtml+xml"])
_TEXT = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|javascript|yaml|x-yaml|toml|x-ndjson|x-sh|sql|rtf)|.+/.+\+(?:json|xml|yaml)"
)
_UNKNOWN = frozenset(["", "application/octet-stream", "binary/octet-stream"])
_HTML_START = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_META_WITHIN = 4096  # bytes of a page in which it names its charset
_BREAK_WITHIN = 500  # characters from the end of a part in which it is cut at the end of a line

SPEC = ToolSpec(
    **load_text(
        __file__,
        default_limit=DEFAULT_LIMIT,
        max_limit=MAX_LIMIT,
        max_mib=MAX_FETCH_BYTES // 1024**2,
        max_redirects=MAX_REDIRECTS,
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "description": "An http or https URL."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "How many characters to leave out first.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "default": DEFAULT_LIMIT,
                "description": "How many characters to return.",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    examples=({"url": "https://example.com/"},),
    risk=Risk.NETWORK,
    splits_batches=True,
    idempotent=True,
)


@dataclass(frozen=True, slots=True)
class _Page:
    """A fetched document as text."""

    text: str
    format: str  # markdown or text
    title: str = ""
    encoding: str = ""
    problem: str = ""


class WebFetch:
    spec = SPEC

    def __init__(self, fetch: SafeFetch, *, fallback_encodings: Sequence[str]) -> None:
        self._fetch, self._fallbacks = fetch, fallback_encodings

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(self._fetch_part, call.arguments, checkpoint)

    def _fetch_part(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Result:
        url, offset, limit = arguments["url"], arguments["offset"], arguments["limit"]
        fetched = self._fetch.fetch(url, checkpoint)
        page = self._read_page(fetched, checkpoint)
        if offset and offset >= len(page.text):
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message(
                    "The page has {total} characters: offset={offset} is beyond its end.",
                    total=len(page.text),
                    offset=offset,
                ),
                hint=Message("Use a smaller offset."),
            )
        part = _cut_part(page.text, offset, limit)
        after = offset + len(part)
        return _build_result(url, fetched, page, part, offset, after if after < len(page.text) else None)

    def _read_page(self, fetched: FetchedBody, checkpoint: Checkpoint) -> _Page:
        content, mime = fetched.content, _detect_type(fetched)
        if mime == "application/pdf":
            text, problem = extract_text(content, checkpoint)
            return _Page(text, "text", problem=problem)
        is_html = mime in _HTML
        if not is_html and (not _TEXT.fullmatch(mime) or looks_binary(content)):
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message(
                    "'{host}' sends {mime}, which cannot be shown as text.", host=fetched.source.host, mime=mime[:100]
                ),
                hint=Message("Use FileOperator: WebReadFile shows pictures and sounds, DownloadFile keeps any file."),
            )
        encoding = self._find_encoding(fetched, is_html=is_html)
        text = encoding.to_utf8(content[len(encoding.bom) :]).decode().replace("\r\n", "\n").replace("\0", "")
        if not is_html:
            return _Page(text, "text", encoding=encoding.name)
        page = convert_page(text, fetched.source.url, checkpoint)
        return _Page(page.markdown, "markdown", page.title, encoding.name)

    def _find_encoding(self, fetched: FetchedBody, *, is_html: bool) -> Encoding:
        """Return the encoding: of a byte-order mark, as the server or the page says, or what the bytes look like."""
        content = fetched.content
        detected = detect_encoding(content, whole=True, fallbacks=self._fallbacks)
        if detected.bom:
            return detected
        named = fetched.charset
        if not named and is_html and (meta := _META_CHARSET.search(content[:_META_WITHIN])):
            named = meta[1].decode("ascii")
        try:
            encoding = find_encoding(_WEB_NAMES.get(named.lower(), named), content, whole=True) if named else detected
        except Failure:  # a name that nobody knows
            return detected
        return encoding if encoding.certain or not detected.certain else detected


_WEB_NAMES = {"iso-8859-1": "cp1252", "us-ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "x-sjis": "cp932"}
"""What these names mean on the web: the larger encodings that browsers take them for."""


def _detect_type(fetched: FetchedBody) -> str:
    """Return the media type that the server names, or where it names none, the one that the content shows."""
    if fetched.mime not in _UNKNOWN:
        return fetched.mime
    head = fetched.content[:1024]
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if _HTML_START.match(head):
        return "text/html"
    return fetched.mime or "application/octet-stream" if looks_binary(fetched.content) else "text/plain"


def _cut_part(text: str, offset: int, limit: int) -> str:
    part = text[offset : offset + limit]
    if offset + len(part) == len(text):
        return part
    end = part.rfind("\n", max(1, len(part) - _BREAK_WITHIN))
    return part[: end + 1] if end > 0 else part


def _describe_page(
    url: str, fetched: FetchedBody, page: _Page, part: str, offset: int, next_offset: int | None
) -> Iterator[Message]:
    mime = fetched.mime or Message("no type given")
    yield (
        Message(
            "Fetched \"{title}\" from '{url}' ({mime}, {size} bytes).",
            title=page.title[:200],
            url=fetched.source.url,
            mime=mime,
            size=len(fetched.content),
        )
        if page.title
        else Message(
            "Fetched from '{url}' ({mime}, {size} bytes).", url=fetched.source.url, mime=mime, size=len(fetched.content)
        )
    )
    if fetched.source.url != url.partition("#")[0]:
        yield Message("The URL redirected there from '{url}'.", url=url)
    if offset or next_offset is not None:
        yield Message(
            "(Characters {first}-{last} of {total}.)",
            first=offset + 1 if part else offset,
            last=offset + len(part),
            total=len(page.text),
        )
    if next_offset is not None:
        yield Message("Use offset={offset} to read on.", offset=next_offset)
    if not page.text and not page.problem:
        yield Message("It has no text: it may be made by a script in a browser.")
    if page.problem:
        yield Message("Not all of its text could be read: {problem}.", problem=page.problem)


def _build_result(
    url: str, fetched: FetchedBody, page: _Page, part: str, offset: int, next_offset: int | None
) -> Result:
    text = join_sentences(*_describe_page(url, fetched, page, part, offset, next_offset))
    data: JsonObject = {
        "url": url,
        "final_url": fetched.source.url,
        "title": page.title,
        "mime": fetched.mime,
        "encoding": page.encoding,
        "format": page.format,
        "content": part,
        "truncated": next_offset is not None,
        "next_offset": next_offset,
        "total_characters": len(page.text),
    }
    return Result(
        data=data,
        text=text,
        partial=bool(page.problem),
        stats={"bytes": len(fetched.content), "characters": len(part)},
        context={"truncation_skip": True},
        extras=Extras(parts=(Text(text), *((Text(part),) if part else ()))),
    )
