"""A model provider, and the connections to it. It is asked in chat; one that speaks another protocol is translated.

One session per provider keeps connections open. A request is retried only if ``retry`` says that nothing of its answer
has reached the client: after a 429, a 5xx or a failed connection, with growing pauses or as Retry-After says; at once
with the next key where one is refused or rate-limited. Redirects are not followed, so the key goes to its own
origin and nowhere else. Keys are used in turn, and a refused one rests for a while. Limits: ``Limits``.
"""

import asyncio
import contextlib
import io
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from toolyard.engine.step_limiter import StepLimiter
from toolyard.gateway.faults import (
    ChatFailed,
    ChatFault,
    describe_provider,
    encode_request,
    refused_request,
    slow_provider,
    unreachable_provider,
    unreadable_answer,
)
from toolyard.gateway.protocols.chat_body import NativeRequest
from toolyard.gateway.providers.answer import (
    Answer,
    HttpAnswer,
    Limits,
    ProviderWait,
    ResponseBody,
    TranslatedAnswer,
    WaitListener,
    ignore_wait,
)
from toolyard.gateway.providers.diagnosis import advise_on_delay, advise_on_silence, explain_connection_error
from toolyard.gateway.providers.endpoint import Endpoint, add_client_headers
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.model_windows import find_well_known, read_window
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.gateway.providers.translation import PATHS, Translation, make_translation
from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_value
from toolyard.provider_settings import ProviderOptions, ProviderProtocol

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


T = TypeVar("T")
MAX_LIST: Final = 4 * 1024 * 1024  # bytes of a list of models
_MAX_REFUSAL = 64 * 1024
_LAST_WORD_S = 5.0
_READ_BYTES = 64 * 1024  # more would be more work in one step
_AT_ONCE = 1024 * 1024  # bytes of a request: a longer one is written in steps, because each copies it
_MAX_REWRITES = 6  # of a request that a model refuses for its form
_IDLE_S = 4.0  # many providers close a connection after 5 s, and a request that meets that is lost


class Upstream(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def protocol(self) -> ProviderProtocol:
        """The protocol that it speaks; ``ask`` takes and gives chat in any case."""
        ...

    @property
    def max_rounds(self) -> int | None:
        """The limit of tool rounds in a turn; None: the default."""
        ...

    @property
    def takes_native(self) -> bool:
        """True when ``ask`` takes what only another protocol than chat has a word for."""
        ...

    def window(self, model: str) -> int | None:
        """Return how many tokens a model takes, if it is known."""
        ...

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        """Send a chat request; ``on_wait`` hears of each wait before it is sent again. Raises ChatFailed."""
        ...

    async def forward(self, request: Outgoing) -> ForwardedAnswer:
        """Send any other request, or one in its own protocol. Raises ChatFailed."""
        ...

    async def models(self) -> list[JsonObject]:
        """Return the provider's models. Raises ChatFailed."""
        ...

    def note_failure(self, failed: ChatFailed) -> None:
        """Note that an answer failed after it had begun."""
        ...

    async def close(self) -> None: ...


def _apply_limits(limits: Limits, options: ProviderOptions) -> Limits:
    """Return ``limits`` with those that the owner has set for a provider."""
    return replace(
        limits,
        first_byte_s=options.first_byte_seconds or limits.first_byte_s,
        idle_s=options.idle_seconds or limits.idle_s,
        whole_s=options.whole_seconds or limits.whole_s,
    )


def _read_date(text: str) -> int:
    """Return the time of an answer; 0 if its server does not say it."""
    try:
        return max(int(parsedate_to_datetime(text).timestamp()), 0)
    except (ValueError, OverflowError):
        return 0


async def _in_thread(size: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function does with a request of ``size`` bytes; in a thread if it takes a while."""
    return await asyncio.to_thread(function, *arguments) if size > _AT_ONCE else function(*arguments)


def is_answer(status: int) -> bool:
    """Return whether a status is any 2xx, as the official clients treat it."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def parse_models(name: str, raw: bytes) -> list[JsonObject]:
    """Return the valid models of a provider's list. Raises ChatFailed."""
    if len(raw) > MAX_LIST:
        raise unreadable_answer(
            Message(
                "{provider} sent a list of models of more than {limit} bytes",
                provider=describe_provider(name),
                limit=MAX_LIST,
            )
        )
    try:
        answer = parse_provider_json(raw)
    except ValueError as error:
        message = Message("{provider} sent something that is no list of models", provider=describe_provider(name))
        raise unreadable_answer(message, raw) from error
    listed = answer.get("data") if isinstance(answer, dict) else None
    listed = listed if isinstance(listed, list) else []
    return [_to_model(one) for one in listed if isinstance(one, dict) and isinstance(one.get("id"), str)]


def _to_model(model: JsonObject) -> JsonObject:
    """Return a model as OpenAI lists it, also one that Anthropic lists."""
    at = model.get("created_at")
    if "created" in model or not isinstance(at, str):
        return model
    try:
        created = max(int(datetime.fromisoformat(at).timestamp()), 0)
    except (ValueError, OverflowError, OSError):
        created = 0
    return {**model, "object": "model", "created": created, "owned_by": "anthropic"}


class HttpUpstream:
    def __init__(
        self,
        name: str,
        url: str,
        key: str | None,
        limits: Limits = Limits(),  # noqa: B008 it is frozen
        options: ProviderOptions = ProviderOptions(),  # noqa: B008
    ) -> None:
        self.name, self.max_rounds = name, options.tool_rounds
        self._endpoint, self._limits = Endpoint(url, options), _apply_limits(limits, options)
        self.protocol = self._endpoint.protocol
        self._translation = make_translation(self.protocol)
        self.takes_native = self._translation is not None
        self._keys = KeyRing([*([key] if key else []), *options.keys], time.monotonic)
        self._headers = {key: self._endpoint.headers(key) for key in self._keys.all()}
        self._fair = StepLimiter()
        self._session: aiohttp.ClientSession | None = None
        self._asked: URL | None = None
        self._closed = False
        self._window, self._windows = options.context_window, dict[str, int]()

    def window(self, model: str) -> int | None:
        return self._window or self._windows.get(model) or find_well_known(model)

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        if self._translation is not None:
            return await self._ask_translated(body, self._translation, stream=stream, retry=retry, on_wait=on_wait)
        return await self._try(lambda key: self._ask_once(body, key, stream=stream), retry=retry, on_wait=on_wait)

    async def _ask_translated(
        self, body: bytes, translation: Translation, *, stream: bool, retry: bool, on_wait: WaitListener
    ) -> Answer:
        """Ask in the provider's protocol, and in another form if it refuses that."""
        asked: JsonObject = await _in_thread(len(body), json_value, body)
        request = await _in_thread(len(body), translation.write, asked)
        for _ in range(_MAX_REWRITES):
            try:
                return await self._ask_native(request, translation, stream=stream, retry=retry, on_wait=on_wait)
            except ChatFailed as failed:
                rewritten = translation.rewrite(asked, request, failed.fault)
                if rewritten is None:
                    raise
                request = rewritten
        return await self._ask_native(request, translation, stream=stream, retry=retry, on_wait=on_wait)

    async def _ask_native(
        self, request: NativeRequest, translation: Translation, *, stream: bool, retry: bool, on_wait: WaitListener
    ) -> Answer:
        def read(response: "aiohttp.ClientResponse") -> HttpAnswer:
            reader = translation.read(self.name, request, _read_date(response.headers.get("Date", "")))
            return TranslatedAnswer(self.name, response, self._limits, self._fair, reader)

        data = encode_request(request.body)
        return await self._try(
            lambda key: self._ask_once(data, key, stream=stream, more=request.headers, read=read),
            retry=retry,
            on_wait=on_wait,
        )

    async def forward(self, request: Outgoing) -> ForwardedAnswer:
        return await self._try(lambda key: self._forward_once(request, key), retry=isinstance(request.body, bytes))

    async def _try(
        self, send: Callable[[str | None], Awaitable[T]], *, retry: bool, on_wait: WaitListener = ignore_wait
    ) -> T:
        number, keys = 1, self._keys.in_order()
        while True:
            key = keys.pop(0)
            try:
                return await send(key)
            except ChatFailed as failed:
                if self._can_use_other_key(key, failed, keys) and retry:
                    continue
                pause = self._retry_delay(failed, number) if retry else None
                if pause is None:
                    raise
                on_wait(
                    ProviderWait(
                        provider=self.name,
                        fault=failed.fault,
                        pause_s=pause,
                        attempt=number + 1,
                        attempts=self._limits.tries,
                    )
                )
            await asyncio.sleep(pause)
            number, keys = number + 1, self._keys.in_order()

    def _can_use_other_key(self, key: str | None, failed: ChatFailed, others: list[str | None]) -> bool:
        """Return whether another key may be used instead; then this one rests."""
        if not is_about_key(failed.fault):
            return False
        self._keys.rest(key, failed.fault)
        return bool(others) and not self._closed

    async def models(self) -> list[JsonObject]:
        session = await self._open()
        import aiohttp

        key = self._keys.in_order()[0]
        deadline = asyncio.get_running_loop().time() + self._limits.connect_s
        try:
            async with (
                asyncio.timeout_at(deadline),
                session.get(
                    self._endpoint.list_address(),
                    headers=self._endpoint.list_headers(key),
                    proxy=self._endpoint.proxy,
                    allow_redirects=False,
                ) as got,
            ):
                raw = await ResponseBody(self.name, got).read_all(MAX_LIST, deadline, self._describe_endless_list)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from error
        if got.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return []  # not every provider has a list
        if not is_answer(got.status):
            failed = refused_request(self.name, got.status, raw)
            self._can_use_other_key(key, failed, [])
            raise failed
        models = parse_models(self.name, raw)
        self._windows = {str(one["id"]): window for one in models if (window := read_window(one))}
        return models

    def note_failure(self, failed: ChatFailed) -> None:
        """Do nothing: ``WatchedUpstream`` records failures."""

    async def close(self) -> None:
        """Fail the requests in flight, and send none any more."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask_once(
        self,
        body: bytes,
        key: str | None,
        *,
        stream: bool,
        more: Mapping[str, str] = MappingProxyType({}),
        read: "Callable[[aiohttp.ClientResponse], HttpAnswer] | None" = None,
    ) -> Answer:
        """``more``: headers of the client; ``read`` makes the answer, of chat unless it is given."""
        await self._fair.step()
        session = self._session or await self._open()  # no await from here on: it may be closed by then
        import aiohttp

        payload: aiohttp.Payload
        if len(body) <= _AT_ONCE:
            payload = aiohttp.BytesPayload(body, content_type="application/json")
        else:
            payload = aiohttp.BytesIOPayload(io.BytesIO(body), content_type="application/json")
        patience = self._limits.first_byte_s if stream else self._limits.whole_s
        headers = add_client_headers(self._headers[key], more) if more else self._headers[key]
        response = await self._post(session, self._asked, payload, headers, patience)
        try:
            return read(response) if read else HttpAnswer(self.name, response, self._limits, self._fair)
        except ChatFailed:
            response.close()
            raise

    async def _forward_once(self, request: Outgoing, key: str | None) -> ForwardedAnswer:
        session = self._session or await self._open()
        address = self._endpoint.address(request.path)
        headers = add_client_headers(request.headers | self._headers[key], request.more)
        response = await self._post(session, address, request.body, headers, self._limits.whole_s)
        try:
            return ForwardedAnswer(self.name, response, self._limits, self._fair)
        except ChatFailed:
            response.close()
            raise

    async def _post(
        self,
        session: "aiohttp.ClientSession",
        address: "URL | None",
        data: Any,
        headers: dict[str, str],
        patience: float,
    ) -> "aiohttp.ClientResponse":
        """Return an answer that has begun. Raises ChatFailed."""
        import aiohttp

        try:
            async with asyncio.timeout(patience):
                response = await session.post(
                    address or self._endpoint.base,
                    data=data,
                    headers=headers,
                    proxy=self._endpoint.proxy,
                    allow_redirects=False,
                )
        except aiohttp.ServerTimeoutError as error:  # it is a TimeoutError too
            raise slow_provider(
                Message(
                    "{provider} did not take the connection within {seconds:g} s",
                    provider=describe_provider(self.name),
                    seconds=self._limits.connect_s,
                ),
                advise_on_silence(self._endpoint.base),
            ) from error
        except TimeoutError as error:
            raise slow_provider(
                Message(
                    "{provider} sent nothing within {seconds:g} s",
                    provider=describe_provider(self.name),
                    seconds=patience,
                ),
                advise_on_delay(),
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error
        if not is_answer(response.status):
            raise await self._read_refusal(response)
        return response

    def _unreachable(self, error: BaseException) -> ChatFailed:
        if self._closed:
            return self._connections_closed()
        cause = explain_connection_error(error, self._endpoint.base, self.name)
        return unreachable_provider(self.name, cause.reason, cause.advice)

    def _connections_closed(self) -> ChatFailed:
        return unreachable_provider(
            self.name, Message("its connections are closed, as the server ends or has other settings now")
        )

    async def _read_refusal(self, response: "aiohttp.ClientResponse") -> ChatFailed:
        body, deadline = b"", asyncio.get_running_loop().time() + _LAST_WORD_S
        with contextlib.closing(response), contextlib.suppress(ChatFailed):
            body = await ResponseBody(self.name, response).read_all(
                _MAX_REFUSAL, deadline, self._describe_endless_refusal
            )
        after = response.headers.get("Retry-After", "")
        return refused_request(
            self.name, response.status, body, after if after.isascii() else ""
        )  # it is sent on as a header

    def _describe_endless_list(self) -> str:
        return Message("{provider} did not end its list of models", provider=describe_provider(self.name))

    def _describe_endless_refusal(self) -> str:
        return Message("{provider} did not end its refusal", provider=describe_provider(self.name))

    def _retry_delay(self, failed: ChatFailed, number: int) -> float | None:
        """Return the seconds before the next attempt; None when there is none."""
        fault = failed.fault
        again = fault.code == "upstream_unreachable" or fault.status == HTTPStatus.TOO_MANY_REQUESTS
        again = again or (fault.code.startswith("upstream_5") and fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR)
        if not again or self._closed or number >= self._limits.tries:
            return None
        wait_s = float(fault.retry_after) if fault.retry_after.isdecimal() else self._limits.pause_s * 2 ** (number - 1)
        return wait_s if wait_s <= self._limits.longest_pause_s else None

    async def _open(self) -> "aiohttp.ClientSession":
        if self._session is None:
            await asyncio.to_thread(import_module, "aiohttp")  # slow enough to delay every other request
        if self._closed:  # meanwhile: the import was awaited
            raise self._connections_closed()
        self._session = self._session or self._make_session()
        return self._session

    def _make_session(self) -> "aiohttp.ClientSession":
        import aiohttp

        self._asked = self._endpoint.address(PATHS[self.protocol])
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
            auto_decompress=False,  # aiohttp's own is unbounded
            read_bufsize=_READ_BYTES,
        )


REFUSED_S: Final = 300.0  # rest of a refused key
BUSY_S: Final = 30.0  # rest of a rate-limited key, unless the provider names another
MAX_REST_S: Final = 600.0
_REFUSED = {f"upstream_{status.value}" for status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)}
_BUSY = f"upstream_{HTTPStatus.TOO_MANY_REQUESTS.value}"


def is_about_key(fault: ChatFault) -> bool:
    """Return whether another key may be accepted where this one was refused."""
    return fault.code in _REFUSED or fault.code == _BUSY


class KeyRing:
    """The keys in their order; without any key, requests carry none."""

    def __init__(self, keys: Sequence[str], now: Callable[[], float]) -> None:
        self._keys: tuple[str | None, ...] = tuple(dict.fromkeys(keys)) or (None,)
        self._now = now
        self._next = 0
        self._rests: dict[str | None, float] = {}  # until when

    def all(self) -> tuple[str | None, ...]:
        return self._keys

    def in_order(self) -> list[str | None]:
        """Return the keys for one request: active ones in turn, then resting ones by the end of their rest."""
        if len(self._keys) == 1:
            return [self._keys[0]]
        begin, self._next = self._next, (self._next + 1) % len(self._keys)
        now = self._now()
        turned = self._keys[begin:] + self._keys[:begin]
        return sorted(turned, key=lambda key: max(self._rests.get(key, 0.0) - now, 0.0))

    def rest(self, key: str | None, fault: ChatFault) -> None:
        """Let a key rest that a provider did not take."""
        seconds = REFUSED_S if fault.code in _REFUSED else BUSY_S
        if fault.code == _BUSY and fault.retry_after.isdecimal():
            seconds = min(float(fault.retry_after), MAX_REST_S)
        self._rests[key] = self._now() + seconds
