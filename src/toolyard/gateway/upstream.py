"""A model provider that speaks OpenAI's chat protocol, and the connections to it.

One session per provider keeps connections open. A request is tried again only when ``retry`` says that nothing of it
has reached anyone yet: after a 429, a 5xx or a connection that failed, with growing pauses or as Retry-After says.
Redirects are not followed, so the key goes to its own origin and nowhere else. Limits: ``Limits``.
"""

import asyncio
import contextlib
import gc
import re
import sys
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from toolyard.gateway.answer import Answer, HttpAnswer, Limits
from toolyard.gateway.fair import Fair
from toolyard.gateway.faults import ChatFailed, refused, too_slow, unreachable, unreadable
from toolyard.gateway.provider_json import parse_provider_json
from toolyard.gateway.response_body import ResponseBody
from toolyard.protocol.json import JsonObject

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

_VERSION = re.compile(r"v\d+\w*")
MAX_LIST: Final = 4 * 1024 * 1024  # bytes of a list of models
_MAX_REFUSAL = 64 * 1024
_LAST_WORD_S = 5.0
_IDLE_S = 4.0  # many providers close a connection after 5 s, and a request that meets that is lost


class Upstream(Protocol):
    name: str

    async def ask(self, body: bytes, *, stream: bool, retry: bool) -> Answer:
        """Send a chat request. Raises ChatFailed."""
        ...

    async def models(self) -> list[JsonObject]:
        """Raises ChatFailed."""
        ...

    def failed(self, failed: ChatFailed) -> None:
        """Hear that an answer of its came to nothing after it had begun."""
        ...

    async def close(self) -> None: ...


def chat_base(url: str) -> str:
    """The address below which ``/chat/completions`` is, from a URL with or without its version."""
    base = url.strip().rstrip("/").removesuffix("/chat/completions").rstrip("/")
    versioned = any(_VERSION.fullmatch(part) for part in urlsplit(base).path.split("/"))
    return base if versioned else f"{base}/v1"


def is_answer(status: int) -> bool:
    """Any 2xx, as the official clients have it."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def parse_models(name: str, raw: bytes) -> list[JsonObject]:
    """The models of a provider's list, without what is none. Raises ChatFailed."""
    if len(raw) > MAX_LIST:
        raise unreadable(name, f"sent a list of models of more than {MAX_LIST} bytes")
    try:
        said = parse_provider_json(raw)
    except ValueError as error:
        raise unreadable(name, "sent something that is no list of models", raw) from error
    listed = said.get("data") if isinstance(said, dict) else None
    listed = listed if isinstance(listed, list) else []
    return [model for model in listed if isinstance(model, dict) and isinstance(model.get("id"), str)]


class HttpUpstream:
    def __init__(self, name: str, url: str, key: str | None, limits: Limits = Limits()) -> None:  # noqa: B008 frozen
        self.name, self._base, self._limits = name, chat_base(url), limits
        self._headers = {"Accept-Encoding": "identity"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._fair = Fair()
        self._session: aiohttp.ClientSession | None = None
        self._chat: URL | None = None
        self._closed = False

    async def ask(self, body: bytes, *, stream: bool, retry: bool) -> Answer:
        for number in range(1, self._limits.tries + 1):
            try:
                return await self._once(body, stream=stream)
            except ChatFailed as failed:
                pause = self._pause(failed, number) if retry else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        raise RuntimeError("the last try returns or raises")

    async def models(self) -> list[JsonObject]:
        session = await self._open()
        import aiohttp

        deadline = asyncio.get_running_loop().time() + self._limits.connect_s
        try:
            async with (
                asyncio.timeout_at(deadline),
                session.get(f"{self._base}/models", headers=self._headers, allow_redirects=False) as got,
            ):
                raw = await ResponseBody(self.name, got).read_all(MAX_LIST, deadline, "did not end its list of models")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise unreachable(self.name, str(error) or type(error).__name__) from error
        if got.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return []  # not every provider has a list
        if not is_answer(got.status):
            raise refused(self.name, got.status, raw)
        return parse_models(self.name, raw)

    def failed(self, failed: ChatFailed) -> None:
        """It keeps no books."""

    async def close(self) -> None:
        """What is being asked fails, and nothing is asked any more."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _once(self, body: bytes, *, stream: bool) -> Answer:
        await self._fair.step()
        session = self._session or await self._open()  # nothing may pause from here on: it may be closed by then
        import aiohttp

        patience = self._limits.first_byte_s if stream else self._limits.whole_s
        try:
            async with asyncio.timeout(patience):
                response = await session.post(
                    self._chat or self._base,
                    data=aiohttp.BytesPayload(body, content_type="application/json"),
                    headers=self._headers,
                    allow_redirects=False,
                )
        except aiohttp.ServerTimeoutError as error:  # it is a TimeoutError too
            raise too_slow(self.name, f"did not take the connection within {self._limits.connect_s:g} s") from error
        except TimeoutError as error:
            raise too_slow(self.name, f"sent nothing within {patience:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self.name, str(error) or type(error).__name__) from error
        if not is_answer(response.status):
            return await self._refused(response)
        try:
            return HttpAnswer(self.name, response, self._limits, self._fair)
        except ChatFailed:
            response.close()
            raise

    async def _refused(self, response: "aiohttp.ClientResponse") -> Answer:
        said, deadline = b"", asyncio.get_running_loop().time() + _LAST_WORD_S
        with contextlib.closing(response), contextlib.suppress(ChatFailed):
            said = await ResponseBody(self.name, response).read_all(_MAX_REFUSAL, deadline, "did not end its refusal")
        after = response.headers.get("Retry-After", "")
        raise refused(self.name, response.status, said, after if after.isascii() else "")  # it is sent on as a header

    def _pause(self, failed: ChatFailed, number: int) -> float | None:
        """How long to wait before the next try; None when there is none."""
        fault = failed.fault
        again = fault.code == "upstream_unreachable" or fault.status == HTTPStatus.TOO_MANY_REQUESTS
        again = again or (fault.code.startswith("upstream_5") and fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR)
        if not again or self._closed or number >= self._limits.tries:
            return None
        asked = float(fault.retry_after) if fault.retry_after.isdecimal() else self._limits.pause_s * 2 ** (number - 1)
        return asked if asked <= self._limits.longest_pause_s else None

    async def _open(self) -> "aiohttp.ClientSession":
        if self._session is None:
            is_new = "aiohttp" not in sys.modules
            await asyncio.to_thread(import_module, "aiohttp")  # long enough to be felt by everybody else
            if is_new:
                gc.freeze()  # what is loaded stays: looking through all of it again and again stops everything else
        if self._closed:  # by now: whoever asked may have waited
            raise unreachable(self.name, "its connections are closed, as the server ends or has other settings now")
        self._session = self._session or self._new()
        return self._session

    def _new(self) -> "aiohttp.ClientSession":
        import aiohttp
        from yarl import URL

        self._chat = URL(f"{self._base}/chat/completions")
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
            auto_decompress=False,  # it would do it at once and without a bound
        )
