"""Probes a model provider: its models, its protocol, its exact words when it refuses, and what to do then.

The protocol is found out by a request without content, which costs nothing: a path that is not there answers 404. Of
several, chat counts, but OpenAI's and Anthropic's own servers are asked in what they speak best. Redirects are not
followed, so a key goes to the origin it is meant for and nowhere else. At most ``PROBE_S`` seconds for a list of models
and 4 MiB, and ``_ASK_S`` for each protocol.
"""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from toolyard.gateway.faults import ChatFailed, describe_refusal, unreachable_provider
from toolyard.gateway.providers.answer import ResponseBody
from toolyard.gateway.providers.diagnosis import (
    advise_on_silence,
    advise_on_status,
    explain_connection_error,
    read_refusal,
)
from toolyard.gateway.providers.endpoint import Endpoint
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.gateway.providers.translation import PATHS
from toolyard.gateway.providers.upstream import MAX_LIST, is_answer
from toolyard.message import Message
from toolyard.provider_settings import ProviderOptions, ProviderProtocol

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

PROBE_S: Final = 15.0
_ASK_S: Final = 4.0
_MAX_MODELS = 2000
_KEY_CHECKS: Final = {"openrouter.ai": "/key"}  # they list their models to everybody, so the list proves no key


_KNOWN: Final = {
    "api.openai.com": (ProviderProtocol.RESPONSES, ProviderProtocol.CHAT),
    "api.anthropic.com": (ProviderProtocol.ANTHROPIC, ProviderProtocol.CHAT),
}
_MISSING: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
_UNDERSTOOD: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Probe:
    models: tuple[str, ...] = ()
    protocols: tuple[ProviderProtocol, ...] = ()  # that it is known to speak, the best first
    error: str = ""  # empty: it answered
    hint: str = ""
    status: int | None = None  # None: there was no answer


async def probe(url: str, key: str | None, options: ProviderOptions = ProviderOptions()) -> Probe:  # noqa: B008 frozen
    """Request the provider's list of models. Never raises for what the provider does."""
    import aiohttp

    key = key or next(iter(options.keys), None)
    deadline = asyncio.get_running_loop().time() + PROBE_S
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session:
            finder = _Finder(session, url, key, options, deadline)
            status, body = await finder.list_models(options.protocol or finder.order[0])
            protocols = await finder.find()
            if not is_answer(status) and protocols and not options.protocol and protocols[0] is not finder.order[0]:
                status, body = await finder.list_models(protocols[0])
    except ChatFailed as failed:
        return Probe(error=failed.fault.message)
    except TimeoutError:
        return Probe(error=_describe_timeout(), hint=advise_on_silence(url))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        cause = explain_connection_error(error, url)
        return Probe(error=unreachable_provider("", cause.reason).fault.message, hint=cause.advice)
    if not is_answer(status):
        return Probe(
            error=describe_refusal("", read_refusal(status, body)),
            hint=_hint_at_refusal(status, has_key=bool(key)),
            status=status,
            protocols=protocols,
        )
    if options.protocol and protocols and options.protocol not in protocols:
        return Probe(
            error=Message("it does not speak the protocol '{protocol}'", protocol=options.protocol),
            hint=Message("It speaks '{protocol}': set that as its protocol.", protocol=protocols[0]),
            status=status,
            protocols=protocols,
        )
    return replace(_parse_models(body, status), protocols=protocols)


class _Verdict(Enum):
    YES = auto()
    MAYBE = auto()  # it said nothing about the path
    NO = auto()


class _Finder:
    """Asks one provider in each protocol; ``order``: those that it may speak, the likeliest first."""

    def __init__(
        self, session: "aiohttp.ClientSession", url: str, key: str | None, options: ProviderOptions, deadline: float
    ) -> None:
        self._session, self._url, self._key, self._deadline = session, url, key, deadline
        self._options = options
        parts = urlsplit(url)
        self._known = _KNOWN.get(parts.hostname or "")
        usual = tuple(ProviderProtocol)
        likely = ProviderProtocol.ANTHROPIC if "anthropic" in parts.path else options.protocol
        first = self._known or ((likely,) if likely else ())
        self.order = (*first, *(one for one in usual if one not in first))

    async def find(self) -> tuple[ProviderProtocol, ...]:
        """Return the protocols that the provider is known to speak; none when nobody can say."""
        if self._known:
            return self._known
        asked = self._options.protocol
        order = (asked, *(one for one in self.order if one is not asked)) if asked else self.order
        maybe = []
        for protocol in order:
            verdict = await self._ask(protocol)
            if verdict is _Verdict.YES:
                return (protocol,)
            if verdict is _Verdict.MAYBE:
                if protocol is asked:
                    return ()
                maybe.append(protocol)
        return tuple(maybe[:1]) if len(maybe) == 1 else ()

    async def list_models(self, protocol: ProviderProtocol) -> tuple[int, bytes]:
        endpoint = self._endpoint(protocol)
        headers, check = endpoint.list_headers(self._key), _KEY_CHECKS.get(urlsplit(endpoint.base).hostname or "")
        async with asyncio.timeout_at(self._deadline):
            status, body = await self._send("GET", endpoint, endpoint.list_address(), headers)
            if not (is_answer(status) and self._key and check):
                return status, body
            checked, refusal = await self._send("GET", endpoint, endpoint.address(check), endpoint.headers(self._key))
        return (status, body) if is_answer(checked) else (checked, refusal)

    async def _ask(self, protocol: ProviderProtocol) -> _Verdict:
        """Ask without content: who speaks the protocol says what is missing."""
        import aiohttp

        endpoint = self._endpoint(protocol)
        headers = {**endpoint.headers(self._key), "Content-Type": "application/json"}
        try:
            async with asyncio.timeout(_ASK_S):
                status, body = await self._send("POST", endpoint, endpoint.address(PATHS[protocol]), headers, b"{}")
        except (ChatFailed, aiohttp.ClientError, OSError):  # a timeout is an OSError
            return _Verdict.MAYBE
        if is_answer(status) or status in _UNDERSTOOD:
            return _Verdict.YES
        if status in _MISSING:
            return _Verdict.YES if "model" in read_refusal(status, body).words[:500] else _Verdict.NO
        return _Verdict.MAYBE

    def _endpoint(self, protocol: ProviderProtocol) -> Endpoint:
        return Endpoint(self._url, replace(self._options, protocol=protocol))

    async def _send(
        self, method: str, endpoint: Endpoint, address: "URL", headers: dict[str, str], data: bytes | None = None
    ) -> tuple[int, bytes]:
        async with self._session.request(
            method, address, headers=headers, data=data, proxy=endpoint.proxy, allow_redirects=False
        ) as got:
            body = await ResponseBody("", got).read_all(MAX_LIST, self._deadline + PROBE_S, _describe_timeout)
            return got.status, body


def _hint_at_refusal(status: int, *, has_key: bool) -> str:
    """Return what to do about a status other than 2xx."""
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN if has_key:
            return Message(
                "Copy the key again, and check that it belongs to this address: a provider with several regions has "
                "separate keys for them."
            )
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return Message("This provider needs a key: enter it.")
        case HTTPStatus.PAYMENT_REQUIRED | HTTPStatus.TOO_MANY_REQUESTS:
            return Message("The key is known, but its credit or its rate limit is used up.")
        case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
            return Message(
                "Check the path of the address, which often ends in /v1. If the provider has no list of models, enter "
                "their names yourself."
            )
        case _:
            return advise_on_status(status)


def _describe_timeout() -> str:
    return Message("it did not answer within {seconds:g} s", seconds=PROBE_S)


def _parse_models(body: bytes, status: int) -> Probe:
    try:
        answer = parse_provider_json(body) if len(body) <= MAX_LIST else None
    except ValueError:
        return Probe(
            error=Message("it answered with something that is no JSON: is this the address of a model provider?"),
            hint=_hint_at_refusal(HTTPStatus.NOT_FOUND, has_key=False),
            status=status,
        )
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return Probe(
            error=Message("its answer has no list of models: is this the address of a model provider?"),
            hint=_hint_at_refusal(HTTPStatus.NOT_FOUND, has_key=False),
            status=status,
        )
    names = (one.get("id") for one in listed[:_MAX_MODELS] if isinstance(one, dict))
    return Probe(models=tuple(name for name in names if isinstance(name, str)), status=status)
